package retain

import (
	"cmp"
	"slices"

	"github.com/heliostat-dev/heliostat/history/pack"
)

// Life is how far the object of a record is.
type Life uint8

// The lives, in the order in which records go at a limit. Those of objects that live never go.
const (
	Marked Life = iota // the archive expired or was deleted, and the record says so
	Ended
	Living
)

// Record is the record of an object.
type Record struct {
	UID, Namespace pack.UID
	Life           Life
	// At is when the archive expired or was deleted, or when the object ended.
	At int64
}

// Records returns the records that go, in order: marks whose time is over, and at a limit the oldest marks, then the oldest of
// objects that ended.
func Records(records []Record, limits Limits, now int64) []pack.UID {
	order := slices.SortedFunc(slices.Values(records), func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.Life, b.Life), cmp.Compare(a.At, b.At), slices.Compare(a.UID[:], b.UID[:]))
	})
	held := map[pack.UID]int{}
	for _, one := range order {
		held[one.Namespace]++
	}
	var gone []pack.UID
	for _, one := range order {
		isOver := one.Life == Marked && one.At+MarkFor <= now
		isAbove := limits.Objects > 0 && held[one.Namespace] > limits.Objects && one.Life != Living
		if isOver || isAbove {
			held[one.Namespace]--
			gone = append(gone, one.UID)
		}
	}
	return gone
}

// Stored is an object of the store.
type Stored struct {
	Key string
	At  int64
}

// Orphans returns the objects that nothing names and that are old enough, in the order of their keys.
func Orphans(stored []Stored, isNamed func(key string) bool, now int64) []string {
	var gone []string
	for _, one := range stored {
		if one.At+OrphanAge <= now && !isNamed(one.Key) {
			gone = append(gone, one.Key)
		}
	}
	slices.Sort(gone)
	return gone
}
