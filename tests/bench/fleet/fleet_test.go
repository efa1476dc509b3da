package main

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// TestASmallFleet runs the whole bench with few clusters, and holds what it finds against limits that only a fault could
// break. Times and processor time depend on the machine. Numbers of calls do not, but for a status more where pods of a
// cluster become ready seconds apart.
func TestASmallFleet(t *testing.T) {
	t.Chdir("../../..") // where the bench is run
	programs, err := exec.Command("bin/localkube", "build").Output()
	if err != nil {
		t.Fatalf("find Kubernetes' programs: %v: make bin/localkube builds what finds them", err)
	}
	o := options{
		idle: time.Second, clusters: 20, rounds: 1, contenders: []string{Floor, Operator}, layouts: []string{Spread},
		kubernetes: strings.TrimSpace(string(programs)), out: t.TempDir(), state: t.TempDir(),
	}
	if err := run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(o.out, "fleet-20.json"))
	if err != nil {
		t.Fatal(err)
	}
	var result Result
	if err := json.Unmarshal(text, &result); err != nil || len(result.Samples) != 2 {
		t.Fatalf("read the results: %d samples: %v", len(result.Samples), err)
	}
	for _, s := range result.Samples {
		judge(t, s)
	}
}

// judge compares a sample with what must be and with what cannot be.
func judge(t *testing.T, s Sample) {
	t.Helper()
	t.Logf("%s: %s", s.Contender, per(s.Calls.Writes, s.Clusters))
	const needed = podsInCluster + 2            // and a Service, and a status
	most, grown, gone := needed+2+0.5, 2.5, 1.1 // a Secret and a NetworkPolicy more
	if s.Contender == Floor {
		most, grown, gone = needed, 2, 0
	}
	for what, bounds := range map[string][3]float64{
		"pods made per cluster":     {float64(s.Calls.Writes["create pods"]) / float64(s.Clusters), podsInCluster, podsInCluster},
		"Services made per cluster": {float64(s.Calls.Writes["create services"]) / float64(s.Clusters), 1, 2},
		"calls per cluster":         {s.calls(), needed, most},
		"calls for one more worker": {s.growth(), 2, grown},
		"seconds until all ready":   {s.Times.AllReady, 0.2, 120},
		"seconds until ready, p95":  {s.Times.P95, s.Times.P50, s.Times.AllReady},
		"CPU per cluster in ms":     {s.CPU, 0.5, 500},
		"MiB resident":              {s.Memory.Resident, 10, 500},
	} {
		if bounds[0] < bounds[1] || bounds[0] > bounds[2] {
			t.Errorf("%s: %s: %v, want %v to %v", s.Contender, what, bounds[0], bounds[1], bounds[2])
		}
	}
	if s.Idle == nil || sum(s.Idle.Calls.Writes)+sum(s.Idle.Calls.Reads) > 0 {
		t.Errorf("at rest the %s called: %+v", s.Contender, s.Idle)
	}
	if s.Deletion == nil {
		t.Errorf("nothing is known of the deletion with the %s", s.Contender)
	} else if calls := s.deletion(); calls > gone {
		t.Errorf("%s: %v calls per deleted cluster, want at most %v: %s", s.Contender, calls, gone, per(s.Deletion.Calls.Writes, s.Clusters))
	}
	switch {
	case s.Contender == Floor:
	case s.Restart == nil:
		t.Error("the operator was not restarted")
	case sum(s.Restart.Calls.Writes) > s.Restart.Calls.Writes[budgets]: // which may just be due
		t.Errorf("the operator, restarted over a fleet that was ready, wrote: %s", per(s.Restart.Calls.Writes, 1))
	}
}

func TestCallsAreCounted(t *testing.T) {
	log := auditLog{live.AuditLog(filepath.Join(t.TempDir(), "audit.log"))}
	if at, err := log.Now(); at != 0 || err != nil {
		t.Errorf("a log that is not there yet ends at %d: %v", at, err)
	}
	line := func(verb, resource, subresource string, code int) string {
		var r request
		r.Verb, r.ObjectRef.Resource, r.ObjectRef.Subresource, r.ResponseStatus.Code = verb, resource, subresource, code
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(text) + "\n"
	}
	before := line("create", "pods", "", 201)
	text := before + line("create", "pods", "", 201) + line("create", "pods", "", 409) + line("patch", "computeclusters", "status", 200) +
		line("get", "secrets", "", 404) + line("watch", "pods", "", 200) + line("get", "", "", 200) + `{"verb":"create","obj`
	if err := os.WriteFile(string(log.AuditLog), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	calls, err := log.since(live.Mark(len(before)))
	if err != nil {
		t.Fatal(err)
	}
	for what, got := range map[string]string{
		"2.00 create pods, 1.00 patch computeclusters/status": per(calls.Writes, 1),
		"1.00 get secrets": per(calls.Reads, 1),
		"1.00 create pods: 409, 1.00 get secrets: 404": per(calls.Failed, 1),
	} {
		if got != what {
			t.Errorf("counted %q, want %q", got, what)
		}
	}
}

func TestQuantile(t *testing.T) {
	for _, c := range []struct {
		values  []float64
		q, want float64
	}{
		{[]float64{3, 1, 2}, 0.5, 2}, {[]float64{1}, 0.95, 1}, {[]float64{5, 4, 3, 2, 1}, 0.95, 5},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, 0.95, 19},
	} {
		if got := quantile(c.values, c.q); got != c.want {
			t.Errorf("quantile %v of %v is %v, want %v", c.q, c.values, got, c.want)
		}
	}
	if got := quantile(nil, 0.5); !math.IsNaN(got) {
		t.Errorf("the median of nothing is %v", got)
	}
}

