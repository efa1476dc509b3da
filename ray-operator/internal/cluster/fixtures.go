package cluster

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// fixture is an object of a fixed name that a cluster has or has not, as its spec says.
type fixture struct {
	// kind is for people; it tells fixtures apart.
	kind string
	name func(cluster string) string
	// empty is an object of the kind to read into.
	empty func() client.Object
	// wanted builds it, nil where the cluster must have none.
	wanted func(b basis) client.Object
	// optional tells that the cluster works without it: others' object under its name
	// is told of, and stops nothing.
	optional bool
}

// budgetKind is the kind of the head's budget.
const budgetKind = "PodDisruptionBudget"

// fixtures in the order in which they are made. The policy is there before any pod.
var fixtures = []fixture{
	{
		kind: "NetworkPolicy", name: naming.NetworkPolicy, empty: func() client.Object { return &networkingv1.NetworkPolicy{} },
		wanted: func(b basis) client.Object { return orNothing(networkPolicyOf(b.situation)) },
	},
	{
		kind: "Service", name: naming.HeadService, empty: func() client.Object { return &corev1.Service{} },
		wanted: func(b basis) client.Object { return desired.HeadService(b.cluster, b.Epoch) },
	},
	{
		kind: "Service of the hosts", name: naming.HostsService, empty: func() client.Object { return &corev1.Service{} },
		wanted: func(b basis) client.Object { return orNothing(desired.HostsService(b.cluster)) },
	},
	{
		kind: "Ingress", name: naming.Ingress, empty: func() client.Object { return &networkingv1.Ingress{} },
		wanted: func(b basis) client.Object { return orNothing(desired.Ingress(b.cluster)) }, optional: true,
	},
	{
		kind: "NetworkPolicy of the store", name: naming.Store, empty: func() client.Object { return &networkingv1.NetworkPolicy{} },
		wanted: func(b basis) client.Object { return orNothing(desired.StorePolicy(b.cluster, b.site)) },
	},
	{
		kind: "Service of the store", name: naming.Store, empty: func() client.Object { return &corev1.Service{} },
		wanted: func(b basis) client.Object { return orNothing(desired.StoreService(b.cluster)) },
	},
	{
		kind: storeSetKind, name: naming.Store, empty: func() client.Object { return &appsv1.StatefulSet{} },
		wanted: storeSetOf,
	},
	{
		kind: budgetKind, name: naming.HeadBudget, empty: func() client.Object { return &policyv1.PodDisruptionBudget{} },
		wanted: budgetOf, optional: true,
	},
	{
		kind: storeBudgetKind, name: naming.Store, empty: func() client.Object { return &policyv1.PodDisruptionBudget{} },
		wanted: storeBudgetOf, optional: true,
	},
}

// orNothing turns the nil of a type into no object at all.
func orNothing[T any, P interface {
	*T
	client.Object
}](obj P) client.Object {
	if obj == nil {
		return nil
	}
	return obj
}

// planFixtures chooses what to do about every fixture.
func planFixtures(p *planner) {
	b := p.basis()
	p.wakeIn(untilBudgetChanges(b))
	p.wakeIn(untilStoreNodeIsSeen(b))
	for i := range fixtures {
		f := &fixtures[i]
		standing, wanted := p.seen.Fixtures[f.kind], f.wanted(b)
		if wanted != nil && standing.Presence == reconcile.Foreign { // one that is not optional has stalled the cluster before
			conflict := reason.NameConflict.Of(f.kind + " " + wanted.GetName())
			p.Conflict = &conflict
			p.wakeIn(reconcile.Recheck) // nobody tells of what is not ours
		}
		for _, fixing := range reconcile.Fix(f.kind, standing, wanted, holdsOrRuns) {
			if fixing.Act == reconcile.Remove {
				fixing.Event = eventOfBudget(b, f.kind)
			}
			p.Fixtures = append(p.Fixtures, fixing)
		}
	}
	p.StoreSecret = slices.ContainsFunc(p.Fixtures, func(f reconcile.FixtureChange) bool { return f.Kind == storeSetKind && f.Act == reconcile.Make })
}

// holdsOrRuns reports whether an object is as it must be, or runs a store as it must.
func holdsOrRuns(seen, wanted client.Object) bool {
	return reconcile.Holds(seen, wanted) || isRunningAs(seen, wanted)
}

// isOptional reports whether a cluster works without the fixture of a kind.
func isOptional(kind string) bool {
	return slices.ContainsFunc(fixtures, func(f fixture) bool { return f.kind == kind && f.optional })
}

// isRunningAs reports whether what runs a store is what the user wants of it. Another operator's
// defaults are no reason to restart it.
func isRunningAs(seen, wanted client.Object) bool {
	there, isSet := seen.(*appsv1.StatefulSet)
	want, _ := wanted.(*appsv1.StatefulSet)
	return isSet && there.Annotations[v1beta1.AnnotationIntent] == want.Annotations[v1beta1.AnnotationIntent] &&
		there.Spec.Replicas != nil && *there.Spec.Replicas == *want.Spec.Replicas
}

// storeSetOf returns what runs a managed Redis. It stays for a cluster that is suspended: its volume is free to be
// copied then.
func storeSetOf(b basis) client.Object {
	set := b.site.StoreSet(b.cluster, isStoreEncrypted(b))
	if set != nil && b.suspended {
		set.Spec.Replicas = new(int32)
	}
	return orNothing(set)
}
