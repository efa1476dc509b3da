package job

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/launcher"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// TestDescribeGang_WritesDefaultsOut: the launcher has no defaults of its own.
func TestDescribeGang_WritesDefaultsOut(t *testing.T) {
	job := train(gang, func(j *v1beta1.ClusterJob) {
		j.Spec.Env = []corev1.EnvVar{{Name: "A", Value: "b"}, {Name: "SECRET", ValueFrom: &corev1.EnvVarSource{}}}
	})
	want := launcher.Description{
		Job: "train", UID: "job-uid", Attempt: 1, Submission: naming.Submission("train", "job-uid", 1),
		Framework: "PyTorch", Placement: "Pack", Output: "First", GraceSeconds: 30, GatherSeconds: 600, MinReplicasAfterSeconds: 300,
		Env: []launcher.EnvVar{{Name: "A", Value: "b"}},
		Roles: []launcher.Role{{
			Name: "worker", Replicas: 2, MinReplicas: 2, Processes: 1, Start: "PerProcess", Resources: map[string]float64{"CPU": 0.5},
			Entrypoint: "python train.py", Success: "All",
		}},
	}
	if diff := gocmp.Diff(want, describeGang(job, newRecord())); diff != "" {
		t.Errorf("the description (- wanted, + made):\n%s", diff)
	}
	job.Spec.Retry = &v1beta1.Retry{Limit: 1, InfrastructureLimit: number(5), OnExitCodes: &v1beta1.ExitCodes{NotIn: []int32{3}}}
	later := describeGang(job, bound(func(r *Record) { r.Attempt, r.Losses = 2, 2 }))
	if later.FirstGatherSeconds != 600 || later.LossesLeft != 3 || !reflect.DeepEqual(later.RetryOnExitCodes.NotIn, []int32{3}) {
		t.Errorf("that of a later attempt: %+v", later)
	}
}

// TestLossesLeft: what the record has is taken away, and nothing is left without a retry.
func TestLossesLeft(t *testing.T) {
	record := bound(func(r *Record) { r.Failures, r.Losses = 2, 3 })
	for name, test := range map[string]struct {
		retry *v1beta1.Retry
		want  int32
	}{
		"no retry":                   {nil, 0},
		"one limit, both count":      {&v1beta1.Retry{Limit: 6}, 1},
		"one limit, used up":         {&v1beta1.Retry{Limit: 4}, 0},
		"a limit of losses":          {&v1beta1.Retry{Limit: 0, InfrastructureLimit: number(20)}, 17},
		"a limit of losses, used up": {&v1beta1.Retry{InfrastructureLimit: number(2)}, 0},
	} {
		if have := lossesLeft(test.retry, record); have != test.want {
			t.Errorf("%s: %d are left, want %d", name, have, test.want)
		}
	}
}

// TestSuccessOf_FollowsTheFramework: what a role does not say, its framework does.
func TestSuccessOf_FollowsTheFramework(t *testing.T) {
	for roles, want := range map[string]string{
		"PyTorch master worker":              "All All",
		"TensorFlow worker ps evaluator":     "First Ignore All",
		"TensorFlow chief worker ps":         "All Ignore Ignore",
		"XGBoost master worker":              "All Ignore",
		"XGBoost worker":                     "All",
		"JAX worker":                         "All",
		"Generic scheduler server worker ps": "All All All Ignore",
	} {
		words := strings.Fields(roles)
		of := &v1beta1.Gang{Framework: v1beta1.GangFramework(words[0])}
		for _, name := range words[1:] {
			of.Roles = append(of.Roles, v1beta1.GangRole{Name: name})
		}
		var have []string
		for i := range of.Roles {
			have = append(have, string(successOf(of, &of.Roles[i])))
		}
		if strings.Join(have, " ") != want {
			t.Errorf("%s: %q, want %s", roles, have, want)
		}
	}
}

// TestSubmission_OfAGang: the driver is the launcher, whose package stands behind the user's own modules, and has its grace.
func TestSubmission_OfAGang(t *testing.T) {
	job := train(gang, func(j *v1beta1.ClusterJob) {
		j.Spec.Gang.GracePeriodSeconds = number(60)
		j.Spec.RuntimeEnv = raw(`{"py_modules":["gcs://mine.zip"],"env_vars":{"RAY_JOB_STOP_WAIT_TIME_S":"1"}}`)
	})
	asked, launched, err := submission(job, newRecord(), target{})
	if err != nil {
		t.Fatal(err)
	}
	if asked.Entrypoint != v1beta1.EntrypointPrefix+startLauncher || launched == nil || len(launched.Archive) == 0 {
		t.Errorf("it runs %q in %+v", asked.Entrypoint, launched)
	}
	_, environment, vars := submitted(t, job, 1)
	if want := []any{"gcs://mine.zip", "gcs://" + launched.Name}; !reflect.DeepEqual(environment["py_modules"], want) {
		t.Errorf("modules %v, want %v", environment["py_modules"], want)
	}
	if vars["RAY_JOB_STOP_WAIT_TIME_S"] != "65" || vars[v1beta1.EnvJobEnds] != endGroup(70*time.Second) {
		t.Errorf("variables %v", vars)
	}
	if _, plain, err := submission(train(), newRecord(), target{}); plain != nil || err != nil {
		t.Errorf("a plain job has the package %+v, %v", plain, err)
	}
	job.Spec.RuntimeEnv = raw(`{"py_modules":"mine"}`)
	if _, _, err := submission(job, newRecord(), target{}); err == nil {
		t.Error("py_modules that are no list are submitted")
	}
}

