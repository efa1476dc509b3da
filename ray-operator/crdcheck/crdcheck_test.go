package crdcheck_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/ray-operator/crdcheck"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// object reads an object that is written as JSON.
func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

// cluster is a good one with more fields in its spec.
func cluster(t *testing.T, more string) map[string]any {
	t.Helper()
	return object(t, `{"apiVersion":"heliostat.dev/v1beta1","kind":"ComputeCluster","metadata":{"name":"demo"},"spec":{"rayVersion":"2.60.0"`+more+`}}`)
}

// create returns where a new cluster breaks which rules.
func create(t *testing.T, of map[string]any) []string {
	t.Helper()
	answer, err := crdcheck.Create("ComputeCluster", of)
	if err != nil {
		t.Fatal(err)
	}
	return broken(answer.Findings)
}

func broken(found validate.Findings) []string {
	var all []string
	for _, finding := range found {
		all = append(all, finding.Rule+" "+finding.Path)
	}
	return all
}

func TestCreate_NamesTheRule(t *testing.T) {
	long := `"` + strings.Repeat("a", 300) + `"`
	for name, test := range map[string]struct {
		spec string
		want []string
	}{
		"a good one":                 {``, nil},
		"an unknown field":           {`,"unheard":1,"head":{"template":{"spec":{"unheard":1}}}`, nil},
		"null for none":              {`,"network":null,"workerGroups":null`, nil},
		"a rule in the schema":       {`,"network":{"isolation":"Disabled","allowTo":[{"to":[]}]}`, []string{"network-unused spec.network"}},
		"a rule of the policy":       {`,"workerGroups":[{"name":"a","replicas":1,"minReplicas":2}]`, []string{"replicas-below-min spec.workerGroups[0].replicas"}},
		"both":                       {`,"workerGroups":[{"name":"A","replicas":1,"minReplicas":2}]`, []string{"group-name spec.workerGroups[0].name", "replicas-below-min spec.workerGroups[0].replicas"}},
		"a default that a rule asks": {`,"network":{"encryption":"Enabled"}`, nil},
		"a long text":                {`,"image":` + strings.Replace(long, "a", strings.Repeat("a", 1000), 1), []string{"long-text spec.image"}},
		"a long list":                {`,"head":{"service":{"ipFamilies":["IPv4","IPv6","IPv4"],"ipFamilyPolicy":"PreferDualStack"}}`, []string{"long-list spec.head.service.ipFamilies"}},
		"an unknown word":            {`,"network":{"isolation":"Sometimes"}`, []string{"unknown-word spec.network.isolation"}},
		"a number below its bound":   {`,"maxConcurrentJobs":0`, []string{"out-of-bounds spec.maxConcurrentJobs"}},
		"a number above its bound":   {`,"maxConcurrentJobs":10001`, []string{"out-of-bounds spec.maxConcurrentJobs"}},
		"a list that is too short":   {`,"network":{"allowFrom":[{"from":[],"ports":[]}]}`, []string{"out-of-bounds spec.network.allowFrom[0].ports"}},
		"a peer that is missing":     {`,"network":{"allowTo":[{}]}`, []string{"network-nobody spec.network.allowTo[0].to"}},
		"two of a name":              {`,"workerGroups":[{"name":"a"},{"name":"a"}]`, []string{"duplicate spec.workerGroups[1]"}},
		"a port's name":              {`,"head":{"service":{"ports":[{"name":"A","port":1}]}}`, []string{"port-name spec.head.service.ports[0].name"}},
		"an amount":                  {`,"head":{"size":{"cpu":"one"}}`, []string{"quantity spec.head.size.cpu"}},
		"a field that is missing":    {`,"head":{"service":{"ports":[{"port":1}]}}`, []string{"required spec.head.service.ports[0].name"}},
		"another type":               {`,"workerGroups":"a"`, []string{" spec.workerGroups"}},
	} {
		if diff := cmp.Diff(test.want, create(t, cluster(t, test.spec))); diff != "" {
			t.Errorf("%s (- want):\n%s", name, diff)
		}
	}
}

