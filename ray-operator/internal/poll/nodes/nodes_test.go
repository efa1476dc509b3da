package nodes

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

func TestNobodyIsAskedUnlessWanted(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		b.Pass(time.Minute)
		if n := head.count(asked); n != 0 {
			t.Errorf("asked %d times", n)
		}
		if _, ok := b.Last(cluster, "head"); ok {
			t.Error("something is known of a head that nobody wanted")
		}
		b.Want(cluster, target(nil))
		b.Forget(cluster)
		b.Forget(cluster)
		b.Pass(time.Minute)
		if n := head.count(asked); n > 1 {
			t.Errorf("asked %d times after it was forgotten", n)
		}
	})
}

func TestHeadIsAskedAgainAndAgain(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		head := b.head("a:1", worker(1, headclient.Idle))
		b.Want(cluster, target(nil))
		b.Pass(2 * time.Second)
		first := b.last()
		if first.Failure != "" || len(first.Nodes) != 1 || first.Nodes["pod-1"].State != headclient.Idle || !first.Use.At.IsZero() {
			t.Errorf("%+v", first)
		}
		if _, ok := b.Last(cluster, "another head"); ok {
			t.Error("another head's UID gets the answer")
		}
		b.Pass(100 * time.Second)
		if n := head.count(asked); n < 9 || n > 13 {
			t.Errorf("asked %d times in 102 s instead of each 10 s", n)
		}
		if again := b.last(); !again.At.After(first.At) {
			t.Errorf("the answer is still of %s", again.At)
		}
		if n := head.count(func(s *scripted) int { return s.dialed }); n != 1 || head.token != nil {
			t.Errorf("%d connections for one head without a token, with one: %v", n, head.token != nil)
		}
	})
}

// TestConnectionIsNotKeptForLong: thousands of heads that are asked now and then cost none.
func TestConnectionIsNotKeptForLong(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		head := b.head("a:1", worker(1, headclient.Idle))
		b.Want(cluster, target(func(w *Target) { w.Every = time.Minute }))
		b.Pass(5 * time.Minute)
		dialed, closed := head.count(func(s *scripted) int { return s.dialed }), head.count(func(s *scripted) int { return s.closed })
		if dialed < 4 || dialed != closed {
			t.Errorf("%d connections, %d closed", dialed, closed)
		}
	})
}

// TestWakesOnlyForNews: busy now and idle then is no news, nor is the same again.
func TestWakesOnlyForNews(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		head := b.head("a:1", worker(1, headclient.Idle), worker(2, headclient.Running))
		b.Want(cluster, target(nil))
		b.Pass(2 * time.Second)
		if n := b.wakes(); n != 1 {
			t.Errorf("%d wakes for the first answer", n)
		}
		for range 20 {
			b.Want(cluster, target(nil))
			head.node(0, headclient.Running)
			b.Pass(11 * time.Second)
			head.node(0, headclient.Idle)
			b.Pass(11 * time.Second)
		}
		if n := b.wakes(); n != 0 {
			t.Errorf("%d wakes without news", n)
		}
		for name, change := range map[string]func(*scripted){
			"a node drains":     func(s *scripted) { s.state.Nodes[0].State = headclient.Draining },
			"a node dies":       func(s *scripted) { s.state.Nodes[0].State = headclient.Dead },
			"a node comes":      func(s *scripted) { s.state.Nodes = append(s.state.Nodes, worker(3, headclient.Idle)) },
			"the head fails":    func(s *scripted) { s.err = &headclient.Error{Kind: headclient.Unavailable, Err: context.Canceled} },
			"another node goes": func(s *scripted) { s.state.Nodes[1].State = headclient.Dead },
		} {
			head.set(change)
			b.Pass(12 * time.Second)
			if n := b.wakes(); n != 1 {
				t.Errorf("%s: %d wakes", name, n)
			}
			head.set(func(s *scripted) {
				s.err = nil
				s.state.Nodes = []headclient.Node{worker(1, headclient.Idle), worker(2, headclient.Running)}
			})
			b.Pass(32 * time.Second)
			b.wakes()
		}
	})
}

