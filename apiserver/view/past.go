package view

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// How much of the past is kept: steps of each source. With watched namespaces they share, down to the least.
const (
	keptSteps  = 4096
	leastSteps = 256
	// keptBytes is for how many bytes of a former line there is room, on average: most have a tenth. Where labels or messages
	// are larger, fewer steps are kept.
	keptBytes = 4 << 10
)

// awaitWithin is how long a position of another replica may be ahead of this one.
const awaitWithin = 2 * time.Second

// Errors of a position.
var (
	// ErrGone is that the past which is kept does not reach back to it.
	ErrGone = errors.New("this server's memory does not reach back so far")
	// ErrAhead is that the view has not come so far.
	ErrAhead = errors.New("this server has not seen that much yet")
	// ErrForeign is that it is of a server that reads other namespaces.
	ErrForeign = errors.New("it is of a server that reads other namespaces")
)

// Position is up to which resourceVersion each source was read. Sources of one kind are read in the order of their
// resourceVersions, and different kinds at different times. So a single number would not say what is known.
type Position []uint64

// Covers reports whether a position is the same as another one or after it.
func (p Position) Covers(other Position) bool {
	for i := range p {
		if p[i] < other[i] {
			return false
		}
	}
	return true
}

// step is a change that can be undone: of an object, or of the GPUs that the pods of a cluster take.
type step struct {
	rv uint64
	// key and before are of an object; before is nil where there was none.
	key    Key
	before *version
	// pods is the UID of a cluster, and fewer what to add to the GPUs of its pods.
	pods  types.UID
	fewer int64
}

// trail is the recent past of one source, the oldest step first.
type trail struct {
	// floor is the resourceVersion that the trail reaches back to.
	floor uint64
	steps []step
	bytes int
}

// add appends a step, and forgets old ones.
func (t *trail) add(one step, keep int) {
	if len(t.steps) >= 2*keep || t.bytes >= keep*keptBytes {
		first := len(t.steps) - min(keep, len(t.steps)/2)
		t.floor = t.steps[first-1].rv
		for _, old := range t.steps[:first] {
			t.bytes -= old.size()
		}
		t.steps = slices.Clone(t.steps[first:])
	}
	t.steps = append(t.steps, one)
	t.bytes += one.size()
}

// size returns about how many bytes a step holds of what users and heads have written.
func (s *step) size() int {
	if s.before == nil {
		return 0
	}
	line := s.before.base
	size := len(line.Message) + len(line.Remedy) + len(line.Owner)
	for key, value := range line.Labels {
		size += len(key) + len(value)
	}
	return size
}

// begin forgets everything: what was before a resourceVersion is not known.
func (t *trail) begin(rv uint64) { *t = trail{floor: rv} }

// undone is what was different at a former position.
type undone struct {
	versions map[Key]*version
	gpus     map[types.UID]int64
	// owned are clusters that were others then, by the UID of what they were made for.
	owned map[types.UID][]*version
	// owners are the UIDs of what clusters were made for at any time since.
	owners map[types.UID]bool
}

// undo goes back to a position.
func (v *View) undo(to Position) (*undone, error) {
	if len(to) != len(v.at) {
		return nil, ErrForeign
	}
	if !v.at.Covers(to) {
		return nil, ErrAhead
	}
	u := &undone{
		versions: map[Key]*version{}, gpus: map[types.UID]int64{},
		owned: map[types.UID][]*version{}, owners: map[types.UID]bool{},
	}
	for s := range to {
		if to[s] < v.past[s].floor {
			return nil, ErrGone
		}
		for _, one := range slices.Backward(v.past[s].steps) {
			if one.rv <= to[s] {
				break
			}
			u.add(one)
		}
	}
	for key, was := range u.versions {
		if key.Kind == Clusters && was != nil && was.owner != "" {
			u.owned[was.owner] = append(u.owned[was.owner], was)
		}
	}
	return u, nil
}

// add undoes a step.
func (u *undone) add(one step) {
	if one.pods != "" {
		u.gpus[one.pods] += one.fewer
		return
	}
	u.versions[one.key] = one.before
	if one.before != nil {
		u.owners[one.before.owner] = true
	}
}

// lineThen returns the line that an object had, or nil.
func (c *contents) lineThen(u *undone, key Key) *Line {
	was, differs := u.versions[key]
	if !differs {
		one := c.objects[key]
		if one == nil {
			return nil
		}
		was = one.version
	}
	if was == nil {
		return nil
	}
	line := was.base.with(c.gpusThen(u, key.Kind, was))
	if one := c.objects[key]; one != nil && line.Same(one.line) {
		return one.line
	}
	return line
}

func (c *contents) gpusThen(u *undone, kind string, of *version) int64 {
	if kind == Clusters {
		return c.gpusOf(of.uid) + u.gpus[of.uid]
	}
	sum := int64(0)
	for key := range c.owned[of.uid] {
		if _, differs := u.versions[key]; !differs {
			sum += c.gpusThen(u, Clusters, c.objects[key].version)
		}
	}
	for _, cluster := range u.owned[of.uid] {
		sum += c.gpusThen(u, Clusters, cluster)
	}
	return sum
}

// touched returns the objects whose lines may have been others at any time since.
func (c *contents) touched(u *undone) map[Key]bool {
	keys := map[Key]bool{}
	owner := func(uid types.UID) {
		if key, is := c.byUID[uid]; is {
			keys[key] = true
		}
	}
	for uid := range u.owners {
		owner(uid)
	}
	for key := range u.versions {
		keys[key] = true
		if one := c.objects[key]; one != nil {
			owner(one.owner)
		}
	}
	for uid := range u.gpus {
		if key, is := c.byUID[uid]; is {
			keys[key] = true
			owner(c.objects[key].owner)
		}
	}
	return keys
}

// Since returns the lines that were touched since a position, as they were there: nil for those that did not exist.
// Some may be now what they were then, but were not in between. It fails with ErrGone, ErrAhead or ErrForeign.
//
// Sources are undone one by one, so the position may be one that this view was never at: another replica reads the same
// sources, and may be further with one and behind with another.
func (v *View) Since(at Position) (map[Key]*Line, error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	u, err := v.undo(at)
	if err != nil {
		return nil, err
	}
	lines := map[Key]*Line{}
	for key := range v.contents.touched(u) {
		lines[key] = v.contents.lineThen(u, key)
	}
	return lines, nil
}

// await waits for a position of another replica, for a short while.
func (v *View) await(ctx context.Context, at Position) {
	if len(at) != len(v.sources) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, awaitWithin)
	defer cancel()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.waiting++
	defer func() { v.waiting-- }()
	for !v.at.Covers(at) {
		moved := v.moved
		v.mu.Unlock()
		var done bool
		select {
		case <-moved:
		case <-ctx.Done():
			done = true
		}
		v.mu.Lock()
		if done {
			return
		}
	}
}
