package nodes

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

var cluster = types.NamespacedName{Namespace: "team", Name: "demo"}

// scripted is a head that answers as a test says, and counts.
type scripted struct {
	mu       sync.Mutex
	state    headclient.State
	activity headclient.Activity
	err      error
	hung     bool
	refuse   string
	drainErr error
	token    headclient.Token // that it was dialed with last
	stays    bool             // a node that was told to leave is not seen to

	asked, drained, resized, dialed, closed int
}

func (s *scripted) State(ctx context.Context) (headclient.State, error) {
	s.mu.Lock()
	s.asked++
	hung := s.hung
	s.mu.Unlock()
	if hung {
		<-ctx.Done()
		return headclient.State{}, &headclient.Error{Kind: headclient.Timeout, Act: "ask", Err: ctx.Err()}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token != nil {
		if _, err := s.token(ctx); err != nil {
			return headclient.State{}, err
		}
	}
	state := s.state
	state.Nodes = append([]headclient.Node(nil), s.state.Nodes...)
	return state, s.err
}

func (s *scripted) Activity(context.Context) (headclient.Activity, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.activity, s.err
}

func (s *scripted) Drain(_ context.Context, wish headclient.Drain) (headclient.Verdict, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drained++
	if s.drainErr != nil || s.refuse != "" {
		return headclient.Verdict{Why: s.refuse}, s.drainErr
	}
	for i, node := range s.state.Nodes {
		if node.ID == wish.Node && !s.stays {
			s.state.Nodes[i].State = headclient.Draining
		}
	}
	return headclient.Verdict{Accepted: true}, nil
}

func (s *scripted) Resize(_ context.Context, id headclient.NodeID, resources map[string]float64) (map[string]float64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resized++
	if s.refuse != "" {
		return nil, &headclient.Error{Kind: headclient.Refused, Act: "resize", Err: context.Canceled}
	}
	for i, node := range s.state.Nodes {
		if node.ID == id {
			s.state.Nodes[i].Total = resources
		}
	}
	return resources, nil
}

func (s *scripted) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed++
	return nil
}

// set changes the head.
func (s *scripted) set(change func(*scripted)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *scripted) node(i int, state headclient.NodeState) {
	s.set(func(s *scripted) { s.state.Nodes[i].State = state })
}

// count reads a number of the head.
func (s *scripted) count(of func(*scripted) int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return of(s)
}

func asked(s *scripted) int   { return s.asked }
func drained(s *scripted) int { return s.drained }
func resized(s *scripted) int { return s.resized }

func worker(n byte, state headclient.NodeState) headclient.Node {
	return headclient.Node{ID: headclient.NodeID{n}, Instance: "pod-" + string('0'+rune(n)), State: state}
}

// bench is a running Watch over scripted heads by their addresses.
type bench struct {
	*Watch
	t     *testing.T
	heads map[string]*scripted
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	end   func()
}

// run runs a test in a bubble of time with a started Watch, and holds it to leave no
// goroutine and no connection.
func run(t *testing.T, test func(t *testing.T, b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, heads: map[string]*scripted{}}
		b.Watch = New(func(address string, token headclient.Token, _ headclient.Trust) (Head, error) {
			head := b.heads[address]
			if head == nil {
				return nil, &headclient.Error{Kind: headclient.Unavailable, Act: "dial", Err: context.Canceled}
			}
			head.set(func(s *scripted) { s.dialed++; s.token = token })
			return head, nil
		}, clock.RealClock{})
		b.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		if err := b.Changes().Start(t.Context(), b.queue); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if err := b.Start(ctx); err != nil {
				t.Error(err)
			}
		}()
		b.end = sync.OnceFunc(func() { stop(); <-ended })
		synctest.Wait()
		test(t, b)
		b.end()
		b.queue.ShutDown()
		for address, head := range b.heads {
			if head.dialed != head.closed {
				t.Errorf("%s: %d connections, %d closed", address, head.dialed, head.closed)
			}
		}
	})
}

// head adds a head with nodes at an address.
func (b *bench) head(address string, nodes ...headclient.Node) *scripted {
	b.heads[address] = &scripted{state: headclient.State{Nodes: nodes}}
	return b.heads[address]
}

// pass lets time go by.
func (b *bench) pass(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

// wakes counts the wakes since it was last asked.
func (b *bench) wakes() int {
	n := b.queue.Len()
	for range n {
		request, _ := b.queue.Get()
		b.queue.Done(request)
		if request.NamespacedName != cluster {
			b.t.Errorf("%s was woken", request)
		}
	}
	return n
}

// last is what is known of the cluster's head.
func (b *bench) last() Answer {
	b.t.Helper()
	answer, ok := b.Last(cluster, "head")
	if !ok {
		b.t.Fatal("nothing is known of the head")
	}
	return answer
}

// target wants a head to be asked every 10 s.
func target(change func(*Target)) Target {
	wanted := Target{Head: "head", Address: "a:1", Every: 10 * time.Second}
	if change != nil {
		change(&wanted)
	}
	return wanted
}
