package jobs

import (
	"slices"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/launcher"
)

// delivery is what befalls the package of a run.
type delivery struct {
	befalls map[verb][]fault
	change  func(*scripted)
	// want are the calls until it is known that it runs.
	want []verb
}

func deliveries() map[string]delivery {
	return map[string]delivery{
		"all is well": {want: []verb{session, hasPackage, upload, submit, look}},
		"it is there": {
			change: func(h *scripted) { h.packages["package-of-run-of-a.zip"] = "archive of run-of-a" },
			want:   []verb{session, hasPackage, submit, look},
		},
		"the question is lost": {
			befalls: map[verb][]fault{hasPackage: {{Lost: true}}},
			want:    []verb{session, hasPackage, session, hasPackage, upload, submit, look},
		},
		"the head hangs at the question": {
			befalls: map[verb][]fault{hasPackage: {{Hung: true}}},
			want:    []verb{session, hasPackage, session, hasPackage, upload, submit, look},
		},
		"the upload is lost": {
			befalls: map[verb][]fault{upload: {{Lost: true}}},
			want:    []verb{session, hasPackage, upload, session, hasPackage, upload, submit, look},
		},
		"the reply of the upload is lost": {
			befalls: map[verb][]fault{upload: {{Unheard: true}}},
			want:    []verb{session, hasPackage, upload, session, hasPackage, submit, look},
		},
		"the upload comes twice": {
			befalls: map[verb][]fault{upload: {{Twice: true}}},
			want:    []verb{session, hasPackage, upload, submit, look},
		},
		"the upload comes late, when it was given up": {
			befalls: map[verb][]fault{upload: {{Late: timeout + 2*time.Second}}},
			want:    []verb{session, hasPackage, upload, session, hasPackage, upload, submit, look},
		},
		"the answer to the upload is nonsense": {
			befalls: map[verb][]fault{upload: {{Err: failure(headclient.Protocol)}}},
			want:    []verb{session, hasPackage, upload, session, hasPackage, upload, submit, look},
		},
		"the submission is lost": {
			befalls: map[verb][]fault{submit: {{Lost: true}}},
			want:    []verb{session, hasPackage, upload, submit, session, look, hasPackage, submit, look},
		},
		"the reply of the submission is lost": {
			befalls: map[verb][]fault{submit: {{Unheard: true}}},
			want:    []verb{session, hasPackage, upload, submit, session, look},
		},
	}
}

// TestGang_HasItsPackageFirst: the head is asked for it right before the submission, whatever befalls the calls, and the
// run begins once.
func TestGang_HasItsPackageFirst(t *testing.T) {
	for what, c := range deliveries() {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, b *bench) {
				head := b.head("a:1")
				for verb, faults := range c.befalls {
					head.Faults[verb] = slices.Clone(faults)
				}
				if c.change != nil {
					c.change(head)
				}
				b.Want(name("a"), wanted("a", gang))
				b.Pass(20 * time.Second)
				if verbs := head.Verbs(); !slices.Equal(verbs[:min(len(verbs), len(c.want))], c.want) {
					t.Errorf("calls: %v", verbs)
				}
				if answer := b.last("a"); !answer.Known || answer.Failure != "" || head.begun["s1/run-of-a"] != 1 {
					t.Errorf("%+v, %d runs", answer, head.begun["s1/run-of-a"])
				}
			})
		})
	}
}

// TestGang_PackageThatIsRefused ends the submission.
func TestGang_PackageThatIsRefused(t *testing.T) {
	for _, kind := range []headclient.Kind{headclient.Refused, headclient.Invalid} {
		t.Run(string(kind), func(t *testing.T) {
			play(t, func(t *testing.T, b *bench) {
				head := b.head("a:1")
				head.Always[upload] = fault{Err: failure(kind)}
				b.Want(name("a"), wanted("a", gang))
				b.Pass(time.Minute)
				if answer := b.last("a"); answer.Refused != "because" || answer.Failure != "" || head.Count(submit) > 0 || head.Count(upload) != 1 {
					t.Errorf("%+v, calls: %v", answer, head.Verbs())
				}
			})
		})
	}
}

