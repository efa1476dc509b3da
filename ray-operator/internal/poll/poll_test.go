package poll_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/polltest"
)

// want is what a test wants: an answer with this text. Another question replaces the one before.
type want struct {
	text, question string
	token          headclient.Token
}

type (
	set      = poll.Set[string, string, want, string]
	endpoint = poll.Endpoint[string, string, want, string]
)

// bench is a started Set whose endpoints repeat every 10 s what is wanted of them.
type bench struct {
	*set
	*polltest.Bench
	t *testing.T

	mu    sync.Mutex
	turns map[string]int // by endpoint
	news  int
	live  int
	open  []*endpoint
	// says is what an endpoint answers to a want.
	says func(key string, w want, before string) string
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, turns: map[string]int{}, says: func(_ string, w want, _ string) string { return w.text }}
	b.set = poll.New(poll.Rules[string, string, want, string]{
		Loops:    func(e *endpoint) []poll.Loop { return []poll.Loop{b.loop(e)} },
		Owner:    func(key string) types.NamespacedName { return types.NamespacedName{Name: key} },
		Token:    func(w want) headclient.Token { return w.token },
		Says:     func(before, after want, _ string) bool { return before.text != after.text },
		Replaces: func(before, after want) bool { return before.question != after.question },
		Outlives: func(_, after want, known string) bool { return after.question == "same as "+known },
		HasNews:  func(before, after string) bool { return before != after },
	}, clock.RealClock{})
	return b
}

func (b *bench) loop(e *endpoint) poll.Loop {
	b.open = append(b.open, e)
	e.OnNews = func() { b.count(func() { b.news++ }) }
	return func(ctx context.Context, news <-chan struct{}) {
		b.count(func() { b.live++ })
		defer b.count(func() { b.live-- })
		for pause := e.Spread(time.Second); ; pause = 10 * time.Second {
			if _, err := e.Pause(ctx, pause, news); err != nil {
				return
			}
			b.count(func() { b.turns[e.Key]++ })
			e.Publish(b.says)
		}
	}
}

func (b *bench) count(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

// start starts the Set, and play does so in a bubble of time for a test, which must leave no goroutine.
func (b *bench) start() { b.Bench = polltest.Start(b.t, b.set) }

// end ends the Set, and asserts that no loop outlives it.
func (b *bench) end() {
	b.End()
	if b.live != 0 {
		b.t.Errorf("%d loops outlive the end", b.live)
	}
}

func play(t *testing.T, test func(t *testing.T, b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.start()
		test(t, b)
		b.end()
	})
}

// woken are the owners that were woken since it was last called, in order.
func (b *bench) woken() []string {
	names := []string{}
	for name, times := range b.Woken() {
		names = append(names, slices.Repeat([]string{name}, times)...)
	}
	slices.Sort(names)
	return names
}

// expect asserts who was woken.
func (b *bench) expect(when string, names ...string) {
	b.t.Helper()
	if diff := cmp.Diff(append([]string{}, names...), b.woken()); diff != "" {
		b.t.Errorf("%s: woken (- want, + have):\n%s", when, diff)
	}
}

// last asserts what is known of a key; empty is nothing.
func (b *bench) last(key, answer string) {
	b.t.Helper()
	if _, have, heard := b.Last(key); have != answer || heard != (answer != "") {
		b.t.Errorf("of %s is known: %q, %t; want %q", key, have, heard, answer)
	}
}

func text(of string) want { return want{text: of} }

// TestSet_KeepsPartsApart: of two keys at one endpoint each has its own want and answer, and its owner alone is woken.
func TestSet_KeepsPartsApart(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		b.Want("a", "one", text("x"))
		b.last("a", "")
		b.Want("b", "one", text("y"))
		polltest.Pass(2 * time.Second)
		b.last("a", "x")
		b.last("b", "y")
		b.expect("the first answers", "a", "b")
		b.Want("b", "one", text("z"))
		polltest.Pass(0)
		b.last("a", "x")
		b.last("b", "z")
		b.expect("news of one", "b")
		b.Forget("b")
		b.last("b", "")
		turns := b.turns["one"]
		polltest.Pass(time.Minute)
		b.expect("nothing new")
		if b.live != 1 || b.turns["one"] < turns+5 {
			t.Errorf("%d loops for the other part, which had %d turns in a minute", b.live, b.turns["one"]-turns)
		}
	})
}

