package service

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/upgrade"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

type specEdit = func(*v1beta1.ClusterServiceSpec)

// effects has, for each field of the spec, an edit that sets it to something else.
var effects = map[string]specEdit{
	"serveConfig": func(s *v1beta1.ClusterServiceSpec) { s.ServeConfig = serveConfig("app:v2") },
	"clusterRef.name": func(s *v1beta1.ClusterServiceSpec) {
		s.ClusterTemplate, s.UpgradeStrategy, s.ClusterRef = nil, nil, &v1beta1.ClusterReference{Name: "b"}
	},
	"clusterTemplate.metadata.labels": func(s *v1beta1.ClusterServiceSpec) { s.ClusterTemplate.Metadata.Labels = map[string]string{"a": "b"} },
	"clusterTemplate.metadata.annotations": func(s *v1beta1.ClusterServiceSpec) {
		s.ClusterTemplate.Metadata.Annotations = map[string]string{"a": "b"}
	},
	"clusterTemplate.spec":      func(s *v1beta1.ClusterServiceSpec) { s.ClusterTemplate.Spec.Image = "mine" },
	"service.type":              ofService(func(s *v1beta1.ServeService) { s.Type = corev1.ServiceTypeNodePort }),
	"service.ports.nodePort":    ofService(func(s *v1beta1.ServeService) { s.Ports[0].NodePort = 30000 }),
	"service.loadBalancerClass": ofService(func(s *v1beta1.ServeService) { s.LoadBalancerClass = "a" }),
	"service.loadBalancerSourceRanges": ofService(func(s *v1beta1.ServeService) {
		s.LoadBalancerSourceRanges = []string{"10.0.0.0/8"}
	}),
	"service.externalTrafficPolicy": ofService(func(s *v1beta1.ServeService) {
		s.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	}),
	"service.sessionAffinity":  ofService(func(s *v1beta1.ServeService) { s.SessionAffinity = corev1.ServiceAffinityClientIP }),
	"service.ipFamilies":       ofService(func(s *v1beta1.ServeService) { s.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol} }),
	"service.ipFamilyPolicy":   ofService(func(s *v1beta1.ServeService) { s.IPFamilyPolicy = corev1.IPFamilyPolicyPreferDualStack }),
	"service.ports.name":       ofService(func(s *v1beta1.ServeService) { s.Ports[0].Name = "grpc" }),
	"service.ports.port":       ofService(func(s *v1beta1.ServeService) { s.Ports[0].Port = 88 }),
	"service.ports.targetPort": ofService(func(s *v1beta1.ServeService) { s.Ports[1].TargetPort = 9100 }),
	"service.labels":           ofService(func(s *v1beta1.ServeService) { s.Labels = map[string]string{"a": "b"} }),
	"service.annotations":      ofService(func(s *v1beta1.ServeService) { s.Annotations = map[string]string{"a": "b"} }),
	"service.allowFrom": ofService(func(s *v1beta1.ServeService) {
		s.AllowFrom = []v1beta1.ServePeer{{NetworkPolicyPeer: networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{}}}}
	}),
	"service.allowFrom.server": ofService(func(s *v1beta1.ServeService) { s.AllowFrom = []v1beta1.ServePeer{{Server: &v1beta1.ServerPeer{}}} }),
	"service.headEndpoints": ofService(func(s *v1beta1.ServeService) {
		yes := true
		s.HeadEndpoints = &yes
	}),
	"healthPath":                             func(s *v1beta1.ClusterServiceSpec) { s.HealthPath = "/text/health" },
	"upgradeStrategy.type":                   ofUpgrade(func(u *v1beta1.ServiceUpgradeStrategy) { u.Type = v1beta1.ServiceUpgradeNone }),
	"upgradeStrategy.surge.maxSurgePercent":  ofUpgrade(func(u *v1beta1.ServiceUpgradeStrategy) { u.Surge.MaxSurgePercent = number(50) }),
	"upgradeStrategy.surge.stepPercent":      ofUpgrade(func(u *v1beta1.ServiceUpgradeStrategy) { u.Surge.StepPercent = number(50) }),
	"upgradeStrategy.surge.intervalSeconds":  ofUpgrade(func(u *v1beta1.ServiceUpgradeStrategy) { u.Surge.IntervalSeconds = number(1) }),
	"upgradeStrategy.healthyDeadlineSeconds": ofUpgrade(func(u *v1beta1.ServiceUpgradeStrategy) { u.HealthyDeadlineSeconds = number(10) }),
	"upgradeStrategy.drainSeconds":           ofUpgrade(func(u *v1beta1.ServiceUpgradeStrategy) { u.DrainSeconds = number(500) }),
	"upgradeStrategy.retireAfterSeconds":     ofUpgrade(func(u *v1beta1.ServiceUpgradeStrategy) { u.RetireAfterSeconds = number(500) }),
	"upgradeStrategy.autoRollback": ofUpgrade(func(u *v1beta1.ServiceUpgradeStrategy) {
		no := false
		u.AutoRollback = &no
	}),
	"upgradeStrategy.gateway.parentRef.name":        ofUpgrade(func(u *v1beta1.ServiceUpgradeStrategy) { u.Gateway.ParentRef.Name = "other" }),
	"upgradeStrategy.gateway.parentRef.namespace":   ofUpgrade(func(u *v1beta1.ServiceUpgradeStrategy) { u.Gateway.ParentRef.Namespace = "other" }),
	"upgradeStrategy.gateway.parentRef.sectionName": ofUpgrade(func(u *v1beta1.ServiceUpgradeStrategy) { u.Gateway.ParentRef.SectionName = "http" }),
	"upgradeStrategy.gateway.hostnames":             ofUpgrade(func(u *v1beta1.ServiceUpgradeStrategy) { u.Gateway.Hostnames = []string{"example.com"} }),

	"suspend":   func(s *v1beta1.ClusterServiceSpec) { s.Suspend = new(true) },
	"managedBy": func(s *v1beta1.ClusterServiceSpec) { s.ManagedBy = "kueue.x-k8s.io/multikueue" },
}

