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
		b.pass(time.Millisecond)
		head.verbs()
		for _, c := range []struct {
			pass        time.Duration
			least, most int
		}{
			{time.Second, 3, 4}, {9 * time.Second, 20, 26}, {20 * time.Second, 8, 14}, {time.Minute, 19, 22},
		} {
			b.pass(c.pass)
			if n := len(head.verbs()); n < c.least || n > c.most {
				t.Errorf("asked %d times in %s", n, c.pass)
			}
		}
		head.job("run-of-a", headclient.JobRunning)
		b.pass(3 * time.Second)
		head.verbs()
		b.pass(time.Second)
		if n := len(head.verbs()); n < 2 {
			t.Errorf("asked %d times in the seconds after a change", n)
		}
		b.pass(time.Minute)
		head.verbs()
		for range 30 { // a head that plays with statuses does not set the pace
			head.job("run-of-a", headclient.JobPending)
			b.pass(time.Second)
			head.job("run-of-a", headclient.JobRunning)
			b.pass(time.Second)
		}
		if n := len(head.verbs()); n > 21 {
			t.Errorf("asked %d times in a minute of statuses that go back and forth", n)
		}
		if n := head.dialed; n != 1 {
			t.Errorf("%d conversations", n)
		}
	})
}

// TestStartingHead: one that refuses connections is met half a second after it does not.
func TestStartingHead(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		head.down = true
		b.Want(name("a"), wanted("a", func(w *Want) { w.ID = "" }))
		b.pass(20 * time.Second)
		if answer := b.last("a"); answer.Failure != headclient.Unavailable || !answer.At.IsZero() || answer.FailingSince.IsZero() || b.wakes()["a"] != 1 {
			t.Errorf("%+v", answer)
		}
		if n := head.count(session); n < 39 || n > 41 {
			t.Errorf("asked %d times in 20 s", n)
		}
		head.set(func(h *scripted) { h.down = false })
		b.pass(500 * time.Millisecond)
		if answer := b.last("a"); answer.Failure != "" || answer.Session.Name != "s1" || b.wakes()["a"] != 1 {
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
		"it refuses connections": {func(h *scripted) { h.down = true }, 11, 13},
		"it hangs":               {func(h *scripted) { h.always[session] = fault{hung: true} }, 5, 7},
	} {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, b *bench) {
				head := b.head("a:1")
				head.set(c.change)
				b.Want(name("a"), wanted("a", nil))
				b.pass(time.Minute)
				if n := len(head.verbs()); what == "it hangs" && n != 8 {
					t.Errorf("asked %d times in the first minute", n)
				}
				b.pass(4 * time.Minute)
				head.verbs()
				b.pass(time.Minute)
				if n := len(head.verbs()); n < c.least || n > c.most {
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
		head.set(func(h *scripted) { h.down = false })
		b.pass(10 * time.Second)
		head.verbs()
		head.set(func(h *scripted) { h.life++; h.down = true })
		b.pass(6 * time.Second)
		if n := head.count(session); n < 3 {
			t.Errorf("asked who it is %d times in 6 s", n)
		}
	})
}

// failing is a head that has failed for a minute, after it took the run of job a.
func failing(b *bench) *scripted {
	head := b.head("a:1")
	b.Want(name("a"), wanted("a", nil))
	b.pass(time.Second)
	b.wakes()
	head.set(func(h *scripted) { h.life++; h.down = true })
	b.pass(time.Minute)
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
		if wakes := b.wakes(); wakes["a"] < 1 || wakes["a"] > 2 {
			t.Errorf("wakes: %v", wakes)
		}
		head.verbs()
		b.pass(50 * time.Second)
		if n := len(head.verbs()); n < 9 || n > 11 || len(b.wakes()) > 0 {
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
		b.pass(time.Minute)
		b.wakes()
		head.set(func(h *scripted) { h.life++; h.always[session] = fault{hung: true} })
		b.pass(5 * time.Second)
		b.Want(name("c"), wanted("c", nil))
		b.pass(10 * time.Second)
		wakes := b.wakes()
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
		b.head("a:1").always[submit] = fault{late: time.Second}
		for _, job := range []string{"a", "b"} {
			b.Want(name(job), wanted(job, nil))
		}
		b.pass(500 * time.Millisecond)
		if wakes := b.wakes(); len(wakes) > 0 {
			t.Errorf("wakes: %v", wakes)
		}
	})
}

