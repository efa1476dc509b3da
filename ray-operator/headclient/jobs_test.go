package headclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
)

func converse(t *testing.T, address string, options headclient.Options) *headclient.Jobs {
	t.Helper()
	jobs, err := headclient.DialJobs(address, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := jobs.Close(); err != nil {
			t.Error(err)
		}
	})
	return jobs
}

// asks are all calls of the job API, so that each can be held to the same.
func asks(t *testing.T, address string, options headclient.Options) map[string]func(context.Context) error {
	t.Helper()
	jobs := func() *headclient.Jobs { return converse(t, address, options) } // one breaks with its first failure
	return map[string]func(context.Context) error{
		"Session": func(ctx context.Context) error { _, err := jobs().Session(ctx); return err },
		"Submit": func(ctx context.Context) error {
			return jobs().Submit(ctx, headclient.Submission{ID: "another", Entrypoint: "hang"})
		},
		"Job":    func(ctx context.Context) error { _, err := jobs().Job(ctx, "known"); return err },
		"List":   func(ctx context.Context) error { _, err := jobs().List(ctx); return err },
		"Log":    func(ctx context.Context) error { _, err := jobs().Log(ctx, "known", 0, io.Discard); return err },
		"Follow": func(ctx context.Context) error { _, err := jobs().Follow(ctx, "known", 0, io.Discard); return err },
		"Tail":   func(ctx context.Context) error { _, err := jobs().Tail(ctx, "known", 20); return err },
		"Stop":   func(ctx context.Context) error { _, err := jobs().Stop(ctx, "known"); return err },
		"Forget": func(ctx context.Context) error { return jobs().Forget(ctx, "known") },
	}
}

func TestMoodsOfTheJobAPIAreToldApart(t *testing.T) {
	for mood, want := range map[fakehead.Mood]headclient.Kind{
		fakehead.Hung: headclient.Timeout, fakehead.Garbled: headclient.Protocol, fakehead.Passive: headclient.Protocol,
		fakehead.Away: headclient.Unavailable, fakehead.Mute: headclient.Unavailable,
	} {
		head := start(t)
		if err := converse(t, head.JobsAddress(), headclient.Options{}).Submit(t.Context(), headclient.Submission{ID: "known", Entrypoint: "hang"}); err != nil {
			t.Fatal(err)
		}
		head.Behave(mood)
		timeout := headclient.DefaultTimeout
		if want == headclient.Timeout {
			timeout = 50 * time.Millisecond
		}
		for name, ask := range asks(t, head.JobsAddress(), headclient.Options{Timeout: timeout}) {
			err := ask(t.Context())
			var failure *headclient.Error
			if !errors.As(err, &failure) || failure.Kind != want || !strings.Contains(err.Error(), head.JobsAddress()) {
				t.Errorf("mood %d, %s: %v, want %s and the address", mood, name, err, want)
			}
		}
	}
}

// TestConversationEndsWithItsHead: two answers of one conversation are of one process.
func TestConversationEndsWithItsHead(t *testing.T) {
	head := start(t)
	jobs := converse(t, head.JobsAddress(), headclient.Options{})
	before, err := jobs.Session(t.Context())
	if err != nil || before.Name != head.Session() || before.Version != fakehead.Version {
		t.Fatalf("%+v, %v", before, err)
	}
	head.Restart()
	for range 3 {
		if session, err := jobs.Session(t.Context()); headclient.KindOf(err) != headclient.Unavailable {
			t.Errorf("after its head has gone it says %+v, %v", session, err)
		}
	}
	after, err := converse(t, head.JobsAddress(), headclient.Options{}).Session(t.Context())
	if err != nil || after.Name == before.Name {
		t.Errorf("a new one says %+v, %v", after, err)
	}
	if n := head.Calls("GET /api/version"); n != 3 {
		t.Errorf("%d requests arrived: one to the first head, one on its broken connection, one to the second", n)
	}
}