// TestSet_SameAgainChangesNothing, not even when the next turn is.
func TestSet_SameAgainChangesNothing(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		for range 100 {
			b.Want("a", "one", text("x"))
			polltest.Pass(500 * time.Millisecond)
		}
		if n := b.turns["one"]; n < 5 || n > 6 || b.news != 0 {
			t.Errorf("%d turns in 50 s, with news %d times", n, b.news)
		}
		b.expect("the first answer", "a")
		b.Want("a", "one", text("y"))
		b.Want("b", "one", text("x"))
		if b.news != 2 {
			t.Errorf("with news %d times", b.news)
		}
	})
}

// TestSet_ReplacesAnswers: what was heard about another question, or from another endpoint, counts no more.
func TestSet_ReplacesAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		at    string
		want  want
		known string
	}{
		"the same question":                    {at: "one", want: text("y"), known: "x"},
		"another question":                     {at: "one", want: want{text: "y", question: "2"}},
		"another endpoint":                     {at: "two", want: text("y")},
		"another question that is answered so": {at: "one", want: want{text: "y", question: "same as x"}, known: "x"},
		"another endpoint, and answered so":    {at: "two", want: want{text: "y", question: "same as x"}, known: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, b *bench) {
				b.Want("a", "one", text("x"))
				polltest.Pass(2 * time.Second)
				b.woken()
				b.Want("a", c.at, c.want)
				b.last("a", c.known)
				polltest.Pass(2 * time.Second)
				b.last("a", "y")
				b.expect("the next answer", "a")
				if want := map[bool]int{true: 1, false: 2}[c.at == "one"]; b.live != 1 || len(b.open) != want {
					t.Errorf("%d loops of %d endpoints, which were %d", b.live, want, len(b.open))
				}
			})
		})
	}
}

// TestSet_StartsAndEnds: what is wanted before the start is polled then, and nothing after the end.
func TestSet_StartsAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.Want("a", "one", text("x"))
		b.Want("b", "two", text("y"))
		b.Forget("b")
		polltest.Pass(time.Minute)
		if len(b.turns) > 0 {
			t.Errorf("turns before the start: %v", b.turns)
		}
		b.start()
		polltest.Pass(2 * time.Second)
		b.last("a", "x")
		b.end()
		b.Want("a", "one", text("z"))
		b.last("a", "")
		polltest.Pass(time.Minute)
		if diff := cmp.Diff(map[string]int{"one": 1}, b.turns); diff != "" {
			t.Errorf("turns (- want, + have):\n%s", diff)
		}
	})
}

// TestSet_ForgetsAllThatMatch, and ends each endpoint with its last part.
func TestSet_ForgetsAllThatMatch(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		for key, at := range map[string]string{"a": "one", "b": "one", "c": "two"} {
			b.Want(key, at, text(key))
		}
		polltest.Pass(2 * time.Second)
		b.ForgetAll(func(key string) bool { return key > "a" })
		synctest.Wait()
		if b.live != 1 {
			t.Errorf("%d loops for one part", b.live)
		}
		b.last("a", "a")
		b.last("b", "")
		b.last("c", "")
		b.Forget("nobody")
	})
}

// TestEndpoint_AmendsAnswers: what was not published is not given out by it, and wakes nobody.
func TestEndpoint_AmendsAnswers(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		b.Want("a", "one", text("x"))
		e := b.open[0]
		e.Amend(func(_ string, _ want, before string) string { return before + "!" })
		b.last("a", "")
		b.expect("amended before it was published")
		b.says = func(_ string, w want, before string) string { return w.text + before }
		polltest.Pass(2 * time.Second)
		b.last("a", "x!")
		b.expect("the first answer", "a")
		e.Amend(func(_ string, _ want, before string) string { return before })
		b.expect("nothing new")
		e.Amend(func(_ string, _ want, before string) string { return before + "?" })
		b.last("a", "x!?")
		b.expect("amended", "a")
		b.Want("b", "one", text("y"))
		e.Wake()
		b.expect("who has an answer", "a")
	})
}

// TestPart_IsOwedAnAnswer: once for each time that something was said, and none once it was replaced.
func TestPart_IsOwedAnAnswer(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		b.Want("a", "one", text("x"))
		part := b.open[0].Parts()[0]
		began := time.Now()
		polltest.Pass(time.Minute)
		b.woken()
		if said := part.Said(); !said.Equal(began) {
			t.Errorf("said at %s, want %s", said, began)
		}
		for i, owed := range []bool{true, false} {
			w, answer, have, wanted := part.See()
			if have != owed || !wanted || w.text != "x" || answer != "x" {
				t.Errorf("%d: %+v, %q, owed %t, wanted %t", i, w, answer, have, wanted)
			}
			part.Publish(answer, have)
			b.expect("owed or not", map[bool][]string{true: {"a"}}[owed]...)
		}
		b.Want("a", "one", want{text: "y", question: "2"})
		part.Publish("late", true)
		b.expect("an answer to a question that was replaced")
		b.last("a", "")
		if _, _, _, wanted := part.See(); wanted {
			t.Error("a question that was replaced is wanted")
		}
		if _, wanted := b.open[0].Parts()[0].Want(); !wanted || len(b.open[0].Wants()) != 1 {
			t.Error("the one in its place is not")
		}
	})
}

