package app

import (
	"context"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/archivecert"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
)

// TestHistory_AwaitsItsAuthorityForAMoment: passes wait until the authority is known, and not for good. Without history none waits.
func TestHistory_AwaitsItsAuthorityForAMoment(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC))
	passed := 0
	passes := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		passed++
		return reconcile.Result{}, nil
	})
	h := &history{certificates: &archivecert.Keeper{}, clock: now, began: sync.OnceValue(now.Now)}
	for _, step := range []struct {
		after  time.Duration
		passed int
	}{{0, 0}, {authorityWithin - 1, 0}, {1, 1}} {
		now.Step(step.after)
		result, err := h.await(passes).Reconcile(t.Context(), reconcile.Request{})
		if err != nil || passed != step.passed || (result.RequeueAfter == authorityAgain) != (step.passed == 0) {
			t.Errorf("after %s more %d passes were made, %v, %v", step.after, passed, result, err)
		}
	}
	var none *history
	none.tell(&cluster.Reconciler{})
	if _, err := none.await(passes).Reconcile(t.Context(), reconcile.Request{}); err != nil || passed != 2 || none.wakes(nil) != nil {
		t.Errorf("without history %d passes were made, %v", passed, err)
	}
}
