package validate_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// TestGangVariables_AreThoseOfTheLauncher: what the launcher sets, a user may not, and anything else is the user's.
func TestGangVariables_AreThoseOfTheLauncher(t *testing.T) {
	text, err := os.ReadFile("../launcher/variables.json")
	if err != nil {
		t.Fatal(err)
	}
	var set map[v1beta1.GangFramework][]string
	if err := json.Unmarshal(text, &set); err != nil || len(set) != 7 {
		t.Fatalf("the launcher's table has %d frameworks: %v", len(set), err)
	}
	for framework, names := range set {
		// No job may set these.
		want := slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, "HELIOSTAT_") })
		slices.Sort(want)
		if have := slices.Sorted(slices.Values(validate.GangVariables(framework))); !slices.Equal(have, want) {
			t.Errorf("with %s the rule refuses %v, and the launcher sets %v", framework, have, want)
		}
	}
}
