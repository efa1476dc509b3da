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
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/headwatch/serving"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/naming"
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

// house sees to it that a side has its cluster as it shall be.
func (p *planner) house(side *Side) {
	cluster := p.seen.Clusters[side.Cluster]
	switch {
	case p.held: // what the spec says now is not for it
	case cluster == nil && side.Pods == p.target.Pods:
		p.found(side)
	case cluster == nil || cluster.DeletionTimestamp != nil: // somebody deleted it, and its template is not known any more
		if side == &p.record.Active && p.record.Candidate == nil {
			p.begin()
			p.found(&p.record.Active)
		}
	default:
		wanted := cluster.DeepCopy()
		if side.Pods == p.target.Pods {
			wanted.Spec = p.clusterFor(side).Spec
			delete(wanted.Annotations, v1alpha1.AnnotationWhole)
		}
		p.sized(wanted, p.capacity(side))
		wanted.Spec.Suspend = false
		if !equality.Semantic.DeepEqual(wanted.Spec, cluster.Spec) || !maps.Equal(wanted.Annotations, cluster.Annotations) {
			p.Change = append(p.Change, Change{Seen: cluster.ComputeCluster, Wanted: wanted})
		}
	}
}

// found makes a side's cluster.
func (p *planner) found(side *Side) {
	p.Make = p.clusterFor(side)
	p.sized(p.Make, p.capacity(side))
}

// capacity is how much of the whole a side shall have, in percent.
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

// clusterFor is a side's cluster as the spec's template has it, of its whole capacity.
func (p *planner) clusterFor(side *Side) *v1alpha1.ComputeCluster {
	template := p.service.Spec.ClusterTemplate.DeepCopy()
	labels, annotations := maps.Clone(template.Metadata.Labels), maps.Clone(template.Metadata.Annotations)
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[v1alpha1.LabelService] = p.service.Name
	annotations[v1alpha1.AnnotationNumber] = strconv.Itoa(side.Cluster)
	cluster := &v1alpha1.ComputeCluster{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.service.Namespace, Name: p.nameOf(side), Labels: labels, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(p.service, v1alpha1.GroupVersion.WithKind("ClusterService")),
			},
		},
		Spec: template.Spec,
	}
	if p.revision(side.Revision).Config.HAProxy {
		drainLonger(&cluster.Spec)
	}
	return cluster
}

// HAProxy lets the requests that it has end for 120 s and 30 s more, so that a pod drains for
// longer than otherwise; its grace period follows.
const (
	proxyDrain = "150"
	proxyGrace = 180
)

// drainLonger gives workers the time that HAProxy takes, unless the user says how long.
func drainLonger(spec *v1alpha1.ComputeClusterSpec) {
	const variable = "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S"
	for i := range spec.WorkerGroups {
		node := &spec.WorkerGroups[i].NodeSpec
		if node.Template == nil {
			node.Template = &corev1.PodTemplateSpec{}
		}
		template := &node.Template.Spec
		if template.TerminationGracePeriodSeconds == nil {
			grace := int64(proxyGrace)
			template.TerminationGracePeriodSeconds = &grace
		}
		at := slices.IndexFunc(template.Containers, func(c corev1.Container) bool { return c.Name == v1alpha1.ContainerRay })
		if at < 0 {
			template.Containers = append([]corev1.Container{{Name: v1alpha1.ContainerRay}}, template.Containers...)
			at = 0
		}
		ray := &template.Containers[at]
		if !slices.ContainsFunc(ray.Env, func(v corev1.EnvVar) bool { return v.Name == variable }) {
			ray.Env = append(ray.Env, corev1.EnvVar{Name: variable, Value: proxyDrain})
		}
	}
}

// sized gives a cluster's groups the share of their replicas that its capacity comes to, and
// notes on it how many the whole is. Groups that an autoscaler sizes follow Serve by themselves.
func (p *planner) sized(cluster *v1alpha1.ComputeCluster, percent int) {
	if cluster.Spec.Autoscaling != nil {
		return
	}
	whole := map[string]int32{}
	noted := cluster.Annotations[v1alpha1.AnnotationWhole]
	if noted != "" && json.Unmarshal([]byte(noted), &whole) != nil {
		whole = map[string]int32{} // someone changed it; what is there counts
	}
	if percent >= 100 && noted == "" {
		return
	}
	for i := range cluster.Spec.WorkerGroups {
		group := &cluster.Spec.WorkerGroups[i]
		all, known := whole[group.Name]
		if !known {
			all = or(group.Replicas, 0)
			whole[group.Name] = all
		}
		some := (all*int32(percent) + 99) / 100 //nolint:gosec // a percentage
		group.Replicas = &some
	}
	if percent >= 100 {
		delete(cluster.Annotations, v1alpha1.AnnotationWhole)
		return
	}
	text, _ := json.Marshal(whole) // numbers always marshal
	cluster.Annotations[v1alpha1.AnnotationWhole] = string(text)
}

// digest names what is asked of a side's Serve.
func (p *planner) digest(side *Side) string {
	hash, _ := naming.ObjectHash([]any{side.Revision, p.capacity(side)}) // it always marshals
	return hash
}

// want says what is wanted of a side's head.
func (p *planner) want(side *Side) {
	cluster, revision := p.cluster(side), p.revision(side.Revision)
	if cluster == nil || cluster.Head == nil || cluster.Head.Status.PodIP == "" || revision.ID == "" {
		return
	}
	digest := p.digest(side)
	config := &serving.Config{
		Digest: digest, Applications: map[string]json.RawMessage{}, Options: options(revision, p.capacity(side)),
		Taken: side.Taken == digest && side.Head == string(cluster.Head.UID), Alone: p.own(),
	}
	for _, application := range revision.Config.Applications {
		config.Applications[application.Name] = application.Raw
	}
	if !p.own() {
		for _, name := range p.record.Applications {
			if _, still := config.Applications[name]; !still {
				config.Drop = append(config.Drop, name)
			}
		}
		for name := range config.Applications {
			if !slices.Contains(p.record.Applications, name) {
				p.record.Applications = append(p.record.Applications, name)
			}
		}
		slices.Sort(p.record.Applications)
	}
	p.inquire(cluster, config)
}

// inquire adds what is wanted of a cluster's head.
func (p *planner) inquire(cluster *Cluster, config *serving.Config) {
	want := Want{Cluster: cluster, Want: serving.Want{
		At:     serving.Place{Head: cluster.Head.UID, Address: address(cluster.Head, pod.PortDashboard)},
		Config: config, Close: p.closing[cluster.Name], Every: whileSteady,
	}}
	if p.record.Candidate != nil || p.record.Active.Revision != p.record.Active.Good || config != nil && !config.Taken {
		want.Every = whileMoving
	}
	for _, pod := range p.eligible(cluster) {
		if p.https() {
			break
		}
		want.Probes = append(want.Probes, p.probe(cluster, pod))
	}
	if door, there := p.entrance(cluster); there {
		want.Probes = append(want.Probes, door)
	}
	if door, there := p.door(); there {
		want.Probes = append(want.Probes, door)
		if !p.wasReady() {
			want.Every = whileMoving
		}
	}
	p.Wants = append(p.Wants, want)
}

// options are the rest of a configuration, with how much of its capacity Serve shall have.
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
