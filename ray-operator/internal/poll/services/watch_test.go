package services

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

func TestNobodyIsAskedUnlessWanted(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		b.Pass(time.Minute)
		if counts := head.counts(); len(counts) > 0 {
			t.Errorf("asked: %v", counts)
		}
		if _, ok := b.Last(cluster, "head"); ok {
			t.Error("something is known of a head that nobody wanted")
		}
		b.Want(cluster, wanted(nil))
		b.Forget(cluster)
		b.Forget(cluster)
		b.Pass(time.Minute)
		if n := head.counts()[serving]; n > 1 {
			t.Errorf("asked %d times after it was forgotten", n)
		}
		if _, ok := b.Last(cluster, "head"); ok {
			t.Error("something is known of a head that was forgotten")
		}
	})
}

// TestWantedBeforeTheStart: what was said before the Watch was started is asked then, and
// nothing after its end.
func TestWantedBeforeTheStart(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		b.End()
		b.Want(cluster, wanted(nil))
		b.Pass(time.Minute)
		if counts := head.counts(); len(counts) > 0 {
			t.Errorf("asked after the end: %v", counts)
		}
		early := New(b.dial, b.proxies.ask, b.clock)
		early.Want(cluster, us, wanted(nil).Want)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- early.Start(ctx) }()
		b.Pass(2 * time.Second)
		if n := head.counts()[serving]; n != 1 {
			t.Errorf("asked %d times after the start", n)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestHeadIsAskedAgainAndAgain(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		head.add(application("theirs", string(ask("theirs"))))
		b.Want(cluster, wanted(nil))
		b.Pass(2 * time.Second)
		first := b.last()
		want := application("theirs", string(ask("theirs")))
		want.Deployed = nil // which is not kept
		if diff := cmp.Diff(headclient.Serving{Running: true, Applications: shown(want)}, first.Serving); diff != "" || first.Failure != "" {
			t.Errorf("%+v: %s", first, diff)
		}
		if _, ok := b.Last(cluster, "another head"); ok {
			t.Error("another head's UID gets the answer")
		}
		b.Pass(50 * time.Second)
		if counts := head.counts(); counts[serving] < 10 || counts[serving] > 12 || counts[session] != 1 || counts[deploy] != 0 {
			t.Errorf("asked in 52 s instead of each 5 s: %v", counts)
		}
		if again := b.last(); !again.At.After(first.At) {
			t.Errorf("the answer is still of %s", again.At)
		}
		if head.Dialed != 1 || head.Token != nil {
			t.Errorf("%d connections for one head without a token, with one: %v", head.Dialed, head.Token != nil)
		}
	})
}

// TestConnectionIsNotKeptForLong: thousands of heads that are asked now and then cost none.
func TestConnectionIsNotKeptForLong(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		want := wanted(nil)
		want.Every = time.Minute
		b.Want(cluster, want)
		b.Pass(5 * time.Minute)
		if head.Dialed < 4 || head.Dialed != head.Closed {
			t.Errorf("%d connections, %d closed", head.Dialed, head.Closed)
		}
	})
}

// TestAnotherHead: what another one said counts no more, and it is asked no more.
func TestAnotherHead(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		former, head := b.head("a:1"), b.head("b:1")
		b.Want(cluster, wanted(config("d1", "a")))
		b.Pass(10 * time.Second)
		want := wanted(config("d1", "a"))
		want.At = Place{Head: "next", Address: "b:1", Token: func(context.Context) (string, error) { return "secret", nil }}
		b.Want(cluster, want)
		if _, ok := b.Last(cluster, "next"); ok {
			t.Error("the former head's answer is taken for the next one's")
		}
		former.counts()
		b.Pass(10 * time.Second)
		if counts := former.counts(); len(counts) > 0 {
			t.Errorf("the former is still asked: %v", counts)
		}
		if answer, ok := b.Last(cluster, "next"); !ok || answer.Taken != "d1" || head.Token == nil {
			t.Errorf("%+v, %v, with a token: %v", answer, ok, head.Token != nil)
		}
	})
}

// TestTokenFromNowOn: a conversation without one is not gone on with.
func TestTokenFromNowOn(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		want := wanted(nil)
		b.Want(cluster, want)
		b.Pass(2 * time.Second)
		for range 2 { // another function may be the same token
			want.At.Token = func(context.Context) (string, error) { return "secret", nil }
			b.Want(cluster, want)
			b.Pass(2 * time.Second)
		}
		if head.Token == nil || head.Dialed != 2 {
			t.Errorf("%d connections, the last with a token: %v", head.Dialed, head.Token != nil)
		}
	})
}

