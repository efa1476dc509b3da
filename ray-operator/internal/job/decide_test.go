package job

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// gist is what a plan does and says, in short.
func gist(p Plan) string {
	parts := []string{p.Phase, p.Finding.Code}
	add := func(holds bool, text string) {
		if holds {
			parts = append(parts, text)
		}
	}
	if p.Record != nil {
		r := p.Record
		add(true, fmt.Sprintf("record(%d own %d bound %q ending %q outcome %q)", r.Attempt, r.Own, r.Bound.Session, r.Ending, r.Outcome.Phase))
	}
	add(p.Finalizer, "finalizer")
	add(p.Make != nil, "make")
	add(len(p.Free) > 0, "free")
	add(len(p.Discard) > 0, "discard")
	add(p.Shrink != nil, "shrink")
	add(p.Keep != nil, "keep")
	add(p.End, "delete")
	if p.Ask != nil {
		add(true, "ask")
		add(p.Ask.Submit, "submit")
		add(p.Ask.Stop, "stop")
	}
	add(p.Stalled, "stalled")
	add(p.Lost.Pod != "", "confirm")
	return strings.Join(parts, " ")
}

// decide is a pass over a job whose record stands written as it was seen.
func decide(job *v1beta1.ClusterJob, seen Seen) Plan {
	if seen.RecordError == nil {
		recorded(seen.Record)(job)
	}
	return Decide(job, seen, now)
}

func deleted(seconds int64) edit {
	return func(job *v1beta1.ClusterJob) {
		at := metav1.Unix(ago(seconds), 0)
		job.DeletionTimestamp, job.Finalizers = &at, []string{v1beta1.FinalizerRun}
	}
}

// freed is the job's cluster, which was let go some seconds ago, with its pods or without.
func freed(seconds int64, empty bool) func(*Seen) {
	return func(s *Seen) {
		s.Cluster = demo()
		s.Cluster.Spec.Suspend = new(true)
		s.Cluster.Annotations = map[string]string{v1beta1.AnnotationReleasedAt: reconcile.Stamp(time.Unix(ago(seconds), 0))}
		if empty {
			s.Cluster.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionSuspended, Status: metav1.ConditionTrue}}
		}
	}
}

func suspend(job *v1beta1.ClusterJob) { job.Spec.Suspend = new(true) }

func outcome(r *Record) {
	r.Bound, r.Past = Bound{}, []Past{past(1, "EntrypointFailed", 100)}
	r.Last = binding(200)
	r.Outcome = Outcome{Phase: v1beta1.PhaseFailed, Reason: "EntrypointFailed", Text: "oh no", At: ago(100)}
}

func ending(code reason.Reason, seconds int64) func(*Record) {
	return func(r *Record) { r.Ending, r.Since = code.Code, ago(seconds) }
}

// guarded is a job, what is seen of it, and the gist of what is done.
type guarded struct {
	job  *v1beta1.ClusterJob
	seen Seen
	want string
}

func hold(t *testing.T, table map[string]guarded) {
	t.Helper()
	for name, test := range table {
		if have := gist(decide(test.job, test.seen)); have != test.want {
			t.Errorf("%s:\n%s, want\n%s", name, have, test.want)
		}
	}
}

