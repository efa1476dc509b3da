package cluster_test

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// used is a running cluster with an idle policy of two minutes, and somebody who uses it.
func used(w *testkit.World, action v1beta1.IdleAction) {
	w.Helper()
	cluster := testkit.Cluster("demo", testkit.Group("cpu", 2))
	cluster.Spec.IdlePolicy = &v1beta1.IdlePolicy{AfterSeconds: 120, Action: action}
	w.Create(cluster)
	w.Settle()
	w.Expect("demo", ready, "Suspended=absent")
}

func unused(w *testkit.World) { w.Ray.IdleSince = w.Clock.Now() }

const isIdle = "Suspended=True SuspendedIdle"

func TestIdle(t *testing.T) {
	play(t,
		// The record holds the value that does not wake it; nothing else knows.
		testkit.Scenario{Name: "idle-suspended-and-woken", Run: idleWoken, KeepRecord: true},
		testkit.Scenario{Name: "idle-suspended-and-edited", Run: func(w *testkit.World) {
			used(w, v1beta1.IdleSuspend)
			unused(w)
			w.After(4 * time.Minute)
			gaveBack(w, isIdle)
			w.Ray.IdleSince = time.Time{}
			w.Scale("demo", 1)
			w.Settle()
			w.Expect("demo", ready, "Suspended=absent")
			sizes(w, "demo", map[string]int{"": 1, "cpu": 1})
			epochIs(w, 2)
		}},
		testkit.Scenario{Name: "idle-suspended-and-by-spec", Run: func(w *testkit.World) {
			used(w, v1beta1.IdleSuspend)
			unused(w)
			w.After(4 * time.Minute)
			suspend(w, true)
			w.Settle()
			gaveBack(w, isSuspended)
			w.Ray.IdleSince = time.Time{}
			suspend(w, false)
			w.Settle()
			back(w, 2)
		}},
		testkit.Scenario{Name: "idle-deleted", Run: func(w *testkit.World) {
			used(w, v1beta1.IdleDelete)
			unused(w)
			w.After(4 * time.Minute)
			nothingLeft(w)
			if err := w.Client.Get(w.Ctx, clientKey("demo"), &v1beta1.ComputeCluster{}); !apierrors.IsNotFound(err) {
				w.Fatalf("the idle cluster is still there: %v", err)
			}
		}},
	)
}

func TestNotIdle(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "idle-told", Run: func(w *testkit.World) {
			used(w, v1beta1.IdleNone)
			unused(w)
			w.After(4 * time.Minute)
			w.Expect("demo", ready, "Suspended=False IdleLimitReached")
			w.Ray.IdleSince = time.Time{}
			w.After(time.Minute)
			w.Expect("demo", ready, "Suspended=absent")
			epochIs(w, 1)
		}},
		testkit.Scenario{Name: "idle-kept", Run: idleKept},
		testkit.Scenario{Name: "used-in-time", Run: func(w *testkit.World) {
			used(w, v1beta1.IdleSuspend)
			unused(w)
			w.After(time.Second)
			w.Ray.IdleSince = time.Time{}
			w.After(10 * time.Minute)
			back(w, 1)
		}},
		testkit.Scenario{Name: "head-says-nothing-of-use", Run: func(w *testkit.World) {
			used(w, v1beta1.IdleSuspend)
			unused(w)
			w.Ray.Silent = all
			w.After(10 * time.Minute)
			back(w, 1)
		}},
	)
}

// idleKept keeps an idle cluster for an hour: longer than its policy says, and no longer.
func idleKept(w *testkit.World) {
	used(w, v1beta1.IdleSuspend)
	unused(w)
	w.After(time.Minute)
	w.Expect("demo", ready, "Suspended=False IdleSoon")
	w.Annotate(w.Cluster("demo"), v1beta1.AnnotationKeepUntil, w.Clock.Now().Add(time.Hour).Format(time.RFC3339))
	w.After(59 * time.Minute)
	w.Expect("demo", ready, "Suspended=False IdleKept")
	sizes(w, "demo", map[string]int{"": 1, "cpu": 2})
	epochIs(w, 1)
	w.After(3 * time.Minute)
	gaveBack(w, isIdle)
	w.Ray.IdleSince = time.Time{}
	w.Scale("demo", 1)
	w.Settle()
	w.Expect("demo", ready, "Suspended=absent")
	epochIs(w, 2)
}

// idleWoken wakes an idle cluster by an annotation: by a new value of it, each time.
func idleWoken(w *testkit.World) {
	used(w, v1beta1.IdleSuspend)
	for epoch, value := range []string{"please", "again"} {
		unused(w)
		w.After(4 * time.Minute)
		gaveBack(w, isIdle)
		w.Ray.IdleSince = time.Time{}
		w.Annotate(w.Cluster("demo"), v1beta1.AnnotationResume, value)
		w.Settle()
		back(w, int64(epoch)+2)
	}
}
