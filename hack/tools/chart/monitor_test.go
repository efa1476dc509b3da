package chart

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const monitoring = dir + "/files/monitoring/"

// boardsOf returns the ConfigMap with the boards, nil where there is none.
func boardsOf(t *testing.T, options ...string) *corev1.ConfigMap {
	t.Helper()
	for _, found := range of[*corev1.ConfigMap](t, options...) {
		if strings.HasSuffix(found.Name, "-boards") {
			return found
		}
	}
	return nil
}

// TestMonitoring_IsOffByDefault: the kinds of the Prometheus operator are not everywhere.
func TestMonitoring_IsOffByDefault(t *testing.T) {
	if len(of[*PrometheusRule](t)) > 0 || boardsOf(t) != nil {
		t.Error("there are rules or boards though nobody asked for them")
	}
}

// TestPrometheusRule_HasTheRulesAsTheyAre: Helm expands no braces of theirs.
func TestPrometheusRule_HasTheRulesAsTheyAre(t *testing.T) {
	found := of[*PrometheusRule](t, "--set", "metrics.prometheusRule.enabled=true", "--set", "metrics.prometheusRule.labels.release=prom")
	if len(found) != 1 || found[0].Labels["release"] != "prom" {
		t.Fatalf("%d PrometheusRules, want one with the label", len(found))
	}
	text, err := os.ReadFile(monitoring + "alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var want PrometheusRuleSpec
	if err := yaml.UnmarshalStrict(text, &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(want, found[0].Spec) || len(want.Groups[0].Rules) < 10 {
		t.Errorf("the rules are %v, want %v", found[0].Spec, want)
	}
}

func TestBoards_AreSelectedByTheSidecar(t *testing.T) {
	found := boardsOf(t, "--set", "metrics.dashboards.enabled=true", "--set", "metrics.dashboards.annotations.grafana_folder=Ray")
	if found == nil || found.Labels["grafana_dashboard"] != "1" || found.Annotations["grafana_folder"] != "Ray" {
		t.Fatalf("the ConfigMap is %v", found)
	}
	for _, name := range []string{"fleet", "operator", "clusters"} {
		var want, have any
		text, err := os.ReadFile(monitoring + "board-" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		if json.Unmarshal(text, &want) != nil || json.Unmarshal([]byte(found.Data["heliostat-"+name+".json"]), &have) != nil {
			t.Errorf("the board %s is no JSON", name)
		}
		if !reflect.DeepEqual(want, have) {
			t.Errorf("the board %s is not that of the file", name)
		}
	}
	if len(found.Data) != 4 {
		t.Errorf("%d boards, want 4", len(found.Data))
	}
}
