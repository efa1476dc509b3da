package logs

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/portal/heads/headstest"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// ready is what a job's condition Ready says.
func ready(reason, message string) v1beta1.ClusterJobStatus {
	return v1beta1.ClusterJobStatus{Conditions: []metav1.Condition{
		{Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: message},
	}}
}

func TestReadJob_IsThatOfTheAttempt(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.submit("train-1", "echo one; exit 1")
		b.submit("train-2", "echo two; sleep 20")
		pass(2 * time.Second)
		first, second := over(b.attempt("train-1"), "EntrypointFailed", exit(1)), b.attempt("train-2")
		second.Number = 2
		b.putAttempts(first, second)
		r := b.job(t.Context(), 1, Options{Follow: true})
		if end := r.ends(t, Failed, "EntrypointFailed"); r.text() != b.file("train-1") || *end.ExitCode != 1 {
			t.Errorf("the first is %q, %+v", r.text(), end)
		}
		r = b.job(t.Context(), 0, Options{})
		if r.ends(t, Running, "JobRunning"); r.text() != b.file("train-2") {
			t.Errorf("the last is %q", r.text())
		}
		r = b.job(t.Context(), 0, Options{Follow: true})
		pass(5 * time.Second)
		third := b.attempt("train-3") // it stays with the one that was the last when it began
		third.Number = 3
		b.putAttempts(first, second, third)
		if r.ends(t, Succeeded, "JobSucceeded"); r.text() != b.file("train-2") {
			t.Errorf("followed it is %q", r.text())
		}
	})
}

func TestReadJob_WaitsForItsCluster(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.PutJob("train", ready("ClusterMissing", "there is no ComputeCluster demo in this namespace. Create it; waiting jobs and services then start by themselves"))
		now := b.job(t.Context(), 0, Options{})
		if end := now.ends(t, Pending, "ClusterMissing"); end.Remedy == "" || strings.Contains(end.Message, "Create it") {
			t.Errorf("it ends with %+v", end)
		}
		r := b.job(t.Context(), 0, Options{Follow: true})
		pass(time.Hour)
		b.PutJob("train", ready("ClusterStarting", "ComputeCluster demo has no head yet that accepts jobs: x"))
		pass(time.Minute)
		if r.codes() != "ClusterMissing ClusterStarting" {
			t.Errorf("the notices are %q", r.codes())
		}
		b.putAttempts(b.attempt("train-1"))
		pass(5 * time.Second) // it is bound, and Ray does not know it
		b.submit("train-1", "echo one")
		if r.ends(t, Succeeded, "JobSucceeded"); r.text() != b.file("train-1") || !strings.HasSuffix(r.codes(), " Submitting") {
			t.Errorf("it is %q after %s", r.text(), r.codes())
		}
	})
}

func TestReadJob_ThatIsNotThere(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		missing := func(attempt int32) {
			t.Helper()
			r := b.job(t.Context(), attempt, Options{Follow: true})
			if <-r.done; !errors.Is(r.err, ErrNotFound) || r.end != nil {
				t.Errorf("attempt %d is %v", attempt, r.err)
			}
		}
		missing(0)
		b.putAttempts()
		missing(2)
		b.putAttempts(b.attempt("train-1"))
		missing(2)
		r := b.job(t.Context(), -1, Options{})
		if <-r.done; !errors.Is(r.err, ErrInvalid) {
			t.Errorf("before the first it is %v", r.err)
		}
	})
}

// TestReadJob_OfAnEndWithoutAttempt: a job may be over before Ray has heard of it.
func TestReadJob_OfAnEndWithoutAttempt(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		for code, want := range map[string]Outcome{"Stopped": Stopped, "StartDeadlineExceeded": Failed} {
			status := ready(code, "it is over")
			at := metav1.Now()
			status.EndTime = &at
			b.PutJob("train", status)
			b.job(t.Context(), 0, Options{Follow: true}).ends(t, want, code)
		}
	})
}

func TestReadJob_ThatIsDeleted(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.PutJob("train", ready("ClusterStarting", "x"))
		r := b.job(t.Context(), 0, Options{Follow: true})
		pass(5 * time.Second)
		b.RemoveJob("train")
		r.ends(t, Broken, "OutputGone")
	})
}