func TestNodeIsToldToLeaveUntilItDoes(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		head := b.head("a:1", worker(1, headclient.Running), worker(2, headclient.Idle))
		head.stays = true
		deadline := time.Now().Add(time.Minute)
		wanted := target(func(w *Target) {
			w.Drains = []Drain{{Pod: "pod-1", Reason: headclient.Preemption, Deadline: deadline}, {Pod: "never-joined", Reason: headclient.Preemption}}
		})
		b.Want(cluster, wanted)
		b.Pass(10 * time.Millisecond)
		if n := head.count(drained); n != 1 {
			t.Errorf("told %d times at once", n)
		}
		b.Pass(5 * time.Second)
		if n := head.count(drained); n < 15 {
			t.Errorf("a head that does not seem to hear is told %d times in 5 s", n)
		}
		head.set(func(s *scripted) { s.stays = false })
		b.Pass(2 * time.Second)
		told := head.count(drained)
		b.wakes()
		before := head.count(asked)
		b.Pass(30 * time.Second)
		if n := head.count(drained); n != told {
			t.Errorf("a node that drains is told %d times more", n-told)
		}
		if n := head.count(asked) - before; n < 27 {
			t.Errorf("a draining node is looked at %d times in 30 s", n)
		}
		if state := b.last().Nodes["pod-1"].State; state != headclient.Draining {
			t.Errorf("it is %s", state)
		}
		head.node(0, headclient.Dead)
		b.Pass(2 * time.Second)
		if answer := b.last(); answer.Nodes["pod-1"].State != headclient.Dead || b.wakes() != 1 {
			t.Errorf("its death is not told: %+v", answer.Nodes)
		}
		before = head.count(asked)
		b.Pass(100 * time.Second)
		if n := head.count(asked) - before; n > 13 {
			t.Errorf("asked %d times in 100 s, though all that should leave has left", n)
		}
	})
}

// TestNewsIsActedOnAtOnce: neither the rhythm nor a back-off holds a new drain up.
func TestNewsIsActedOnAtOnce(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		head := b.head("a:1", worker(1, headclient.Idle))
		b.Want(cluster, target(func(w *Target) { w.Every = time.Hour }))
		b.Pass(time.Minute)
		b.Want(cluster, target(func(w *Target) {
			w.Every, w.Drains = time.Hour, []Drain{{Pod: "pod-1", Reason: headclient.IdleTermination}}
		}))
		b.Pass(time.Millisecond)
		if n := head.count(drained); n != 1 {
			t.Errorf("told %d times", n)
		}
	})
}

func TestRefusalIsKept(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		head := b.head("a:1", worker(1, headclient.Running))
		head.refuse = "no longer idle"
		b.Want(cluster, target(func(w *Target) {
			w.Drains = []Drain{{Pod: "pod-1", Reason: headclient.IdleTermination}}
		}))
		b.Pass(10 * time.Second)
		if node := b.last().Nodes["pod-1"]; node.Refused != "no longer idle" || b.wakes() != 1 {
			t.Errorf("%+v", node)
		}
		if n := head.count(drained); n < 9 || n > 12 {
			t.Errorf("asked to leave %d times in 10 s", n)
		}
		head.set(func(s *scripted) { s.refuse = "" })
		b.Pass(2 * time.Second)
		if node := b.last().Nodes["pod-1"]; node.Refused != "" || node.State != headclient.Draining {
			t.Errorf("%+v", node)
		}
	})
}

func TestFailedDrainIsAFailureOfTheHead(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		head := b.head("a:1", worker(1, headclient.Running))
		head.drainErr = &headclient.Error{Kind: headclient.Timeout, Err: context.DeadlineExceeded}
		b.Want(cluster, target(func(w *Target) { w.Drains = []Drain{{Pod: "pod-1", Reason: headclient.Preemption}} }))
		b.Pass(time.Second)
		if answer := b.last(); answer.Failure != headclient.Timeout || answer.Nodes["pod-1"].State != headclient.Running {
			t.Errorf("%+v", answer)
		}
		head.set(func(s *scripted) { s.drainErr = nil })
		b.Pass(30 * time.Second)
		if answer := b.last(); answer.Failure != "" || answer.Nodes["pod-1"].State != headclient.Draining {
			t.Errorf("%+v", answer)
		}
	})
}

