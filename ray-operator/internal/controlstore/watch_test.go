package controlstore

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/polltest"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/turns"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

var demo = types.NamespacedName{Namespace: "team", Name: "demo"}

// bench is a Watch in a world where time passes when all wait. Its stores answer as a test
// says, by their addresses.
type bench struct {
	*Watch
	*polltest.Bench
	t *testing.T

	mu      sync.Mutex
	answers map[string]Verdict
	hung    map[string]bool
	asked   []question
	read    int
	// confirmed is how many of the questions were whether an answer still holds, open how many visits have not ended.
	confirmed, open int
	address         string
	err             error
}

type question struct {
	address string
	claim   Claim
}

func run(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, answers: map[string]Verdict{}, hung: map[string]bool{}, address: "a"}
		b.Watch = New(b.visit, turns.New(48, 8), clock.RealClock{})
		var source Source = b.Watch
		source.Forget(demo) // of what was never wanted
		b.Bench = polltest.Start(t, b.Watch)
		test(t, b)
		b.End()
	})
}

func (b *bench) answer(ctx context.Context, server Server, claim Claim) Verdict {
	b.mu.Lock()
	b.asked = append(b.asked, question{server.Address, claim})
	verdict, hung := b.answers[server.Address], b.hung[server.Address]
	b.mu.Unlock()
	if hung {
		<-ctx.Done()
	}
	return verdict
}

// visitor is one of a bench's stores. What it said holds as long as it would say it again.
type visitor struct {
	*bench
	server Server
	claim  Claim
}

func (b *bench) visit(server Server, claim Claim) Visitor {
	b.set(func() { b.open++ })
	return &visitor{b, server, claim}
}

func (v *visitor) Ask(ctx context.Context) Verdict { return v.answer(ctx, v.server, v.claim) }

func (v *visitor) Confirm(ctx context.Context) bool {
	v.set(func() { v.confirmed++ })
	return v.answer(ctx, v.server, v.claim).Admitted
}

func (v *visitor) Close() { v.set(func() { v.open-- }) }

// server is a target's.
func (b *bench) server(context.Context) (Server, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.read++
	return Server{Address: b.address}, b.err
}

func (b *bench) target(change func(*Target)) Target {
	target := Target{Claim: claim(), Server: b.server, Every: 10 * time.Second}
	if change != nil {
		change(&target)
	}
	return target
}

func (b *bench) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

// since gives what was asked, and how often a server was read, since it was last called.
func (b *bench) since() (asked, read int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	asked, read = len(b.asked), b.read
	b.asked, b.read = nil, 0
	return asked, read
}

func serves() Verdict { return Verdict{Finding: reason.StoreServes.Of("x"), Admitted: true} }
func away() Verdict   { return Verdict{Finding: reason.StoreUnreachable.Of("x", "y")} }

// TestAsksAtOnceAndThenNowAndThen: and wakes once for what stays the same.
func TestAsksAtOnceAndThenNowAndThen(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		b.answers["a"] = serves()
		b.Pass(time.Minute)
		if _, known := b.Last(demo, claim()); known {
			t.Error("something is known that nobody asked for")
		}
		b.Want(demo, b.target(nil))
		synctest.Wait()
		if verdict, known := b.Last(demo, claim()); !known || verdict != serves() {
			t.Errorf("at once: %v %+v", known, verdict)
		}
		b.Pass(100 * time.Second)
		if asked, read := b.since(); asked < 10 || asked > 12 || read != 1 {
			t.Errorf("asked %d times in 100 s, and read %d times where", asked, read)
		}
		if n := b.Wakes(); n != 1 {
			t.Errorf("woken %d times", n)
		}
		b.Forget(demo)
		b.Forget(demo)
		b.since()
		b.Pass(time.Minute)
		if asked, _ := b.since(); asked != 0 {
			t.Errorf("asked %d times after it was forgotten", asked)
		}
		if _, known := b.Last(demo, claim()); known {
			t.Error("what was forgotten is known")
		}
	})
}

