// Package pod builds the pods of a cluster as a list of small steps.
//
// In: the cluster's spec and a pod's place. Out: the whole pod, the same for the
// same input. A step fills in what Ray and Kubernetes need; what the user's template
// says stays, except where the operator must have its way (the start command, the
// variables and volumes by which the parts of a cluster find each other).
//
// It is pure and it never fails: bad input was refused by package validate before.
// It never injects a container or a file into the user's image.
package pod

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// draft is a pod under construction. ray points into pod.
type draft struct {
	cluster *v1beta1.ComputeCluster
	node    *v1beta1.NodeSpec
	group   *v1beta1.WorkerGroup // nil for the head
	image   string
	at      naming.Place
	pod     *corev1.Pod
	ray     *corev1.Container
	// options of ray start that a step has set; only here the kubelet may expand $(VAR).
	options map[string]string
}

func (d *draft) isHead() bool { return d.group == nil }

// steps in the order in which they build on each other: sizes come before the start
// command, which tells Ray of them.
var steps = []func(*draft){
	podDefaults, base, tolerations, security, lastWords, sizes, storage, claims, sharedVolumes, session, ports,
	environment, hosts, slice, authentication, encryption, store, shield, startCommand, probes,
}

// Head builds the head pod of an epoch.
func Head(cluster *v1beta1.ComputeCluster, epoch int64) *corev1.Pod {
	return build(&draft{
		cluster: cluster, node: &cluster.Spec.Head.NodeSpec, image: imageOf(cluster, ""), at: naming.Place{Epoch: epoch},
	})
}

// Worker builds the pod of a slot of a group in an epoch.
func Worker(cluster *v1beta1.ComputeCluster, group *v1beta1.WorkerGroup, slot int, epoch int64) *corev1.Pod {
	return build(&draft{
		cluster: cluster, node: &group.NodeSpec, group: group, image: imageOf(cluster, group.Image),
		at: naming.Place{Group: group.Name, Slot: slot, Epoch: epoch},
	})
}

// DefaultDrain in seconds is long enough for most tasks and short enough for someone who
// waits for a change to roll.
const DefaultDrain = 300

// DrainSeconds is how long a planned exit of one of the group's workers waits for what
// runs on it, in seconds; also of a group that is gone from the spec, which is nil.
func DrainSeconds(group *v1beta1.WorkerGroup) int32 {
	if group == nil || group.DrainSeconds == nil {
		return DefaultDrain
	}
	return *group.DrainSeconds
}

func build(d *draft) *corev1.Pod {
	d.pod, d.options = &corev1.Pod{}, map[string]string{}
	if d.node.Template != nil {
		template := d.node.Template.DeepCopy()
		d.pod.Labels, d.pod.Annotations, d.pod.Spec = template.Labels, template.Annotations, template.Spec
	}
	d.ray = rayContainer(&d.pod.Spec)
	for _, step := range steps {
		step(d)
	}
	return d.pod
}

// rayContainer finds the container named ray, or puts an empty one first.
func rayContainer(spec *corev1.PodSpec) *corev1.Container {
	for i := range spec.Containers {
		if spec.Containers[i].Name == v1beta1.ContainerRay {
			return &spec.Containers[i]
		}
	}
	spec.Containers = append([]corev1.Container{{Name: v1beta1.ContainerRay}}, spec.Containers...)
	return &spec.Containers[0]
}

func imageOf(cluster *v1beta1.ComputeCluster, own string) string {
	switch {
	case own != "":
		return own
	case cluster.Spec.Image != "":
		return cluster.Spec.Image
	default:
		return "rayproject/ray:" + cluster.Spec.RayVersion
	}
}

// workerDrain and workerGrace in seconds. Ray drains a node that is told to end for
// at most workerDrain; Serve's proxy needs 30 s and up to 5 s more to let requests
// finish, and the pod must outlive the drain.
const (
	workerDrain = "45"
	workerGrace = 60
	headGrace   = 10
	// historyGrace is that of a head with a collector, which gets its SIGTERM after Ray has ended, in about 4 s.
	historyGrace = 25
)

func base(d *draft) {
	pod := d.pod
	pod.Name, pod.Namespace = naming.Pod(d.cluster.Name, d.cluster.UID, d.at), d.cluster.Namespace
	pod.Labels = merged(pod.Labels, naming.PodLabels(d.cluster.Name, d.at))
	pod.Labels[v1beta1.LabelClusterUID] = string(d.cluster.UID)
	pod.Annotations = merged(pod.Annotations, map[string]string{v1beta1.AnnotationIntent: Intent(d.cluster, d.at.Group)})
	if !d.isHead() {
		pod.Annotations[v1beta1.AnnotationShape] = Shape(d.cluster, d.at.Group)
	}
	pod.Annotations = merged(map[string]string{"kubectl.kubernetes.io/default-container": v1beta1.ContainerRay}, pod.Annotations)
	pod.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(d.cluster, v1beta1.GroupVersion.WithKind("ComputeCluster")),
	}
	fill(&d.ray.Image, d.image)
	fill(&d.ray.ImagePullPolicy, d.cluster.Spec.ImagePullPolicy)
	fillPointer(&pod.Spec.TerminationGracePeriodSeconds, d.grace())
	fillPointer(&pod.Spec.EnableServiceLinks, false)
	if pod.Spec.HostNetwork { // whose default resolver does not know the head's Service
		fill(&pod.Spec.DNSPolicy, corev1.DNSClusterFirstWithHostNet)
	}
}

// grace returns the grace in seconds of a pod whose template gives none.
func (d *draft) grace() int64 {
	switch {
	case !d.isHead():
		return workerGrace
	case d.isCollected():
		return historyGrace
	default:
		return headGrace
	}
}

// merged lays over on top of under; over wins.
func merged(under, over map[string]string) map[string]string {
	all := make(map[string]string, len(under)+len(over))
	for _, layer := range []map[string]string{under, over} {
		for key, value := range layer {
			all[key] = value
		}
	}
	return all
}

// fill sets what the user left empty.
func fill[T comparable](field *T, value T) {
	var empty T
	if *field == empty {
		*field = value
	}
}

// fillPointer sets what the user did not say at all.
func fillPointer[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
