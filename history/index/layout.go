package index

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	"github.com/heliostat-dev/heliostat/history/pack"
)

// Range is bytes of a file that follow each other, all there or all missing.
type Range struct {
	Offset int64
	// Length is 0 where bytes are missing up to an end that nobody knows.
	Length int64
	// Reason is why the bytes are missing, and 0 where they are there.
	Reason pack.Reason
	// Object has the bytes, in the frame of Run, from its byte Skip on.
	Object string
	Run    pack.Run
	Skip   int64
}

// Layout returns the ranges of a file from its beginning to its end, as far as that is known, and how its pod ended. Ranges follow
// each other without overlap. While the pod lives, bytes that no pack has are on their way, and in no range. So are they for ListWait after
// its end: until then, give it as one that lives.
func (a *Archive) Layout(key pack.FileKey, ending Ending) []Range {
	if one := a.files[key]; one != nil {
		return one.layout(ending, a.lists[key.Pod])
	}
	return nil
}

// At returns the range of a layout that an offset lies in. A reader whose offset is in a missing range names it and goes on behind it.
// It reports false where the offset is at the end, or where bytes are on their way.
func At(layout []Range, offset int64) (Range, bool) {
	i, _ := slices.BinarySearchFunc(layout, offset, func(one Range, offset int64) int {
		if one.Length > 0 && one.Offset+one.Length <= offset {
			return -1
		}
		return 1
	})
	if i == len(layout) || layout[i].Offset > offset {
		return Range{}, false
	}
	return layout[i], true
}

// ranked is a heap of runs that begin before the place that is looked at. The first one has the bytes.
type ranked []located

func (r ranked) Len() int           { return len(r) }
func (r ranked) Less(i, j int) bool { return r[i].before(r[j]) < 0 }
func (r ranked) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *ranked) Push(one any)      { *r = append(*r, one.(located)) } //nolint:forcetypeassert // heap gives back what merge pushes
func (r *ranked) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}

// merge returns what runs have, in order and without overlap.
func merge(runs []located) []Range {
	sorted := slices.SortedFunc(slices.Values(runs), func(one, other located) int { return cmp.Or(cmp.Compare(one.Offset, other.Offset), one.before(other)) })
	var all []Range
	var open ranked
	for place := int64(0); len(sorted) > 0 || len(open) > 0; {
		if len(open) == 0 {
			place = max(place, sorted[0].Offset)
		}
		for len(sorted) > 0 && sorted[0].Offset <= place {
			heap.Push(&open, sorted[0])
			sorted = sorted[1:]
		}
		first := open[0]
		if first.end() <= place {
			heap.Pop(&open)
			continue
		}
		until := first.end()
		if len(sorted) > 0 {
			until = min(until, sorted[0].Offset)
		}
		last := len(all) - 1
		if last >= 0 && all[last].Object == first.object && all[last].Run == first.Run && all[last].Offset+all[last].Length == place {
			all[last].Length += until - place
		} else {
			all = append(all, Range{Offset: place, Length: until - place, Object: first.object, Run: first.Run, Skip: place - first.Offset})
		}
		place = until
	}
	return all
}

// layout puts what is there and what is missing in order.
func (f *file) layout(ending Ending, hasList bool) []Range {
	there, noted := merge(f.runs), f.noted()
	// end is up to where the collector came: what it sent, or what somebody noted in place of it.
	end := int64(0)
	if last := len(there) - 1; last >= 0 {
		end = there[last].Offset + there[last].Length
	}
	for _, one := range slices.Backward(noted) {
		if one.Offset+one.Length < endless {
			end = max(end, one.Offset+one.Length)
			break
		}
	}
	known := end
	if f.isListed {
		known = max(end, f.size)
	}
	reasons := f.reasons(noted, ending, hasList, end)
	var all []Range
	place := int64(0)
	for _, one := range there {
		all = append(append(all, reasons.within(place, one.Offset)...), one)
		place = one.Offset + one.Length
	}
	all = append(all, reasons.within(place, known)...)
	return append(all, reasons.beyond(known)...)
}

