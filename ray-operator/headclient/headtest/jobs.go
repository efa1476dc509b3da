package headtest

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// jobCases are what is true of the job API. They leave no job that runs.
func jobCases() []Case {
	return []Case{
		{"its job API tells its version and its session", session},
		{"a job succeeds, and what was submitted comes back", succeeds},
		{"a job fails with its exit code and its last lines", fails},
		{"an ID is used once", used},
		{"a job that is not known is not found", unknownJob},
		{"a job that runs is stopped, its process too", stops},
		{"a job that waits is not stopped, but can be killed", waits},
		{"a job is forgotten once it is over", forgotten},
		{"a driver runs where its resources are", byResources},
		{"a driver runs where its label is", byLabel},
		{"a label that cannot be is refused", badLabel},
		{"a runtime environment that cannot be had fails the job", badEnvironment},
		{"a package is there once it was uploaded, and jobs run in it", packages},
		{"the job API knows its token", jobToken},
		{"a long output has an end", long},
		{"an entrypoint is kept byte for byte", verbatim},
		{"its jobs are listed, and drivers of themselves are not", jobsListed},
	}
}

// converse dials the job API of a head with its right token.
func converse(t testing.TB, head Head) *headclient.Jobs {
	t.Helper()
	return converseWith(t, head, func(context.Context) (string, error) { return head.Token, nil })
}

