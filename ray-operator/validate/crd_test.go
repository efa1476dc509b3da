package validate_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/crdcheck"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/admission/corpus"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// TestChecks_JudgeAsTheCRDDoes: what is asked in Go of changes, of podDefaults and of the sizes of the operator's containers is
// refused by the same rules as in the API server, for each row about a cluster.
func TestChecks_JudgeAsTheCRDDoes(t *testing.T) {
	kind, asked := corpus.Clusters(), map[string]bool{}
	for _, row := range kind.Rows {
		before, after := kind.Good(), kind.Good()
		if row.Before != nil {
			row.Before(before)
			row.Before(after)
		}
		row.Edit(after)
		answer, err := crdcheck.Update("ComputeCluster", before, after)
		if err != nil {
			t.Fatal(err)
		}
		if answer.WithoutRules {
			continue
		}
		have, want := askedRules(validate.Update(before, after)), askedRules(answer.Findings)
		if !slices.Equal(have, want) {
			t.Errorf("%s: Go refuses it by %v, the CRD by %v", row.Name, have, want)
		}
		for _, rule := range have {
			asked[rule] = true
		}
	}
	if len(asked) < 20 {
		t.Errorf("only %d rules are asked: %v", len(asked), asked)
	}
}

// askedPlaces are what rules of the CRD are asked about in Go, beside changes.
var askedPlaces = []string{"spec.podDefaults", "spec.autoscaling.size", "spec.controlStore.managedRedis.size", "spec.network.encryptionSize"}

// askedRules are those of the CRD that Go asks too, each once.
func askedRules(found validate.Findings) []string {
	var all []string
	for _, finding := range found {
		at := slices.IndexFunc(validate.Rules(), func(r validate.Rule) bool { return r.ID == finding.Rule && r.By != validate.Policy })
		isThere := slices.ContainsFunc(askedPlaces, func(place string) bool { return strings.HasPrefix(finding.Path, place) })
		if at >= 0 && (isThere || validate.Rules()[at].IsOfChange) && finding.Rule != "encryption-size-unused" {
			all = append(all, finding.Rule)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestDefaults_HaveTheBoundsOfTheCRD: as much as the CRD takes in each field of podDefaults is good, and one more is not.
func TestDefaults_HaveTheBoundsOfTheCRD(t *testing.T) {
	bounded := 0
	for name, field := range specOf(t, "computeclusters").Properties["podDefaults"].Properties {
		most := cmp.Or(field.MaxLength, field.MaxItems, field.MaxProperties)
		if most == 0 {
			continue
		}
		bounded++
		for n, isGood := range map[int]bool{most: true, most + 1: false} {
			cluster := corpus.Good()
			read(t, bound{[]string{"spec", "podDefaults", name}, entries(&field, n)}.with(t, cluster), cluster)
			isBound := func(f validate.Finding) bool {
				return f.Path == "spec.podDefaults."+name && (f.Rule == "long-text" || f.Rule == "long-list")
			}
			answer, err := crdcheck.Create("ComputeCluster", cluster)
			if err != nil {
				t.Fatal(err)
			}
			for who, found := range map[string]validate.Findings{"Go": validate.Cluster(cluster), "the CRD": answer.Findings} {
				if slices.ContainsFunc(found, isBound) == isGood {
					t.Errorf("%d in %s: good is not %v for %s", n, name, isGood, who)
				}
			}
		}
	}
	if bounded < 9 {
		t.Errorf("only %d fields of podDefaults have bounds", bounded)
	}
}

// entries returns a value of a field with so many letters or entries.
func entries(field *schema, n int) any {
	switch {
	case field.MaxLength > 0:
		return strings.Repeat("a", n)
	case field.MaxProperties > 0:
		all := map[string]any{}
		for i := range n {
			all[fmt.Sprint("a", i)] = "b"
		}
		return all
	}
	var all []any
	for i := range n {
		entry := map[string]any{}
		for _, name := range []string{"name", "key", "prefix"} { // by which entries differ
			if _, has := field.Items.Properties[name]; has {
				entry[name] = fmt.Sprint("a", i)
			}
		}
		all = append(all, entry)
	}
	return all
}
