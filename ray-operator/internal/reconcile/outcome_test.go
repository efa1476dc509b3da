package reconcile_test

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

func TestEnd_WritesTheStatusThatIsTrue(t *testing.T) {
	away := errors.New("no answer")
	late := &fault.Wait{For: "the cache"}
	forbidden := fault.Wrap(apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("quota")), "create Pod a")
	done := []telemetry.Event{{Finding: reason.Settled.Of()}}
	for name, c := range map[string]struct {
		outcome reconcile.Outcome
		told    error
		writes  bool
		again   time.Duration
		err     error
	}{
		"all was done":                   {outcome: reconcile.Outcome{Events: done}, writes: true, again: 3 * time.Second},
		"nobody answered":                {outcome: reconcile.Outcome{Err: away}, err: away},
		"the cache is late":              {outcome: reconcile.Outcome{Err: late}, again: time.Second},
		"what was refused is for people": {outcome: reconcile.Outcome{Err: forbidden}, writes: true, again: reconcile.Recheck},
		"a status that tells of it":      {outcome: reconcile.Outcome{Events: done, Err: away, IsTold: true}, writes: true, err: away},
		"a status that is not written":   {outcome: reconcile.Outcome{}, told: away, writes: true, err: away},
		"a refusal that is not told":     {outcome: reconcile.Outcome{Err: forbidden}, told: away, writes: true, err: away},
	} {
		recorder, wrote := events.NewFakeRecorder(9), false
		ending := reconcile.Ending{
			Object: &v1beta1.ClusterJob{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, Events: telemetry.Recorder{Events: recorder}, Wake: 5 * time.Second,
			WriteStatus: func() (time.Duration, error) { wrote = true; return 3 * time.Second, c.told },
		}
		result, err := ending.End(c.outcome)
		if wrote != c.writes || result != (ctrl.Result{RequeueAfter: c.again}) || !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
			t.Errorf("%s: written %v, again after %s, %v", name, wrote, result.RequeueAfter, err)
		}
		if len(recorder.Events) != len(c.outcome.Events) {
			t.Errorf("%s: %d events", name, len(recorder.Events))
		}
	}
}
