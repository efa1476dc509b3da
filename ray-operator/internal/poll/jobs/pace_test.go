package jobs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// TestPace: soon after a change, less and less often without one.
func TestPace(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		head.pending = true
		b.Want(name("a"), wanted("a", nil))
		b.Pass(time.Millisecond)
		head.Verbs()
		for _, c := range []struct {
			pass        time.Duration
			least, most int
		}{
			{time.Second, 3, 4}, {9 * time.Second, 20, 26}, {20 * time.Second, 8, 14}, {time.Minute, 19, 22},
		} {
			b.Pass(c.pass)
			if n := len(head.Verbs()); n < c.least || n > c.most {
				t.Errorf("asked %d times in %s", n, c.pass)
			}
		}
		head.job("run-of-a", headclient.JobRunning)
		b.Pass(3 * time.Second)
		head.Verbs()
		b.Pass(time.Second)
		if n := len(head.Verbs()); n < 2 {
			t.Errorf("asked %d times in the seconds after a change", n)
		}
		b.Pass(time.Minute)
		head.Verbs()
		for range 30 { // a head that plays with statuses does not set the pace
			head.job("run-of-a", headclient.JobPending)
			b.Pass(time.Second)
			head.job("run-of-a", headclient.JobRunning)
			b.Pass(time.Second)
		}
		if n := len(head.Verbs()); n > 21 {
			t.Errorf("asked %d times in a minute of statuses that go back and forth", n)
		}
		if n := head.Dialed; n != 1 {
			t.Errorf("%d conversations", n)
		}
	})
}

// TestStartingHead: one that refuses connections is met half a second after it does not.
func TestStartingHead(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		head.Down = true
		b.Want(name("a"), wanted("a", func(w *Want) { w.ID = "" }))
		b.Pass(20 * time.Second)
		if answer := b.last("a"); answer.Failure != headclient.Unavailable || !answer.At.IsZero() || answer.FailingSince.IsZero() || b.Woken()["a"] != 1 {
			t.Errorf("%+v", answer)
		}
		if n := head.Count(session); n < 39 || n > 41 {
			t.Errorf("asked %d times in 20 s", n)
		}
		head.set(func(h *scripted) { h.Down = false })
		b.Pass(500 * time.Millisecond)
		if answer := b.last("a"); answer.Failure != "" || answer.Session.Name != "s1" || b.Woken()["a"] != 1 {
			t.Errorf("%+v", answer)
		}
	})
}

// TestHeadThatNeverAnswers is asked less and less often.
func TestHeadThatNeverAnswers(t *testing.T) {
	for what, c := range map[string]struct {
		change      func(*scripted)
		least, most int // tries in the sixth minute
	}{
		"it refuses connections": {func(h *scripted) { h.Down = true }, 11, 13},
		"it hangs":               {func(h *scripted) { h.Always[session] = fault{Hung: true} }, 5, 7},
	} {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, b *bench) {
				head := b.head("a:1")
				head.set(c.change)
				b.Want(name("a"), wanted("a", nil))
				b.Pass(time.Minute)
				if n := len(head.Verbs()); what == "it hangs" && n != 8 {
					t.Errorf("asked %d times in the first minute", n)
				}
				b.Pass(4 * time.Minute)
				head.Verbs()
				b.Pass(time.Minute)
				if n := len(head.Verbs()); n < c.least || n > c.most {
					t.Errorf("asked %d times in the sixth minute", n)
				}
			})
		})
	}
}

// TestHeadFailsAgain: a head that has answered in between is left alone as after the first
// failure.
func TestHeadFailsAgain(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := failing(b)
		head.set(func(h *scripted) { h.Down = false })
		b.Pass(10 * time.Second)
		head.Verbs()
		head.set(func(h *scripted) { h.Life++; h.Down = true })
		b.Pass(6 * time.Second)
		if n := head.Count(session); n < 3 {
			t.Errorf("asked who it is %d times in 6 s", n)
		}
	})
}

// failing is a head that has failed for a minute, after it took the run of job a.
func failing(b *bench) *scripted {
	head := b.head("a:1")
	b.Want(name("a"), wanted("a", nil))
	b.Pass(time.Second)
	b.Woken()
	head.set(func(h *scripted) { h.Life++; h.Down = true })
	b.Pass(time.Minute)
	return head
}

