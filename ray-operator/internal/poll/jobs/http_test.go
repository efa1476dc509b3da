package jobs_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/jobs"
	"github.com/heliostat-dev/heliostat/ray-operator/launcher"
)

// lab is a head that listens, and a Watch that asks it.
type lab struct {
	jobs.Source
	t       *testing.T
	fake    *fakehead.Head
	at      jobs.Place
	session string
}

func name(job string) types.NamespacedName { return types.NamespacedName{Namespace: "team", Name: job} }

// eventually waits until what is known of a job's run is as it should be.
func (l *lab) eventually(job, id string, right func(jobs.Answer) bool) jobs.Answer {
	l.t.Helper()
	var last jobs.Answer
	err := wait.PollUntilContextTimeout(l.t.Context(), 10*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		answer, ok := l.Last(name(job), l.at.Head, id)
		last = answer
		return ok && right(answer), nil
	})
	if err != nil {
		l.t.Fatalf("%s: %+v", id, last)
	}
	return last
}

// want wants a run of its job's name.
func (l *lab) want(job, entrypoint string, change func(*jobs.Want)) {
	want := jobs.Want{
		At: l.at, ID: job, Session: l.session, Until: time.Now().Add(time.Minute), Lines: 20,
		Submission: &headclient.Submission{ID: job, Entrypoint: entrypoint, Metadata: map[string]string{jobs.MetadataPayload: job}},
	}
	if change != nil {
		change(&want)
	}
	l.Want(name(job), want)
}

func tailed(a jobs.Answer) bool { return a.Tailed }

// TestOverHTTP goes the whole way: over HTTP, and through the GCS for what waits. It leaves no
// goroutine behind.
func TestOverHTTP(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	fake, err := fakehead.Start(clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()
	fake.SetToken("right")
	fake.SetStartDelay(0)
	fake.Join(fakehead.Member{Instance: "head", Head: true})
	watch := jobs.New(jobs.DialBy(headclient.Options{}), nil, clock.RealClock{})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- watch.Start(ctx) }()
	l := &lab{Source: watch, t: t, fake: fake, at: jobs.Place{
		Cluster: name("demo"), Head: "head", Jobs: fake.JobsAddress(), GCS: fake.Address(),
	}}
	for _, part := range []func(){l.meets, l.fails, l.stops, l.kills, l.losesReplies, l.gathers} {
		part()
	}
	fake.Behave(fakehead.Hung) // an end in the middle of a call
	l.want("last", "true", nil)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	counts := map[string]int{}
	for _, run := range fake.Runs() {
		counts[run.ID]++
	}
	if diff := cmp.Diff(map[string]int{"fails": 1, "hangs": 1, "unheard": 1, "gang": 1}, counts); diff != "" {
		t.Errorf("runs: %s", diff)
	}
	if why := fake.Died(); why != "" {
		t.Errorf("the head was killed: %s", why)
	}
}

// meets learns the session, once the token can be read.
func (l *lab) meets() {
	session := func(w *jobs.Want) { w.ID, w.Submission = "", nil }
	l.at.Token = func(context.Context) (string, error) { return "", errors.New("there is no Secret") }
	l.want("fails", "", session)
	l.eventually("fails", "", func(a jobs.Answer) bool { return a.Failure == headclient.Unauthenticated })
	l.at.Token = func(context.Context) (string, error) { return "right", nil }
	l.want("fails", "", session)
	who := l.eventually("fails", "", func(a jobs.Answer) bool { return a.Failure == "" }).Session
	if who.Name != l.fake.Session() || who.Version != fakehead.Version {
		l.t.Errorf("session %+v, not %s", who, l.fake.Session())
	}
	l.session = who.Name
}

func (l *lab) fails() {
	l.want("fails", "seq 100; exit 3", nil)
	answer := l.eventually("fails", "fails", tailed)
	if answer.Job.Status != headclient.JobFailed || answer.Job.ExitCode == nil || *answer.Job.ExitCode != 3 || answer.Foreign || answer.Submitted.IsZero() {
		l.t.Errorf("%+v", answer)
	}
	if answer.LogLost || len(answer.Tail.Lines) != 20 || answer.Tail.Lines[19] != "100" {
		l.t.Errorf("%+v", answer.Tail)
	}
}

// ends runs a job up to a status, and stops it.
func (l *lab) ends(job, entrypoint string, cpus float64, status headclient.JobStatus) headclient.JobStatus {
	for _, stop := range []bool{false, true} {
		l.want(job, entrypoint, func(w *jobs.Want) { w.Submission.CPUs, w.Stop = cpus, stop })
		l.eventually(job, job, func(a jobs.Answer) bool { return stop || a.Job.Status == status })
	}
	return l.eventually(job, job, tailed).Job.Status
}

func (l *lab) stops() {
	if status := l.ends("hangs", "hang", 0, headclient.JobRunning); status != headclient.JobStopped || l.fake.Processes("hang") != 0 {
		l.t.Errorf("a job that runs is %s", status)
	}
}

func (l *lab) kills() {
	if status := l.ends("waits", "true", 1000, headclient.JobPending); status != headclient.JobFailed {
		l.t.Errorf("a job that waits is %s", status)
	}
}

func (l *lab) losesReplies() {
	l.fake.Behave(fakehead.Mute)
	l.want("unheard", "exit 0", nil)
	l.eventually("unheard", "unheard", func(a jobs.Answer) bool { return a.Failure == headclient.Unavailable })
	l.fake.Behave(fakehead.Well)
	if answer := l.eventually("unheard", "unheard", tailed); answer.Job.Status != headclient.JobSucceeded || answer.Failure != "" {
		l.t.Errorf("%+v", answer)
	}
}

// gathers runs a gang: its package comes before it, its report beside it and at its end, and goes with it.
func (l *lab) gathers() {
	const namespace, key = "heliostat", "gang/gang"
	gang := func(w *jobs.Want) {
		w.Report, w.Package = true, &jobs.Package{Name: "gang.zip", Archive: []byte("zip")}
		w.Submission.RuntimeEnv = []byte(`{"py_modules": ["gcs://gang.zip"]}`)
	}
	l.want("gang", "hang", gang)
	l.eventually("gang", "gang", func(a jobs.Answer) bool { return a.Job.Status == headclient.JobRunning })
	l.fake.Store(namespace, key, `{"version": 1, "state": "Running", "round": 1}`)
	l.eventually("gang", "gang", func(a jobs.Answer) bool { return a.Reported && a.Report.State == launcher.Running })
	l.fake.Store(namespace, key, `{"version": 1, "state": "Ended", "round": 1}`)
	l.want("gang", "hang", func(w *jobs.Want) { gang(w); w.Stop = true })
	if answer := l.eventually("gang", "gang", tailed); answer.Job.Status != headclient.JobStopped || answer.Report.State != launcher.Ended {
		l.t.Errorf("%+v", answer)
	}
	head, err := jobs.DialBy(headclient.Options{})(l.at)
	if err != nil {
		l.t.Fatal(err)
	}
	l.fake.Store(namespace, key, strings.Repeat("x", 2*launcher.MaxReport))
	if said, err := head.Report(l.t.Context(), "gang"); said != nil || err != nil {
		l.t.Errorf("a report that is too long is read as %d bytes, %v", len(said), err)
	}
	if err := errors.Join(head.Forget(l.t.Context(), "gang"), head.Close()); err != nil {
		l.t.Error(err)
	}
	if report, isThere := l.fake.Stored(namespace, key); isThere {
		l.t.Errorf("after it was forgotten its report is %s", report)
	}
}
