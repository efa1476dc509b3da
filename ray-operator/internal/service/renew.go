package service

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// replace brings the version that the spec asks for to the cluster that runs, whose pods are
// replaced where they are.
func (p *planner) replace() {
	active := &p.record.Active
	if why := p.unfit(); why != "" {
		unfit := reason.UpgradeNotInPlace.Of(p.nameOf(active), why)
		p.Upgrading = &unfit
		return
	}
	p.keep()
	p.ask(active, p.target.ID)
	p.renew(active, p.target.Pods)
}

// unfit is why the cluster that runs cannot become what the spec asks for, empty if it can.
func (p *planner) unfit() string {
	cluster := p.cluster(&p.record.Active)
	if cluster == nil {
		return "" // it is recreated
	}
	side := p.record.Active
	side.Revision, side.Pods = p.target.ID, p.target.Pods
	wanted := cluster.DeepCopy()
	wanted.Spec = p.clusterFor(&side).Spec
	if errs := validate.Update(cluster.ComputeCluster, wanted).ErrorList(); len(errs) > 0 {
		return cut(errs.ToAggregate())
	}
	if wanted.Spec.ControlStore != nil && cluster.Annotations[v1alpha1.AnnotationStartup] != startupOf(p.target) {
		return "its control store keeps what Serve read at its first start: http_options, grpc_options, controller_options and proxy_location"
	}
	return ""
}

// renew begins to replace the pods of a side where they are, if it needs others.
func (p *planner) renew(side *Side, pods string) {
	if side.Pods == pods {
		return
	}
	side.Pods, side.Renewing = pods, headlessly
	if cluster := p.cluster(side); cluster != nil && cluster.Head != nil {
		side.Renewing = string(cluster.Head.UID)
	}
}

// known reports whether it can be gone back to a revision: the pods are those that it needs, or
// what they are built from was kept.
func (p *planner) known(id string) bool {
	revision := p.revision(id)
	return revision.Template != nil || revision.Pods == p.record.Active.Pods
}

// rolls reports whether the workers of a cluster are replaced where they are, by its name, and its
// head stays.
func (p *planner) rolls(name string) bool {
	active := &p.record.Active
	cluster := p.cluster(active)
	return active.Renewing != "" && cluster != nil && cluster.Name == name && !recreated(cluster.ComputeCluster)
}

// recreated reports whether a cluster replaces all pods at once.
func recreated(cluster *v1alpha1.ComputeCluster) bool {
	given := cluster.Spec.UpgradeStrategy
	return given != nil && given.Type == v1alpha1.UpgradeRecreate
}

// configured is the revision whose configuration is asked of a side's head. While pods are
// replaced where they are it is the last good one, on a head that ran it or is to go: what is
// to come may need what only the new pods have, and is not to fail for the lack of it.
func (p *planner) configured(side *Side) string {
	cluster := p.cluster(side)
	if side.Good != "" && cluster != nil && cluster.Head != nil && side.Renewing == string(cluster.Head.UID) {
		return side.Good
	}
	return side.Revision
}

// advance notes how far pods that are replaced where they are have come.
func (p *planner) advance() {
	side := &p.record.Active
	cluster := p.cluster(side)
	if side.Renewing == "" || side.Renewing == renewed || cluster == nil {
		return
	}
	wanted := p.wanted(side, cluster)
	switch {
	case wanted == nil:
	case p.replaced(cluster, wanted):
		side.Renewing = renewed
	case cluster.Head != nil && oldHead(cluster, wanted): // it is to go, too
		side.Renewing = string(cluster.Head.UID)
	}
}

// wanted is a side's cluster as it must be, of its whole capacity; nil if it stays as it is.
func (p *planner) wanted(side *Side, cluster *Cluster) *v1alpha1.ComputeCluster {
	if side.Pods != p.target.Pods && side.Renewing == "" || p.template(side) == nil {
		return nil
	}
	wanted := cluster.DeepCopy()
	wanted.Spec = p.clusterFor(side).Spec
	delete(wanted.Annotations, v1alpha1.AnnotationFullReplicas)
	p.mark(side, wanted)
	if side.Renewing != "" {
		pace(cluster, wanted)
	}
	return wanted
}