// TestPayload_HasTheGang: another gang is another payload, and a plain job's is what former operators made of it.
func TestPayload_HasTheGang(t *testing.T) {
	const former = "dxshsffrj5gwr"
	plain, _, _ := submitted(t, train(), 1)
	first, _, _ := submitted(t, train(gang), 1)
	second, _, _ := submitted(t, train(gang, func(j *v1beta1.ClusterJob) { j.Spec.Gang.MaxRestarts = 1 }), 1)
	if first == plain || first == second {
		t.Errorf("payloads %s, %s and %s", plain, first, second)
	}
	if plain != former {
		t.Errorf("that of a plain job is %s, want %s", plain, former)
	}
}

// TestDriver_StaysOffAHeadThatIsReplaced: with a control store, unless the spec says where it runs.
func TestDriver_StaysOffAHeadThatIsReplaced(t *testing.T) {
	stored := demo()
	stored.Spec.ControlStore = &v1beta1.ControlStore{}
	away := map[string]string{"ray.io/node-group": "!headgroup"}
	for name, test := range map[string]struct {
		to   target
		edit edit
		want map[string]string
	}{
		"a control store":             {target{stored, "2.54.0"}, gang, away},
		"an older Ray":                {target{stored, "2.53.0"}, gang, nil},
		"no control store":            {target{demo(), "2.60.0"}, gang, nil},
		"a plain job":                 {target{stored, "2.60.0"}, func(*v1beta1.ClusterJob) {}, nil},
		"the spec says what it takes": {target{stored, "2.60.0"}, func(j *v1beta1.ClusterJob) { gang(j); j.Spec.EntrypointResources = cpus("1") }, nil},
		"the spec says where": {
			target{stored, "2.60.0"}, func(j *v1beta1.ClusterJob) { gang(j); j.Spec.EntrypointLabelSelector = text("b") }, text("b"),
		},
	} {
		asked, _, err := submission(train(test.edit), newRecord(), test.to)
		if err != nil || !reflect.DeepEqual(asked.LabelSelector, test.want) {
			t.Errorf("%s: %v, %v, want %v", name, asked.LabelSelector, err, test.want)
		}
	}
}

// TestStartLauncher_FindsRaysPython runs the line with commands ray of all forms that installers write.
func TestStartLauncher_FindsRaysPython(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "with space")
	plain := t.TempDir()
	const says = "#!/bin/sh\necho \"${0##*/} $*\"\n"
	write := func(path, content string) string {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o700); err != nil { //nolint:gosec // a program must be executable
			t.Fatal(err)
		}
		return path
	}
	spaced, python3 := write(dir+"/python3.11", says), write(plain+"/python3.12", says)
	path := plain + "/path"
	write(path+"/python", says)
	write(path+"/python3", says)
	for name, test := range map[string]struct{ ray, want string }{
		"a path":                {"#!" + python3 + "\nimport ray\n", "python3.12 -m heliostat_gang"},
		"a path with an option": {"#!" + python3 + " -sP\n", "python3.12 -sP -m heliostat_gang"},
		"a search":              {"#!/usr/bin/env python3\n", "python3 -m heliostat_gang"},
		"a shell's, quoted":     {"#!/bin/sh\n'''exec' \"" + spaced + `" "$0" "$@"` + "\n' '''\n", "python3.11 -m heliostat_gang"},
		"a shell's, quoted '":   {"#!/bin/sh\n'''exec' '" + spaced + `' "$0" "$@"` + "\n' '''\n", "python3.11 -m heliostat_gang"},
		"a shell's, bare":       {"#!/bin/sh\n'''exec' " + python3 + ` "$0" "$@"` + "\n' '''\n", "python3.12 -m heliostat_gang"},
		"a shell script":        {"#!/bin/bash\nexec something\n", "python -m heliostat_gang"},
		"one that is gone":      {"#!/no/such/python3\n", "python -m heliostat_gang"},
		"a pattern":             {"#!" + plain + "/python*\n", "python -m heliostat_gang"},
		"a binary":              {"\x7fELF\x00\x01", "python -m heliostat_gang"},
		"nothing":               {"", "python -m heliostat_gang"},
	} {
		bin := filepath.Join(t.TempDir(), "bin")
		write(bin+"/ray", test.ray)
		command := exec.Command("sh", "-c", startLauncher)
		command.Env = []string{"PATH=" + strings.Join([]string{bin, path, "/usr/bin", "/bin"}, ":")}
		said, err := command.CombinedOutput()
		if have := strings.TrimSpace(string(said)); have != test.want || err != nil {
			t.Errorf("%s: %q, %v, want %q", name, have, err, test.want)
		}
	}
}

