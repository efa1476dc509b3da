package service

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/serveconfig"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// templateOf returns what a version's cluster is built from: what the spec says, or, of a version that it
// does not ask for, what was kept of it, in the sizes that the spec says now and with the groups that the cluster got
// since. It is nil where nothing was kept.
func templateOf(service *v1beta1.ClusterService, r revisions, version versionState) *v1beta1.ClusterTemplate {
	asked := service.Spec.ClusterTemplate
	if version.Pods == r.target.Pods && !r.held {
		return asked.DeepCopy()
	}
	kept := version.revision.Template.DeepCopy()
	if kept == nil || asked == nil || (kept.Spec.Autoscaling == nil) != (asked.Spec.Autoscaling == nil) {
		return kept
	}
	now := &v1beta1.ComputeCluster{Spec: asked.Spec}
	for i := range kept.Spec.WorkerGroups {
		group := &kept.Spec.WorkerGroups[i]
		if sized := naming.FindGroup(now, group.Name); sized != nil {
			group.Replicas, group.MinReplicas, group.MaxReplicas = sized.Replicas, sized.MinReplicas, sized.MaxReplicas
		}
	}
	addGroups(kept, version.cluster, now)
	return kept
}

// addGroups gives a template the groups of workers that a cluster has beside its own, as far as the spec has them too.
func addGroups(template *v1beta1.ClusterTemplate, cluster *Cluster, asked *v1beta1.ComputeCluster) {
	if cluster == nil {
		return
	}
	own := &v1beta1.ComputeCluster{Spec: template.Spec}
	for i := range cluster.Spec.WorkerGroups {
		name := cluster.Spec.WorkerGroups[i].Name
		if group := naming.FindGroup(asked, name); group != nil && naming.FindGroup(own, name) == nil {
			template.Spec.WorkerGroups = append(template.Spec.WorkerGroups, *group.DeepCopy())
		}
	}
}

// clusterFor returns a version's cluster as its template has it, of its whole capacity.
func clusterFor(service *v1beta1.ClusterService, r revisions, version versionState) *v1beta1.ComputeCluster {
	template := templateOf(service, r, version)
	labels, annotations := maps.Clone(template.Metadata.Labels), maps.Clone(template.Metadata.Annotations)
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[v1beta1.LabelService] = service.Name
	annotations[v1beta1.AnnotationRevisionCluster] = strconv.Itoa(version.Cluster)
	annotations[v1beta1.AnnotationStartup] = startupOf(version.revision)
	cluster := &v1beta1.ComputeCluster{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: service.Namespace, Name: version.clusterName, Labels: labels, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(service, v1beta1.GroupVersion.WithKind("ClusterService")),
			},
		},
		Spec: template.Spec,
	}
	drainLonger(&cluster.Spec, version.revision.Config.HAProxy)
	return cluster
}

// wantedCluster returns a version's cluster, which is there, as it must be, of its whole capacity; nil if it stays as it
// is.
func wantedCluster(service *v1beta1.ClusterService, r revisions, version versionState) *v1beta1.ComputeCluster {
	if version.Pods != r.target.Pods && version.Renewing == "" || templateOf(service, r, version) == nil {
		return nil
	}
	wanted := version.cluster.DeepCopy()
	wanted.Spec = clusterFor(service, r, version).Spec
	delete(wanted.Annotations, v1beta1.AnnotationFullReplicas)
	markRestart(version.revision, wanted)
	if version.Renewing != "" {
		choosePace(version.cluster, wanted)
	}
	return wanted
}

// markRestart makes the head another one where Serve must read at its first start what it did not read
// when the cluster was made. A cluster that is as it was made has no mark.
func markRestart(revision Revision, wanted *v1beta1.ComputeCluster) {
	made, now := wanted.Annotations[v1beta1.AnnotationStartup], startupOf(revision)
	if made == "" || made == now {
		return
	}
	template, _ := unfoldTemplate(&wanted.Spec.Head.NodeSpec)
	if template.Annotations == nil {
		template.Annotations = map[string]string{}
	}
	template.Annotations[v1beta1.AnnotationRestart] = now
}