// TestCreate_NamesWhatIsNoObject: null is as none.
func TestCreate_NamesWhatIsNoObject(t *testing.T) {
	const job, service = `"clusterRef":{"name":"demo"},"entrypoint":"true","runtimeEnv":`, `"clusterRef":{"name":"demo"},"serveConfig":`
	for _, test := range []struct {
		kind, spec string
		want       []string
	}{
		{"ClusterJob", job + `1`, []string{"runtime-env-object spec.runtimeEnv"}},
		{"ClusterJob", job + `null`, nil},
		{"ClusterJob", job + `{}`, nil},
		{"ClusterService", service + `"a"`, []string{"serve-no-object spec.serveConfig"}},
		{"ClusterService", service + `null`, []string{"serve-missing spec.serveConfig"}},
	} {
		answer, err := crdcheck.Create(test.kind, object(t, `{"metadata":{"name":"a"},"spec":{`+test.spec+`}}`))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, broken(answer.Findings)); diff != "" {
			t.Errorf("%s (- want):\n%s", test.spec, diff)
		}
	}
}

// TestCreate_FindsANameThatIsMissing: the rule cannot be evaluated then.
func TestCreate_FindsANameThatIsMissing(t *testing.T) {
	unnamed := cluster(t, "")
	unnamed["metadata"] = map[string]any{}
	if have := create(t, unnamed); !slices.Equal(have, []string{"cluster-name metadata.name"}) {
		t.Errorf("a cluster without a name gives %v", have)
	}
}

// TestCreate_ShowsNoPassword: the address of a Redis may hold one.
func TestCreate_ShowsNoPassword(t *testing.T) {
	for _, address := range []string{"redis://ana:hunter2@redis:6379", "hunter2" + strings.Repeat("a", 300)} {
		answer, err := crdcheck.Create("ComputeCluster", cluster(t, `,"controlStore":{"redis":{"address":"`+address+`"}}`))
		if err != nil || len(answer.Findings) == 0 {
			t.Fatalf("the address is refused by %v, %v", answer.Findings, err)
		}
		for _, finding := range answer.Findings {
			if text, _ := finding.Value.(string); strings.Contains(text, "hunter2") {
				t.Errorf("the value %q is shown", text)
			}
		}
	}
}

func TestCreate_ShowsTheValue(t *testing.T) {
	answer, err := crdcheck.Create("ComputeCluster", cluster(t, `,"maxConcurrentJobs":0,"image":"`+strings.Repeat("ä", 1025)+`"`))
	if err != nil || len(answer.Findings) != 2 {
		t.Fatalf("the findings are %v, %v", answer.Findings, err)
	}
	if have := []any{answer.Findings[0].Value, answer.Findings[1].Value}; have[0] != strings.Repeat("ä", 20)+"…" || have[1] != int64(0) {
		t.Errorf("the values are %v", have)
	}
}

func TestUpdate_AsksAboutTheChange(t *testing.T) {
	before := cluster(t, `,"workerGroups":[{"name":"a","hostsPerReplica":1}]`)
	after := cluster(t, `,"workerGroups":[{"name":"b","hostsPerReplica":2},{"name":"a","hostsPerReplica":2}]`)
	answer, err := crdcheck.Update("ComputeCluster", before, after)
	if err != nil {
		t.Fatal(err)
	}
	if have := broken(answer.Findings); !slices.Equal(have, []string{"hosts-fixed spec.workerGroups[1].hostsPerReplica"}) || answer.WithoutChanges {
		t.Errorf("a change gives %v, without rules about changes: %v", have, answer.WithoutChanges)
	}
	if answer, err = crdcheck.Create("ComputeCluster", after); err != nil || len(answer.Findings) > 0 || !answer.WithoutChanges {
		t.Errorf("a new one gives %v, %v, without rules about changes: %v", answer.Findings, err, answer.WithoutChanges)
	}
}

// TestUpdate_LetsWhatWasThere: what a newer rule refuses keeps nobody from another change.
func TestUpdate_LetsWhatWasThere(t *testing.T) {
	const bad = `,"controlStore":{"redis":{"address":"redis"}}`
	answer, err := crdcheck.Update("ComputeCluster", cluster(t, bad), cluster(t, bad+`,"image":"a"`))
	if err != nil || len(answer.Findings) > 0 {
		t.Errorf("another change gives %v, %v", answer.Findings, err)
	}
	answer, err = crdcheck.Update("ComputeCluster", cluster(t, ""), cluster(t, bad))
	if err != nil || len(answer.Findings) == 0 {
		t.Errorf("the change itself gives %v, %v", answer.Findings, err)
	}
}

