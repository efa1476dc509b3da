package validate_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/admission/corpus"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// schema is what a CRD says of a field, as far as it has bounds.
type schema struct {
	Type                                         string
	MaxLength, MaxItems, MinItems, MaxProperties *int64
	Minimum, Maximum                             *float64
	Enum                                         []string
	Properties                                   map[string]schema
	Items, AdditionalProperties                  *schema
	Default                                      any
}

// bound is one side of a bound of the schema, with a value on it or just beyond.
type bound struct {
	// path of the field, by keys; "0" is the first entry of a list.
	path  []string
	rule  string
	value any
	good  bool
}

// ofKubernetes are fields whose schemas are Kubernetes' own: of them only the number of
// entries is ours.
var ofKubernetes = []string{"template", "volumeClaimTemplates", "env", "envFrom", "tolerations", "imagePullSecrets", "from", "to"}

// zeroIsNotWritten are numbers whose zero stands for none given, emptyIsNotWritten lists
// whose emptiness does.
var (
	zeroIsNotWritten  = []string{"port", "targetPort", "nodePort", "hostsPerReplica"}
	emptyIsNotWritten = []string{"command", "in", "notIn", "accessModes"}
)

// sides are the values on and beyond the bounds of a field.
func sides(s *schema, path []string) []bound {
	var all []bound
	side := func(rule string, value any, good bool) {
		all = append(all, bound{slices.Clone(path), rule, value, good})
	}
	if most := s.MaxLength; most != nil && s.Type == "string" {
		side("long-text", strings.Repeat("ä", int(*most)), true) // bounds count characters, not bytes
		side("long-text", strings.Repeat("a", int(*most)+1), false)
	}
	if most := s.MaxItems; most != nil {
		side("long-list", entries(s, *most), true)
		side("long-list", entries(s, *most+1), false)
	}
	if least := s.MinItems; least != nil && !slices.Contains(emptyIsNotWritten, path[len(path)-1]) {
		side("out-of-bounds", entries(s, *least-1), false)
	}
	if most := s.MaxProperties; most != nil {
		side("long-list", pairs(s, *most), true)
		side("long-list", pairs(s, *most+1), false)
	}
	for _, word := range s.Enum {
		side("unknown-word", word, true)
	}
	if len(s.Enum) > 0 {
		side("unknown-word", "Unheard", false)
	}
	return all
}

// numbers are the values on and beyond the bounds of a number.
func numbers(s *schema, path []string) []bound {
	if s.Minimum == nil || s.Maximum == nil {
		return nil
	}
	least, most := *s.Minimum, *s.Maximum
	if least == 1 && slices.Contains(zeroIsNotWritten, path[len(path)-1]) {
		least = 0
	}
	path = slices.Clone(path)
	return []bound{
		{path, "out-of-bounds", least - 1, false}, {path, "out-of-bounds", least, true},
		{path, "out-of-bounds", most, true}, {path, "out-of-bounds", most + 1, false},
	}
}

// bounds collects the bounds of a schema and of what is below it.
func bounds(s *schema, path []string) []bound {
	all := slices.Concat(sides(s, path), numbers(s, path))
	if slices.Contains(ofKubernetes, path[len(path)-1]) {
		return all
	}
	for _, child := range slices.Sorted(maps.Keys(s.Properties)) {
		below := s.Properties[child]
		all = append(all, bounds(&below, append(path, child))...)
	}
	if s.Items != nil {
		all = append(all, bounds(s.Items, append(path, "0"))...)
	}
	return all
}

// entries are so many of a list, all alike.
func entries(s *schema, n int64) any {
	list := make([]any, n)
	for i := range list {
		list[i] = map[string]any{}
		switch s.Items.Type {
		case "string":
			list[i] = "a"
		case "integer":
			list[i] = i
		}
		if words := s.Items.Enum; len(words) > 0 {
			list[i] = words[0]
		}
	}
	return list
}

func pairs(s *schema, n int64) any {
	all := map[string]any{}
	for i := range n {
		all[fmt.Sprint("key-", i)] = "1"
		if of := s.AdditionalProperties; of != nil && of.Type == "integer" {
			all[fmt.Sprint("key-", i)] = i + 1
		}
	}
	return all
}

// put sets a value in a tree of maps and lists, making what is not there.
func put(tree any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	if path[0] == "0" {
		list, _ := tree.([]any)
		if len(list) == 0 {
			list = []any{nil}
		}
		list[0] = put(list[0], path[1:], value)
		return list
	}
	object, ok := tree.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	object[path[0]] = put(object[path[0]], path[1:], value)
	return object
}

// with gives an object as JSON has it with the value in it.
func (b bound) with(t *testing.T, object any) []byte {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	if text, err = json.Marshal(put(tree, b.path, b.value)); err != nil {
		t.Fatal(err)
	}
	return text
}

// TestBoundsAreThoseOfTheSchema: a value on a bound is good, one beyond it is refused at its
// field, for every bound that the CRDs have outside of Kubernetes' own types.
func TestBoundsAreThoseOfTheSchema(t *testing.T) {
	asSchema(t, "computeclusters", 120, func(b bound) validate.Findings {
		var cluster v1beta1.ComputeCluster
		if err := json.Unmarshal(b.with(t, corpus.Good()), &cluster); err != nil {
			t.Fatalf("%v: %v", b.path, err)
		}
		return validate.Cluster(&cluster)
	})
	asSchema(t, "clusterjobs", 190, func(b bound) validate.Findings {
		var job v1beta1.ClusterJob
		if err := json.Unmarshal(b.with(t, corpus.GoodJob()), &job); err != nil {
			t.Fatalf("%v: %v", b.path, err)
		}
		return validate.Job(&job)
	})
	asSchema(t, "clusterservices", 170, func(b bound) validate.Findings {
		var service v1beta1.ClusterService
		if err := json.Unmarshal(b.with(t, corpus.GoodService()), &service); err != nil {
			t.Fatalf("%v: %v", b.path, err)
		}
		return validate.Service(&service)
	})
	asSchema(t, "clusterjobschedules", 200, func(b bound) validate.Findings {
		var schedule v1beta1.ClusterJobSchedule
		if err := json.Unmarshal(b.with(t, corpus.GoodSchedule()), &schedule); err != nil {
			t.Fatalf("%v: %v", b.path, err)
		}
		return validate.Schedule(&schedule)
	})
}

// asSchema asks about both sides of each bound of a kind, of which there are so many at least.
func asSchema(t *testing.T, kind string, least int, ask func(bound) validate.Findings) {
	t.Helper()
	spec := specOf(t, kind)
	all := bounds(&spec, []string{"spec"})
	for _, b := range all {
		at := strings.ReplaceAll(strings.Join(b.path, "."), ".0", "[0]")
		refused := false
		for _, finding := range ask(b) {
			refused = refused || finding.Path == at && finding.Rule == b.rule
		}
		if refused == b.good {
			t.Errorf("%s = %.40s: refused is %v, want %v", at, fmt.Sprint(b.value), refused, !b.good)
		}
	}
	if len(all) < least {
		t.Errorf("only %d sides of bounds of %s were found", len(all), kind)
	}
}

// specOf is what the CRD of a kind says of its spec.
func specOf(t *testing.T, kind string) schema {
	t.Helper()
	text, err := os.ReadFile("../config/crd/heliostat.dev_" + kind + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var definition struct {
		Spec struct {
			Versions []struct {
				Schema struct{ OpenAPIV3Schema schema }
			}
		}
	}
	if err := yaml.Unmarshal(text, &definition); err != nil {
		t.Fatal(err)
	}
	return definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
}
