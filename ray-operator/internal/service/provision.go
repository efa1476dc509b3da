package service

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// provision says what to create, change and delete, and what is wanted of heads. Plan explains the fields.
type provision struct {
	fixtures []reconcile.FixtureChange
	make     *v1beta1.ComputeCluster
	change   []Change
	discard  []*v1beta1.ComputeCluster
	drop     []*appsv1.ControllerRevision
	wants    []Want
	// conflict is a name that another's object has, unreachable is that of the Service; nil if there is none.
	conflict, unreachable *reason.Finding
	events                []telemetry.Event
	timer
}

// provisioner is a provision while it is made.
type provisioner struct {
	*state
	assessment
	provision
	decision decision
	routing  routing
	// closing are, by cluster, the jobs that close the connections that clients keep.
	closing map[string]headclient.Closing
}

// provide chooses what must be done to clusters, heads and objects for what was decided. It is pure.
func provide(s *state, d decision, versions assessment, routing routing) provision {
	v := &provisioner{state: s, assessment: versions, decision: d, routing: routing, closing: map[string]headclient.Closing{}}
	v.closeVersions()
	switch d.course {
	case courseServe:
		v.closeParting()
		v.provideVersions()
	case courseDrain:
		for _, side := range v.listVersions() { // what was asked of them stands while requests end
			v.askLast(v.findCluster(side))
		}
	case courseLeave:
		v.removeVersions()
	case courseWait, courseEnd: // there is nothing
	}
	v.removeRetired()
	if s.service.DeletionTimestamp == nil {
		v.fixObjects()
	}
	return v.provision
}

// provideVersions plans the clusters of the versions, and what is wanted of their heads.
func (v *provisioner) provideVersions() {
	for _, side := range v.listVersions() {
		if v.ownsClusters() {
			v.ensureCluster(side)
		}
		v.requestConfiguration(side)
	}
}

// ensureCluster ensures that a side has its cluster as it must be.
func (v *provisioner) ensureCluster(side *Side) {
	cluster := v.seen.Clusters[side.Cluster]
	switch {
	case v.held: // what the spec says now is not for it
	case cluster == nil || cluster.DeletionTimestamp != nil:
		v.makeCluster(side, cluster)
	default:
		wanted := wantedCluster(v.state, side, cluster)
		if wanted == nil {
			wanted = cluster.DeepCopy()
		}
		sizeGroups(wanted, v.capacityOf(side))
		if v.isShrinking(side) {
			awaitShrink(cluster, wanted)
		}
		wanted.Spec.Suspend = nil
		if !isAlike(&wanted.Spec, &cluster.Spec) || !maps.Equal(wanted.Annotations, cluster.Annotations) {
			v.change = append(v.change, Change{Seen: cluster.ComputeCluster, Wanted: wanted})
		}
	}
}

// isAlike reports whether two specs say the same: a switch that is false is one that is not there.
func isAlike(a, b *v1beta1.ComputeClusterSpec) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	validate.OmitFalse(a)
	validate.OmitFalse(b)
	return equality.Semantic.DeepEqual(a, b)
}

// isShrinking reports whether a side has less than the whole, and Serve has yet to give up replicas for that.
func (v *provisioner) isShrinking(side *Side) bool {
	h := v.active
	if side == v.record.Candidate {
		h = v.candidate
	}
	return v.capacityOf(side) < 100 && (side.Taken != v.digestOf(side) || isDeploying(h))
}

// awaitShrink keeps the workers of a cluster until Serve has given up its replicas: it chooses on which workers, and
// those are idle then and go first.
func awaitShrink(cluster *Cluster, wanted *v1beta1.ComputeCluster) {
	for i := range wanted.Spec.WorkerGroups {
		group := &wanted.Spec.WorkerGroups[i]
		at := slices.IndexFunc(cluster.Spec.WorkerGroups, func(g v1beta1.WorkerGroup) bool { return g.Name == group.Name })
		if at >= 0 && or(cluster.Spec.WorkerGroups[at].Replicas, 0) > or(group.Replicas, 0) {
			group.Replicas = cluster.Spec.WorkerGroups[at].Replicas
		}
	}
}

// makeCluster plans the cluster of a version that has none. What the spec does not ask
// for is made again only where nothing else serves. One that goes is waited for.
func (v *provisioner) makeCluster(side *Side, going *Cluster) {
	asked, alone := side.Pods == v.target.Pods, v.record.Candidate == nil
	if going == nil && (asked || alone) {
		v.make = clusterFor(v.state, side)
		sizeGroups(v.make, v.capacityOf(side))
	}
}
