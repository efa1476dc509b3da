package logs

import (
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/portal/heads/headstest"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

func TestReadProcess_FollowsUntilTheAttemptEnds(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		const file = "job-driver-s-worker-3-r1.log"
		node := b.fake.Join(fakehead.Member{Instance: "a", Head: true})
		b.fake.SetLog("a", file, "one")
		b.putAttempts(b.attempt("s"))
		of := ProcessReference{
			Job: JobReference{Namespace: headstest.Namespace, Name: "train", Attempt: 1}, On: b.on,
			Log: headclient.Log{Node: node.String(), File: file},
		}
		read := func(options Options) *told {
			r := &told{done: make(chan struct{})}
			b.goRead(r, func() error { return b.logs.ReadProcess(t.Context(), of, options, r.take) })
			return r
		}
		now := read(Options{Offset: 1})
		now.ends(t, Running, reason.JobRunning.Code)
		followed := read(Options{Follow: true})
		pass(10 * time.Second)
		b.fake.SetLog("a", file, "one", "two")
		pass(10 * time.Second)
		if now.text() != "ne\n" || followed.text() != "one\ntwo\n" {
			t.Errorf("until now it is %q, followed %q", now.text(), followed.text())
		}
		b.fake.SetLog("a", file, "one", "two", "three")
		b.putAttempts(over(b.attempt("s"), reason.ProcessFailed.Code, exit(3)))
		if end := followed.ends(t, Failed, reason.ProcessFailed.Code); *end.ExitCode != 3 || followed.text() != "one\ntwo\nthree\n" {
			t.Errorf("it ends with %+v after %q", end, followed.text())
		}
		of.Log.File = "job-driver-s-worker-3-r2.log"
		gone := read(Options{})
		<-gone.done
		if gone.err == nil || gone.end != nil {
			t.Errorf("a log that is not there ends with %+v", gone.end)
		}
	})
}