// reports is that the launcher of the bound gang says something, in a state.
func reports(state launcher.State, edits ...func(*launcher.Report)) func(*Seen) {
	return func(s *Seen) {
		s.Answer.Reported = true
		s.Answer.Report = launcher.Report{State: state, Round: 1, Replicas: 2, Ready: 2}
		if state != launcher.Gathering {
			s.Answer.Report.Started = now.Add(-30 * time.Second)
		}
		for _, edit := range edits {
			edit(&s.Answer.Report)
		}
	}
}

// first is how the last round of a gang ended.
func first(kind launcher.Kind, lines ...string) func(*launcher.Report) {
	return func(r *launcher.Report) {
		r.Last = &launcher.End{Time: now, Kind: kind, Process: "worker/1", Pod: "demo-cpu-1", Message: "exited with 3", Lines: lines}
	}
}

func waiting(text string) func(*launcher.Report) {
	return func(r *launcher.Report) { r.Ready, r.Waiting = 1, text }
}

// TestGangs: what a bound gang is at follows from its report, and without one from the time that its driver runs.
func TestGangs(t *testing.T) {
	running, bound := says(headclient.JobRunning), bound()
	hold(t, map[string]guarded{
		"pending":            {train(gang), seen(bound, says(headclient.JobPending)), "Submitting JobPending ask"},
		"no report yet":      {train(gang, runsSince(5)), seen(bound, running), "Gathering GangGathering ask"},
		"no report for long": {train(gang, runsSince(61)), seen(bound, running), "Running JobRunning ask"},
		"gathers":            {train(gang, runsSince(61)), seen(bound, running, reports(launcher.Gathering)), "Gathering GangGathering ask"},
		"runs":               {train(gang, runsSince(5)), seen(bound, running, reports(launcher.Running)), "Running JobRunning ask"},
		"ends":               {train(gang, runsSince(5)), seen(bound, running, reports(launcher.Ended)), "Running JobRunning ask"},
		"was told to gather, and the report cannot be read": {
			train(gang, runsSince(500), toldPhase(v1beta1.PhaseGathering)), seen(bound, running), "Gathering GangGathering ask",
		},
		"was told to run, and the head is not heard": {
			train(gang, runsSince(500), toldPhase(v1beta1.PhaseRunning)), seen(bound, func(s *Seen) { s.Heard = false }), "Running JobRunning ask",
		},
	})
}

// toldPhase is that the status tells of the first attempt of a gang, by a report, in a phase.
func toldPhase(phase string) edit {
	return func(job *v1beta1.ClusterJob) {
		job.Status.Attempt, job.Status.Phase, job.Status.Gang = 1, phase, &v1beta1.GangStatus{Replicas: 2}
	}
}

// TestGangEnds: how a gang ended. A report gives words, and never an end, a success, or a loss that nobody saw.
func TestGangEnds(t *testing.T) {
	exit := func(code int32) func(*Seen) { return says(headclient.JobFailed, exits(code)) }
	lost := exit(signalLost)
	for name, test := range map[string]struct {
		seen []func(*Seen)
		want string
		kind kind
	}{
		"succeeds":                           {[]func(*Seen){says(headclient.JobSucceeded)}, "JobSucceeded", success},
		"succeeds, whatever is reported":     {[]func(*Seen){says(headclient.JobSucceeded), reports(launcher.Ended, first(launcher.Exit))}, "JobSucceeded", success},
		"a process failed":                   {[]func(*Seen){exit(3), reports(launcher.Ended, first(launcher.Exit))}, "ProcessFailed(3)", failure},
		"no report":                          {[]func(*Seen){exit(3)}, "EntrypointFailed(3)", failure},
		"the driver failed after a restart":  {[]func(*Seen){exit(1), reports(launcher.Running, first(launcher.Exit))}, "EntrypointFailed(1)", failure},
		"the driver was killed":              {[]func(*Seen){exit(-9), reports(launcher.Running)}, "EntrypointFailed(137)", failure},
		"lost, as was seen":                  {[]func(*Seen){lost, reports(launcher.Ended, first(launcher.Lost)), placeLost}, "GangLost", loss},
		"lost, and nobody saw it":            {[]func(*Seen){lost, reports(launcher.Ended, first(launcher.Lost))}, "GangLost", failure},
		"lost, without a report":             {[]func(*Seen){lost, placeLost}, "GangLost", loss},
		"a program ended by the same signal": {[]func(*Seen){exit(128 - signalLost), reports(launcher.Ended, first(launcher.Exit)), placeLost}, "ProcessFailed(140)", failure},
	} {
		v := view{job: train(gang), seen: seen(bound(), test.seen...), record: bound(), now: now}
		f, is := judgeAttempt(v)
		have := f.Code
		if f.exit != nil && f.Code != reason.JobSucceeded.Code {
			have += "(" + printed(t, *f.exit) + ")"
		}
		if !is || have != test.want || f.class("") != test.kind {
			t.Errorf("%s: %s of kind %d, want %s of kind %d", name, have, f.class(""), test.want, test.kind)
		}
	}
}

