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
	routed
	provision
	// closing are, by cluster, the jobs that close the connections that clients keep.
	closing map[string]headclient.Closing
}

// provide chooses what must be done to clusters, heads and objects for what was decided. It is pure.
func provide(r routed) provisioned {
	v := &provisioner{routed: r, closing: map[string]headclient.Closing{}}
	v.closeVersions()
	switch r.course {
	case courseServe:
		v.closeParting()
		for _, version := range v.states.list() {
			v.ensureCluster(version)
			v.requestConfiguration(version)
		}
	case courseDrain:
		for _, version := range v.states.list() { // what was asked of them stands while requests end
			v.askLast(version.cluster)
		}
	case courseLeave:
		v.removeVersions()
	case courseWait, courseEnd: // there is nothing
	}
	if ownsClusters(r.service) {
		v.removeRetired()
	}
	if r.service.DeletionTimestamp == nil {
		v.fixObjects()
	}
	return provisioned{routed: r, provision: v.provision}
}

// ensureCluster ensures that a version has its cluster as it must be, where the service has clusters of its own.
func (v *provisioner) ensureCluster(version versionState) {
	there := v.seen.Clusters[version.Cluster]
	switch {
	case !ownsClusters(v.service) || v.held: // what the spec says now is not for it
	case there == nil:
		v.makeCluster(version)
	case version.cluster == nil: // one that goes is waited for
	default:
		wanted := wantedCluster(v.service, v.revisions, version)
		if wanted == nil {
			wanted = there.DeepCopy()
		}
		sizeGroups(wanted, version.capacity)
		h := v.active
		if v.record.isCandidate(version.Version) {
			h = v.candidate
		}
		if isShrinking(version, h) {
			awaitShrink(there, wanted)
		}
		wanted.Spec.Suspend = nil
		if !isAlike(&wanted.Spec, &there.Spec) || !maps.Equal(wanted.Annotations, there.Annotations) {
			v.change = append(v.change, Change{Seen: there.ComputeCluster, Wanted: wanted})
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

// isShrinking reports whether a version has less than the whole, and Serve has yet to give up replicas for that.
func isShrinking(version versionState, h Health) bool {
	return version.capacity < 100 && (version.Taken != version.digest() || isDeploying(h))
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
// for is made again only where nothing else serves.
func (v *provisioner) makeCluster(version versionState) {
	if version.Pods == v.target.Pods || v.record.Candidate == nil {
		v.make = clusterFor(v.service, v.revisions, version)
		sizeGroups(v.make, version.capacity)
	}
}
