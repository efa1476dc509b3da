package fakehead_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
)

// fake is a head on a clock that stands still, with a conversation.
func fake(t *testing.T) (*fakehead.Head, *clocktesting.FakeClock) {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Now())
	head, err := fakehead.Start(clock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(head.Close)
	return head, clock
}

func converse(t *testing.T, head *fakehead.Head) *headclient.Jobs {
	t.Helper()
	jobs, err := headclient.DialJobs(head.JobsAddress(), headclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = jobs.Close() })
	return jobs
}

func submit(t *testing.T, head *fakehead.Head, submission headclient.Submission) {
	t.Helper()
	if err := converse(t, head).Submit(t.Context(), submission); err != nil {
		t.Fatal(err)
	}
}

// holds fails unless a job has a status.
func holds(t *testing.T, head *fakehead.Head, id string, want headclient.JobStatus) headclient.Job {
	t.Helper()
	job, err := converse(t, head).Job(t.Context(), id)
	if err != nil || job.Status != want {
		t.Fatalf("it is %+v, %v, want %s", job, err, want)
	}
	return job
}

func TestEntrypointsSayWhatBecomesOfThem(t *testing.T) {
	head, clock := fake(t)
	for entrypoint, want := range map[string]struct {
		after  time.Duration
		status headclient.JobStatus
		code   int32
		said   string
	}{
		"echo x":                 {0, headclient.JobSucceeded, 0, "x"},
		"exit 2; echo x":         {0, headclient.JobFailed, 2, ""},
		"sleep 3; exit 4":        {3 * time.Second, headclient.JobFailed, 4, ""},
		"python -m train":        {time.Second, headclient.JobSucceeded, 0, ""},
		"echo $A \"$B\"; seq 2":  {0, headclient.JobSucceeded, 0, "2"},
		"echo 'as it is: $A'":    {0, headclient.JobSucceeded, 0, "as it is: $A"},
		"sleep 1; echo $A; true": {2 * time.Second, headclient.JobSucceeded, 0, "one"},
	} {
		submit(t, head, headclient.Submission{ID: "id", Entrypoint: entrypoint, RuntimeEnv: []byte(`{"env_vars": {"A": "one"}}`)})
		holds(t, head, "id", headclient.JobPending)
		clock.Step(fakehead.StartDelay)
		if want.after > 0 {
			holds(t, head, "id", headclient.JobRunning)
			clock.Step(want.after)
		}
		job := holds(t, head, "id", want.status)
		if *job.ExitCode != want.code || job.End.Sub(job.Start) != (fakehead.StartDelay+want.after) {
			t.Errorf("%s ended as %+v", entrypoint, job)
		}
		jobs := converse(t, head)
		if tail, err := jobs.Tail(t.Context(), "id", 1); err != nil || want.said != "" && tail.Lines[0] != want.said {
			t.Errorf("%s said %q, %v", entrypoint, tail.Lines, err)
		}
		if err := jobs.Forget(t.Context(), "id"); err != nil { // after which the ID is free, as in Ray
			t.Error(err)
		}
	}
}

func TestTestsSayWhatBecomesOfRuns(t *testing.T) {
	head, clock := fake(t)
	head.SetProgram(func(run fakehead.Run) (fakehead.Process, bool) {
		return fakehead.Process{ExitCode: 7, Lines: []string{string(run.RuntimeEnv)}}, run.Metadata["own"] == "yes"
	})
	submit(t, head, headclient.Submission{ID: "own", Entrypoint: "echo", Metadata: map[string]string{"own": "yes"}, RuntimeEnv: []byte(`{"a":1}`)})
	submit(t, head, headclient.Submission{ID: "other", Entrypoint: "echo"})
	clock.Step(fakehead.StartDelay)
	if job := holds(t, head, "own", headclient.JobFailed); *job.ExitCode != 7 {
		t.Errorf("%+v", job)
	}
	holds(t, head, "other", headclient.JobSucceeded)
}

func TestJobsThatWaitForRoom(t *testing.T) {
	head, clock := fake(t)
	head.Join(fakehead.Member{Instance: "head", Head: true})
	submit(t, head, headclient.Submission{ID: "gpu", Entrypoint: "hang", GPUs: 1, Resources: map[string]float64{"lens": 1}, LabelSelector: map[string]string{"zone": "a"}})
	submit(t, head, headclient.Submission{ID: "never", Entrypoint: "hang", CPUs: 99})
	clock.Step(time.Minute)
	holds(t, head, "gpu", headclient.JobPending)
	jobs := converse(t, head)
	if told, err := jobs.Stop(t.Context(), "gpu"); err != nil || !told {
		t.Errorf("it is told to stop: %t, %v", told, err)
	}
	holds(t, head, "gpu", headclient.JobPending)
	head.Join(fakehead.Member{Instance: "worker", Total: map[string]float64{"GPU": 1, "lens": 2}, Labels: map[string]string{"zone": "a"}})
	holds(t, head, "gpu", headclient.JobRunning)
	clock.Step(time.Second)
	holds(t, head, "gpu", headclient.JobStopped) // it had been told before it ran
	clock.Step(900 * time.Second)
	if job := holds(t, head, "never", headclient.JobFailed); job.ErrorType != "JOB_SUPERVISOR_ACTOR_START_TIMEOUT" {
		t.Errorf("%+v", job)
	}
	if runs := head.Runs(); len(runs) != 1 || runs[0].ID != "gpu" {
		t.Errorf("these ran: %+v", runs)
	}
}

