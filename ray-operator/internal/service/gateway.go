package service

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pass"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// routeWait is how soon to look again at a route that something waits for: no watch tells of it.
const routeWait = time.Second

// promptly is for how long a new route is looked at so often whether anything waits or not: most
// gateways take it at once.
const promptly = time.Minute

// gatewayOf is the gateway that a service asks for, nil where it asks for none.
func gatewayOf(service *v1alpha1.ClusterService) *v1alpha1.ServiceGateway {
	if service.Spec.Upgrade == nil || service.Spec.ClusterTemplate == nil {
		return nil
	}
	return service.Spec.Upgrade.Gateway
}

// sides are the versions that there are, the active one first.
func (p *planner) sides() []*Side {
	sides := []*Side{&p.record.Active}
	if p.record.Candidate != nil {
		sides = append(sides, p.record.Candidate)
	}
	return sides
}

// taking is what a gateway says of a route: whether it leads requests as some state of the route
// has it, and what keeps it from doing so as the route is now, nothing where it does.
func (p *planner) taking() (taken bool, amiss *reason.Finding) {
	pending := reason.GatewayPending.Of(p.gatewayName(), p.service.Name)
	route := p.stands()
	if route == nil {
		return false, &pending
	}
	amiss = &pending
	parent := desired.GatewayParent(p.service, gatewayOf(p.service))
	for i := range route.Status.Parents {
		told := &route.Status.Parents[i]
		accepted := meta.FindStatusCondition(told.Conditions, string(gatewayv1.RouteConditionAccepted))
		if accepted == nil || accepted.Status == metav1.ConditionUnknown || !sameParent(told.ParentRef, parent, p.service.Namespace) {
			continue
		}
		if accepted.Status == metav1.ConditionTrue && !taken {
			taken, amiss = true, nil // of several controllers those count that take it
		}
		if worse := p.wrong(told.Conditions, route.Generation); worse != nil && (!taken || accepted.Status == metav1.ConditionTrue) {
			amiss = worse
		}
	}
	return taken, amiss
}

// wrong is what keeps a gateway from leading requests as a generation of the route has it, by
// the conditions that it wrote, nil where nothing does.
func (p *planner) wrong(conditions []metav1.Condition, generation int64) *reason.Finding {
	for _, kind := range []gatewayv1.RouteConditionType{gatewayv1.RouteConditionAccepted, gatewayv1.RouteConditionResolvedRefs} {
		told := meta.FindStatusCondition(conditions, string(kind))
		switch {
		case told == nil || told.ObservedGeneration != generation:
			pending := reason.GatewayPending.Of(p.gatewayName(), p.service.Name)
			return &pending
		case told.Status != metav1.ConditionTrue:
			refused := reason.GatewayNotAccepted.Of(p.gatewayName(), p.service.Name, cut(told.Reason+": "+told.Message))
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

// gatewayName names the gateway for people.
func (p *planner) gatewayName() string {
	parent := desired.GatewayParent(p.service, gatewayOf(p.service))
	return string(*parent.Namespace) + "/" + string(parent.Name)
}

// taken reports whether requests come by way of a gateway.
func (p *planner) taken() bool {
	if gatewayOf(p.service) == nil {
		return false
	}
	taken, _ := p.taking()
	return taken
}

// lags reports whether requests come by way of a gateway that does not divide them yet as it is
// decided, so that nothing may go on that leans on it. What nobody can see may be so.
func (p *planner) lags() bool {
	if gatewayOf(p.service) == nil || p.service.DeletionTimestamp != nil || p.service.Spec.Suspend {
		return false
	}
	if p.seen.RouteRefused != nil {
		return true
	}
	taken, amiss := p.taking()
	return taken && (amiss != nil || !holdsRoute(p.stands(), p.route()) || int(p.weight()) != p.record.Shift.Traffic && p.record.Candidate != nil)
}

// behind says in words what a gateway that lags is waited for.
func (p *planner) behind() string {
	finding, programmed := p.gatewayFinding()
	if programmed {
		return "its Service has yet to answer"
	}
	return finding.Text
}

// acknowledge reports whether the gateway lags. The time of a step counts from when it is done.
func (p *planner) acknowledge() (lags bool) {
	lags = p.lags()
	if shift := &p.record.Shift; p.record.Routing && !lags && !shift.Back && !shift.At.IsZero() {
		shift.At = p.now
	}
	if lags {
		p.wakeIn(routeWait)
	}
	return lags
}

// hold keeps clusters until the gateway leads no requests there any more; the time for those
// that they have counts from then.
func (p *planner) hold() {
	lags := p.lags()
	for i := range p.record.Retiring {
		switch retired := &p.record.Retiring[i]; {
		case retired.Unused:
		case lags:
			retired.Held = true
			p.wakeIn(routeWait)
		case retired.Held:
			retired.Held, retired.At = false, p.now.Unix()
		}
	}
}

// gatewayFinding says what became of the route, and whether the gateway has taken it as it is.
func (p *planner) gatewayFinding() (reason.Finding, bool) {
	switch {
	case p.seen.RouteUnknown:
		return reason.GatewayAPIMissing.Of(), false
	case p.seen.RouteRefused != nil:
		return diagnose.Refusal(kindRoute+" "+p.service.Name, p.seen.RouteRefused), false
	case p.seen.Standing[kindRoute].Foreign:
		return reason.NameConflict.Of(kindRoute + " " + p.service.Name), false
	}
	_, amiss := p.taking()
	route := p.route()
	switch {
	case amiss != nil:
		return *amiss, false
	case route == nil || !holdsRoute(p.stands(), route):
		return reason.GatewayPending.Of(p.gatewayName(), p.service.Name), false
	default:
		return reason.GatewayProgrammed.Of(p.gatewayName(), p.service.Name), true
	}
}

// refused takes what the API server would not have of the route for what is told of the gateway,
// and gives what else there was: neither is a failure of the service.
func (p *Plan) refused(err error) error {
	if !pass.Shown(err) || p.Gateway == nil {
		return err
	}
	finding, terminal := fault.Finding(err)
	if !terminal {
		finding = diagnose.Refusal(kindRoute, err)
	}
	p.Gateway, p.Programmed = &finding, false
	return nil
}

// tellGateway tells of the gateway, if one is asked for.
func (p *planner) tellGateway() {
	if gatewayOf(p.service) == nil {
		return
	}
	finding, programmed := p.gatewayFinding()
	p.Gateway, p.Programmed = &finding, programmed
	if p.service.DeletionTimestamp != nil {
		return
	}
	p.lookAgain() // nobody tells of routes, nor of kinds that come and go
	if route := p.stands(); !programmed && finding.Code == reason.GatewayPending.Code && (route == nil || p.now.Sub(route.CreationTimestamp.Time) < promptly) {
		p.wakeIn(routeWait)
	}
}
