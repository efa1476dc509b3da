package rest

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

func TestGetObject_HidesTheClusterOfAJob(t *testing.T) {
	const path, secret = "/v1/namespaces/team-a/jobs/fit", "image registry.example/secret cannot be pulled"
	of := func(may ...string) string {
		b := newBed(t, may...)
		broken := cluster("team-a", "demo")
		broken.Status.Conditions = []metav1.Condition{
			{Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: "ImagePullFailed", Message: secret},
			{Type: v1beta1.ConditionHeadReady, Status: metav1.ConditionFalse, Reason: "ImagePullFailed", Message: secret},
		}
		job := &v1beta1.ClusterJob{ObjectMeta: meta("team-a", "fit")}
		job.Spec.ClusterRef = &v1beta1.ClusterReference{Name: "demo"}
		b.put(t, view.Clusters, broken)
		b.put(t, view.Jobs, job)
		code, answer := b.send(t, "GET", path, "")
		if code != 200 {
			t.Fatalf("it is %d, %v", code, answer)
		}
		return fmt.Sprint(answer)
	}
	if all := of("*"); !strings.Contains(all, secret) {
		t.Fatalf("with all rights it does not say why: %s", all)
	}
	if some := of("get clusterjobs team-a"); strings.Contains(some, secret) || !strings.Contains(some, "hidden:[clusters pods]") {
		t.Errorf("without a right to clusters it says %s", some)
	}
}
