package service

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/headwatch/serving"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/serveconfig"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// How often heads are asked.
const (
	// whileMoving: a version that sickens has to be back within 10 s.
	whileMoving = time.Second
	// whileSteady: a proxy that is not well is seen by the operator so late at most; a pod
	// that is not, Kubernetes sees by itself.
	whileSteady = 3 * time.Second
)

// provide sees to the clusters of the versions, and says what is wanted of their heads.
func (p *planner) provide() {
	sides := []*Side{&p.record.Active}
	if p.record.Candidate != nil {
		sides = append(sides, p.record.Candidate)
	}
	for _, side := range sides {
		if p.own() {
			p.house(side)
		}
		p.want(side)
	}
}

// house ensures that a side has its cluster as it must be.
func (p *planner) house(side *Side) {
	cluster := p.seen.Clusters[side.Cluster]
	switch {
	case p.held: // what the spec says now is not for it
	case cluster == nil || cluster.DeletionTimestamp != nil:
		p.rebuild(side, cluster)
	default:
		wanted := p.wanted(side, cluster)
		if wanted == nil {
			wanted = cluster.DeepCopy()
		}
		p.sized(wanted, p.capacity(side))
		p.awaited(side, cluster, wanted)
		wanted.Spec.Suspend = false
		if !equality.Semantic.DeepEqual(wanted.Spec, cluster.Spec) || !maps.Equal(wanted.Annotations, cluster.Annotations) {
			p.Change = append(p.Change, Change{Seen: cluster.ComputeCluster, Wanted: wanted})
		}
	}
}

// awaited keeps the workers of a side that is to shrink until Serve has given up its replicas: it
// chooses on which workers, and those are idle then and go first.
func (p *planner) awaited(side *Side, cluster *Cluster, wanted *v1alpha1.ComputeCluster) {
	h := p.active
	if side == p.record.Candidate {
		h = p.candidate
	}
	if p.capacity(side) >= 100 || side.Taken == p.digest(side) && !deploying(h) {
		return
	}
	for i := range wanted.Spec.WorkerGroups {
		group := &wanted.Spec.WorkerGroups[i]
		at := slices.IndexFunc(cluster.Spec.WorkerGroups, func(g v1alpha1.WorkerGroup) bool { return g.Name == group.Name })
		if at >= 0 && or(cluster.Spec.WorkerGroups[at].Replicas, 0) > or(group.Replicas, 0) {
			group.Replicas = cluster.Spec.WorkerGroups[at].Replicas
		}
	}
}

// rebuild is for a side whose cluster was not made yet, or somebody deletes. What the spec does not
// ask for is made again only where nothing else serves, once the one that goes is gone.
func (p *planner) rebuild(side *Side, going *Cluster) {
	asked, alone := side.Pods == p.target.Pods, side == &p.record.Active && p.record.Candidate == nil
	again := alone && !asked && p.template(side) != nil
	switch {
	case going == nil && (asked || again):
		p.found(side)
	case alone && !again:
		p.begin()
		p.found(&p.record.Active)
	}
}

// found makes a side's cluster.
func (p *planner) found(side *Side) {
	p.Make = p.clusterFor(side)
	p.sized(p.Make, p.capacity(side))
}

// capacity is how much of the whole a side must have, in percent.
func (p *planner) capacity(side *Side) int {
	switch {
	case p.record.Candidate == nil:
		return 100
	case side == p.record.Candidate:
		return p.record.Shift.Candidate
	default:
		return p.record.Shift.Active
	}
}

// template is what a side's cluster is built from: what the spec says, or, of a version that it
// does not ask for, what was kept of it, in the sizes that the spec says now. It is nil where
// nothing was kept.
func (p *planner) template(side *Side) *v1alpha1.ClusterTemplate {
	asked := p.service.Spec.ClusterTemplate
	if side.Pods == p.target.Pods && !p.held {
		return asked.DeepCopy()
	}
	kept := p.revision(side.Revision).Template.DeepCopy()
	if kept == nil || asked == nil || (kept.Spec.Autoscaling == nil) != (asked.Spec.Autoscaling == nil) {
		return kept
	}
	now := &v1alpha1.ComputeCluster{Spec: asked.Spec}
	for i := range kept.Spec.WorkerGroups {
		group := &kept.Spec.WorkerGroups[i]
		if sized := pod.FindGroup(now, group.Name); sized != nil {
			group.Replicas, group.MinReplicas, group.MaxReplicas = sized.Replicas, sized.MinReplicas, sized.MaxReplicas
		}
	}
	return kept
}