func placeLost(s *Seen) { s.PlaceLost = true }

// TestProcessFailed_HasItsOwnLines: the message names the process and its pod, and the last lines are its own.
func TestProcessFailed_HasItsOwnLines(t *testing.T) {
	v := view{job: train(gang), seen: seen(bound(), says(headclient.JobFailed, exits(3)), reports(launcher.Ended, first(launcher.Exit, "no space left"))), record: bound(), now: now}
	f, _ := judgeAttempt(v)
	if !strings.Contains(f.Text, "worker/1 on pod demo-cpu-1 failed first, with exit code 3: exited with 3") || !reflect.DeepEqual(f.lines, []string{"no space left"}) {
		t.Errorf("%q, %q", f.Text, f.lines)
	}
	v.seen.Answer.Report.Last.Lines = nil
	if f, _ = judgeAttempt(v); !reflect.DeepEqual(f.lines, []string{"the end"}) {
		t.Errorf("without lines of its own: %q", f.lines)
	}
}

// TestLosses_InPlaceAreAdded: no more than the gang had left, and beside the one that ended it.
func TestLosses_InPlaceAreAdded(t *testing.T) {
	for name, test := range map[string]struct{ said, want int32 }{
		"none": {0, 2}, "some": {3, 5}, "more than it had": {1000, 12},
	} {
		job := train(gang, func(j *v1beta1.ClusterJob) { j.Spec.Retry = &v1beta1.Retry{InfrastructureLimit: number(11)} })
		plan := decide(job, seen(bound(func(r *Record) { r.Losses = 1 }), says(headclient.JobFailed, exits(signalLost)), placeLost,
			reports(launcher.Ended, first(launcher.Lost), func(r *launcher.Report) { r.Losses = test.said })))
		if plan.Record == nil || plan.Record.Losses != test.want {
			t.Errorf("%s: the record is %+v, want %d losses", name, plan.Record, test.want)
		}
	}
}

// TestHold: no attempt follows while processes of the last one may run.
func TestHold(t *testing.T) {
	retried := func(j *v1beta1.ClusterJob) {
		j.Spec.Retry = &v1beta1.Retry{Limit: 9, BackoffSeconds: number(0)}
	}
	for name, test := range map[string]struct {
		edits []func(*Seen)
		want  int64
	}{
		"it ended by itself":            {[]func(*Seen){says(headclient.JobFailed, exits(3))}, 0},
		"it ended itself":               {[]func(*Seen){says(headclient.JobFailed, exits(signalLost))}, 0},
		"it was killed":                 {[]func(*Seen){says(headclient.JobFailed, exits(-9))}, 55},
		"it was lost":                   {[]func(*Seen){says(headclient.JobFailed, failsWith("JOB_SUPERVISOR_ACTOR_DIED"))}, 55},
		"it was lost after its end":     {[]func(*Seen){says(headclient.JobFailed, failsWith("JOB_SUPERVISOR_ACTOR_DIED")), reports(launcher.Ended)}, 0},
		"it never began":                {[]func(*Seen){says(headclient.JobFailed, failsWith("JOB_SUPERVISOR_ACTOR_START_FAILURE"))}, 0},
		"its environment was not ready": {[]func(*Seen){says(headclient.JobFailed, failsWith("RUNTIME_ENV_SETUP_FAILURE"))}, 0},
		"its head is gone":              {[]func(*Seen){noHead}, 55},
	} {
		plan := decide(train(gang, retried), seen(bound(), test.edits...))
		have := int64(0)
		if plan.Record != nil && plan.Record.Hold > 0 {
			have = plan.Record.Hold - now.Unix()
		}
		if plan.Record == nil || have != test.want {
			t.Errorf("%s: held for %d s, want %d; %s", name, have, test.want, gist(plan))
		}
		if plain := decide(train(retried), seen(bound(), test.edits...)); plain.Record == nil || plain.Record.Hold != 0 {
			t.Errorf("%s: a plain job is held: %s", name, gist(plain))
		}
	}
	held := func(r *Record) {
		r.Attempt, r.Last, r.Bound, r.Past, r.Hold = 2, binding(100), Bound{}, []Past{past(1, "DriverLost", 30)}, ago(-20)
	}
	over := func(r *Record) { held(r); r.Hold = ago(1) }
	hold(t, map[string]guarded{
		"held":           {train(gang, toldOf(1)), seen(bound(held)), "Pending Stopping"},
		"held no longer": {train(gang, toldOf(1)), seen(bound(over)), `Submitting Submitting record(2 own 1 bound "session_1" ending "" outcome "") finalizer ask submit`},
		"suspended":      {train(gang, suspend, toldOf(1)), seen(bound(held)), `Suspending Stopping record(2 own 1 bound "" ending "" outcome "")`},
	})
	entry := entryOfJob(train(gang, recorded(bound(held))))
	if !entry.isHolding(now) || entry.isWaiting(now) || entry.isHolding(now.Add(time.Minute)) || !entry.isWaiting(now.Add(time.Minute)) {
		t.Errorf("in the queue it is %+v", entry)
	}
}

