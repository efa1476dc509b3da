package testkit

import (
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
)

// Scenario is a story of one World, with its assertions. It ends settled.
type Scenario struct {
	Name string
	Run  func(*World)
	// KeepRecord leaves out the variant in which the record is removed, for a story
	// that is about the record itself.
	KeepRecord bool
	// NoPast leaves out operators that see the past, for a story with a fault that they
	// could not tell from a beginning.
	NoPast bool
	// Waits is for a story whose rules hold only because the operator's client waits for
	// its own writes to be in the cache, as it does. The others hold without that too.
	Waits bool
	// AnyEpoch is for a story whose epochs depend on when the operator sees what.
	AnyEpoch bool
	// AnyLoss is for a story in which it depends on when the operator sees what whether a
	// head or a cluster is taken for lost.
	AnyLoss bool
	// AnyOutput is for a story in which it depends on what goes wrong how much of the output
	// of a run is read before its cluster goes.
	AnyOutput bool
}

// end is how a world is at the story's end.
func (s Scenario) end(w *World) state {
	end := w.state()
	if s.AnyEpoch {
		end = end.withoutEpochs()
	}
	if s.AnyLoss {
		end = end.withoutLosses()
	}
	if s.AnyOutput {
		end = end.withoutOutput()
	}
	return end
}

// Play tells each story, and tells it again at each point of disturbance: with each API
// call of the operator failing once in turn, with the operator killed around each write,
// with a cache that is late or does not see what happens, with a new operator that sees
// the past, and with status or record lost at each step. It must always end the same,
// without a rule broken on the way. It logs how many points there were; of long stories
// it runs a sample, unless the flag is -points=all. With none, each story is told once.
func Play(t *testing.T, scenarios ...Scenario) {
	t.Helper()
	play(t, points.choice(t), scenarios...)
}

func play(t *testing.T, of choice, scenarios ...Scenario) {
	t.Helper()
	debug.SetGCPercent(400) // worlds are small, many and short-lived
	var run, known atomic.Int64
	covered := coverage{together: &sync.Map{}, ever: &points.ever}
	t.Cleanup(func() { t.Logf("points of disturbance run: %d of %d", run.Load(), known.Load()) })
	for _, scenario := range scenarios {
		t.Run(scenario.Name, func(t *testing.T) {
			t.Parallel()
			plain := NewWorld(t)
			plain.proving = true
			scenario.Run(plain)
			plain.prove()
			plain.checkTools()
			want, all := scenario.end(plain), scenario.pointsOf(plain)
			known.Add(int64(len(all)))
			for _, point := range scenario.sampled(of, all, covered) {
				t.Run(point.name, func(t *testing.T) { scenario.disturbed(t, point, want) })
				run.Add(1)
			}
			if scenario.NoPast {
				return
			}
			known.Add(int64(len(worthVisiting(plain.revisions))))
			if of == noPoints {
				return
			}
			t.Run("travel", func(t *testing.T) { run.Add(scenario.travel(t, of, want)) })
		})
	}
}

func (s Scenario) disturbed(t *testing.T, point point, want state) {
	t.Helper()
	w := NewWorld(t)
	point.disturb(w)
	w.trouble.forgets = point.forgets || s.AnyOutput
	s.Run(w)
	have := s.end(w)
	if point.forgets {
		want, have = want.withoutOutput(), have.withoutOutput()
	}
	if diff := want.diff(have); diff != "" {
		t.Fatalf("ends differently (- undisturbed, + disturbed):\n%s", diff)
	}
}
