package heads_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/portal/heads/headstest"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
)

// timed is a bed whose head has a clock of the test's.
func timed(t *testing.T) (*bed, *clocktesting.FakeClock) {
	t.Helper()
	b := newBed(t, nil)
	now := clocktesting.NewFakeClock(clock.RealClock{}.Now())
	b.fake = fakehead.StartOn(now, b.network.Listen("gcs:2"), b.network.Listen(headIP+":8265"))
	t.Cleanup(b.fake.Close)
	b.fake.SetToken(headstest.Token)
	return b, now
}

// refused fails unless an error is a Refusal of a sort.
func refused(t *testing.T, err error, sort heads.Sort) {
	t.Helper()
	var refusal *heads.Refusal
	if !errors.As(err, &refusal) || refusal.Sort != sort || refusal.Message == "" || refusal.Remedy == "" || refusal.Code == "" {
		t.Errorf("it is %v, want %s", err, sort)
	}
}

func TestSubmit_FindsTheSameAndRefusesAnother(t *testing.T) {
	b, _ := timed(t)
	full := func() headclient.Submission {
		return headclient.Submission{
			ID: "mine", Entrypoint: "python train.py", RuntimeEnv: []byte(`{"env_vars": {"A": "1", "B": "2"}, "n": 9007199254740993}`),
			Metadata: map[string]string{"team": "a"}, CPUs: 1, Resources: map[string]float64{"x": 1},
		}
	}
	job, isNew, err := b.heads.Submit(t.Context(), b.on, full())
	if err != nil || !isNew || job.ID != "mine" || job.Status != headclient.JobPending || job.Metadata["team"] != "a" {
		t.Fatalf("it is %+v, %v, %v", job, isNew, err)
	}
	same := full()
	same.RuntimeEnv = []byte(`{"n":9007199254740993,"env_vars":{"B":"2","A":"1"}}`)
	if job, isNew, err := b.heads.Submit(t.Context(), b.on, same); err != nil || isNew || job.ID != "mine" {
		t.Errorf("the same again is %+v, %v, %v", job, isNew, err)
	}
	for name, change := range map[string]func(*headclient.Submission){
		"entrypoint":  func(s *headclient.Submission) { s.Entrypoint = "other" },
		"environment": func(s *headclient.Submission) { s.RuntimeEnv = []byte(`{"env_vars": {"A": "1"}}`) },
		"number": func(s *headclient.Submission) {
			s.RuntimeEnv = []byte(`{"env_vars": {"A": "1", "B": "2"}, "n": 9007199254740992}`)
		},
		"metadata":  func(s *headclient.Submission) { s.Metadata = nil },
		"resources": func(s *headclient.Submission) { s.Resources["x"] = 2 },
		"GPUs":      func(s *headclient.Submission) { s.GPUs = 1 },
	} {
		other := full()
		change(&other)
		if _, _, err := b.heads.Submit(t.Context(), b.on, other); err == nil {
			t.Errorf("another %s is found as the same", name)
		} else {
			refused(t, err, heads.Conflict)
		}
	}
}

func TestSubmit_EmptyMapsAreNone(t *testing.T) {
	b, _ := timed(t)
	for i, s := range []headclient.Submission{
		{ID: "a", Entrypoint: "x"},
		{ID: "a", Entrypoint: "x", Metadata: map[string]string{}, Resources: map[string]float64{}},
	} {
		if _, isNew, err := b.heads.Submit(t.Context(), b.on, s); err != nil || isNew != (i == 0) {
			t.Errorf("%d is new: %v, %v", i, isNew, err)
		}
	}
}

func TestSubmit_MakesAnID(t *testing.T) {
	b, _ := timed(t)
	ids := map[string]bool{}
	for range 3 {
		job, isNew, err := b.heads.Submit(t.Context(), b.on, headclient.Submission{Entrypoint: "x"})
		if err != nil || !isNew || !strings.HasPrefix(job.ID, "submission-") || ids[job.ID] {
			t.Errorf("it is %+v, %v, %v", job, isNew, err)
		}
		ids[job.ID] = true
	}
	for err := error(nil); err == nil; { // until chance is used up
		if _, _, err = b.heads.Submit(t.Context(), b.on, headclient.Submission{Entrypoint: "x"}); err != nil && !strings.Contains(err.Error(), "make an ID") {
			t.Errorf("without chance it is %v", err)
		}
	}
}