// turnedTo returns a version as it is with another revision.
func (s versionState) turnedTo(revision Revision) versionState {
	s.Revision, s.Pods, s.revision = revision.ID, revision.Pods, revision
	return s
}

// startupOf names what Serve reads when it first starts.
func startupOf(revision Revision) string {
	hash, _ := naming.ObjectHash(revision.Startup) // text always marshals
	return hash
}

// choosePace has a cluster replace pods that are out of date, where the user does not say how: all at
// once where the head is, because nothing outlives it, and workers one at a time otherwise.
// Once it has begun it stays so, until all is well.
func choosePace(cluster *Cluster, wanted *v1beta1.ComputeCluster) {
	switch {
	case wanted.Spec.UpgradeStrategy != nil:
	case hasOldHead(cluster, wanted):
		wanted.Spec.UpgradeStrategy = &v1beta1.ClusterUpgradeStrategy{Type: v1beta1.ClusterUpgradeRecreate}
	case needOtherPods(cluster.ComputeCluster, wanted):
		wanted.Spec.UpgradeStrategy = &v1beta1.ClusterUpgradeStrategy{Type: v1beta1.ClusterUpgradeRollingWorkers}
	default:
		wanted.Spec.UpgradeStrategy = cluster.Spec.UpgradeStrategy
	}
}

// hasOldHead reports whether the head is not the one that must be. A hash of a version that this
// operator does not know counts as good, as it does to the cluster.
func hasOldHead(cluster *Cluster, wanted *v1beta1.ComputeCluster) bool {
	intent := pod.Intent(wanted, "")
	if cluster.Head == nil {
		return pod.Intent(cluster.ComputeCluster, "") != intent
	}
	carried := cluster.Head.Annotations[v1beta1.AnnotationIntent]
	version, _, _ := strings.Cut(intent, "-")
	theirs, _, versioned := strings.Cut(carried, "-")
	return carried != intent && (!versioned || theirs == version)
}

// needOtherPods reports whether two clusters have not the same pods.
func needOtherPods(a, b *v1beta1.ComputeCluster) bool {
	one, _ := podsOf(&a.Spec, "") // API types always marshal
	other, _ := podsOf(&b.Spec, "")
	return one != other
}

// isRecreated reports whether a cluster replaces all pods at once.
func isRecreated(cluster *v1beta1.ComputeCluster) bool {
	given := cluster.Spec.UpgradeStrategy
	return given != nil && given.Type == v1beta1.ClusterUpgradeRecreate
}

// isReplaced reports whether all pods of a cluster are those that must be, by its own word about the
// spec that it has.
func isReplaced(cluster *Cluster, wanted *v1beta1.ComputeCluster) bool {
	told := meta.FindStatusCondition(cluster.Status.Conditions, v1beta1.ConditionUpToDate)
	return !needOtherPods(cluster.ComputeCluster, wanted) && !hasOldHead(cluster, wanted) &&
		told != nil && told.Status == "True" && told.ObservedGeneration == cluster.Generation
}

// whyUnfit returns why the cluster of a version cannot become what the spec asks for, empty if it can.
func whyUnfit(service *v1beta1.ClusterService, r revisions, version versionState) string {
	cluster := version.cluster
	if cluster == nil {
		return "" // it is recreated
	}
	wanted := cluster.DeepCopy()
	wanted.Spec = clusterFor(service, r, version.turnedTo(r.target)).Spec
	if errs := validate.Update(cluster.ComputeCluster, wanted).ErrorList(); len(errs) > 0 {
		return cut(errs.ToAggregate())
	}
	if wanted.Spec.ControlStore != nil && cluster.Annotations[v1beta1.AnnotationStartup] != startupOf(r.target) {
		return "its control store keeps what Serve read at its first start: http_options, grpc_options, controller_options and proxy_location"
	}
	return ""
}

