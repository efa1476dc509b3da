// Package monitoring checks what other tools read of ours: rules and boards of the chart as Prometheus and Grafana do, and
// statuses as Flux and Argo CD do.
//
// In: the files of helm-chart/heliostat/files/monitoring, and pages of the docs. Out: nothing but tests. A rule
// or panel must never ask for a metric, label or value that is not documented.
package monitoring

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v2"
)

const (
	root  = "../../../"
	files = root + "helm-chart/heliostat/files/monitoring/"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// rules are the parts of a file of rules that the tests need.
type rules struct {
	Groups []struct {
		Rules []struct {
			Alert, Expr         string
			Labels, Annotations map[string]string
		}
	}
}

// query is an expression with where it stands, and how its series are named.
type query struct{ place, expr, legend string }

// ruleQueries returns the queries of all alerts.
func ruleQueries(t *testing.T) []query {
	t.Helper()
	var all rules
	if err := yaml.Unmarshal([]byte(read(t, files+"alerts.yaml")), &all); err != nil {
		t.Fatal(err)
	}
	var queries []query
	for _, rule := range all.Groups[0].Rules {
		if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" || rule.Labels["severity"] == "" {
			t.Errorf("the alert %s lacks a summary, a description or a severity", rule.Alert)
		}
		queries = append(queries, query{place: rule.Alert, expr: rule.Expr})
	}
	return queries
}

// board is what the tests need of a board.
type board struct {
	UID        string `json:"uid"`
	Title      string `json:"title"`
	Templating struct {
		List []struct {
			Query string `json:"query"`
			Type  string `json:"type"`
		} `json:"list"`
	} `json:"templating"`
	Panels []struct {
		Title   string `json:"title"`
		Targets []struct {
			Expr         string `json:"expr"`
			LegendFormat string `json:"legendFormat"`
		} `json:"targets"`
	} `json:"panels"`
}

// boards returns the boards by the names of their files.
func boards(t *testing.T) map[string]board {
	t.Helper()
	names, err := filepath.Glob(files + "board-*.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("find the boards: %v, %v", names, err)
	}
	all := map[string]board{}
	for _, name := range names {
		var one board
		if err := json.Unmarshal([]byte(read(t, name)), &one); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[filepath.Base(name)] = one
	}
	return all
}

// labelValues matches the query of a variable: a selector and the label whose values it has.
var labelValues = regexp.MustCompile(`^label_values\((.*), *([a-z_]+)\)$`)

// boardQueries returns the queries of all panels and variables.
func boardQueries(t *testing.T) []query {
	t.Helper()
	var queries []query
	for name, one := range boards(t) {
		for _, panel := range one.Panels {
			for _, target := range panel.Targets {
				queries = append(queries, query{name + ": " + panel.Title, target.Expr, target.LegendFormat})
			}
		}
		for _, variable := range one.Templating.List {
			if parts := labelValues.FindStringSubmatch(variable.Query); parts != nil {
				queries = append(queries, query{name, "count by (" + parts[2] + ") (" + parts[1] + ")", ""})
			} else if variable.Type == "query" {
				t.Errorf("%s: the variable %q is not understood", name, variable.Query)
			}
		}
	}
	return queries
}

// ofTargets are the labels that the ServiceMonitor gives every series.
var ofTargets = []string{"namespace", "pod", "job", "instance", "service", "endpoint", "container"}

