// Package archive is the core of the archiver: it takes what collectors send onto its spool, packs it into the store, and reads
// both as one.
//
// In: records of pods, a volume for the spool, a store, the time. Out: acknowledgements of what outlives a crash; packs; the files
// of a cluster with their bytes and gaps.
//
// It must never acknowledge a record before the volume has it, and never remove one from the volume before the store has its pack.
// What fails is tried again, and leads at most to bytes that are there twice.
package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/heliostat-dev/heliostat/history/pack"
	"github.com/heliostat-dev/heliostat/history/wire"
)

// Volume has files by name. Names are flat.
type Volume interface {
	// Create makes a file that is appended to. After its Sync the bytes and the name outlive a crash.
	Create(name string) (File, error)
	// Read returns the bytes of a file.
	Read(name string) ([]byte, error)
	// Sync makes a file durable that a former run wrote.
	Sync(name string) error
	// Replace gives a file other bytes: after a crash it has the former ones or the new ones, and the new ones after it returned.
	Replace(name string, data []byte) error
	// Remove removes a file. After a crash it may be there again.
	Remove(name string) error
	// List returns the names of all files.
	List() ([]string, error)
}

// File is a file that is appended to.
type File interface {
	Write(data []byte) (int, error)
	Sync() error
	Close() error
}

// Store has the packs.
type Store interface {
	Write(ctx context.Context, key string, data []byte) error
	Read(ctx context.Context, key string, offset, length int64) ([]byte, error)
	// List calls each with the keys that begin with a prefix, in their order, their sizes and when they were written.
	List(ctx context.Context, prefix string, each func(key string, size, at int64) error) error
	// IsNotFound reports whether an error is about an object that is not there.
	IsNotFound(err error) bool
}

// Settings are what an archiver is given.
type Settings struct {
	// Replica is the number of this one, and First a random number, from which its segments are counted: no two segments may
	// ever have one name, even where the clock goes back and a spool is lost.
	Replica int
	First   uint64
	// SpoolBytes is how much the spool holds. No namespace has more than a quarter.
	SpoolBytes int64
	// A segment becomes a pack once it has so many bytes, or so many milliseconds after its first record.
	PackBytes, PackAfter int64
	// PodRate and NamespaceRate are how many bytes a second may come. 0 is no bound.
	PodRate, NamespaceRate int64
	// Packers is how many packs are written at once, each of which takes memory. 0 is one.
	Packers int
	// IndexBytes is how much memory the indexes of packs may take that were read before. 0 keeps none.
	IndexBytes int64
	// Now returns the time in milliseconds of Unix time.
	Now func() int64
}

// Key names an archive.
type Key struct{ Namespace, Cluster pack.UID }

// ErrFull is wrapped by the error about records for which the spool has no place.
var ErrFull = errors.New("the spool is full")

// Archive is the archives of all clusters, as one replica has them.
type Archive struct {
	settings Settings
	volume   Volume
	store    Store
	encoder  *pack.Encoder
	indexes  *indexes
	// encoding guards the encoder, which makes one pack at a time.
	encoding sync.Mutex

	mutex    sync.Mutex
	clusters map[Key]*cluster
	held     map[pack.UID]int64 // bytes of a namespace on the spool
	total    int64
	rates    map[pack.UID]*allowance
	next     uint64
}

