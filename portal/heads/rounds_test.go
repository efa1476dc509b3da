package heads

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

func TestParseProcess(t *testing.T) {
	type process struct {
		role   string
		number int
	}
	for name, want := range map[string]process{
		"worker/3": {"worker", 3}, "a-b/4095": {"a-b", 4095}, "worker": {}, "worker/": {}, "worker/03": {}, "worker/10000": {}, "/3": {},
		"Worker/3": {}, "*/3": {}, "../3": {}, "worker/3/4": {}, "worker/-1": {}, "": {},
	} {
		role, number, is := ParseProcess(name)
		if (process{role, number}) != want || is != (want != process{}) {
			t.Errorf("%q: %q, %d, %t", name, role, number, is)
		}
	}
}

func TestCountProcesses(t *testing.T) {
	gang := &v1beta1.Gang{Roles: []v1beta1.GangRole{
		{Name: "master"}, {Name: "worker", Replicas: 2, ProcessesPerReplica: 3},
		{Name: "torch", Replicas: 2, ProcessesPerReplica: 3, Start: v1beta1.StartPerReplica},
	}}
	for role, want := range map[string]int{"master": 1, "worker": 6, "torch": 2, "ps": 0} {
		if count, has := CountProcesses(gang, role); count != want || has != (want > 0) {
			t.Errorf("%s has %d processes, %t", role, count, has)
		}
	}
	if names := RoleNames(gang); !slices.Equal(names, []string{"master", "worker", "torch"}) {
		t.Errorf("the roles are %v", names)
	}
}

func TestListRounds_IsRefusedWhereRayHasNoWay(t *testing.T) {
	routes := http.NewServeMux()
	routes.HandleFunc("GET /api/v0/nodes", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"data": {"result": {"result": [{"node_id": "%056x"}]}}}`, 1)
	})
	routes.HandleFunc("GET /api/v0/logs", func(w http.ResponseWriter, _ *http.Request) { // as Ray 2.52 does where there is a token
		http.Error(w, "status = StatusCode.UNAUTHENTICATED", http.StatusInternalServerError)
	})
	server := httptest.NewServer(routes)
	t.Cleanup(server.Close)
	for name, c := range map[string]struct {
		encryption  v1beta1.Switch
		why, remedy string
	}{
		"encryption":          {v1beta1.Enabled, "ComputeCluster demo encrypts its traffic", "Read the output of the job, and set gang.output to All"},
		"no token for agents": {v1beta1.Disabled, "no token for the agents of its nodes", "Use a later Ray, or set gang.output to All"},
	} {
		jobs, err := headclient.DialJobs(server.Listener.Addr().String(), headclient.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = jobs.Close() })
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1beta1.AnnotationEncryption: string(c.encryption)}}}
		way := &Way{cluster: &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}, pod: pod}
		var refused *Refusal
		_, err = (&Conversation{Jobs: jobs, Way: way}).ListRounds(t.Context(), Process{Submission: "s", Name: "worker/3"})
		if !errors.As(err, &refused) || refused.Code != reason.OutputUnreadable.Code || refused.Sort != Conflict ||
			!strings.Contains(refused.Message, c.why) || !strings.Contains(refused.Remedy, c.remedy) {
			t.Errorf("%s: it is %v", name, err)
		}
	}
}

func TestMissing_CountsRayNodes(t *testing.T) {
	for want, of := range map[string]Rounds{
		"": {}, "1 Ray node does not answer": {Silent: 1}, "10 Ray nodes do not answer, and 5 more were not asked": {Silent: 10, Unasked: 5},
	} {
		if got := of.Missing(); got != want {
			t.Errorf("it is %q, want %q", got, want)
		}
	}
}

func TestSortRounds_TakesTheFilesOfTheProcess(t *testing.T) {
	file := func(node, name string) headclient.Log {
		return headclient.Log{Node: node, File: "job-driver-s-worker-3-r" + name}
	}
	found := sortRounds(Process{Submission: "s", Name: "worker/3"}.stem(), []headclient.Log{
		file("b", "10.log.1"), file("a", "2.log"), file("b", "10.log"), file("a", "02.log"), file("a", "3.log.2"),
		{Node: "a", File: "job-driver-s-worker-30-r4.log"}, {Node: "a", File: "5.log"},
	})
	want := []Round{{Number: 2, Log: file("a", "2.log")}, {Number: 10, Log: file("b", "10.log"), HasOlder: true}}
	if !slices.Equal(found, want) || found[1].File(true) != file("b", "10.log.1") {
		t.Errorf("they are %+v", found)
	}
}

func TestCountProcesses_HasTheMasterAndAnyExecutorOfSpark(t *testing.T) {
	gang := &v1beta1.Gang{Framework: v1beta1.FrameworkSpark, Roles: []v1beta1.GangRole{
		{Name: v1beta1.GangRoleDriver}, {Name: v1beta1.GangRoleExecutor, Replicas: 2},
	}}
	for role, want := range map[string]int{"driver": 1, "master": 1, "executor": mostNumbers, "worker": 0} {
		if count, has := CountProcesses(gang, role); count != want || has != (want > 0) {
			t.Errorf("there are %d of %s, %t, want %d", count, role, has, want)
		}
	}
	if names := RoleNames(gang); !slices.Equal(names, []string{"driver", "executor", "master"}) {
		t.Errorf("its roles are %v", names)
	}
}
