package integration

import (
	"context"
	"fmt"
	"regexp"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// minutes is how long a schedule of each minute may take to come twice.
const minutes = 150 * time.Second

// TestASchedule_StartsOneJobForATime has a job that waits for a cluster, so that the next one waits for it.
func TestASchedule_StartsOneJobForATime(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	startOperator(t, "--watch-namespaces="+namespace)
	job := newJob(namespace, "like")
	job.Spec.ClusterTemplate, job.Spec.ClusterRef = nil, &v1beta1.ClusterReference{Name: "later"}
	schedule := newSchedule(namespace, "minutely", job)
	schedule.Spec.Schedule, schedule.Spec.TimeZone, schedule.Spec.ConcurrencyPolicy = "* * * * *", "Asia/Kolkata", v1beta1.ConcurrencyForbid
	must(t, shared.Create(t.Context(), schedule))

	readySays(t, schedule, reason.PreviousJobActive.Code)
	var jobs v1beta1.ClusterJobList
	must(t, shared.List(t.Context(), &jobs, client.InNamespace(namespace), client.MatchingLabels{v1beta1.LabelSchedule: "minutely"}))
	if len(jobs.Items) != 1 {
		t.Fatalf("there are %d jobs, want 1", len(jobs.Items))
	}
	made := &jobs.Items[0]
	at, err := time.Parse(time.RFC3339, made.Annotations[v1beta1.AnnotationScheduledAt])
	must(t, err)
	if _, offset := at.Zone(); offset != 19800 || made.Name != naming.ScheduledJob("minutely", at) || !metav1.IsControlledBy(made, schedule) || made.CreationTimestamp.Time.Before(at) {
		t.Errorf("%s of %v was made at %s, for %s", made.Name, made.OwnerReferences, made.CreationTimestamp, at)
	}
	row := `(?m)^minutely +\* \* \* \* \* +Asia/Kolkata +1 +\d+[ms]\S* +\d{4}-\S+:00Z +PreviousJobActive +\d+\S*$`
	if rows := kubectl(t, namespace, "get", "cjs"); !regexp.MustCompile(row).MatchString(rows) {
		t.Errorf("kubectl get cjs has nothing like %s:\n%s", row, rows)
	}

	kubectl(t, namespace, "patch", "cjs", "minutely", "--type=merge", "-p", `{"spec":{"suspend":true}}`)
	kubectl(t, namespace, "wait", "cjs/minutely", "--for=condition=Suspended", "--timeout=60s")
	kubectl(t, namespace, "patch", "cjs", "minutely", "--type=merge", "-p", `{"spec":{"suspend":false,"timeZone":"Mars/Olympus"}}`)
	readySays(t, schedule, reason.TimeZoneUnknown.Code)
}

// readySays waits until the condition Ready of a schedule has a reason.
func readySays(t *testing.T, schedule *v1beta1.ClusterJobSchedule, code string) {
	t.Helper()
	must(t, live.Until(t.Context(), minutes, "the schedule to say "+code, func(ctx context.Context) error {
		if err := shared.Get(ctx, client.ObjectKeyFromObject(schedule), schedule); err != nil {
			return fmt.Errorf("read the schedule: %w", err)
		}
		ready := meta.FindStatusCondition(schedule.Status.Conditions, v1beta1.ConditionReady)
		if ready == nil || ready.Reason != code {
			return fmt.Errorf("its status is %+v", schedule.Status)
		}
		return nil
	}))
}
