package nodes

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/polltest"
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

// Problems implements polltest.Head.
func (s *scripted) Problems() []string {
	if s.dialed == s.closed {
		return nil
	}
	return []string{fmt.Sprintf("%d connections, %d closed", s.dialed, s.closed)}
}

// bench is a running Watch over scripted heads by their addresses.
type bench struct {
	*Watch
	*polltest.Bench
	t     *testing.T
	heads polltest.Heads[*scripted]
}

// run runs a test in a bubble of time with a started Watch, and holds it to leave no
// goroutine and no connection.
func run(t *testing.T, test func(t *testing.T, b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t}
		b.Watch = New(func(address string, token headclient.Token, _ headclient.Trust) (Head, error) {
			head, err := b.heads.At(address)
			if err != nil {
				return nil, err
			}
			head.set(func(s *scripted) { s.dialed++; s.token = token })
			return head, nil
		}, clock.RealClock{})
		b.Bench = polltest.Start(t, b.Watch)
		test(t, b)
		b.End()
		for _, problem := range b.heads.Problems() {
			t.Error(problem)
		}
	})
}

// head adds a head with nodes at an address.
func (b *bench) head(address string, nodes ...headclient.Node) *scripted {
	return b.heads.Put(address, &scripted{state: headclient.State{Nodes: nodes}})
}

// wakes counts the wakes of the cluster since it was last asked. No other object may have been woken.
func (b *bench) wakes() int { return b.WokenOnly(b.t, cluster.Name) }

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