func TestJobsAreActivityAndKilled(t *testing.T) {
	head, clock := fake(t)
	submit(t, head, headclient.Submission{ID: "a", Entrypoint: "hang"})
	submit(t, head, headclient.Submission{ID: "b", Entrypoint: "hang", CPUs: 1})
	clock.Step(fakehead.StartDelay)
	client, err := headclient.Dial(head.Address(), headclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	for killed, want := range []int{2, 1, 0} {
		if activity, err := client.Activity(t.Context()); err != nil || activity.Jobs != want {
			t.Errorf("%+v, %v, want %d", activity, err, want)
		}
		if found, err := client.KillSubmission(t.Context(), string(rune('a'+killed))); err != nil || found != (want > 0) {
			t.Errorf("killed %t, %v", found, err)
		}
	}
	for _, id := range []string{"a", "b"} {
		if job := holds(t, head, id, headclient.JobFailed); job.ErrorType != "JOB_SUPERVISOR_ACTOR_DIED" || job.ExitCode != nil {
			t.Errorf("%+v", job)
		}
	}
}

func TestYoungSessionsHaveNoAgent(t *testing.T) {
	head, clock := fake(t)
	head.SetAgentAfter(5 * time.Second)
	for range 2 {
		jobs := converse(t, head)
		if err := jobs.Submit(t.Context(), headclient.Submission{ID: "a", Entrypoint: "hang"}); headclient.KindOf(err) != headclient.Unavailable {
			t.Errorf("%v", err)
		}
		if _, err := jobs.Session(t.Context()); err != nil {
			t.Error(err)
		}
		clock.Step(5 * time.Second)
		if err := jobs.Submit(t.Context(), headclient.Submission{ID: "a", Entrypoint: "hang"}); err != nil {
			t.Error(err)
		}
		clock.Step(fakehead.StartDelay)
		head.Restart()
	}
	if runs := head.Runs(); len(runs) != 2 || runs[0].Session == runs[1].Session || runs[1].At.Before(runs[0].At) {
		t.Errorf("these ran: %+v", runs)
	}
}

// TestRequestOfAClientThatHasGone is the trap behind "exactly once": what was read is run.
func TestRequestOfAClientThatHasGone(t *testing.T) {
	for name, restart := range map[string]bool{"the head goes on": false, "the head is another by then": true} {
		head, clock := fake(t)
		head.Behave(fakehead.Hung)
		jobs, err := headclient.DialJobs(head.JobsAddress(), headclient.Options{Timeout: 500 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if err := jobs.Submit(t.Context(), headclient.Submission{ID: "late", Entrypoint: "hang"}); headclient.KindOf(err) != headclient.Timeout {
			t.Fatalf("%v", err)
		}
		_ = jobs.Close()
		arrived := func(context.Context) (bool, error) { return head.Calls("POST /api/jobs/{$}") > 0, nil }
		if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, arrived); err != nil {
			t.Fatalf("it does not arrive: %v", err)
		}
		if restart {
			head.Restart()
		}
		head.Behave(fakehead.Well)
		if restart {
			if _, err := converse(t, head).Job(t.Context(), "late"); headclient.KindOf(err) != headclient.NotFound {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		taken := func(ctx context.Context) (bool, error) {
			_, err := converse(t, head).Job(ctx, "late")
			return err == nil, nil
		}
		if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, taken); err != nil {
			t.Fatalf("%s: it is not taken: %v", name, err)
		}
		clock.Step(fakehead.StartDelay)
		if runs := head.Runs(); len(runs) != 1 {
			t.Errorf("%s: these ran: %+v", name, runs)
		}
	}
}

// TestRefusals sends what headclient never would.
func TestRefusals(t *testing.T) {
	head, _ := fake(t)
	for body, want := range map[string]int{
		`{"entrypoint": "x"`: 500, `{}`: 400, `{"entrypoint": 7}`: 400, `{"entrypoint": "x", "new": 1}`: 400,
		`{"entrypoint": "x", "metadata": {"a": 1}}`: 400, `{"entrypoint": "x"}`: 200,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+head.JobsAddress()+"/api/jobs/", bytes.NewBufferString(body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != want {
			t.Errorf("%s is answered with %d %s, %v, want %d", body, response.StatusCode, said, err, want)
		}
		if want == 200 && !json.Valid(said) {
			t.Errorf("%s is answered with %s", body, said)
		}
	}
}

func TestHeadsAtAddressesOfTheCallersChoice(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	head, err := fakehead.StartAt(clock, "127.0.0.77:0", "127.0.0.78:0")
	if err != nil {
		t.Fatal(err)
	}
	gcs, _, _ := net.SplitHostPort(head.Address())
	jobs, _, _ := net.SplitHostPort(head.JobsAddress())
	if gcs != "127.0.0.77" || jobs != "127.0.0.78" {
		t.Errorf("it listens at %s and %s", gcs, jobs)
	}
	if _, err := fakehead.StartAt(clock, "127.0.0.77:0", head.JobsAddress()); err == nil {
		t.Error("two heads listen at one address")
	}
	address := head.JobsAddress()
	head.Close()
	again, err := fakehead.StartAt(clock, "127.0.0.77:0", address)
	if err != nil {
		t.Fatalf("a closed head still listens: %v", err)
	}
	again.Close()
}
