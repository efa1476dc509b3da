// Package archives follows what archivers say of the archives of living clusters, so that no reconcile waits for them.
//
// In: the addresses of the replicas, and what a call to one needs. Out: per cluster the last state, of all replicas together, and a wake
// of its reconcile when that means something new.
//
// It must never ask for more than states, keep one of a replica that begins again, or report that something is missing before each
// replica has said all that it has.
package archives

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	historyv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

// Late is how long bytes and streams may be missing before that is told.
const Late = time.Minute

const (
	// firstPause and longestPause are those between two calls to a replica.
	firstPause, longestPause = time.Second, 15 * time.Second
	// maxMessage is how long a state may be: it has a UID for each pod of a cluster.
	maxMessage = 4 << 20
	// maxClusters is how many states of a replica are kept.
	maxClusters = 50_000
	// leastSweep is how many of them are kept in any case.
	leastSweep = 1000
)

// Source has what archivers said last. A nil one is that none is installed.
type Source interface {
	// State is that of a cluster, by its UID.
	State(cluster types.UID) State
}

// State is what archivers know of a cluster's archive.
type State struct {
	// Away is since when no replica answers, and All since when all of them do. One of them may be zero, or both.
	Away, All time.Time
	// Cause says why the oldest byte that no archive has is Late: Store, Spool or Rate. It is empty where none is.
	Cause string
	// Displaced are the bytes that limits displaced.
	Displaced int64
	// Streams are, by the UID of their pods, until when collectors had a stream, and zero for those that have one.
	Streams map[types.UID]time.Time
}

// Set follows archivers while it is started. It is a runnable of controller-runtime's manager, of the leader's alone.
type Set struct {
	clock    clock.WithTicker
	config   func() (*tls.Config, error)
	mu       sync.Mutex
	began    time.Time
	replicas []*replica
	waiting  []workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// replica is what one archiver said.
type replica struct {
	address string
	// answers and complete are since when it does, and is, zero while it is not. away is since when it does not answer.
	answers, complete, away time.Time
	states                  map[types.UID]*state
	// sweep is at how many states those go that mean nothing, as of clusters that are gone.
	sweep int
}

// state is that of a cluster at a replica.
type state struct {
	name    types.NamespacedName
	said    *historyv1.WatchStatesResponse
	streams map[types.UID]time.Time
}

// New returns a Set, which follows nothing until it is started.
func New(addresses []string, config func() (*tls.Config, error), clock clock.WithTicker) *Set {
	s := &Set{clock: clock, config: config}
	for _, address := range addresses {
		s.replicas = append(s.replicas, &replica{address: address, states: map[types.UID]*state{}})
	}
	return s
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (s *Set) NeedLeaderElection() bool { return true }

// Start follows each replica until the context ends.
func (s *Set) Start(ctx context.Context) error {
	s.mu.Lock()
	s.began = s.clock.Now()
	for _, r := range s.replicas {
		r.away = s.began
	}
	s.mu.Unlock()
	var running sync.WaitGroup
	for _, r := range s.replicas {
		running.Go(func() { s.follow(ctx, r) })
	}
	running.Wait()
	return nil
}

// Changes wakes the reconciles of clusters: a source for a builder's WatchesRawSource.
func (s *Set) Changes() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.waiting = append(s.waiting, queue)
		return nil
	})
}

// State implements Source.
func (s *Set) State(cluster types.UID) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := State{Streams: map[types.UID]time.Time{}}
	complete, answers := 0, 0
	for _, r := range s.replicas {
		if !r.answers.IsZero() {
			answers++
		} else if all.Away.Before(r.away) {
			all.Away = r.away
		}
		if !r.complete.IsZero() {
			complete++
			all.All = latest(all.All, r.complete)
		}
		if known := r.states[cluster]; known != nil {
			all.add(known)
		}
	}
	if answers > 0 {
		all.Away = time.Time{}
	}
	if complete < len(s.replicas) {
		all.All = time.Time{}
	}
	return all
}

