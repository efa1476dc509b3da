package desired_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// TestServeVersion: HTTP alone, on the port of the service's own Service, and by both labels.
func TestServeVersion(t *testing.T) {
	service := testkit.Service("text")
	service.Spec.Service = &v1beta1.ServeService{Type: "LoadBalancer", Ports: []v1beta1.ServePort{{Name: "http", Port: 80}}}
	made := desired.ServeVersion(service, "text-2-abcde", desired.Ports{HTTP: 8001, GRPC: 9001})
	want := map[string]string{"route.heliostat.dev/text": "true", v1beta1.LabelCluster: "text-2-abcde"}
	if made.Name != "text-2-abcde-serve" || !maps.Equal(made.Spec.Selector, want) || made.Spec.Type != "ClusterIP" {
		t.Errorf("%s selects %v as a %s", made.Name, made.Spec.Selector, made.Spec.Type)
	}
	if len(made.Spec.Ports) != 1 || made.Spec.Ports[0].Port != 80 || made.Spec.Ports[0].TargetPort.IntValue() != 8001 {
		t.Errorf("it has the ports %+v", made.Spec.Ports)
	}
}

// TestServeRoute: all is said that the API server would fill in otherwise, so that the route that
// is there can be compared with it.
func TestServeRoute(t *testing.T) {
	gateway := &v1beta1.ServiceGateway{
		ParentRef: v1beta1.GatewayReference{Name: "public", Namespace: "infra", SectionName: "http"}, Hostnames: []string{"*.example.com"},
	}
	made := desired.ServeRoute(testkit.Service("text"), gateway, []string{"/"}, desired.Backend{Service: "text-1-serve", Weight: 90}, desired.Backend{Service: "text-2-serve", Weight: 10})
	text, err := yaml.Marshal(made.Spec)
	if err != nil {
		t.Fatal(err)
	}
	const want = `hostnames:
- '*.example.com'
parentRefs:
- group: gateway.networking.k8s.io
  kind: Gateway
  name: public
  namespace: infra
  sectionName: http
rules:
- backendRefs:
  - group: ""
    kind: Service
    name: text-1-serve
    port: 8000
    weight: 90
  - group: ""
    kind: Service
    name: text-2-serve
    port: 8000
    weight: 10
  matches:
  - path:
      type: PathPrefix
      value: /
`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("the route (- wanted, + made):\n%s", diff)
	}
	plain := desired.ServeRoute(testkit.Service("text"), &v1beta1.ServiceGateway{ParentRef: v1beta1.GatewayReference{Name: "public"}}, nil)
	if parent := plain.Spec.ParentRefs[0]; *parent.Namespace != testkit.Namespace || parent.SectionName != nil || plain.Name != "text" {
		t.Errorf("by default %s has the parent %+v", plain.Name, parent)
	}
	other := testkit.Service("text")
	other.Spec.Service = &v1beta1.ServeService{Ports: []v1beta1.ServePort{{Name: "http", Port: 80}}}
	moved := desired.ServeRoute(other, gateway, nil, desired.Backend{Service: "text-1-serve", Weight: 100})
	if port := *moved.Spec.Rules[0].BackendRefs[0].Port; port != 80 {
		t.Errorf("the route leads to the port %d, want 80 as the service has it", port)
	}
}

// TestServeRoute_MatchesItsPaths, so that services with other paths may have the same hostname.
func TestServeRoute_MatchesItsPaths(t *testing.T) {
	var many []string
	for i := range 65 {
		many = append(many, fmt.Sprintf("/%d", i))
	}
	for name, c := range map[string]struct{ paths, want []string }{
		"none":                         {nil, []string{"/"}},
		"all":                          {[]string{"/", "/text"}, []string{"/"}},
		"two, in order, each once":     {[]string{"/text", "/a/b-c.d", "/text"}, []string{"/a/b-c.d", "/text"}},
		"one that ends in a slash":     {[]string{"/text/"}, []string{"/"}},
		"one with a parameter":         {[]string{"/text", "/{user}"}, []string{"/"}},
		"one that leads elsewhere":     {[]string{"/text/.."}, []string{"/"}},
		"one with a letter of Unicode": {[]string{"/ä"}, []string{"/"}},
		"more than a rule may have":    {many, []string{"/"}},
	} {
		gateway := &v1beta1.ServiceGateway{ParentRef: v1beta1.GatewayReference{Name: "public"}}
		var have []string
		for _, match := range desired.ServeRoute(testkit.Service("text"), gateway, c.paths).Spec.Rules[0].Matches {
			have = append(have, *match.Path.Value)
		}
		if !slices.Equal(have, c.want) {
			t.Errorf("%s: it matches %q, want %q", name, have, c.want)
		}
	}
}
