package service

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// seenRoute returns the service's own HTTPRoute as it was seen, nil if there is none.
func seenRoute(s *state) *gatewayv1.HTTPRoute {
	standing := s.seen.Standing[kindRoute]
	if route, ok := standing.Object.(*gatewayv1.HTTPRoute); ok && standing.Presence != reconcile.Foreign {
		return route
	}
	return nil
}

// seenBackend returns what the route as it was seen says of a Service, nil where it does not name it.
func seenBackend(s *state, service string) *gatewayv1.HTTPBackendRef {
	route := seenRoute(s)
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

// seenWeight returns the share that a Service has in the route as it was seen, 0 where it is not in it.
func seenWeight(s *state, service string) int32 {
	if ref := seenBackend(s, service); ref != nil && ref.Weight != nil {
		return *ref.Weight
	}
	return 0
}

// judgeRoute returns what a gateway says of a route: whether it leads requests as some state of the route
// has it, and what keeps it from doing so as the route is now, nothing where it does.
func judgeRoute(s *state) (taken bool, amiss *reason.Finding) {
	pending := reason.GatewayPending.Of(gatewayName(s.service), s.service.Name)
	route := seenRoute(s)
	if route == nil {
		return false, &pending
	}
	amiss = &pending
	parent := desired.GatewayParent(s.service, gatewayOf(s.service))
	for i := range route.Status.Parents {
		told := &route.Status.Parents[i]
		accepted := meta.FindStatusCondition(told.Conditions, string(gatewayv1.RouteConditionAccepted))
		if accepted == nil || accepted.Status == metav1.ConditionUnknown || !sameParent(told.ParentRef, parent, s.service.Namespace) {
			continue
		}
		if accepted.Status == metav1.ConditionTrue && !taken {
			taken, amiss = true, nil // of several controllers those count that take it
		}
		if worse := judgeConditions(s, told.Conditions, route.Generation); worse != nil && (!taken || accepted.Status == metav1.ConditionTrue) {
			amiss = worse
		}
	}
	return taken, amiss
}

// judgeConditions returns what keeps a gateway from leading requests as a generation of the route has it, by
// the conditions that it wrote, nil where nothing does.
func judgeConditions(s *state, conditions []metav1.Condition, generation int64) *reason.Finding {
	for _, kind := range []gatewayv1.RouteConditionType{gatewayv1.RouteConditionAccepted, gatewayv1.RouteConditionResolvedRefs} {
		told := meta.FindStatusCondition(conditions, string(kind))
		switch {
		case told == nil || told.ObservedGeneration != generation:
			pending := reason.GatewayPending.Of(gatewayName(s.service), s.service.Name)
			return &pending
		case told.Status != metav1.ConditionTrue:
			refused := reason.GatewayNotAccepted.Of(gatewayName(s.service), s.service.Name, cut(told.Reason+": "+told.Message))
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
func isRouteTaken(s *state) bool {
	if gatewayOf(s.service) == nil {
		return false
	}
	taken, _ := judgeRoute(s)
	return taken
}

// isGatewayBehind reports whether requests come by way of a gateway that does not divide them yet as it is
// decided, so that nothing may go on that leans on it. What nobody can see may be so.
func isGatewayBehind(s *state, strand []*corev1.Pod) bool {
	if gatewayOf(s.service) == nil || s.service.DeletionTimestamp != nil || ptr.Deref(s.service.Spec.Suspend, false) {
		return false
	}
	if s.seen.RouteRefused != nil {
		return true
	}
	taken, amiss := judgeRoute(s)
	stands := holdsRoute(seenRoute(s), wantedRoute(s, strand))
	divides := s.record.Candidate == nil || int(candidateWeight(s, strand)) == s.record.Shift.Traffic
	return taken && (amiss != nil || !stands || !divides)
}