// TestTooLarge_WaitsUnbound: a gang that its cluster can never hold is not bound, and one that gathers there is stopped.
func TestTooLarge_WaitsUnbound(t *testing.T) {
	huge := func(j *v1beta1.ClusterJob) { gang(j); j.Spec.Gang.Roles[0].Resources = cpus("64") }
	running := says(headclient.JobRunning)
	stopping := `record(1 own 1 bound "session_1" ending "GangLost" outcome "") ask stop`
	hold(t, map[string]guarded{
		"waits":                      {train(huge), seen(newRecord()), "Pending GangTooLarge"},
		"waits, before its cluster":  {train(own, huge), seen(newRecord(), noCluster), "Pending GangTooLarge"},
		"workers are out of date":    {train(huge), seen(newRecord(), func(s *Seen) { s.Cluster.Status.Groups = []v1beta1.GroupStatus{{Name: "cpu", Outdated: 1}} }), `Submitting Submitting record(1 own 1 bound "session_1" ending "" outcome "") finalizer ask submit`},
		"gathers there":              {train(huge, runsSince(5)), seen(bound(), running, reports(launcher.Gathering)), "Gathering Stopping " + stopping},
		"gathers, status is older":   {train(huge, runsSince(5)), seen(bound(), running, reports(launcher.Gathering), func(s *Seen) { s.Cluster.Generation = 2 }), "Gathering GangGathering ask"},
		"runs there":                 {train(huge, runsSince(5)), seen(bound(), running, reports(launcher.Running)), "Running JobRunning ask"},
		"was stopped, and waits":     {train(huge), seen(bound(ending(reason.GangLost, 5)), says(headclient.JobStopped), reports(launcher.Ended)), `Retrying Retrying record(2 own 1 bound "" ending "" outcome "")`},
		"a deadline of the waiting":  {train(huge, func(j *v1beta1.ClusterJob) { j.Spec.StartDeadlineSeconds = number(30) }), seen(newRecord()), `Failed StartDeadlineExceeded record(1 own 1 bound "" ending "" outcome "Failed")`},
		"its queue keeps no quota":   {train(own, huge, queuedIn), seen(newRecord(), noCluster, inQueue(false)), `Pending GangTooLarge record(1 own 1 bound "" ending "" outcome "")`},
		"a plain job of that size":   {train(func(j *v1beta1.ClusterJob) { j.Spec.EntrypointResources = cpus("64") }), seen(newRecord()), `Submitting Submitting record(1 own 1 bound "session_1" ending "" outcome "") finalizer ask submit`},
		"a smaller one goes there":   {train(gang), seen(newRecord()), `Submitting Submitting record(1 own 1 bound "session_1" ending "" outcome "") finalizer ask submit`},
		"on its own cluster it also": {train(own, gang), seen(newRecord()), `Submitting Submitting record(1 own 1 bound "session_1" ending "" outcome "") finalizer ask submit`},
	})
}

// queuedIn labels a job with a queue of Kueue.
func queuedIn(job *v1beta1.ClusterJob) {
	job.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "team"}
}

// TestGangDeadlines: the first wait is bounded by startDeadlineSeconds, else by activeDeadlineSeconds from when the driver ran. Other
// deadlines count from the first process on.
func TestGangDeadlines(t *testing.T) {
	start := func(j *v1beta1.ClusterJob) { j.Spec.StartDeadlineSeconds = number(50) }
	active := func(j *v1beta1.ClusterJob) { j.Spec.ActiveDeadlineSeconds = number(50) }
	attempt := func(j *v1beta1.ClusterJob) { j.Spec.Retry = &v1beta1.Retry{AttemptDeadlineSeconds: number(50)} }
	running, gathers, runs := says(headclient.JobRunning), reports(launcher.Gathering), reports(launcher.Running)
	stops := func(code string) string {
		return `Stopping record(1 own 1 bound "session_1" ending "` + code + `" outcome "") ask stop`
	}
	hold(t, map[string]guarded{
		"start, gathering":             {train(gang, start, runsSince(55)), seen(bound(), running, gathers), "Gathering " + stops("StartDeadlineExceeded")},
		"start, running":               {train(gang, start, runsSince(55)), seen(bound(), running, runs), "Running JobRunning ask"},
		"active, gathering":            {train(gang, active, runsSince(55)), seen(bound(), running, gathers), "Gathering " + stops("DeadlineExceeded")},
		"active, gathering not long":   {train(gang, active, runsSince(45)), seen(bound(), running, gathers), "Gathering GangGathering ask"},
		"both, gathering":              {train(gang, active, func(j *v1beta1.ClusterJob) { j.Spec.StartDeadlineSeconds = number(500) }, runsSince(55)), seen(bound(), running, gathers), "Gathering GangGathering ask"},
		"active, not running for long": {train(gang, active, runsSince(55)), seen(bound(), running, runs), "Running JobRunning ask"},
		"attempt, gathering":           {train(gang, attempt, runsSince(55)), seen(bound(), running, gathers), "Gathering GangGathering ask"},
		"attempt, not running for long": {
			train(gang, attempt, runsSince(55)), seen(bound(), running, runs), "Running JobRunning ask",
		},
		"attempt, running for long": {
			train(gang, attempt, runsSince(55)), seen(bound(), running, reports(launcher.Running, func(r *launcher.Report) { r.Started = now.Add(-52 * time.Second) })),
			"Running " + stops("AttemptDeadlineExceeded"),
		},
	})
}

