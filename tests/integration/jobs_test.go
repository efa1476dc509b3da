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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
	"github.com/heliostat-dev/heliostat/tests/live"
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
func jobOn(cluster types.NamespacedName, name, entrypoint string) *v1alpha1.ClusterJob {
	return &v1alpha1.ClusterJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: name},
		Spec:       v1alpha1.ClusterJobSpec{ClusterRef: &v1alpha1.ClusterReference{Name: cluster.Name}, Entrypoint: entrypoint},
	}
}

// phases counts the jobs of a namespace by what they are in.
func phases(ctx context.Context, namespace string) (map[string]int, error) {
	var jobs v1alpha1.ClusterJobList
	if err := shared.List(ctx, &jobs, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the jobs: %w", err)
	}
	counts := map[string]int{}
	for i := range jobs.Items {
		counts[jobs.Items[i].Status.Phase]++
	}
	return counts, nil
}

// untilAll waits until as many jobs of a namespace are in a phase.
func untilAll(t *testing.T, namespace, phase string, jobs int) {
	t.Helper()
	must(t, live.Until(t.Context(), limit, fmt.Sprintf("%d jobs to be %s", jobs, phase), func(ctx context.Context) error {
		seen, err := phases(ctx, namespace)
		if err == nil && seen[phase] != jobs {
			err = fmt.Errorf("there are %v", seen)
		}
		return err
	}))
}