// TestGuards: each guard decides where it holds, whatever those after it would say.
func TestGuards(t *testing.T) {
	running := says(headclient.JobRunning)
	hold(t, map[string]guarded{
		"unreadable": {train(), Seen{RecordError: errors.New("no")}, " RecordDamaged stalled"},
		"going, nothing runs": {
			train(deleted(0)), seen(newRecord()), " Stopping record(1 own 1 bound \"\" ending \"\" outcome \"\")",
		},
		"going, it runs":      {train(deleted(10)), seen(bound(), running), " Stopping finalizer ask stop"},
		"going, it runs, bad": {train(deleted(10), func(j *v1beta1.ClusterJob) { j.Spec.Entrypoint = "" }), seen(bound(), running), " Stopping finalizer ask stop"},
		"finished, and its own cluster": {
			train(own, toldOf(1)), seen(bound(outcome)), "Failed EntrypointFailed free",
		},
		"finished, and its own cluster is being freed": {
			train(own, toldOf(1)), seen(bound(outcome), freed(14, false)), "Failed EntrypointFailed",
		},
		"finished, and its own cluster has no pods": {
			train(own, toldOf(1)), seen(bound(outcome), freed(1, true)), "Failed EntrypointFailed discard",
		},
		"finished, and its own cluster keeps its pods": {
			train(own, toldOf(1)), seen(bound(outcome), freed(15, false)), "Failed EntrypointFailed discard",
		},
		"finished, its lines to be read": {
			train(own), seen(bound(outcome), func(s *Seen) { s.LastHead, s.Heard = head(), false }), "Failed EntrypointFailed ask",
		},
		"finished, suspended": {train(suspend, toldOf(1)), seen(bound(outcome)), "Failed EntrypointFailed"},
		"invalid":             {train(badVariable), seen(newRecord()), "Pending InvalidSpec stalled"},
		"invalid, but it runs": {
			train(func(j *v1beta1.ClusterJob) { j.Spec.Entrypoint = "" }), seen(bound(), running), "Running JobRunning ask",
		},
		"ending":            {train(), seen(bound(ending(reason.DeadlineExceeded, 10)), running), "Running Stopping ask stop"},
		"ending, suspended": {train(suspend), seen(bound(ending(reason.DeadlineExceeded, 10)), running), "Running Stopping ask stop"},
		"ending, resumed":   {train(), seen(bound(ending(reason.JobSuspended, 10)), running), "Suspending Stopping ask stop"},
		"judged":            {train(suspend), seen(bound(), says(headclient.JobSucceeded)), "Succeeded JobSucceeded record(1 own 1 bound \"\" ending \"\" outcome \"Succeeded\")"},
		"lost, to be confirmed": {
			train(), seen(bound(), noHead), "Failed HeadLost record(1 own 1 bound \"\" ending \"\" outcome \"Failed\") confirm",
		},
		"own cluster gone, retried on another": {
			train(own, func(j *v1beta1.ClusterJob) { j.Spec.Retry = &v1beta1.Retry{Limit: 1} }), seen(bound(), noCluster),
			"Retrying Retrying record(2 own 2 bound \"\" ending \"\" outcome \"\") confirm",
		},
		"own head lost, retried there": {
			train(own, func(j *v1beta1.ClusterJob) { j.Spec.Retry = &v1beta1.Retry{Limit: 1} }), seen(bound(), noHead),
			"Retrying Retrying record(2 own 1 bound \"\" ending \"\" outcome \"\") confirm",
		},
		"bound, and a former cluster came back": {
			train(own), seen(bound(), running, func(s *Seen) { s.Former = []*v1beta1.ComputeCluster{demo()} }), "Running JobRunning free ask",
		},
		"suspended, it runs": {
			train(suspend), seen(bound(), running), "Suspending Stopping record(1 own 1 bound \"session_1\" ending \"JobSuspended\" outcome \"\") ask stop",
		},
		"suspended, waits": {train(suspend), seen(newRecord()), "Suspended JobSuspended record(1 own 1 bound \"\" ending \"\" outcome \"\")"},
		"suspended, own cluster": {
			train(own, suspend), seen(newRecord()), "Suspending ClusterEnding record(1 own 2 bound \"\" ending \"\" outcome \"\") free",
		},
		"late to start": {
			train(func(j *v1beta1.ClusterJob) { j.Spec.StartDeadlineSeconds = number(60) }), seen(newRecord(), noCluster),
			"Failed StartDeadlineExceeded record(1 own 1 bound \"\" ending \"\" outcome \"Failed\")",
		},
	})
}

// TestGuards_LookAtWhatWas: an end that was, and a first attempt.
func TestGuards_LookAtWhatWas(t *testing.T) {
	running := says(headclient.JobRunning)
	hold(t, map[string]guarded{
		"finished, and invalid by now": {
			train(toldOf(1), func(j *v1beta1.ClusterJob) { j.Spec.Entrypoint = "" }), seen(bound(outcome)), "Failed EntrypointFailed",
		},
		"too long, counted from the first attempt": {
			train(func(j *v1beta1.ClusterJob) { j.Spec.ActiveDeadlineSeconds = number(60) }),
			seen(bound(func(r *Record) { r.Attempt, r.Ran = 2, ago(61) }), running), "Running Stopping record(2 own 1 bound \"session_1\" ending \"DeadlineExceeded\" outcome \"\") ask stop",
		},
	})
}

