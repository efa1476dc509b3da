package main

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
)

const (
	ofName  = `	// +kubebuilder:validation:XValidation:rule="self != ''",message="name must be set; \"x\" is one"` + "\n"
	withID  = "	// +heliostat:rule=name\n"
	otherID = "	// +heliostat:rule=other\n"
)

func TestTakeIDs(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want error
	}{
		"a marker below":            {ofName + withID, nil},
		"the same twice":            {ofName + withID + ofName + withID, nil},
		"no marker":                 {ofName + "	// +optional\n", errNoID},
		"an ID in capitals":         {ofName + "	// +heliostat:rule=noName\n", errNoKebab},
		"an ID with a digit":        {ofName + "	// +heliostat:rule=name-2\n", errNoKebab},
		"an ID that is empty":       {ofName + "	// +heliostat:rule=\n", errNoKebab},
		"another ID":                {ofName + withID + ofName + otherID, errTwoIDs},
		"a rule without message":    {`// +kubebuilder:validation:XValidation:rule="true"` + "\n" + withID, errNoMessage},
		"a comment that is no rule": {"// XValidation\n", nil},
	} {
		ids := map[string]string{}
		if err := takeIDs(ids, test.text); !errors.Is(err, test.want) {
			t.Errorf("%s gives %v, want %v", name, err, test.want)
		}
	}
	ids := map[string]string{}
	if err := takeIDs(ids, ofName+withID); err != nil || ids[`name must be set; "x" is one`] != "name" {
		t.Errorf("the IDs are %v, %v", ids, err)
	}
}

func TestFieldsOf(t *testing.T) {
	for want, paths := range map[string][]string{
		"NODE.size":                       {"spec.head.size", "spec.workerGroups[*].size"},
		"GROUP.name":                      {"spec.workerGroups[*].name"},
		"GROUP":                           {"spec.workerGroups[*]"},
		"spec.head.ingress, spec.network": {"spec.network", "spec.head.ingress"},
		"spec.workerGroups":               {"spec.workerGroups"},
	} {
		set := map[string]bool{}
		for _, path := range paths {
			set[path] = true
		}
		if have := fieldsOf(set); have != want {
			t.Errorf("the fields of %v are %q, want %q", paths, have, want)
		}
	}
}

// TestCatalogue_HasEveryRuleOnce: of the kinds as they are. A cluster in a job is no matter of the job's list.
func TestCatalogue_HasEveryRuleOnce(t *testing.T) {
	ids, err := readIDs("../../../ray-operator/api/v1beta1")
	if err != nil {
		t.Fatal(err)
	}
	lists, err := readLists("../../../ray-operator/crdcheck/schemas", ids)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, list := range lists {
		for id, rule := range list.rules {
			listed[id] = true
			if list.name != "clusterExpressions" && lists[0].rules[id] != nil {
				t.Errorf("%s has the rule %s of clusters", list.name, id)
			}
			if rule.remedy == "" || strings.Contains(rule.remedy, "; ") {
				t.Errorf("the rule %s helps with %q", id, rule.remedy)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Values(ids)) {
		if !listed[id] {
			t.Errorf("the rule %s is in no list", id)
		}
	}
}
