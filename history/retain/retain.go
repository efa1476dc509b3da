// Package retain decides what goes out of archives: what is older than it must be kept, and what is above a limit.
//
// In: what archives and the store hold, the limits, the time. Out: cuts, records and objects that go, each in the order in which it
// must go. docs/design/history.md has the rules.
//
// It must never choose by the order of what comes in, so that two archivers that decide at once decide alike, and it must never let
// one cluster's flood displace what is below its share of the namespace.
package retain

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/heliostat-dev/heliostat/history/pack"
)

// Times and durations are in milliseconds.
const (
	hour = int64(3600_000)
	day  = 24 * hour
	// FirstBytes of a file that still grows stay, whatever the limits are.
	FirstBytes = 1 << 20
	// MarkFor is how long a record says that an archive expired or was deleted.
	MarkFor = 30 * day
	// OrphanAge is how old an object of the store is before it can be an orphan: a younger one may not be named yet.
	OrphanAge = day
)

// Limits are those of the chart. 0 is no limit.
type Limits struct {
	Cluster, Namespace int64
	Objects            int
	AfterNamespace     int64
}

// Archive is what is kept of a cluster's files.
type Archive struct {
	Cluster, Namespace pack.UID
	KeepFor            int64
	// NamespaceGone is when the namespace went, and 0 while it is there.
	NamespaceGone int64
	Files         []File
}

// File is a file of an archive.
type File struct {
	Key pack.FileKey
	// IsEnded: it cannot grow any more.
	IsEnded bool
	// Last is when its last byte was read, also if that went by a limit.
	Last int64
	// Runs are in the order of their offsets, without overlap.
	Runs []Run
}

// Run is bytes of a file, when the last of them was read, and how many bytes of the store they take.
type Run struct {
	Offset, Length, At, Size int64
}

// Cause is why bytes go.
type Cause string

// The causes.
const (
	Expired      Cause = "Expired"
	LimitReached Cause = "LimitReached"
)

// Cut is bytes of a file that go: a run, or the whole file. The index gets a gap LimitReached for them, unless all of a file
// expires that has ended.
type Cut struct {
	Cluster pack.UID
	File    pack.FileKey
	IsWhole bool
	// Run is what goes where it is not the whole file.
	Run   Run
	Cause Cause
	// Size is how many bytes of the store become free.
	Size int64
}

// Cuts returns what goes out of archives, in order.
func Cuts(archives []Archive, limits Limits, now int64) []Cut {
	holdings := make([]*holding, 0, len(archives))
	var all []Cut
	for _, one := range sorted(archives) {
		left := &holding{archive: one}
		all = append(all, left.expire(limits, now)...)
		holdings = append(holdings, left)
	}
	for _, one := range holdings {
		for limits.Cluster > 0 && one.size > limits.Cluster {
			cut, is := one.next()
			if !is {
				break
			}
			all = append(all, cut)
		}
	}
	if limits.Namespace == 0 {
		return all
	}
	for begin := 0; begin < len(holdings); {
		end := begin
		for end < len(holdings) && holdings[end].archive.Namespace == holdings[begin].archive.Namespace {
			end++
		}
		all = append(all, share(holdings[begin:end], limits.Namespace)...)
		begin = end
	}
	return all
}

// sorted returns archives by namespace and cluster.
func sorted(archives []Archive) []Archive {
	return slices.SortedFunc(slices.Values(archives), func(a, b Archive) int {
		return cmp.Or(slices.Compare(a.Namespace[:], b.Namespace[:]), slices.Compare(a.Cluster[:], b.Cluster[:]))
	})
}

// share cuts those of one namespace until all together are within a limit, always the one that holds most.
func share(holdings []*holding, limit int64) []Cut {
	total := int64(0)
	for _, one := range holdings {
		total += one.size
	}
	var all []Cut
	largest := largest(slices.Clone(holdings))
	heap.Init(&largest)
	for total > limit && len(largest) > 0 {
		cut, is := largest[0].next()
		if !is {
			heap.Pop(&largest)
			continue
		}
		total -= cut.Size
		all = append(all, cut)
		heap.Fix(&largest, 0)
	}
	return all
}

// largest is a heap: the first holds most.
type largest []*holding

func (l largest) Len() int { return len(l) }
func (l largest) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(l[j].size, l[i].size), slices.Compare(l[i].archive.Cluster[:], l[j].archive.Cluster[:])) < 0
}
func (l largest) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l *largest) Push(one any) { *l = append(*l, one.(*holding)) } //nolint:forcetypeassert // share pushes nothing else
func (l *largest) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}

// holding is what an archive holds while a decision is made.
type holding struct {
	archive Archive
	size    int64
	// queue is what can be cut, in order, once isQueued.
	queue    []Cut
	isQueued bool
}

// expire takes out the files whose time is over, and measures the rest.
func (h *holding) expire(limits Limits, now int64) []Cut {
	var cuts []Cut
	var left []File
	isGone := h.archive.NamespaceGone > 0 && h.archive.NamespaceGone+limits.AfterNamespace <= now
	for _, file := range slices.SortedFunc(slices.Values(h.archive.Files), byAge) {
		size := file.size()
		if len(file.Runs) > 0 && (isGone || file.Last+h.archive.KeepFor <= now) {
			cuts = append(cuts, Cut{Cluster: h.archive.Cluster, File: file.Key, IsWhole: true, Cause: Expired, Size: size})
			continue
		}
		h.size += size
		left = append(left, file)
	}
	h.archive.Files = left
	return cuts
}

// next cuts what goes first at a limit: the oldest file that ended, then the oldest run of one that still grows.
func (h *holding) next() (Cut, bool) {
	if !h.isQueued {
		h.queue, h.isQueued = h.order(), true
	}
	if len(h.queue) == 0 {
		return Cut{}, false
	}
	cut := h.queue[0]
	h.queue = h.queue[1:]
	h.size -= cut.Size
	return cut, true
}

// order returns all that can be cut, in order.
func (h *holding) order() []Cut {
	var ended, growing []Cut
	for _, file := range h.archive.Files {
		cut := Cut{Cluster: h.archive.Cluster, File: file.Key, Cause: LimitReached}
		if file.IsEnded {
			if cut.IsWhole, cut.Size = true, file.size(); cut.Size > 0 {
				ended = append(ended, cut)
			}
			continue
		}
		for _, run := range file.Runs {
			if run.Offset >= FirstBytes {
				cut.Run, cut.Size = run, run.Size
				growing = append(growing, cut)
			}
		}
	}
	// Files stand by age. Runs of several files are in the order of their times, each file's in that of its offsets.
	slices.SortStableFunc(growing, func(a, b Cut) int {
		if a.File == b.File {
			return cmp.Compare(a.Run.Offset, b.Run.Offset)
		}
		return cmp.Or(cmp.Compare(a.Run.At, b.Run.At), compareKeys(a.File, b.File))
	})
	return append(ended, growing...)
}

func (f File) size() int64 {
	size := int64(0)
	for _, run := range f.Runs {
		size += run.Size
	}
	return size
}

func byAge(a, b File) int { return cmp.Or(cmp.Compare(a.Last, b.Last), compareKeys(a.Key, b.Key)) }

func compareKeys(a, b pack.FileKey) int {
	return cmp.Or(slices.Compare(a.Pod[:], b.Pod[:]), slices.Compare(a.ID[:], b.ID[:]), cmp.Compare(a.Generation, b.Generation))
}

// Bound returns when something happened that a node claims, by the archiver's own time: a day off at most.
func Bound(claimed, received int64) int64 { return min(max(claimed, received-day), received+day) }
