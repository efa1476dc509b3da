package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/portal/heads/headstest"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
)

func TestReadSubmission_IsItsFileFromAnyOffset(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.submit("a", `printf 'one\rtwo\r\n\377\376\000 \303\n'; seq 20000; printf 'no end'`)
		pass(2 * time.Second)
		whole := b.file("a")
		for _, offset := range []int{0, 1, 7, len(whole) - 1, len(whole)} {
			for _, follow := range []bool{false, true} {
				r := b.submission(t.Context(), "a", Options{Offset: int64(offset), Follow: follow})
				end := r.ends(t, Succeeded, "JobSucceeded")
				if r.text() != whole[offset:] || *end.ExitCode != 0 || r.offset != int64(len(whole)) {
					t.Errorf("from %d it is %d bytes to offset %d, %+v", offset, len(r.text()), r.offset, end)
				}
			}
		}
		b.submission(t.Context(), "a", Options{Offset: int64(len(whole)) + 1}).ends(t, Broken, "OutputShorter")
	})
}

func TestReadSubmission_OffsetsAreThoseOfTheFile(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.submit("a", "seq 30000")
		pass(2 * time.Second)
		whole := b.file("a")
		at := int64(100)
		r := &told{done: make(chan struct{})}
		r.before = func(e Event) error {
			if at += int64(len(e.Data)); e.Offset != at || len(e.Data) > partSize {
				t.Errorf("%d bytes end at %d, not %d", len(e.Data), e.Offset, at)
			}
			if e.Data != nil && string(e.Data) != whole[e.Offset-int64(len(e.Data)):e.Offset] {
				t.Errorf("other bytes before %d", e.Offset)
			}
			return nil
		}
		b.goRead(r, func() error { return b.logs.ReadSubmission(t.Context(), b.on, "a", Options{Offset: at}, r.take) })
		r.ends(t, Succeeded, "JobSucceeded")
	})
}

func TestReadSubmission_FollowsToTheEnd(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.submit("a", "echo first; sleep 5; echo second; sleep 60; echo third; exit 3")
		r := b.submission(t.Context(), "a", Options{Follow: true})
		pass(3 * time.Second)
		if !strings.HasSuffix(r.text(), "first\n") {
			t.Errorf("after 3 s it is %q", r.text())
		}
		pass(6 * time.Second)
		if !strings.HasSuffix(r.text(), "first\nsecond\n") {
			t.Errorf("after 9 s it is %q", r.text())
		}
		end := r.ends(t, Failed, "EntrypointFailed")
		if r.text() != b.file("a") || *end.ExitCode != 3 || end.Remedy == "" {
			t.Errorf("it is %q, %+v", r.text(), end)
		}
	})
}

func TestReadSubmission_SaysHowFarItIs(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.submit("a", "echo first; hang")
		b.submission(t.Context(), "a", Options{}).ends(t, Pending, "JobPending")
		pass(2 * time.Second)
		r := b.submission(t.Context(), "a", Options{})
		if r.ends(t, Running, "JobRunning"); r.text() != b.file("a") {
			t.Errorf("it is %q", r.text())
		}
		follower := b.submission(t.Context(), "a", Options{Follow: true})
		pass(time.Minute)
		// Beside one that follows, it is what is there now and not what was there at the last look.
		r = b.submission(t.Context(), "a", Options{})
		if r.ends(t, Running, "JobRunning"); r.text() != b.file("a") {
			t.Errorf("beside another it is %q", r.text())
		}
		if _, err := b.heads.StopSubmission(t.Context(), b.on, "a"); err != nil {
			t.Fatal(err)
		}
		if end := follower.ends(t, Stopped, "StoppedInRay"); end.ExitCode != nil {
			t.Errorf("it has an exit code: %+v", end)
		}
	})
}

func TestReadSubmission_BeginsWithTheLastLines(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.submit("a", "seq 30000; printf 'no end'; sleep 5; echo ' yet'; echo last")
		pass(2 * time.Second)
		for tail, want := range map[int]string{1: "no end", 2: "30000\nno end", 3: "29999\n30000\nno end"} {
			r := b.submission(t.Context(), "a", Options{Tail: tail})
			if r.ends(t, Running, "JobRunning"); r.text() != want || r.offset != int64(len(b.file("a"))) {
				t.Errorf("the last %d are %q to %d", tail, r.text(), r.offset)
			}
		}
		all := b.submission(t.Context(), "a", Options{Tail: 1 << 30})
		if all.ends(t, Running, "JobRunning"); all.text() != b.file("a") || all.codes() != "" {
			t.Errorf("all lines are %d bytes, %s", len(all.text()), all.codes())
		}
		follower := b.submission(t.Context(), "a", Options{Tail: 2, Follow: true})
		if follower.ends(t, Succeeded, "JobSucceeded"); follower.text() != "30000\nno end yet\nlast\n" {
			t.Errorf("followed it is %q", follower.text())
		}
		ended := b.submission(t.Context(), "a", Options{Tail: 2})
		if ended.ends(t, Succeeded, "JobSucceeded"); ended.text() != "no end yet\nlast\n" {
			t.Errorf("at the end it is %q", ended.text())
		}
	})
}