// metrics returns the labels of each metric on the pages. A name may end in a star.
func metrics(t *testing.T) map[string][]string {
	t.Helper()
	row := regexp.MustCompile("(?m)^\\| `([a-z0-9_]+\\*?)` \\|(?:([^|]*)\\|)? *([^|]*)\\|$")
	all := map[string][]string{}
	for _, page := range []string{"docs/metrics.md", "docs/server.md"} {
		for _, parts := range row.FindAllStringSubmatch(read(t, root+page), -1) {
			names := strings.FieldsFunc(parts[2], func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz_", r) })
			all[parts[1]] = names
			if strings.HasPrefix(parts[3], "histogram") {
				all[parts[1]+"_count"], all[parts[1]+"_sum"] = names, names
				all[parts[1]+"_bucket"] = append(slices.Clone(names), "le")
			}
		}
	}
	if len(all) < 40 {
		t.Fatalf("only %d metrics were found on the pages", len(all))
	}
	return all
}

// labelsOf returns the labels of a metric, and whether a page has it.
func labelsOf(documented map[string][]string, name string) ([]string, bool) {
	if found, ok := documented[name]; ok {
		return found, true
	}
	for row := range documented {
		if prefix, star := strings.CutSuffix(row, "*"); star && strings.HasPrefix(name, prefix) {
			return nil, true
		}
	}
	return nil, false
}

var (
	legendLabel = regexp.MustCompile(`{{ *([a-z_]+) *}}`)
	word        = regexp.MustCompile(`^[A-Za-z_]+$`)
)

// TestQueries_AskForWhatExists parses each expression of rules and boards. Metrics, labels and values must be documented.
func TestQueries_AskForWhatExists(t *testing.T) {
	documented := metrics(t)
	values := read(t, root+"docs/metrics.md") + read(t, root+"docs/reference/reasons.md") + read(t, root+"ray-operator/api/v1beta1/conditions.go") +
		"`ComputeCluster` `ClusterJob` `ClusterService` `computecluster` `clusterjob` `clusterservice`"
	parse := parser.NewParser(parser.Options{})
	for _, query := range append(ruleQueries(t), boardQueries(t)...) {
		expr := strings.ReplaceAll(query.expr, "$__rate_interval", "5m")
		tree, err := parse.ParseExpr(expr)
		if err != nil {
			t.Errorf("%s: %v", query.place, err)
			continue
		}
		has := slices.Clone(ofTargets)
		var grouped []string
		parser.Inspect(tree, func(node parser.Node, _ []parser.Node) error {
			switch node := node.(type) {
			case *parser.VectorSelector:
				names, ok := labelsOf(documented, node.Name)
				if !ok {
					t.Errorf("%s: %s is not documented", query.place, node.Name)
				}
				has = append(has, names...)
				for _, matcher := range node.LabelMatchers {
					checkMatcher(t, query.place, matcher, append(slices.Clone(ofTargets), names...), values)
				}
			case *parser.AggregateExpr:
				grouped = append(grouped, node.Grouping...)
			}
			return nil
		})
		for _, parts := range legendLabel.FindAllStringSubmatch(query.legend, -1) {
			if !slices.Contains(grouped, parts[1]) {
				t.Errorf("%s: the legend has the label %s, by which nothing is grouped", query.place, parts[1])
			}
		}
		for _, label := range grouped {
			if !slices.Contains(has, label) {
				t.Errorf("%s: grouped by %s, which no metric there has", query.place, label)
			}
		}
	}
}

// checkMatcher checks the label of a matcher, and each value that it spells out.
func checkMatcher(t *testing.T, place string, matcher *labels.Matcher, known []string, values string) {
	t.Helper()
	if matcher.Name == "__name__" {
		return
	}
	if !slices.Contains(known, matcher.Name) {
		t.Errorf("%s: the metric has no label %s", place, matcher.Name)
	}
	for value := range strings.SplitSeq(matcher.Value, "|") {
		if word.MatchString(value) && !strings.Contains(values, "`"+value+"`") && !strings.Contains(values, `"`+value+`"`) {
			t.Errorf("%s: %s is never %q", place, matcher.Name, value)
		}
	}
}

// TestBoards_AreGrafanas decodes each board strictly, with the types of Grafana's own schema.
func TestBoards_AreGrafanas(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	uids := map[string]string{}
	for name, one := range boards(t) {
		var strict dashboard.Dashboard //nolint:staticcheck // the form that every Grafana and its sidecar read
		err := strict.UnmarshalJSONStrict([]byte(read(t, files+name)))
		if err != nil && err.Error() != "" { // an empty list of errors is no error
			t.Errorf("%s: %v", name, err)
		}
		if other := uids[one.UID]; one.UID == "" || other != "" {
			t.Errorf("%s has the UID %q, as %q has", name, one.UID, other)
		}
		uids[one.UID] = name
	}
}

// TestAlerts_FireAndStaySilent has promtool judge the rules, and run a test in which each fires and none does in calm.
func TestAlerts_FireAndStaySilent(t *testing.T) {
	const cases = "testdata/alerts_test.yaml"
	for _, args := range [][]string{{"check", "rules", "--lint-fatal", files + "alerts.yaml"}, {"test", "rules", cases}} {
		if out, err := exec.Command("promtool", args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	text := read(t, cases)
	for _, rule := range ruleQueries(t) {
		if !strings.Contains(text, `{labels: '{alertname="`+rule.place+`"}', value: 1}`) {
			t.Errorf("no test has the alert %s fire", rule.place)
		}
	}
	page := read(t, root+"docs/monitoring.md")
	for _, rule := range ruleQueries(t) {
		if !strings.Contains(page, "| `"+rule.place+"` |") {
			t.Errorf("docs/monitoring.md does not explain the alert %s", rule.place)
		}
	}
}