func TestNodeIsResizedUntilItIs(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		head := b.head("a:1", worker(1, headclient.Running), worker(2, headclient.Dead))
		two := map[string]float64{"CPU": 2}
		b.Want(cluster, target(func(w *Target) { w.Resizes = []Resize{{Pod: "pod-1", Resources: two}, {Pod: "pod-2", Resources: two}} }))
		b.Pass(30 * time.Second)
		if n := head.count(resized); n != 1 || b.last().Nodes["pod-1"].Total["CPU"] != 2 {
			t.Errorf("resized %d times: %+v", n, b.last().Nodes)
		}
		head.set(func(s *scripted) { s.refuse, s.state.Nodes[0].Total = "unit", map[string]float64{"CPU": 1, "GPU": 1} })
		b.Pass(30 * time.Second)
		if node := b.last().Nodes["pod-1"]; node.Refused == "" || node.Total["CPU"] != 1 || len(node.Total) != 1 {
			t.Errorf("%+v", node)
		}
	})
}

// TestNoAnswerIsNotAnEmptyOne: what was heard stays, with the failure beside it.
func TestNoAnswerIsNotAnEmptyOne(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		head := b.head("a:1", worker(1, headclient.Idle))
		b.Want(cluster, target(func(w *Target) { w.Activity = true }))
		b.Pass(2 * time.Second)
		good := b.last()
		b.wakes()
		refused := &headclient.Error{Kind: headclient.Unauthenticated, Err: errors.New("no")}
		head.set(func(s *scripted) { s.err = refused })
		b.Pass(11 * time.Second)
		want := good
		want.Failure, want.Err, want.FailingSince = headclient.Unauthenticated, refused, b.last().FailingSince
		if diff := cmp.Diff(want, b.last(), cmpopts.EquateErrors()); diff != "" || want.FailingSince.Before(good.At) || b.wakes() != 1 {
			t.Errorf("since %s: %s", want.FailingSince, diff)
		}
		b.Pass(10 * time.Minute)
		if diff := cmp.Diff(want, b.last(), cmpopts.EquateErrors()); diff != "" || b.wakes() != 0 {
			t.Errorf("while it fails: %s", diff)
		}
		head.set(func(s *scripted) { s.err = nil })
		b.Pass(40 * time.Second)
		if well := b.last(); well.Failure != "" || well.Err != nil || !well.FailingSince.IsZero() || b.wakes() != 1 {
			t.Errorf("%+v", well)
		}
	})
}

func TestFailingHeadIsAskedLessOften(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		head.err = &headclient.Error{Kind: headclient.Unavailable, Err: errors.New("no")}
		b.Want(cluster, target(func(w *Target) { w.Every = time.Second }))
		b.Pass(10 * time.Second)
		if n := head.count(asked); n < 3 || n > 6 {
			t.Errorf("asked %d times in the first 10 s", n)
		}
		before := head.count(asked)
		b.Pass(10 * time.Minute)
		if n := head.count(asked) - before; n < 18 || n > 30 {
			t.Errorf("asked %d times in the 10 min after", n)
		}
		if all, dialed := head.count(asked), head.count(func(s *scripted) int { return s.dialed }); all != dialed {
			t.Errorf("%d connections for %d tries: one that failed is trusted", dialed, all)
		}
	})
}

func TestNobodyThere(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		b.Want(cluster, target(nil))
		b.Pass(2 * time.Second)
		if answer := b.last(); answer.Failure != headclient.Unavailable || !answer.At.IsZero() {
			t.Errorf("%+v", answer)
		}
	})
}