// TestGrace: all that ends a gang leaves its processes their grace, and a plain job is as it was.
func TestGrace(t *testing.T) {
	graceful := func(j *v1beta1.ClusterJob) { gang(j); j.Spec.Gang.GracePeriodSeconds = number(300) }
	for name, test := range map[string]struct {
		edits []edit
		code  reason.Reason
		want  time.Duration
	}{
		"shared, plain":           {nil, reason.DeadlineExceeded, 2 * time.Minute},
		"shared, short grace":     {[]edit{gang}, reason.DeadlineExceeded, 2 * time.Minute},
		"shared, long grace":      {[]edit{graceful}, reason.DeadlineExceeded, 310 * time.Second},
		"own, plain, suspended":   {[]edit{own}, reason.JobSuspended, time.Second},
		"own, gang, suspended":    {[]edit{own, gang}, reason.JobSuspended, 40 * time.Second},
		"own, gang, its deadline": {[]edit{own, graceful}, reason.DeadlineExceeded, 310 * time.Second},
	} {
		v := view{job: train(test.edits...), record: bound(ending(test.code, 0)), now: now}
		if have := stopPatience(v); have != test.want {
			t.Errorf("%s: %s, want %s", name, have, test.want)
		}
	}
	hold(t, map[string]guarded{
		"a gang on its own cluster is stopped before it goes": {
			train(own, gang, deleted(10)), seen(bound(), says(headclient.JobRunning)), " Stopping finalizer ask stop",
		},
		"a gang on its own cluster that does not end": {
			train(own, gang, deleted(41)), seen(bound(), says(headclient.JobRunning)), ` Stopping record(1 own 1 bound "session_1" ending "" outcome "")`,
		},
	})
}

// TestWarnOfGrace: where something gives a gang less than its grace, the message says so.
func TestWarnOfGrace(t *testing.T) {
	cluster := demo()
	cluster.Spec.WorkerGroups[0].DrainSeconds = number(20)
	shared, alone := train(gang), train(own, gang)
	for grace, want := range map[int32]string{
		10: "", 30: " (gracePeriodSeconds is 30; drainSeconds of group cpu gives 20 s)",
		60: " (gracePeriodSeconds is 60; drainSeconds of group cpu gives 20 s, an eviction gives 45 s)",
	} {
		shared.Spec.Gang.GracePeriodSeconds = &grace
		if have := warnOfGrace(&shared.Spec, cluster); have != want {
			t.Errorf("a grace of %d s: %q, want %q", grace, have, want)
		}
	}
	alone.Spec.Gang.GracePeriodSeconds = number(60)
	if have := warnOfGrace(&alone.Spec, demo()); have != "" {
		t.Errorf("on its own cluster: %q", have)
	}
}

// TestGivenGrace: the pods of a gang's own cluster have its grace, and no less than the user gives.
func TestGivenGrace(t *testing.T) {
	job := train(own, gang, func(j *v1beta1.ClusterJob) {
		spec := &j.Spec.ClusterTemplate.Spec
		spec.RayVersion = "2.57.0"
		spec.WorkerGroups = append(spec.WorkerGroups, v1beta1.WorkerGroup{Name: "gpu", NodeSpec: v1beta1.NodeSpec{Template: &corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{TerminationGracePeriodSeconds: new(int64(500)), Containers: []corev1.Container{
				{Name: "beside"}, {Name: "ray", Env: []corev1.EnvVar{{Name: "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S", Value: "400"}}, Lifecycle: &corev1.Lifecycle{
					PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}},
				}},
			}},
		}}})
	})
	before := job.DeepCopy()
	spec := ownCluster(job, 1).Spec
	for name, test := range map[string]struct {
		node         v1beta1.NodeSpec
		grace        int64
		drain, waits string
	}{
		"head":             {spec.Head.NodeSpec, 40, "35", ""},
		"worker":           {spec.WorkerGroups[0].NodeSpec, 40, "35", "exec"},
		"worker of a user": {spec.WorkerGroups[1].NodeSpec, 500, "400", "sleep"},
	} {
		pod := test.node.Template.Spec
		ray := pod.Containers[len(pod.Containers)-1]
		waits := ""
		if ray.Lifecycle != nil {
			waits = map[bool]string{true: "exec", false: "sleep"}[ray.Lifecycle.PreStop.Exec != nil]
		}
		if *pod.TerminationGracePeriodSeconds != test.grace || ray.Name != "ray" || len(ray.Env) != 1 || ray.Env[0].Value != test.drain || waits != test.waits {
			t.Errorf("%s: %d s, %+v", name, *pod.TerminationGracePeriodSeconds, ray)
		}
	}
	if !reflect.DeepEqual(job, before) {
		t.Error("the job was changed")
	}
	job.Spec.ClusterTemplate.Spec.RayVersion = "2.58.0"
	if ray := ownCluster(job, 1).Spec.WorkerGroups[0].Template.Spec.Containers[0]; ray.Lifecycle != nil {
		t.Errorf("with a Ray that drains: %+v", ray.Lifecycle)
	}
}

