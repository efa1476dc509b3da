package jobs

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// ending is how a run is that is to end.
type ending struct {
	pending bool // it waits
	change  func(*scripted)
	befalls map[verb][]fault
	// want are the calls from when it is to end until all is known.
	want   []verb
	status headclient.JobStatus
}

func endings() map[string]ending {
	return map[string]ending{
		"while it runs": {
			want:   []verb{look, tail, stop, look, tail},
			status: headclient.JobStopped,
		},
		"while it waits": {
			pending: true,
			want:    []verb{look, kill, look, tail},
			status:  headclient.JobFailed,
		},
		"when it is over": {
			change: func(h *scripted) { h.job("run-of-a", headclient.JobSucceeded) },
			want:   []verb{look, tail},
			status: headclient.JobSucceeded,
		},
		"in a state that Ray may invent": {
			change: func(h *scripted) { h.job("run-of-a", "RESTING") },
			want:   []verb{look, tail, stop, look, stop, look},
			status: "RESTING",
		},
		"though its output cannot be read": {
			befalls: map[verb][]fault{tail: {{Hung: true}}},
			want:    []verb{look, tail, session, look, stop, look, tail},
			status:  headclient.JobStopped,
		},
		"though it is refused to read its output": {
			befalls: map[verb][]fault{tail: {{Err: failure(headclient.Refused)}}},
			want:    []verb{look, tail, stop, look, tail},
			status:  headclient.JobStopped,
		},
		"though the message is lost": {
			befalls: map[verb][]fault{stop: {{Lost: true}}},
			want:    []verb{look, tail, stop, session, look, stop, look, tail},
			status:  headclient.JobStopped,
		},
		"though its output is gone with it": {
			befalls: map[verb][]fault{tail: {{}, {Err: failure(headclient.NotFound)}}},
			want:    []verb{look, tail, stop, look, tail},
			status:  headclient.JobStopped,
		},
	}
}

// TestStopped: a run that is to end is ended, in the way that its status takes.
func TestStopped(t *testing.T) {
	for what, c := range endings() {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, b *bench) {
				head := b.head("a:1")
				head.output, head.pending = lines(100), c.pending
				b.Want(name("a"), wanted("a", nil))
				b.Pass(time.Millisecond)
				if c.change != nil {
					c.change(head)
				}
				for verb, faults := range c.befalls {
					head.Faults[verb] = slices.Clone(faults)
				}
				head.Verbs()
				b.Want(name("a"), wanted("a", func(w *Want) { w.Stop = true }))
				b.Pass(20 * time.Second)
				if got := withoutRepeatedLooks(head.Verbs()); !slices.Equal(got[:min(len(got), len(c.want))], c.want) || c.status.Over() && len(got) > len(c.want) {
					t.Errorf("calls: %v", got)
				}
				answer := b.last("a")
				if answer.Job.Status != c.status || len(answer.Tail.Lines) != 20 || answer.Tailed != c.status.Over() || answer.LogLost {
					t.Errorf("%+v", answer)
				}
			})
		})
	}
}

// withoutRepeatedLooks leaves one of looks in a row, which only tell how soon it was seen.
func withoutRepeatedLooks(all []verb) []verb {
	return slices.CompactFunc(all, func(a, b verb) bool { return a == look && b == look })
}

// TestStopWithoutLines: where no output is wanted, none is read.
func TestStopWithoutLines(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		b.Want(name("a"), wanted("a", func(w *Want) { w.Lines = 0 }))
		b.Pass(time.Millisecond)
		b.Want(name("a"), wanted("a", func(w *Want) { w.Lines, w.Stop = 0, true }))
		b.Pass(10 * time.Second)
		if answer := b.last("a"); answer.Job.Status != headclient.JobStopped || !answer.Tailed || answer.LogLost || head.Count(tail) > 0 {
			t.Errorf("%+v, read %d times", answer, head.Count(tail))
		}
	})
}

// TestStopWhileSubmitting: what is under way is awaited, and stopped if it got there.
func TestStopWhileSubmitting(t *testing.T) {
	for what, f := range map[string]fault{
		"it is taken": {Late: 2 * time.Second},
		"late":        {Late: timeout + 5*time.Second},
		"unheard":     {Unheard: true},
	} {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, b *bench) {
				head := b.head("a:1")
				head.Faults[submit] = []fault{f}
				b.Want(name("a"), wanted("a", nil))
				b.Pass(time.Millisecond)
				b.Want(name("a"), wanted("a", func(w *Want) { w.Stop = true }))
				b.Pass(20 * time.Second)
				if answer := b.last("a"); answer.Job.Status != headclient.JobStopped || !answer.Tailed {
					t.Errorf("%+v", answer)
				}
				if n := head.Count(submit); n != 1 {
					t.Errorf("%d submissions", n)
				}
			})
		})
	}
}