func TestReadJob_WhoseOutputIsGone(t *testing.T) {
	gone := map[string]func(b *bed){
		"with its cluster": func(b *bed) { b.RemoveCluster("demo") },
		"with its head":    func(b *bed) { b.PutPod(headstest.Head(b.cluster, 2, secondIP)) },
		"in a suspension": func(b *bed) {
			b.PutCluster("demo", func(c *v1beta1.ComputeCluster) { c.Spec.Suspend = new(true) })
			b.RemovePod(headstest.Head(b.cluster, 1, "").Name)
		},
		"with its file": func(b *bed) { b.fake.RemoveOutput("train-1") },
		"forgotten":     func(b *bed) { b.fake.Restart() },
	}
	for name, lose := range gone {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, b *bed) {
				b.submit("train-1", "seq 9; exit 4")
				pass(3 * time.Second)
				lose(b)
				attempt := over(b.attempt("train-1"), "EntrypointFailed", exit(4))
				attempt.Message = "the entrypoint ended with exit code 4. Check its last lines in status.attempts"
				attempt.LastLines, attempt.LogState = []string{"7", "8", "9"}, v1beta1.LogTruncated
				b.putAttempts(attempt)
				for _, c := range []struct {
					options Options
					want    string
				}{
					{Options{}, "7\n8\n9\n"},
					{Options{Follow: true}, "7\n8\n9\n"},
					{Options{Tail: 2}, "8\n9\n"},
					{Options{Offset: 3}, ""}, // it has what was before
				} {
					r := b.job(t.Context(), 0, c.options)
					end := r.ends(t, Failed, "EntrypointFailed")
					if r.text() != c.want || r.codes() != "OutputGone" || *end.ExitCode != 4 || r.offset != c.options.Offset {
						t.Errorf("%+v is %q to %d after %s, %+v", c.options, r.text(), r.offset, r.codes(), end)
					}
					if isTold := strings.Contains(r.notices[0].Message, "which its status kept"); isTold != (c.want != "") {
						t.Errorf("%+v is told %q", c.options, r.notices[0].Message)
					}
				}
			})
		})
	}
}

// TestReadJob_LosesItsHead: the operator says what became of the attempt, and keeps its last lines a moment later.
func TestReadJob_LosesItsHead(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.submit("train-1", "echo one; hang")
		b.putAttempts(b.attempt("train-1"))
		pass(2 * time.Second)
		r := b.job(t.Context(), 0, Options{Follow: true})
		late := b.job(t.Context(), 0, Options{Follow: true, Offset: 1 << 40})
		late.ends(t, Broken, "OutputShorter")
		pass(2 * time.Second)
		said := b.file("train-1")
		b.RemovePod(headstest.Head(b.cluster, 1, "").Name)
		b.network.Lead(firstIP+":8265", nil)
		b.network.Break()
		pass(5 * time.Second)
		now := b.job(t.Context(), 0, Options{})
		var unavailable *heads.Unavailable
		if <-now.done; !errors.As(now.err, &unavailable) || !unavailable.Temporary {
			t.Errorf("who does not follow gets %v", now.err)
		}
		b.PutPod(headstest.Head(b.cluster, 2, secondIP))
		pass(5 * time.Second)
		attempt := over(b.attempt("train-1"), "HeadLost", nil)
		attempt.Message = "head pod demo-head is lost, and with it its Ray session: x"
		attempt.LogState = ""
		b.putAttempts(attempt)
		began := time.Now()
		end := r.ends(t, Failed, "HeadLost")
		if took := time.Since(began); took < linesWithin || took > 2*linesWithin {
			t.Errorf("its last lines were awaited for %s", took)
		}
		if r.text() != said || end.ExitCode != nil || !strings.HasSuffix(r.codes(), "HeadLost OutputGone") {
			t.Errorf("it is %q, after %s, %+v", r.text(), r.codes(), end)
		}
	})
}

// TestReadJob_SaysWhyItWasStopped: Ray knows only that it was.
func TestReadJob_SaysWhyItWasStopped(t *testing.T) {
	for code, c := range map[string]struct {
		message string
		want    Outcome
	}{
		"Stopped":          {"stopped by the annotation heliostat.dev/stop. Create a new ClusterJob to run it again", Stopped},
		"DeadlineExceeded": {"", Failed},
	} {
		t.Run(code, func(t *testing.T) {
			run(t, func(t *testing.T, b *bed) {
				b.submit("train-1", "echo one; hang")
				b.putAttempts(b.attempt("train-1"))
				pass(2 * time.Second)
				r := b.job(t.Context(), 0, Options{Follow: true})
				pass(2 * time.Second)
				attempt := b.attempt("train-1")
				attempt.Reason, attempt.Message = code, c.message
				b.putAttempts(attempt)
				if _, err := b.heads.StopSubmission(t.Context(), b.on, "train-1"); err != nil {
					t.Fatal(err)
				}
				if end := r.ends(t, c.want, code); (end.Remedy != "") != (c.message != "") || r.text() != b.file("train-1") {
					t.Errorf("it ends with %+v", end)
				}
			})
		})
	}
}

