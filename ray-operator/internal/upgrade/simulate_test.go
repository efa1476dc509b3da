package upgrade

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const second = time.Second

// line is a row without what is left out in a table.
type line struct {
	after                     time.Duration
	active, candidate         int
	toldActive, toldCandidate int
	traffic                   int
	endpoints                 [2]int
	verdict                   Verdict
	cause                     Cause
}

func lines(rows []Row) []line {
	var all []line
	for _, r := range rows {
		all = append(all, line{
			r.After, r.Active.Ready, r.Candidate.Ready, r.Shift.Active, r.Shift.Candidate, r.Shift.Traffic,
			[2]int{r.ActivePods, r.CandidatePods}, r.Verdict, r.Cause,
		})
	}
	return all
}

// scene is a simulation, and what is seen of it.
type scene struct {
	terms  Terms
	script Script
	want   []line
}

func scenes(t *testing.T, all map[string]scene) {
	t.Helper()
	for name, s := range all {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(s.want, lines(Simulate(s.terms, s.script)), cmp.AllowUnexported(line{})); diff != "" {
				t.Errorf("want -, have +\n%s", diff)
			}
		})
	}
}

// half is with half of the room, and half of the requests in a step.
func half(terms Terms) Terms {
	terms.Surge, terms.Step = 50, 50
	return terms
}

// script is one of four pods that come in 40 s and go in 15 s.
var script = Script{Pods: 4, Grow: 40 * second, Shrink: 15 * second}

func TestSimulate(t *testing.T) {
	scenes(t, map[string]scene{
		"with half of the room": {half(full), script, []line{
			{0, 100, 0, 100, 50, 0, [2]int{4, 0}, Going, ""},
			{40 * second, 100, 50, 100, 50, 50, [2]int{2, 2}, Going, ""},
			{40*second + soon, 100, 50, 50, 50, 50, [2]int{2, 2}, Going, ""},
			{55*second + soon, 50, 50, 50, 100, 50, [2]int{2, 2}, Going, ""},
			{95*second + soon, 50, 100, 50, 100, 100, [2]int{0, 4}, Going, ""},
			{95*second + 2*soon, 50, 100, 0, 100, 100, [2]int{0, 4}, Done, ""},
		}},
		"it fails": {half(full), with(script, func(s *Script) { s.Fails = 20 * second }), []line{
			{0, 100, 0, 100, 50, 0, [2]int{4, 0}, Going, ""},
			{20 * second, 100, 0, 100, 50, 0, [2]int{4, 0}, Going, Failed},
			{20*second + soon, 100, 0, 100, 50, 0, [2]int{4, 0}, Returned, ""},
		}},
		"it is late": {half(full), with(script, func(s *Script) { s.Grow = time.Hour }), []line{
			{0, 100, 0, 100, 50, 0, [2]int{4, 0}, Going, ""},
			{60 * second, 100, 0, 100, 50, 0, [2]int{4, 0}, Going, Late},
			{60*second + soon, 100, 0, 100, 50, 0, [2]int{4, 0}, Returned, ""},
		}},
		"it sickens": {half(full), with(script, func(s *Script) { s.SickAt = 50 }), []line{
			{0, 100, 0, 100, 50, 0, [2]int{4, 0}, Going, ""},
			{40 * second, 100, 50, 100, 50, 50, [2]int{2, 2}, Going, ""},
			{40*second + soon, 100, 50, 50, 50, 50, [2]int{2, 2}, Going, ""},
			{41 * second, 100, 0, 50, 50, 0, [2]int{4, 0}, Going, Sick},
			{41*second + soon, 100, 0, 100, 50, 0, [2]int{4, 0}, Going, ""},
			{41*second + 2*soon, 100, 0, 100, 50, 0, [2]int{4, 0}, Returned, ""},
		}},
	})
}