// TestSteps: what a job does that nothing keeps from its own way.
func TestSteps(t *testing.T) {
	running := says(headclient.JobRunning)
	hold(t, map[string]guarded{
		"own cluster to be made": {train(own), seen(newRecord(), noCluster), "Provisioning ClusterStarting make"},
		"no cluster":             {train(), seen(newRecord(), noCluster), "Pending ClusterMissing"},
		"no head":                {train(), seen(newRecord(), noHead), "Pending ClusterStarting"},
		"no address": {
			train(), seen(newRecord(), func(s *Seen) { s.Head.Status.PodIP = "" }), "Pending ClusterStarting",
		},
		"not heard":         {train(), seen(newRecord(), func(s *Seen) { s.Heard = false }), "Pending JobAPIStarting ask"},
		"silent":            {train(), seen(newRecord(), silent(31)), "Pending HeadUnreachable ask"},
		"silent a while":    {train(), seen(newRecord(), silent(29)), "Pending JobAPIStarting ask"},
		"in the queue":      {train(), seen(newRecord(), line(2, 1, 2)), "Pending JobQueued ask"},
		"next in the queue": {train(), seen(newRecord(), line(2, 1, 1)), "Submitting Submitting record(1 own 1 bound \"session_1\" ending \"\" outcome \"\") finalizer ask submit"},
		"to be bound":       {train(), seen(newRecord()), "Submitting Submitting record(1 own 1 bound \"session_1\" ending \"\" outcome \"\") finalizer ask submit"},
		"own, to be bound": {
			train(own), seen(newRecord()), "Submitting Submitting record(1 own 1 bound \"session_1\" ending \"\" outcome \"\") ask submit",
		},
		"bound":         {train(), seen(bound()), "Submitting Submitting ask submit"},
		"bound, silent": {train(), seen(bound(), silent(31)), "Submitting HeadUnreachable ask"},
		"taken":         {train(), seen(bound(), says(headclient.JobPending)), "Submitting JobPending ask"},
		"taken, not heard of yet": {
			train(), seen(bound(), func(s *Seen) { s.Answer.Submitted = now }), "Submitting Submitting ask",
		},
		"ran, not heard of by a new operator": {train(runsSince(10)), seen(bound()), "Running JobRunning ask"},
		"runs":                                {train(), seen(bound(), running), "Running JobRunning ask"},
		"unknown word":                        {train(), seen(bound(), says("HIBERNATING")), "Running JobRunning ask"},
	})
}

func line(most, running, place int) func(*Seen) {
	return func(s *Seen) { s.Position = Position{Most: most, Running: running, Place: place} }
}

// TestOldRay: a label selector that the cluster's Ray would ignore is refused.
func TestOldRay(t *testing.T) {
	selects := func(j *v1beta1.ClusterJob) { j.Spec.EntrypointLabelSelector = map[string]string{"zone": "a"} }
	for version, want := range map[string]string{"2.53.0": "Failed SubmissionRefused", "2.54.0": "Submitting Submitting", "2.60.0": "Submitting Submitting", "3.0": "Submitting Submitting", "": "Submitting Submitting"} {
		have := gist(decide(train(selects), seen(newRecord(), func(s *Seen) { s.Answer.Session.Version = version })))
		if !strings.HasPrefix(have, want) {
			t.Errorf("Ray %q: %s, want %s", version, have, want)
		}
	}
}