// TestWhatWasMeasuredIsKept: a run that was stopped goes on, and nothing is taken over
// from another commit or from a tree that nobody can name.
func TestWhatWasMeasuredIsKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sample.json")
	measured := 0
	measure := func() (Sample, error) {
		measured++
		return Sample{Clusters: measured}, nil
	}
	for _, step := range []struct {
		commit string
		want   int
	}{{"a", 1}, {"a", 1}, {"b", 2}, {"b" + changed, 3}, {"b" + changed, 4}, {"b", 5}, {"b", 5}} {
		if s, err := kept(file, step.commit, measure); err != nil || s.Clusters != step.want {
			t.Errorf("at commit %s: measurement %d (%v), want %d", step.commit, s.Clusters, err, step.want)
		}
	}
	if _, err := kept(file, "c", func() (Sample, error) { return Sample{}, errors.New("broken") }); err == nil {
		t.Error("a measurement that failed was kept")
	}
}

func TestPage(t *testing.T) {
	r := Result{Clusters: 500, Command: "make", Commit: "c"}
	for round := range 3 {
		for _, contender := range []string{Floor, Operator} {
			for _, layout := range []string{Spread, One} {
				s := Sample{Contender: contender, Layout: layout, Round: round + 1, Clusters: 500, Grown: 10}
				s.Times.AllReady, s.CPU = 10, float64(4+round)
				s.Idle, s.Deletion = &Idle{Seconds: 10}, &Deletion{}
				if contender == Operator {
					s.Times.AllReady, s.CPU, s.Restart = 11, float64(6+round), &Restart{Seconds: 2}
					s.Idle.Calls.Reads = map[string]int{"get secrets": 5}
					s.Deletion.Calls = Calls{Writes: map[string]int{"delete pods": 1000}, Reads: map[string]int{"get secrets": 250}}
				}
				r.Samples = append(r.Samples, s)
			}
		}
	}
	page := r.page()
	for _, want := range []string{
		"| 500 clusters, all ready | 10.0 s | 11.0 s | 1.10 | ≤ 1.15 × floor |\n",
		"| CPU per cluster | 5.00 ms | 7.00 ms | 1.40 | ≤ 1.4 × floor |\n",
		"| memory, resident | 0 MiB | 0 MiB |  | ≤ 75 MiB |\n",
		"| restart over all, until calm |  | 2.0 s |  | 3 s |\n",
		"| API calls per deleted cluster | 0.00 | 2.50 |  | ≤ 1 |\n", "- per deleted cluster: 2.00 delete pods\n- reads per deleted cluster: 0.50 get secrets\n",
		"- at rest, in 10 s: 5 get secrets\n", "| at rest: reads per second | 0.00 | 0.50 |  |  |\n",
		"the operator's CPU changes by +0 %",
		"- per cluster: none\n- in the minute after: none\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	here := t.TempDir()
	if err := os.WriteFile(filepath.Join(here, "kube-apiserver"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	good := options{clusters: 1, rounds: 1, contenders: []string{Floor}, layouts: []string{One}, kubernetes: here}
	if err := good.check(contenders()); err != nil {
		t.Error(err)
	}
	for says, spoil := range map[string]func(*options){
		`there is no "peer"`:        func(o *options) { o.contenders = []string{"peer"} },
		`there is no "two"`:         func(o *options) { o.layouts = []string{"two"} },
		"give at least one of each": func(o *options) { o.rounds = 0 },
		"bin/localkube build":       func(o *options) { o.kubernetes = "" },
	} {
		bad := good
		spoil(&bad)
		if err := bad.check(contenders()); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("the answer was %v, want it to contain %q", err, says)
		}
	}
}