func ofService(edit func(*v1beta1.ServeService)) specEdit {
	return func(s *v1beta1.ClusterServiceSpec) { edit(s.Service) }
}

func ofUpgrade(edit func(*v1beta1.ServiceUpgradeStrategy)) specEdit {
	return func(s *v1beta1.ClusterServiceSpec) { edit(s.UpgradeStrategy) }
}

// opened has something in each part that may be left out.
func opened(s *v1beta1.ClusterServiceSpec) {
	s.Service = &v1beta1.ServeService{
		Type: corev1.ServiceTypeLoadBalancer, Ports: []v1beta1.ServePort{{Name: "http", Port: 80}, {Name: "sidecar", Port: 81}},
	}
	s.UpgradeStrategy = &v1beta1.ServiceUpgradeStrategy{Type: v1beta1.ServiceUpgradeSurge, Surge: &v1beta1.Surge{}, Gateway: &v1beta1.ServiceGateway{ParentRef: v1beta1.GatewayReference{Name: "public"}}}
}

// TestEveryFieldHasAnEffect walks the schema: a field without a row fails, and so does one
// whose edit changes nothing that the operator does, asks for or refuses.
func TestEveryFieldHasAnEffect(t *testing.T) {
	fields := leaves(reflect.TypeFor[v1beta1.ClusterServiceSpec](), "")
	before := done(t, func(*v1beta1.ClusterServiceSpec) {})
	for _, path := range fields {
		edit, ok := effects[path]
		if !ok {
			t.Errorf("field %s has no row", path)
			continue
		}
		if slices.Equal(before, done(t, edit)) {
			t.Errorf("field %s has no effect", path)
		}
	}
	for path := range effects {
		if !slices.Contains(fields, path) {
			t.Errorf("row %s is about no field", path)
		}
	}
}

