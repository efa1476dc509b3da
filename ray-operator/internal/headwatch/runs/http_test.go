package runs_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/headwatch/runs"
)

// eventually waits until what is known of a run is as it should be.
func eventually(t *testing.T, watch runs.Source, job types.NamespacedName, id string, right func(runs.Answer) bool) runs.Answer {
	t.Helper()
	var last runs.Answer
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		answer, ok := watch.Last(job, "head", id)
		last = answer
		return ok && right(answer), nil
	})
	if err != nil {
		t.Fatalf("%s: %+v", id, last)
	}
	return last
}

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

	watch := runs.New(runs.Dial, clock.RealClock{})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- watch.Start(ctx) }()
	at := runs.Place{
		Cluster: types.NamespacedName{Namespace: "team", Name: "demo"}, Head: "head", Jobs: fake.JobsAddress(), GCS: fake.Address(),
		Token: func(context.Context) (string, error) { return "", errors.New("there is no Secret") },
	}
	job := func(id string) types.NamespacedName { return types.NamespacedName{Namespace: "team", Name: id} }
	watch.Want(job("first"), runs.Want{At: at})
	eventually(t, watch, job("first"), "", func(a runs.Answer) bool { return a.Failure == headclient.Unauthenticated })
	at.Token = func(context.Context) (string, error) { return "right", nil }
	watch.Want(job("first"), runs.Want{At: at})
	session := eventually(t, watch, job("first"), "", func(a runs.Answer) bool { return a.Failure == "" }).Session
	if session.Name != fake.Session() || session.Version != fakehead.Version {
		t.Errorf("session %+v, not %s", session, fake.Session())
	}
	want := func(id, entrypoint string, cpus float64) runs.Want {
		return runs.Want{
			At: at, ID: id, Session: session.Name, Until: time.Now().Add(time.Minute), Lines: 20,
			Submission: &headclient.Submission{
				ID: id, Entrypoint: entrypoint, CPUs: cpus, Metadata: map[string]string{runs.MetadataPayload: id},
			},
		}
	}
	t.Run("a run that fails", func(t *testing.T) {
		watch.Want(job("first"), want("fails", "seq 100; exit 3", 0))
		answer := eventually(t, watch, job("first"), "fails", func(a runs.Answer) bool { return a.Tailed })
		if answer.Job.Status != headclient.JobFailed || answer.Job.ExitCode == nil || *answer.Job.ExitCode != 3 || answer.LogLost ||
			len(answer.Tail.Lines) != 20 || answer.Tail.Lines[19] != "100" || answer.Foreign || answer.Submitted.IsZero() {
			t.Errorf("%+v", answer)
		}
	})
	t.Run("a run that is stopped", func(t *testing.T) {
		wanted := want("hangs", "hang", 0)
		watch.Want(job("second"), wanted)
		eventually(t, watch, job("second"), "hangs", func(a runs.Answer) bool { return a.Job.Status == headclient.JobRunning })
		wanted.Stop = true
		watch.Want(job("second"), wanted)
		answer := eventually(t, watch, job("second"), "hangs", func(a runs.Answer) bool { return a.Tailed })
		if answer.Job.Status != headclient.JobStopped || fake.Processes("hang") != 0 {
			t.Errorf("%+v", answer)
		}
	})
	t.Run("a run that waits is killed", func(t *testing.T) {
		wanted := want("waits", "true", 1000)
		watch.Want(job("third"), wanted)
		eventually(t, watch, job("third"), "waits", func(a runs.Answer) bool { return a.Job.Status == headclient.JobPending })
		wanted.Stop = true
		watch.Want(job("third"), wanted)
		answer := eventually(t, watch, job("third"), "waits", func(a runs.Answer) bool { return a.Tailed })
		if answer.Job.Status != headclient.JobFailed {
			t.Errorf("%+v", answer)
		}
	})
	t.Run("replies are lost", func(t *testing.T) {
		fake.Behave(fakehead.Mute)
		watch.Want(job("fourth"), want("unheard", "exit 0", 0))
		eventually(t, watch, job("fourth"), "unheard", func(a runs.Answer) bool { return a.Failure == headclient.Unavailable })
		fake.Behave(fakehead.Well)
		answer := eventually(t, watch, job("fourth"), "unheard", func(a runs.Answer) bool { return a.Tailed })
		if answer.Job.Status != headclient.JobSucceeded || answer.Failure != "" {
			t.Errorf("%+v", answer)
		}
	})
	fake.Behave(fakehead.Hung) // an end in the middle of a call
	watch.Want(job("fifth"), want("last", "true", 0))
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	counts := map[string]int{}
	for _, run := range fake.Runs() {
		counts[run.ID]++
	}
	if fmt.Sprint(counts) != "map[fails:1 hangs:1 unheard:1]" {
		t.Errorf("runs: %v", counts)
	}
	if why := fake.Died(); why != "" {
		t.Errorf("the head was killed: %s", why)
	}
}
