package testkit

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

// Gateway stands in for Gateway API: the kind HTTPRoute, and a gateway that divides requests as
// routes and endpoints were a while ago, and tells of a route what it goes by.
type Gateway struct {
	// Absent: the API server knows no HTTPRoutes. Deaf: no controller looks at them.
	Absent, Deaf bool
	// Refuses is why no route is accepted; empty is that all are.
	Refuses string
	// Lag is after how long what was written shows in what the gateway does.
	Lag time.Duration

	world *World
	// states are those that the gateway has yet to go by, the oldest first, behind the one that
	// it goes by.
	states []routed
	// demanded is the service whose requests come by way of the gateway, Shares the percentages
	// that its versions' Services had, in the order in which they came about, without the
	// Service's names: those of the last one named.
	demanded string
	Shares   []int32
}

// routed is a state of a route with the endpoints of the Services that it names.
type routed struct {
	since      time.Time
	service    string
	generation int64
	// weights and endpoints are by the names of Services.
	weights   map[string]int32
	endpoints map[string][]types.UID
}

func (r routed) equal(other routed) bool {
	return r.service == other.service && r.generation == other.generation && maps.Equal(r.weights, other.weights) &&
		maps.EqualFunc(r.endpoints, other.endpoints, slices.Equal)
}

// Demand has a service asked by way of the gateway at each moment from now on; each request that
// is lost breaks a rule. An empty name ends that.
func (g *Gateway) Demand(service string) { g.demanded = service }

// Remove takes Gateway API away, with the routes that there are.
func (g *Gateway) Remove() {
	g.Absent = true
	for _, obj := range g.world.server.latest.held() {
		if route, ok := obj.(*gatewayv1.HTTPRoute); ok {
			g.world.Must(g.world.Client.Delete(g.world.Ctx, copied(route)))
		}
	}
}

// unknown is what the API server says of a kind that it does not know.
func (g *Gateway) unknown(obj any) error {
	if _, is := obj.(*gatewayv1.HTTPRoute); is && g.Absent {
		return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: gatewayv1.GroupName, Kind: "HTTPRoute"}}
	}
	return nil
}

// Route is the route of a service, nil if there is none.
func (w *World) Route(service string) *gatewayv1.HTTPRoute {
	found, _ := w.server.latest.find(key{"HTTPRoute", types.NamespacedName{Namespace: Namespace, Name: service}}).(*gatewayv1.HTTPRoute)
	return found
}

// step lets the gateway see what is new, go by what is old enough and tell of it, and sends the
// requests that are due. It gives whether it told anything, and how long it is until there is
// more to do.
func (g *Gateway) step() (told bool, next time.Duration) {
	if g.Deaf {
		return false, 0
	}
	now := g.world.Clock.Now()
	if seen := g.look(now); len(g.states) == 0 || !g.states[len(g.states)-1].equal(seen) {
		g.states = append(g.states, seen)
	}
	for len(g.states) > 1 && !g.states[1].since.Add(g.Lag).After(now) {
		g.states = g.states[1:]
		g.note()
	}
	told = g.tell()
	g.ask()
	if len(g.states) > 1 {
		next = g.states[1].since.Add(g.Lag).Sub(now)
	}
	return told, next
}

// look is the state of the one route that there is, empty where there is none.
func (g *Gateway) look(now time.Time) routed {
	seen := routed{since: now, weights: map[string]int32{}, endpoints: map[string][]types.UID{}}
	for _, obj := range g.world.server.latest.held() {
		route, ok := obj.(*gatewayv1.HTTPRoute)
		if !ok {
			continue
		}
		seen.service, seen.generation = route.Name, route.Generation
		for _, ref := range route.Spec.Rules[0].BackendRefs {
			name := string(ref.Name)
			seen.weights[name] = *ref.Weight
			for _, pod := range g.world.behind(name) {
				seen.endpoints[name] = append(seen.endpoints[name], pod.UID)
			}
		}
	}
	return seen
}

