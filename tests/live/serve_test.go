package live

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/internal/loadgen"
)

// smooth is an upgrade of which nothing is wrong.
func smooth() Upgraded {
	phase := func(sent int, longest float64) loadgen.Phase {
		return loadgen.Phase{Sorts: map[loadgen.Sort]loadgen.Count{
			loadgen.Fresh: {Sent: sent, Latency: loadgen.Latency{Max: longest}}, loadgen.Long: {Sent: 1, Latency: loadgen.Latency{Max: 2}},
		}}
	}
	return Upgraded{
		Change: "shape", Clusters: 2, Switch: 40, Both: 90,
		Loads: []NodeLoad{{"a", phase(10, 30), phase(100, 50)}, {"b", phase(10, 25), phase(100, 60)}},
	}
}

func TestAnUpgradeIsHeldToItsPromises(t *testing.T) {
	for _, c := range []struct {
		spoil  func(*Upgraded)
		broken []string
		late   []string
	}{
		{func(*Upgraded) {}, nil, nil},
		{func(u *Upgraded) { u.Loads = nil }, []string{"no request was sent"}, nil},
		{func(u *Upgraded) {
			u.Loads[1].During.Sorts[loadgen.Fresh] = loadgen.Count{Sent: 3, Failed: 1, Latency: loadgen.Latency{Max: 1}}
		}, []string{"a request failed"}, nil},
		{func(u *Upgraded) { u.Clusters = 3 }, []string{"there were more than two clusters"}, nil},
		{func(u *Upgraded) { u.Round = 1 }, []string{"the operator was not killed"}, nil},
		{func(u *Upgraded) { u.Round, u.Kills = 1, 1 }, nil, nil},
		{func(u *Upgraded) { u.Both = 100.5 }, nil, []string{"two clusters were alive for 60.5 s after the switch"}},
	} {
		upgraded := smooth()
		c.spoil(&upgraded)
		if broken, late := upgraded.Broken(), upgraded.Late(); !slices.Equal(broken, c.broken) || !slices.Equal(late, c.late) {
			t.Errorf("%s: broken %q, late %q; want %q, %q", upgraded, broken, late, c.broken, c.late)
		}
	}
	if sent, failed := smooth().Count(); sent != 202 || failed != 0 {
		t.Errorf("%d sent, %d failed", sent, failed)
	}
}

func TestLatencies_LongestOfChangesBesideCalm(t *testing.T) {
	calm, slow, unknown := smooth(), smooth(), smooth()
	calm.Loads[1].Calm.Sorts[loadgen.Fresh] = loadgen.Count{Sent: 3, Latency: loadgen.Latency{Max: 31}}
	slow.Loads[0].During.Sorts[loadgen.Fresh] = loadgen.Count{Sent: 3, Latency: loadgen.Latency{Max: 62}}
	unknown.Loads[0].Calm, unknown.Loads[1].Calm = loadgen.Phase{}, loadgen.Phase{}
	for _, c := range []struct {
		all  []Upgraded
		want []Latency
		slow []loadgen.Sort
	}{
		{nil, nil, nil},
		{[]Upgraded{smooth()}, []Latency{{loadgen.Fresh, 30, 60}, {loadgen.Long, 2, 2}}, nil},
		{[]Upgraded{slow}, []Latency{{loadgen.Fresh, 30, 62}, {loadgen.Long, 2, 2}}, []loadgen.Sort{loadgen.Fresh}},
		{[]Upgraded{slow, calm}, []Latency{{loadgen.Fresh, 31, 62}, {loadgen.Long, 2, 2}}, nil},
		{[]Upgraded{unknown}, []Latency{{loadgen.Fresh, 0, 60}, {loadgen.Long, 0, 2}}, []loadgen.Sort{loadgen.Fresh, loadgen.Long}},
	} {
		got := Latencies(c.all)
		var slow []loadgen.Sort
		for _, latency := range got {
			if latency.IsSlow() {
				slow = append(slow, latency.Sort)
			}
		}
		if !slices.Equal(got, c.want) || !slices.Equal(slow, c.slow) {
			t.Errorf("%d changes: %v, %v of them slow; want %v, %v", len(c.all), got, slow, c.want, c.slow)
		}
	}
}

