package v1beta1_test

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// kinds are the types of the kinds, by the names of their CRDs.
var kinds = map[string]reflect.Type{
	"computeclusters":     reflect.TypeFor[v1beta1.ComputeCluster](),
	"clusterjobs":         reflect.TypeFor[v1beta1.ClusterJob](),
	"clusterservices":     reflect.TypeFor[v1beta1.ClusterService](),
	"clusterjobschedules": reflect.TypeFor[v1beta1.ClusterJobSchedule](),
}

// schema is what the walk reads of a CRD's schema.
type schema struct {
	Enum       []any
	Properties map[string]schema
	Items      *schema
}

// schemaOf returns the schema of a kind.
func schemaOf(t *testing.T, plural string) schema {
	t.Helper()
	text, err := os.ReadFile("../../config/crd/heliostat.dev_" + plural + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Name   string
				Schema struct{ OpenAPIV3Schema schema }
			}
		}
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	if len(crd.Spec.Versions) != 1 || crd.Spec.Versions[0].Name != v1beta1.GroupVersion.Version {
		t.Fatalf("%s has the versions %+v, want %s alone", plural, crd.Spec.Versions, v1beta1.GroupVersion.Version)
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// walk visits each field of our types below a type, with its path and its schema.
func walk(of reflect.Type, under schema, path string, visit func(path string, field reflect.StructField, under schema)) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		if of.Kind() == reflect.Slice && under.Items != nil {
			under = *under.Items
		}
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of.PkgPath() != reflect.TypeFor[v1beta1.ComputeCluster]().PkgPath() {
		return
	}
	for i := range of.NumField() {
		field := of.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if options == "inline" || field.Anonymous && name == "" {
			walk(field.Type, under, path, visit)
			continue
		}
		below := under.Properties[name]
		visit(path+"."+name, field, below)
		walk(field.Type, below, path+"."+name, visit)
	}
}

func TestTypes_HaveTypesForEnumerations(t *testing.T) {
	seen := 0
	for plural, kind := range kinds {
		walk(kind, schemaOf(t, plural), plural, func(path string, field reflect.StructField, under schema) {
			of := field.Type
			if under.Items != nil && len(under.Items.Enum) > 0 {
				under, of = *under.Items, of.Elem()
			}
			if len(under.Enum) == 0 {
				return
			}
			if seen++; of == reflect.TypeFor[string]() {
				t.Errorf("%s takes one of %v and is a string: give it a type", path, under.Enum)
			}
		})
	}
	if seen < 30 {
		t.Errorf("only %d enumerations were found", seen)
	}
}

// TestTypes_HaveNoMapsOfThings: named things stand in lists. Labels, annotations and options are pairs of texts, and
// amounts stand by resource name, as in Kubernetes' own kinds.
func TestTypes_HaveNoMapsOfThings(t *testing.T) {
	good := []reflect.Type{
		reflect.TypeFor[map[string]string](), reflect.TypeFor[corev1.ResourceList](), reflect.TypeFor[map[string]resource.Quantity](),
	}
	for plural, kind := range kinds {
		walk(kind, schemaOf(t, plural), plural, func(path string, field reflect.StructField, _ schema) {
			if field.Type.Kind() != reflect.Map {
				return
			}
			for _, one := range good {
				if field.Type == one {
					return
				}
			}
			t.Errorf("%s is a %s: make it a list of things with names", path, field.Type)
		})
	}
}

// TestTypes_SendNothingThatIsNotSet: a Go program that sets one field of a spec sends no other one.
func TestTypes_SendNothingThatIsNotSet(t *testing.T) {
	// An empty list of peers means all, so it is written even where it is empty.
	written := map[string]string{"IngressRule": `{"from":null}`, "EgressRule": `{"to":null}`}
	for plural, kind := range kinds {
		spec, _ := kind.FieldByName("Spec")
		check := func(path string, of reflect.Type) {
			for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
				of = of.Elem()
			}
			if of.Kind() != reflect.Struct || of.PkgPath() != kind.PkgPath() {
				return
			}
			want := written[of.Name()]
			if want == "" {
				want = "{}"
			}
			if text, err := json.Marshal(reflect.New(of).Interface()); err != nil || string(text) != want {
				t.Errorf("%s: an empty %s is sent as %s, %v; want %s", path, of.Name(), text, err, want)
			}
		}
		check(plural+".spec", spec.Type)
		walk(spec.Type, schemaOf(t, plural).Properties["spec"], plural+".spec", func(path string, field reflect.StructField, _ schema) {
			check(path, field.Type)
		})
	}
}

// TestTypes_SendNoTextsForNumbers: only status.summary, which people read, has texts such as "2/3".
func TestTypes_SendNoTextsForNumbers(t *testing.T) {
	for plural, kind := range kinds {
		walk(kind, schemaOf(t, plural), plural, func(path string, field reflect.StructField, _ schema) {
			for _, of := range []string{"Revision", "Replicas", "Attempt", "Epoch", "Percent", "Seconds", "Total"} {
				isText := field.Type == reflect.TypeFor[string]()
				if isText && strings.HasSuffix(field.Name, of) && !strings.Contains(path, ".summary.") {
					t.Errorf("%s is a text for a number", path)
				}
			}
		})
	}
}