// mark makes the head another one where Serve must read at its first start what it did not read
// when the cluster was made. A cluster that is as it was made has no mark.
func (p *planner) mark(side *Side, wanted *v1alpha1.ComputeCluster) {
	made, now := wanted.Annotations[v1alpha1.AnnotationStartup], startupOf(p.revision(side.Revision))
	if made == "" || made == now {
		return
	}
	template, _ := unfolded(&wanted.Spec.Head.NodeSpec)
	if template.Annotations == nil {
		template.Annotations = map[string]string{}
	}
	template.Annotations[v1alpha1.AnnotationRestart] = now
}

// startupOf names what Serve reads when it first starts.
func startupOf(revision Revision) string {
	hash, _ := naming.ObjectHash(revision.Startup) // text always marshals
	return hash
}

// pace has a cluster replace pods that are out of date, where the user does not say how: all at
// once where the head is, because nothing outlives it, and workers one at a time otherwise.
// Once it has begun it stays so, until all is well.
func pace(cluster *Cluster, wanted *v1alpha1.ComputeCluster) {
	switch {
	case wanted.Spec.UpgradeStrategy != nil:
	case oldHead(cluster, wanted):
		wanted.Spec.UpgradeStrategy = &v1alpha1.UpgradeStrategy{Type: v1alpha1.UpgradeRecreate}
	case otherPods(cluster.ComputeCluster, wanted):
		wanted.Spec.UpgradeStrategy = &v1alpha1.UpgradeStrategy{Type: v1alpha1.UpgradeRollingWorkers}
	default:
		wanted.Spec.UpgradeStrategy = cluster.Spec.UpgradeStrategy
	}
}

// oldHead reports whether the head is not the one that must be. A hash of a version that this
// operator does not know counts as good, as it does to the cluster.
func oldHead(cluster *Cluster, wanted *v1alpha1.ComputeCluster) bool {
	intent := pod.Intent(wanted, "")
	if cluster.Head == nil {
		return pod.Intent(cluster.ComputeCluster, "") != intent
	}
	carried := cluster.Head.Annotations[v1alpha1.AnnotationIntent]
	version, _, _ := strings.Cut(intent, "-")
	theirs, _, versioned := strings.Cut(carried, "-")
	return carried != intent && (!versioned || theirs == version)
}

// otherPods reports whether two clusters have not the same pods.
func otherPods(a, b *v1alpha1.ComputeCluster) bool {
	one, _ := podsOf(&a.Spec, "") // API types always marshal
	other, _ := podsOf(&b.Spec, "")
	return one != other
}

// replaced reports whether all pods of a cluster are those that must be, by its own word about the
// spec that it has.
func (p *planner) replaced(cluster *Cluster, wanted *v1alpha1.ComputeCluster) bool {
	told := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionUpToDate)
	return !otherPods(cluster.ComputeCluster, wanted) && !oldHead(cluster, wanted) &&
		told != nil && told.Status == "True" && told.ObservedGeneration == cluster.Generation
}

// renewing says how far pods that are replaced where they are have come.
func (p *planner) renewing() reason.Finding {
	active := &p.record.Active
	version, name, cluster := p.revision(active.Revision).label(), p.nameOf(active), p.cluster(active)
	if cluster == nil {
		return reason.UpgradeRecreating.Of(name, version, "it is being made")
	}
	now := cluster.ComputeCluster
	for _, change := range p.Change {
		if change.Seen == now {
			now = change.Wanted
		}
	}
	if recreated(now) {
		return reason.UpgradeRecreating.Of(name, version, waits(p.hindrance()))
	}
	return reason.UpgradeInPlace.Of(name, version, waits(p.hindrance()))
}

// hindrance is what a version waits for: what is the matter with its applications, or with its
// cluster in the cluster's own words.
func (p *planner) hindrance() reason.Finding {
	cluster := p.cluster(&p.record.Active)
	if warns(p.active.Finding) || cluster == nil || p.record.Active.Renewing == "" {
		return p.active.Finding
	}
	var progress reason.Finding
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionUpToDate} {
		told := meta.FindStatusCondition(cluster.Status.Conditions, kind)
		if told == nil || told.Status != "False" || told.ObservedGeneration == 0 {
			continue
		}
		if progress = (reason.Finding{Code: told.Reason, Text: told.Message}); warns(progress) {
			return progress
		}
	}
	if progress.Code == "" {
		return p.active.Finding
	}
	return progress
}
