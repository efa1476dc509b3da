package monitoring

import (
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// health returns the check of docs/gitops.md for Argo CD.
func health(t *testing.T) string {
	t.Helper()
	_, block, _ := strings.Cut(read(t, root+"docs/gitops.md"), "## Argo CD\n")
	_, block, _ = strings.Cut(block, "```yaml\n")
	block, _, _ = strings.Cut(block, "```")
	var settings struct{ Data map[string]string }
	if err := yaml.Unmarshal([]byte(block), &settings); err != nil {
		t.Fatal(err)
	}
	var checks map[string]map[string]string
	if err := yaml.Unmarshal([]byte(settings.Data["resource.customizations"]), &checks); err != nil {
		t.Fatal(err)
	}
	return checks["heliostat.dev/*"]["health.lua"]
}

// toLua returns a value of JSON as Argo CD gives it to a check.
func toLua(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, below := range value {
			table.RawSetString(key, toLua(state, below))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, below := range value {
			table.Append(toLua(state, below))
		}
		return table
	case int64:
		return lua.LNumber(value)
	case string:
		return lua.LString(value)
	default:
		return lua.LNil
	}
}

// inArgo returns the health that a check gives an object.
func inArgo(t *testing.T, check string, object map[string]any) string {
	t.Helper()
	state := lua.NewState()
	defer state.Close()
	state.SetGlobal("obj", toLua(state, object))
	if err := state.DoString(check); err != nil {
		t.Fatal(err)
	}
	result, ok := state.Get(-1).(*lua.LTable)
	if !ok || lua.LVAsString(result.RawGetString("message")) == "" {
		t.Fatalf("the check returns %v, want a table with a message", state.Get(-1))
	}
	return lua.LVAsString(result.RawGetString("status"))
}

// TestHealth_IsAsThePageSays judges statuses as the operator writes them by kstatus, and by the check for Argo CD.
func TestHealth_IsAsThePageSays(t *testing.T) {
	check := health(t)
	for name, c := range map[string]struct {
		observed      int64
		conditions    string
		kstatus, argo string
	}{
		"just created":                {0, "Ready=Unknown", "InProgress", "Progressing"},
		"a spec that was not seen":    {1, "Ready=True Reconciling=False Stalled=False", "InProgress", "Progressing"},
		"starting":                    {2, "Ready=False Reconciling=True Stalled=False", "InProgress", "Progressing"},
		"ready":                       {2, "Ready=True Reconciling=False Stalled=False", "Current", "Healthy"},
		"ready, and once suspended":   {2, "Ready=True Reconciling=False Stalled=False Suspended=False", "Current", "Healthy"},
		"upgrading":                   {2, "Ready=True Reconciling=True Stalled=False Upgrading=True", "InProgress", "Progressing"},
		"rolled back":                 {2, "Ready=True Reconciling=False Stalled=True RolledBack=True", "Failed", "Degraded"},
		"suspended":                   {2, "Reconciling=False Stalled=False Suspended=True", "Current", "Suspended"},
		"suspending":                  {2, "Ready=False Reconciling=True Stalled=False Suspended=False", "InProgress", "Progressing"},
		"stalled":                     {2, "Ready=False Reconciling=False Stalled=True", "Failed", "Degraded"},
		"a job that succeeded":        {2, "Ready=True Reconciling=False Stalled=False Complete=True Finished=True", "Current", "Healthy"},
		"a job that failed":           {2, "Ready=False Reconciling=False Stalled=True Failed=True Finished=True", "Failed", "Degraded"},
		"a suspended spec is refused": {2, "Ready=False Reconciling=False Stalled=True Suspended=True", "Failed", "Degraded"},
	} {
		var conditions []any
		for pair := range strings.FieldsSeq(c.conditions) {
			kind, value, _ := strings.Cut(pair, "=")
			conditions = append(conditions, map[string]any{"type": kind, "status": value, "reason": "Reason", "message": "Because."})
		}
		told := map[string]any{"conditions": conditions}
		if c.observed > 0 {
			told["observedGeneration"] = c.observed
		}
		object := map[string]any{
			"apiVersion": "heliostat.dev/v1beta1", "kind": "ComputeCluster", "status": told,
			"metadata": map[string]any{"name": "demo", "generation": int64(2)},
		}
		result, err := status.Compute(&unstructured.Unstructured{Object: object})
		if err != nil {
			t.Fatal(err)
		}
		if argo := inArgo(t, check, object); string(result.Status) != c.kstatus || argo != c.argo {
			t.Errorf("%s: %s and %s, want %s and %s", name, result.Status, argo, c.kstatus, c.argo)
		}
	}
}