// TestWatch_ConfirmsWhatServes: a store that serves is asked for everything once a minute, and at once where it says
// that its answer holds no more.
func TestWatch_ConfirmsWhatServes(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		b.answers["a"] = serves()
		b.Want(demo, b.target(func(target *Target) { target.Every = time.Second }))
		b.Pass(10*time.Minute + time.Second)
		asked, _ := b.since()
		if whole := asked - b.confirmed; whole != 10 && whole != 11 || b.confirmed < 500 {
			t.Errorf("asked for everything %d times in ten minutes, and else %d times", whole, b.confirmed)
		}
		b.set(func() { b.answers["a"] = away() })
		b.Pass(3 * time.Second)
		if verdict, _ := b.Last(demo, claim()); verdict != away() || b.open != 0 {
			t.Errorf("%+v, and %d visits go on", verdict, b.open)
		}
		b.set(func() { b.answers["a"] = serves() })
		b.Pass(time.Second)
		b.Forget(demo)
		synctest.Wait()
		if b.open != 0 {
			t.Errorf("%d visits outlive what wanted them", b.open)
		}
	})
}

// TestAsksEachSecondWhileNotAdmitted: and reads the credentials again each time.
func TestAsksEachSecondWhileNotAdmitted(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		b.answers["a"] = away()
		b.Want(demo, b.target(nil))
		b.Pass(10*time.Second + time.Millisecond)
		if asked, read := b.since(); asked != 11 || read != 11 {
			t.Errorf("asked %d times and read %d times", asked, read)
		}
		if n := b.Wakes(); n != 1 {
			t.Errorf("woken %d times for the same", n)
		}
		b.set(func() { b.address, b.answers["b"] = "b", serves() })
		b.Pass(time.Second)
		if verdict, _ := b.Last(demo, claim()); verdict != serves() || b.Wakes() != 1 {
			t.Errorf("%+v after the credentials were changed", verdict)
		}
		b.since()
		b.set(func() { b.answers["b"] = away() })
		b.Pass(11 * time.Second)
		if verdict, _ := b.Last(demo, claim()); verdict != away() || b.Wakes() != 1 {
			t.Errorf("%+v after it went", verdict)
		}
		b.set(func() { b.answers["b"] = Verdict{Finding: reason.StoreUnreachable.Of("x", "z")} })
		b.Pass(time.Second)
		if b.Wakes() != 1 {
			t.Error("another cause is no news")
		}
	})
}

// TestSameClaimAgain: another function or another pace does not lose what is known, not even
// while the store is being asked.
func TestSameClaimAgain(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		b.answers["a"] = serves()
		b.Want(demo, b.target(nil))
		synctest.Wait()
		b.since()
		check := func(when string) {
			t.Helper()
			synctest.Wait()
			if verdict, known := b.Last(demo, claim()); !known || verdict != serves() {
				t.Errorf("%s: %v %+v", when, known, verdict)
			}
		}
		for range 100 {
			b.Want(demo, b.target(nil))
		}
		check("wanted again")
		b.Want(demo, b.target(func(w *Target) {
			w.Every = time.Hour
			w.Server = func(context.Context) (Server, error) { return Server{Address: "c"}, nil }
		}))
		check("wanted otherwise")
		b.Pass(time.Minute)
		if asked, read := b.since(); asked != 0 || read != 0 {
			t.Errorf("asked %d times, read %d times, where an hour was wanted", asked, read)
		}
		b.set(func() { b.hung["a"] = true })
		b.Want(demo, b.target(func(w *Target) { w.Every = time.Second }))
		check("at another pace")
		if asked, read := b.since(); asked != 1 || read != 0 {
			t.Errorf("asked %d times, read %d times, where a second was wanted", asked, read)
		}
		b.Pass(time.Second)
		check("while it is asked")
		b.Want(demo, b.target(nil))
		check("wanted again while it is asked")
		if asked, _ := b.since(); asked != 0 || b.Wakes() != 1 {
			t.Errorf("asked %d times while it is being asked", asked)
		}
	})
}

