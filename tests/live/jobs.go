package live

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// What specs of jobs report and make accept reads: labels of specs, and names of entries with a
// number of seconds.
const (
	HeadLostLabel, HeadLostEntry = "head-lost", "head deleted under a job to HeadLost"
	FreedLabel, FreedEntry       = "freed", "job suspended to no pod left"
	// JobExamplesLabel is of the specs that apply examples whose parts other specs show.
	JobExamplesLabel = "job-examples"
	// StopLabel is of the specs that stop jobs by their annotation.
	StopLabel = "job-stop"
)

// SubmissionsLabel is the label of the spec that counts runs by their effect,
// SubmissionsEntry the name under which it reports Submissions, and SubmissionsWave how many
// jobs it makes at once.
const (
	SubmissionsLabel, SubmissionsEntry = "submissions", "submissions counted by effect"
	SubmissionsWave                    = 10
)

// Submissions is how many jobs there were, and how many of them ran other than once.
type Submissions struct {
	Jobs    int     `json:"jobs"`
	Doubled int     `json:"doubled"`
	Lost    int     `json:"lost"`
	Kills   int     `json:"kills"`
	Seconds float64 `json:"seconds"`
}

// String is the count in one line.
func (s Submissions) String() string {
	return fmt.Sprintf("%d jobs, the operator killed %d times: %d doubled, %d lost, in %.0f s", s.Jobs, s.Kills, s.Doubled, s.Lost, s.Seconds)
}

// FindJob reads a ClusterJob.
func (c *Cluster) FindJob(ctx context.Context, name types.NamespacedName) (*v1beta1.ClusterJob, error) {
	job := &v1beta1.ClusterJob{}
	if err := c.Get(ctx, name, job); err != nil {
		return nil, fmt.Errorf("read ClusterJob %s: %w", name, err)
	}
	return job, nil
}

// Ended reports whether a job has come to its end.
func Ended(job *v1beta1.ClusterJob) bool {
	return meta.IsStatusConditionTrue(job.Status.Conditions, v1beta1.ConditionComplete) ||
		meta.IsStatusConditionTrue(job.Status.Conditions, v1beta1.ConditionFailed)
}

// UntilPhase waits until a job is in a phase, and gives it. It fails at once where the job
// has come to another end.
func (c *Cluster) UntilPhase(ctx context.Context, name types.NamespacedName, phase string, limit time.Duration) (*v1beta1.ClusterJob, error) {
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var job *v1beta1.ClusterJob
	err := Until(waiting, limit, fmt.Sprintf("ClusterJob %s to be %s", name, phase), func(ctx context.Context) (err error) {
		if job, err = c.FindJob(ctx, name); err != nil || job.Status.Phase == phase {
			return err
		}
		err = fmt.Errorf("it is %s", SaysOf(job))
		if Ended(job) {
			stop(err)
		}
		return err
	})
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("wait for ClusterJob %s to be %s: %w", name, phase, context.Cause(waiting))
	}
	return job, err
}

// SaysOf is what a job's status says, in one line.
func SaysOf(job *v1beta1.ClusterJob) string {
	ready := meta.FindStatusCondition(job.Status.Conditions, v1beta1.ConditionReady)
	if ready == nil {
		ready = &metav1.Condition{}
	}
	return fmt.Sprintf("%s in attempt %d: %s: %s", job.Status.Phase, job.Status.Attempt, ready.Reason, ready.Message)
}

// EditJob changes the spec of a job, as kubectl edit does.
func (c *Cluster) EditJob(ctx context.Context, name types.NamespacedName, change func(*v1beta1.ClusterJobSpec)) error {
	job, err := c.FindJob(ctx, name)
	if err != nil {
		return err
	}
	seen := job.DeepCopy()
	change(&job.Spec)
	if err := c.Patch(ctx, job, client.MergeFrom(seen)); err != nil {
		return fmt.Errorf("edit ClusterJob %s: %w", name, err)
	}
	return nil
}

// DropJobs deletes the jobs of a namespace and waits until they are gone.
func (c *Cluster) DropJobs(ctx context.Context, namespace string, limit time.Duration) error {
	if err := c.DeleteAllOf(ctx, &v1beta1.ClusterJob{}, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("delete the jobs of namespace %s: %w", namespace, err)
	}
	return Until(ctx, limit, "the jobs of namespace "+namespace+" to be gone", func(ctx context.Context) error {
		var jobs v1beta1.ClusterJobList
		err := c.List(ctx, &jobs, client.InNamespace(namespace))
		if err == nil && len(jobs.Items) > 0 {
			err = fmt.Errorf("%d are there, among them %s", len(jobs.Items), jobs.Items[0].Name)
		}
		return err
	})
}

// RayPods lists the pods of all clusters of a namespace, those on their way out included.
func (c *Cluster) RayPods(ctx context.Context, namespace string) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(namespace), client.HasLabels{v1beta1.LabelCluster}); err != nil {
		return nil, fmt.Errorf("list the Ray pods of namespace %s: %w", namespace, err)
	}
	return pods.Items, nil
}
