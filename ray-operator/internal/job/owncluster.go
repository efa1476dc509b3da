package job

import (
	"maps"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kueue"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// freeFor is how long a cluster that is released may take to be without pods.
const freeFor = 15 * time.Second

// ownCluster returns the job's own cluster of a number. It belongs to the job and goes with it.
func ownCluster(job *v1beta1.ClusterJob, number int32) *v1beta1.ComputeCluster {
	template := job.Spec.ClusterTemplate.DeepCopy()
	labels := maps.Clone(template.Metadata.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1beta1.LabelJob] = job.Name
	delete(labels, kueue.LabelQueue)
	if queue := kueue.QueueOf(job); queue != "" {
		labels[kueue.LabelQueue] = queue
	}
	cluster := &v1beta1.ComputeCluster{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: naming.JobCluster(job.Name, job.UID, number),
			Labels: labels, Annotations: template.Metadata.Annotations,
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(job, v1beta1.GroupVersion.WithKind("ClusterJob")),
			},
		},
		Spec: template.Spec,
	}
	desired.OfJobClaims(cluster, job)
	var secret []corev1.EnvVar
	for i := range job.Spec.Env {
		if job.Spec.Env[i].ValueFrom != nil {
			secret = append(secret, job.Spec.Env[i])
		}
	}
	if len(secret) > 0 {
		if cluster.Spec.PodDefaults == nil {
			cluster.Spec.PodDefaults = &v1beta1.PodDefaults{}
		}
		cluster.Spec.PodDefaults.Env = append(cluster.Spec.PodDefaults.Env, secret...)
	}
	if gangOf(&job.Spec) != nil {
		giveGrace(&cluster.Spec, graceOf(&job.Spec))
	}
	return cluster
}

// recheckRemains returns after how long to look again at the pods of a cluster that is gone, 0 for never: nobody tells of
// them.
func (s *Seen) recheckRemains() time.Duration {
	if len(s.Former) == 0 && s.Remains > 0 {
		return time.Second
	}
	return 0
}

// hasFormer reports whether the job's former clusters or their pods are still there.
func (s *Seen) hasFormer() bool { return len(s.Former) > 0 || s.Remains > 0 }

// strandedEvents returns the events about pods of a cluster that are no longer waited for.
func strandedEvents(pods []*corev1.Pod, cluster string) []telemetry.Event {
	var events []telemetry.Event
	for _, pod := range pods {
		command := reason.Command(reconcile.OffCommand(pod.Spec.NodeName))
		events = append(events, eventOf(reason.PodStranded.Of(pod.Name, cluster, pod.Spec.NodeName, command), "LeaveBehind"))
	}
	return events
}

// releaseClusters suspends clusters of the job's own, and deletes each once it has no pods: the
// garbage collector would give its workers their full grace, a suspension gives them a short
// one. One whose suspension does not come to its end is deleted all the same.
func (p *Plan) releaseClusters(now time.Time, clusters ...*v1beta1.ComputeCluster) {
	for _, cluster := range clusters {
		since, err := time.Parse(time.RFC3339, cluster.Annotations[v1beta1.AnnotationReleasedAt])
		left := since.Add(freeFor).Sub(now)
		switch {
		case cluster.DeletionTimestamp != nil:
		case err != nil || !ptr.Deref(cluster.Spec.Suspend, false):
			p.Free = append(p.Free, cluster)
		case left > 0 && !meta.IsStatusConditionTrue(cluster.Status.Conditions, v1beta1.ConditionSuspended):
			p.wakeIn(left)
		default:
			p.Discard = append(p.Discard, cluster)
		}
	}
}
