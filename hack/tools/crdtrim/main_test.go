package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

const (
	definitions = "../../../ray-operator/config/crd"
	samples     = "../../../ray-operator/config/samples"
	examples    = "../../../examples"
	// maxSize is of a CRD as JSON, in bytes: it must fit into etcd's request limit of 1.5 MiB with room for what the API server adds.
	maxSize = 500_000
)

// kind is a generated definition as an API server sees it.
type kind struct {
	text       []byte
	definition *apiextensions.CustomResourceDefinition
	schema     *structural.Structural
	validator  schemavalidation.SchemaValidator
}

func load(t *testing.T, file string) kind {
	t.Helper()
	var k kind
	var err error
	if k.text, err = os.ReadFile(filepath.Join(definitions, file)); err != nil {
		t.Fatal(err)
	}
	var v1 apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(k.text, &v1); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	install.Install(scheme)
	scheme.Default(&v1)
	k.definition = &apiextensions.CustomResourceDefinition{}
	if err := scheme.Convert(&v1, k.definition, nil); err != nil {
		t.Fatal(err)
	}
	props := k.definition.Spec.Validation.OpenAPIV3Schema
	if k.schema, err = structural.NewStructural(props); err != nil {
		t.Fatal(err)
	}
	if k.validator, _, err = schemavalidation.NewSchemaValidator(props); err != nil {
		t.Fatal(err)
	}
	return k
}

// admit does what an API server does to an object: defaults, pruning, schema and rules.
// It gives what is wrong with it.
func (k kind) admit(t *testing.T, object map[string]any) field.ErrorList {
	t.Helper()
	defaulting.Default(object, k.schema)
	pruning.Prune(object, k.schema, true)
	errs := schemavalidation.ValidateCustomResource(nil, object, k.validator)
	rules := cel.NewValidator(k.schema, true, celconfig.PerCallLimit)
	broken, _ := rules.Validate(context.Background(), nil, k.schema, object, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, broken...)
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	asJSON, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(asJSON, &object); err != nil { // whole numbers stay whole
		t.Fatal(err)
	}
	return object
}

func TestDefinitionsAreInstallable(t *testing.T) {
	files, err := filepath.Glob(definitions + "/*.yaml")
	if err != nil || len(files) != 4 {
		t.Fatalf("find the definitions: %v, %v", files, err)
	}
	for _, file := range files {
		file = filepath.Base(file)
		k := load(t, file)
		if stored, err := yaml.YAMLToJSON(k.text); err != nil || len(stored) > maxSize {
			t.Errorf("%s has %d bytes as JSON, at most %d are allowed: %v", file, len(stored), maxSize, err)
		}
		for _, err := range validation.ValidateCustomResourceDefinition(t.Context(), k.definition) {
			t.Errorf("%s: %v", file, err)
		}
		for key, want := range map[string]string{
			"helm.sh/resource-policy": "keep", "argocd.argoproj.io/sync-options": "ServerSideApply=true",
		} {
			if got := k.definition.Annotations[key]; got != want {
				t.Errorf("%s: %s = %q, want %s", file, key, got, want)
			}
		}
	}
}

// ours begins the document of an object of ours in a sample.
const ours = "apiVersion: heliostat.dev/v1beta1\n"

func TestSamplesAreAdmitted(t *testing.T) {
	kinds := map[any]kind{
		"ComputeCluster": load(t, "heliostat.dev_computeclusters.yaml"), "ClusterJob": load(t, "heliostat.dev_clusterjobs.yaml"),
		"ClusterService": load(t, "heliostat.dev_clusterservices.yaml"), "ClusterJobSchedule": load(t, "heliostat.dev_clusterjobschedules.yaml"),
	}
	for _, pattern := range []string{samples + "/*.yaml", examples + "/*/manifest.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("find samples: %v, %v", files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			count := 0
			for document := range strings.SplitSeq(string(text), "---\n") {
				if !strings.Contains("\n"+document, "\n"+ours) {
					continue
				}
				count++
				object := parse(t, document)
				k, known := kinds[object["kind"]]
				if !known {
					t.Fatalf("%s: there is no kind %v", file, object["kind"])
				}
				k.admitted(t, file, object)
			}
			if count == 0 {
				t.Errorf("%s has no object of ours", file)
			}
		}
	}
}

// admitted checks that an object of a sample would be created.
func (k kind) admitted(t *testing.T, file string, object map[string]any) {
	t.Helper()
	for _, err := range k.admit(t, object) {
		t.Errorf("%s: %v", file, err)
	}
	conditions := object["status"].(map[string]any)["conditions"].([]any)
	if first := conditions[0].(map[string]any); first["type"] != "Ready" || first["status"] != "Unknown" {
		t.Errorf("%s: first condition = %v, want Ready=Unknown before the operator sees it", file, first)
	}
}