func TestSicknessIsPlayed(t *testing.T) {
	scenes(t, map[string]scene{
		"it sickens for a while, and nothing is automatic": {
			with(patient, func(t *Terms) { t.Step = 100 }), with(script, func(s *Script) { s.SickAt, s.SickFor = 100, 30*second; s.Shrink = time.Hour }),
			[]line{
				{0, 100, 0, 100, 100, 0, [2]int{4, 0}, Going, ""},
				{40 * second, 100, 100, 100, 100, 100, [2]int{0, 4}, Going, ""},
				{40*second + soon, 100, 100, 0, 100, 100, [2]int{0, 4}, Done, ""},
			},
		},
		"for no more than a moment": {half(patient), with(script, func(s *Script) { s.SickAt, s.SickFor = 50, 1 }), []line{
			{0, 100, 0, 100, 50, 0, [2]int{4, 0}, Going, ""},
			{40 * second, 100, 50, 100, 50, 50, [2]int{2, 2}, Going, ""},
			{40*second + soon, 100, 50, 50, 50, 50, [2]int{2, 2}, Going, ""},
			{41 * second, 100, 0, 50, 50, 0, [2]int{4, 0}, Going, ""},
			{41*second + 1, 100, 50, 50, 50, 50, [2]int{2, 2}, Going, ""},
			{55*second + soon, 50, 50, 50, 100, 50, [2]int{2, 2}, Going, ""},
			{95*second + soon, 50, 100, 50, 100, 100, [2]int{0, 4}, Going, ""},
			{95*second + 2*soon, 50, 100, 0, 100, 100, [2]int{0, 4}, Done, ""},
		}},
		"and rises again": {
			with(patient, func(t *Terms) { t.Step = 50 }), with(script, func(s *Script) { s.SickAt, s.SickFor = 1, 30*second }),
			[]line{
				{0, 100, 0, 100, 100, 0, [2]int{4, 0}, Going, ""},
				{40 * second, 100, 100, 100, 100, 50, [2]int{4, 4}, Going, ""},
				{41 * second, 100, 0, 100, 100, 0, [2]int{4, 0}, Going, ""},
				{71 * second, 100, 100, 100, 100, 50, [2]int{4, 4}, Going, ""},
				{81 * second, 100, 100, 100, 100, 100, [2]int{0, 4}, Going, ""},
				{81*second + soon, 100, 100, 0, 100, 100, [2]int{0, 4}, Done, ""},
			},
		},
	})
}

func TestEventsArePlayed(t *testing.T) {
	scenes(t, map[string]scene{
		"the user goes back, and forward again": {
			with(full, func(t *Terms) { t.Step = 50 }), with(script, func(s *Script) { s.Returns, s.Again = 45*second, 53*second }),
			[]line{
				{0, 100, 0, 100, 100, 0, [2]int{4, 0}, Going, ""},
				{40 * second, 100, 100, 100, 100, 50, [2]int{4, 4}, Going, ""},
				{45 * second, 100, 100, 100, 100, 50, [2]int{4, 4}, Going, ""},
				{50 * second, 100, 100, 100, 100, 0, [2]int{4, 0}, Going, ""},
				{50*second + soon, 100, 100, 100, 100, 0, [2]int{4, 0}, Returned, ""},
			},
		},
		"and forward again in time": {
			with(full, func(t *Terms) { t.Step = 50 }), with(script, func(s *Script) { s.Returns, s.Again = 45*second, 48*second }),
			[]line{
				{0, 100, 0, 100, 100, 0, [2]int{4, 0}, Going, ""},
				{40 * second, 100, 100, 100, 100, 50, [2]int{4, 4}, Going, ""},
				{45 * second, 100, 100, 100, 100, 50, [2]int{4, 4}, Going, ""},
				{48 * second, 100, 100, 100, 100, 50, [2]int{4, 4}, Going, ""},
				{50 * second, 100, 100, 100, 100, 100, [2]int{0, 4}, Going, ""},
				{50*second + soon, 100, 100, 0, 100, 100, [2]int{0, 4}, Done, ""},
			},
		},
		"the active side dies": {with(full, func(t *Terms) { t.Step = 50 }), with(script, func(s *Script) { s.Dies = 45 * second }), []line{
			{0, 100, 0, 100, 100, 0, [2]int{4, 0}, Going, ""},
			{40 * second, 100, 100, 100, 100, 50, [2]int{4, 4}, Going, ""},
			{45 * second, 0, 100, 100, 100, 100, [2]int{0, 4}, Going, ""},
			{45*second + soon, 0, 100, 0, 100, 100, [2]int{0, 4}, Done, ""},
		}},
		"at the first moment": {half(full), with(script, func(s *Script) { s.Fails = 1 }), []line{
			{0, 100, 0, 100, 50, 0, [2]int{4, 0}, Going, ""},
			{1, 100, 0, 100, 50, 0, [2]int{4, 0}, Going, Failed},
			{1 + soon, 100, 0, 100, 50, 0, [2]int{4, 0}, Returned, ""},
		}},
		"nothing ever happens again": {patient, with(script, func(s *Script) { s.Again, s.Fails = second/2, second }), []line{
			{0, 100, 0, 100, 100, 0, [2]int{4, 0}, Going, ""},
			{second, 100, 0, 100, 100, 0, [2]int{4, 0}, Going, ""},
		}},
		"times and pods that are none": {with(full, func(t *Terms) { t.Step = 100 }), Script{Pods: -1, Grow: -5, Shrink: -5, Fails: -5, Dies: -5, SickAt: -5, Returns: -5}, []line{
			{0, 100, 0, 100, 100, 0, [2]int{}, Going, ""},
			{soon, 100, 100, 100, 100, 100, [2]int{}, Going, ""},
			{2 * soon, 100, 100, 0, 100, 100, [2]int{}, Done, ""},
		}},
	})
}