// TestNewClaim: it is asked for at once, with credentials read again, and what was known
// counts no more, unless all that is new is that the head was made.
func TestNewClaim(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		b.answers["a"] = serves()
		b.Want(demo, b.target(nil))
		synctest.Wait()
		b.since()
		b.set(func() { b.hung["a"] = true })
		begun := claim()
		begun.Begun = true
		b.Want(demo, b.target(func(w *Target) { w.Claim = begun }))
		if verdict, known := b.Last(demo, begun); !known || verdict != serves() {
			t.Errorf("the head was made: %v %+v", known, verdict)
		}
		if _, known := b.Last(demo, claim()); known {
			t.Error("the former claim is answered")
		}
		synctest.Wait()
		if asked, read := b.since(); asked != 1 || read != 1 {
			t.Errorf("asked %d times, read %d times", asked, read)
		}
		next := begun
		next.Epoch = 2
		b.Want(demo, b.target(func(w *Target) { w.Claim = next }))
		synctest.Wait()
		if verdict, known := b.Last(demo, next); known {
			t.Errorf("the next epoch has the verdict %+v of the former one", verdict)
		}
		b.since()
		b.set(func() { b.hung["a"] = false })
		b.Pass(time.Minute)
		b.mu.Lock()
		for _, question := range b.asked {
			if question.claim != next {
				t.Errorf("the former claim %+v is asked for", question.claim)
			}
		}
		b.mu.Unlock()
		b.set(func() { b.answers["a"] = away() })
		third := next
		third.Epoch, third.Begun = 3, false
		b.Want(demo, b.target(func(w *Target) { w.Claim = third }))
		synctest.Wait()
		third.Begun = true
		b.Want(demo, b.target(func(w *Target) { w.Claim = third }))
		if verdict, known := b.Last(demo, third); known {
			t.Errorf("a head that was not admitted, and was made all the same, has the verdict %+v", verdict)
		}
	})
}

// TestSlowStoreDelaysNoOther: nor the end of the Watch.
func TestSlowStoreDelaysNoOther(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		b.hung["a"], b.answers["b"] = true, serves()
		b.Want(demo, b.target(nil))
		other := types.NamespacedName{Namespace: "team", Name: "other"}
		b.Want(other, b.target(func(w *Target) {
			w.Server = func(context.Context) (Server, error) { return Server{Address: "b"}, nil }
		}))
		synctest.Wait()
		if verdict, known := b.Last(other, claim()); !known || verdict != serves() {
			t.Errorf("%v %+v", known, verdict)
		}
		if _, known := b.Last(demo, claim()); known {
			t.Error("a store that hangs has a verdict")
		}
	})
}

// TestServerCannotBeRead: a finding is told; anything else changes nothing of what is known.
func TestServerCannotBeRead(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		b.err = errors.New("the API server is away")
		b.Want(demo, b.target(nil))
		b.Pass(5 * time.Second)
		if _, known := b.Last(demo, claim()); known || b.Wakes() != 0 {
			t.Error("something is known without anybody having been asked")
		}
		missing := reason.StoreSecretMissing.Of("the Secret x is not there")
		b.set(func() { b.err = fault.Wrap(&fault.Terminal{Finding: missing}, "read") })
		b.Pass(time.Second)
		if verdict, _ := b.Last(demo, claim()); verdict != (Verdict{Finding: missing}) || b.Wakes() != 1 {
			t.Errorf("%+v", verdict)
		}
		if asked, read := b.since(); asked != 0 || read < 6 {
			t.Errorf("asked %d times, read %d times", asked, read)
		}
		b.set(func() { b.err, b.answers["a"] = errors.New("the API server is away"), serves() })
		b.Pass(time.Second)
		if verdict, _ := b.Last(demo, claim()); verdict != (Verdict{Finding: missing}) || b.Wakes() != 0 {
			t.Errorf("%+v", verdict)
		}
		b.set(func() { b.err = nil })
		b.Pass(time.Second)
		if verdict, _ := b.Last(demo, claim()); verdict != serves() {
			t.Errorf("%+v", verdict)
		}
	})
}

