package testkit

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Job is a valid job on the cluster demo, with a UID that follows from its name.
func Job(name string) *v1beta1.ClusterJob {
	return &v1beta1.ClusterJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: jobKind},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace, UID: types.UID(name + "-uid"), Generation: 1},
		Spec: v1beta1.ClusterJobSpec{
			ClusterRef: &v1beta1.ClusterReference{Name: "demo"}, Entrypoint: "python train.py",
		},
	}
}

// OwnJob is a valid job with a cluster of its own with the given groups.
func OwnJob(name string, groups ...v1beta1.WorkerGroup) *v1beta1.ClusterJob {
	job := Job(name)
	job.Spec.ClusterRef = nil
	job.Spec.ClusterTemplate = &v1beta1.ClusterTemplate{Spec: Cluster("any", groups...).Spec}
	return job
}

// Job reads a job.
func (w *World) Job(name string) *v1beta1.ClusterJob {
	w.Helper()
	var found v1beta1.ClusterJob
	w.Must(w.Client.Get(w.Ctx, types.NamespacedName{Namespace: Namespace, Name: name}, &found))
	return &found
}

// EditJob changes a job's spec or metadata, as a user does.
func (w *World) EditJob(name string, edit func(*v1beta1.ClusterJob)) {
	w.Helper()
	found := w.Job(name)
	edit(found)
	w.Must(w.Client.Update(w.Ctx, found))
}

// OwnClusters are the clusters that there are of a job's own.
func (w *World) OwnClusters(job string) []*v1beta1.ComputeCluster {
	w.Helper()
	var all []*v1beta1.ComputeCluster
	for _, obj := range w.all() {
		owner := metav1.GetControllerOf(obj)
		if cluster, ok := obj.(*v1beta1.ComputeCluster); ok && owner != nil && owner.Kind == jobKind && owner.Name == job {
			all = append(all, cluster)
		}
	}
	return all
}

// ExpectJob asserts a job's phase, its conditions, given as "Type=Status Reason", and how its
// attempts ended, given as "1 Reason LogState".
func (w *World) ExpectJob(name, phase string, wanted ...string) {
	w.Helper()
	found := w.Job(name)
	if found.Status.Phase != phase {
		w.Fatalf("job %s is %q, want %q; %s", name, found.Status.Phase, phase, told(found))
	}
	var attempts []string
	for _, want := range wanted {
		kind, _, isCondition := strings.Cut(want, "=")
		if !isCondition {
			attempts = append(attempts, want)
			continue
		}
		have := kind + "=absent"
		if condition := meta.FindStatusCondition(found.Status.Conditions, kind); condition != nil {
			have = fmt.Sprintf("%s=%s %s", kind, condition.Status, condition.Reason)
		}
		if w.trouble.forgets && have == "Suspended=absent" {
			have = "Suspended=False" // only the former status told that it was
		}
		if have != want && !strings.HasPrefix(have, want+" ") {
			w.Fatalf("job %s: %s, want %s; %s", name, have, want, told(found))
		}
	}
	have := AttemptsOf(found)
	if w.trouble.forgets {
		have, attempts = withoutOutput(have), withoutOutput(attempts)
	}
	if attempts != nil && strings.Join(have, ", ") != strings.Join(attempts, ", ") {
		w.Fatalf("job %s has the attempts %q, want %q; %s", name, have, attempts, told(found))
	}
}

// withoutOutput has attempts tell only that something is known of their output.
func withoutOutput(attempts []string) []string {
	var all []string
	for _, attempt := range attempts {
		for _, state := range []v1beta1.LogState{v1beta1.LogComplete, v1beta1.LogTruncated, v1beta1.LogLost} {
			attempt = strings.Replace(attempt, " "+string(state), " told", 1)
		}
		all = append(all, attempt)
	}
	return all
}

// ExpectLines asserts the last lines of an attempt, where they were not lost with a status.
func (w *World) ExpectLines(name string, attempt int, lines ...string) {
	w.Helper()
	have := w.Job(name).Status.Attempts[attempt-1]
	if !slices.Equal(have.LastLines, lines) && !(w.trouble.forgets && have.LogState == v1beta1.LogLost) {
		w.Fatalf("attempt %d of %s has the last lines %q (%s), want %q", attempt, name, have.LastLines, have.LogState, lines)
	}
}

// AttemptsOf are the attempts that a job's status tells of, as "number reason logState".
func AttemptsOf(job *v1beta1.ClusterJob) []string {
	var all []string
	for i := range job.Status.Attempts {
		attempt := &job.Status.Attempts[i]
		text := fmt.Sprintf("%d %s", attempt.Number, attempt.Reason)
		if attempt.ExitCode != nil {
			text += fmt.Sprintf("(%d)", *attempt.ExitCode)
		}
		all = append(all, strings.TrimSpace(text+" "+string(attempt.LogState)))
	}
	return all
}

// told is all that a job's status tells, for a failed test.
func told(job *v1beta1.ClusterJob) string {
	var text strings.Builder
	for i := range job.Status.Conditions {
		condition := &job.Status.Conditions[i]
		fmt.Fprintf(&text, "\n%s=%s %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message)
	}
	fmt.Fprintf(&text, "\nattempts %q\nrecord %s", AttemptsOf(job), job.Annotations[v1beta1.AnnotationRecord])
	return text.String()
}

// JobMessage is the text of a job's condition Ready.
func (w *World) JobMessage(name string) string {
	w.Helper()
	condition := meta.FindStatusCondition(w.Job(name).Status.Conditions, v1beta1.ConditionReady)
	if condition == nil {
		return ""
	}
	return condition.Message
}

// Ran asserts how many runs began of a job.
func (w *World) Ran(name string, want int) {
	w.Helper()
	if have := w.Jobs.Runs(w.Job(name).UID); len(have) != want {
		w.Fatalf("job %s ran %d times, want %d: %+v", name, len(have), want, have)
	}
}

// HasJob reports whether there is a job.
func (w *World) HasJob(name string) bool {
	return w.server.latest.find(key{jobKind, types.NamespacedName{Namespace: Namespace, Name: name}}) != nil
}