// Open returns the archives with what a former run left on the volume.
func Open(settings Settings, volume Volume, store Store) (*Archive, error) {
	encoder, err := pack.NewEncoder()
	if err != nil {
		return nil, err
	}
	a := &Archive{
		settings: settings, volume: volume, store: store, encoder: encoder,
		clusters: map[Key]*cluster{}, held: map[pack.UID]int64{}, rates: map[pack.UID]*allowance{},
		indexes: newIndexes(settings.IndexBytes), next: settings.First,
	}
	names, err := volume.List()
	if err != nil {
		return nil, fmt.Errorf("list the spool: %w", err)
	}
	slices.Sort(names) // the segments of a cluster in their order
	for _, name := range names {
		if err := a.recover(name); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// recover takes a file of a former run. A segment is never appended to again.
func (a *Archive) recover(name string) error {
	key, rest, is := parseName(name)
	if !is {
		return nil // of another program
	}
	c := a.cluster(key)
	if rest == endsName {
		return nil
	}
	data, err := a.volume.Read(name)
	if err != nil {
		return fmt.Errorf("read segment %s: %w", name, err)
	}
	if !pack.IsSegment(data) {
		return a.volume.Remove(name) // its first write was cut
	}
	whole, err := pack.ReadSegment(data, func(pack.Record) error { return nil })
	if err != nil {
		return fmt.Errorf("read segment %s, which a later version may have written: %w", name, err)
	}
	// What the former run did not live to sync counts as taken from now on. What is torn behind it is never read.
	if err := a.volume.Sync(name); err != nil {
		return fmt.Errorf("sync segment %s: %w", name, err)
	}
	c.sealed = append(c.sealed, &segment{name: name, size: int64(whole)})
	a.hold(key.Namespace, int64(whole))
	return nil
}

// cluster returns the archive of a key.
func (a *Archive) cluster(key Key) *cluster {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	c := a.clusters[key]
	if c == nil {
		c = &cluster{archive: a, key: key}
		a.clusters[key] = c
	}
	return c
}

// known returns the archive of a key, without taking note of one that this replica has nothing of.
func (a *Archive) known(key Key) *cluster {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if c := a.clusters[key]; c != nil {
		return c
	}
	return &cluster{archive: a, key: key}
}

// all returns the archives of all clusters, in the order of their keys.
func (a *Archive) all() []*cluster {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	all := make([]*cluster, 0, len(a.clusters))
	for _, c := range a.clusters {
		all = append(all, c)
	}
	slices.SortFunc(all, func(b, c *cluster) int { return b.key.Compare(c.key) })
	return all
}

// hold counts bytes on the spool.
func (a *Archive) hold(namespace pack.UID, change int64) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.total += change
	if a.held[namespace] += change; a.held[namespace] == 0 {
		delete(a.held, namespace)
	}
}

// left returns how many bytes more the spool holds for a namespace.
func (a *Archive) left(namespace pack.UID) int64 {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return max(min(a.settings.SpoolBytes-a.total, a.settings.SpoolBytes/4-a.held[namespace]), 0)
}

// number returns a number that no other segment has.
func (a *Archive) number() uint64 {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.next++
	return a.next
}

// Open begins the stream of a pod.
func (a *Archive) Open(_ context.Context, source wire.Source) (wire.Intake, error) {
	c := a.use(Key{source.Namespace, source.Cluster})
	c.mutex.Lock()
	err := c.load()
	c.mutex.Unlock()
	if err != nil {
		c.release()
		return nil, err
	}
	return &intake{cluster: c, source: source, rate: newAllowance(a.settings.PodRate, a.settings.Now())}, nil
}

// intake is the stream of a pod.
type intake struct {
	cluster *cluster
	source  wire.Source
	rate    *allowance
}

// Resume returns up to where this replica has taken each file of the pod.
func (i *intake) Resume() []wire.Acked {
	i.cluster.mutex.Lock()
	defer i.cluster.mutex.Unlock()
	var all []wire.Acked
	for key, row := range i.cluster.ends {
		if key.Pod == i.source.Pod && len(all) < wire.MaxRows {
			all = append(all, wire.Acked{ID: key.ID, Generation: key.Generation, Offset: row.Offset, IsClosed: row.Length > 0})
		}
	}
	return all
}

// Append returns once the records outlive a crash.
func (i *intake) Append(records []pack.Record) error { return i.cluster.append(records) }

// fullWait is how long a collector waits where the spool has no place.
const fullWait = 5 * time.Second

// Behind is taken note of by the part that reports states.
func (i *intake) Behind(int64, time.Duration) {}

// Close ends the stream.
func (i *intake) Close() { i.cluster.release() }
