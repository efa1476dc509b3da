package jobs

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// misfortune is what befalls calls before a run is known to run.
type misfortune struct {
	befalls map[verb][]fault
	change  func(*scripted)
	// want are the calls until it is known that it runs.
	want []verb
}

func misfortunes() map[string]misfortune {
	return map[string]misfortune{
		"all is well": {want: []verb{session, submit, look}},
		"the reply is lost after it was taken": {
			befalls: map[verb][]fault{submit: {{Unheard: true}}},
			want:    []verb{session, submit, session, look},
		},
		"the submission is lost": {
			befalls: map[verb][]fault{submit: {{Lost: true}}},
			want:    []verb{session, submit, session, look, submit, look},
		},
		"the head hangs": {
			befalls: map[verb][]fault{submit: {{Hung: true}}},
			want:    []verb{session, submit, session, look, submit, look},
		},
		"it comes late, when it was given up": {
			befalls: map[verb][]fault{submit: {{Late: timeout + 2*time.Second}}},
			want:    []verb{session, submit, session, look, submit, look},
		},
		"it comes while it is looked for": {
			befalls: map[verb][]fault{submit: {{Late: timeout + 700*time.Millisecond}}, look: {{Late: time.Second}}},
			want:    []verb{session, submit, session, look},
		},
		"it comes twice": {
			befalls: map[verb][]fault{submit: {{Twice: true}}},
			want:    []verb{session, submit, look},
		},
		"the answer is nonsense": {
			befalls: map[verb][]fault{submit: {{Err: failure(headclient.Protocol)}}},
			want:    []verb{session, submit, session, look, submit, look},
		},
		"all is lost for a while": {
			befalls: map[verb][]fault{session: {{Lost: true}, {Hung: true}}, submit: {{Unheard: true}}, look: {{Lost: true}, {Unheard: true}}},
			want:    []verb{session, session, session, submit, session, look, session, look, session, look},
		},
		"it is there": {
			change: func(h *scripted) {
				h.jobs["run-of-a"] = headclient.Job{ID: "run-of-a", Status: headclient.JobRunning, Metadata: wanted("a", nil).Submission.Metadata}
				h.begun["s1/run-of-a"]++
			},
			want: []verb{session, submit, look},
		},
	}
}

// TestSubmittedOnce: whatever befalls calls, one run begins, and it is known that it did.
func TestSubmittedOnce(t *testing.T) {
	for what, c := range misfortunes() {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, b *bench) {
				head := b.head("a:1")
				if c.change != nil {
					c.change(head)
				}
				for verb, faults := range c.befalls {
					head.Faults[verb] = slices.Clone(faults)
				}
				b.Want(name("a"), wanted("a", nil))
				b.Pass(30 * time.Second)
				// The manages that only tell how often it is asked about.
				want := append(slices.Clone(c.want), look)
				if got := head.Verbs(); !slices.Equal(withoutRepeatedLooks(got), withoutRepeatedLooks(want)) {
					t.Errorf("calls: %v", got)
				}
				answer := b.last("a")
				if !answer.Known || answer.Submitted.IsZero() || answer.Foreign || answer.Failure != "" || answer.Job.Status != headclient.JobRunning {
					t.Errorf("%+v", answer)
				}
				if n := head.begun["s1/run-of-a"]; n != 1 || answer.Job.Metadata != nil {
					t.Errorf("%d runs, and it is kept that they are of %v", n, answer.Job.Metadata)
				}
			})
		})
	}
}

// obstacle is what forbids a submission.
type obstacle struct {
	want   func(*Want)
	change func(*scripted)
	right  func(Answer) bool
}