// TestGang_PermitEndsWhileThePackageIsUploaded: nothing is submitted after it, and all goes on with the next permit.
func TestGang_PermitEndsWhileThePackageIsUploaded(t *testing.T) {
	for _, slow := range []verb{hasPackage, upload} {
		t.Run(string(slow), func(t *testing.T) {
			play(t, func(t *testing.T, b *bench) {
				head := b.head("a:1")
				head.Faults[slow] = []fault{{Late: 3 * time.Second}}
				short := func(w *Want) { gang(w); w.Until = time.Now().Add(2 * time.Second) }
				b.Want(name("a"), wanted("a", short))
				b.Pass(time.Minute)
				verbs := head.Verbs()
				if slices.Contains(verbs, submit) || slow == hasPackage && slices.Contains(verbs, upload) {
					t.Errorf("calls: %v", verbs)
				}
				b.Want(name("a"), wanted("a", gang))
				b.Pass(time.Second)
				if answer := b.last("a"); !answer.Known || head.begun["s1/run-of-a"] != 1 {
					t.Errorf("%+v", answer)
				}
			})
		})
	}
}

// TestGang_IsToEndWhileItsPackageIsUploaded: nothing is submitted.
func TestGang_IsToEndWhileItsPackageIsUploaded(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		head.Faults[upload] = []fault{{Late: 3 * time.Second}}
		b.Want(name("a"), wanted("a", gang))
		b.Pass(time.Second)
		b.Want(name("a"), wanted("a", func(w *Want) { gang(w); w.Stop = true }))
		b.Pass(10 * time.Second)
		if answer := b.last("a"); head.Count(submit) > 0 || answer.Known || answer.Asked.IsZero() {
			t.Errorf("%+v, calls: %v", answer, head.Verbs())
		}
	})
}

// TestGang_PackageThatChangesWhileItIsUploaded: the other one is delivered before the submission, which names that.
func TestGang_PackageThatChangesWhileItIsUploaded(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		head.Faults[upload] = []fault{{Late: 3 * time.Second}}
		b.Want(name("a"), wanted("a", gang))
		b.Pass(time.Second)
		b.Want(name("a"), wanted("a", func(w *Want) { gang(w); w.Package = &Package{Name: "another.zip", Archive: []byte("another")} }))
		b.Pass(20 * time.Second)
		verbs := head.Verbs()
		before := verbs[:max(0, slices.Index(verbs, submit))]
		uploads := len(slices.DeleteFunc(slices.Clone(before), func(v verb) bool { return v != upload }))
		if uploads != 2 || head.packages["another.zip"] != "another" || head.begun["s1/run-of-a"] != 1 {
			t.Errorf("%d uploads before the submission, %d runs, calls: %v", uploads, head.begun["s1/run-of-a"], verbs)
		}
	})
}

// reports counts the calls for reports, and fails where two were less than 2 s apart.
func reports(t *testing.T, head *scripted) (n int) {
	t.Helper()
	head.Lock()
	defer head.Unlock()
	var former time.Time
	for _, call := range head.Calls {
		if call.Verb != report {
			continue
		}
		if n++; call.At.Sub(former) < 2*time.Second {
			t.Errorf("a report is read %v after another one", call.At.Sub(former))
		}
		former = call.At
	}
	return n
}

// TestReport_IsReadBesideTheJob: not before the driver runs, then every 2 to 3 s, and it wakes its job where it means
// something new.
func TestReport_IsReadBesideTheJob(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		head.pending = true
		head.says("run-of-a", launcher.Running, 7) // by somebody else
		b.Want(name("a"), wanted("a", gang))
		b.Want(name("b"), wanted("b", nil))
		b.Pass(10 * time.Second)
		if head.Count(report) > 0 || b.last("a").Reported {
			t.Errorf("while it waits: %+v", b.last("a"))
		}
		head.set(func(h *scripted) { delete(h.reports, "run-of-a") })
		head.job("run-of-a", headclient.JobRunning)
		b.Pass(time.Minute)
		if answer := b.last("a"); answer.Reported || answer.Failure != "" || answer.Job.Status != headclient.JobRunning {
			t.Errorf("before the first report: %+v", answer)
		}
		b.Woken()
		head.says("run-of-a", launcher.Gathering, 0)
		b.Pass(4 * time.Second)
		if answer := b.last("a"); !answer.Reported || answer.Report.State != launcher.Gathering || b.WokenOnly(t, "a") != 1 {
			t.Errorf("after the first report: %+v", answer)
		}
		head.says("run-of-a", launcher.Running, 1)
		b.Pass(4 * time.Second)
		if answer := b.last("a"); answer.Report.State != launcher.Running || answer.Report.Round != 1 || b.WokenOnly(t, "a") != 1 {
			t.Errorf("after the second report: %+v", answer)
		}
		b.Pass(time.Minute)
		if n := b.Wakes(); n > 0 {
			t.Errorf("%d wakes for nothing", n)
		}
		if n := reports(t, head); n < 40 || n > 64 {
			t.Errorf("%d reports were read in 130 s", n)
		}
	})
}

