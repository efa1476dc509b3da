package testkit

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/wake"
)

// NeedWakeRules asserts that each rule that wakes a kind is needed: the story that is given for its name passes with the
// rule, and without it fails or ends differently. A rule without a story, and a story without a rule, fail too.
func NeedWakeRules(t *testing.T, kind string, stories map[string]func(*World)) {
	t.Helper()
	var names []string
	for _, rule := range NewWorld(t).rules[kind] {
		names = append(names, rule.Name)
		story, ok := stories[rule.Name]
		if !ok {
			t.Errorf("no story needs the rule %q: write one, or delete the rule", rule.Name)
			continue
		}
		t.Run(rule.Name, func(t *testing.T) {
			t.Parallel()
			with := NewWorld(t)
			story(with)
			if said := playWithout(t, kind, rule.Name, story, with.state()); said == "" {
				t.Errorf("its story ends the same without the rule %q", rule.Name)
			} else {
				t.Logf("without the rule: %s", said)
			}
		})
	}
	for name := range stories {
		if !slices.Contains(names, name) {
			t.Errorf("there is no rule %q", name)
		}
	}
}

// playWithout plays a story in a world that lacks a rule. It returns how the story fails or ends differently, "" if neither.
func playWithout(t *testing.T, kind, rule string, story func(*World), want state) string {
	t.Helper()
	try := &attempt{TB: t}
	var end state
	var play sync.WaitGroup
	play.Go(func() { // a goroutine of its own, which a failure ends
		w := NewWorld(try)
		w.rules[kind] = slices.DeleteFunc(w.rules[kind], func(one wake.Rule) bool { return one.Name == rule })
		story(w)
		end = w.state()
	})
	play.Wait()
	return cmp.Or(try.said, want.diff(end))
}

// attempt is a test that may fail: what it says is kept.
type attempt struct {
	testing.TB
	said string
}

// Errorf implements testing.TB.
func (a *attempt) Errorf(format string, args ...any) { a.said += fmt.Sprintf(format, args...) + "\n" }

// Error implements testing.TB.
func (a *attempt) Error(args ...any) { a.said += fmt.Sprintln(args...) }

// Fatalf implements testing.TB.
func (a *attempt) Fatalf(format string, args ...any) {
	a.Errorf(format, args...)
	runtime.Goexit()
}

// Fatal implements testing.TB.
func (a *attempt) Fatal(args ...any) {
	a.Error(args...)
	runtime.Goexit()
}
