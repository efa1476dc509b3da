package testkit_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/jobs"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

var name = types.NamespacedName{Namespace: testkit.Namespace, Name: "train"}

// wanted is a world with a head and what is wanted of it first: who it is.
func wanted(t *testing.T) (*testkit.World, jobs.Want) {
	t.Helper()
	w := testkit.NewWorld(t)
	w.Create(testkit.Cluster("demo"))
	w.Settle()
	return w, jobs.Want{
		At: jobs.Place{Head: w.Head("demo").UID}, ID: "train-1", Until: w.Clock.Now().Add(time.Hour), Lines: 1,
		Submission: &headclient.Submission{ID: "train-1", Metadata: map[string]string{
			"heliostat.dev/job-uid": "train-uid", "heliostat.dev/attempt": "1", jobs.MetadataPayload: "this",
		}},
	}
}

// answer says what is wanted, lets the world go on, and gives what was heard.
func answer(w *testkit.World, want jobs.Want, while time.Duration) jobs.Answer {
	w.Helper()
	w.Jobs.Want(name, want)
	w.Clock.Step(time.Millisecond)
	for range 20 {
		w.Jobs.Ask()
		w.Clock.Step(while / 20)
	}
	w.Jobs.Ask()
	last, ok := w.Jobs.Last(name, want.At.Head, want.ID)
	if !ok {
		w.Fatalf("nothing was heard")
	}
	return last
}

// heard is an answer in short.
func heard(said jobs.Answer) string {
	return fmt.Sprintf("known %v, asked %v, submitted %v, %s, foreign %v, lines %q",
		said.Known, !said.Asked.IsZero(), !said.Submitted.IsZero(), said.Job.Status, said.Foreign, said.Tail.Lines)
}

// TestJobsKeepTheContract: what stands in for heads and for what asks them does as package runs
// says of Want and Answer.
func TestJobsKeepTheContract(t *testing.T) {
	w, want := wanted(t)
	session := answer(w, want, time.Second).Session.Name
	theirs := *want.Submission
	theirs.Metadata = map[string]string{"heliostat.dev/job-uid": "other", "heliostat.dev/attempt": "1", jobs.MetadataPayload: "that"}
	for _, test := range []struct {
		name string
		edit func(*jobs.Want)
		want string
	}{
		{"without a session", func(w *jobs.Want) { w.Session = "" }, `known false, asked false, submitted false, , foreign false, lines []`},
		{"in another session", func(w *jobs.Want) { w.Session = "another" }, `known false, asked false, submitted false, , foreign false, lines []`},
		{"without a permit", func(of *jobs.Want) { of.Until = w.Clock.Now() }, `known false, asked true, submitted false, , foreign false, lines []`},
		{"to be stopped", func(w *jobs.Want) { w.Stop = true }, `known false, asked true, submitted false, , foreign false, lines []`},
		{"submitted", func(*jobs.Want) {}, `known true, asked true, submitted true, SUCCEEDED, foreign false, lines ["done"]`},
		{"asked again", func(*jobs.Want) {}, `known true, asked true, submitted true, SUCCEEDED, foreign false, lines ["done"]`},
		{"under a name that is used", func(w *jobs.Want) { w.Submission = &theirs }, `known true, asked true, submitted false, SUCCEEDED, foreign true, lines []`},
	} {
		w.Jobs.Forget(name)
		of := want
		of.Session = session
		test.edit(&of)
		if have := heard(answer(w, of, 10*time.Second)); have != test.want {
			t.Errorf("%s: %s, want %s", test.name, have, test.want)
		}
	}
	if begun := w.Jobs.Runs("train-uid"); len(begun) != 1 {
		t.Errorf("%d runs", len(begun))
	}
}

// TestJobsAreStopped: one that runs within a second or so, one that waits at once.
func TestJobsAreStopped(t *testing.T) {
	for process, want := range map[string]headclient.JobStatus{"runs": headclient.JobStopped, "waits": headclient.JobFailed} {
		w, wish := wanted(t)
		w.Jobs.Program = func(testkit.Run) testkit.Process { return testkit.Process{Stays: process == "waits", Hangs: true} }
		wish.Session = answer(w, wish, time.Second).Session.Name
		if said := answer(w, wish, 5*time.Second); said.Job.Status.Over() || !said.Known {
			t.Fatalf("%s: %+v", process, said)
		}
		wish.Stop = true
		if said := answer(w, wish, 5*time.Second); said.Job.Status != want {
			t.Errorf("one that %s is %s after its stop, want %s", process, said.Job.Status, want)
		}
	}
}

// TestSessions: a container that starts again is another session, which knows nothing.
func TestSessions(t *testing.T) {
	w, want := wanted(t)
	want.Session = answer(w, want, time.Second).Session.Name
	answer(w, want, 3*time.Second)
	w.Must(w.Kubelet.Restart(w.Ctx, w.Head("demo")))
	said := answer(w, want, 20*time.Second)
	if said.Session.Name == want.Session || said.Job.Status.Over() {
		t.Errorf("after a restart: %+v", said)
	}
	if begun := w.Jobs.Runs("train-uid"); len(begun) != 1 {
		t.Errorf("%d runs", len(begun))
	}
}