func TestReadJob_WhoseTokenChanged(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.submit("train-1", "echo one; hang")
		b.putAttempts(b.attempt("train-1"))
		b.PutSecret(headstest.Secret(b.cluster, "demo-token", v1beta1.TokenKey, "new"))
		r := b.job(t.Context(), 0, Options{Follow: true})
		var unavailable *heads.Unavailable
		if <-r.done; !errors.As(r.err, &unavailable) || unavailable.Code != "TokenChanged" || unavailable.Remedy == "" {
			t.Errorf("it is %v", r.err)
		}
	})
}

// TestReadJob_GoesOnInAnotherServer: who has an offset reads on from there.
func TestReadJob_GoesOnInAnotherServer(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.submit("train-1", "seq 5000; sleep 20; seq 5000; sleep 20; echo last")
		b.putAttempts(b.attempt("train-1"))
		pass(2 * time.Second)
		var whole strings.Builder
		var offset int64
		for range 2 {
			r := b.job(t.Context(), 0, Options{Follow: true, Offset: offset})
			pass(15 * time.Second)
			former := b.logs
			b.logs = New(former.settings)
			if err := former.Close(); err != nil {
				t.Error(err)
			}
			r.ends(t, Broken, "OutputNotKept")
			whole.WriteString(r.text())
			offset = r.offset
		}
		r := b.job(t.Context(), 0, Options{Follow: true, Offset: offset})
		r.ends(t, Succeeded, "JobSucceeded")
		if whole.WriteString(r.text()); whole.String() != b.file("train-1") {
			t.Errorf("of %d bytes there are %d", len(b.file("train-1")), whole.Len())
		}
	})
}

// TestReadJob_ThatRayDoesNotKnow: it was not submitted yet, or is lost.
func TestReadJob_ThatRayDoesNotKnow(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.putAttempts(b.attempt("train-1"))
		b.job(t.Context(), 0, Options{}).ends(t, Pending, "Submitting")
		attempt := b.attempt("train-1")
		at := metav1.Now()
		attempt.StartTime = &at
		b.putAttempts(attempt)
		pass(2 * time.Second) // what was said of it is forgotten
		b.job(t.Context(), 0, Options{}).ends(t, Broken, "OutputGone")
		r := b.job(t.Context(), 0, Options{Follow: true})
		pass(5 * time.Second)
		if r.codes() != "RunNotFound" {
			t.Errorf("the notices are %q", r.codes())
		}
		attempt = over(attempt, "RunNotFound", nil)
		attempt.LogState = v1beta1.LogLost
		b.putAttempts(attempt)
		r.ends(t, Failed, "RunNotFound")
	})
}

// TestReadJob_WhoseClusterIsSuspended: the operator says what becomes of the attempt.
func TestReadJob_WhoseClusterIsSuspended(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.submit("train-1", "echo one; hang")
		b.putAttempts(b.attempt("train-1"))
		pass(2 * time.Second)
		r := b.job(t.Context(), 0, Options{Follow: true})
		pass(2 * time.Second)
		b.PutCluster("demo", func(c *v1beta1.ComputeCluster) { c.Spec.Suspend = new(true) })
		b.RemovePod(headstest.Head(b.cluster, 1, "").Name)
		b.network.Lead(firstIP+":8265", nil)
		b.network.Break()
		pass(time.Minute)
		if !strings.HasSuffix(r.codes(), "SuspendedBySpec") {
			t.Errorf("the notices are %q", r.codes())
		}
		b.putAttempts(over(b.attempt("train-1"), "HeadLost", nil))
		r.ends(t, Failed, "HeadLost")
	})
}

// TestReadJob_WhoseAttemptIsForgotten: the status tells of the last ones only.
func TestReadJob_WhoseAttemptIsForgotten(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.putAttempts(b.attempt("train-1"))
		r := b.job(t.Context(), 0, Options{Follow: true})
		pass(5 * time.Second)
		other := b.attempt("train-2")
		other.Number = 2
		b.putAttempts(other)
		r.ends(t, Broken, "OutputGone")
	})
}

func TestOutcomeOf_SortsReasons(t *testing.T) {
	for _, c := range []struct {
		code string
		exit *int32
		want Outcome
	}{
		{"JobSucceeded", nil, Succeeded},
		{"", exit(0), Succeeded},
		{"EntrypointFailed", exit(1), Failed},
		{"HeadLost", nil, Failed},
		{"DeadlineExceeded", nil, Failed},
		{"Stopped", nil, Stopped},
		{"StoppedInRay", nil, Stopped},
		{"JobSuspended", nil, Stopped},
	} {
		if got := outcomeOf(c.code, c.exit); got != c.want {
			t.Errorf("%s is %s, want %s", c.code, got, c.want)
		}
	}
}