// TestGangStatus: it shows what is reported of an attempt, never fewer restarts than before, and what there was where nothing
// can be read.
func TestGangStatus(t *testing.T) {
	status := func(job *v1beta1.ClusterJob, s Seen) *v1beta1.GangStatus {
		recorded(s.Record)(job)
		return Status(job, s, Decide(job, s, now), nil, now).Gang
	}
	running := says(headclient.JobRunning)
	restarted := reports(launcher.Running, first(launcher.OutOfMemory), func(r *launcher.Report) { r.Round = 4 })
	ended := metav1.Unix(now.Unix(), 0)
	want := &v1beta1.GangStatus{Restarts: 3, Replicas: 2, Ready: 2, LastRestart: &v1beta1.GangRestart{
		RestartTime: &ended, Replica: "worker/1", Reason: "OutOfMemory", Message: "exited with 3",
	}}
	job := train(gang, runsSince(50))
	if diff := gocmp.Diff(want, status(job, seen(bound(), running, restarted))); diff != "" {
		t.Errorf("restarted (- wanted, + shown):\n%s", diff)
	}
	job.Status.Attempt, job.Status.Gang = 1, want
	if diff := gocmp.Diff(want, status(job, seen(bound(), running))); diff != "" {
		t.Errorf("unreadable (- wanted, + shown):\n%s", diff)
	}
	fewer := status(job, seen(bound(), running, reports(launcher.Gathering, waiting("1 of 2"))))
	if fewer.Restarts != 3 || fewer.Ready != 1 || fewer.LastRestart == nil {
		t.Errorf("a report that takes back: %+v", fewer)
	}
	if next := status(job, seen(bound(func(r *Record) { r.Attempt = 2 }), says(headclient.JobPending))); next != nil {
		t.Errorf("the next attempt has %+v", next)
	}
	if plain := status(train(), seen(bound(), running, restarted)); plain != nil {
		t.Errorf("a plain job has %+v", plain)
	}
}

// TestGangEvents: one that is placed is told once, and each restart once.
func TestGangEvents(t *testing.T) {
	running := says(headclient.JobRunning)
	round := func(n int32) func(*launcher.Report) { return func(r *launcher.Report) { r.Round = n } }
	told := func(phase string, restarts int32) edit {
		return func(j *v1beta1.ClusterJob) { toldPhase(phase)(j); j.Status.Gang.Restarts = restarts }
	}
	for name, test := range map[string]struct {
		edits []edit
		seen  func(*Seen)
		want  string
	}{
		"gathers":           {nil, reports(launcher.Gathering), ""},
		"is placed":         {[]edit{told(v1beta1.PhaseGathering, 0)}, reports(launcher.Running), "GangPlaced"},
		"was placed":        {[]edit{told(v1beta1.PhaseRunning, 0)}, reports(launcher.Running), ""},
		"restarts":          {[]edit{told(v1beta1.PhaseRunning, 1)}, reports(launcher.Running, first(launcher.Exit), round(3)), "GangRestarted"},
		"restarted, told":   {[]edit{told(v1beta1.PhaseRunning, 2)}, reports(launcher.Running, first(launcher.Exit), round(3)), ""},
		"another's restart": {[]edit{told(v1beta1.PhaseRunning, 9), func(j *v1beta1.ClusterJob) { j.Status.Attempt = 7 }}, reports(launcher.Running, first(launcher.Exit), round(2)), "GangRestarted"},
	} {
		plan := decide(train(append([]edit{gang, runsSince(5)}, test.edits...)...), seen(bound(), running, test.seen))
		var codes []string
		for _, event := range plan.Events {
			codes = append(codes, event.Finding.Code)
		}
		if have := strings.Join(codes, " "); have != test.want {
			t.Errorf("%s: %q, want %q", name, have, test.want)
		}
	}
}