func obstacles() map[string]obstacle {
	unknown := func(a Answer) bool { return !a.Known && !a.Asked.IsZero() }
	return map[string]obstacle{
		"another session answers": {
			want:  func(w *Want) { w.Session = "s0" },
			right: func(a Answer) bool { return a.Session.Name == "s1" && a.Asked.IsZero() && !a.Known },
		},
		"it is bound to none": {
			want:  func(w *Want) { w.Session = "" },
			right: func(a Answer) bool { return a.Session.Name == "s1" && a.Asked.IsZero() },
		},
		"there is no permit": {
			want:  func(w *Want) { w.Until = time.Now() },
			right: unknown,
		},
		"the permit is over when the head answers": {
			want:   func(w *Want) { w.Until = time.Now().Add(3 * time.Second) },
			change: func(h *scripted) { h.Always[session] = fault{Late: 3 * time.Second} },
			right:  unknown,
		},
		"it is to end": {
			want:  func(w *Want) { w.Stop = true },
			right: unknown,
		},
		"it was accepted before": {
			want:  func(w *Want) { w.Submission = nil },
			right: unknown,
		},
		"only the session is to be known": {
			want: func(w *Want) { w.ID = "" },
			right: func(a Answer) bool {
				return a.Session == headclient.Session{Name: "s1", Version: "2.60.0"} && a.Asked.IsZero()
			},
		},
	}
}

func TestNotSubmitted(t *testing.T) {
	for what, c := range obstacles() {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, b *bench) {
				head := b.head("a:1")
				if c.change != nil {
					c.change(head)
				}
				b.Want(name("a"), wanted("a", c.want))
				b.Pass(30 * time.Second)
				if answer := b.last("a"); !c.right(answer) || answer.Failure != "" || answer.At.IsZero() {
					t.Errorf("%+v", answer)
				}
				if n := head.Count(submit) + head.Count(stop) + head.Count(kill); n > 0 || head.Count(session) < 1 {
					t.Errorf("calls: %v", head.Verbs())
				}
			})
		})
	}
}

// TestHeadReplacedBetweenSessionAndSubmission: the conversation breaks, and the new head is
// told nothing of a run that is bound to the former.
func TestHeadReplacedBetweenSessionAndSubmission(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		b.Want(name("a"), wanted("a", func(w *Want) { w.ID = "" }))
		b.Pass(time.Second)
		head.replace("s2")
		b.Want(name("a"), wanted("a", nil))
		b.Pass(time.Minute)
		if answer := b.last("a"); answer.Session.Name != "s2" || answer.Known || !answer.Submitted.IsZero() {
			t.Errorf("%+v", answer)
		}
		if len(head.begun) > 0 {
			t.Errorf("runs: %v", head.begun)
		}
		if n := head.Count(submit); n > 1 {
			t.Errorf("%d submissions, of which only the first could break", n)
		}
	})
}

// TestPermitIsRenewed: a run waits for a permit, and goes at once when it has one.
func TestPermitIsRenewed(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		b.Want(name("a"), wanted("a", func(w *Want) { w.Until = time.Time{} }))
		b.Pass(2 * time.Minute)
		if n := head.Count(submit); n > 0 {
			t.Fatalf("%d submissions without a permit", n)
		}
		b.Want(name("a"), wanted("a", nil))
		b.Pass(time.Millisecond)
		if answer := b.last("a"); !answer.Known || answer.Submitted.IsZero() {
			t.Errorf("%+v", answer)
		}
	})
}

// TestPermitAfterTheSubmission is no news.
func TestPermitAfterTheSubmission(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		b.Want(name("a"), wanted("a", nil))
		b.Pass(2 * time.Minute)
		head.Verbs()
		b.Want(name("a"), wanted("a", nil))
		b.Pass(time.Millisecond)
		if verbs := head.Verbs(); len(verbs) > 0 {
			t.Errorf("calls: %v", verbs)
		}
	})
}

// TestConversationGoesOn from one run to the next on the same head.
func TestConversationGoesOn(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		for _, id := range []string{"", "first", "second"} {
			b.Want(name("a"), wanted("a", func(w *Want) { w.ID, w.Submission.ID = id, id }))
			b.Pass(time.Second)
		}
		if head.Dialed != 1 || head.Count(submit) != 2 {
			t.Errorf("%d conversations, calls: %v", head.Dialed, head.Verbs())
		}
	})
}

