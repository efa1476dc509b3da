// Package keeper compacts and removes archives in the store, each minute: it rewrites packs into final objects, and removes what is
// expired, above a limit, or named by nothing.
//
// In: the records of clusters and of the ends of their pods, the store, the limits, the time. Out: final objects, manifests, markers
// of archives that ended, and deletions. docs/design/history.md has the rules.
//
// It must never remove an object before the store has what replaces it or says that it is gone, and never hold the bytes of an
// archive at once. Two keepers at a time, or one that ends at any call, lead at most to objects that the next one removes.
package keeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/heliostat-dev/heliostat/history/archive"
	"github.com/heliostat-dev/heliostat/history/index"
	"github.com/heliostat-dev/heliostat/history/pack"
	"github.com/heliostat-dev/heliostat/history/retain"
)

// Times and durations are in milliseconds.
const (
	minute = int64(60_000)
	hour   = 60 * minute
	day    = 24 * hour
	never  = int64(1) << 62
	// Grace is how long objects stay that a manifest replaced: a reader, or another keeper, may still use the one before.
	Grace = 10 * minute
)

// Archive is what the records have of a cluster.
type Archive struct {
	Key archive.Key
	// Ended is when the cluster's object went, and 0 while it is there.
	Ended int64
	// KeepFor is how long a file is kept after its last byte.
	KeepFor int64
	// NamespaceGone is when the namespace went, and 0 while it is there.
	NamespaceGone int64
}

// Records are those of clusters and pods. Several goroutines may call them.
type Records interface {
	// Archives returns all clusters that have a record.
	Archives() []Archive
	// Endings returns how pods of a cluster ended.
	Endings(cluster pack.UID) map[pack.UID]index.Ending
	// Mark notes that an archive is Expired or Deleted. It may come again.
	Mark(cluster pack.UID, state index.State, at int64, by string) error
}

// Store has the objects. Several goroutines may call it.
type Store interface {
	archive.Store
	// Delete removes an object. It is no error if it is not there.
	Delete(ctx context.Context, key string) error
}

// Settings are what a keeper is given.
type Settings struct {
	Limits retain.Limits
	// MaxKeepFor is how long a file is kept of whose cluster there is no record.
	MaxKeepFor int64
	// First is a random number, from which final objects are counted: no two keepers may ever write one name.
	First uint64
}

// ErrLives is wrapped by the error about the deletion of an archive whose cluster is still there, or has no record.
var ErrLives = errors.New("the cluster has not ended")

// work bounds what one pass does.
type work struct {
	workers, visits int
	// pass and step are how many bytes are moved in a pass, and of one archive at once.
	pass, step int64
	// partFiles and partNames are how many files and names one part of a manifest has.
	partFiles, partNames int
}

// Keeper keeps the archives of all clusters. The replica that has the Lease calls its passes.
type Keeper struct {
	settings Settings
	store    Store
	records  Records
	work     work
	decoders chan *pack.Decoder

	// writing guards the encoder, and heavy lets one large archive be in memory.
	writing, heavy sync.Mutex
	encoder        *pack.Encoder
	// busy are locks of archives, by a byte of their UIDs.
	busy [64]sync.Mutex

	mutex    sync.Mutex
	next     uint64
	known    map[archive.Key]*summary
	levels   map[pack.UID]int64
	queue    []archive.Key
	isQueued map[archive.Key]bool
	last     archive.Key // of the visits of the last pass
}

// New returns a keeper.
func New(settings Settings, store Store, records Records) (*Keeper, error) {
	encoder, err := pack.NewEncoder()
	if err != nil {
		return nil, err
	}
	k := &Keeper{
		settings: settings, store: store, records: records, encoder: encoder, next: settings.First,
		work:  work{workers: 8, visits: 4000, pass: 1 << 30, step: 128 << 20, partFiles: partFiles, partNames: partNames},
		known: map[archive.Key]*summary{}, levels: map[pack.UID]int64{}, isQueued: map[archive.Key]bool{},
	}
	k.decoders = make(chan *pack.Decoder, k.work.workers)
	for range k.work.workers {
		decoder, err := pack.NewDecoder()
		if err != nil {
			return nil, err
		}
		k.decoders <- decoder
	}
	return k, nil
}

// summary is what is known of an archive since it was looked at.
type summary struct {
	fact Archive
	// print and packs are those of the list.
	print uint64
	packs int
	// held is how many bytes of the store it takes, without what was replaced. Where nothing could be cut above a limit, stuck is
	// what it held.
	held, replaced, stuck int64
	// due is when there is something to do, whatever the store lists.
	due int64
	// isSeen is of the last walk.
	isSeen bool
}

// Pass does what is due at a time, within its bounds. It goes on after a failure, and returns what failed.
func (k *Keeper) Pass(ctx context.Context, now int64) error {
	facts := map[archive.Key]Archive{}
	for _, one := range k.records.Archives() {
		facts[one.Key] = one
	}
	due, err := k.walk(ctx, facts, now)
	if err != nil {
		return err
	}
	failed := &failures{}
	k.visitAll(ctx, due, facts, now, failed)
	left := k.work.pass
	for range k.queueLength() {
		if left <= 0 || ctx.Err() != nil {
			break
		}
		key, is := k.pop()
		if !is {
			break
		}
		moved, err := k.visit(ctx, visiting{key: key, facts: facts, now: now, budget: min(left, k.work.step), isHeavy: true})
		failed.add(err)
		left -= moved
	}
	return errors.Join(failed.error(), ctx.Err())
}