func TestPodsAreRoundedUp(t *testing.T) {
	for _, test := range []struct{ pods, ready, want int }{{101, 1, 2}, {100, 1, 1}, {101, 100, 101}, {3, 25, 1}, {3, 34, 2}, {3, 0, 0}, {-3, 50, 0}} {
		p := begin(full, Script{Pods: test.pods})
		if have := p.pods(Version{Ready: test.ready}); have != test.want {
			t.Errorf("%d %% of %d pods are %d, want %d", test.ready, test.pods, have, test.want)
		}
	}
}

// TestLooksAreBounded: it looks so often and no more.
func TestLooksAreBounded(t *testing.T) {
	for most, want := range map[int]int{1: 1, 2: 2, 7: 7, 8: 7} {
		p := begin(full, script)
		if have := p.run(most); have != want || len(p.rows) != have {
			t.Errorf("%d looks and %d rows, want %d", have, len(p.rows), want)
		}
	}
}

// TestEverySimulationEnds: whatever happens in it, long before it would be cut off.
func TestEverySimulationEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terms, script := wildTerms(t), wildScript(t)
		p := begin(terms, script)
		if looks := p.run(mostLooks); looks >= mostLooks/10 {
			t.Fatalf("%d looks", looks)
		}
		have := p.rows[len(p.rows)-1]
		if have.Verdict == Going && terms.AutoRollback && terms.Deadline > 0 && script.Dies <= 0 {
			t.Fatalf("it stops at %+v", have)
		}
	})
}

// TestTheSlowestEnds: by one percent each, there and almost there, back, and there again.
func TestTheSlowestEnds(t *testing.T) {
	p := begin(Terms{Surge: 1, Step: 1, Interval: second}, Script{Pods: 100, Returns: 700 * second, Again: 1400 * second, Grow: 3 * second, Shrink: 3 * second})
	looks := p.run(mostLooks)
	if have := p.rows[len(p.rows)-1].Verdict; have != Done || looks >= mostLooks/10 {
		t.Errorf("%v after %d looks", have, looks)
	}
}

func wildTerms(t *rapid.T) Terms {
	return Terms{
		Surge: rapid.OneOf(rapid.IntRange(1, 100), rapid.Int()).Draw(t, "surge"), Step: rapid.OneOf(rapid.IntRange(1, 100), rapid.Int()).Draw(t, "step"),
		Interval: times(t, "interval"), Deadline: times(t, "deadline"), AutoRollback: rapid.Bool().Draw(t, "automatic"),
	}
}

// times are mostly some seconds, and now and then out of all reason.
func times(t *rapid.T, name string) time.Duration {
	if rapid.IntRange(0, 9).Draw(t, name+" is sane") > 0 {
		return time.Duration(rapid.IntRange(0, 300).Draw(t, name)) * second
	}
	return time.Duration(rapid.Int64().Draw(t, name))
}

func wildScript(t *rapid.T) Script {
	return Script{
		Pods: rapid.IntRange(-1, 20).Draw(t, "pods"), Grow: times(t, "grow"), Shrink: times(t, "shrink"),
		Fails: times(t, "fails"), Dies: times(t, "dies"), SickAt: rapid.OneOf(rapid.IntRange(0, 100), rapid.Int()).Draw(t, "sick at"),
		SickFor: times(t, "sick for"), Returns: times(t, "returns"), Again: times(t, "again"),
	}
}