// TestWantBeforeAndAfterTheWatchRuns: what is wanted before is asked when it starts, and
// what is wanted when it has ended is not.
func TestWantBeforeAndAfterTheWatchRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, answers: map[string]Verdict{"a": serves()}, address: "a"}
		b.Watch = New(b.visit, turns.New(48, 8), clock.RealClock{})
		b.Want(demo, b.target(nil))
		b.Want(demo, b.target(func(w *Target) { w.Claim.Epoch = 2 }))
		synctest.Wait()
		if asked, _ := b.since(); asked != 0 {
			t.Errorf("asked %d times before it runs", asked)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- b.Start(ctx) }()
		synctest.Wait()
		b.mu.Lock()
		epochs := make([]int64, 0, len(b.asked))
		for _, question := range b.asked {
			epochs = append(epochs, question.claim.Epoch)
		}
		b.mu.Unlock()
		if diff := cmp.Diff([]int64{2}, epochs); diff != "" {
			t.Errorf("epochs asked for: %s", diff)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		b.since()
		b.Want(demo, b.target(nil))
		synctest.Wait()
		if asked, _ := b.since(); asked != 0 {
			t.Errorf("asked %d times after it ran", asked)
		}
	})
}

// TestQuestionsTakeTurns: a server that hangs holds half of a namespace's share, however many clusters name it.
func TestQuestionsTakeTurns(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		b.hung["a"] = true
		for i := range 20 {
			b.Want(types.NamespacedName{Namespace: "greedy", Name: strconv.Itoa(i)}, b.target(nil))
		}
		synctest.Wait()
		b.mu.Lock()
		defer b.mu.Unlock()
		if asked := len(b.asked); asked != 4 {
			t.Errorf("%d questions are under way, want 4", asked)
		}
	})
}

// TestAsksSeldomWhereAPersonMustAct: 1, 2, 4, 8, 16, 30 s apart, and at once for another spec.
func TestAsksSeldomWhereAPersonMustAct(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		b.answers["a"] = Verdict{Finding: reason.StoreWrongPassword.Of("x", "y")}
		b.Want(demo, b.target(nil))
		b.Pass(62 * time.Second)
		if asked, read := b.since(); asked != 7 || read != 7 {
			t.Errorf("asked %d times and read %d times in the first minute", asked, read)
		}
		b.Pass(5 * time.Minute)
		if asked, _ := b.since(); asked != 10 {
			t.Errorf("asked %d times in five minutes", asked)
		}
		b.Pass(2 * time.Second)
		b.Want(demo, b.target(func(target *Target) { target.Generation = 2 }))
		b.Pass(100 * time.Millisecond)
		if asked, _ := b.since(); asked != 1 {
			t.Errorf("asked %d times for another spec", asked)
		}
		b.Pass(8 * time.Second)
		if asked, _ := b.since(); asked != 3 { // after 1, 3 and 7 s, as for the first
			t.Errorf("asked %d times in the 8 s after that", asked)
		}
		b.set(func() { b.answers["a"] = away() })
		b.Pass(10 * time.Second)
		b.since()
		b.Pass(10 * time.Second)
		if asked, _ := b.since(); asked < 9 || asked > 11 {
			t.Errorf("asked %d times in 10 s of a store that may come back", asked)
		}
	})
}

// TestAsker_AsksSeldomForAnAuthorityThatIsMissing: a person has to restore it.
func TestAsker_AsksSeldomForAnAuthorityThatIsMissing(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		b.answers["a"] = Verdict{Finding: reason.CAMissing.Of("demo-ca")}
		b.Want(demo, b.target(nil))
		b.Pass(62 * time.Second)
		if asked, _ := b.since(); asked != 7 {
			t.Errorf("asked %d times in the first minute", asked)
		}
	})
}