// TestCreate_SaysWhatWasNotAsked: rules rely on the form that the schema demands.
func TestCreate_SaysWhatWasNotAsked(t *testing.T) {
	for spec, want := range map[string]bool{`,"workerGroups":[{"name":"A"}]`: false, `,"workerGroups":[{"name":"A"}],"network":{"isolation":"x"}`: true} {
		answer, err := crdcheck.Create("ComputeCluster", cluster(t, spec))
		if err != nil || answer.WithoutRules != want || len(answer.Findings) != 1 {
			t.Errorf("%s gives %v, %v, without rules: %v", spec, answer.Findings, err, answer.WithoutRules)
		}
	}
}

// TestCreate_EndsWhereEnoughIsFound: the evaluator compares each error with all others, and took a minute for 24,000.
func TestCreate_EndsWhereEnoughIsFound(t *testing.T) {
	many := func(one string) string { return strings.TrimSuffix(strings.Repeat(one+",", 5000), ",") }
	for name, spec := range map[string]string{
		"of a list":            `,"workerGroups":[` + many(`{}`) + `]`,
		"below a list":         `,"head":{"template":{"spec":{"volumes":[` + many(`{"name":"a","csi":{}}`) + `]}}}`,
		"of a rule in Go":      `,"head":{"template":{"spec":{"volumes":[` + many(`{"name":"ray-shm"}`) + `]}}}`,
		"in a list in a list":  `,"head":{"template":{"spec":{"containers":[{"name":"ray","env":[` + many(`{"name":"a","valueFrom":{"fieldRef":{}}}`) + `]}]}}}`,
		"of types that are no": `,"workerGroups":[` + many(`0`) + `]`,
	} {
		answer, err := crdcheck.Create("ComputeCluster", cluster(t, spec))
		if err != nil || len(answer.Findings) > 100 || len(answer.Findings) == 0 {
			t.Errorf("%s: there are %d findings, %v", name, len(answer.Findings), err)
		}
		if isOfSchema := name != "of a rule in Go"; answer.WithoutRules != isOfSchema {
			t.Errorf("%s: without rules: %v", name, answer.WithoutRules)
		}
		changed, err := crdcheck.Update("ComputeCluster", cluster(t, ""), cluster(t, spec))
		if err != nil || len(changed.Findings) != len(answer.Findings) || changed.WithoutRules != answer.WithoutRules {
			t.Errorf("%s: a change to it has %d findings, %v, without rules: %v", name, len(changed.Findings), err, changed.WithoutRules)
		}
	}
}

// TestUpdate_CountsNothingThatWasThere: what is refused now is found beside more than an answer has of old.
func TestUpdate_CountsNothingThatWasThere(t *testing.T) {
	const word = `,"network":{"isolation":"Sometimes"}`
	old := `,"head":{"template":{"spec":{"volumes":[` + strings.TrimSuffix(strings.Repeat(`{"name":"a","csi":{}},`, 200), ",") + `]}}}`
	answer, err := crdcheck.Update("ComputeCluster", cluster(t, old), cluster(t, old+word))
	if have := broken(answer.Findings); err != nil || !slices.Contains(have, "unknown-word spec.network.isolation") || len(have) > 1 {
		t.Errorf("the findings are %v, %v", have, err)
	}
}

func TestCreate_ChangesNothing(t *testing.T) {
	given := cluster(t, `,"unheard":1,"network":{},"workerGroups":[{"name":"a"}]`)
	want := cluster(t, `,"unheard":1,"network":{},"workerGroups":[{"name":"a"}]`)
	if _, err := crdcheck.Update("ComputeCluster", given, given); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, given); diff != "" {
		t.Errorf("what was given is changed (- given):\n%s", diff)
	}
}

func TestCreate_RefusesAnotherKind(t *testing.T) {
	if _, err := crdcheck.Create("ConfigMap", map[string]any{}); err == nil {
		t.Error("a ConfigMap is checked")
	}
}

func TestCreate_IsAskedByMany(t *testing.T) {
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for _, kind := range crdcheck.Kinds() {
				if answer, err := crdcheck.Create(kind, map[string]any{"metadata": map[string]any{"name": "a"}}); err != nil || len(answer.Findings) == 0 {
					t.Errorf("an empty %s gives %v, %v", kind, answer.Findings, err)
				}
			}
		})
	}
	all.Wait()
}

