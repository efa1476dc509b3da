package schedule

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/index"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
)

// TestReconcile_StartsBesideNoForgedJob: a job that a user made with the schedule as its controller counts as no start. It
// keeps the name, which the status says; another one is no former job.
func TestReconcile_StartsBesideNoForgedJob(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		at   time.Time
		want string
	}{
		"under the name of the next":   {today("10:00:00"), "NameConflict"},
		"under the name of a later":    {today("11:00:00"), "ScheduleActive"},
		"under the name of an earlier": {today("08:00:00"), "ScheduleActive"},
	} {
		schedule := hourly(policy(v1beta1.ConcurrencyForbid))
		forged := newJob(schedule, test.at)
		delete(forged.Labels, v1beta1.LabelSchedule)
		builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(schedule, forged).WithStatusSubresource(schedule)
		for _, field := range index.Fields() {
			if _, is := field.Kind.(*v1beta1.ClusterJob); is {
				builder = builder.WithIndex(field.Kind, field.Name, field.Value)
			}
		}
		api := builder.Build()
		r := &Reconciler{
			Client: api, Writer: &kube.Writer{Client: api, Live: api}, Events: telemetry.Recorder{Events: events.NewFakeRecorder(8)},
			Clock: clocktesting.NewFakePassiveClock(today("10:00:00")),
		}
		key := client.ObjectKeyFromObject(schedule)
		_, _ = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}) // what it gives is in the status
		var seen v1beta1.ClusterJobSchedule
		var jobs v1beta1.ClusterJobList
		if err := api.Get(t.Context(), key, &seen); err != nil {
			t.Fatal(err)
		}
		if err := api.List(t.Context(), &jobs); err != nil {
			t.Fatal(err)
		}
		isStarted := test.want != "NameConflict"
		ready := meta.FindStatusCondition(seen.Status.Conditions, v1beta1.ConditionReady)
		if ready == nil || ready.Reason != test.want || (ready.Status == metav1.ConditionTrue) != isStarted || (len(jobs.Items) == 2) != isStarted {
			t.Errorf("%s: the schedule says %+v, and there are %d jobs", name, ready, len(jobs.Items))
		}
	}
}
