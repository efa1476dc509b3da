package service

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// kindVersion names the Services of versions for people.
const kindVersion = "Service of a version"

// spareRevisions is how many revisions are kept that nothing runs of.
const spareRevisions = 3

// fixObjects compares the objects of fixed names with those that must be, and drops revisions that nobody needs.
func (v *provisioner) fixObjects() {
	v.fixObject(kindService, v.address)
	v.fixHead()
	if clusters := isolatedClusters(v.seen.Clusters, v.make); len(clusters) > 0 {
		v.fixObject(kindPolicy, desired.ServePolicy(v.service, v.site, clusters, v.proxyPorts(v.record.Active)))
	} else if len(v.seen.Clusters) > 0 {
		v.fixObject(kindPolicy, nil)
	}
	v.fixBudget()
	v.fixVersionServices()
	v.fixRoute()
	v.removeVersionServices()
	v.dropRevisions()
}

// fixHead has the stable address of the head lead to that of the version that has the requests. While that has no head it
// stays as it is. Where the service refers to a cluster, that has a stable address itself.
func (v *provisioner) fixHead() {
	if cluster := v.states.active.cluster; ownsClusters(v.service) && cluster != nil && cluster.Head != nil {
		v.fixObject(kindHead, desired.ServeHead(v.service, cluster.ComputeCluster, reconcile.Epoch(cluster.Head)))
	}
}

// fixObject chooses what to do about an object of a fixed name; wanted is nil where there must be
// none.
func (v *provisioner) fixObject(kind string, wanted client.Object) {
	v.fixStanding(kind, v.seen.Standing[kind], wanted, reconcile.Holds)
}

// fixStanding chooses what to do about what stands where something is wanted; holds reports whether the
// one is as the other.
func (v *provisioner) fixStanding(kind string, standing reconcile.Fixture, wanted client.Object, holds func(seen, wanted client.Object) bool) {
	switch {
	case wanted == nil:
	case standing.Presence == reconcile.Foreign:
		conflict := reason.NameConflict.Of(kind + " " + wanted.GetName())
		if v.conflict == nil || kind == kindService {
			v.conflict = &conflict
		}
		if kind == kindService { // nobody could reach it
			v.unreachable = &conflict
		}
		v.wakeIn(reconcile.Recheck) // nobody tells of what is not ours
	case standing.Presence == reconcile.Terminating:
		v.wakeIn(reconcile.Recheck) // no cache holds routes
	}
	v.fixtures = append(v.fixtures, reconcile.Fix(kind, standing, wanted, holds)...)
}

// fixBudget keeps evictions from taking more than one of the pods that serve at a time. It
// follows how many there are.
func (v *provisioner) fixBudget() {
	opened := map[*corev1.Pod]bool{}
	for _, cluster := range v.seen.Clusters {
		for _, pod := range cluster.Pods {
			if v.proxies.isOpened(pod) && pod.DeletionTimestamp == nil {
				opened[pod] = true
			}
		}
	}
	for _, pod := range v.routing.open {
		opened[pod] = true
	}
	for _, pod := range v.routing.close {
		delete(opened, pod)
	}
	if len(opened) == 0 {
		v.fixObject(kindBudget, nil)
		return
	}
	v.fixObject(kindBudget, desired.ServeBudget(v.service, len(opened)))
}

// dropRevisions takes revisions away that are neither asked for nor among the last.
func (v *provisioner) dropRevisions() {
	needed := map[string]bool{v.target.ID: true, v.record.Active.Revision: true, v.record.Active.Good: true, v.record.Failed: true}
	if candidate := v.record.Candidate; candidate != nil {
		needed[candidate.Revision], needed[candidate.Good] = true, true
	}
	var spare []Revision
	for id, revision := range v.seen.Revisions {
		if !needed[id] {
			spare = append(spare, revision)
		}
	}
	slices.SortFunc(spare, func(a, b Revision) int { return int(b.Number - a.Number) })
	for _, revision := range spare[min(len(spare), spareRevisions):] {
		v.drop = append(v.drop, revision.Object)
	}
}

// removeVersionServices removes the Services that the route does not name any more.
func (v *provisioner) removeVersionServices() {
	for _, name := range slices.Sorted(maps.Keys(v.seen.Versions)) {
		switch {
		case v.routing.kept[name]:
		case seenBackend(seenRoute(v.seen), name) != nil && gatewayOf(v.service) != nil:
			v.wakeIn(routeWait)
		default:
			v.fixtures = append(v.fixtures, reconcile.FixtureChange{Act: reconcile.Remove, Kind: kindVersion, Seen: v.seen.Versions[name]})
		}
	}
}

// fixVersionServices makes and mends the Services that the route names, which are there before it names them.
func (v *provisioner) fixVersionServices() {
	for _, made := range v.routing.doors {
		var standing reconcile.Fixture
		if found := v.seen.Versions[made.Name]; found != nil {
			standing = reconcile.Fixture{Presence: reconcile.Ours, Object: found}
		}
		v.fixStanding(kindVersion, standing, made, reconcile.Holds)
	}
}

// fixRoute makes, mends or removes the route, if there are such things.
func (v *provisioner) fixRoute() {
	if v.seen.RouteUnknown || v.seen.RouteRefused != nil {
		return
	}
	if v.routing.route != nil {
		v.fixStanding(kindRoute, v.seen.Standing[kindRoute], v.routing.route, holdsRoute)
		return
	}
	v.fixObject(kindRoute, nil)
	if seenRoute(v.seen) != nil {
		v.wakeIn(routeWait)
	}
}

// isolatedClusters returns the names of the clusters that a policy keeps to themselves. A policy about another one
// would close what its spec leaves open.
func isolatedClusters(seen map[int]*Cluster, made *v1beta1.ComputeCluster) []string {
	var names []string
	add := func(cluster *v1beta1.ComputeCluster) {
		if network := cluster.Spec.Network; network == nil || network.Isolation != v1beta1.Disabled {
			names = append(names, cluster.Name)
		}
	}
	for _, cluster := range seen {
		add(cluster.ComputeCluster)
	}
	if made != nil {
		add(made)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
