package service

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// led is a situation in which version 2 is to have 20 % of the requests by way of a gateway that
// has done so, and the time for the next step has come.
func led(t *testing.T) *situation {
	t.Helper()
	s := upgrades(t, func(spec *v1beta1.ClusterServiceSpec) {
		spec.UpgradeStrategy = &v1beta1.ServiceUpgradeStrategy{Gateway: &v1beta1.ServiceGateway{ParentRef: v1beta1.GatewayReference{Name: "public"}}}
	})
	s.seen.Record.Shift.Traffic, s.seen.Record.Shift.Proven, s.seen.Record.Shift.At = 20, true, at().Add(-time.Minute)
	s.seen.Versions = map[string]*corev1.Service{}
	for number, cluster := range s.seen.Clusters {
		s.leads(number, true)
		made := desired.ServeVersion(s.service, cluster.Name, desired.Ports{HTTP: 8000})
		reconcile.Marked(made)
		s.seen.Versions[made.Name] = made
	}
	s.routes(80, 20)
	return s
}

// leads gives the workers of a cluster the label for gateways, or takes it from them.
func (s *situation) leads(cluster int, is bool) {
	for _, pod := range s.seen.Clusters[cluster].Pods {
		delete(pod.Labels, naming.RouteLabel("text"))
		if is && pod.Labels[v1beta1.LabelRole] == v1beta1.RoleWorker {
			pod.Labels[naming.RouteLabel("text")] = v1beta1.ServeOn
		}
	}
}

// routes has a route that divides so, of generation 3, which the gateway has taken.
func (s *situation) routes(active, candidate int32) *gatewayv1.HTTPRoute {
	name := func(number int) string { return naming.ServeVersion(s.seen.Clusters[number].Name) }
	route := desired.ServeRoute(s.service, s.service.Spec.UpgradeStrategy.Gateway, []string{"/text"}, desired.Backend{Service: name(1), Weight: active}, desired.Backend{Service: name(2), Weight: candidate})
	reconcile.Marked(route)
	route.Generation = 3
	route.Status.Parents = []gatewayv1.RouteParentStatus{told(route, "a", 3, metav1.ConditionTrue, metav1.ConditionTrue)}
	s.seen.Standing[kindRoute] = reconcile.Fixture{Presence: reconcile.Ours, Object: route}
	return route
}

// told is what a controller says of a route.
func told(route *gatewayv1.HTTPRoute, controller string, generation int64, accepted, resolved metav1.ConditionStatus) gatewayv1.RouteParentStatus {
	condition := func(kind gatewayv1.RouteConditionType, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: string(kind), Status: status, Reason: "Because", Message: "in its words", ObservedGeneration: generation}
	}
	return gatewayv1.RouteParentStatus{
		ParentRef: route.Spec.ParentRefs[0], ControllerName: gatewayv1.GatewayController("example.com/" + controller),
		Conditions: []metav1.Condition{condition(gatewayv1.RouteConditionAccepted, accepted), condition(gatewayv1.RouteConditionResolvedRefs, resolved)},
	}
}

func (s *situation) route() *gatewayv1.HTTPRoute {
	route, _ := s.seen.Standing[kindRoute].Object.(*gatewayv1.HTTPRoute)
	return route
}

// TestWhatAGatewaySays: of each thing that a gateway may say, or not say, the condition tells, and
// the next step waits where requests come by way of it and do not go as they must.
func TestWhatAGatewaySays(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	says := func(parents ...gatewayv1.RouteParentStatus) func(*situation) {
		return func(s *situation) { s.route().Status.Parents = parents }
	}
	of := led(t).route()
	other, section := told(of, "a", 3, yes, yes), gatewayv1.SectionName("https")
	other.ParentRef.SectionName = &section
	for name, test := range map[string]struct {
		edit  func(*situation)
		code  string
		waits bool
	}{
		"all that is wanted": {func(*situation) {}, "GatewayProgrammed", false},
		"nothing yet":        {says(), "GatewayPending", false},
		"no such kind":       {func(s *situation) { delete(s.seen.Standing, kindRoute); s.seen.RouteUnknown = true }, "GatewayAPIMissing", false},
		"another's route": {func(s *situation) {
			s.seen.Standing[kindRoute] = reconcile.Fixture{Presence: reconcile.Foreign, Object: s.route()}
		}, "NameConflict", false},
		"no route":                 {func(s *situation) { delete(s.seen.Standing, kindRoute) }, "GatewayPending", false},
		"something of a listener":  {says(other), "GatewayPending", false},
		"the generation before":    {says(told(of, "a", 2, yes, yes)), "GatewayPending", true},
		"that it takes none":       {says(told(of, "a", 3, no, yes)), "GatewayNotAccepted", false},
		"that it took none before": {says(told(of, "a", 2, no, yes)), "GatewayPending", false},
		"that a Service is amiss":  {says(told(of, "a", 3, yes, no)), "GatewayNotAccepted", true},
		"not to know yet":          {says(told(of, "a", 3, metav1.ConditionUnknown, yes)), "GatewayPending", false},
		"by two, that one takes":   {says(told(of, "a", 3, no, yes), told(of, "b", 3, yes, yes)), "GatewayProgrammed", false},
		"by two, one being late":   {says(told(of, "a", 3, yes, yes), told(of, "b", 2, yes, yes)), "GatewayPending", true},
		"a missing right": {func(s *situation) {
			delete(s.seen.Standing, kindRoute)
			s.seen.RouteRefused = apierrors.NewForbidden(schema.GroupResource{Resource: "httproutes"}, "text", errors.New(`User "system:serviceaccount:heliostat:operator" cannot get resource "httproutes" in API group "gateway.networking.k8s.io" in the namespace "default"`))
		}, "CreateForbidden", true},
		"what was meddled with": {func(s *situation) {
			route := s.routes(50, 50)
			route.Status.Parents = []gatewayv1.RouteParentStatus{told(route, "a", 3, yes, yes)}
		}, "GatewayPending", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := led(t)
			test.edit(s)
			s.seen.Record.Shift.At = at() // no step is due, which would be something new to take
			plan := s.decide()
			if plan.Gateway == nil || plan.Gateway.Code != test.code || plan.Programmed != (test.code == "GatewayProgrammed") {
				t.Errorf("it tells %+v", plan.Gateway)
			}
			s.seen.Record.Shift.At = at().Add(-time.Minute)
			if plan = s.decide(); plan.Record == nil {
				t.Fatal("nothing was decided")
			}
			if have := plan.Record.Shift.Traffic; (have == 20) != test.waits || have < 20 {
				t.Errorf("the next share is %d, want it to wait: %v", have, test.waits)
			}
		})
	}
}