func TestSubmit_RefusesWhatCannotBe(t *testing.T) {
	b, _ := timed(t)
	for name, s := range map[string]headclient.Submission{
		"no entrypoint":            {},
		"an ID that means a path":  {ID: "../x", Entrypoint: "x"},
		"an environment of a list": {Entrypoint: "x", RuntimeEnv: []byte(`[]`)},
		"a key that is ours":       {Entrypoint: "x", Metadata: map[string]string{"heliostat.dev/job": "x"}},
		"less than nothing":        {Entrypoint: "x", CPUs: -1},
	} {
		if _, _, err := b.heads.Submit(t.Context(), b.on, s); err == nil {
			t.Errorf("%s is taken", name)
		} else {
			refused(t, err, heads.Invalid)
		}
	}
	if b.fake.Calls("POST /api/jobs/{$}") != 0 {
		t.Error("Ray was asked")
	}
}

func TestSubmit_SaysThatItMayRun(t *testing.T) {
	b, _ := timed(t)
	b.fake.Behave(fakehead.Mute)
	_, _, err := b.heads.Submit(t.Context(), b.on, headclient.Submission{ID: "mine", Entrypoint: "x"})
	if unavailable(t, err, "HeadUnreachable"); !strings.Contains(err.Error(), "the job mine may have been taken") {
		t.Errorf("it says %v", err)
	}
	b.fake.Behave(fakehead.Well)
	if _, isNew, err := b.heads.Submit(t.Context(), b.on, headclient.Submission{ID: "mine", Entrypoint: "x"}); err != nil || isNew {
		t.Errorf("the same call again: %v, %v", isNew, err)
	}
}

func TestSubmissions_AreListedAndFound(t *testing.T) {
	b, now := timed(t)
	for _, id := range []string{"b", "a"} {
		if _, _, err := b.heads.Submit(t.Context(), b.on, headclient.Submission{ID: id, Entrypoint: "x"}); err != nil {
			t.Fatal(err)
		}
		now.Step(time.Second)
	}
	jobs, err := b.heads.ListSubmissions(t.Context(), b.on)
	var ids []string
	for _, job := range jobs {
		ids = append(ids, job.ID)
	}
	if diff := cmp.Diff([]string{"b", "a"}, ids); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if job, err := b.heads.FindSubmission(t.Context(), b.on, "a"); err != nil || job.ID != "a" {
		t.Errorf("it is %+v, %v", job, err)
	}
	_, err = b.heads.FindSubmission(t.Context(), b.on, "none")
	refused(t, err, heads.NotFound)
	_, err = b.heads.FindSubmission(t.Context(), b.on, "../x")
	refused(t, err, heads.Invalid)
	b.RemovePod(b.pod.Name)
	_, err = b.heads.ListSubmissions(t.Context(), b.on)
	unavailable(t, err, "HeadMissing")
}

func TestStopSubmission_SaysWhatWillHappen(t *testing.T) {
	b, now := timed(t)
	for _, id := range []string{"waits", "runs"} {
		s := headclient.Submission{ID: id, Entrypoint: "hang"}
		if id == "waits" {
			s.CPUs = 1000
		}
		if _, _, err := b.heads.Submit(t.Context(), b.on, s); err != nil {
			t.Fatal(err)
		}
	}
	now.Step(2 * time.Second)
	for id, want := range map[string]struct {
		status headclient.JobStatus
		note   string
	}{"waits": {headclient.JobPending, "stays PENDING"}, "runs": {headclient.JobRunning, "kills it after 3 s"}} {
		stopped, err := b.heads.StopSubmission(t.Context(), b.on, id)
		if err != nil || stopped.Job.Status != want.status || !strings.Contains(stopped.Note, want.note) {
			t.Errorf("%s is %+v, %v", id, stopped, err)
		}
	}
	now.Step(time.Second)
	if stopped, err := b.heads.StopSubmission(t.Context(), b.on, "runs"); err != nil || stopped.Job.Status != headclient.JobStopped || stopped.Note != "" {
		t.Errorf("one that is over is %+v, %v", stopped, err)
	}
	if b.fake.Calls("POST /api/jobs/{id}/stop") != 2 {
		t.Error("one that is over was stopped")
	}
	_, err := b.heads.StopSubmission(t.Context(), b.on, "none")
	refused(t, err, heads.NotFound)
}