// TestFailingHead: one that failed is left alone for up to 5 s, and what it said stays.
func TestFailingHead(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := failing(b)
		answer := b.last("a")
		if answer.Failure != headclient.Unavailable || answer.Err == nil || !answer.Known || answer.Job.Status != headclient.JobRunning {
			t.Errorf("%+v", answer)
		}
		if late := answer.FailingSince.Sub(answer.At); late < 0 || late > time.Second {
			t.Errorf("it fails %s after its last answer", late)
		}
		if wakes := b.Woken(); wakes["a"] < 1 || wakes["a"] > 2 {
			t.Errorf("wakes: %v", wakes)
		}
		head.Verbs()
		b.Pass(50 * time.Second)
		if n := len(head.Verbs()); n < 9 || n > 11 || len(b.Woken()) > 0 {
			t.Errorf("asked %d times in 50 s", n)
		}
	})
}

// TestFailureIsToldToAll: to those who were not asked about when it was seen, and to those who
// came while it was.
func TestFailureIsToldToAll(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		for _, job := range []string{"a", "b"} {
			b.Want(name(job), wanted(job, nil))
		}
		b.Pass(time.Minute)
		b.Woken()
		head.set(func(h *scripted) { h.Life++; h.Always[session] = fault{Hung: true} })
		b.Pass(5 * time.Second)
		b.Want(name("c"), wanted("c", nil))
		b.Pass(10 * time.Second)
		wakes := b.Woken()
		for _, job := range []string{"a", "b", "c"} {
			if answer := b.last(job); answer.Failure != headclient.Timeout || wakes[job] == 0 {
				t.Errorf("%s, %d wakes: %+v", job, wakes[job], answer)
			}
		}
	})
}

// TestNobodyIsWokenForNothing: who it is that answers is told with the first answer.
func TestNobodyIsWokenForNothing(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		b.head("a:1").Always[submit] = fault{Late: time.Second}
		for _, job := range []string{"a", "b"} {
			b.Want(name(job), wanted(job, nil))
		}
		b.Pass(500 * time.Millisecond)
		if wakes := b.Woken(); len(wakes) > 0 {
			t.Errorf("wakes: %v", wakes)
		}
	})
}

// TestLostLinesAreTold when the head has failed for so long that they are given up.
func TestLostLinesAreTold(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		b.Want(name("a"), wanted("a", nil))
		b.Pass(time.Second)
		head.set(func(h *scripted) { h.Faults[tail] = []fault{{Lost: true}}; h.Always[session] = fault{Hung: true} })
		head.job("run-of-a", headclient.JobSucceeded)
		b.Pass(8 * time.Second)
		if wakes := b.Woken(); wakes["a"] == 0 || b.last("a").Tailed {
			t.Errorf("after the second try: %v, %+v", wakes, b.last("a"))
		}
		b.Pass(6 * time.Second)
		if wakes := b.Woken(); wakes["a"] != 1 || !b.last("a").LogLost {
			t.Errorf("after the third: %v, %+v", wakes, b.last("a"))
		}
	})
}

// TestNewsForAFailingHead: it is tried at once, and those who said it hear what came of it.
func TestNewsForAFailingHead(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := failing(b)
		for job, change := range map[string]func(*Want){"a": func(w *Want) { w.Stop = true }, "b": nil} {
			b.Woken()
			head.Verbs()
			b.Want(name(job), wanted(job, change))
			b.Pass(time.Millisecond)
			if wakes := b.Woken(); len(head.Verbs()) != 1 || !maps.Equal(wakes, map[string]int{job: 1}) || b.last(job).Failure != headclient.Unavailable {
				t.Errorf("%s hears %+v: %v", job, b.last(job), wakes)
			}
		}
		b.Want(name("b"), wanted("b", nil))
		b.Pass(time.Millisecond)
		if verbs := head.Verbs(); len(verbs) > 0 {
			t.Errorf("for what is no news: %v", verbs)
		}
		head.set(func(h *scripted) { h.Down = false })
		b.Pass(6 * time.Second)
		for job, status := range map[string]headclient.JobStatus{"a": headclient.JobStopped, "b": headclient.JobRunning} {
			if answer := b.last(job); answer.Failure != "" || answer.Err != nil || !answer.FailingSince.IsZero() || answer.Job.Status != status {
				t.Errorf("%s: %+v", job, answer)
			}
		}
		if diff := cmp.Diff(map[string]int{"a": 1, "b": 1}, b.Woken()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestOneRunFails: what is wrong with the answers about one run is told of no other.
func TestOneRunFails(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		b.Want(name("a"), wanted("a", nil))
		b.Want(name("b"), wanted("b", func(w *Want) { w.ID = "bad" }))
		b.Pass(time.Second)
		b.Woken()
		head.set(func(h *scripted) { h.garbled = "bad" })
		b.Pass(time.Minute)
		if bad := b.last("b"); bad.Failure != headclient.Protocol || time.Since(bad.FailingSince) < 50*time.Second {
			t.Errorf("%+v", bad)
		}
		if good := b.last("a"); good.Failure != "" || time.Since(good.Asked) > 4*time.Second {
			t.Errorf("%+v", good)
		}
		if wakes := b.Woken(); wakes["a"] > 0 || wakes["b"] != 1 {
			t.Errorf("wakes: %v", wakes)
		}
	})
}