// HAProxy lets the requests that it has end for 120 s and 30 s more, so that a pod drains for
// longer than otherwise; its grace period follows.
const (
	proxyDrain = "150"
	proxyGrace = 180
)

// drainLonger gives workers the time that HAProxy takes, unless the user says how long: all of them,
// or those whose own environment has Serve use it.
func drainLonger(spec *v1beta1.ComputeClusterSpec, all bool) {
	const variable = "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S"
	for i := range spec.WorkerGroups {
		if !all && !hasHAProxy(&spec.WorkerGroups[i].NodeSpec) {
			continue
		}
		template, ray := unfoldTemplate(&spec.WorkerGroups[i].NodeSpec)
		if template.Spec.TerminationGracePeriodSeconds == nil {
			template.Spec.TerminationGracePeriodSeconds = new(int64(proxyGrace))
		}
		if !slices.ContainsFunc(ray.Env, func(v corev1.EnvVar) bool { return v.Name == variable }) {
			ray.Env = append(ray.Env, corev1.EnvVar{Name: variable, Value: proxyDrain})
		}
	}
}

// hasHAProxy reports whether a node's environment has Serve's proxy there be HAProxy.
func hasHAProxy(node *v1beta1.NodeSpec) bool {
	return node.Template != nil && slices.ContainsFunc(node.Template.Spec.Containers, func(c corev1.Container) bool {
		return c.Name == v1beta1.ContainerRay && slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool {
			return v.Name == serveconfig.HAProxyVariable && v.Value == "1"
		})
	})
}

// unfoldTemplate returns the pod template of a node, and the container that runs Ray in it, both made where
// the user gives none.
func unfoldTemplate(node *v1beta1.NodeSpec) (*corev1.PodTemplateSpec, *corev1.Container) {
	if node.Template == nil {
		node.Template = &corev1.PodTemplateSpec{}
	}
	spec := &node.Template.Spec
	at := slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == v1beta1.ContainerRay })
	if at < 0 {
		spec.Containers = append([]corev1.Container{{Name: v1beta1.ContainerRay}}, spec.Containers...)
		at = 0
	}
	return node.Template, &spec.Containers[at]
}

// sizeGroups gives a cluster's groups the share of their replicas that its capacity comes to, and
// notes on it how many the whole is. Groups that an autoscaler sizes follow Serve by themselves.
func sizeGroups(cluster *v1beta1.ComputeCluster, percent int) {
	if cluster.Spec.Autoscaling != nil {
		return
	}
	noted := cluster.Annotations[v1beta1.AnnotationFullReplicas]
	if percent >= 100 && noted == "" {
		return
	}
	whole := wholeOf(cluster)
	for i := range cluster.Spec.WorkerGroups {
		group := &cluster.Spec.WorkerGroups[i]
		share := shareOf(whole[group.Name], percent)
		group.Replicas = &share
	}
	if percent >= 100 {
		delete(cluster.Annotations, v1beta1.AnnotationFullReplicas)
		return
	}
	text, _ := json.Marshal(whole) // numbers always marshal
	cluster.Annotations[v1beta1.AnnotationFullReplicas] = string(text)
}

// wholeOf returns how many replicas each group of a cluster has when the cluster has its whole capacity.
func wholeOf(cluster *v1beta1.ComputeCluster) map[string]int32 {
	whole := map[string]int32{}
	noted := cluster.Annotations[v1beta1.AnnotationFullReplicas]
	if noted != "" && json.Unmarshal([]byte(noted), &whole) != nil {
		whole = map[string]int32{} // someone changed it; what is there counts
	}
	for i := range cluster.Spec.WorkerGroups {
		group := &cluster.Spec.WorkerGroups[i]
		if _, known := whole[group.Name]; !known {
			whole[group.Name] = or(group.Replicas, 0)
		}
	}
	return whole
}

// shareOf returns how many of a group's replicas a share of its capacity comes to.
func shareOf(replicas int32, percent int) int32 { return (replicas*int32(percent) + 99) / 100 }
