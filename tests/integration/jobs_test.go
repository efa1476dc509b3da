package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
	"github.com/heliostat-dev/heliostat/ray-operator/launcher"
)

// startDelayOfJobs is how long Ray takes to start a job on the heads of these tests.
const startDelayOfJobs = 100 * time.Millisecond

// willing makes heads that run what jobs of these tests ask for.
func willing(one *head) {
	one.fake.SetStartDelay(startDelayOfJobs)
	one.fake.SetProgram(func(run fakehead.Run) (fakehead.Process, bool) {
		if process, isGang := workOfGang(run); isGang {
			go one.fake.Store(launcher.ReportNamespace, launcher.ReportKey(run.ID), reportOfGang) // it waits for the head, which waits for this
			return process, true
		}
		return program(run)
	})
}

// reportOfGang is what the launcher of each gang says of it: all is well.
const reportOfGang = `{"version": 1, "state": "Running", "round": 1, "replicas": 1, "ready": 1, "started": 1}`

// gangOf makes a job one whose only process does what the job would.
func gangOf(job *v1beta1.ClusterJob) *v1beta1.ClusterJob {
	job.Spec.RuntimeEnv = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"env_vars": {"WORK": %q}}`, job.Spec.Entrypoint)}
	job.Spec.Gang = &v1beta1.Gang{
		Framework: v1beta1.FrameworkGeneric, GracePeriodSeconds: new(int32),
		Roles: []v1beta1.GangRole{{Name: "worker", Resources: map[string]resource.Quantity{"memory": resource.MustParse("1Mi")}}},
	}
	return job
}

// workOfGang is what becomes of a run that is the driver of a gang.
func workOfGang(run fakehead.Run) (fakehead.Process, bool) {
	var env struct {
		Variables map[string]string `json:"env_vars"`
	}
	if err := json.Unmarshal(run.RuntimeEnv, &env); err != nil || env.Variables["WORK"] == "" {
		return fakehead.Process{}, false
	}
	run.Entrypoint = env.Variables["WORK"]
	return program(run)
}

// program obeys "work MILLISECONDS CODE,CODE": each attempt takes so long, and ends with
// the exit code of its number, the last one for all that follow.
func program(run fakehead.Run) (fakehead.Process, bool) {
	words := strings.Fields(run.Entrypoint)
	if len(words) != 3 || words[0] != "work" {
		return fakehead.Process{}, false
	}
	takes, err := strconv.Atoi(words[1])
	if err != nil {
		return fakehead.Process{}, false
	}
	attempt, _ := strconv.Atoi(run.Metadata["heliostat.dev/attempt"]) // none is the first
	return fakehead.Process{
		Takes: time.Duration(takes) * time.Millisecond, ExitCode: exitCode(run.Entrypoint, attempt), Lines: []string{"attempt " + fmt.Sprint(attempt)},
	}, true
}

// exitCode is what an attempt of an entrypoint for program ends with.
func exitCode(entrypoint string, attempt int) int32 {
	codes := strings.Split(strings.Fields(entrypoint)[2], ",")
	code, _ := strconv.ParseInt(codes[max(0, min(attempt, len(codes))-1)], 10, 32) // they are written here
	return int32(code)
}

// jobOn runs an entrypoint on a cluster that exists.
func jobOn(cluster types.NamespacedName, name, entrypoint string) *v1beta1.ClusterJob {
	return &v1beta1.ClusterJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: name},
		Spec:       v1beta1.ClusterJobSpec{ClusterRef: &v1beta1.ClusterReference{Name: cluster.Name}, Entrypoint: entrypoint},
	}
}

// endJobs deletes the jobs of a namespace when the test ends, while the operator that was
// started last still works: those that run have to be stopped before they can go.
func endJobs(t *testing.T, namespace string) {
	t.Helper()
	t.Cleanup(func() {
		if err := shared.DropJobs(context.WithoutCancel(t.Context()), namespace, limit); err != nil {
			t.Error(err)
		}
	})
}