// add adds what a replica knows. Bytes that one of them still waits for are behind, and a stream to any of them will do.
func (s *State) add(of *state) {
	if of.said.GetBehind() >= Late.Milliseconds() {
		s.Cause = cmp.Or(s.Cause, of.said.GetCause(), "Rate")
	}
	s.Displaced = max(s.Displaced, of.said.GetDisplaced())
	for pod, until := range of.streams {
		before, isKnown := s.Streams[pod]
		switch {
		case !isKnown:
			s.Streams[pod] = until
		case before.IsZero() || until.IsZero():
			s.Streams[pod] = time.Time{}
		default:
			s.Streams[pod] = latest(before, until)
		}
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// follow keeps a call to a replica until the context ends.
func (s *Set) follow(ctx context.Context, r *replica) {
	pause := firstPause
	for {
		began, err := s.call(ctx, r)
		if ctx.Err() != nil {
			return
		}
		log.FromContext(ctx).V(1).Info("An archiver does not answer", "archiver", r.address, "because", fmt.Sprint(err))
		s.lose(r)
		if pause = min(2*pause, longestPause); began {
			pause = firstPause
		}
		timer := s.clock.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
	}
}

// call takes what a replica says until it breaks off. It reports whether the replica said anything.
func (s *Set) call(ctx context.Context, r *replica) (began bool, err error) {
	config, err := s.config()
	if err != nil {
		return false, err
	}
	config.MinVersion = tls.VersionTLS13
	connection, err := grpc.NewClient(r.address, grpc.WithTransportCredentials(credentials.NewTLS(config)),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)), grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 10 * time.Second}))
	if err != nil {
		return false, fmt.Errorf("dial the archiver %s: %w", r.address, err)
	}
	defer func() { _ = connection.Close() }() // nothing is sent on it any more
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := historyv1.NewReadClient(connection).WatchStates(ctx, &historyv1.WatchStatesRequest{})
	if err != nil {
		return false, fmt.Errorf("watch the states of the archiver %s: %w", r.address, err)
	}
	former, first := s.states(r), map[types.UID]bool{}
	for {
		said, err := stream.Recv()
		if err != nil {
			return began, fmt.Errorf("watch the states of the archiver %s: %w", r.address, err)
		}
		began = true
		first[types.UID(said.GetClusterUid())] = true
		s.take(r, said)
		if said.GetComplete() { // what it had before and has no more is gone
			maps.DeleteFunc(former, func(uid types.UID, _ *state) bool { return first[uid] })
			s.complete(r, former)
			former, first = nil, map[types.UID]bool{}
		}
		if former == nil {
			clear(first)
		}
	}
}

// states returns those that a replica has said.
func (s *Set) states(r *replica) map[types.UID]*state {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(r.states)
}

// take keeps what a replica said of a cluster, and wakes that where it is news.
func (s *Set) take(r *replica, said *historyv1.WatchStatesResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	if r.answers.IsZero() {
		r.answers, r.away = now, time.Time{}
	}
	uid := types.UID(said.GetClusterUid())
	if uid == "" {
		return
	}
	known := r.states[uid]
	if known == nil {
		if r.tidy(); len(r.states) >= maxClusters {
			return
		}
		known = &state{said: &historyv1.WatchStatesResponse{}}
		r.states[uid] = known
	}
	streams := make(map[types.UID]time.Time, len(said.GetStreams()))
	for pod := range known.streams { // known without one: it has just lost it, or is still without
		streams[pod] = known.streams[pod]
		if known.streams[pod].IsZero() {
			streams[pod] = now
		} else if now.Sub(known.streams[pod]) > 2*Late {
			delete(streams, pod) // it is Late in any case
		}
	}
	for _, pod := range said.GetStreams() {
		streams[types.UID(pod)] = time.Time{}
	}
	isNews := isLate(known.said) != isLate(said) || known.said.GetCause() != said.GetCause() || known.said.GetDisplaced() != said.GetDisplaced() ||
		!slices.Equal(running(known.streams), running(streams))
	known.name, known.said, known.streams = types.NamespacedName{Namespace: said.GetNamespace(), Name: said.GetCluster()}, said, streams
	if isNews {
		s.wake(known.name)
	}
}

// tidy removes states that mean nothing, where there are twice as many as after it did so last.
func (r *replica) tidy() {
	if len(r.states) < max(r.sweep, leastSweep) {
		return
	}
	maps.DeleteFunc(r.states, func(_ types.UID, s *state) bool {
		return !isLate(s.said) && s.said.GetDisplaced() == 0 && len(running(s.streams)) == 0
	})
	r.sweep = 2 * len(r.states)
}

func isLate(said *historyv1.WatchStatesResponse) bool { return said.GetBehind() >= Late.Milliseconds() }

// running returns the pods that have a stream.
func running(streams map[types.UID]time.Time) []types.UID {
	var pods []types.UID
	for pod, until := range streams {
		if until.IsZero() {
			pods = append(pods, pod)
		}
	}
	slices.Sort(pods)
	return pods
}

// complete notes that a replica has said all that it has, and which clusters it had before and has no more.
func (s *Set) complete(r *replica, gone map[types.UID]*state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.complete = s.clock.Now()
	for uid := range gone {
		s.wake(gone[uid].name)
		delete(r.states, uid)
	}
	for _, known := range r.states { // who was not told of for want of this replica
		s.wake(known.name)
	}
}

// lose notes that a replica has broken off. Who had a stream to it may have one to another replica soon.
func (s *Set) lose(r *replica) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.answers.IsZero() {
		return
	}
	now := s.clock.Now()
	r.answers, r.complete, r.away = time.Time{}, time.Time{}, now
	for _, known := range r.states {
		for pod, until := range known.streams {
			if until.IsZero() {
				known.streams[pod] = now
			}
		}
		s.wake(known.name)
	}
}

// wake wakes the reconcile of a cluster.
func (s *Set) wake(cluster types.NamespacedName) {
	for _, queue := range s.waiting {
		queue.Add(reconcile.Request{NamespacedName: cluster})
	}
}