// TestToken_IsReadOnceForAHead: neither a head at rest nor one that is away costs reads of a Secret.
func TestToken_IsReadOnceForAHead(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head, want, reads := b.head("a:1"), wanted(nil), 0
		want.At.Token = func(context.Context) (string, error) { reads++; return "secret", nil }
		b.Want(cluster, want)
		b.Pass(time.Hour)
		head.set(down)
		b.Pass(10 * time.Minute)
		if reads != 1 || b.last().Failure == "" {
			t.Errorf("the token was read %d times: %+v", reads, b.last())
		}
		head.set(func(s *scripted) {
			clear(s.Always)
			s.Faults[session] = []fault{{Err: failure(headclient.Unauthenticated)}}
		})
		b.Pass(time.Hour)
		if reads != 2 || b.last().Failure != "" {
			t.Errorf("once it was refused the token was read %d times: %+v", reads, b.last())
		}
	})
}

// TestBackOffBeginsAnew after all was well.
func TestBackOffBeginsAnew(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		head.set(down)
		b.Want(cluster, wanted(nil))
		b.Pass(time.Minute)
		head.set(func(s *scripted) { clear(s.Always) })
		b.Pass(10 * time.Second)
		head.set(func(s *scripted) { s.Faults[serving] = []fault{{Lost: true}} })
		for b.last().Failure == "" {
			b.Pass(50 * time.Millisecond)
		}
		b.Pass(1200 * time.Millisecond)
		if answer := b.last(); answer.Failure != "" {
			t.Errorf("%+v", answer)
		}
	})
}

// TestHungHeadDelaysNobody, whatever it hangs in.
func TestHungHeadDelaysNobody(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		for _, address := range []string{"b:1", "c:1"} {
			b.head(address).Always[session] = fault{Hung: true}
			b.Want(types.NamespacedName{Name: address}, wishes{Want: Want{At: Place{Head: "head", Address: address}, Every: time.Second}})
		}
		head := b.head("a:1")
		b.Want(cluster, wanted(nil))
		b.Pass(21 * time.Second)
		if n := head.counts()[serving]; n < 4 {
			t.Errorf("asked %d times in 21 s", n)
		}
		if answer, _ := b.Last(types.NamespacedName{Name: "b:1"}, "head"); answer.Failure != headclient.Timeout || !answer.At.IsZero() {
			t.Errorf("%+v", answer)
		}
	})
}

// TestFailure: what was heard before stays, with since when it fails; and another
// conversation begins with the session.
func TestFailure(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		head.add(application("theirs", string(ask("theirs"))))
		b.Want(cluster, wanted(nil))
		b.Pass(2 * time.Second)
		before := b.last()
		began := time.Now()
		for _, fails := range []error{failure(headclient.Unavailable), failure(headclient.Protocol), failure(headclient.Unsupported)} {
			head.set(func(s *scripted) { s.Always[serving] = fault{Err: fails} })
			b.Pass(20 * time.Second)
			answer := b.last()
			if answer.Failure != headclient.KindOf(fails) || !errors.Is(answer.Err, fails) || answer.At != before.At || len(answer.Serving.Applications) != 1 {
				t.Errorf("%v: %+v", fails, answer)
			}
			if since := answer.FailingSince; since.Before(began) || since.After(began.Add(6*time.Second)) {
				t.Errorf("%v: since %s, not about %s", fails, since, began)
			}
		}
		head.set(func(s *scripted) { clear(s.Always) })
		b.Pass(6 * time.Second)
		if answer := b.last(); answer.Failure != "" || answer.Err != nil || !answer.FailingSince.IsZero() || !answer.At.After(began) {
			t.Errorf("%+v", answer)
		}
	})
}

// TestNobodyIsThere to be dialled.
func TestNobodyIsThere(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		b.Want(cluster, wanted(config("d1", "a")))
		b.Pass(10 * time.Second)
		if answer := b.last(); answer.Failure != headclient.Unavailable || !answer.At.IsZero() {
			t.Errorf("%+v", answer)
		}
		b.head("a:1").add(application("theirs", string(ask("theirs"))))
		b.Pass(6 * time.Second)
		if answer := b.last(); answer.Failure != "" || answer.Taken != "d1" {
			t.Errorf("%+v", answer)
		}
	})
}

// What befalls a head for as long as a test takes.

func down(s *scripted) { s.Always[serving] = fault{Err: failure(headclient.Unavailable)} }

func refuse(s *scripted) { s.Always[deploy] = fault{Err: failure(headclient.Refused)} }

// linger: an application that takes its time to go.
func linger(s *scripted) {
	s.more = func(said *headclient.Serving) {
		said.Applications["a"] = but(application("a", string(ask("a"))), deleting)
	}
}

// state: all applications are in one.
func state(state headclient.ApplicationState) func(*scripted) {
	return func(s *scripted) {
		s.more = func(said *headclient.Serving) {
			for name, app := range said.Applications {
				app.State = state
				said.Applications[name] = app
			}
		}
	}
}

