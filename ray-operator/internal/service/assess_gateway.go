package service

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// seenRoute returns the service's own HTTPRoute as it was seen, nil if there is none.
func seenRoute(seen *Seen) *gatewayv1.HTTPRoute {
	standing := seen.Standing[kindRoute]
	if route, ok := standing.Object.(*gatewayv1.HTTPRoute); ok && standing.Presence != reconcile.Foreign {
		return route
	}
	return nil
}

// seenBackend returns what a route says of a Service, nil where it does not name it, or is nil.
func seenBackend(route *gatewayv1.HTTPRoute, service string) *gatewayv1.HTTPBackendRef {
	if route == nil {
		return nil
	}
	for i := range route.Spec.Rules {
		for j := range route.Spec.Rules[i].BackendRefs {
			if ref := &route.Spec.Rules[i].BackendRefs[j]; string(ref.Name) == service {
				return ref
			}
		}
	}
	return nil
}

// seenWeight returns the share that a Service has in a route, 0 where it is not in it.
func seenWeight(route *gatewayv1.HTTPRoute, service string) int32 {
	if ref := seenBackend(route, service); ref != nil && ref.Weight != nil {
		return *ref.Weight
	}
	return 0
}

// judgeRoute returns what a gateway says of a route: whether it leads requests as some state of the route
// has it, and what keeps it from doing so as the route is now, nothing where it does.
func judgeRoute(service *v1beta1.ClusterService, route *gatewayv1.HTTPRoute) (taken bool, amiss *reason.Finding) {
	pending := reason.GatewayPending.Of(gatewayName(service), service.Name)
	if route == nil {
		return false, &pending
	}
	amiss = &pending
	parent := desired.GatewayParent(service, gatewayOf(service))
	for i := range route.Status.Parents {
		told := &route.Status.Parents[i]
		accepted := meta.FindStatusCondition(told.Conditions, string(gatewayv1.RouteConditionAccepted))
		if accepted == nil || accepted.Status == metav1.ConditionUnknown || !sameParent(told.ParentRef, parent, service.Namespace) {
			continue
		}
		if accepted.Status == metav1.ConditionTrue && !taken {
			taken, amiss = true, nil // of several controllers those count that take it
		}
		if worse := judgeConditions(service, told.Conditions, route.Generation); worse != nil && (!taken || accepted.Status == metav1.ConditionTrue) {
			amiss = worse
		}
	}
	return taken, amiss
}

// judgeConditions returns what keeps a gateway from leading requests as a generation of the route has it, by
// the conditions that it wrote, nil where nothing does.
func judgeConditions(service *v1beta1.ClusterService, conditions []metav1.Condition, generation int64) *reason.Finding {
	for _, kind := range []gatewayv1.RouteConditionType{gatewayv1.RouteConditionAccepted, gatewayv1.RouteConditionResolvedRefs} {
		told := meta.FindStatusCondition(conditions, string(kind))
		switch {
		case told == nil || told.ObservedGeneration != generation:
			pending := reason.GatewayPending.Of(gatewayName(service), service.Name)
			return &pending
		case told.Status != metav1.ConditionTrue:
			refused := reason.GatewayNotAccepted.Of(gatewayName(service), service.Name, cut(told.Reason+": "+told.Message))
			return &refused
		}
	}
	return nil
}

// sameParent reports whether two references of a route in a namespace name the same of a gateway.
func sameParent(a, b gatewayv1.ParentReference, namespace string) bool {
	text := func(p gatewayv1.ParentReference) string {
		in, section := namespace, ""
		if p.Namespace != nil {
			in = string(*p.Namespace)
		}
		if p.SectionName != nil {
			section = string(*p.SectionName)
		}
		return in + "/" + string(p.Name) + "/" + section
	}
	return text(a) == text(b)
}

// isRouteTaken reports whether requests come by way of a gateway.
func isRouteTaken(service *v1beta1.ClusterService, seen *Seen) bool {
	if gatewayOf(service) == nil {
		return false
	}
	taken, _ := judgeRoute(service, seenRoute(seen))
	return taken
}

// isGatewayBehind reports whether requests come by way of a gateway that does not divide them yet as it is decided, with a
// route as it is wanted and the candidate's share there. Nothing may go on then that leans on it. What nobody can see may be
// so.
func isGatewayBehind(v view, wanted *gatewayv1.HTTPRoute, weight int32) bool {
	if gatewayOf(v.service) == nil || v.service.DeletionTimestamp != nil || ptr.Deref(v.service.Spec.Suspend, false) {
		return false
	}
	if v.seen.RouteRefused != nil {
		return true
	}
	route := seenRoute(v.seen)
	taken, amiss := judgeRoute(v.service, route)
	divides := v.record.Candidate == nil || int(weight) == v.record.Shift.Traffic
	return taken && (amiss != nil || !holdsRoute(route, wanted) || !divides)
}

// isGatewayLagging is isGatewayBehind by the record of a view, with the pods that are led now.
func isGatewayLagging(v view) bool {
	if gatewayOf(v.service) == nil {
		return false
	}
	weight := candidateWeight(v, nil)
	return isGatewayBehind(v, wantedRoute(v, weight), weight)
}
