package testkit_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/job"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// run is a job as the operator wrote it last: with a record and in a phase.
func run(record job.Record, phase string) *v1beta1.ClusterJob {
	of := testkit.Job("train")
	of.Annotations = map[string]string{v1beta1.AnnotationRecord: record.String()}
	of.Status.Phase = phase
	kind := map[string]string{"Succeeded": v1beta1.ConditionComplete, "Failed": v1beta1.ConditionFailed, "Stopped": v1beta1.ConditionFailed}[phase]
	if kind != "" {
		of.Status.Conditions = []metav1.Condition{
			{Type: kind, Status: metav1.ConditionTrue}, {Type: v1beta1.ConditionFinished, Status: metav1.ConditionTrue},
		}
	}
	return of
}

// record is that of an attempt, bound to a head of a session if one is given.
func record(attempt int32, head, session string) job.Record {
	r := job.Record{Version: 1, Own: 1, Attempt: attempt}
	if head != "" {
		r.Bound = job.Bound{Cluster: "demo", UID: "demo-uid", Pod: "pod", Head: types.UID(head), Session: session}
	}
	return r
}

// over is a record with an outcome.
func over(phase string) job.Record {
	r := record(1, "", "")
	r.Outcome = job.Outcome{Phase: phase, Reason: "Because"}
	return r
}

// TestHistoryOfJobsBites breaks each rule about what the operator writes of a job, and keeps
// each by a hair's breadth.
func TestHistoryOfJobsBites(t *testing.T) {
	past := record(3, "", "")
	past.Past = []job.Past{{Number: 2}, {Number: 1}}
	faulty := run(over("Failed"), "Failed")
	faulty.Status.Conditions[0].Type = v1beta1.ConditionComplete
	unfinished := run(over("Failed"), "Failed")
	unfinished.Status.Conditions[1].Status = metav1.ConditionFalse
	changed := run(record(1, "", ""), "Pending")
	changed.Generation++
	unordered := run(record(2, "", ""), "Pending")
	unordered.Status.Attempts = []v1beta1.JobAttempt{{Number: 2}, {Number: 1}}
	for name, test := range map[string]struct {
		story  []*v1beta1.ClusterJob
		broken int
	}{
		"a life": {[]*v1beta1.ClusterJob{
			run(record(1, "", ""), "Pending"), run(record(1, "a", "1"), "Submitting"), run(record(1, "a", "1"), "Running"), run(record(2, "", ""), "Retrying"),
			run(record(2, "b", "1"), "Submitting"), run(over("Succeeded"), "Succeeded"),
		}, 0},
		"bound to another head":       {[]*v1beta1.ClusterJob{run(record(1, "a", "1"), "Submitting"), run(record(1, "b", "1"), "Submitting")}, 1},
		"bound to another session":    {[]*v1beta1.ClusterJob{run(record(1, "a", "1"), "Submitting"), run(record(1, "a", "2"), "Submitting")}, 1},
		"bound again after an end":    {[]*v1beta1.ClusterJob{run(record(2, "", ""), "Retrying"), run(record(1, "a", "1"), "Submitting")}, 1},
		"bound after the outcome":     {[]*v1beta1.ClusterJob{run(over("Failed"), "Failed"), run(record(1, "a", "1"), "Failed")}, 2},
		"another outcome":             {[]*v1beta1.ClusterJob{run(over("Failed"), "Failed"), run(over("Succeeded"), "Failed")}, 1},
		"left its end":                {[]*v1beta1.ClusterJob{run(over("Failed"), "Failed"), run(over("Failed"), "Running")}, 1},
		"a phase that has no way":     {[]*v1beta1.ClusterJob{run(record(1, "", ""), "Running"), run(record(1, "", ""), "Provisioning"), run(record(1, "", ""), "Unheard")}, 1},
		"over without an outcome":     {[]*v1beta1.ClusterJob{run(record(1, "", ""), "Failed")}, 1},
		"failed and complete":         {[]*v1beta1.ClusterJob{faulty}, 1},
		"failed and not finished":     {[]*v1beta1.ClusterJob{unfinished}, 1},
		"the spec":                    {[]*v1beta1.ClusterJob{run(record(1, "", ""), "Pending"), changed}, 1},
		"past attempts out of order":  {[]*v1beta1.ClusterJob{run(past, "Pending")}, 1},
		"told attempts out of order":  {[]*v1beta1.ClusterJob{unordered}, 1},
		"a status that was lost once": {[]*v1beta1.ClusterJob{run(record(1, "a", "1"), "Running"), run(record(1, "a", "1"), ""), run(record(1, "a", "1"), "Running")}, 0},
	} {
		history := testkit.NewHistory()
		for _, revision := range test.story {
			history.Observe(testkit.Event{Type: watch.Modified, Object: revision, Own: true})
		}
		if broken := history.Broken(); len(broken) != test.broken {
			t.Errorf("%s: broken %q, want %d", name, broken, test.broken)
		}
	}
}