// TestPermitIsLookedAtLast: a submission that waited for its slot until the permit was over,
// or until it was withdrawn, is not sent.
func TestPermitIsLookedAtLast(t *testing.T) {
	for what, then := range map[string]func(b *bench){
		"over":      func(b *bench) { b.Pass(2 * time.Minute) },
		"forgotten": func(b *bench) { b.Forget(name("a")) },
		"to end":    func(b *bench) { b.Want(name("a"), wanted("a", func(w *Want) { w.Stop = true })) },
		"withdrawn": func(b *bench) { b.Want(name("a"), wanted("a", func(w *Want) { w.Submission = nil })) },
	} {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, b *bench) {
				head := b.head("a:1")
				head.Always[session] = fault{Late: time.Second}
				b.Want(name("a"), wanted("a", nil))
				b.Want(name("b"), wanted("b", func(w *Want) { w.Submission = nil }))
				b.Pass(500 * time.Millisecond)
				for range slots - 1 { // the call under way has the last one
					b.quick <- struct{}{}
				}
				b.Pass(time.Millisecond)
				go func() { b.quick <- struct{}{} }() // takes it when that ends, before the next call
				b.Pass(time.Second)
				then(b)
				for range slots {
					<-b.quick
				}
				b.Pass(30 * time.Second)
				if n := head.Count(submit); n > 0 {
					t.Errorf("%d submissions", n)
				}
				if what != "forgotten" && b.last("a").Asked.IsZero() {
					t.Errorf("%+v", b.last("a"))
				}
			})
		})
	}
}

// TestForeignRunIsLeftAlone: somebody else's under the same name is told, and never stopped,
// whenever it is found.
func TestForeignRunIsLeftAlone(t *testing.T) {
	for what, found := range map[string][]verb{"at the submission": {session, submit, look}, "at the stop": {session, look}} {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, b *bench) {
				head := b.head("a:1")
				head.jobs["run-of-a"] = headclient.Job{ID: "run-of-a", Status: headclient.JobRunning, Metadata: map[string]string{MetadataPayload: "another"}}
				b.Want(name("a"), wanted("a", func(w *Want) { w.Stop = what == "at the stop" }))
				b.Pass(time.Second)
				if answer := b.last("a"); !answer.Foreign || !answer.Submitted.IsZero() || answer.Job.Status != headclient.JobRunning {
					t.Errorf("%+v", answer)
				}
				b.Want(name("a"), wanted("a", func(w *Want) { w.Stop = true }))
				b.Pass(time.Minute)
				if verbs := head.Verbs(); !slices.Equal(verbs, found) {
					t.Errorf("calls: %v", verbs)
				}
			})
		})
	}
}

// TestRefusalIsFinal: what the head would not take is not sent again.
func TestRefusalIsFinal(t *testing.T) {
	for _, kind := range []headclient.Kind{headclient.Refused, headclient.Invalid} {
		t.Run(string(kind), func(t *testing.T) {
			play(t, func(t *testing.T, b *bench) {
				head := b.head("a:1")
				head.Always[submit] = fault{Err: failure(kind)}
				b.Want(name("a"), wanted("a", nil))
				b.Pass(time.Minute)
				if answer := b.last("a"); answer.Refused != "because" || answer.Failure != "" || !answer.Submitted.IsZero() {
					t.Errorf("%+v", answer)
				}
				if verbs := head.Verbs(); !slices.Equal(verbs, []verb{session, submit}) {
					t.Errorf("calls: %v", verbs)
				}
			})
		})
	}
}

// TestLostInTheSameSession: what was known and is no more is told, and not made again.
func TestLostInTheSameSession(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		b.Want(name("a"), wanted("a", nil))
		b.Pass(time.Second)
		b.Woken()
		head.set(func(h *scripted) { clear(h.jobs) })
		b.Pass(5 * time.Second)
		answer := b.last("a")
		if answer.Known || answer.Submitted.IsZero() || answer.Asked.IsZero() || b.Woken()["a"] != 1 {
			t.Errorf("%+v", answer)
		}
		if n := head.Count(submit); n != 1 {
			t.Errorf("%d submissions", n)
		}
	})
}