// TestLostLinesAreTold when the head has failed for so long that they are given up.
func TestLostLinesAreTold(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		b.Want(name("a"), wanted("a", nil))
		b.pass(time.Second)
		head.set(func(h *scripted) { h.faults[tail] = []fault{{lost: true}}; h.always[session] = fault{hung: true} })
		head.job("run-of-a", headclient.JobSucceeded)
		b.pass(8 * time.Second)
		if wakes := b.wakes(); wakes["a"] == 0 || b.last("a").Tailed {
			t.Errorf("after the second try: %v, %+v", wakes, b.last("a"))
		}
		b.pass(6 * time.Second)
		if wakes := b.wakes(); wakes["a"] != 1 || !b.last("a").LogLost {
			t.Errorf("after the third: %v, %+v", wakes, b.last("a"))
		}
	})
}

// TestNewsForAFailingHead: it is tried at once, and those who said it hear what came of it.
func TestNewsForAFailingHead(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := failing(b)
		for job, change := range map[string]func(*Want){"a": func(w *Want) { w.Stop = true }, "b": nil} {
			b.wakes()
			head.verbs()
			b.Want(name(job), wanted(job, change))
			b.pass(time.Millisecond)
			if wakes := b.wakes(); len(head.verbs()) != 1 || !maps.Equal(wakes, map[string]int{job: 1}) || b.last(job).Failure != headclient.Unavailable {
				t.Errorf("%s hears %+v: %v", job, b.last(job), wakes)
			}
		}
		b.Want(name("b"), wanted("b", nil))
		b.pass(time.Millisecond)
		if verbs := head.verbs(); len(verbs) > 0 {
			t.Errorf("for what is no news: %v", verbs)
		}
		head.set(func(h *scripted) { h.down = false })
		b.pass(6 * time.Second)
		for job, status := range map[string]headclient.JobStatus{"a": headclient.JobStopped, "b": headclient.JobRunning} {
			if answer := b.last(job); answer.Failure != "" || answer.Err != nil || !answer.FailingSince.IsZero() || answer.Job.Status != status {
				t.Errorf("%s: %+v", job, answer)
			}
		}
		if diff := cmp.Diff(map[string]int{"a": 1, "b": 1}, b.wakes()); diff != "" {
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
		b.pass(time.Second)
		b.wakes()
		head.set(func(h *scripted) { h.garbled = "bad" })
		b.pass(time.Minute)
		if bad := b.last("b"); bad.Failure != headclient.Protocol || time.Since(bad.FailingSince) < 50*time.Second {
			t.Errorf("%+v", bad)
		}
		if good := b.last("a"); good.Failure != "" || time.Since(good.Asked) > 4*time.Second {
			t.Errorf("%+v", good)
		}
		if wakes := b.wakes(); wakes["a"] > 0 || wakes["b"] != 1 {
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
		b.pass(time.Second)
		if wakes := b.wakes(); wakes["a"] != 1 || wakes["b"] != 1 {
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
			b.pass(10 * time.Second)
			if wakes := b.wakes(); wakes["a"] != 1 || len(wakes) != 1 {
				t.Errorf("%s: %v", what, wakes)
			}
			head.set(func(h *scripted) {
				h.jobs["run-of-a"] = headclient.Job{ID: "run-of-a", Status: headclient.JobRunning, Metadata: wanted("a", nil).Submission.Metadata}
			})
			b.pass(10 * time.Second)
			b.wakes()
		}
		b.pass(5 * time.Minute)
		if wakes := b.wakes(); len(wakes) > 0 {
			t.Errorf("for nothing: %v", wakes)
		}
		head.replace("s2")
		b.pass(10 * time.Second)
		if wakes := b.wakes(); wakes["a"] == 0 || wakes["b"] == 0 || b.last("b").Session.Name != "s2" {
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
		b.pass(time.Second)
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
			b.pass(time.Second)
			if n := b.conversations(); b.last("a").At.IsZero() || n != 1 {
				t.Errorf("%s: %+v, %d heads are asked", what, b.last("a"), n)
			}
			b.Want(name("a"), wanted("a", nil))
			b.pass(time.Second)
		}
		if head.token != nil {
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
			b.pass(time.Second)
		}
		is := func(says string, times int) {
			t.Helper()
			if token, err := head.token(t.Context()); token != says || (err != nil) != (says == "") || read != times {
				t.Errorf("%q, %v, read %d times; not %q, %d", token, err, read, says, times)
			}
		}
		want("", errors.New("it is not there"))
		is("", 1)
		want("first", nil) // one that could not be read is read again
		is("first", 2)
		want("second", nil)
		is("first", 2)
		head.set(func(h *scripted) { h.life++ })
		b.pass(5 * time.Second)
		is("first", 2) // the next conversation begins with it
		head.set(func(h *scripted) { h.faults[session] = []fault{{err: failure(headclient.Unauthenticated)}}; h.life++ })
		b.pass(10 * time.Second)
		is("second", 3)
	})
}