// clusterFor is a side's cluster as its template has it, of its whole capacity.
func (p *planner) clusterFor(side *Side) *v1alpha1.ComputeCluster {
	template, revision := p.template(side), p.revision(side.Revision)
	labels, annotations := maps.Clone(template.Metadata.Labels), maps.Clone(template.Metadata.Annotations)
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[v1alpha1.LabelService] = p.service.Name
	annotations[v1alpha1.AnnotationRevisionCluster] = strconv.Itoa(side.Cluster)
	annotations[v1alpha1.AnnotationStartup] = startupOf(revision)
	cluster := &v1alpha1.ComputeCluster{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.service.Namespace, Name: p.nameOf(side), Labels: labels, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(p.service, v1alpha1.GroupVersion.WithKind("ClusterService")),
			},
		},
		Spec: template.Spec,
	}
	drainLonger(&cluster.Spec, revision.Config.HAProxy)
	return cluster
}

// HAProxy lets the requests that it has end for 120 s and 30 s more, so that a pod drains for
// longer than otherwise; its grace period follows.
const (
	proxyDrain = "150"
	proxyGrace = 180
)

// drainLonger gives workers the time that HAProxy takes, unless the user says how long: all of them,
// or those whose own environment has Serve use it.
func drainLonger(spec *v1alpha1.ComputeClusterSpec, all bool) {
	const variable = "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S"
	for i := range spec.WorkerGroups {
		if !all && !hasHAProxy(&spec.WorkerGroups[i].NodeSpec) {
			continue
		}
		template, ray := unfolded(&spec.WorkerGroups[i].NodeSpec)
		if template.Spec.TerminationGracePeriodSeconds == nil {
			grace := int64(proxyGrace)
			template.Spec.TerminationGracePeriodSeconds = &grace
		}
		if !slices.ContainsFunc(ray.Env, func(v corev1.EnvVar) bool { return v.Name == variable }) {
			ray.Env = append(ray.Env, corev1.EnvVar{Name: variable, Value: proxyDrain})
		}
	}
}

// hasHAProxy reports whether a node's environment has Serve's proxy there be HAProxy.
func hasHAProxy(node *v1alpha1.NodeSpec) bool {
	return node.Template != nil && slices.ContainsFunc(node.Template.Spec.Containers, func(c corev1.Container) bool {
		return c.Name == v1alpha1.ContainerRay && slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool {
			return v.Name == serveconfig.HAProxyVariable && v.Value == "1"
		})
	})
}

// unfolded is the pod template of a node, and the container that runs Ray in it, both made where
// the user gives none.
func unfolded(node *v1alpha1.NodeSpec) (*corev1.PodTemplateSpec, *corev1.Container) {
	if node.Template == nil {
		node.Template = &corev1.PodTemplateSpec{}
	}
	spec := &node.Template.Spec
	at := slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == v1alpha1.ContainerRay })
	if at < 0 {
		spec.Containers = append([]corev1.Container{{Name: v1alpha1.ContainerRay}}, spec.Containers...)
		at = 0
	}
	return node.Template, &spec.Containers[at]
}

// sized gives a cluster's groups the share of their replicas that its capacity comes to, and
// notes on it how many the whole is. Groups that an autoscaler sizes follow Serve by themselves.
func (p *planner) sized(cluster *v1alpha1.ComputeCluster, percent int) {
	if cluster.Spec.Autoscaling != nil {
		return
	}
	noted := cluster.Annotations[v1alpha1.AnnotationFullReplicas]
	if percent >= 100 && noted == "" {
		return
	}
	whole := wholeOf(cluster)
	for i := range cluster.Spec.WorkerGroups {
		group := &cluster.Spec.WorkerGroups[i]
		share := some(whole[group.Name], percent)
		group.Replicas = &share
	}
	if percent >= 100 {
		delete(cluster.Annotations, v1alpha1.AnnotationFullReplicas)
		return
	}
	text, _ := json.Marshal(whole) // numbers always marshal
	cluster.Annotations[v1alpha1.AnnotationFullReplicas] = string(text)
}

// measure is how much of the whole capacity a side has up, in percent: what is up of what Serve was
// last seen to want, by how much of the whole that is. A side that is to shrink has more than it
// is to have until its pods are gone, so that the other one does not grow before. While Serve
// changes what it wants, its numbers may be those of before, and while its head says nothing there
// are none: no more counts then than the side's share of the requests, in percent.
func (p *planner) measure(side *Side, h Health, share int) int {
	cluster := p.cluster(side)
	if cluster == nil {
		return h.Ready
	}
	ready := h.Ready
	if asked := cluster.Answer.Serving.Capacity; deploying(h) || h.Assumed {
		ready = min(ready, max(1, share))
	} else if asked != nil {
		ready = ready * int(*asked) / 100
	}
	if h.Ready < 100 || p.capacity(side) >= 100 || cluster.Spec.Autoscaling != nil {
		return ready
	}
	if p.surplus(side, cluster) {
		return max(ready, p.capacity(side)+1)
	}
	return ready
}