// behind are the pods that a Service leads to, in order.
func (w *World) behind(service string) []*corev1.Pod {
	found, ok := w.server.latest.find(key{"Service", types.NamespacedName{Namespace: Namespace, Name: service}}).(*corev1.Service)
	if !ok {
		return nil
	}
	selector := labels.SelectorFromSet(found.Spec.Selector)
	var pods []*corev1.Pod
	for _, obj := range w.server.latest.held() {
		if pod, ok := obj.(*corev1.Pod); ok && selector.Matches(labels.Set(pod.Labels)) && pod.DeletionTimestamp == nil && isReady(pod) {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return byName(client.ObjectKeyFromObject(a), client.ObjectKeyFromObject(b))
	})
	return pods
}

// note keeps the shares that the gateway goes by from now on, where there are two versions.
func (g *Gateway) note() {
	by, route := g.states[0], g.world.Route(g.states[0].service)
	if route == nil || len(by.weights) < 2 {
		return
	}
	refs := route.Spec.Rules[0].BackendRefs
	share := by.weights[string(refs[len(refs)-1].Name)]
	if len(g.Shares) == 0 || g.Shares[len(g.Shares)-1] != share {
		g.Shares = append(g.Shares, share)
	}
}

// tell writes what the gateway goes by into the route's status.
func (g *Gateway) tell() bool {
	by := g.states[0]
	held := g.world.Route(by.service)
	if held == nil {
		return false
	}
	accepted := metav1.Condition{
		Type: string(gatewayv1.RouteConditionAccepted), Status: metav1.ConditionTrue, Reason: "Accepted",
		ObservedGeneration: by.generation, LastTransitionTime: metav1.Unix(0, 0),
	}
	if g.Refuses != "" {
		accepted.Status, accepted.Reason, accepted.Message = metav1.ConditionFalse, "NotAllowedByListeners", g.Refuses
	}
	resolved := accepted
	resolved.Type, resolved.Status, resolved.Reason, resolved.Message = string(gatewayv1.RouteConditionResolvedRefs), metav1.ConditionTrue, "ResolvedRefs", ""
	route, ok := copied(held).(*gatewayv1.HTTPRoute)
	if !ok {
		return false
	}
	route.Status.Parents = []gatewayv1.RouteParentStatus{{
		ParentRef: route.Spec.ParentRefs[0], ControllerName: "example.com/gateway", Conditions: []metav1.Condition{accepted, resolved},
	}}
	before := held.ResourceVersion
	g.world.Must(g.world.Client.Status().Update(g.world.Ctx, route))
	return route.ResourceVersion != before
}

// ask sends the requests that are due: one to each endpoint of each Service with a share.
func (g *Gateway) ask() {
	if g.demanded == "" {
		return
	}
	lost := g.request()
	if lost == "" {
		return
	}
	history := g.world.History
	history.mu.Lock()
	defer history.mu.Unlock()
	history.fault("a request to %s through the gateway is lost at %s: %s", g.demanded, g.world.Clock.Now().Format(time.TimeOnly), lost)
	g.demanded = ""
}

func (g *Gateway) request() string {
	by, sum := g.states[0], int32(0)
	if by.service != g.demanded {
		return "there is no route"
	}
	for name, weight := range by.weights {
		if sum += weight; weight == 0 {
			continue
		}
		if len(by.endpoints[name]) == 0 {
			return "Service " + name + " has no endpoint"
		}
		for _, uid := range by.endpoints[name] {
			g.world.Serving.asked++
			if !g.world.Serving.answersOf(uid) {
				return "an endpoint of Service " + name + " does not answer"
			}
		}
	}
	if sum != 100 {
		return "the shares are not the whole"
	}
	return ""
}

// answersOf tells whether a request to a pod is answered, which may be on its way out.
func (s *Serving) answersOf(uid types.UID) bool {
	for _, obj := range s.world.server.latest.held() {
		if pod, ok := obj.(*corev1.Pod); ok && pod.UID == uid {
			return s.answersAt(pod)
		}
	}
	return false
}

// through tells whether a request to the address of a Service is answered by each pod that it
// leads to, and whether there is one.
func (s *Serving) through(address string) bool {
	for _, obj := range s.world.server.latest.held() {
		service, ok := obj.(*corev1.Service)
		if !ok || address != doorOf(service) || service.Spec.Selector[v1alpha1.LabelRole] != "" {
			continue
		}
		pods := s.world.behind(service.Name)
		return len(pods) > 0 && !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return !s.answersAt(pod) })
	}
	return false
}