// TestPatience: how long a stop is tried, by where it runs and why it is to end.
func TestPatience(t *testing.T) {
	unheard := func(s *Seen) { silent(200)(s) }
	for name, test := range map[string]struct {
		job    *v1beta1.ClusterJob
		ending reason.Reason
		since  int64
		want   string
	}{
		"own, suspended, at once":  {train(own, suspend), reason.JobSuspended, 0, "Suspending Stopping ask stop"},
		"own, suspended, after":    {train(own, suspend), reason.JobSuspended, 1, "Suspending JobSuspended record(2 own 2 bound \"\" ending \"\" outcome \"\")"},
		"own, deadline, at once":   {train(own), reason.DeadlineExceeded, 29, "Submitting Stopping ask stop"},
		"own, deadline, after":     {train(own), reason.DeadlineExceeded, 30, "Failed DeadlineExceeded record(1 own 2 bound \"\" ending \"\" outcome \"Failed\")"},
		"shared, deadline, before": {train(), reason.DeadlineExceeded, 119, "Submitting Stopping ask stop"},
		"shared, deadline, after":  {train(), reason.DeadlineExceeded, 120, "Failed StopAbandoned record(1 own 1 bound \"\" ending \"\" outcome \"Failed\")"},
		"shared, suspended, after": {train(suspend), reason.JobSuspended, 120, "Suspending JobSuspended record(2 own 1 bound \"\" ending \"\" outcome \"\")"},
	} {
		plan := decide(test.job, seen(bound(ending(test.ending, test.since)), unheard))
		if have := gist(plan); have != test.want {
			t.Errorf("%s:\n%s, want\n%s", name, have, test.want)
		}
	}
}

// TestDeletionGivesUp: after two minutes a deletion waits for a silent head no longer.
func TestDeletionGivesUp(t *testing.T) {
	for seconds, want := range map[int64]string{119: " Stopping finalizer ask stop", 120: " Stopping record(1 own 1 bound \"session_1\" ending \"\" outcome \"\")"} {
		plan := decide(train(deleted(seconds)), seen(bound(), silent(200)))
		if have := gist(plan); have != want {
			t.Errorf("after %d s: %s, want %s", seconds, have, want)
		}
		if told := len(plan.Events) == 1 && plan.Events[0].Finding.Code == "StopAbandoned" && plan.Events[0].Also != nil; told != (seconds == 120) {
			t.Errorf("after %d s: events %+v", seconds, plan.Events)
		}
	}
}

// TestWakes: a job that waits for a time is looked at then.
func TestWakes(t *testing.T) {
	retry := func(j *v1beta1.ClusterJob) { j.Spec.Retry = &v1beta1.Retry{Limit: 3, BackoffSeconds: number(30)} }
	failed := func(r *Record) {
		r.Bound, r.Attempt, r.Failures, r.Past, r.Last = Bound{}, 2, 1, []Past{past(1, "EntrypointFailed", 10)}, binding(60)
	}
	for name, test := range map[string]struct {
		job  *v1beta1.ClusterJob
		seen Seen
		want time.Duration
	}{
		"back-off":        {train(retry, toldOf(1)), seen(bound(failed)), 20 * time.Second},
		"start deadline":  {train(func(j *v1beta1.ClusterJob) { j.Spec.StartDeadlineSeconds = number(90) }), seen(newRecord(), noCluster), 30 * time.Second},
		"active deadline": {train(runsSince(10), func(j *v1beta1.ClusterJob) { j.Spec.ActiveDeadlineSeconds = number(60) }), seen(bound(), says(headclient.JobRunning)), 50 * time.Second},
		"ttl":             {train(toldOf(1), func(j *v1beta1.ClusterJob) { j.Spec.TTLSecondsAfterFinished = number(110) }), seen(bound(outcome)), 10 * time.Second},
		"a permit":        {train(), seen(bound()), 4 * time.Second},
		"silent so far":   {train(), seen(bound(), says(headclient.JobRunning), silent(12)), 18 * time.Second},
		"nothing":         {train(), seen(newRecord(), noCluster), 0},
	} {
		if have := decide(test.job, test.seen).Wake; have != test.want {
			t.Errorf("%s: wakes after %s, want %s", name, have, test.want)
		}
	}
}

// TestPlansInWords: a plan's line for the log names each write.
func TestPlansInWords(t *testing.T) {
	record := newRecord()
	plan := Plan{Record: &record, Make: demo(), Discard: []*v1beta1.ComputeCluster{demo()}, Shrink: demo(), Keep: &Keeping{Cluster: demo()}, End: true}
	want := "record " + record.String() + ", create ComputeCluster demo, delete ComputeCluster demo, suspend the workers of ComputeCluster demo, " +
		"note on ComputeCluster demo that it is kept, delete the job"
	if have := plan.String(); have != want {
		t.Errorf("%s, want %s", have, want)
	}
	if (&Plan{}).String() != "" || !(&Plan{}).Empty() || plan.Empty() {
		t.Errorf("a plan of nothing is %q", (&Plan{}).String())
	}
}