// TestStopIsRepeated: what does not end is told again, less and less often.
func TestStopIsRepeated(t *testing.T) {
	for verb, pending := range map[verb]bool{stop: false, kill: true} {
		t.Run(string(verb), func(t *testing.T) {
			play(t, func(t *testing.T, b *bench) {
				head := b.head("a:1")
				head.dogged, head.pending = true, pending
				b.Want(name("a"), wanted("a", nil))
				b.Pass(time.Second)
				began := time.Now()
				b.Want(name("a"), wanted("a", func(w *Want) { w.Stop = true }))
				b.Pass(50 * time.Second)
				var pauses []time.Duration
				for _, call := range head.Calls {
					if call.Verb == verb {
						pauses = append(pauses, call.At.Sub(began))
						began = call.At
					}
				}
				want := []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Second, 10 * time.Second, 10 * time.Second}
				if diff := cmp.Diff(want, pauses); diff != "" {
					t.Error(diff)
				}
				if n := head.Count(tail); n > 1 || pending && n > 0 {
					t.Errorf("its output is read %d times", n)
				}
				head.set(func(h *scripted) { h.dogged = false })
				b.Pass(15 * time.Second)
				if answer := b.last("a"); !answer.Job.Status.Over() || !answer.Tailed {
					t.Errorf("%+v", answer)
				}
			})
		})
	}
}

// TestStopOfTheUnknown is answered, again and again, by when the head was asked.
func TestStopOfTheUnknown(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		b.head("a:1")
		b.Want(name("a"), wanted("a", func(w *Want) { w.Submission = nil }))
		b.Pass(10 * time.Second)
		b.Woken()
		b.Want(name("a"), wanted("a", func(w *Want) { w.Submission, w.Stop = nil, true }))
		said := time.Now()
		b.Pass(time.Second)
		if answer := b.last("a"); answer.Known || answer.Asked.Before(said) || b.Woken()["a"] != 1 {
			t.Errorf("%+v", answer)
		}
		b.Pass(20 * time.Second)
		if answer := b.last("a"); answer.Asked.Before(said.Add(15*time.Second)) || b.Woken()["a"] != 0 {
			t.Errorf("%+v", answer)
		}
	})
}

// output is what can be read when a run is over.
type output struct {
	change func(h *scripted)
	want   func(*Want)
	tails  int
	right  func(Answer) bool
}

func outputs() map[string]output {
	return map[string]output{
		"all": {tails: 1, right: func(a Answer) bool { return len(a.Tail.Lines) == 20 && a.Tail.Lines[19] == "line 100" }},
		"few": {
			change: func(h *scripted) { h.output = lines(3) },
			tails:  1, right: func(a Answer) bool { return len(a.Tail.Lines) == 3 },
		},
		"none are wanted": {
			want:  func(w *Want) { w.Lines = 0 },
			right: func(a Answer) bool { return len(a.Tail.Lines) == 0 },
		},
		"at the third time": {
			change: func(h *scripted) { h.Faults[tail] = []fault{{Hung: true}, {Lost: true}} },
			tails:  3, right: func(a Answer) bool { return len(a.Tail.Lines) == 20 },
		},
		"never": {
			change: func(h *scripted) { h.Always[tail] = fault{Hung: true} },
			tails:  3, right: func(a Answer) bool { return len(a.Tail.Lines) == 0 && a.LogLost && a.Failure == "" },
		},
		"refused": {
			change: func(h *scripted) { h.Always[tail] = fault{Err: failure(headclient.Unsupported)} },
			tails:  1, right: func(a Answer) bool { return a.LogLost },
		},
		"the head goes": {
			change: func(h *scripted) {
				h.Faults[tail] = []fault{{Lost: true}}
				h.Faults[session] = []fault{{Lost: true}, {Hung: true}}
			},
			tails: 1, right: func(a Answer) bool { return a.LogLost },
		},
		"another head comes": {
			change: func(h *scripted) { h.Faults[tail] = []fault{{Lost: true}}; h.session.Name = "s2" },
			tails:  1, right: func(a Answer) bool { return a.LogLost && a.Session.Name == "s2" && a.Known },
		},
	}
}

