package integration

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// newJob runs on a cluster of its own.
func newJob(namespace, name string) *v1beta1.ClusterJob {
	return &v1beta1.ClusterJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1beta1.ClusterJobSpec{
			Entrypoint: "true", ClusterTemplate: &v1beta1.ClusterTemplate{Spec: newCluster("", "", 0).Spec},
		},
	}
}

func TestTheAPIServerAndTheRulesAgreeOnJobs(t *testing.T) {
	agree(t, "jobs", countsOfJobs)
}

// TestAJobFromBeforeARuleCanBeSuspendedAndDeleted: a rule that is newer than a job must not
// keep anyone from labelling, suspending, resuming or deleting it.
func TestAJobFromBeforeARuleCanBeSuspendedAndDeleted(t *testing.T) {
	t.Parallel()
	old := newJob(newNamespace(t), "old")
	old.Spec.ClusterTemplate.Spec.WorkerGroups[0].RayStartParams = badOption
	beforeARule(t, "clusterjobs", old)
	outlivesARule(t, old, func() { old.Spec.Retry = &v1beta1.Retry{Limit: 1} },
		func() { old.Spec.Suspend = new(true) }, func() { old.Spec.Suspend = new(false) })
}

// TestHugeJobsAreRefused: what is far too large or deep is refused in the words of the rule,
// before the policy has used up what the API server spends on one.
func TestHugeJobsAreRefused(t *testing.T) {
	namespace := newNamespace(t)
	policyInForce(t, namespace)
	for what, text := range map[string]string{
		"a long text":        `{"x":"` + strings.Repeat("a", 1<<20) + `"}`,
		"many numbers":       `{"x":[` + strings.Repeat("0,", 1<<17) + `0]}`,
		"many objects":       `{"x":[` + strings.Repeat("{},", 1<<16) + `{}]}`,
		"many keys":          `{` + keys(1<<13) + `}`,
		"many variables":     `{"env_vars":{` + keys(1<<13) + `}}`,
		"objects in objects": strings.Repeat(`{"a":`, 500) + "1" + strings.Repeat("}", 500),
		"many deep lists":    `{"x":[` + strings.Repeat("[[[[[0]]]]],", 1<<13) + `0]}`,
	} {
		job := newJob(namespace, "huge")
		job.Spec.RuntimeEnv = &runtime.RawExtension{Raw: []byte(text)}
		if err := shared.Create(t.Context(), job, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "at most 64 KiB together") {
			t.Errorf("%s of %d bytes are answered with %.300v", what, len(text), err)
		}
	}
}

func keys(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%q:\"\"", fmt.Sprint("k", i))
	}
	return strings.Join(all, ",")
}
