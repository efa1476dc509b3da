package job

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// asked has the annotation ask for the stop.
func asked(job *v1beta1.ClusterJob) { note(v1beta1.AnnotationStop, v1beta1.StopOn)(job) }

// twice lets another attempt follow a failure or a loss.
func twice(job *v1beta1.ClusterJob) { job.Spec.Retry = &v1beta1.Retry{Limit: 1} }

// between is the record of a job whose first attempt failed, and whose second is to come.
func between() Record {
	return bound(func(r *Record) {
		r.Bound, r.Last, r.Attempt, r.Failures, r.Past = Bound{}, binding(60), 2, 1, []Past{past(1, "EntrypointFailed", 5)}
	})
}

// Gists of what a stop does.
const (
	isStopped  = `Stopped Stopped record(1 own 1 bound "" ending "" outcome "Stopped")`
	isStopping = `Stopping record(1 own 1 bound "session_1" ending "Stopped" outcome "") ask stop`
	goesOn     = `Running Stopping ask stop`
)

// TestStop_ByState: what the annotation does in each state of a job.
func TestStop_ByState(t *testing.T) {
	running := says(headclient.JobRunning)
	hold(t, map[string]guarded{
		"waits for a cluster":        {train(asked), seen(newRecord(), noCluster), isStopped},
		"waits in the queue":         {train(asked), seen(newRecord(), line(1, 1, 1)), isStopped},
		"could be bound":             {train(asked), seen(newRecord()), isStopped},
		"own cluster to be made":     {train(own, asked), seen(newRecord(), noCluster), isStopped},
		"own cluster without a head": {train(own, asked), seen(newRecord(), noHead), isStopped},
		"invalid":                    {train(asked, func(j *v1beta1.ClusterJob) { j.Spec.Entrypoint = "" }), seen(newRecord()), isStopped},
		"bound, not submitted":       {train(asked), seen(bound()), "Submitting " + isStopping},
		"PENDING":                    {train(asked), seen(bound(), says(headclient.JobPending)), "Submitting " + isStopping},
		"runs":                       {train(asked), seen(bound(), running), "Running " + isStopping},
		"runs, and the head is silent": {
			train(asked, runsSince(10)), seen(bound(), running, silent(200)), "Running " + isStopping,
		},
		"being stopped":                {train(asked), seen(bound(ending(reason.Stopped, 10)), running), goesOn},
		"being stopped, to be resumed": {train(), seen(bound(ending(reason.Stopped, 10)), running), goesOn},
		"in the back-off": {
			train(twice, asked, toldOf(1)), seen(between()), `Stopped Stopped record(2 own 1 bound "" ending "" outcome "Stopped")`,
		},
		"in the back-off, its lines to be read": {
			train(twice, asked), seen(between()), `Stopped Stopped record(2 own 1 bound "" ending "" outcome "Stopped")`,
		},
		"suspended": {train(suspend, asked), seen(bound(func(r *Record) { r.Bound, r.Suspended = Bound{}, true })), isStopped},
		"being suspended": {
			train(suspend, asked), seen(bound(ending(reason.JobSuspended, 10)), running), "Suspending Stopping ask stop",
		},
		"to be suspended as well":   {train(suspend, asked), seen(bound(), running), "Running " + isStopping},
		"over a deadline as well":   {train(asked), seen(bound(ending(reason.DeadlineExceeded, 10)), running), goesOn},
		"being deleted":             {train(asked, deleted(10)), seen(bound(), running), " Stopping finalizer ask stop"},
		"ended":                     {train(asked, toldOf(1)), seen(bound(outcome)), "Failed EntrypointFailed"},
		"ended, its cluster is own": {train(own, asked, toldOf(1)), seen(bound(outcome)), "Failed EntrypointFailed free"},
		"unreadable":                {train(asked), Seen{RecordError: errors.New("no")}, " RecordDamaged stalled"},
	})
}

