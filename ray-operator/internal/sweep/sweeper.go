package sweep

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/controlstore"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/turns"
)

// When what is done.
const (
	// every is how often the notes are looked at.
	every = 2 * time.Second
	// settles is how long a cluster must be gone before its keys are touched: what was
	// under way for it, such as a question to its Redis, has ended then.
	settles = 2 * time.Second
	// shortest and longest are the pauses after a first and after many failures: keys must
	// be gone within a minute of their Redis's return.
	shortest, longest = time.Second, 15 * time.Second
	// stuckPause is the pause where an administrator has to act.
	stuckPause = 10 * time.Minute
	// forsakenAfter is how long a note outlives the namespace of its cluster where its keys cannot be removed.
	forsakenAfter = 24 * time.Hour
	// calm is how long nothing is tried after the operator ran out of memory: what a note led to may have been why.
	calm = time.Minute
	// tellAfter is how long pods may take to go before the note says that they are waited for.
	tellAfter = 10 * time.Second
	// tryLimit is how long one try may take. One that is cut off was not in vain: the keys
	// that it removed are gone.
	tryLimit = 2 * time.Minute
	// writeLimit is how long the API server may take for a note.
	writeLimit = 10 * time.Second
)

// How many tries may be under way at once, with one Redis, of one namespace, and in all. The former two keep
// enough of the latter for others when a Redis hangs, and when it has many names.
const (
	atOneRedis     = 4
	ofOneNamespace = 16
	atOnce         = 64
)

// Sweeper removes the keys of clusters that are gone. It is a runnable of
// controller-runtime's manager, and because it acts, of the leader's alone.
type Sweeper struct {
	// Cache reads notes, clusters and pods from the cache; Live reads past it.
	Cache, Live client.Reader
	// Nodes reads nodes from the cache; nil where nodes may not be watched.
	Nodes client.Reader
	// Writer writes notes.
	Writer *kube.Writer
	// Sweep removes the keys under Ray's namespace that are the owner's, and tells how many
	// there were. It touches nothing and fails with the finding StoreInUse where the
	// namespace is another's.
	Sweep func(ctx context.Context, server controlstore.Server, namespace string, owner types.UID) (removed int, err error)
	// Command is the shell command that does by hand what Sweep does. A user name is given
	// where there is one.
	Command func(address, username, namespace string) string
	// Credentials are what is known where a Secret is gone.
	Credentials *Credentials
	// Turns are shared with those who ask stores: a try takes one while it talks to a Redis.
	Turns   *turns.Turns
	Metrics *telemetry.Metrics
	// Events are about notes.
	Events telemetry.Recorder
	Clock  clock.WithTicker
	// Namespace is where the notes are: the operator's own. Pod is its pod there, empty outside of Kubernetes.
	Namespace, Pod string

	// The rest is of the goroutine that runs Start.
	items   map[string]*item
	results chan result
	busy    map[who]int
	total   int
}

// who keeps tries busy: the Redis at an address, or the clusters of a namespace.
type who struct{ address, namespace string }

// item is what is known of a note, by the name of its ConfigMap.
type item struct {
	kept *corev1.ConfigMap
	note Note
	// damage is why the note cannot be read, nil if it can.
	damage error
	// goneSince is since when the cluster is not in the cache, zero while it is.
	goneSince time.Time
	// clear tells that the API server knows neither the cluster nor a pod of it any more.
	clear    bool
	running  bool
	next     time.Time
	failures int
	state    string
}

// result is what came of a try with a note.
type result struct {
	name    string
	note    Note
	outcome outcome
}

// NeedLeaderElection tells that only the leader sweeps.
func (s *Sweeper) NeedLeaderElection() bool { return true }

// Start sweeps until its context ends, and returns when nothing is under way any more.
func (s *Sweeper) Start(ctx context.Context) error {
	s.items, s.busy, s.total, s.results = map[string]*item{}, map[who]int{}, 0, make(chan result)
	var tries sync.WaitGroup
	defer tries.Wait()
	if s.ranOutOfMemory(ctx) {
		log.FromContext(ctx).Info("The operator ran out of memory; removal of keys of deleted clusters is paused", "pause", calm)
		timer := s.Clock.NewTimer(calm)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
	}
	ticker := s.Clock.NewTicker(every)
	defer ticker.Stop()
	s.look(ctx)
	for {
		s.launch(ctx, &tries)
		s.count()
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
			s.look(ctx)
		case r := <-s.results:
			s.settle(r)
		}
	}
}

// ranOutOfMemory reports whether the operator's own container was killed for its memory before it started this time.
func (s *Sweeper) ranOutOfMemory(ctx context.Context) bool {
	if s.Pod == "" {
		return false
	}
	var own corev1.Pod
	if err := s.Live.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Pod}, &own); err != nil {
		log.FromContext(ctx).Info("Cannot determine why the operator restarted", "error", err.Error())
		return false
	}
	return slices.ContainsFunc(own.Status.ContainerStatuses, func(container corev1.ContainerStatus) bool {
		ended := container.LastTerminationState.Terminated
		return ended != nil && ended.Reason == "OOMKilled"
	})
}

