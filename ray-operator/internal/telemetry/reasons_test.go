package telemetry

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// because returns a condition Ready with a status and a reason.
func because(status metav1.ConditionStatus, code string) []metav1.Condition {
	return []metav1.Condition{{Type: v1beta1.ConditionReady, Status: status, Reason: code}}
}

func TestReasons_AreCountedWhenTheyChange(t *testing.T) {
	starting, quota := because(metav1.ConditionFalse, "HeadStarting"), because(metav1.ConditionFalse, "QuotaExceeded")
	ready := because(metav1.ConditionTrue, "AllReady")
	for name, c := range map[string]struct {
		before, after []metav1.Condition
		want          string
	}{
		"the first reason":       {nil, starting, `{kind="ClusterJob",reason="HeadStarting",severity="Progress"} 1`},
		"another reason":         {starting, quota, `{kind="ClusterJob",reason="QuotaExceeded",severity="Warning"} 1`},
		"the same reason":        {quota, quota, ""},
		"a reason after a while": {ready, quota, `{kind="ClusterJob",reason="QuotaExceeded",severity="Warning"} 1`},
		"ready":                  {quota, ready, ""},
		"suspended":              {quota, nil, ""},
	} {
		m, err := NewMetrics(prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		m.countReason(kindJob, c.before, c.after)
		want := ""
		if c.want != "" {
			want = "# HELP heliostat_reasons_total How often objects that were not ready got this reason in their condition Ready.\n" +
				"# TYPE heliostat_reasons_total counter\nheliostat_reasons_total" + c.want + "\n"
		}
		if err := testutil.CollectAndCompare(m.reasons, strings.NewReader(want)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFailures_CountWhatLasts(t *testing.T) {
	now, created := born.Add(time.Hour), metav1.NewTime(born)
	failing, long := failures{}, "@0" // for an hour
	for _, conditions := range [][]metav1.Condition{
		at(0, 0, "Ready=False"+long, "Reconciling=True"+long, "HeadReady=False"+long).Conditions,
		at(0, 0, "Ready=Unknown"+long, "ControlStoreReady=True"+long).Conditions,
		at(0, 0, "Ready=False@3001", "Autoscaling=False@3000").Conditions,
		at(0, 0, "Ready=True"+long, "GatewayProgrammed=False"+long).Conditions,
	} {
		failing.add(kindCluster, created, conditions, now)
	}
	failing.add(kindCluster, metav1.NewTime(now.Add(-time.Minute)), at(0, 0, "Ready=Unknown"+long).Conditions, now) // a new cluster
	want := failures{
		{kindCluster, "Ready", ""}: 2, {kindCluster, "Autoscaling", ""}: 1, {kindCluster, "GatewayProgrammed", ""}: 1,
	}
	if diff := cmp.Diff(want, failing, cmp.AllowUnexported(failure{})); diff != "" {
		t.Error(diff)
	}
}

func TestTallyJobs_FailWhileTheyWait(t *testing.T) {
	jobs := make([]v1beta1.ClusterJob, 3)
	for i := range jobs {
		jobs[i].Status.Conditions = at(0, 0, "Ready=False@0").Conditions
	}
	jobs[1].Status.StartTime, jobs[2].Status.EndTime = &metav1.Time{Time: born}, &metav1.Time{Time: born}
	failing := failures{}
	tallyJobs(jobs, failing, born.Add(time.Hour))
	if failing[failure{kindJob, "Ready", ""}] != 1 {
		t.Errorf("%v, want the one that has not run", failing)
	}
}

func TestDrained_HasBothResults(t *testing.T) {
	m, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	m.Drained(time.Minute, true)
	(*Metrics)(nil).Drained(time.Minute, true)
	if n := testutil.CollectAndCount(m.drains); n != 2 {
		t.Errorf("%d series, want one for each result", n)
	}
}

// descriptor matches how a metric describes itself.
var descriptor = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: {([^}]*)}`)

// TestMetrics_AreInTheDocs compares names and labels with the rows of the page, both ways.
func TestMetrics_AreInTheDocs(t *testing.T) {
	text, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(heliostat_[a-z_]+)` \\|([^|]*)\\|").FindAllStringSubmatch(string(text), -1) {
		documented[row[1]] = strings.NewReplacer("`", "", " ", "").Replace(row[2])
	}
	all := &described{}
	if _, err := NewMetrics(all); err != nil {
		t.Fatal(err)
	}
	if err := NewFleet(all, nil, nil, clocktesting.NewFakePassiveClock(born), 1); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(documented, all.labels); diff != "" {
		t.Errorf("docs/metrics.md and the metrics differ (- docs, + metrics): %s", diff)
	}
}

// described collects the labels of each metric that is registered.
type described struct {
	prometheus.Registerer
	labels map[string]string
}

func (d *described) Register(collector prometheus.Collector) error {
	to := make(chan *prometheus.Desc, 20)
	collector.Describe(to)
	close(to)
	if d.labels == nil {
		d.labels = map[string]string{}
	}
	for desc := range to {
		parts := descriptor.FindStringSubmatch(desc.String())
		d.labels[parts[1]] = parts[2]
	}
	return nil
}