// TestEndpoint_RemembersItsToken, read by what was said last: once, and again after a refusal.
func TestEndpoint_RemembersItsToken(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		reads := map[string]int{}
		token := func(name string) headclient.Token {
			return func(context.Context) (string, error) { reads[name]++; return name, nil }
		}
		b.Want("a", "one", want{text: "x", token: token("first")})
		e := b.open[0]
		for range 3 {
			if text, err := e.Token.Token()(t.Context()); text != "first" || err != nil {
				t.Errorf("token %q, %v", text, err)
			}
		}
		b.Want("b", "one", want{text: "x", token: token("second")})
		e.Token.Heard(&headclient.Error{Kind: headclient.Unauthenticated, Err: errors.New("no")})
		if text, err := e.Token.Token()(t.Context()); text != "second" || err != nil {
			t.Errorf("token %q, %v", text, err)
		}
		if diff := cmp.Diff(map[string]int{"first": 1, "second": 1}, reads); diff != "" {
			t.Errorf("reads (- want, + have):\n%s", diff)
		}
		b.Want("c", "none", text("x"))
		if b.open[1].Token != nil {
			t.Error("an endpoint without a token has one")
		}
	})
}

// TestEndpoint_SpreadsFirstQuestions over 5 ms for each endpoint, and a least time.
func TestEndpoint_SpreadsFirstQuestions(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		for i := range 2000 {
			b.Want(string(rune('0'+i)), string(rune('0'+i)), text("x"))
		}
		polltest.Pass(500 * time.Millisecond)
		if n := len(b.turns); n > 1000 {
			t.Errorf("%d of 2000 were asked in half a second", n)
		}
		polltest.Pass(10 * time.Second)
		if n := len(b.turns); n != 2000 {
			t.Errorf("%d of 2000 were asked in ten seconds", n)
		}
	})
}

// TestEndpoint_Pauses until time, news or the end come.
func TestEndpoint_Pauses(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		b.Want("a", "one", text("x"))
		e := b.open[0]
		news, end := make(chan struct{}, 1), func() {}
		for name, c := range map[string]struct {
			pause, takes time.Duration
			after        func()
			said, fails  bool
		}{
			"for a time":       {pause: time.Second, takes: time.Second, after: func() {}},
			"until news":       {pause: time.Minute, takes: time.Second, after: func() { news <- struct{}{} }, said: true},
			"for ever":         {pause: -1, takes: time.Second, after: func() { news <- struct{}{} }, said: true},
			"until the end":    {pause: time.Minute, takes: time.Second, after: func() { end() }, fails: true},
			"no time, and end": {pause: 0, takes: 0, after: func() {}, fails: false},
		} {
			ended, stop := context.WithCancel(t.Context())
			end = stop
			began := time.Now()
			timer := time.AfterFunc(time.Second, c.after)
			said, err := e.Pause(ended, c.pause, news)
			timer.Stop()
			if said != c.said || (err != nil) != c.fails || time.Since(began) != c.takes {
				t.Errorf("%s: %t, %v after %s", name, said, err, time.Since(began))
			}
			end()
		}
	})
}

// TestJitterAndDouble: a tenth more or less; and twice as long with each failure.
func TestJitterAndDouble(t *testing.T) {
	seen := map[time.Duration]bool{}
	for range 100 {
		pause := poll.Jitter(10 * time.Second)
		seen[pause] = true
		if pause < 9*time.Second || pause > 11*time.Second {
			t.Errorf("%s", pause)
		}
	}
	if len(seen) < 50 {
		t.Errorf("100 pauses are %v", slices.Collect(maps.Keys(seen)))
	}
	for times, want := range map[int]float64{1: 1, 2: 2, 4: 8, 5: 10, 100: 10} {
		if pause := poll.Double(time.Second, times, 10*time.Second); pause.Seconds() != want {
			t.Errorf("after %d failures %s", times, pause)
		}
	}
}