// TestStop_ByEnd: how a job ends that is asked to stop, by how its attempt did.
func TestStop_ByEnd(t *testing.T) {
	stopping := bound(ending(reason.Stopped, 10))
	failed, lost := says(headclient.JobFailed, exits(3)), noHead
	const isFailed = `record(1 own 1 bound "" ending "" outcome "Failed")`
	hold(t, map[string]guarded{
		"stopped":                      {train(asked), seen(stopping, says(headclient.JobStopped)), isStopped},
		"killed before it began":       {train(asked), seen(stopping, says(headclient.JobFailed, failsWith("JOB_SUPERVISOR_ACTOR_DIED"))), isStopped},
		"succeeded before":             {train(asked), seen(stopping, says(headclient.JobSucceeded)), `Succeeded JobSucceeded record(1 own 1 bound "" ending "" outcome "Succeeded")`},
		"failed before":                {train(asked), seen(stopping, failed), "Failed EntrypointFailed " + isFailed},
		"failed, would be tried again": {train(asked, twice), seen(stopping, failed), isStopped},
		"failed, before it was noted":  {train(asked, twice), seen(bound(), failed), isStopped},
		"lost":                         {train(asked), seen(stopping, lost), isStopped + " confirm"},
		"lost, would be tried again":   {train(asked, twice), seen(stopping, lost), isStopped + " confirm"},
		"lost, and the word was taken back": {
			train(twice), seen(stopping, lost), isStopped + " confirm",
		},
		"stopped by others, too": {train(asked), seen(bound(), says(headclient.JobStopped)), `Stopped StoppedInRay record(1 own 1 bound "" ending "" outcome "Stopped")`},
		"its attempt's time is over": {
			train(asked, twice), seen(bound(ending(reason.AttemptDeadlineExceeded, 10)), says(headclient.JobStopped)), isStopped,
		},
		"it was suspended": {
			train(asked, suspend), seen(bound(ending(reason.JobSuspended, 10)), says(headclient.JobStopped)), isStopped,
		},
		"own, given up":    {train(own, asked), seen(bound(ending(reason.Stopped, 30)), silent(200)), `Stopped Stopped record(1 own 2 bound "" ending "" outcome "Stopped")`},
		"shared, before":   {train(asked), seen(bound(ending(reason.Stopped, 119)), silent(200)), "Submitting Stopping ask stop"},
		"shared, given up": {train(asked), seen(bound(ending(reason.Stopped, 120)), silent(200)), "Failed StopAbandoned " + isFailed},
		"suspended, given up": {
			train(asked, suspend), seen(bound(ending(reason.JobSuspended, 120)), silent(200)), "Failed StopAbandoned " + isFailed,
		},
	})
}

// TestStop_TakesOneValue: nothing but "true" stops a job, as nothing brings it back.
func TestStop_TakesOneValue(t *testing.T) {
	for _, value := range []string{"false", "", "True", "yes", "1", "now", " true"} {
		if plan := decide(train(note(v1beta1.AnnotationStop, value)), seen(bound(), says(headclient.JobRunning))); gist(plan) != "Running JobRunning ask" {
			t.Errorf("%q: %s", value, gist(plan))
		}
	}
}

// TestStop_LeavesTheQueue: who is to stop takes nobody's place.
func TestStop_LeavesTheQueue(t *testing.T) {
	if job := train(); !entryOfJob(job).isWaiting(now) {
		t.Error("a job that waits stands in no queue")
	}
	if job := train(asked); entryOfJob(job).isWaiting(now) {
		t.Error("a job that is to stop stands in the queue")
	}
}

// TestPermit_LooksForTheStop: an operator that has not seen the annotation submits nothing.
func TestPermit_LooksForTheStop(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name        string
		there, seen edit
		permitted   bool
	}{
		{"nobody asks for it", note("a", "b"), note("a", "b"), true},
		{"it is asked for", asked, note("a", "b"), false},
		{"another value is no stop", note(v1beta1.AnnotationStop, "false"), note("a", "b"), true},
	} {
		live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(train(test.there)).Build()
		r := &Reconciler{Live: live, Clock: clocktesting.NewFakePassiveClock(now)}
		if _, err := r.renewPermit(t.Context(), train(test.seen)); (err == nil) != test.permitted {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