// TestGangQueue: gangs gather in the order of their creation; plain jobs, and gangs that run or wait for a time, stand in no way.
func TestGangQueue(t *testing.T) {
	at := func(name string, seconds int64, edits ...edit) v1beta1.ClusterJob {
		job := train(append([]edit{gang}, edits...)...)
		job.Name, job.UID, job.CreationTimestamp = name, types.UID(name), metav1.Unix(ago(seconds), 0)
		return *job
	}
	holds := func(phase string, edits ...func(*Record)) edit {
		return func(j *v1beta1.ClusterJob) {
			j.UID = types.UID(j.Name)
			recorded(bound(edits...))(j)
			j.Status.Attempt, j.Status.Phase = 1, phase
		}
	}
	named := func(name string, seconds int64, phase string, edits ...func(*Record)) v1beta1.ClusterJob {
		job := at(name, seconds)
		holds(phase, edits...)(&job)
		return job
	}
	jobs := []v1beta1.ClusterJob{
		named("runs", 900, v1beta1.PhaseRunning), named("is-stopped", 800, v1beta1.PhaseGathering, ending(reason.Stopped, 5)),
		named("gathers", 500, v1beta1.PhaseGathering), at("suspended", 700, suspend),
		at("too-large", 650, func(j *v1beta1.ClusterJob) { j.Spec.Gang.Roles[0].Resources = cpus("64") }),
		at("first", 600), at("second", 400), at("third", 300), at("plain", 1000, func(j *v1beta1.ClusterJob) { j.Spec.Gang = nil }),
	}
	queued := new(WaitingJobs).sortWaiting(jobs, demo(), now)
	for name, want := range map[types.UID]struct {
		before string
		place  int
	}{"first": {"", 0}, "second": {"first", 2}, "third": {"first", 3}, "plain": {"", 0}, "too-large": {"", 0}} {
		if before, place := queued.gangBefore(name); before != want.before || place != want.place {
			t.Errorf("%s waits for %q at place %d, want %q at %d", name, before, place, want.before, want.place)
		}
	}
	if next := new(WaitingJobs).Next(jobs, demo(), now); len(next) != 3 {
		t.Errorf("woken are %v", next)
	}
	plan := decide(train(gang), seen(newRecord(), func(s *Seen) { s.Position = Position{Gang: "first", GangPlace: 2} }))
	if have := gist(plan); have != "Pending GangQueued ask" || plan.Wake == 0 {
		t.Errorf("behind another gang: %s, again after %s", have, plan.Wake)
	}
}

// TestLostPlaces: a worker that is gone is one that the operator must have seen.
func TestLostPlaces(t *testing.T) {
	cluster := demo()
	cluster.Status.Groups = []v1beta1.GroupStatus{{Name: "cpu", WorkerCounts: v1beta1.WorkerCounts{Desired: 2}}}
	worker := func(slot int, edits ...func(*corev1.Pod)) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name:   naming.Pod("demo", "demo-uid", naming.Place{Group: "cpu", Slot: slot, Epoch: 1}),
			Labels: naming.PodLabels("demo", naming.Place{Group: "cpu", Slot: slot, Epoch: 1}), CreationTimestamp: metav1.Unix(ago(600), 0),
		}}
		for _, edit := range edits {
			edit(pod)
		}
		return pod
	}
	name := func(slot int) string { return worker(slot).Name }
	failed := func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
	fresh := func(p *corev1.Pod) { p.CreationTimestamp = metav1.Unix(ago(5), 0) }
	for what, test := range map[string]struct {
		named []string
		pods  []*corev1.Pod
		away  bool
		want  bool
	}{
		"both are there":                          {nil, []*corev1.Pod{worker(0), worker(1)}, false, false},
		"the one that is named is there":          {[]string{name(0)}, []*corev1.Pod{worker(0), worker(1)}, false, false},
		"it failed":                               {[]string{name(0)}, []*corev1.Pod{worker(0, failed), worker(1)}, false, true},
		"its node is lost":                        {[]string{name(0)}, []*corev1.Pod{worker(0)}, true, true},
		"another failed":                          {[]string{name(0)}, []*corev1.Pod{worker(0), worker(1, failed)}, false, false},
		"it was replaced":                         {[]string{name(0)}, []*corev1.Pod{worker(0, fresh), worker(1)}, false, true},
		"it is missing":                           {[]string{name(1)}, []*corev1.Pod{worker(0)}, false, true},
		"a name that no worker has":               {[]string{"demo-cpu-7-x", name(7)}, []*corev1.Pod{worker(0), worker(1)}, false, false},
		"none is named, and one is missing":       {nil, []*corev1.Pod{worker(0)}, false, true},
		"none is named, and one failed":           {nil, []*corev1.Pod{worker(0), worker(1, failed)}, false, true},
		"one that is named is there, one missing": {[]string{name(0)}, []*corev1.Pod{worker(0)}, false, false},
	} {
		search := lossSearch{cluster: cluster, named: test.named, since: now, there: map[string]bool{}, epochs: map[int64]bool{}}
		for _, pod := range test.pods {
			search.add(pod, test.away)
		}
		if have := search.isFound(); have != test.want {
			t.Errorf("%s: %t, want %t", what, have, test.want)
		}
	}
}