// look brings the items up to date with the notes and clusters in the cache.
func (s *Sweeper) look(ctx context.Context) {
	var list corev1.ConfigMapList
	err := s.Cache.List(ctx, &list, client.InNamespace(s.Namespace), client.HasLabels{v1beta1.LabelNote}, client.UnsafeDisableDeepCopy)
	if err != nil {
		if ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Cannot list the notes about keys in Redis")
		}
		return
	}
	seen := map[string]bool{}
	for i := range list.Items {
		if kept := &list.Items[i]; kept.DeletionTimestamp == nil {
			seen[kept.Name] = true
			s.update(ctx, kept)
		}
	}
	for name, it := range s.items {
		if !seen[name] && !it.running {
			delete(s.items, name)
		}
	}
}

// update brings one item up to date.
func (s *Sweeper) update(ctx context.Context, kept *corev1.ConfigMap) {
	note, damage := ParseNote(kept)
	it := s.items[kept.Name]
	if it == nil || it.note != note || (it.damage == nil) != (damage == nil) {
		fresh := &item{state: kept.Data[keyState]}
		if it != nil {
			fresh.running = it.running // its result is yet to come
		}
		it = fresh
		s.items[kept.Name] = it
	}
	it.kept, it.note, it.damage = kept, note, damage
	if damage != nil {
		return
	}
	there, err := s.cached(ctx, note)
	switch {
	case err != nil: // not known, as of a namespace that is not watched
	case there:
		*it = item{kept: kept, note: note, running: it.running}
	case it.goneSince.IsZero():
		it.goneSince = s.Clock.Now()
		it.next = it.goneSince.Add(settles)
	}
}

// cached reports whether the cluster of a note is in the cache.
func (s *Sweeper) cached(ctx context.Context, note Note) (bool, error) {
	var cluster v1beta1.ComputeCluster
	err := s.Cache.Get(ctx, note.Cluster, &cluster, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for ComputeCluster %s: %w", note.Cluster, err)
	}
	return cluster.UID == note.UID, nil
}

// due reports whether there is something to do for an item.
func (it *item) due(now time.Time) bool {
	return !it.running && (it.damage != nil || !it.goneSince.IsZero()) && !it.next.After(now)
}

// launch starts the tries that are due, those that have waited longest first.
func (s *Sweeper) launch(ctx context.Context, tries *sync.WaitGroup) {
	now := s.Clock.Now()
	var due []*item
	for _, it := range s.items {
		if it.due(now) {
			due = append(due, it)
		}
	}
	slices.SortFunc(due, func(a, b *item) int { return a.next.Compare(b.next) })
	for _, it := range due {
		redis, namespace := it.note.keepBusy()
		if s.total >= atOnce || s.busy[redis] >= atOneRedis || s.busy[namespace] >= ofOneNamespace {
			continue
		}
		s.total++
		s.busy[redis]++
		s.busy[namespace]++
		it.running = true
		try := try{Sweeper: s, kept: it.kept.DeepCopy(), note: it.note, damage: it.damage, goneSince: it.goneSince, clear: it.clear}
		tries.Go(func() {
			outcome := try.run(ctx)
			select {
			case s.results <- result{name: try.kept.Name, note: try.note, outcome: outcome}:
			case <-ctx.Done():
			}
		})
	}
}

// keepBusy returns who is kept busy by a try with a note.
func (n Note) keepBusy() (redis, namespace who) {
	return who{address: n.Address}, who{namespace: n.Cluster.Namespace}
}

// settle takes the result of a try.
func (s *Sweeper) settle(r result) {
	s.total--
	redis, namespace := r.note.keepBusy()
	for _, one := range []who{redis, namespace} {
		if s.busy[one]--; s.busy[one] == 0 {
			delete(s.busy, one)
		}
	}
	it := s.items[r.name]
	if it == nil || !it.running {
		return
	}
	it.running = false
	now := s.Clock.Now()
	switch r.outcome.state {
	case stateDone:
		delete(s.items, r.name)
		return
	case StateWaiting:
		it.failures, it.next = 0, now.Add(every)
	case StateStuck:
		it.failures, it.next = 0, now.Add(stuckPause)
	default:
		it.failures++
		it.next = now.Add(min(longest, shortest<<min(it.failures-1, 10)))
	}
	it.clear = it.clear || r.outcome.clear
	if r.outcome.state != stateUnknown {
		it.state = r.outcome.state
	}
}

// count tells the metrics how many clusters have left keys, by what is done about them.
func (s *Sweeper) count() {
	states := map[string]int{StateWaiting: 0, StateFailing: 0, StateStuck: 0}
	for _, it := range s.items {
		if it.damage == nil && it.goneSince.IsZero() {
			continue
		}
		state := it.state
		if _, known := states[state]; !known {
			state = StateWaiting
		}
		states[state]++
	}
	for state, n := range states {
		s.Metrics.Unswept(state, n)
	}
}
