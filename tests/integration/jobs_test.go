package integration

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
)

// startDelayOfJobs is how long Ray takes to start a job on the heads of these tests.
const startDelayOfJobs = 100 * time.Millisecond

// willing makes heads that run what jobs of these tests ask for.
func willing(one *head) {
	one.fake.SetStartDelay(startDelayOfJobs)
	one.fake.SetProgram(program)
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