// TestUnknownBeforeItWasTaken: that a head did not know a run is not said of the time after it
// took it, so that nobody thinks it lost.
func TestUnknownBeforeItWasTaken(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		head.Faults[submit] = []fault{{Lost: true}}
		head.Faults[look] = []fault{{}, {Lost: true}} // it looks before it tries again
		b.Want(name("a"), wanted("a", nil))
		b.Pass(600 * time.Millisecond)
		if answer := b.last("a"); answer.Submitted.IsZero() || answer.Known || !answer.Asked.IsZero() || answer.Failure != headclient.Unavailable {
			t.Errorf("%+v", answer)
		}
		b.Pass(5 * time.Second)
		if answer := b.last("a"); !answer.Known || answer.Asked.IsZero() || answer.Failure != "" {
			t.Errorf("%+v", answer)
		}
	})
}

// TestOperatorReplaced: the next one, who remembers nothing, finds what runs.
func TestOperatorReplaced(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		head.Faults[submit] = []fault{{Hung: true}, {Unheard: true}}
		for range 3 {
			b.Want(name("a"), wanted("a", nil))
			b.Pass(timeout / 2)
			b.End()
			b.start()
		}
		b.Want(name("a"), wanted("a", nil))
		b.Pass(time.Second)
		if answer := b.last("a"); answer.Submitted.IsZero() || !answer.Known {
			t.Errorf("%+v", answer)
		}
		if n := head.begun["s1/run-of-a"]; n != 1 {
			t.Errorf("%d runs", n)
		}
	})
}

// TestForgottenDuringACall: the call ends, and nothing of it is kept.
func TestForgottenDuringACall(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		head.Always[submit] = fault{Hung: true}
		b.Want(name("a"), wanted("a", nil))
		b.Pass(time.Second)
		if head.UnderWay[1] != 1 {
			t.Fatalf("%d calls are under way", head.UnderWay[1])
		}
		b.Forget(name("a"))
		synctest.Wait()
		if head.UnderWay[1] != 0 || head.Closed != head.Dialed {
			t.Errorf("%d calls under way, %d of %d connections closed", head.UnderWay[1], head.Closed, head.Dialed)
		}
		if _, ok := b.Last(name("a"), place("a:1").Head, "run-of-a"); ok {
			t.Error("something is known of it")
		}
		// Beside another run the call goes on, because the conversation is that one's too.
		b.Want(name("a"), wanted("a", nil))
		b.Pass(time.Second)
		b.Want(name("b"), wanted("b", nil))
		b.Forget(name("a"))
		b.Woken()
		head.set(func(h *scripted) { delete(h.Always, submit) })
		b.Pass(time.Minute)
		if wakes := b.Woken(); wakes["a"] > 0 || wakes["b"] == 0 || b.last("b").Submitted.IsZero() {
			t.Errorf("wakes: %v", wakes)
		}
	})
}

// TestLeaderEnds: nothing is asked after the end, whatever is wanted.
func TestLeaderEnds(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		head.Always[submit] = fault{Hung: true}
		b.Want(name("a"), wanted("a", nil))
		b.Pass(time.Second)
		b.End()
		head.Verbs()
		b.Want(name("b"), wanted("b", nil))
		b.Pass(time.Minute)
		if verbs := head.Verbs(); len(verbs) > 0 {
			t.Errorf("after the end: %v", verbs)
		}
		b.Forget(name("b"))
	})
}

// TestBeforeTheStart: what is wanted before is asked after, and nothing before.
func TestBeforeTheStart(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		early := New(b.dialBy(0), nil, b.clock)
		early.Want(name("a"), wanted("a", nil))
		b.Pass(time.Minute)
		if head.Dialed > 0 {
			t.Error("a watch that was not started asks")
		}
		early.Forget(name("a"))
		early.Forget(name("a"))
	})
}
