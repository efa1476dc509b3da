package testkit

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Gateway stands in for Gateway API: the kind HTTPRoute, and a gateway that divides requests as
// routes were a while ago, between endpoints as they were another while ago, and tells of a route
// what it goes by.
type Gateway struct {
	// Absent: the API server knows no HTTPRoutes. Deaf: no controller looks at them.
	Absent, Deaf bool
	// Refuses is why no route is accepted; empty is that all are.
	Refuses string
	// Lag is after how long a route that was written shows in what the gateway does, Slices after
	// how long everybody knows the endpoints of a Service, which EndpointSlices say then. Where that takes no time there
	// are no slices.
	Lag, Slices time.Duration

	world *World
	// states are those that the gateway has yet to go by, the oldest first, behind the one that
	// it goes by.
	states []routed
	// endpoints are those of Services by their names, as they have come about, the oldest being
	// what everybody knows.
	endpoints []endpoints
	// demanded is the service whose requests come by way of the gateway, Shares the percentages
	// that its versions' Services had, in the order in which they came about, without the
	// Service's names: those of the last one named.
	demanded string
	Shares   []int32
}

// routed is a state of a route.
type routed struct {
	since      time.Time
	service    string
	generation int64
	// weights are by the names of Services.
	weights map[string]int32
}

func (r routed) equal(other routed) bool {
	return r.service == other.service && r.generation == other.generation && maps.Equal(r.weights, other.weights)
}

// endpoints is a state of the endpoints of all Services of ClusterServices.
type endpoints struct {
	since time.Time
	of    map[string][]*corev1.Pod
}

func (e endpoints) equal(other endpoints) bool {
	return maps.EqualFunc(e.of, other.of, func(a, b []*corev1.Pod) bool {
		return slices.EqualFunc(a, b, func(a, b *corev1.Pod) bool { return a.UID == b.UID })
	})
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
	now := g.world.Clock.Now()
	next = g.publish(now)
	if g.Deaf {
		return false, next
	}
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
		if wait := g.states[1].since.Add(g.Lag).Sub(now); next == 0 || wait < next {
			next = wait
		}
	}
	return told, next
}

// publish lets everybody know the endpoints that are old enough, and gives how long it is until
// there are more of these; 0 is never.
func (g *Gateway) publish(now time.Time) (next time.Duration) {
	seen := endpoints{since: now, of: map[string][]*corev1.Pod{}}
	for _, obj := range g.world.server.latest.held() {
		if service, ok := obj.(*corev1.Service); ok && service.Labels[v1beta1.LabelService] != "" {
			seen.of[service.Name] = g.world.selected(service)
		}
	}
	if len(g.endpoints) == 0 || !g.endpoints[len(g.endpoints)-1].equal(seen) {
		g.endpoints = append(g.endpoints, seen)
	}
	for len(g.endpoints) > 1 && !g.endpoints[1].since.Add(g.Slices).After(now) {
		g.endpoints = g.endpoints[1:]
	}
	if len(g.endpoints) > 1 {
		next = g.endpoints[1].since.Add(g.Slices).Sub(now)
	}
	if g.Slices > 0 {
		g.list()
	}
	return next
}

// list writes the EndpointSlices of what everybody knows.
func (g *Gateway) list() {
	for _, name := range slices.Sorted(maps.Keys(g.endpoints[0].of)) {
		service, is := g.world.server.latest.find(key{"Service", types.NamespacedName{Namespace: Namespace, Name: name}}).(*corev1.Service)
		if !is {
			continue
		}
		slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace, Name: name, Labels: maps.Clone(service.Labels),
		}}
		slice.Labels[discoveryv1.LabelServiceName] = name
		for _, pod := range g.known(name) {
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{TargetRef: &corev1.ObjectReference{UID: pod.UID}})
		}
		there, _ := g.world.server.latest.find(keyOf(slice)).(*discoveryv1.EndpointSlice)
		switch {
		case there == nil:
			g.world.Must(g.world.Client.Create(g.world.Ctx, slice))
		case !equality.Semantic.DeepEqual(there.Endpoints, slice.Endpoints):
			slice.UID, slice.ResourceVersion = there.UID, there.ResourceVersion
			g.world.Must(g.world.Client.Update(g.world.Ctx, slice))
		}
	}
}

// known are the endpoints of a Service that everybody knows.
func (g *Gateway) known(service string) []*corev1.Pod {
	if len(g.endpoints) == 0 {
		return nil
	}
	return g.endpoints[0].of[service]
}

// look is the state of the one route that there is, empty where there is none.
func (g *Gateway) look(now time.Time) routed {
	seen := routed{since: now, weights: map[string]int32{}}
	for _, obj := range g.world.server.latest.held() {
		route, ok := obj.(*gatewayv1.HTTPRoute)
		if !ok {
			continue
		}
		seen.service, seen.generation = route.Name, route.Generation
		for _, ref := range route.Spec.Rules[0].BackendRefs {
			seen.weights[string(ref.Name)] = *ref.Weight
		}
	}
	return seen
}

// selected are the pods that a Service leads to, in order.
func (w *World) selected(service *corev1.Service) []*corev1.Pod {
	selector := labels.SelectorFromSet(service.Spec.Selector)
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
		if len(g.known(name)) == 0 {
			return "Service " + name + " has no endpoint"
		}
		for _, pod := range g.known(name) {
			g.world.Serving.asked++
			if !g.world.Serving.answersOf(pod.UID) {
				return "an endpoint of Service " + name + " does not answer"
			}
		}
	}
	if sum != 100 {
		return "the shares are not the whole"
	}
	return ""
}

// answersOf reports whether a request to a pod is answered, which may be on its way out.
func (s *Serving) answersOf(uid types.UID) bool {
	for _, obj := range s.world.server.latest.held() {
		if pod, ok := obj.(*corev1.Pod); ok && pod.UID == uid {
			return s.answersAt(pod)
		}
	}
	return false
}

// through reports whether a request to the address of a Service is answered by each pod that it is
// known to lead to, and whether there is one. What Serve answers itself is no request.
func (s *Serving) through(address string, request bool) bool {
	for _, obj := range s.world.server.latest.held() {
		service, ok := obj.(*corev1.Service)
		if !ok || address != doorOf(service) {
			continue
		}
		pods := s.world.Gateway.known(service.Name)
		return len(pods) > 0 && !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return !s.answersTo(pod, request) })
	}
	return false
}
