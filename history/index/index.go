// Package index merges what packs say about one cluster's files: which bytes are where, which are missing and why, and which state
// the archive has.
//
// In: the indexes of an archive's packs, in any order and as often as they are read, and how its pods ended. Out: for each file a
// layout, a row of ranges that are there or missing; a state.
//
// What goes out must never depend on the order of what comes in: each replica of the archiver reads packs in its own. A byte that one
// source reports as missing and another one has is there. It must never call an archive Complete without the list of each pod.
package index

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/heliostat-dev/heliostat/history/pack"
)

// MaxRuns is how many runs, gaps and files of lists an archive has at most. Above it, packs must be rewritten first.
const MaxRuns = 1 << 20

// ErrFull is wrapped by the error about a pack that would be above MaxRuns.
var ErrFull = errors.New("too many runs")

// Archive is what is known of the files of one cluster.
type Archive struct {
	cluster pack.UID
	files   map[pack.FileKey]*file
	lists   map[pack.UID]bool
	entries int
	uses    map[useKey]bool
}

// useKey is a line of use.
type useKey struct {
	minute int64
	line   string
}

// file is what is known of one file.
type file struct {
	pack.File
	// named is when the pack with the path was made: the newest path is shown.
	named int64
	runs  []located
	gaps  []pack.Gap
	// size and acked are those of the pod's list, where isListed.
	size, acked int64
	isListed    bool
}

// located is a run with the object that has it, and when that was made.
type located struct {
	pack.Run
	object string
	made   int64
}

func (l located) end() int64 { return l.Offset + l.Length }

// before orders runs that have the same bytes: those of the first pack win.
func (l located) before(other located) int {
	return cmp.Or(
		cmp.Compare(l.made, other.made), cmp.Compare(l.object, other.object), cmp.Compare(l.Place, other.Place),
		cmp.Compare(l.Offset, other.Offset), cmp.Compare(l.Length, other.Length),
	)
}

// New returns the archive of a cluster without files.
func New(cluster pack.UID) *Archive {
	return &Archive{cluster: cluster, files: map[pack.FileKey]*file{}, lists: map[pack.UID]bool{}, uses: map[useKey]bool{}}
}

// Add merges the index of a pack, which is the object of a name. To add the same one again changes nothing that is read.
func (a *Archive) Add(object string, x *pack.Index) error {
	if x.Cluster != a.cluster {
		return fmt.Errorf("add %s to the archive of cluster %s: it is of cluster %s: %w", object, a.cluster, x.Cluster, pack.ErrInvalid)
	}
	more := len(x.Runs) + len(x.Gaps) + len(x.Uses)
	for _, list := range x.Lists {
		more += len(list.Files)
	}
	if a.entries+more > MaxRuns {
		return fmt.Errorf("add %d entries of %s to %d, at most %d fit: %w", more, object, a.entries, MaxRuns, ErrFull)
	}
	a.entries += more
	files := make([]*file, len(x.Files))
	for i, one := range x.Files {
		files[i] = a.file(one, x.At)
	}
	for _, run := range x.Runs {
		from := located{Run: run, object: object, made: x.At}
		if run.Object > 0 {
			// What a manifest names was there before each pack that it does not name.
			from.object, from.made = x.Objects[run.Object-1], 0
		}
		from.File, from.Object = 0, 0
		files[run.File].runs = append(files[run.File].runs, from)
	}
	for _, gap := range x.Gaps {
		to := files[gap.File]
		gap.File = 0
		to.gaps = append(to.gaps, gap)
	}
	for _, use := range x.Uses {
		a.uses[useKey{use.Minute, string(use.Line)}] = true
	}
	for _, list := range x.Lists {
		a.lists[list.Pod] = a.lists[list.Pod] || list.IsFinal
		for _, one := range list.Files {
			if to := files[one.File]; to.Pod == list.Pod {
				to.isListed, to.size, to.acked = true, max(to.size, one.Size), max(to.acked, one.Acked)
			}
		}
	}
	return nil
}

// file returns the file of a key, with the newer of two paths. An empty one is of a list alone, and older than any other.
func (a *Archive) file(one pack.File, named int64) *file {
	known := a.files[one.FileKey]
	if known == nil {
		known = &file{File: one, named: named}
		a.files[one.FileKey] = known
	} else if one.Path != "" && (known.Path == "" || named > known.named || named == known.named && one.Path > known.Path) {
		known.File, known.named = one, named
	}
	return known
}

// Files returns the files of the archive: by pod, path, and the order in which they were made.
func (a *Archive) Files() []pack.File {
	all := make([]pack.File, 0, len(a.files))
	for _, one := range a.files {
		all = append(all, one.File)
	}
	slices.SortFunc(all, func(one, other pack.File) int {
		return cmp.Or(
			slices.Compare(one.Pod[:], other.Pod[:]), cmp.Compare(one.Path, other.Path),
			slices.Compare(one.ID[8:], other.ID[8:]), slices.Compare(one.ID[:], other.ID[:]), cmp.Compare(one.Generation, other.Generation),
		)
	})
	return all
}

// Acked returns, for each file of a pod, up to where all bytes are there or known to be missing: where its collector goes on.
func (a *Archive) Acked(pod pack.UID) map[pack.FileKey]int64 {
	all := map[pack.FileKey]int64{}
	for key, one := range a.files {
		if key.Pod != pod {
			continue
		}
		end := int64(0)
		for _, part := range one.layout(Ending{}, false) {
			if part.Offset > end || part.Length == 0 {
				break
			}
			end = part.Offset + part.Length
		}
		all[key] = end
	}
	return all
}