// TestHungHeadsDelayNobody: a hundred heads that take calls and never answer.
func TestHungHeadsDelayNobody(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		for i := range 100 {
			address := fmt.Sprintf("hung-%d:1", i)
			b.head(address).hung = true
			b.Want(types.NamespacedName{Name: address}, target(func(w *Target) { w.Address, w.Every = address, time.Second }))
		}
		head := b.head("a:1", worker(1, headclient.Idle))
		b.Want(cluster, target(func(w *Target) { w.Every = time.Second }))
		b.Pass(100 * time.Second)
		if n := head.count(asked); n < 95 {
			t.Errorf("asked %d times in 100 s instead of each second", n)
		}
		b.Want(cluster, target(func(w *Target) { w.Drains = []Drain{{Pod: "pod-1", Reason: headclient.Preemption}} }))
		b.Pass(time.Millisecond)
		if head.count(drained) != 1 {
			t.Error("a drain was held up")
		}
	})
}

func TestForgettingEndsACallUnderWay(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		head.hung = true
		b.Want(cluster, target(nil))
		b.Pass(2 * time.Second)
		b.Forget(cluster)
		b.Pass(time.Millisecond)
		if n := head.count(func(s *scripted) int { return s.closed }); n != 1 {
			t.Errorf("%d connections were closed", n)
		}
	})
}

// TestAnotherHeadStartsAnew: nothing that the former head said is taken for the new one's.
func TestAnotherHeadStartsAnew(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		b.head("a:1", worker(1, headclient.Idle))
		next := b.head("b:1", worker(2, headclient.Idle))
		b.Want(cluster, target(nil))
		b.Pass(2 * time.Second)
		b.Want(cluster, target(func(w *Target) { w.Head, w.Address = "next", "b:1" }))
		for _, head := range []types.UID{"head", "next"} {
			if answer, ok := b.Last(cluster, head); ok {
				t.Errorf("%s is said to have answered %+v", head, answer)
			}
		}
		b.Pass(2 * time.Second)
		answer, ok := b.Last(cluster, "next")
		if _, listed := answer.Nodes["pod-2"]; !ok || !listed || len(answer.Nodes) != 1 {
			t.Errorf("%+v, %v", answer, ok)
		}
		b.Want(cluster, target(func(w *Target) {
			w.Head, w.Address, w.Token = "next", "b:1", func(context.Context) (string, error) { return "t", nil }
		}))
		if _, ok := b.Last(cluster, "next"); ok {
			t.Error("a head that was asked without a token is taken for one that asks for it")
		}
		b.Pass(2 * time.Second)
		if next.token == nil {
			t.Error("its token is not asked for")
		}
	})
}

// TestToken_IsReadOnceForAHead: at rest a head costs no read of a Secret, and one that is away does not either.
func TestToken_IsReadOnceForAHead(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		head, reads := b.head("a:1"), 0
		b.Want(cluster, target(func(w *Target) {
			w.Every, w.Activity = 5*time.Second, true
			w.Token = func(context.Context) (string, error) { reads++; return "t", nil }
		}))
		is := func(when string, want int) {
			t.Helper()
			if reads != want {
				t.Errorf("%s: the token was read %d times, want %d", when, reads, want)
			}
		}
		b.Pass(time.Hour)
		is("at rest", 1)
		fails := func(kind headclient.Kind) {
			head.set(func(s *scripted) { s.err = &headclient.Error{Kind: kind, Act: "ask", Err: context.Canceled} })
		}
		fails(headclient.Unavailable)
		b.Pass(10 * time.Minute)
		is("while the head is away", 1)
		fails(headclient.Unauthenticated)
		b.Pass(time.Minute)
		head.set(func(s *scripted) { s.err = nil })
		b.Pass(time.Minute)
		again := reads
		b.Pass(time.Hour)
		is("at rest again", again)
		if answer, ok := b.Last(cluster, "head"); !ok || answer.Failure != "" || again < 2 {
			t.Errorf("once the token was refused it was read %d times: %+v", again, answer)
		}
	})
}

func TestNothingRunsAfterTheEnd(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		b.Want(cluster, target(nil))
		b.Pass(2 * time.Second)
		b.End()
		before := head.count(asked)
		b.Want(cluster, target(nil))
		b.Pass(time.Minute)
		if n := head.count(asked); n != before {
			t.Errorf("asked %d times after the end", n-before)
		}
		b.Forget(cluster)
	})
}