// TestHistoryOfRunsBites breaks each rule about what heads are asked to run.
func TestHistoryOfRunsBites(t *testing.T) {
	at := func(head, session string) testkit.Run {
		return testkit.Run{ID: "train-1", Job: "train-uid", Attempt: 1, Head: types.UID(head), Session: session}
	}
	for name, test := range map[string]struct {
		record job.Record
		runs   []testkit.Run
		broken int
	}{
		"once":             {record(1, "a", "1"), []testkit.Run{at("a", "1")}, 0},
		"twice":            {record(1, "a", "1"), []testkit.Run{at("a", "1"), at("a", "1")}, 1},
		"elsewhere":        {record(1, "a", "1"), []testkit.Run{at("b", "1")}, 1},
		"another session":  {record(1, "a", "1"), []testkit.Run{at("a", "2")}, 1},
		"not bound":        {record(1, "", ""), []testkit.Run{at("a", "1")}, 1},
		"another attempt":  {record(2, "a", "1"), []testkit.Run{at("a", "1")}, 1},
		"after the end":    {over("Failed"), []testkit.Run{at("a", "1")}, 2},
		"someone else's":   {record(1, "a", "1"), nil, 0},
		"both, and not it": {record(1, "a", "1"), []testkit.Run{at("a", "1"), at("b", "1")}, 2},
	} {
		history := testkit.NewHistory()
		history.Observe(testkit.Event{Type: watch.Added, Object: run(test.record, ""), Own: true})
		for _, begun := range test.runs {
			history.Submitted(begun)
			history.Began(begun)
		}
		if broken := history.Broken(); len(broken) != test.broken {
			t.Errorf("%s: broken %q, want %d", name, broken, test.broken)
		}
	}
	history := testkit.NewHistory()
	if history.Submitted(at("a", "1")); len(history.Broken()) != 1 {
		t.Errorf("a run of no job: %q", history.Broken())
	}
}

// TestHistoryOfPlacesBites: no more jobs than may hold a place, and no cluster of a job's own
// beside another.
func TestHistoryOfPlacesBites(t *testing.T) {
	of := testkit.Cluster("demo")
	of.Spec.MaxConcurrentJobs = new(int32(1))
	history := testkit.NewHistory()
	history.Observe(testkit.Event{Type: watch.Added, Object: of})
	for i, name := range []types.UID{"a", "b"} {
		written := record(1, string(name), "1")
		written.Of = name
		bound := run(written, "Submitting")
		bound.UID = name
		history.Observe(testkit.Event{Type: watch.Added, Object: bound, Own: true})
		if broken := history.Broken(); len(broken) != i {
			t.Errorf("%d jobs on a cluster of one place: %q", i+1, broken)
		}
	}
	history = testkit.NewHistory()
	for i, name := range []string{"first", "second"} {
		made := testkit.Cluster(name)
		made.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(testkit.Job("train"), v1beta1.GroupVersion.WithKind("ClusterJob"))}
		made.Labels = map[string]string{v1beta1.LabelJob: "train"}
		history.Observe(testkit.Event{Type: watch.Added, Object: made, Own: true})
		if broken := history.Broken(); len(broken) != i {
			t.Errorf("%d clusters of a job's own: %q", i+1, broken)
		}
	}
}