// TestLastLines: what is read when a run is over, and what is said if nothing can be.
func TestLastLines(t *testing.T) {
	for what, c := range outputs() {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, b *bench) {
				head := b.head("a:1")
				head.output = lines(100)
				b.Want(name("a"), wanted("a", c.want))
				b.Pass(time.Second)
				if c.change != nil {
					head.set(func(h *scripted) { c.change(h) })
				}
				head.job("run-of-a", headclient.JobSucceeded)
				b.Pass(40 * time.Second)
				answer := b.last("a")
				if !answer.Tailed || answer.LogLost && len(answer.Tail.Lines) > 0 || answer.Job.Status != headclient.JobSucceeded || !c.right(answer) {
					t.Errorf("%+v", answer)
				}
				if n := head.Count(tail); n != c.tails {
					t.Errorf("tried %d times", n)
				}
				head.Verbs()
				head.job("run-of-a", headclient.JobRunning) // an answer that is final stays
				b.Pass(time.Minute)
				if verbs := head.Verbs(); len(verbs) > 0 && answer.Session.Name == "s1" || b.last("a").Job.Status != headclient.JobSucceeded {
					t.Errorf("when all is known: %v, %+v", verbs, b.last("a"))
				}
			})
		})
	}
}

// TestLinesReadBeforeTheStop are kept where none can be read after it.
func TestLinesReadBeforeTheStop(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		head.output = lines(5)
		b.Want(name("a"), wanted("a", nil))
		b.Pass(time.Second)
		head.Faults[tail] = []fault{{}, {Lost: true}, {Lost: true}, {Lost: true}}
		b.Want(name("a"), wanted("a", func(w *Want) { w.Stop = true }))
		b.Pass(30 * time.Second)
		if answer := b.last("a"); !answer.Tailed || answer.LogLost || len(answer.Tail.Lines) != 5 || !answer.Tail.Truncated {
			t.Errorf("%+v", answer)
		}
	})
}

// TestStop_GoesBeforeSubmissions that wait for a head which is slow to take them.
func TestStop_GoesBeforeSubmissions(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		b.Want(name("a"), wanted("a", nil))
		b.Pass(time.Minute)
		head.set(func(h *scripted) { h.Always[submit] = fault{Late: 3 * time.Second} })
		head.Verbs()
		for _, job := range []string{"b", "c", "d", "e"} {
			b.Want(name(job), wanted(job, nil))
		}
		b.Pass(100 * time.Millisecond)
		b.Want(name("a"), wanted("a", func(w *Want) { w.Stop = true }))
		b.Pass(3 * time.Second)
		if verbs := head.Verbs(); !slices.Contains(verbs, stop) || slices.Index(verbs, stop) > 6 {
			t.Errorf("beside submissions of 3 s it was stopped by %v", verbs)
		}
		b.Pass(20 * time.Second)
		for _, job := range []string{"b", "c", "d", "e"} {
			if b.last(job).Submitted.IsZero() {
				t.Errorf("%s was not submitted", job)
			}
		}
	})
}

// TestDue_IsBefore: the earlier turn, but of those that are due what stops a run.
func TestDue_IsBefore(t *testing.T) {
	now := time.Unix(100, 0)
	at := func(second int64, stops bool) due { return due{time.Unix(second, 0), stops} }
	for _, c := range []struct {
		name      string
		one, two  due
		isBefore  bool
		otherwise bool
	}{
		{"the earlier one", at(90, false), at(95, false), true, false},
		{"of two stops the earlier one", at(90, true), at(95, true), true, false},
		{"a stop that is due", at(95, true), at(90, false), true, false},
		{"a stop that is due just now", at(100, true), at(90, false), true, false},
		{"a stop that is not due", at(101, true), at(90, false), false, true},
		{"of two that are not due the earlier one", at(102, true), at(101, false), false, true},
		{"two at once", at(90, false), at(90, false), false, false},
	} {
		if one, two := c.one.isBefore(c.two, now), c.two.isBefore(c.one, now); one != c.isBefore || two != c.otherwise {
			t.Errorf("%s: %t, and the other way %t", c.name, one, two)
		}
	}
}