func TestReadSubmission_WhatCannotBegin(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.submit("a", "echo x")
		for _, options := range []Options{{Offset: -1}, {Tail: -1}, {Offset: 1, Tail: 1}} {
			r := b.submission(t.Context(), "a", options)
			if <-r.done; !errors.Is(r.err, ErrInvalid) || r.end != nil {
				t.Errorf("%+v is %v", options, r.err)
			}
		}
		var refusal *heads.Refusal
		r := b.submission(t.Context(), "none", Options{Follow: true})
		if <-r.done; !errors.As(r.err, &refusal) || refusal.Sort != heads.NotFound || r.end != nil {
			t.Errorf("no such job is %v", r.err)
		}
		b.PutCluster("demo", func(c *v1beta1.ComputeCluster) { c.Spec.Suspend = new(true) })
		b.RemovePod(headstest.Head(b.cluster, 1, "").Name)
		var unavailable *heads.Unavailable
		r = b.submission(t.Context(), "a", Options{Follow: true})
		if <-r.done; !errors.As(r.err, &unavailable) || unavailable.Code != "SuspendedBySpec" {
			t.Errorf("on a suspended cluster it is %v", r.err)
		}
	})
}

func TestReadSubmission_ThatIsGone(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		r := b.follow(t.Context(), "a", "echo first; sleep 10; exit 2")
		b.fake.RemoveOutput("a")
		if end := r.ends(t, Failed, "EntrypointFailed"); r.codes() != "OutputGone" || *end.ExitCode != 2 {
			t.Errorf("it ends with %+v after %s", end, r.codes())
		}
		r = b.follow(t.Context(), "b", "echo first; hang")
		b.fake.EmptyOutput("b")
		r.ends(t, Broken, "OutputGone")
	})
}

// TestReadSubmission_LosesItsHead: without a control store a new head knows nothing of the job.
func TestReadSubmission_LosesItsHead(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		r := b.follow(t.Context(), "a", "echo first; hang")
		b.RemovePod(headstest.Head(b.cluster, 1, "").Name)
		b.network.Lead(firstIP+":8265", nil)
		b.network.Break()
		pass(5 * time.Second)
		b.PutPod(headstest.Head(b.cluster, 2, secondIP))
		if r.ends(t, Broken, "HeadLost"); !strings.Contains(r.codes(), "HeadMissing") {
			t.Errorf("the notices are %s", r.codes())
		}
	})
}

func TestReadSubmission_GoesOnWithTheNextHead(t *testing.T) {
	withStore := func(c *v1beta1.ComputeCluster) { c.Spec.ControlStore = &v1beta1.ControlStore{} }
	runWith(t, 64<<20, withStore, func(t *testing.T, b *bed) {
		r := b.follow(t.Context(), "a", "seq 5000; sleep 30; seq 5000; sleep 30; echo last")
		b.RemovePod(headstest.Head(b.cluster, 1, "").Name)
		b.network.Lead(firstIP+":8265", nil)
		b.network.Break()
		pass(40 * time.Second)
		if !strings.Contains(r.codes(), "HeadMissing") {
			t.Errorf("the notices are %q", r.codes())
		}
		b.network.Lead(secondIP+":8265", b.listener)
		b.PutPod(headstest.Head(b.cluster, 2, secondIP))
		if r.ends(t, Succeeded, "JobSucceeded"); r.text() != b.file("a") {
			t.Errorf("of %d bytes it has %d", len(b.file("a")), len(r.text()))
		}
	})
}

func TestReadSubmission_WaitsForAHeadThatIsSilent(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		r := b.follow(t.Context(), "a", "echo first; sleep 30; echo last")
		b.fake.Behave(fakehead.Away)
		pass(10 * time.Second)
		if r.codes() != "HeadUnreachable" {
			t.Errorf("the notices are %q", r.codes())
		}
		b.fake.Behave(fakehead.Well)
		if r.ends(t, Succeeded, "JobSucceeded"); r.text() != b.file("a") {
			t.Errorf("it is %q", r.text())
		}
		b.fake.Behave(fakehead.Away)
		began := time.Now()
		r = b.submission(t.Context(), "a", Options{})
		var unavailable *heads.Unavailable
		if <-r.done; !errors.As(r.err, &unavailable) || unavailable.Code != "HeadUnreachable" || time.Since(began) > 10*time.Second {
			t.Errorf("who does not follow gets %v after %s", r.err, time.Since(began))
		}
		r = b.submission(t.Context(), "a", Options{Follow: true})
		if r.ends(t, Broken, "HeadUnreachable"); time.Since(began) < patience {
			t.Errorf("who follows is sent away after %s", time.Since(began))
		}
	})
}