// surplus reports whether a side's cluster has more workers than it is to have.
func (p *planner) surplus(side *Side, cluster *Cluster) bool {
	whole, told, there := wholeOf(cluster.ComputeCluster), int32(0), int32(0)
	for i := range cluster.Spec.WorkerGroups {
		group := &cluster.Spec.WorkerGroups[i]
		told += some(whole[group.Name], p.capacity(side)) * max(1, group.HostsPerReplica)
	}
	for _, pod := range cluster.Pods {
		over := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
		if pod.Labels[v1alpha1.LabelRole] == v1alpha1.RoleWorker && !over {
			there++
		}
	}
	return there > told
}

// deploying reports whether Serve changes what it runs of an application.
func deploying(h Health) bool {
	return slices.ContainsFunc(h.Applications, func(a v1alpha1.ApplicationStatus) bool { return a.State == string(headclient.ApplicationDeploying) })
}

// wholeOf is how many replicas each group of a cluster has when the cluster has its whole capacity.
func wholeOf(cluster *v1alpha1.ComputeCluster) map[string]int32 {
	whole := map[string]int32{}
	noted := cluster.Annotations[v1alpha1.AnnotationFullReplicas]
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

// some is how many of a group's replicas a share of its capacity comes to.
func some(replicas int32, percent int) int32 { return (replicas*int32(percent) + 99) / 100 }

// digest names what is asked of a side's Serve.
func (p *planner) digest(side *Side) string {
	asked := []any{p.configured(side), p.capacity(side)}
	if bounds := p.bounds(side); len(bounds) > 0 {
		asked = append(asked, bounds)
	}
	hash, _ := naming.ObjectHash(asked) // it always marshals
	return hash
}

// want says what is wanted of a side's head.
func (p *planner) want(side *Side) {
	cluster, revision := p.cluster(side), p.revision(p.configured(side))
	if cluster == nil || cluster.Head == nil || cluster.Head.Status.PodIP == "" || revision.ID == "" {
		return
	}
	if side == p.record.Candidate && p.isUncounted() {
		p.inquire(cluster, nil)
		return
	}
	digest, bounds := p.digest(side), p.bounds(side)
	config := &serving.Config{
		Digest: digest, Applications: map[string]json.RawMessage{}, Options: options(revision, p.capacity(side)),
		Taken: side.Taken == digest && side.Head == string(cluster.Head.UID), Alone: p.own(),
		Retry: revision.ID == side.Good || side == &p.record.Active && side.Good == "",
	}
	for _, application := range revision.Config.Applications {
		config.Applications[application.Name] = application.Bounded(bounds[application.Name])
	}
	if !p.own() {
		p.noteApplications(config)
	}
	p.inquire(cluster, config)
}

// noteApplications adds those of a configuration to the record, and has those go that the configuration has no more.
func (p *planner) noteApplications(config *serving.Config) {
	config.Drop = slices.DeleteFunc(p.askedNames(), func(name string) bool { return config.Applications[name] != nil })
	for _, name := range slices.Sorted(maps.Keys(config.Applications)) {
		p.record.note(name)
	}
}

// inquire adds what is wanted of a cluster's head.
func (p *planner) inquire(cluster *Cluster, config *serving.Config) {
	want := Want{Cluster: cluster, Want: serving.Want{
		At:     serving.Place{Head: cluster.Head.UID, Address: address(cluster.Head, pod.DashboardPort(cluster.Head))},
		Config: config, Close: p.closing[cluster.Name], Every: whileSteady,
	}}
	if p.record.Candidate != nil || p.record.Active.Revision != p.record.Active.Good || p.record.Active.Renewing != "" || config != nil && !config.Taken {
		want.Every = whileMoving
	}
	for _, pod := range p.inquired(cluster) {
		want.Probes = append(want.Probes, p.probe(cluster, pod))
	}
	if door, there := p.entrance(cluster); there {
		want.Probes = append(want.Probes, door)
	}
	if door, there := p.door(); there && !p.wasReady() { // nobody looks at its answer otherwise
		want.Probes = append(want.Probes, door)
		want.Every = whileMoving
	}
	p.Wants = append(p.Wants, want)
}

// options are the rest of a configuration, with how much of its capacity Serve must have.
func options(revision Revision, capacity int) json.RawMessage {
	if capacity >= 100 {
		return revision.Config.Options
	}
	all := map[string]json.RawMessage{}
	if json.Unmarshal(revision.Config.Options, &all) != nil { // it was read before
		return revision.Config.Options
	}
	all["target_capacity"] = json.RawMessage(strconv.Itoa(capacity))
	text, _ := json.Marshal(all) // raw JSON always marshals
	return text
}
