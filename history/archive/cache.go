package archive

import (
	"container/list"
	"strconv"
	"sync"

	"github.com/heliostat-dev/heliostat/history/pack"
)

// indexes are those of packs and segments that were read, up to a number of bytes of memory. What is written once never changes, so
// they stay true.
type indexes struct {
	most int64

	mutex sync.Mutex
	held  int64
	rows  map[string]*list.Element
	order *list.List // the one that was used last is first
}

// indexed is an index with the memory that it takes.
type indexed struct {
	key   string
	index *pack.Index
	bytes int64
}

func newIndexes(most int64) *indexes {
	return &indexes{most: most, rows: map[string]*list.Element{}, order: list.New()}
}

// keyOf names the index of an object of a size.
func keyOf(name string, size int64) string { return name + "=" + strconv.FormatInt(size, 10) }

// get returns the index of a key, or nil. Nobody may change it.
func (x *indexes) get(key string) *pack.Index {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	row := x.rows[key]
	if row == nil {
		return nil
	}
	x.order.MoveToFront(row)
	return row.Value.(*indexed).index //nolint:forcetypeassert // put puts nothing else
}

// put keeps an index, and drops those that were not used for the longest time.
func (x *indexes) put(key string, index *pack.Index) {
	one := &indexed{key, index, memoryOf(key, index)}
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if one.bytes > x.most || x.rows[key] != nil {
		return
	}
	x.rows[key] = x.order.PushFront(one)
	for x.held += one.bytes; x.held > x.most; {
		last := x.order.Back()
		gone := x.order.Remove(last).(*indexed) //nolint:forcetypeassert // put puts nothing else
		delete(x.rows, gone.key)
		x.held -= gone.bytes
	}
}

// memoryOf returns about how many bytes an index takes.
func memoryOf(key string, x *pack.Index) int64 {
	const fixed, file, run, gap, size, text = 512, 72, 80, 56, 32, 32
	bytes := fixed + int64(len(key)) + file*int64(len(x.Files)) + run*int64(len(x.Runs)) + gap*int64(len(x.Gaps))
	for _, one := range x.Files {
		bytes += int64(len(one.Path))
	}
	for _, one := range x.Lists {
		bytes += gap + size*int64(len(one.Files))
	}
	for _, one := range x.Objects {
		bytes += text + int64(len(one))
	}
	for _, one := range x.Uses {
		bytes += text + int64(len(one.Line))
	}
	return bytes
}