// TestReadSubmission_OfRay52: it gives a cluster with a token the output as a text.
func TestReadSubmission_OfRay52(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		node := strings.Repeat("01", 28)
		status, said := http.StatusOK, `{"logs": "one\ntwo\n\u2713 gr\u00fcn\n"}`
		routes := http.NewServeMux()
		routes.HandleFunc("GET /api/jobs/a", func(out http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(out, `{"submission_id": "a", "status": "SUCCEEDED", "start_time": 1000, "driver_node_id": "%s", "driver_exit_code": 0}`, node)
		})
		routes.HandleFunc("GET /api/v0/logs/file", func(out http.ResponseWriter, _ *http.Request) {
			out.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(out, "<AioRpcError of RPC that terminated with:\n\tstatus = StatusCode.UNAUTHENTICATED\n>")
		})
		routes.HandleFunc("GET /api/jobs/a/logs", func(out http.ResponseWriter, _ *http.Request) {
			out.WriteHeader(status)
			_, _ = io.WriteString(out, said)
		})
		server := b.serve(routes)
		r := b.submission(t.Context(), "a", Options{Offset: 4})
		if r.ends(t, Succeeded, "JobSucceeded"); r.text() != "two\n✓ grün\n" {
			t.Errorf("it is %q", r.text())
		}
		status, said = http.StatusInternalServerError, "UnicodeDecodeError: 'utf-8' codec can't decode byte\n"
		b.submission(t.Context(), "a", Options{}).ends(t, Broken, "OutputUnreadable")
		_ = server.Close()
	})
}

func TestReadSubmission_HidesTheToken(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.submit("a", "echo 'token: "+headstest.Token+"!'; printf '"+headstest.Token[:5]+"'")
		pass(2 * time.Second)
		r := b.submission(t.Context(), "a", Options{})
		want := strings.ReplaceAll(b.file("a"), headstest.Token, strings.Repeat("*", len(headstest.Token)))
		if r.ends(t, Succeeded, "JobSucceeded"); r.text() != want {
			t.Errorf("it is %q, want %q", r.text(), want)
		}
	})
}

func TestReadSubmission_EndsWithItsCaller(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.submit("a", "echo first; hang")
		pass(2 * time.Second)
		ctx, stop := context.WithCancelCause(t.Context())
		withdrawn := errors.New("the right was withdrawn")
		r := b.submission(ctx, "a", Options{Follow: true})
		pass(5 * time.Second)
		stop(withdrawn)
		if <-r.done; !errors.Is(r.err, withdrawn) || r.end != nil {
			t.Errorf("it ends with %v", r.err)
		}
		synctest.Wait()
		before := b.fake.Calls(fileCall)
		pass(time.Minute)
		if after := b.fake.Calls(fileCall); after != before {
			t.Errorf("the head was asked %d times more", after-before)
		}
		full := errors.New("the sink is full")
		r = &told{done: make(chan struct{}), before: func(Event) error { return full }}
		b.goRead(r, func() error { return b.logs.ReadSubmission(t.Context(), b.on, "a", Options{}, r.take) })
		if <-r.done; !errors.Is(r.err, full) {
			t.Errorf("a sink that fails ends it with %v", r.err)
		}
	})
}

func TestReadSubmission_EndsWithTheServer(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		r := b.follow(t.Context(), "a", "echo first; hang")
		if err := b.logs.Close(); err != nil {
			t.Error(err)
		}
		r.ends(t, Broken, "OutputNotKept")
		b.submission(t.Context(), "a", Options{}).ends(t, Broken, "OutputNotKept")
		b.logs = New(b.logs.settings)
	})
}

func TestReadSubmission_WithoutADisk(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.submit("a", "echo first")
		pass(2 * time.Second)
		settings := b.logs.settings
		settings.Directory = filepath.Join(settings.Directory, "none")
		whole := b.logs
		b.logs = New(settings)
		end := b.submission(t.Context(), "a", Options{Follow: true}).ends(t, Broken, "OutputNotKept")
		if !strings.Contains(end.Message, "make a file for outputs") {
			t.Errorf("it says %q", end.Message)
		}
		if err := b.logs.Close(); err != nil {
			t.Error(err)
		}
		b.logs = whole
	})
}

func TestReadSubmission_WithoutTheAPIServer(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		r := b.follow(t.Context(), "a", "echo first; sleep 30; echo last")
		down := errors.New("the API server is away")
		b.Fail(down)
		pass(5 * time.Second)
		if r.codes() != "" {
			t.Errorf("who reads is told %q", r.codes()) // its connection is there
		}
		b.network.Break()
		pass(5 * time.Second)
		if r.codes() != "HeadUnreachable" {
			t.Errorf("who has to connect is told %q", r.codes())
		}
		now := b.submission(t.Context(), "a", Options{})
		if <-now.done; !errors.Is(now.err, down) {
			t.Errorf("who does not follow gets %v", now.err)
		}
		b.Fail(nil)
		if r.ends(t, Succeeded, "JobSucceeded"); r.text() != b.file("a") {
			t.Errorf("it is %q", r.text())
		}
	})
}

func TestRemember_ForgetsWhatIsOver(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	l := New(Settings{Clock: now, Directory: t.TempDir()})
	failed := errors.New("failed")
	for i := range mostFailures {
		l.remember(key{source: source{id: fmt.Sprint(i)}}, failed)
	}
	now.Step(failureHolds)
	if l.remember(key{source: source{id: "last"}}, failed); len(l.failed) != 1 {
		t.Errorf("%d are remembered", len(l.failed))
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