// TestWakes: the jobs whose answers mean something new, and no other.
func TestWakes(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		for _, job := range []string{"a", "b"} {
			b.Want(name(job), wanted(job, nil))
		}
		b.Pass(time.Second)
		if wakes := b.Woken(); wakes["a"] != 1 || wakes["b"] != 1 {
			t.Errorf("for the first answers: %v", wakes)
		}
		code := int32(3)
		change := func(change func(*headclient.Job)) func(h *scripted) {
			return func(h *scripted) {
				job := h.jobs["run-of-a"]
				change(&job)
				h.jobs["run-of-a"] = job
			}
		}
		for what, change := range map[string]func(h *scripted){
			"a status":       change(func(j *headclient.Job) { j.Status = "RESTING" }),
			"the end's code": change(func(j *headclient.Job) { j.ExitCode = &code }),
			"a message":      change(func(j *headclient.Job) { j.Message = "waiting" }),
			"a time":         change(func(j *headclient.Job) { j.Start = time.UnixMilli(1) }),
			"it is unknown":  func(h *scripted) { delete(h.jobs, "run-of-a") },
		} {
			for _, job := range []string{"a", "b"} { // saying the same again is no news
				b.Want(name(job), wanted(job, nil))
			}
			head.set(change)
			b.Pass(10 * time.Second)
			if wakes := b.Woken(); wakes["a"] != 1 || len(wakes) != 1 {
				t.Errorf("%s: %v", what, wakes)
			}
			head.set(func(h *scripted) {
				h.jobs["run-of-a"] = headclient.Job{ID: "run-of-a", Status: headclient.JobRunning, Metadata: wanted("a", nil).Submission.Metadata}
			})
			b.Pass(10 * time.Second)
			b.Woken()
		}
		b.Pass(5 * time.Minute)
		if wakes := b.Woken(); len(wakes) > 0 {
			t.Errorf("for nothing: %v", wakes)
		}
		head.replace("s2")
		b.Pass(10 * time.Second)
		if wakes := b.Woken(); wakes["a"] == 0 || wakes["b"] == 0 || b.last("b").Session.Name != "s2" {
			t.Errorf("for another session: %v", wakes)
		}
	})
}

// TestLastIsOfWhatIsWanted: no answer is taken for one of another head, run or session.
func TestLastIsOfWhatIsWanted(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		b.head("b:1")
		b.Want(name("a"), wanted("a", nil))
		b.Pass(time.Second)
		for head, id := range map[types.UID]string{"head-b:1": "run-of-a", "head-a:1": "another", "": ""} {
			if answer, ok := b.Last(name("a"), head, id); ok {
				t.Errorf("%s at %s: %+v", id, head, answer)
			}
		}
		for what, change := range map[string]func(*Want){
			"another run":     func(w *Want) { w.ID = "other" },
			"another session": func(w *Want) { w.Session = "s9" },
			"another head":    func(w *Want) { w.At = place("b:1") },
			"another address": func(w *Want) { w.At.Jobs = "b:1" },
			"with a token":    func(w *Want) { w.At.Token = func(context.Context) (string, error) { return "", nil } },
		} {
			want := wanted("a", change)
			b.Want(name("a"), want)
			if answer, ok := b.Last(name("a"), want.At.Head, want.ID); ok {
				t.Errorf("%s: %+v", what, answer)
			}
			b.Pass(time.Second)
			if n := b.conversations(); b.last("a").At.IsZero() || n != 1 {
				t.Errorf("%s: %+v, %d heads are asked", what, b.last("a"), n)
			}
			b.Want(name("a"), wanted("a", nil))
			b.Pass(time.Second)
		}
		if head.Token != nil {
			t.Error("a token is asked for without one")
		}
	})
}

// TestTokenIsReadOnce: reading it costs a call of somebody else's, so it is read again only once it was refused.
func TestTokenIsReadOnce(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		read := 0
		want := func(says string, err error) {
			b.Want(name("a"), wanted("a", func(w *Want) {
				w.At.Token = func(context.Context) (string, error) { read++; return says, err }
			}))
			b.Pass(time.Second)
		}
		is := func(says string, times int) {
			t.Helper()
			if token, err := head.Token(t.Context()); token != says || (err != nil) != (says == "") || read != times {
				t.Errorf("%q, %v, read %d times; not %q, %d", token, err, read, says, times)
			}
		}
		want("", errors.New("it is not there"))
		is("", 1)
		want("first", nil) // one that could not be read is read again
		is("first", 2)
		want("second", nil)
		is("first", 2)
		head.set(func(h *scripted) { h.Life++ })
		b.Pass(5 * time.Second)
		is("first", 2) // the next conversation begins with it
		head.set(func(h *scripted) { h.Faults[session] = []fault{{Err: failure(headclient.Unauthenticated)}}; h.Life++ })
		b.Pass(10 * time.Second)
		is("second", 3)
	})
}