// TestSubmissionWhoseAnswerIsLostRunsOnce is the trap that all callers have to know.
func TestSubmissionWhoseAnswerIsLostRunsOnce(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	head, err := fakehead.Start(clock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(head.Close)
	submission := headclient.Submission{ID: "once", Entrypoint: "echo x", Metadata: map[string]string{"attempt": "1"}}
	head.Behave(fakehead.Mute)
	if err := converse(t, head.JobsAddress(), headclient.Options{}).Submit(t.Context(), submission); headclient.KindOf(err) != headclient.Unavailable {
		t.Fatalf("%v", err)
	}
	head.Behave(fakehead.Well)
	jobs := converse(t, head.JobsAddress(), headclient.Options{})
	if err := jobs.Submit(t.Context(), submission); headclient.KindOf(err) != headclient.Exists {
		t.Errorf("%v", err)
	}
	clock.Step(fakehead.StartDelay)
	if job, err := jobs.Job(t.Context(), "once"); err != nil || job.Status != headclient.JobSucceeded || job.Metadata["attempt"] != "1" {
		t.Errorf("%+v, %v", job, err)
	}
	if runs := head.Runs(); len(runs) != 1 || runs[0].ID != "once" || runs[0].Session != head.Session() {
		t.Errorf("it ran as %+v", runs)
	}
}

func TestWhatMustNotBeSubmittedIsNot(t *testing.T) {
	head := start(t)
	jobs := converse(t, head.JobsAddress(), headclient.Options{})
	good := headclient.Submission{ID: "good", Entrypoint: "echo"}
	for name, change := range map[string]func(*headclient.Submission){
		"no ID":                       func(s *headclient.Submission) { s.ID = "" },
		"a path as an ID":             func(s *headclient.Submission) { s.ID = "a/../b" },
		"dots as an ID":               func(s *headclient.Submission) { s.ID = ".." },
		"an ID with an escape":        func(s *headclient.Submission) { s.ID = "a%2fb" },
		"an ID with an end of a line": func(s *headclient.Submission) { s.ID = "a\n" },
		"a long ID":                   func(s *headclient.Submission) { s.ID = strings.Repeat("x", 254) },
		"no entrypoint":               func(s *headclient.Submission) { s.Entrypoint = "" },
		"an entrypoint of bytes":      func(s *headclient.Submission) { s.Entrypoint = "echo \xff" },
		"metadata of bytes":           func(s *headclient.Submission) { s.Metadata = map[string]string{"\xff": ""} },
		"a label of bytes":            func(s *headclient.Submission) { s.LabelSelector = map[string]string{"a": "\xff"} },
		"a list as environment":       func(s *headclient.Submission) { s.RuntimeEnv = json.RawMessage(`[]`) },
		"null as environment":         func(s *headclient.Submission) { s.RuntimeEnv = json.RawMessage(`null`) },
		"half an environment":         func(s *headclient.Submission) { s.RuntimeEnv = json.RawMessage(`{"a":`) },
		"an environment of bytes":     func(s *headclient.Submission) { s.RuntimeEnv = json.RawMessage("{\"a\": \"\xff\"}") },
		"less than no CPU":            func(s *headclient.Submission) { s.CPUs = -1 },
		"no number of GPUs":           func(s *headclient.Submission) { s.GPUs = math.NaN() },
		"less than no memory":         func(s *headclient.Submission) { s.Memory = -1 },
		"a resource without end":      func(s *headclient.Submission) { s.Resources = map[string]float64{"a": math.Inf(1)} },
		"a resource without name":     func(s *headclient.Submission) { s.Resources = map[string]float64{"": 1} },
	} {
		bad := good
		change(&bad)
		if err := jobs.Submit(t.Context(), bad); headclient.KindOf(err) != headclient.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := head.Calls("POST /api/jobs/{$}"); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
	if err := jobs.Submit(t.Context(), good); err != nil {
		t.Errorf("what is good is not submitted: %v", err)
	}
}

func TestBadIDsAreNotAskedFor(t *testing.T) {
	head := start(t)
	jobs := converse(t, head.JobsAddress(), headclient.Options{})
	_, job := jobs.Job(t.Context(), "../version")
	_, stop := jobs.Stop(t.Context(), "a b")
	_, tail := jobs.Tail(t.Context(), "a?b", 20)
	_, log := jobs.Log(t.Context(), "", 0, io.Discard)
	_, follow := jobs.Follow(t.Context(), "a/b", 0, io.Discard)
	_, few := jobs.Tail(t.Context(), "a", 0)
	_, many := jobs.Tail(t.Context(), "a", 1001)
	_, kill := dial(t, head.Address(), headclient.Options{}).KillSubmission(t.Context(), "")
	for i, err := range []error{job, stop, tail, log, follow, few, many, kill, jobs.Forget(t.Context(), "")} {
		if headclient.KindOf(err) != headclient.Invalid {
			t.Errorf("call %d: %v", i, err)
		}
	}
	for _, bad := range []string{"10.0.0.1", ":8265", "http://head:8265"} {
		if _, err := headclient.DialJobs(bad, headclient.Options{}); headclient.KindOf(err) != headclient.Invalid {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if n := head.Calls("GET /api/jobs/{id}") + head.Calls("GetNamedActorInfo") + head.Calls("/"); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestNobodyListensForJobs(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	jobs := converse(t, address, headclient.Options{})
	for range 2 {
		if _, err := jobs.Session(t.Context()); headclient.KindOf(err) != headclient.Unavailable {
			t.Errorf("%v, want Unavailable", err)
		}
	}
}

func TestClosedConversationEndsItsCalls(t *testing.T) {
	head := start(t)
	head.Behave(fakehead.Hung)
	jobs := converse(t, head.JobsAddress(), headclient.Options{Timeout: time.Minute})
	failed := make(chan error)
	go func() { _, err := jobs.Session(context.Background()); failed <- err }()
	arrived := func(context.Context) (bool, error) { return head.Calls("GET /api/version") > 0, nil }
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, arrived); err != nil {
		t.Fatalf("the call does not arrive: %v", err)
	}
	if err := jobs.Close(); err != nil {
		t.Error(err)
	}
	if err := <-failed; headclient.KindOf(err) != headclient.Unavailable {
		t.Errorf("the call under way: %v", err)
	}
	if _, err := jobs.Session(t.Context()); headclient.KindOf(err) != headclient.Unavailable {
		t.Errorf("a further call: %v", err)
	}
}

func TestCallersEndIsNotTheJobAPIsFault(t *testing.T) {
	head := start(t)
	head.Behave(fakehead.Hung)
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	if _, err := converse(t, head.JobsAddress(), headclient.Options{}).Session(ctx); !errors.Is(err, context.DeadlineExceeded) || headclient.KindOf(err) != headclient.Timeout {
		t.Errorf("%v does not tell that the caller's time was over", err)
	}
	why := errors.New("the operator stops")
	gone, leave := context.WithCancelCause(t.Context())
	leave(why)
	if _, err := converse(t, head.JobsAddress(), headclient.Options{}).Session(gone); !errors.Is(err, why) || headclient.KindOf(err) != headclient.Unavailable {
		t.Errorf("%v does not tell why the caller left", err)
	}
}
