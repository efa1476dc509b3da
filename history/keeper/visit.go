package keeper

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/heliostat-dev/heliostat/history/archive"
	"github.com/heliostat-dev/heliostat/history/index"
	"github.com/heliostat-dev/heliostat/history/pack"
	"github.com/heliostat-dev/heliostat/history/retain"
)

// visiting is one look at an archive.
type visiting struct {
	key   archive.Key
	facts map[archive.Key]Archive
	now   int64
	// budget is how many bytes may be moved. Where it is 0, the archive is put into the queue instead.
	budget  int64
	isHeavy bool
}

// errChanged is about an archive that another keeper changed meanwhile. The next pass looks at it again.
var errChanged = errors.New("another keeper changed the archive")

// visit does what is due of one archive, and returns how many bytes it moved.
func (k *Keeper) visit(ctx context.Context, v visiting) (moved int64, err error) {
	if v.isHeavy {
		k.heavy.Lock()
		defer k.heavy.Unlock()
	}
	lock := &k.busy[v.key.Cluster[15]%byte(len(k.busy))]
	lock.Lock()
	defer lock.Unlock()
	decoder := <-k.decoders
	defer func() { k.decoders <- decoder }()
	j := &job{Keeper: k, visiting: v, decoder: decoder}
	j.fact, j.isKnown = v.facts[v.key]
	if !j.isKnown {
		j.fact = Archive{Key: v.key}
	}
	if j.fact.KeepFor <= 0 {
		j.fact.KeepFor = k.settings.MaxKeepFor
	}
	err = j.run(ctx)
	k.mutex.Lock()
	defer k.mutex.Unlock()
	switch {
	case errors.Is(err, errChanged):
		delete(k.known, v.key)
		return j.moved, nil
	case err != nil || j.isGone:
		delete(k.known, v.key)
	default:
		k.known[v.key] = j.summary()
	}
	return j.moved, err
}

// job is the work on one archive.
type job struct {
	*Keeper
	visiting
	decoder *pack.Decoder
	fact    Archive
	isKnown bool
	stored  *archive.Stored
	plan    plan
	moved   int64
	// isGone: nothing is left to be known of it. isChanged: the next pass must look again.
	isGone, isChanged bool
}

// run brings the archive to what it should be.
func (j *job) run(ctx context.Context) error {
	var err error
	if j.stored, err = archive.OpenStored(ctx, j.store, j.decoder, j.key); err != nil {
		return err
	}
	if isDone, err := j.end(ctx); isDone || err != nil {
		j.isGone = true
		return err
	}
	j.plan = j.decide()
	switch {
	case j.plan.isOver:
		j.isGone = true
		return j.expire(ctx)
	case j.plan.isNothing:
		j.isGone = true
		return j.remove(ctx, slices.Collect(maps.Keys(j.stored.Objects)))
	}
	if err := j.sweep(ctx); err != nil {
		return err
	}
	if !j.plan.isChanged && !j.plan.hasMoves {
		return nil
	}
	if j.budget == 0 && j.plan.hasMoves {
		j.push(j.key)
		if !j.plan.isCut {
			return nil
		}
	}
	j.isChanged = true
	return j.rewrite(ctx)
}

// end goes on with an archive that has ended: what was written before its marker goes. It reports whether that is all of it.
func (j *job) end(ctx context.Context) (isDone bool, err error) {
	end := j.stored.End
	if len(j.stored.Objects) == 0 {
		return true, nil
	}
	if end == nil {
		return false, nil
	}
	var hidden []string
	for name := range j.stored.Objects {
		if j.stored.IsHidden(name) {
			hidden = append(hidden, name)
		}
	}
	if len(hidden) > 0 {
		if err := j.records.Mark(j.key.Cluster, end.State, end.At, end.By); err != nil {
			return true, fmt.Errorf("mark cluster %s as %s: %w", j.key.Cluster, end.State, err)
		}
		if err := j.remove(ctx, hidden); err != nil {
			return true, err
		}
	}
	if len(j.stored.Objects) > 1 {
		return false, nil
	}
	if j.stored.Objects[archive.EndName].At+retain.MarkFor <= j.now {
		return true, j.remove(ctx, []string{archive.EndName})
	}
	return true, nil
}

// expire ends an archive of which nothing has to be kept. The marker comes first: with it nothing is read of what is still there.
func (j *job) expire(ctx context.Context) error {
	end := archive.End{State: index.Expired, At: j.now}
	if j.stored.End != nil {
		end = *j.stored.End
	}
	if err := archive.WriteEnd(ctx, j.store, j.key, end); err != nil {
		return err
	}
	if err := j.records.Mark(j.key.Cluster, end.State, end.At, end.By); err != nil {
		return fmt.Errorf("mark cluster %s as expired: %w", j.key.Cluster, err)
	}
	var all []string
	for name := range j.stored.Objects {
		if name != archive.EndName {
			all = append(all, name)
		}
	}
	return j.remove(ctx, all)
}