func TestAVersionThatIsTakenBackIsHeldToItsPromises(t *testing.T) {
	for _, c := range []struct {
		back         TakenBack
		broken, late bool
	}{
		{TakenBack{Told: 10, Same: true, Sent: 1}, false, false},
		{TakenBack{Told: 10.1, Same: true, Sent: 1}, false, true},
		{TakenBack{Same: false, Sent: 1}, true, false},
		{TakenBack{Same: true, Sent: 2, Failed: 1}, true, false},
		{TakenBack{Same: true}, true, false},
	} {
		if c.back.Broken() != c.broken || c.back.Late() != c.late {
			t.Errorf("%s: broken is %v, late %v", c.back, c.back.Broken(), c.back.Late())
		}
	}
}

func TestAServiceServesWhenNothingIsUnderWay(t *testing.T) {
	serving := func() *v1beta1.ClusterService {
		s := &v1beta1.ClusterService{}
		s.Generation = 2
		s.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 2}}
		return s
	}
	if err := IsServing(serving()); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*v1beta1.ClusterService){
		"nothing is known":    func(s *v1beta1.ClusterService) { s.Status.Conditions = nil },
		"of another spec":     func(s *v1beta1.ClusterService) { s.Generation = 3 },
		"not ready":           func(s *v1beta1.ClusterService) { s.Status.Conditions[0].Status = metav1.ConditionFalse },
		"another version":     func(s *v1beta1.ClusterService) { s.Status.Candidate = &v1beta1.ServiceVersion{} },
		"a cluster left over": func(s *v1beta1.ClusterService) { s.Status.Retiring = []string{"a"} },
		"under way": func(s *v1beta1.ClusterService) {
			s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{Type: v1beta1.ConditionReconciling, Status: metav1.ConditionTrue})
		},
	} {
		service := serving()
		spoil(service)
		if IsServing(service) == nil {
			t.Errorf("%s: it serves", name)
		}
	}
}

// here is a process in no other network than that of the test.
func here(program string, args ...string) *exec.Cmd { return exec.Command(program, args...) }

func TestAClientIsToldOfPhasesAndTellsOfAllRequests(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"version": "1", "node": "pod", "pid": 7, "said": r.FormValue("said")}) // the report tells
	}))
	defer server.Close()
	client := started(t, "-url", server.URL, "-fresh", "50")
	if err := client.Phase("calm"); err != nil {
		t.Fatal(err)
	}
	err := Until(t.Context(), time.Minute, "the first request, which is due some time after the phase begins", func(context.Context) error {
		report, err := client.Report()
		if sent, _, _ := report.Total(); err == nil && sent == 0 {
			return errors.New("none was sent")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	report, err := client.End()
	if err != nil {
		t.Fatal(err)
	}
	if sent, answered, failed := report.Total(); sent == 0 || sent != answered || failed != 0 || len(report.Phases) != 2 {
		t.Errorf("%d sent, %d answered, %d failed, in %d phases", sent, answered, failed, len(report.Phases))
	}
}

func started(t *testing.T, args ...string) *Client {
	t.Helper()
	program, err := BuildClient(t.Context(), "../..", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	client, err := StartClient("here", here, program, args...)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestAClientThatDoesNotRunHasNoReport(t *testing.T) {
	if _, err := StartClient("here", here, t.TempDir()+"/missing"); err == nil {
		t.Error("a program that is not there was started")
	}
	if _, err := started(t, "-fresh", "1").End(); err == nil { // without a URL
		t.Error("a client that never began has a report")
	}
}