// TestHundredsOfRuns on one head all begin and end, and are no load to it when calm.
func TestHundredsOfRuns(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		for _, verb := range []verb{session, submit, look, tail} {
			head.always[verb] = fault{late: 5 * time.Millisecond}
		}
		const runs = 500
		for i := range runs {
			b.Want(name(fmt.Sprint(i)), wanted(fmt.Sprint(i), nil))
		}
		b.pass(10 * time.Second)
		if n := len(head.begun); n != runs {
			t.Errorf("%d begin in 10 s", n)
		}
		b.pass(2 * time.Minute)
		head.verbs()
		b.pass(100 * time.Second)
		if n := len(head.verbs()); n < 4500 || n > 5200 {
			t.Errorf("asked %d times in 100 s", n)
		}
		head.set(func(h *scripted) {
			for id, job := range h.jobs {
				job.Status = headclient.JobSucceeded
				h.jobs[id] = job
			}
		})
		b.pass(20 * time.Second)
		for i := range runs {
			if !b.last(fmt.Sprint(i)).Tailed {
				t.Errorf("%d is not known to be over", i)
			}
		}
		b.pass(time.Second)
		if head.dialed != 1 || head.closed != 1 {
			t.Errorf("%d conversations, %d closed though nothing is to be asked", head.dialed, head.closed)
		}
	})
}

// hang adds heads that hang at some calls, and waits until that is known.
func hang(b *bench, hung map[verb]int) {
	for verb, n := range hung {
		for i := range n {
			address := fmt.Sprintf("%s-%d:1", verb, i)
			b.head(address).always[verb] = fault{hung: true}
			b.Want(name(address), wanted(address, func(w *Want) { w.At, w.Until = place(address), time.Now().Add(time.Hour) }))
		}
	}
	b.pass(time.Minute)
	for address := range b.heads {
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
		head.down = true
		if slow {
			head.faults[submit] = []fault{{late: timeout + 2*time.Second}}
		}
		b.Want(name("a"), wanted("a", nil))
		b.pass(1200 * time.Millisecond)
		head.set(func(h *scripted) { h.down = false })
		b.pass(20 * time.Second)
		head.job("run-of-a", headclient.JobSucceeded)
		b.pass(5 * time.Second)
		if !b.last("a").Tailed {
			t.Errorf("%+v", b.last("a"))
		}
		if n := len(b.quick); n > 1 {
			t.Errorf("%d calls are under way where none should hang", n)
		}
		for _, call := range head.calls {
			all = append(all, call.at.Sub(start))
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
