package job

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/jobs"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// ago is so many seconds before now, in Unix time.
func ago(seconds int64) int64 { return now.Unix() - seconds }

type edit = func(*v1beta1.ClusterJob)

// train is a job on the cluster demo, made a minute ago.
func train(edits ...edit) *v1beta1.ClusterJob {
	job := &v1beta1.ClusterJob{
		ObjectMeta: metav1.ObjectMeta{
			Name: "train", Namespace: "default", UID: "job-uid", Generation: 1, CreationTimestamp: metav1.Unix(ago(60), 0),
		},
		Spec: v1beta1.ClusterJobSpec{ClusterRef: &v1beta1.ClusterReference{Name: "demo"}, Entrypoint: "python train.py"},
	}
	for _, edit := range edits {
		edit(job)
	}
	return job
}

// note annotates a job.
// recorded gives a job the record, as one of its own.
func recorded(record Record) edit {
	return func(job *v1beta1.ClusterJob) {
		record.Of = job.UID
		note(v1beta1.AnnotationRecord, record.String())(job)
	}
}

func note(key, value string) edit {
	return func(job *v1beta1.ClusterJob) {
		if job.Annotations == nil {
			job.Annotations = map[string]string{}
		}
		job.Annotations[key] = value
	}
}

// badVariable gives the driver a variable that no rule lets it have.
func badVariable(job *v1beta1.ClusterJob) {
	job.Spec.Env = []corev1.EnvVar{{Name: "HELIOSTAT_X", Value: "1"}}
}

// own gives a job a cluster of its own.
func own(job *v1beta1.ClusterJob) {
	job.Spec.ClusterRef = nil
	job.Spec.ClusterTemplate = &v1beta1.ClusterTemplate{Spec: v1beta1.ComputeClusterSpec{
		RayVersion: "2.60.0", WorkerGroups: []v1beta1.WorkerGroup{{Name: "cpu", Replicas: number(1)}},
	}}
}

func number(n int32) *int32 { return &n }

// gang makes a job a gang of two places.
func gang(job *v1beta1.ClusterJob) {
	job.Spec.Gang = &v1beta1.Gang{Framework: v1beta1.FrameworkPyTorch, Roles: []v1beta1.GangRole{{
		Name: v1beta1.GangRoleWorker, Replicas: 2, Resources: map[string]resource.Quantity{"CPU": resource.MustParse("0.5")},
	}}}
}

// tuned makes a job run trials of one process.
func tuned(job *v1beta1.ClusterJob) {
	job.Spec.Tune = &v1beta1.Tune{
		Objective: v1beta1.TuneObjective{Metric: "val_accuracy"}, MaxTrials: 20, ParallelTrials: 4,
		Parameters: []v1beta1.TuneParameter{{Name: "learningRate", Type: v1beta1.ParameterFloat, Min: "0.1", Max: "1"}},
	}
}

// session is the one that answers at the head of demo.
var session = headclient.Session{Name: "session_1", Version: "2.60.0"}

// binding is what an attempt is bound to, since so many seconds.
func binding(seconds int64) Bound {
	return Bound{Cluster: "demo", UID: "demo-uid", Pod: "demo-head", Head: "head-uid", Session: session.Name, At: ago(seconds)}
}

// bound is the record of a job whose first attempt was bound a minute ago.
func bound(edits ...func(*Record)) Record {
	record := newRecord()
	record.Bound = binding(60)
	for _, edit := range edits {
		edit(&record)
	}
	return record
}

// past is an attempt that ended for a reason so many seconds ago.
func past(number int32, reason string, seconds int64) Past {
	return Past{Number: number, Cluster: "demo", Head: "head-uid", Reason: reason, Start: ago(seconds + 10), End: ago(seconds)}
}

// head is the head pod of demo, ready.
func head() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "demo-head", Namespace: "default", UID: "head-uid", Labels: map[string]string{v1beta1.LabelRole: v1beta1.RoleHead, v1beta1.LabelCluster: "demo"}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

// demo is the cluster.
func demo() *v1beta1.ComputeCluster {
	return &v1beta1.ComputeCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "default", UID: "demo-uid"},
		Spec:       v1beta1.ComputeClusterSpec{WorkerGroups: []v1beta1.WorkerGroup{{Name: "cpu"}}},
	}
}

// seen is what a pass sees of a job with a record: demo with its head, which answers.
func seen(record Record, edits ...func(*Seen)) Seen {
	s := Seen{Record: record, Cluster: demo(), Head: head(), Heard: true, Answer: jobs.Answer{At: now, Session: session}}
	for _, edit := range edits {
		edit(&s)
	}
	return s
}

// says is that Ray knows the run, with a status.
func says(status headclient.JobStatus, edits ...func(*headclient.Job)) func(*Seen) {
	return func(s *Seen) {
		s.Answer.Known, s.Answer.Asked, s.Answer.Submitted = true, now, now.Add(-time.Minute)
		s.Answer.Job = headclient.Job{Status: status, Start: now.Add(-time.Minute)}
		for _, edit := range edits {
			edit(&s.Answer.Job)
		}
		if status.Over() {
			s.Answer.Tailed, s.Answer.Tail.Lines = true, []string{"the end"}
			s.Answer.Job.End = now
		}
	}
}

func exits(code int32) func(*headclient.Job) {
	return func(job *headclient.Job) { job.ExitCode, job.ErrorType = &code, "JOB_ENTRYPOINT_COMMAND_ERROR" }
}

func failsWith(word string) func(*headclient.Job) {
	return func(job *headclient.Job) { job.ErrorType = word }
}

// silent is that the head has not answered for so many seconds.
func silent(seconds int64) func(*Seen) {
	return func(s *Seen) {
		s.Answer.Failure, s.Answer.Err = headclient.Unavailable, fmt.Errorf("connection refused")
		s.Answer.FailingSince = time.Unix(ago(seconds), 0)
	}
}

func noHead(s *Seen) { s.Head, s.Heard, s.Answer = nil, false, jobs.Answer{} }

func noCluster(s *Seen) { noHead(s); s.Cluster = nil }

// runsSince has the status tell that the bound attempt began to run so many seconds ago.
func runsSince(seconds int64) edit {
	return func(job *v1beta1.ClusterJob) {
		at := metav1.Unix(ago(seconds), 0)
		job.Status.Attempts = append(job.Status.Attempts, v1beta1.JobAttempt{Number: 1, StartTime: &at})
	}
}

// toldOf has the status tell of attempts that ended, with their lines.
func toldOf(numbers ...int32) edit {
	return func(job *v1beta1.ClusterJob) {
		for _, n := range numbers {
			job.Status.Attempts = append(job.Status.Attempts, v1beta1.JobAttempt{Number: n, LogState: v1beta1.LogComplete})
		}
	}
}