func TestTemplatesHaveNoUnknownFields(t *testing.T) {
	object := parse(t, `
apiVersion: heliostat.dev/v1beta1
kind: ComputeCluster
metadata: {name: demo}
spec:
  rayVersion: "2.60.0"
  unknown: gone
  head:
    template:
      metadata: {labels: {a: b}, annotations: {c: d}}
      spec:
        fromTomorrow: {x: 1}
        nodeSelector: {disk: ssd}
        containers:
        - {name: ray, fromTomorrow: 2, securityContext: {fromTomorrow: 3}}
`)
	k := load(t, "heliostat.dev_computeclusters.yaml")
	unknown := pruning.PruneWithOptions(runtime.DeepCopyJSON(object), k.schema, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	want := []string{
		"spec.head.template.spec.containers[0].fromTomorrow", "spec.head.template.spec.containers[0].securityContext.fromTomorrow",
		"spec.head.template.spec.fromTomorrow", "spec.unknown",
	}
	if !slices.Equal(unknown, want) { // these are what a client that asks for strictness is refused for
		t.Errorf("unknown are %v, want %v", unknown, want)
	}
	if errs := k.admit(t, object); len(errs) > 0 {
		t.Fatal(errs)
	}
	text, err := yaml.Marshal(object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a: b", "c: d", "disk: ssd"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the template lost %q:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "gone") || strings.Contains(string(text), "fromTomorrow") {
		t.Errorf("an unknown field was kept:\n%s", text)
	}
}

// TestATemplateOfAServiceMayChange: what cannot be changed of a cluster can be below
// clusterTemplate of a service, of which another cluster is made then; a job has one cluster.
func TestATemplateOfAServiceMayChange(t *testing.T) {
	for file, fixed := range map[string]bool{"heliostat.dev_clusterservices.yaml": false, "heliostat.dev_clusterjobs.yaml": true} {
		spec := load(t, file).definition.Spec.Validation.OpenAPIV3Schema.Properties["spec"]
		if !transitions(t, spec) {
			t.Errorf("%s lost the rules about changes outside of the template", file)
		}
		if have := transitions(t, spec.Properties["clusterTemplate"]); have != fixed {
			t.Errorf("the template in %s has rules about changes: %v, want %v", file, have, fixed)
		}
	}
}

// TestATemplateOfAScheduleMayChange: other jobs are made of it then, also on another cluster and by another manager.
func TestATemplateOfAScheduleMayChange(t *testing.T) {
	spec := load(t, "heliostat.dev_clusterjobschedules.yaml").definition.Spec.Validation.OpenAPIV3Schema.Properties["spec"]
	if transitions(t, spec) {
		t.Error("a schedule has rules about changes")
	}
}

// transitions reports whether a schema, or one below it, has a rule about changes.
func transitions(t *testing.T, schema apiextensions.JSONSchemaProps) bool {
	t.Helper()
	text, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(text), "oldSelf")
}

func TestTrimRefusesWhatIsNoDefinition(t *testing.T) {
	for _, text := range []string{"", "a: [", "kind: Pod", "metadata: {annotations: {a: b}}\nspec: {versions: [{name: v1}]}"} {
		if out, err := Trim([]byte(text)); err == nil {
			t.Errorf("Trim(%q) = %q, want an error", text, out)
		}
	}
}

// TestTrim_BoundsExponents: reading 1e-100000000 takes most of a minute, wherever in an object it stands.
func TestTrim_BoundsExponents(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(definitions, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no definitions: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd map[string]any
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		spec, _ := descend(crd, "spec")
		version, _ := spec["versions"].([]any)[0].(map[string]any)
		schema, _ := descend(version, "schema", "openAPIV3Schema")
		patterns := map[string]int{}
		walk(schema, func(schema map[string]any) bool {
			if pattern, is := schema["pattern"].(string); is && schema["x-kubernetes-int-or-string"] == true {
				patterns[pattern]++
			}
			return true
		})
		for pattern := range patterns {
			form := regexp.MustCompile(pattern)
			for quantity, want := range map[string]bool{
				"1e-100000000": false, "1E+100": false, "1e-3.5": false, "1e-3": true, "1E99": true, "500m": true, "16Gi": true, "0.5": true,
			} {
				if form.MatchString(quantity) != want {
					t.Errorf("%s: %q fits %s: %v", filepath.Base(file), quantity, pattern, !want)
				}
			}
		}
		if len(patterns) != 1 {
			t.Errorf("%s: quantities have the forms %v", filepath.Base(file), patterns)
		}
	}
}
