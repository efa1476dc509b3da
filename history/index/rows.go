package index

import (
	"cmp"
	"maps"
	"slices"

	"github.com/heliostat-dev/heliostat/history/pack"
)

// Row is what an archive has of one file, as a manifest has it.
type Row struct {
	pack.File
	// Ranges are bytes that are there, in order and without overlap.
	Ranges []Range
	// Gaps are those that somebody noted, in order and without overlap.
	Gaps []pack.Gap
	// Size and Acked are those of the pod's list, where IsListed.
	Size, Acked int64
	IsListed    bool
}

// Rows returns the rows of all files, in the order of their paths.
func (a *Archive) Rows() []Row {
	all := make([]Row, 0, len(a.files))
	for _, one := range a.Files() {
		known := a.files[one.FileKey]
		row := Row{File: one, Ranges: merge(known.runs), Size: known.size, Acked: known.acked, IsListed: known.isListed}
		for _, part := range known.noted() {
			gap := pack.Gap{Offset: part.Offset, Length: part.Length, Reason: part.Reason, At: part.Run.At}
			if part.Offset+part.Length == endless {
				gap.Length = 0
			}
			row.AddGap(gap)
		}
		all = append(all, row)
	}
	slices.SortStableFunc(all, func(one, other Row) int { return cmp.Compare(one.Path, other.Path) })
	return all
}

// AddGap appends a gap, which becomes a part of the last one where it goes on there.
func (r *Row) AddGap(gap pack.Gap) {
	if last := len(r.Gaps) - 1; last >= 0 && r.Gaps[last].Reason == gap.Reason && r.Gaps[last].Length > 0 &&
		r.Gaps[last].Offset+r.Gaps[last].Length == gap.Offset {
		if r.Gaps[last].Length += gap.Length; gap.Length == 0 {
			r.Gaps[last].Length = 0
		}
		r.Gaps[last].At = max(r.Gaps[last].At, gap.At)
		return
	}
	r.Gaps = append(r.Gaps, gap)
}

// Last returns when the last byte was read that was ever there.
func (r *Row) Last() int64 {
	last := int64(0)
	for _, one := range r.Ranges {
		last = max(last, one.Run.At)
	}
	for _, gap := range r.Gaps {
		if gap.Reason == pack.LimitReached || gap.Reason == pack.ArchiverAway {
			last = max(last, gap.At)
		}
	}
	return last
}

// Lists returns the pods of which a list is there, and whether it was the last one.
func (a *Archive) Lists() map[pack.UID]bool { return maps.Clone(a.lists) }

// Uses returns the lines of use, in order.
func (a *Archive) Uses() []pack.Use {
	all := make([]pack.Use, 0, len(a.uses))
	for use := range a.uses {
		all = append(all, pack.Use{Minute: use.minute, Line: []byte(use.line)})
	}
	slices.SortFunc(all, func(one, other pack.Use) int {
		return cmp.Or(cmp.Compare(one.Minute, other.Minute), slices.Compare(one.Line, other.Line))
	})
	return all
}

// Entries returns how many of MaxRuns are taken.
func (a *Archive) Entries() int { return a.entries }

// IsEmpty reports whether no byte of any file is there.
func (a *Archive) IsEmpty() bool {
	for _, one := range a.files {
		if len(one.runs) > 0 {
			return false
		}
	}
	return true
}