// TestHundredsOfRuns on one head all begin and end, and are no load to it when calm.
func TestHundredsOfRuns(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		for _, verb := range []verb{session, submit, look, tail} {
			head.Always[verb] = fault{Late: 5 * time.Millisecond}
		}
		const runs = 500
		for i := range runs {
			b.Want(name(fmt.Sprint(i)), wanted(fmt.Sprint(i), nil))
		}
		b.Pass(10 * time.Second)
		if n := len(head.begun); n != runs {
			t.Errorf("%d begin in 10 s", n)
		}
		b.Pass(2 * time.Minute)
		head.Verbs()
		b.Pass(100 * time.Second)
		if n := len(head.Verbs()); n < 4500 || n > 5200 {
			t.Errorf("asked %d times in 100 s", n)
		}
		head.set(func(h *scripted) {
			for id, job := range h.jobs {
				job.Status = headclient.JobSucceeded
				h.jobs[id] = job
			}
		})
		b.Pass(20 * time.Second)
		for i := range runs {
			if !b.last(fmt.Sprint(i)).Tailed {
				t.Errorf("%d is not known to be over", i)
			}
		}
		b.Pass(time.Second)
		if head.Dialed != 1 || head.Closed != 1 {
			t.Errorf("%d conversations, %d closed though nothing is to be asked", head.Dialed, head.Closed)
		}
	})
}

// hang adds heads that hang at some calls, and waits until that is known.
func hang(b *bench, hung map[verb]int) {
	for verb, n := range hung {
		for i := range n {
			address := fmt.Sprintf("%s-%d:1", verb, i)
			b.head(address).Always[verb] = fault{Hung: true}
			b.Want(name(address), wanted(address, func(w *Want) {
				if w.At, w.Until = place(address), time.Now().Add(time.Hour); verb == upload {
					gang(w)
				}
			}))
		}
	}
	b.Pass(time.Minute)
	for address := range b.heads.All() {
		if answer := b.last(address); answer.Failure != headclient.Timeout {
			b.t.Errorf("%s: %+v", address, answer)
		}
	}
}

// moments are those of the calls to a head that starts beside heads that hang, is slow to
// take its first submission or not, and whose run succeeds.
func moments(t *testing.T, hung map[verb]int, slow bool) (all []time.Duration) {
	play(t, func(t *testing.T, b *bench) {
		hang(b, hung)
		start := time.Now()
		head := b.head("a:1")
		head.Down = true
		if slow {
			head.Faults[submit] = []fault{{Late: timeout + 2*time.Second}}
		}
		b.Want(name("a"), wanted("a", nil))
		b.Pass(1200 * time.Millisecond)
		head.set(func(h *scripted) { h.Down = false })
		b.Pass(20 * time.Second)
		head.job("run-of-a", headclient.JobSucceeded)
		b.Pass(5 * time.Second)
		if !b.last("a").Tailed {
			t.Errorf("%+v", b.last("a"))
		}
		if n := len(b.quick); n > 1 {
			t.Errorf("%d calls are under way where none should hang", n)
		}
		for _, call := range head.Calls {
			all = append(all, call.At.Sub(start))
		}
	})
	return all
}

// TestHungHeadsDelayNobody: beside heads that take calls and never answer, a good one's runs
// are submitted and seen to end at the same moments as without.
func TestHungHeadsDelayNobody(t *testing.T) {
	for what, c := range map[string]struct {
		hung map[verb]int
		slow bool
	}{
		"100 that do not say who they are":                      {map[verb]int{session: 100}, false},
		"100 that take no submission":                           {map[verb]int{submit: 100}, false},
		"100 that take no package":                              {map[verb]int{upload: 100}, false},
		"100 that do not say what they do":                      {map[verb]int{look: 100}, false},
		"300 of all sorts":                                      {map[verb]int{session: 100, submit: 100, look: 100}, false},
		"200 of other sorts than a head that was slow to begin": {map[verb]int{session: 100, look: 100}, true},
	} {
		t.Run(what, func(t *testing.T) {
			if diff := cmp.Diff(moments(t, nil, c.slow), moments(t, c.hung, c.slow)); diff != "" {
				t.Errorf("moments of calls: %s", diff)
			}
		})
	}
}
