package validate_test

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/admission/corpus"
	"github.com/heliostat-dev/heliostat/ray-operator/serveconfig"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// onTemplate is the good service with a cluster of its own, which is this one.
func onTemplate(cluster *v1beta1.ComputeCluster) *v1beta1.ClusterService {
	service := corpus.GoodService()
	service.Spec.ClusterRef, service.Spec.ClusterTemplate = nil, &v1beta1.ClusterTemplate{Spec: cluster.Spec}
	return service
}

// only are the IDs of rules that are not among others.
func only(rules, others []validate.Rule) map[string]bool {
	ids := map[string]bool{}
	for _, rule := range rules {
		ids[rule.ID] = true
	}
	for _, rule := range others {
		delete(ids, rule.ID)
	}
	return ids
}

// TestATemplateOfAServiceIsRefusedAsTheClusterWouldBe: every row about a cluster gives a service
// the same refusals below clusterTemplate, but for the name, for what no service's cluster may
// say, and for changes: any may be made.
func TestATemplateOfAServiceIsRefusedAsTheClusterWouldBe(t *testing.T) {
	ofServices, moved := only(validate.ServiceRules(), validate.Rules()), 0
	for _, row := range corpus.Clusters().Rows {
		before, after := corpus.Good(), corpus.Good()
		if row.Before != nil {
			row.Before(before)
			row.Before(after)
		}
		row.Edit(after)
		if len(after.OwnerReferences) > 0 {
			continue // a template has no owner
		}
		have := judgeChange(t, "ClusterService", onTemplate(before), onTemplate(after))
		have = slices.DeleteFunc(have, func(f validate.Finding) bool { return ofServices[f.Rule] })
		want := belowTemplate(judge(t, "ComputeCluster", after))
		if moved += len(want); !slices.Equal(have, want) {
			t.Errorf("%s gives a service %v, want %v", row.Name, have, want)
		}
	}
	if moved < 100 {
		t.Errorf("only %d refusals were found in templates", moved)
	}
}

// TestWhatIsGoodCanBeRead: a configuration that the rules find good is read, and the fields of
// the reading are those that the rules speak of.
func TestWhatIsGoodCanBeRead(t *testing.T) {
	good := 0
	for _, row := range corpus.ServiceRows() {
		service := corpus.GoodService()
		row.Edit(service)
		inConfig := func(f validate.Finding) bool { return strings.HasPrefix(f.Path, "spec.serveConfig") }
		if slices.ContainsFunc(judge(t, "ClusterService", service), inConfig) {
			continue
		}
		good++
		if _, err := serveconfig.Parse(service.Spec.ServeConfig.Raw); err != nil {
			t.Errorf("%s is good, and cannot be read: %v", row.Name, err)
		}
	}
	if good < 50 {
		t.Errorf("only %d rows have a good configuration", good)
	}
}

// TestPlacesInAConfiguration: what is wrong is named where it stands, however deep.
func TestPlacesInAConfiguration(t *testing.T) {
	const deep = `{"applications":[{"name":"a","import_path":"a:b"},{"name":"b","route_prefix":"/b","import_path":"a:b","deployments":[
		{"name":"c"},{"name":"d","logging_config":[],"ray_actor_options":{"num_cpus":-1,"runtime_env":{"working_dir":"here","py_modules":"there"}}}]}],
		"controller_options":{"runtime_env":{"pip":[]}}}`
	want := []string{
		"spec.serveConfig.applications[1].deployments[1].logging_config",
		"spec.serveConfig.applications[1].deployments[1].ray_actor_options.num_cpus",
		"spec.serveConfig.applications[1].deployments[1].ray_actor_options.runtime_env.py_modules",
		"spec.serveConfig.applications[1].deployments[1].ray_actor_options.runtime_env.working_dir",
		"spec.serveConfig.controller_options.runtime_env",
	}
	service := corpus.GoodService()
	service.Spec.ServeConfig.Raw = []byte(deep)
	found := map[string]bool{}
	for _, finding := range judge(t, "ClusterService", service) {
		found[finding.Path] = true
	}
	if have := slices.Sorted(maps.Keys(found)); !slices.Equal(have, want) {
		t.Errorf("wrong is\n%s\nwant\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
}

// routes are paths to ask, with the route of the only application and whether it answers there.
var routes = []struct {
	path, route string
	answers     bool
}{
	{"/", `"/"`, true}, {"/a/b", `"/"`, true}, {"/a", `"/a"`, true}, {"/a/", `"/a"`, true}, {"/a?b", `"/a"`, true}, {"/ab", `"/a"`, false},
	{"/", `"/a"`, false}, {"/b?/a", `"/a"`, false}, {"/a", `null`, false}, {"/a", `""`, false}, {"/a", `1`, false},
}

func TestHealthPathsAndRoutes(t *testing.T) {
	for _, test := range routes {
		service := corpus.GoodService()
		service.Spec.HealthPath = test.path
		service.Spec.ServeConfig.Raw = []byte(`{"applications":[{"name":"a","import_path":"a:b","route_prefix":` + test.route + `}]}`)
		isRoute := func(f validate.Finding) bool { return f.Rule == "health-route" }
		if refused := slices.ContainsFunc(judge(t, "ClusterService", service), isRoute); refused == test.answers {
			t.Errorf("%s with the route %s: refused is %v", test.path, test.route, refused)
		}
	}
}

// TestWhatTheAPIServerFillsInOfAServiceIsNoChange: a service that says a default of the schema
// is the one that leaves it out.
func TestWhatTheAPIServerFillsInOfAServiceIsNoChange(t *testing.T) {
	without, with := corpus.GoodService(), corpus.GoodService()
	with.Spec.ManagedBy = v1beta1.ManagedByOperator
	for _, pair := range [][2]*v1beta1.ClusterService{{without, with}, {with, without}} {
		if errs := judgeChange(t, "ClusterService", pair[0], pair[1]); len(errs) > 0 {
			t.Errorf("a default is a change: %v", errs)
		}
	}
}

// FuzzService: no configuration stops the rules, and what they find good can be read.
func FuzzService(f *testing.F) {
	for _, row := range corpus.ServiceRows() {
		service := corpus.GoodService()
		if row.Edit(service); len(service.Spec.ServeConfig.Raw) < 1<<12 {
			f.Add(string(service.Spec.ServeConfig.Raw))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		service := corpus.GoodService()
		service.Spec.ServeConfig.Raw = []byte(text)
		if found := validate.Service(service); len(found) > 0 || !strings.HasPrefix(text, "{") {
			return // what is no object, the CRD refuses
		}
		if _, err := serveconfig.Parse([]byte(text)); err != nil {
			t.Errorf("%s is good, and cannot be read: %v", text, err)
		}
	})
}

// TestServePort_NamesAllPortsOfRay: the rule of the schema lists by hand what the operator's rule takes from the pods.
func TestServePort_NamesAllPortsOfRay(t *testing.T) {
	text, err := os.ReadFile("../config/crd/heliostat.dev_clusterservices.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var numbers []string
	for _, port := range validate.ReservedPorts() {
		numbers = append(numbers, strconv.Itoa(int(port)))
	}
	rule := "self.?targetPort.orValue(self.?port.orValue(0)) in [" + strings.Join(numbers, ", ") + "]"
	if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), rule) {
		t.Errorf("no rule has %s", rule)
	}
}