func converseWith(t testing.TB, head Head, token headclient.Token) *headclient.Jobs {
	t.Helper()
	jobs, err := headclient.DialJobs(head.Jobs, headclient.Options{Token: token})
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

// submit submits a job under an ID of its own.
func submit(t testing.TB, jobs *headclient.Jobs, submission headclient.Submission) (id string) {
	t.Helper()
	submission.ID = "contract-" + rand.Text()
	if err := jobs.Submit(t.Context(), submission); err != nil {
		t.Fatal(err)
	}
	return submission.ID
}

// reaches waits until a job is in a state.
func reaches(t testing.TB, head Head, id string, wanted func(headclient.JobStatus) bool) headclient.Job {
	t.Helper()
	jobs := converse(t, head)
	var job headclient.Job
	eventually(t, head, "what is wanted of job "+id, func(ctx context.Context) (err error) {
		if job, err = jobs.Job(ctx, id); err == nil && !wanted(job.Status) {
			err = fmt.Errorf("it is %+v", job)
		}
		return err
	})
	return job
}

func over(t testing.TB, head Head, id string) headclient.Job {
	t.Helper()
	return reaches(t, head, id, headclient.JobStatus.Over)
}

func running(t testing.TB, head Head, id string) {
	t.Helper()
	reaches(t, head, id, func(status headclient.JobStatus) bool { return status == headclient.JobRunning })
}

// says waits for the end of a job, which must succeed, and gives its last lines.
func says(t testing.TB, head Head, id string, lines int) []string {
	t.Helper()
	if job := over(t, head, id); job.Status != headclient.JobSucceeded {
		t.Fatalf("it ended as %+v", job)
	}
	tail, err := converse(t, head).Tail(t.Context(), id, lines)
	if err != nil || tail.Truncated {
		t.Fatalf("its last lines are %+v, %v", tail, err)
	}
	return tail.Lines
}

func session(t testing.TB, head Head) {
	jobs := converse(t, head)
	first, err := jobs.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if second, err := jobs.Session(t.Context()); err != nil || second != first || first.Version != head.Version || first.Name == "" {
		t.Errorf("it says %+v and then %+v, %v", first, second, err)
	}
	if python, err := jobs.Python(t.Context()); err != nil || !strings.HasPrefix(python, "3.") {
		t.Errorf("its Python is %q, %v", python, err)
	}
}

func succeeds(t testing.TB, head Head) {
	submission := headclient.Submission{
		Entrypoint: "echo $GREETING", Metadata: map[string]string{"owner": "Zoë", "empty": ""},
		RuntimeEnv: json.RawMessage(`{"env_vars": {"GREETING": "good day"}}`),
	}
	id := submit(t, converse(t, head), submission)
	lines := says(t, head, id, 1)
	job := over(t, head, id)
	switch {
	case job.ID != id || job.Entrypoint != submission.Entrypoint || !maps.Equal(job.Metadata, submission.Metadata):
		t.Errorf("what came back is %+v", job)
	case job.ExitCode == nil || *job.ExitCode != 0 || job.ErrorType != "" || job.Start.IsZero() || job.End.Before(job.Start):
		t.Errorf("it ended as %+v", job)
	case !slices.Equal(lines, []string{"good day"}):
		t.Errorf("it said %q", lines)
	}
}

func fails(t testing.TB, head Head) {
	jobs := converse(t, head)
	id := submit(t, jobs, headclient.Submission{Entrypoint: "echo first; echo last; exit 3"})
	job := over(t, head, id)
	if job.Status != headclient.JobFailed || job.ExitCode == nil || *job.ExitCode != 3 || job.ErrorType != "JOB_ENTRYPOINT_COMMAND_ERROR" ||
		!strings.Contains(job.Message, "\nfirst\nlast") {
		t.Errorf("it ended as %+v", job)
	}
	if tail, err := jobs.Tail(t.Context(), id, 2); err != nil || tail.Truncated || !slices.Equal(tail.Lines, []string{"first", "last"}) {
		t.Errorf("its last lines are %+v, %v", tail, err)
	}
}

func used(t testing.TB, head Head) {
	jobs := converse(t, head)
	id := submit(t, jobs, headclient.Submission{Entrypoint: "echo first"})
	again := func(when string) {
		if err := jobs.Submit(t.Context(), headclient.Submission{ID: id, Entrypoint: "echo second"}); headclient.KindOf(err) != headclient.Exists {
			t.Errorf("%s it is taken again: %v", when, err)
		}
	}
	again("at once")
	if lines := says(t, head, id, 1); !slices.Equal(lines, []string{"first"}) {
		t.Errorf("it said %q", lines)
	}
	again("at its end")
	if job := over(t, head, id); job.Entrypoint != "echo first" {
		t.Errorf("it is another job now: %+v", job)
	}
}

func unknownJob(t testing.TB, head Head) {
	for name, err := range calls(t, converse(t, head), "contract-unknown") {
		if headclient.KindOf(err) != headclient.NotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	if killed, err := with(t, head).KillSubmission(t.Context(), "contract-unknown"); err != nil || killed {
		t.Errorf("it is killed: %t, %v", killed, err)
	}
}

// calls makes all calls about a job.
func calls(t testing.TB, jobs *headclient.Jobs, id string) map[string]error {
	_, job := jobs.Job(t.Context(), id)
	_, stop := jobs.Stop(t.Context(), id)
	_, tail := jobs.Tail(t.Context(), id, 20)
	_, log := jobs.Log(t.Context(), id, 0, io.Discard)
	_, follow := jobs.Follow(t.Context(), id, 0, io.Discard)
	return map[string]error{"Job": job, "Stop": stop, "Tail": tail, "Log": log, "Follow": follow, "Forget": jobs.Forget(t.Context(), id)}
}

// gone waits until no process of the head has a text in its command line.
func gone(t testing.TB, head Head, text string) {
	t.Helper()
	eventually(t, head, "the end of the process", func(context.Context) error {
		n, err := head.Processes(text)
		if err == nil && n != 0 {
			err = fmt.Errorf("%d processes live", n)
		}
		return err
	})
}

func stops(t testing.TB, head Head) {
	jobs := converse(t, head)
	id := submit(t, jobs, headclient.Submission{Entrypoint: "sleep 600613"})
	running(t, head, id)
	eventually(t, head, "its process", func(context.Context) error {
		n, err := head.Processes("600613")
		if err == nil && n == 0 {
			err = errors.New("there is none")
		}
		return err
	})
	told(t, jobs, id)
	if job := over(t, head, id); job.Status != headclient.JobStopped || job.ExitCode != nil {
		t.Errorf("it ended as %+v", job)
	}
	gone(t, head, "600613")
	ended(t, head, id)
}

// ended waits until a job has nothing left that could be stopped or killed.
func ended(t testing.TB, head Head, id string) {
	t.Helper()
	jobs, gcs := converse(t, head), with(t, head)
	eventually(t, head, "nothing left of it", func(ctx context.Context) error {
		stopped, err := jobs.Stop(ctx, id)
		if err != nil {
			return err
		}
		killed, err := gcs.KillSubmission(ctx, id)
		if err == nil && (stopped || killed) {
			err = fmt.Errorf("stopped %t, killed %t", stopped, killed)
		}
		return err
	})
}

// told tells a job to stop, which it must take.
func told(t testing.TB, jobs *headclient.Jobs, id string) {
	t.Helper()
	if told, err := jobs.Stop(t.Context(), id); err != nil || !told {
		t.Errorf("it is told to stop: %t, %v", told, err)
	}
}

// kept fails if a job that is not over can be forgotten.
func kept(t testing.TB, jobs *headclient.Jobs, id string) {
	t.Helper()
	if err := jobs.Forget(t.Context(), id); headclient.KindOf(err) != headclient.Refused {
		t.Errorf("it is forgotten: %v", err)
	}
}

func waits(t testing.TB, head Head) {
	jobs, gcs := converse(t, head), with(t, head)
	id := submit(t, jobs, headclient.Submission{Entrypoint: "exit 0", CPUs: 1000})
	told(t, jobs, id)
	if job, err := jobs.Job(t.Context(), id); err != nil || job.Status != headclient.JobPending || !job.End.IsZero() {
		t.Errorf("after that it is %+v, %v", job, err)
	}
	kept(t, jobs, id)
	eventually(t, head, "its death", func(ctx context.Context) error {
		killed, err := gcs.KillSubmission(ctx, id)
		if err == nil && !killed {
			err = errors.New("there is nothing to kill")
		}
		return err
	})
	if job := over(t, head, id); job.Status != headclient.JobFailed || job.ErrorType != "JOB_SUPERVISOR_ACTOR_DIED" || job.ExitCode != nil {
		t.Errorf("it ended as %+v", job)
	}
	if tail, err := jobs.Tail(t.Context(), id, 20); err != nil || len(tail.Lines) != 0 || tail.Truncated {
		t.Errorf("its last lines are %+v, %v", tail, err)
	}
	ended(t, head, id)
}

func forgotten(t testing.TB, head Head) {
	jobs := converse(t, head)
	id := submit(t, jobs, headclient.Submission{Entrypoint: "sleep 600614"})
	running(t, head, id)
	kept(t, jobs, id)
	told(t, jobs, id)
	over(t, head, id)
	if err := jobs.Forget(t.Context(), id); err != nil {
		t.Errorf("it is not forgotten at its end: %v", err)
	}
	// On a busy machine Ray notes its end once more, a moment later; what is forgotten again then is.
	eventually(t, head, "all calls to know it no more", func(context.Context) error {
		for name, err := range calls(t, jobs, id) {
			if headclient.KindOf(err) != headclient.NotFound {
				return fmt.Errorf("%s after that is answered as %q", name, headclient.KindOf(err))
			}
		}
		return nil
	})
}

// where is an entrypoint that says on which node it runs.
const where = "echo $RAY_CLOUD_INSTANCE_ID"

func byResources(t testing.TB, head Head) {
	jobs := converse(t, head)
	free := says(t, head, submit(t, jobs, headclient.Submission{Entrypoint: where}), 1)
	bound := says(t, head, submit(t, jobs, headclient.Submission{Entrypoint: where, CPUs: 1}), 1) // which the head has not
	if len(free) != 1 || free[0] == "" || free[0] == head.First || free[0] == head.Second {
		t.Errorf("a driver that needs nothing ran on %q, and not on the head", free)
	}
	if len(bound) != 1 || bound[0] == "" || bound[0] == free[0] {
		t.Errorf("a driver that needs a CPU ran on %q, and one that needs nothing on %q", bound, free)
	}
}

func byLabel(t testing.TB, head Head) {
	node := find(t, with(t, head), head.Second)
	id := submit(t, converse(t, head), headclient.Submission{Entrypoint: where, LabelSelector: map[string]string{"ray.io/node-id": node.ID.String()}})
	if lines := says(t, head, id, 1); !slices.Equal(lines, []string{head.Second}) {
		t.Errorf("it ran on %q", lines)
	}
}

func badLabel(t testing.TB, head Head) {
	jobs := converse(t, head)
	const id = "contract-bad-label"
	err := jobs.Submit(t.Context(), headclient.Submission{ID: id, Entrypoint: "exit 0", LabelSelector: map[string]string{"zone": "!!in(("}})
	if headclient.KindOf(err) != headclient.Refused || !strings.Contains(err.Error(), "Invalid label selector value") {
		t.Errorf("%v", err)
	}
	if _, err := jobs.Job(t.Context(), id); headclient.KindOf(err) != headclient.NotFound {
		t.Errorf("after that: %v", err)
	}
}

func badEnvironment(t testing.TB, head Head) {
	jobs := converse(t, head)
	for env, want := range map[string]string{
		`{"pip": 7}`:                             "JOB_SUPERVISOR_ACTOR_START_FAILURE",
		`{"working_dir": "file:///nowhere.zip"}`: "RUNTIME_ENV_SETUP_FAILURE",
	} {
		id := submit(t, jobs, headclient.Submission{Entrypoint: "exit 0", RuntimeEnv: json.RawMessage(env)})
		if job := over(t, head, id); job.Status != headclient.JobFailed || job.ErrorType != want || job.ExitCode != nil || job.Message == "" {
			t.Errorf("%s: it ended as %+v", env, job)
		}
	}
}

func packages(t testing.TB, head Head) {
	jobs := converse(t, head)
	var archive bytes.Buffer
	files := zip.NewWriter(&archive)
	file, err := files.Create("said.txt")
	if err == nil {
		_, err = io.WriteString(file, rand.Text())
	}
	if err := errors.Join(err, files.Close()); err != nil {
		t.Fatal(err)
	}
	name := "_ray_pkg_" + strings.ToLower(rand.Text()) + ".zip"
	if isThere, err := jobs.HasPackage(t.Context(), name); isThere || err != nil {
		t.Errorf("before it was uploaded: %v, %v", isThere, err)
	}
	for range 2 {
		if err := jobs.Upload(t.Context(), name, archive.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	if isThere, err := jobs.HasPackage(t.Context(), name); !isThere || err != nil {
		t.Errorf("after it was uploaded: %v, %v", isThere, err)
	}
	id := submit(t, jobs, headclient.Submission{Entrypoint: "test -s said.txt", RuntimeEnv: json.RawMessage(`{"working_dir": "gcs://` + name + `"}`)})
	if job := over(t, head, id); job.Status != headclient.JobSucceeded {
		t.Errorf("a job in it ended as %+v", job)
	}
	if err := jobs.Upload(t.Context(), "../x.zip", archive.Bytes()); headclient.KindOf(err) != headclient.Invalid {
		t.Errorf("a name that leads elsewhere: %v", err)
	}
}

func jobToken(t testing.TB, head Head) {
	for name, token := range map[string]headclient.Token{
		"none":       nil,
		"another":    func(context.Context) (string, error) { return "another", nil },
		"unreadable": func(context.Context) (string, error) { return "", errors.New("the Secret is gone") },
	} {
		jobs := converseWith(t, head, token)
		all := calls(t, jobs, "contract-token")
		_, all["Session"] = jobs.Session(t.Context())
		_, all["List"] = jobs.List(t.Context())
		_, all["HasPackage"] = jobs.HasPackage(t.Context(), "a.zip")
		all["Upload"] = jobs.Upload(t.Context(), "a.zip", nil)
		all["Submit"] = jobs.Submit(t.Context(), headclient.Submission{ID: "contract-token", Entrypoint: "exit 0"})
		for call, err := range all {
			if headclient.KindOf(err) != headclient.Unauthenticated || strings.Contains(err.Error(), head.Token) {
				t.Errorf("%s with token %s: %v", call, name, err)
			}
		}
	}
	if _, err := converse(t, head).Job(t.Context(), "contract-token"); headclient.KindOf(err) != headclient.NotFound {
		t.Errorf("one of them was taken: %v", err)
	}
}

func long(t testing.TB, head Head) {
	id := submit(t, converse(t, head), headclient.Submission{Entrypoint: "seq 50000"})
	if lines := says(t, head, id, 3); !slices.Equal(lines, []string{"49998", "49999", "50000"}) {
		t.Errorf("it ends with %q", lines)
	}
}

func verbatim(t testing.TB, head Head) {
	const entrypoint = `true 'back\slash <>&'; echo 'grün "quoted" $HOME	漢字 🌞'`
	id := submit(t, converse(t, head), headclient.Submission{Entrypoint: entrypoint})
	if lines := says(t, head, id, 1); !slices.Equal(lines, []string{`grün "quoted" $HOME 漢字 🌞`}) {
		t.Errorf("it said %q", lines)
	}
	if job := over(t, head, id); job.Entrypoint != entrypoint {
		t.Errorf("it is %q", job.Entrypoint)
	}
}

func jobsListed(t testing.TB, head Head) {
	defer started(t, head.Connect)()
	jobs := converse(t, head)
	first := submit(t, jobs, headclient.Submission{Entrypoint: "echo first", Metadata: map[string]string{"owner": "Zoë"}})
	over(t, head, first)
	second := submit(t, jobs, headclient.Submission{Entrypoint: "exit 3"})
	over(t, head, second)
	all, err := jobs.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, job := range all {
		if job.ID == "" {
			t.Errorf("a driver is listed as %+v", job)
		}
		if job.ID != first && job.ID != second {
			continue
		}
		order = append(order, job.ID)
		if alone, err := jobs.Job(t.Context(), job.ID); err != nil || !reflect.DeepEqual(alone, job) {
			t.Errorf("it is listed as %+v, and alone %+v, %v", job, alone, err)
		}
	}
	if !slices.Equal(order, []string{first, second}) {
		t.Errorf("%q are listed, want %q and then %q", order, first, second)
	}
}
