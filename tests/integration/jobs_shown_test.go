package integration

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// TestWhatKubectlShowsOfJobs reads columns as people do, waits as scripts do, and describes.
func TestWhatKubectlShowsOfJobs(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	headsIn(t, namespace, willing)
	startOperator(t, "--watch-namespaces="+namespace)
	cluster := create(t, namespace, 1, 0)[0]
	failing := jobOn(cluster, "failing", "work 100 1,2")
	failing.Spec.Retry = &v1beta1.Retry{Limit: 1, BackoffSeconds: new(int32(0))}
	must(t, shared.Create(t.Context(), jobOn(cluster, "good", "work 1200 0")))
	must(t, shared.Create(t.Context(), failing))

	kubectl(t, namespace, "wait", "cjob/good", "--for=condition=Complete", "--timeout=90s")
	kubectl(t, namespace, "wait", "clusterjob/failing", "--for=condition=Finished", "--timeout=90s")
	rows := kubectl(t, namespace, "get", "cjob")
	for _, row := range []string{
		`^NAME +PHASE +REASON +CLUSTER +ATTEMPT +DURATION +AGE\n`,
		`(?m)^good +Succeeded +JobSucceeded +c0 +1 +\d+s +\d+s$`,
		`(?m)^failing +Failed +EntrypointFailed +c0 +2/2 +\d+s +\d+s$`,
	} {
		if !regexp.MustCompile(row).MatchString(rows) {
			t.Errorf("kubectl get cjob has nothing like %s:\n%s", row, rows)
		}
	}
	wide := kubectl(t, namespace, "get", "heliostat", "-o", "wide")
	for _, row := range []string{
		`(?m)^clusterjob\S*good +Succeeded +JobSucceeded +c0 +1 +\d+s +\d+s +work 1200 0$`,
		`(?m)^clusterjob\S*failing +Failed +EntrypointFailed +c0 +2/2 +\d+s +\d+s +work 100 1,2$`,
	} {
		if !regexp.MustCompile(row).MatchString(wide) {
			t.Errorf("kubectl get heliostat -o wide has nothing like %s:\n%s", row, wide)
		}
	}
	said := kubectl(t, namespace, "describe", "cjob", "failing")
	for _, part := range []string{"Exit Code:", "attempt 1\n", "attempt 2\n", "Log State:", "EntrypointFailed", "Warning"} {
		if !strings.Contains(said, part) {
			t.Errorf("kubectl describe lacks %q:\n%s", part, said)
		}
	}
	job, err := shared.FindJob(t.Context(), types.NamespacedName{Namespace: namespace, Name: "good"})
	must(t, err)
	if token := shared.heads.of(namespace)[0].token; token == "" || strings.Contains(kubectl(t, namespace, "get", "cjob", job.Name, "-o", "yaml"), token) {
		t.Error("the cluster has no token, or the job's status has it")
	}
}

// kubectl runs the one that belongs to the instance.
func kubectl(t *testing.T, namespace string, args ...string) string {
	t.Helper()
	program := os.Getenv("KUBECTL")
	if program == "" {
		t.Fatal("find kubectl: KUBECTL is not set: run make integration, or export what localkube status prints")
	}
	out, err := exec.CommandContext(t.Context(), program, append([]string{"--namespace", namespace}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