// order is that in which objects go: what names others first.
func order(a, b string) int {
	rank := func(name string) int { return strings.Index("mpf", name[:1]) }
	if rank(a) != rank(b) {
		return rank(a) - rank(b)
	}
	return strings.Compare(a, b)
}

// remove deletes objects.
func (j *job) remove(ctx context.Context, names []string) error {
	slices.SortFunc(names, order)
	for _, name := range names {
		if err := j.store.Delete(ctx, j.key.Prefix()+name); err != nil {
			return fmt.Errorf("remove %s of cluster %s: %w", name, j.key.Cluster, err)
		}
		delete(j.stored.Objects, name)
		j.isChanged = true
	}
	return nil
}

// sweep removes what the newest manifest replaced, once its grace is over, and orphans.
func (j *job) sweep(ctx context.Context) error {
	s := j.stored
	if s.Manifest == "" || !s.IsWhole {
		return nil // without all that is named, nothing is superfluous
	}
	var gone []string
	var unnamed []retain.Stored
	for name, object := range s.Objects {
		switch {
		case j.isReplaced(name):
			if j.settledAt() <= j.now {
				gone = append(gone, name)
			}
		case strings.HasPrefix(name, "f/") || strings.HasPrefix(name, "m/"):
			unnamed = append(unnamed, retain.Stored{Key: name, At: object.At})
		}
	}
	gone = append(gone, retain.Orphans(unnamed, func(name string) bool { return isNamed(s, name) }, j.now)...)
	return j.remove(ctx, gone)
}

// isNamed reports whether the newest manifest names an object, or is it.
func isNamed(s *archive.Stored, name string) bool { return name == s.Manifest || s.Named[name] }

// isReplaced reports whether the newest manifest stands in place of an object.
func (j *job) isReplaced(name string) bool {
	manifest := j.stored.Manifest
	if manifest == "" || name == manifest || strings.HasPrefix(name, manifest+"-") {
		return false
	}
	if strings.HasPrefix(name, "m/") {
		return name < manifest
	}
	return j.stored.Named[name] && j.plan.live[name] == 0
}

// settledAt is when no reader and no keeper uses what came before the newest manifest any more.
func (j *job) settledAt() int64 {
	made, _ := archive.ManifestTime(j.stored.Manifest)
	return max(made, j.stored.Objects[j.stored.Manifest].At) + Grace
}

// summary returns what the next pass must know.
func (j *job) summary() *summary {
	s := &summary{due: j.plan.due, isSeen: true}
	s.fact, _ = j.facts[j.key]
	var listed archive.Listed
	for _, name := range slices.Sorted(maps.Keys(j.stored.Objects)) {
		object := j.stored.Objects[name]
		listed.Add(name, object.Size, object.At)
		isOrphan := strings.HasPrefix(name, "f/") || strings.HasPrefix(name, "m/")
		switch {
		case j.isReplaced(name):
			s.replaced += object.Size
			s.due = min(s.due, j.settledAt())
		case isOrphan && j.stored.Manifest != "" && !isNamed(j.stored, name):
			s.due = min(s.due, object.At+retain.OrphanAge)
		}
	}
	s.print, s.packs, s.held = listed.Print, listed.Packs, listed.Bytes-s.replaced
	if j.plan.isStuck {
		s.stuck = s.held
	}
	if j.isChanged {
		s.due = j.now
	}
	return s
}

// DeleteHistory deletes the archive of a cluster that ended, for a user. What it does not come to, the passes do.
func (k *Keeper) DeleteHistory(ctx context.Context, key archive.Key, user string, now int64) error {
	lock := &k.busy[key.Cluster[15]%byte(len(k.busy))]
	lock.Lock()
	defer lock.Unlock()
	decoder := <-k.decoders
	defer func() { k.decoders <- decoder }()
	stored, err := archive.OpenStored(ctx, k.store, decoder, key)
	if err != nil {
		return err
	}
	end := archive.End{State: index.Deleted, At: now, By: strings.ToValidUTF8(user[:min(len(user), archive.MaxBy)], "")}
	if stored.End != nil && stored.End.State == index.Deleted {
		end = *stored.End
	} else {
		isEnded := func(one Archive) bool { return one.Key == key && one.Ended > 0 }
		if !slices.ContainsFunc(k.records.Archives(), isEnded) {
			return fmt.Errorf("delete the history of cluster %s: %w", key.Cluster, ErrLives)
		}
		if err := archive.WriteEnd(ctx, k.store, key, end); err != nil {
			return err
		}
	}
	if err := k.records.Mark(key.Cluster, end.State, end.At, end.By); err != nil {
		return fmt.Errorf("mark cluster %s as deleted: %w", key.Cluster, err)
	}
	j := &job{Keeper: k, visiting: visiting{key: key, now: now}, stored: stored}
	delete(stored.Objects, archive.EndName)
	return j.remove(ctx, slices.Collect(maps.Keys(stored.Objects)))
}