// TestPace: how often a head is asked in ten minutes of calm.
func TestPace(t *testing.T) {
	ours := config("d1", "a")
	record := config("d1", "a")
	record.Taken = true
	going := config("d1")
	going.Drop = []string{"a"}
	for name, c := range map[string]struct {
		config *Config
		change func(*scripted)
		probes []Probe
		every  time.Duration
		least  int
		most   int
	}{
		"all is well":                    {config: ours, every: 20 * time.Second, least: 27, most: 34},
		"only looked at":                 {every: 10 * time.Second, least: 55, most: 67},
		"as often as is possible":        {every: time.Millisecond, least: 540, most: 670},
		"one deploys":                    {config: ours, change: state(headclient.ApplicationDeploying), every: 20 * time.Second, least: 540, most: 670},
		"one is unhealthy":               {config: ours, change: state(headclient.ApplicationUnhealthy), every: 20 * time.Second, least: 540, most: 670},
		"another's deploys":              {config: config("d1"), change: state(headclient.ApplicationDeploying), every: 20 * time.Second, least: 27, most: 34},
		"one goes":                       {config: going, change: linger, every: 20 * time.Second, least: 540, most: 670},
		"the configuration is refused":   {config: config("d1", "a", "b"), change: refuse, every: 20 * time.Second, least: 27, most: 34},
		"a proxy does not answer":        {config: ours, probes: []Probe{{Pod: "p", Address: "bad"}}, every: 20 * time.Second, least: 540, most: 670},
		"it fails, only looked at":       {change: down, every: 20 * time.Second, least: 27, most: 36},
		"it fails, often looked at":      {change: down, every: 2 * time.Second, least: 108, most: 137},
		"it fails before it took it":     {config: ours, change: down, every: 20 * time.Second, least: 108, most: 137},
		"it fails when it has, say they": {config: record, change: down, every: 20 * time.Second, least: 27, most: 36},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, b *bench) {
				head := b.head("a:1")
				head.add(application("a", string(ask("a"))))
				if c.change != nil {
					head.set(c.change)
				}
				b.proxies.errors["bad"] = failure(headclient.Refused)
				want := wanted(c.config, c.probes...)
				want.Every = c.every
				b.Want(cluster, want)
				b.Pass(10 * time.Minute)
				if n := head.counts()[serving]; n < c.least || n > c.most {
					t.Errorf("asked %d times in 10 min, not %d to %d", n, c.least, c.most)
				}
			})
		})
	}
}

// TestNewsIsSeenSoon, and however much there is of it, the head is asked once a second.
func TestNewsIsSeenSoon(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		want := wanted(nil)
		want.Every = time.Minute
		b.Want(cluster, want)
		b.Pass(5 * time.Second)
		head.counts()
		want.parts = map[types.NamespacedName]*Config{us: changed(config("d1", "a"), alone)}
		b.Want(cluster, want)
		b.Pass(0)
		if counts := head.counts(); counts[deploy] != 1 {
			t.Errorf("it was not deployed at once: %v", counts)
		}
		b.Pass(10 * time.Second)
		head.set(func(s *scripted) { s.times = nil })
		for i := range 200 {
			want.Probes = []Probe{{Address: "p", Path: string(rune('a' + i%2))}}
			b.Want(cluster, want)
			b.Pass(50 * time.Millisecond)
		}
		if n := len(head.times); n < 9 || n > 11 {
			t.Errorf("asked %d times in 10 s of news", n)
		}
		for i := 1; i < len(head.times); i++ {
			if pause := head.times[i].Sub(head.times[i-1]); pause < time.Second {
				t.Errorf("asked again after %s", pause)
			}
		}
		want.Every = time.Minute
		b.Want(cluster, want)
		b.Pass(3 * time.Second)
		head.counts()
		b.Want(cluster, want) // the same again
		b.Pass(20 * time.Second)
		if counts := head.counts(); len(counts) > 0 {
			t.Errorf("for what is no news: %v", counts)
		}
	})
}

// TestAnswerIsNotChanged once it was given out.
func TestAnswerIsNotChanged(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		head.add(application("theirs", string(ask("theirs"))))
		probe := Probe{Address: "p"}
		b.Want(cluster, wanted(nil, probe))
		b.Pass(2 * time.Second)
		given := b.last()
		if !given.Probes[probe].OK || given.Probes[probe].Times != 1 {
			t.Errorf("%+v", given)
		}
		head.add(application("a", string(ask("a"))))
		b.proxies.set(func(p *proxies) { p.errors["p"] = failure(headclient.Refused) })
		b.Pass(20 * time.Second)
		if len(given.Serving.Applications) != 1 || !given.Probes[probe].OK || given.Probes[probe].Times != 1 {
			t.Errorf("what was given out has changed: %+v", given)
		}
		if diff := cmp.Diff(2, len(b.last().Serving.Applications)); diff != "" {
			t.Error(diff)
		}
	})
}
