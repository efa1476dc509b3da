package logs

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/portal/heads/headstest"
	"github.com/heliostat-dev/heliostat/portal/limits"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

const (
	processLog = "job-driver-s-worker-3-r1.log"
	listCall   = "GET /api/v0/logs"
)

// gather has a gang whose worker/3 has a log in round 1, and returns what names it.
func (b *bed) gather() ProcessReference {
	b.fake.Join(fakehead.Member{Instance: "a", Head: true})
	b.fake.SetLog("a", processLog, "one")
	b.putAttempts(b.attempt("s"))
	return ProcessReference{
		Job: JobReference{Namespace: headstest.Namespace, Name: "train", Attempt: 1}, On: b.on,
		Process: heads.Process{Submission: "s", Name: "worker/3"}, Round: 1,
	}
}

// process begins to read the log of a process.
func (b *bed) process(of ProcessReference, options Options) *told {
	r := &told{done: make(chan struct{})}
	b.goRead(r, func() error { return b.logs.ReadProcess(b.t.Context(), of, options, r.take) })
	return r
}

func TestReadProcess_FollowsUntilTheAttemptEnds(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		of := b.gather()
		now := b.process(of, Options{Offset: 1})
		now.ends(t, Running, reason.JobRunning.Code)
		followed := b.process(of, Options{Follow: true})
		pass(10 * time.Second)
		b.fake.SetLog("a", processLog, "one", "two")
		pass(10 * time.Second)
		if now.text() != "ne\n" || followed.text() != "one\ntwo\n" || now.codes() != "" {
			t.Errorf("until now it is %q after %q, followed %q", now.text(), now.codes(), followed.text())
		}
		b.fake.SetLog("a", processLog, "one", "two", "three")
		b.putAttempts(over(b.attempt("s"), reason.ProcessFailed.Code, exit(3)))
		if end := followed.ends(t, Failed, reason.ProcessFailed.Code); *end.ExitCode != 3 || followed.text() != "one\ntwo\nthree\n" {
			t.Errorf("it ends with %+v after %q", end, followed.text())
		}
		of.Round = 2
		gone := b.process(of, Options{})
		<-gone.done
		const want = "there is no log of round 2 of worker/3 in attempt 1: the process did not start, or its Ray node is gone with the log"
		refused := new(heads.Refusal)
		if !errors.As(gone.err, &refused) || refused.Sort != heads.NotFound || refused.Message != want || gone.end != nil {
			t.Errorf("a log that is not there ends with %+v, %v", gone.end, gone.err)
		}
	})
}

func TestReadProcess_NamesTheRoundThatItTook(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		of := b.gather()
		of.Round = 0
		b.fake.SetLog("a", strings.Replace(processLog, "r1", "r2", 1), "newest")
		r := b.process(of, Options{})
		r.ends(t, Running, reason.JobRunning.Code)
		const want = "this is round 2 of worker/3: it is the newest one"
		if said := r.notices[0]; r.text() != "newest\n" || said.Round != 2 || said.Message != want {
			t.Errorf("it is %q after %+v", r.text(), r.notices)
		}
		said := newest(of, heads.Round{Number: 2}, heads.Rounds{Silent: 1})
		if !strings.Contains(said.Message, "1 Ray node does not answer; a newer round may be there") {
			t.Errorf("where a node is silent it says %q", said.Message)
		}
	})
}

// TestReadProcess_EndsAsTheAttemptWhereTheClusterGoes: the operator says how the attempt ended, before or after that.
func TestReadProcess_EndsAsTheAttemptWhereTheClusterGoes(t *testing.T) {
	remove := func(b *bed) { b.RemoveCluster("demo") }
	for name, c := range map[string]struct {
		goes  func(b *bed)
		after time.Duration
	}{
		"the attempt ends with it":    {remove, 0},
		"the operator judges later":   {remove, time.Minute},
		"the head does not come back": {func(b *bed) { b.network.Lead(firstIP+":8265", nil) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, b *bed) {
				r := b.process(b.gather(), Options{Follow: true})
				pass(10 * time.Second)
				c.goes(b)
				b.network.Break()
				pass(c.after)
				b.putAttempts(over(b.attempt("s"), reason.ProcessFailed.Code, exit(3)))
				r.ends(t, Failed, reason.ProcessFailed.Code)
				if !strings.HasSuffix(r.codes(), reason.OutputGone.Code) || r.text() != "one\n" {
					t.Errorf("it ends after %q, %q", r.codes(), r.text())
				}
			})
		})
	}
}

func TestReadProcess_TakesNoOtherJobForItsOwn(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		r := b.process(b.gather(), Options{Follow: true})
		pass(10 * time.Second)
		b.putAttempts(over(b.attempt("of-another-job"), reason.JobSucceeded.Code, exit(0)))
		r.ends(t, Broken, reason.OutputGone.Code)
	})
}

func TestListRounds_SharesSearches(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		of := b.gather()
		for range 20 {
			b.process(of, Options{}).ends(t, Running, reason.JobRunning.Code)
		}
		if calls := b.fake.Calls(listCall); calls != 1 {
			t.Errorf("20 reads at once list files %d times", calls)
		}
		pass(2 * searchHolds)
		if _, err := b.logs.ListRounds(t.Context(), b.on, of.Process, limits.Holder{}); err != nil || b.fake.Calls(listCall) != 2 {
			t.Errorf("later they are listed %d times: %v", b.fake.Calls(listCall), err)
		}
		r := b.process(of, Options{Offset: 1, Tail: 1})
		if <-r.done; !errors.Is(r.err, ErrInvalid) || b.fake.Calls(listCall) != 2 {
			t.Errorf("options that are wrong are %v after %d lists", r.err, b.fake.Calls(listCall))
		}
	})
}

func TestListRounds_BoundsSearches(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		of := b.gather()
		b.fake.Delay(time.Second)
		var refused int
		done := make(chan error)
		const asked = 40
		for i := range asked {
			process := of.Process
			process.Name = "worker/" + string(rune('A'+i))
			go func() {
				_, err := b.logs.ListRounds(t.Context(), b.on, process, limits.Holder{User: "a"})
				done <- err
			}()
		}
		for range asked {
			if unavailable := new(heads.Unavailable); errors.As(<-done, &unavailable) && unavailable.Code == reason.OutputsCrowded.Code {
				refused++
			}
		}
		if refused != asked-searchBounds.User {
			t.Errorf("of %d searches at once %d are refused", asked, refused)
		}
	})
}