// candidate is an archive that a pass looks at.
type candidate struct {
	key     archive.Key
	isHeavy bool
}

// walk lists the store, and returns the archives of which something is due.
func (k *Keeper) walk(ctx context.Context, facts map[archive.Key]Archive, now int64) ([]candidate, error) {
	k.mutex.Lock()
	for _, one := range k.known {
		one.isSeen = false
	}
	k.mutex.Unlock()
	var due, rest []candidate
	held := map[pack.UID][]retain.Held{}
	if err := archive.Walk(ctx, k.store, func(listed archive.Listed) error {
		k.mutex.Lock()
		defer k.mutex.Unlock()
		one := candidate{listed.Key, listed.Packs+listed.Others > 256}
		s := k.known[listed.Key]
		if s != nil {
			s.isSeen, s.held = true, max(listed.Bytes-s.replaced, 0)
			held[listed.Key.Namespace] = append(held[listed.Key.Namespace], retain.Held{Size: s.held, Floor: s.stuck})
		}
		fact, isKnown := facts[listed.Key]
		switch {
		case k.isDue(s, listed, fact, isKnown, now):
			due = append(due, one)
		case s != nil:
			rest = append(rest, one)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for key, one := range k.known {
		if !one.isSeen {
			delete(k.known, key)
		}
	}
	clear(k.levels)
	for namespace, all := range held {
		if level, is := retain.Level(all, k.settings.Limits.Namespace); is {
			k.levels[namespace] = level
		}
	}
	for _, one := range rest {
		s := k.known[one.key]
		if level, is := k.levels[one.key.Namespace]; is && s.held > level && isGrown(s) && !k.isQueued[one.key] {
			due = append(due, one)
		}
	}
	slices.SortFunc(due, func(a, b candidate) int { return a.key.Compare(b.key) })
	return due, nil
}

// isGrown reports whether an archive above a limit, of which nothing could be cut, has more since then.
func isGrown(s *summary) bool { return s.held > s.stuck+s.stuck/16 }

// isDue reports whether an archive must be looked at. The packs of a cluster that lives are not read each minute.
func (k *Keeper) isDue(s *summary, listed archive.Listed, fact Archive, isKnown bool, now int64) bool {
	limit := k.settings.Limits.Cluster
	switch {
	case listed.EndAt > 0 && listed.Packs+listed.Others == 0:
		return listed.EndAt+retain.MarkFor <= now
	case s == nil || s.fact != fact || now >= s.due:
		return true
	case k.isQueued[listed.Key]:
		return false
	case fact.Ended > 0 || !isKnown:
		return s.print != listed.Print
	case listed.Packs > 2*s.packs+64 || listed.Packs > manyPacks && s.packs <= manyPacks:
		return true
	default:
		return limit > 0 && s.held > limit && isGrown(s)
	}
}

// visitAll looks at archives, several at a time. Where there are more than a pass looks at, the next pass goes on behind them.
func (k *Keeper) visitAll(ctx context.Context, due []candidate, facts map[archive.Key]Archive, now int64, failed *failures) {
	first, _ := slices.BinarySearchFunc(due, k.last, func(one candidate, key archive.Key) int {
		if one.key.Compare(key) <= 0 {
			return -1
		}
		return 1
	})
	if len(due) > k.work.visits {
		due = append(slices.Clone(due[first:]), due[:first]...)[:k.work.visits]
	}
	if len(due) == 0 {
		return
	}
	k.last = due[len(due)-1].key
	work := make(chan candidate)
	var group sync.WaitGroup
	for range k.work.workers {
		group.Go(func() {
			for one := range work {
				_, err := k.visit(ctx, visiting{key: one.key, facts: facts, now: now, isHeavy: one.isHeavy})
				failed.add(err)
			}
		})
	}
	for _, one := range due {
		if ctx.Err() != nil {
			break
		}
		work <- one
	}
	close(work)
	group.Wait()
}

// push puts an archive at the end of those whose bytes must be moved.
func (k *Keeper) push(key archive.Key) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if !k.isQueued[key] {
		k.isQueued[key] = true
		k.queue = append(k.queue, key)
	}
}

func (k *Keeper) pop() (archive.Key, bool) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if len(k.queue) == 0 {
		return archive.Key{}, false
	}
	key := k.queue[0]
	k.queue = k.queue[1:]
	delete(k.isQueued, key)
	return key, true
}

func (k *Keeper) queueLength() int {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return len(k.queue)
}

// number returns a number that no other final object has.
func (k *Keeper) number() uint64 {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.next++
	return k.next
}

// failures are errors of many archives, of which the first are kept.
type failures struct {
	mutex sync.Mutex
	count int
	errs  []error
}

func (f *failures) add(err error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if err == nil {
		return
	}
	if f.count++; len(f.errs) < 8 {
		f.errs = append(f.errs, err)
	}
}

func (f *failures) error() error {
	if f.count == 0 {
		return nil
	}
	return fmt.Errorf("keep %d archives: %w", f.count, errors.Join(f.errs...))
}