// TestWhoGetsAShare: by construction no Service has a share that leads nowhere.
func TestWhoGetsAShare(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(*situation)
		want int32
	}{
		"both can":                    {func(*situation) {}, 20},
		"the candidate has no pod":    {func(s *situation) { s.leads(2, false) }, 0},
		"the active has no pod":       {func(s *situation) { s.leads(1, false) }, 100},
		"nobody has":                  {func(s *situation) { s.leads(1, false); s.leads(2, false) }, 20},
		"it has yet to answer":        {func(s *situation) { s.routes(100, 0) }, 0},
		"it has answered":             {func(s *situation) { s.routes(100, 0); s.enters(t) }, 20},
		"it was never to have any":    {func(s *situation) { s.leads(1, false); s.seen.Record.Shift.Traffic = 0 }, 0},
		"the pods of one are unready": {func(s *situation) { s.seen.Clusters[2].unready() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := led(t)
			test.edit(s)
			if have := candidateWeight(s.read(), nil); have != test.want {
				t.Errorf("the candidate is to have %d, want %d", have, test.want)
			}
		})
	}
}

// enters has the candidate answer through its Service.
func (s *situation) enters(t *testing.T) {
	t.Helper()
	cluster := s.seen.Clusters[2]
	s.seen.Versions[naming.ServeVersion(cluster.Name)].Spec.ClusterIP = "10.1.2.3"
	door, there := s.proxies().candidateDoor(cluster)
	if !there {
		t.Fatal("there is nothing to ask")
	}
	reply := cluster.Answer.Probes[door]
	reply.OK = true
	cluster.Answer.Probes[door] = reply
}

func (c *Cluster) unready() {
	for _, pod := range c.Pods {
		pod.Status.Conditions = nil
	}
}

// TestTimeCountsFromWhenItIsDone: the time of a step, and of the last one, begins when the gateway
// has done it; what was seen to be on its way back has no such time.
func TestTimeCountsFromWhenItIsDone(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(*situation)
		want int64
	}{
		"a step":              {func(*situation) {}, now},
		"the last step":       {func(s *situation) { s.seen.Record.Shift.Traffic = 100; s.routes(0, 100) }, now},
		"one done before":     {func(s *situation) { s.seen.Record.Routing, s.seen.Record.Shift.At = false, at().Add(-time.Second) }, now - 1},
		"one that is to come": {func(s *situation) { s.routes(90, 10) }, now - 60},
	} {
		t.Run(name, func(t *testing.T) {
			s := led(t)
			s.seen.Record.Routing = true
			test.edit(s)
			plan := s.decide()
			if plan.Record == nil {
				plan.Record = &s.seen.Record
			}
			if have := plan.Record.Shift.At.Unix(); have != test.want || plan.Record.Candidate == nil {
				t.Errorf("it counts from %d, want %d: %s", have, test.want, plan.Record)
			}
		})
	}
}

// TestPaths_AreThoseOfAllVersions that may have requests.
func TestPaths_AreThoseOfAllVersions(t *testing.T) {
	for name, c := range map[string]struct {
		config string
		want   []string
	}{
		"another prefix": {`{"applications":[{"name":"a","route_prefix":"/new","import_path":"a:b"},{"name":"b","route_prefix":null,"import_path":"a:b"}]}`, []string{"/new", "/text"}},
		"a root path":    {`{"http_options":{"root_path":"/below"},"applications":[{"name":"a","route_prefix":"/new","import_path":"a:b"}]}`, nil},
	} {
		s := upgrades(t, func(spec *v1beta1.ClusterServiceSpec) { spec.ServeConfig.Raw = []byte(c.config) })
		have := routePaths(s.seen.Record, s.read().revisions)
		if slices.Sort(have); !slices.Equal(slices.Compact(have), c.want) {
			t.Errorf("%s: %q, want %q", name, have, c.want)
		}
	}
}