// leaves are the paths of the fields that hold values, by their JSON names. Maps, Kubernetes'
// own types, types without fields and the spec of a cluster, which has a walk of its own, are values.
func leaves(of reflect.Type, path string) []string {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of.NumField() == 0 || of.PkgPath() != reflect.TypeFor[v1beta1.ClusterService]().PkgPath() || of == reflect.TypeFor[v1beta1.ComputeClusterSpec]() {
		return []string{path}
	}
	var all []string
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		all = append(all, leaves(of.Field(i).Type, strings.Trim(path+"."+name, "."))...)
	}
	return all
}

// done is what the operator does about a service, or has against it: what it makes, and how it
// goes on at the points where it has a choice.
func done(t *testing.T, edit specEdit) []string {
	t.Helper()
	plain := text()
	opened(&plain.Spec)
	edit(&plain.Spec)
	seen := Seen{Record: Record{Version: recordVersion}}
	seen.Target, seen.TargetError = revisionOf(plain)
	all := []string{
		fmt.Sprint(validate.Service(plain)), fmt.Sprint(IsManaged(plain)), printed(t, desired.ServeService(plain, desired.Ports{HTTP: 8000, GRPC: 9000})),
		printed(t, Decide(plain, seen, desired.Site{}, at())),
	}
	if plain.Spec.ClusterTemplate == nil {
		return all
	}
	for _, hasten := range []func(*situation){
		func(*situation) {},
		func(s *situation) { s.seen.Clusters[2].Heard = false },
		func(s *situation) {
			s.seen.Record.Shift.Traffic, s.seen.Record.Shift.At, s.seen.Record.Shift.Proven = 20, at(), true
		},
		func(s *situation) { // without a gateway, whose route is looked at more often than anything else is due
			s.service.Spec.UpgradeStrategy.Gateway = nil
			s.seen.Record.Shift.Traffic, s.seen.Record.Shift.At, s.seen.Record.Shift.Proven = 20, at(), true
		},
		func(s *situation) { s.baking(at().Add(-100 * time.Second)) },
		func(s *situation) {
			s.seen.Record.Candidate, s.seen.Record.Shift = nil, upgrade.Shift{}
			delete(s.seen.Clusters, 2)
		},
		func(s *situation) {
			s.seen.Record.Candidate, s.seen.Record.Shift = nil, upgrade.Shift{}
			s.seen.Record.Retiring = []Retired{{Cluster: 2, At: now - 100}}
		},
		func(s *situation) {
			app := s.seen.Clusters[2].Answer.Serving.Applications
			failed := app["text"]
			failed.State = "DEPLOY_FAILED"
			app["text"] = failed
		},
	} {
		s := upgrades(t, func(spec *v1beta1.ClusterServiceSpec) { opened(spec); edit(spec) })
		hasten(s)
		all = append(all, printed(t, s.decide()))
	}
	return all
}

// baking is a situation in which the candidate has had all requests since a moment.
func (s *situation) baking(since time.Time) {
	s.seen.Record.Shift.Traffic, s.seen.Record.Shift.Proven, s.seen.Record.Shift.At = 100, true, since
}

func printed(t *testing.T, value any) string {
	t.Helper()
	if plan, ok := value.(Plan); ok {
		for i := range plan.Wants {
			plan.Wants[i].Cluster = nil
			plan.Wants[i].At.Token = nil
		}
		for _, pods := range [][]*corev1.Pod{plan.Open, plan.Close} {
			for i := range pods {
				pods[i] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pods[i].Name}}
			}
		}
		return fmt.Sprintf("%s %+v %s", plan.String(), plan.Finding, jsonOf(t, []any{plan.Make, plan.Change, plan.Fixtures, plan.Wake, plan.Events, plan.Phase, wantsOf(plan)}))
	}
	return jsonOf(t, value)
}

// wantsOf are the wants as JSON takes them.
func wantsOf(plan Plan) []any {
	var all []any
	for _, want := range plan.Wants {
		all = append(all, []any{want.Config, want.Probes, want.Every})
	}
	return all
}

func jsonOf(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