// TestReport_ThatIsNoneIsLeftOut: what was read before stays.
func TestReport_ThatIsNoneIsLeftOut(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		head.says("run-of-a", launcher.Running, 1)
		b.Want(name("a"), wanted("a", gang))
		b.Pass(5 * time.Second)
		b.Woken()
		for _, said := range []string{"nonsense", `{"version": 2, "state": "Ended"}`, ""} {
			head.set(func(h *scripted) { h.reports["run-of-a"] = said })
			b.Pass(10 * time.Second)
		}
		head.set(func(h *scripted) { delete(h.reports, "run-of-a") })
		b.Pass(10 * time.Second)
		if answer := b.last("a"); !answer.Reported || answer.Report.State != launcher.Running || answer.Failure != "" || b.Wakes() > 0 {
			t.Errorf("%+v", answer)
		}
	})
}

// TestReport_ThatCannotBeReadHidesNothing: the head's answers about its jobs go on, and its GCS is left alone for up to
// 30 s.
func TestReport_ThatCannotBeReadHidesNothing(t *testing.T) {
	for what, f := range map[string]fault{
		"it hangs": {Hung: true}, "it is lost": {Lost: true}, "the token is wrong": {Err: failure(headclient.Unauthenticated)},
	} {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, b *bench) {
				head := b.head("a:1")
				for _, job := range []string{"a", "b", "c"} {
					head.says("run-of-"+job, launcher.Running, 1)
					b.Want(name(job), wanted(job, gang))
				}
				b.Pass(5 * time.Second)
				head.set(func(h *scripted) { h.Always[report] = f })
				b.Woken()
				b.Pass(2 * time.Minute)
				head.Verbs()
				b.Pass(time.Minute)
				if n := head.Count(report); n < 1 || n > 3 {
					t.Errorf("tried %d times in a minute", n)
				}
				for _, job := range []string{"a", "b", "c"} {
					if answer := b.last(job); answer.Failure != "" || time.Since(answer.Asked) > 9*time.Second || !answer.Reported {
						t.Errorf("%s: %+v", job, answer)
					}
				}
				if n := b.Wakes(); n > 0 {
					t.Errorf("%d wakes for nothing", n)
				}
				head.set(func(h *scripted) { delete(h.Always, report) })
				head.says("run-of-c", launcher.Gathering, 1)
				b.Pass(40 * time.Second)
				if answer := b.last("c"); answer.Report.State != launcher.Gathering {
					t.Errorf("when it can be read again: %+v", answer)
				}
				head.set(func(h *scripted) { h.Faults[report] = []fault{{Lost: true}} })
				head.says("run-of-c", launcher.Running, 1)
				b.Pass(12 * time.Second)
				if answer := b.last("c"); answer.Report.State != launcher.Running {
					t.Errorf("after a first failure: %+v", answer)
				}
			})
		})
	}
}

// last is what befalls the last report of a run.
type last struct {
	befalls []fault
	output  []fault // befalls its last lines
	change  func(*scripted)
	reads   int
	state   launcher.State // Running is that of the report before
}

func lasts() map[string]last {
	return map[string]last{
		"all is well":       {reads: 1, state: launcher.Ended},
		"at the third time": {befalls: []fault{{Hung: true}, {Lost: true}}, reads: 3, state: launcher.Ended},
		"never":             {befalls: []fault{{Hung: true}, {Lost: true}, {Unheard: true}}, reads: 3, state: launcher.Running},
		"never, and its output at the third time": {
			befalls: []fault{{Lost: true}, {Lost: true}, {Lost: true}}, output: []fault{{Lost: true}, {Lost: true}}, reads: 3, state: launcher.Running,
		},
		"refused": {befalls: []fault{{Err: failure(headclient.Unsupported)}}, reads: 1, state: launcher.Running},
		"it is gone": {
			change: func(h *scripted) { clear(h.reports) }, reads: 1, state: launcher.Running,
		},
		"another head comes": {
			befalls: []fault{{Lost: true}}, change: func(h *scripted) { h.session.Name = "s2" }, reads: 1, state: launcher.Running,
		},
	}
}

