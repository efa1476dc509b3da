package integration

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// documented are the rows of docs/metrics.md: a metric's name, or the beginning of names
// and a star.
var documented = regexp.MustCompile("(?m)^\\| `([a-z0-9_]+\\*?)`")

// TestEveryMetricIsDocumented compares the names that a working operator gives with those
// of the page, both ways.
func TestEveryMetricIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/metrics.md")
	must(t, err)
	missing := map[string]bool{} // documented and not seen yet
	for _, row := range documented.FindAllStringSubmatch(string(text), -1) {
		missing[row[1]] = true
	}
	rows := slices.Sorted(maps.Keys(missing))

	namespace := newNamespace(t)
	o := startOperator(t, append(electing(leaseIn(t, namespace)), "--watch-namespaces="+namespace, "--measured-clusters=1")...)
	o.leads(time.Now())
	headsIn(t, namespace, willing)
	cluster := create(t, namespace, 1, 1)[0]
	ready(t, cluster)
	must(t, shared.Create(t.Context(), jobOn(cluster, "j", "work 100 0")))
	_, err = shared.UntilPhase(t.Context(), types.NamespacedName{Namespace: namespace, Name: "j"}, v1beta1.PhaseSucceeded, limit)
	must(t, err)
	o.quiet()
	lines, err := o.scrape(t.Context())
	must(t, err)
	for _, line := range lines {
		fields := strings.Fields(line)
		if len(fields) != 4 || fields[1] != "TYPE" {
			continue
		}
		at := slices.IndexFunc(rows, func(row string) bool {
			prefix, star := strings.CutSuffix(row, "*")
			return row == fields[2] || star && strings.HasPrefix(fields[2], prefix)
		})
		if at < 0 {
			t.Errorf("docs/metrics.md lacks the %s %s", fields[3], fields[2])
			continue
		}
		delete(missing, rows[at])
	}
	delete(missing, "heliostat_failing_conditions") // it has no series while nothing fails
	for row := range missing {
		t.Errorf("docs/metrics.md has %s, which a working operator does not give", row)
	}
}

// TestMetricsTellOfAClustersWay checks the values that a cluster's life gives.
func TestMetricsTellOfAClustersWay(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	o := startOperator(t, "--watch-namespaces="+namespace)
	name := create(t, namespace, 1, 2)[0]
	ready(t, name)
	o.quiet()
	scaleTo(t, name, 3)
	ready(t, name)
	o.quiet()
	lines, err := o.scrape(t.Context())
	must(t, err)
	for _, want := range []string{
		`heliostat_cluster_phase_duration_seconds_count{phase="head_ready"} 1`,
		`heliostat_cluster_phase_duration_seconds_count{phase="workers_ready"} 1`, // more workers are not another beginning
		`heliostat_cluster_writes_total{code="200",kind="Pod",verb="create"} 4`,
		`heliostat_clusters{phase="` + v1beta1.PhaseReady + `"} 1`,
		`heliostat_workers{state="ready"} 3`,
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("the metrics lack %s; there are\n%s", want, strings.Join(slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
				return !strings.HasPrefix(line, "heliostat_") || strings.Contains(line, "_bucket{")
			}), "\n"))
		}
	}
	for _, line := range lines {
		if strings.HasPrefix(line, "heliostat_") && strings.Contains(line, name.Namespace) {
			t.Errorf("a series for one object: %s", line)
		}
	}
}
