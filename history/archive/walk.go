package archive

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/heliostat-dev/heliostat/history/pack"
)

// Prefix is what the keys of all archives begin with.
const Prefix = "v1/data/"

// Prefix returns what the keys of all objects of an archive begin with.
func (k Key) Prefix() string {
	return Prefix + k.Namespace.String() + "/" + k.Cluster.String() + "/"
}

// Compare orders keys as the store does.
func (k Key) Compare(other Key) int {
	if order := slices.Compare(k.Namespace[:], other.Namespace[:]); order != 0 {
		return order
	}
	return slices.Compare(k.Cluster[:], other.Cluster[:])
}

// ParseKey reads the key of an object of an archive, and returns the object's name below it.
func ParseKey(text string) (key Key, name string, is bool) {
	rest, isData := strings.CutPrefix(text, Prefix)
	parts := strings.SplitN(rest, "/", 3)
	if !isData || len(parts) < 3 {
		return key, "", false
	}
	var errs [2]error
	key.Namespace, errs[0] = pack.ParseUID(parts[0])
	key.Cluster, errs[1] = pack.ParseUID(parts[1])
	return key, parts[2], errors.Join(errs[:]...) == nil
}

// Listed is what a list of the store has of one archive.
type Listed struct {
	Key Key
	// Packs and Others are how many objects there are beside the marker, and Bytes how long they are.
	Packs, Others int
	Bytes         int64
	// EndAt is when the marker was written, and 0 where there is none.
	EndAt int64
	// Newest is when the last of the others was written.
	Newest int64
	// Print is another number where the names of the objects, or when they were written, are others.
	Print uint64
}

// Add counts an object.
func (l *Listed) Add(name string, size, at int64) {
	print := fnv.New64a()
	_, _ = fmt.Fprint(print, l.Print, name, at)
	l.Print = print.Sum64()
	if name == EndName {
		l.EndAt = at
		return
	}
	if strings.HasPrefix(name, "p/") {
		l.Packs++
	} else {
		l.Others++
	}
	l.Bytes, l.Newest = l.Bytes+size, max(l.Newest, at)
}

// Walk calls each with the archives of the store, in the order of their keys. It holds one of them at a time.
func Walk(ctx context.Context, store Store, each func(Listed) error) error {
	var one Listed
	isFirst := true
	if err := store.List(ctx, Prefix, func(text string, size, at int64) error {
		key, name, is := ParseKey(text)
		if !is {
			return nil // of another program
		}
		if isFirst || key != one.Key {
			if !isFirst {
				if err := each(one); err != nil {
					return err
				}
			}
			one, isFirst = Listed{Key: key}, false
		}
		one.Add(name, size, at)
		return nil
	}); err != nil {
		return fmt.Errorf("walk the archives of the store: %w", err)
	}
	if isFirst {
		return nil
	}
	return each(one)
}

// Walk calls each with the key of each archive of which the store or the spool has something, in their order and each once.
func (a *Archive) Walk(ctx context.Context, each func(Key) error) error {
	var spooled []Key
	for _, c := range a.all() {
		c.mutex.Lock()
		if len(c.segments()) > 0 {
			spooled = append(spooled, c.key)
		}
		c.mutex.Unlock()
	}
	before := func(is func(Key) bool) error {
		for len(spooled) > 0 && is(spooled[0]) {
			key := spooled[0]
			spooled = spooled[1:]
			if err := each(key); err != nil {
				return err
			}
		}
		return nil
	}
	if err := Walk(ctx, a.store, func(listed Listed) error {
		if err := before(func(key Key) bool { return key.Compare(listed.Key) < 0 }); err != nil {
			return err
		}
		if len(spooled) > 0 && spooled[0] == listed.Key {
			spooled = spooled[1:]
		}
		return each(listed.Key)
	}); err != nil {
		return err
	}
	return before(func(Key) bool { return true })
}