// why are the reasons for what is missing, each for a range, in order and without overlap.
type why struct {
	// noted are those that somebody saw. They come before those that are deduced.
	noted, deduced []Range
}

// endless is where a range without a known end ends.
const endless = math.MaxInt64

// noted returns the ranges that somebody saw missing, in order and without overlap.
func (f *file) noted() []Range {
	if len(f.gaps) == 0 {
		return nil
	}
	gaps := make([]located, len(f.gaps))
	for i, gap := range f.gaps {
		length := endless - gap.Offset
		if gap.Length > 0 {
			length = min(length, gap.Length)
		}
		// Of several gaps in one place, that of the lowest reason is first.
		gaps[i] = located{Run: pack.Run{Offset: gap.Offset, Length: length, At: gap.At, Sum: uint32(gap.Reason)}, made: int64(gap.Reason)}
	}
	noted := merge(gaps)
	for i := range noted {
		noted[i].Reason = pack.Reason(noted[i].Run.Sum)
	}
	return noted
}

// reasons returns why bytes of a file can be missing, of which some are noted. Its collector came to end.
func (f *file) reasons(noted []Range, ending Ending, hasList bool, end int64) why {
	w := why{noted: noted}
	ended := cmp.Or(ending.Reason, pack.Killed)
	switch {
	case ending.At == 0: // what is missing is on its way
	case f.isListed:
		// The collector sent what was acknowledged, and had no time for the rest.
		w.deduced = []Range{{Length: f.acked, Reason: pack.ArchiverAway}, {Offset: f.acked, Length: max(0, f.size-f.acked), Reason: ended}}
	case hasList:
		// The file went before the collector that sent the last list had begun.
		w.deduced = []Range{{Length: end, Reason: pack.ArchiverAway}, {Offset: end, Length: endless - end, Reason: pack.RotatedAway}}
	default:
		// A file is sent in order, so what is before a later byte was sent.
		w.deduced = []Range{{Length: end, Reason: pack.ArchiverAway}, {Offset: end, Length: endless - end, Reason: ended}}
	}
	return w
}

// within returns the missing ranges of a place where no byte is there.
func (w why) within(from, to int64) []Range {
	var all []Range
	for place := from; place < to; {
		reason, until := next(w.noted, place, to)
		if reason == 0 {
			reason, until = next(w.deduced, place, until)
		}
		last := len(all) - 1
		switch {
		case reason == 0:
		case last >= 0 && all[last].Reason == reason && all[last].Offset+all[last].Length == place:
			all[last].Length = until - all[last].Offset
		default:
			all = append(all, Range{Offset: place, Length: until - place, Reason: reason})
		}
		place = until
	}
	return all
}

// next returns the reason of the range that a place lies in, or 0, and up to where it holds.
func next(ranges []Range, place, to int64) (pack.Reason, int64) {
	i, _ := slices.BinarySearchFunc(ranges, place, func(one Range, place int64) int {
		if one.Offset+one.Length <= place {
			return -1
		}
		return 1
	})
	switch {
	case i == len(ranges):
		return 0, to
	case ranges[i].Offset > place:
		return 0, min(to, ranges[i].Offset)
	default:
		return ranges[i].Reason, min(to, ranges[i].Offset+ranges[i].Length)
	}
}

// beyond returns what is missing behind the last byte that is there or listed: up to an end that nobody knows.
func (w why) beyond(end int64) []Range {
	for _, ranges := range [][]Range{w.noted, w.deduced} {
		if last := len(ranges) - 1; last >= 0 && ranges[last].Offset+ranges[last].Length == endless {
			return []Range{{Offset: end, Reason: ranges[last].Reason}}
		}
	}
	return nil
}