// TestMessages_HaveOneRule: a finding is told from others by its message. Each message is that of one rule, and each rule of the
// CRDs has one.
func TestMessages_HaveOneRule(t *testing.T) {
	said := map[string]string{}
	for _, rule := range slices.Concat(validate.Rules(), validate.JobRules(), validate.ServiceRules(), validate.ScheduleRules()) {
		if rule.By != validate.Expression {
			continue
		}
		if former, is := said[rule.Text()]; is && former != rule.ID {
			t.Errorf("%s and %s both say %q", former, rule.ID, rule.Text())
		}
		said[rule.Text()] = rule.ID
	}
	left := map[string]string{}
	for message, id := range said {
		left[message] = id
	}
	files, err := os.ReadDir("schemas")
	if err != nil || len(files) != len(crdcheck.Kinds()) {
		t.Fatalf("there are %d schemas of %d kinds, %v", len(files), len(crdcheck.Kinds()), err)
	}
	for _, file := range files {
		text, err := os.ReadFile("schemas/" + file.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, message := range messages(object(t, string(text))) {
			if said[message] == "" {
				t.Errorf("%s says %q, no rule does", file.Name(), message)
			}
			delete(left, message)
		}
	}
	for message, id := range left {
		t.Errorf("no schema says %q, which the rule %s does", message, id)
	}
}

// messages are those of all rules in a schema.
func messages(value any) []string {
	var all []string
	switch value := value.(type) {
	case map[string]any:
		if message, is := value["message"].(string); is && value["rule"] != nil {
			all = append(all, message)
		}
		for _, below := range value {
			all = append(all, messages(below)...)
		}
	case []any:
		for _, below := range value {
			all = append(all, messages(below)...)
		}
	}
	return all
}

// TestSchemas_ShareWhatTheyContain: the spec of a contained kind is compiled once, so all kinds must have it alike, but for rules
// about changes, which do not hold of templates of which other objects are made.
func TestSchemas_ShareWhatTheyContain(t *testing.T) {
	of := func(name string, path ...string) any {
		text, err := os.ReadFile("schemas/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		schema := object(t, string(text))
		for _, field := range path {
			schema = schema["properties"].(map[string]any)[field].(map[string]any)
		}
		return withoutChanges(schema)
	}
	cluster, job := of("computeclusters", "spec"), of("clusterjobs", "spec")
	for name, test := range map[string]struct{ have, want any }{
		"clusterjobs":         {of("clusterjobs", "spec", "clusterTemplate", "spec"), cluster},
		"clusterservices":     {of("clusterservices", "spec", "clusterTemplate", "spec"), cluster},
		"clusterjobschedules": {of("clusterjobschedules", "spec", "jobTemplate", "spec"), job},
	} {
		if diff := cmp.Diff(test.want, test.have); diff != "" {
			t.Errorf("%s has another spec in its template (- spec of the kind):\n%.2000s", name, diff)
		}
	}
}

// withoutChanges takes the rules about changes out of a schema.
func withoutChanges(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if rules, is := value["x-kubernetes-validations"].([]any); is {
			rules = slices.DeleteFunc(rules, func(rule any) bool {
				return strings.Contains(rule.(map[string]any)["rule"].(string), "oldSelf")
			})
			if value["x-kubernetes-validations"] = rules; len(rules) == 0 {
				delete(value, "x-kubernetes-validations")
			}
		}
		for _, below := range value {
			withoutChanges(below)
		}
	case []any:
		for _, below := range value {
			withoutChanges(below)
		}
	}
	return value
}

// TestUpdate_LetsTemplatesChange: of a changed template another object is made.
func TestUpdate_LetsTemplatesChange(t *testing.T) {
	const begin, end = `{"metadata":{"name":"a"},"spec":{"clusterTemplate":{"spec":{"rayVersion":"2.60.0","managedBy":"a.b/c","workerGroups":[{"name":"a","hostsPerReplica":`, `}]}},`
	one, two := begin+"1"+end, begin+"2"+end
	for _, test := range []struct {
		kind, more string
		want       bool
	}{
		{"ClusterJob", `"entrypoint":"true","suspend":true}}`, true}, {"ClusterService", `"serveConfig":{"applications":[]}}}`, false},
	} {
		answer, err := crdcheck.Update(test.kind, object(t, one+test.more), object(t, two+test.more))
		if err != nil {
			t.Fatal(err)
		}
		isFixed := func(f validate.Finding) bool { return f.Rule == "hosts-fixed" }
		if slices.ContainsFunc(answer.Findings, isFixed) != test.want {
			t.Errorf("a changed template of a %s gives %v", test.kind, answer.Findings)
		}
	}
}
