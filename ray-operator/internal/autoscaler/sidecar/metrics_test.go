package sidecar

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestHealth: without a round for more than a minute the process is not well, whether the
// head answers or not.
func TestHealth(t *testing.T) {
	clock := clocktesting.NewFakeClock(start)
	m := NewMetrics(clock)
	is := func(what string, want int) {
		t.Helper()
		recorder := httptest.NewRecorder()
		m.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/healthz", http.NoBody))
		if recorder.Code != want {
			t.Errorf("%s: %d", what, recorder.Code)
		}
	}
	is("just begun", http.StatusOK)
	clock.Step(time.Minute + time.Second)
	is("no round", http.StatusServiceUnavailable)
	m.failed()
	is("a head without an answer", http.StatusOK)
	clock.Step(time.Minute + time.Second)
	m.round(time.Millisecond)
	is("a round", http.StatusOK)
}

// TestEveryMetricIsDocumented compares the names with those of the docs' table, both ways.
func TestEveryMetricIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/autoscaling.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `((?:heliostat_)?autoscaler_[a-z_]+)`").FindAllStringSubmatch(string(text), -1) {
		documented[row[1]] = true
	}
	m := NewMetrics(clocktesting.NewFakeClock(start))
	nodes := map[string]float64{"cpu": 1}
	m.show(tally{session: "s", active: nodes, pending: nodes, going: nodes, resources: nodes, pendingOnes: nodes})
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]bool{}
	for _, family := range families {
		if strings.Contains(family.GetName(), "autoscaler_") {
			given[family.GetName()] = true
		}
	}
	if !maps.Equal(given, documented) {
		t.Errorf("docs/autoscaling.md has %v, given are %v", slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(given)))
	}
}

// TestMetricsOfStrangers: users invent names of resources; what no label can hold is left
// out, and there are not more series than are bearable.
func TestMetricsOfStrangers(t *testing.T) {
	m := NewMetrics(clocktesting.NewFakeClock(start))
	resources := map[string]float64{"\xff": 1}
	for i := range 1000 {
		resources[strings.Repeat("x", i+1)] = 1
	}
	m.show(tally{session: "s", resources: resources, drained: map[string]bool{"a": true, "b": true}})
	m.show(tally{session: "s", resources: resources, drained: map[string]bool{"b": true, "c": true}})
	if count := testutil.CollectAndCount(m, clusterResources); count != mostNames {
		t.Errorf("%d series", count)
	}
	want := "# HELP autoscaler_stopped_nodes_total Nodes that were drained since the autoscaler began.\n" +
		"# TYPE autoscaler_stopped_nodes_total counter\nautoscaler_stopped_nodes_total{SessionName=\"s\"} 3\n"
	if err := testutil.CollectAndCompare(m, strings.NewReader(want), stoppedNodes); err != nil {
		t.Error(err)
	}
}