// TestReport_IsReadOnceMoreAtTheEnd: before the last lines, so that an answer that is Tailed has both.
func TestReport_IsReadOnceMoreAtTheEnd(t *testing.T) {
	for what, c := range lasts() {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, b *bench) {
				head := b.head("a:1")
				head.output = lines(3)
				head.says("run-of-a", launcher.Running, 1)
				b.Want(name("a"), wanted("a", gang))
				b.Pass(5 * time.Second)
				head.says("run-of-a", launcher.Ended, 1)
				head.set(func(h *scripted) {
					h.Calls, h.Faults[report], h.Faults[tail] = nil, c.befalls, c.output
					if c.change != nil {
						c.change(h)
					}
				})
				head.job("run-of-a", headclient.JobSucceeded)
				b.Pass(30 * time.Second)
				answer := b.last("a")
				if !answer.Tailed || !answer.Reported || answer.Report.State != c.state || answer.Failure != "" {
					t.Errorf("%+v", answer)
				}
				if lost := answer.Session.Name == "s2"; answer.LogLost != lost {
					t.Errorf("its output is lost: %t", answer.LogLost)
				}
				if n := head.Count(report); n != c.reads {
					t.Errorf("tried %d times", n)
				}
				head.Verbs()
				b.Pass(time.Minute)
				if verbs := head.Verbs(); len(verbs) > 0 && answer.Session.Name == "s1" {
					t.Errorf("when all is known: %v", verbs)
				}
			})
		})
	}
}

// TestReport_IsOfTheRunAlone: nothing is read of a run that is not a gang, that is somebody else's, or in another session.
func TestReport_IsOfTheRunAlone(t *testing.T) {
	for what, c := range map[string]struct {
		want   func(*Want)
		change func(*scripted)
	}{
		"it is no gang":           {want: nil},
		"another session answers": {want: func(w *Want) { gang(w); w.Session = "s0" }},
		"it is somebody else's": {want: gang, change: func(h *scripted) {
			h.jobs["run-of-a"] = headclient.Job{ID: "run-of-a", Status: headclient.JobRunning}
		}},
	} {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, b *bench) {
				head := b.head("a:1")
				head.says("run-of-a", launcher.Running, 1)
				if c.change != nil {
					c.change(head)
				}
				b.Want(name("a"), wanted("a", c.want))
				b.Pass(20 * time.Second)
				head.job("run-of-a", headclient.JobFailed)
				b.Pass(20 * time.Second)
				if answer := b.last("a"); head.Count(report) > 0 || answer.Reported {
					t.Errorf("%+v", answer)
				}
			})
		})
	}
}

// TestReport_WhileItIsStopped: a gang that ends in its own time is still read.
func TestReport_WhileItIsStopped(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		head.dogged = true
		head.says("run-of-a", launcher.Running, 1)
		b.Want(name("a"), wanted("a", gang))
		b.Pass(5 * time.Second)
		b.Want(name("a"), wanted("a", func(w *Want) { gang(w); w.Stop = true }))
		b.Pass(5 * time.Second)
		head.says("run-of-a", launcher.Ended, 1)
		b.Pass(5 * time.Second)
		if answer := b.last("a"); answer.Report.State != launcher.Ended || answer.Job.Status != headclient.JobRunning || head.Count(stop) == 0 {
			t.Errorf("%+v", answer)
		}
	})
}

// TestHasNews_OfReports: what means something else wakes, and times alone do not.
func TestHasNews_OfReports(t *testing.T) {
	at := func(started int64, round int32) Answer {
		return Answer{Reported: true, Report: launcher.Report{State: launcher.Running, Round: round, Started: time.Unix(started, 0)}}
	}
	for name, c := range map[string]struct {
		before, after Answer
		want          bool
	}{
		"the first report": {Answer{}, at(1, 1), true},
		"the same":         {at(1, 1), at(1, 1), false},
		"another time":     {at(1, 1), at(2, 1), false},
		"another round":    {at(1, 1), at(1, 2), true},
	} {
		if got := HasNews(c.before, c.after); got != c.want {
			t.Errorf("%s is news: %t", name, got)
		}
	}
}
