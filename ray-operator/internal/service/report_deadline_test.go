package service

import (
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

func TestOverdue_NamesWhatAsksForAPerson(t *testing.T) {
	starts, fails := reason.ServeDeploying.Of("c", "Serve is starting"), reason.ApplicationFailed.Of("text", "c", "no module")
	for name, c := range map[string]struct {
		waited, deadline time.Duration
		waits            reason.Finding
		code             string
		left             time.Duration
		over             bool
	}{
		"in time":           {time.Minute, time.Hour, starts, starts.Code, 59 * time.Minute, false},
		"no longer":         {time.Hour, time.Hour, starts, reason.ServeNotHealthyInTime.Code, 0, true},
		"the cause is told": {time.Hour, time.Hour, fails, fails.Code, 0, true},
		"for ever":          {time.Hour, 0, starts, starts.Code, 0, false},
	} {
		told, left, over := judgeDeadline(c.waited, c.deadline, c.waits)
		if told.Code != c.code || left != c.left || over != c.over {
			t.Errorf("%s: %s, %s left, over is %v", name, told.Code, left, over)
		}
	}
}

// TestFirstVersion_HasADeadline: it is stalled after it, and no less tried; what serves has none.
func TestFirstVersion_HasADeadline(t *testing.T) {
	for name, c := range map[string]struct {
		after   int64
		good    bool
		stalled bool
	}{
		"before it":           {59, false, false},
		"after it":            {60, false, true},
		"a version of before": {60, true, false},
	} {
		s := serves(t)
		s.service.Spec.UpgradeStrategy = &v1beta1.ServiceUpgradeStrategy{HealthyDeadlineSeconds: number(60)}
		active := &s.seen.Record.Active
		if active.At = now - c.after; !c.good {
			active.Good, active.Healthy = "", 0
		}
		one := s.seen.Clusters[1].Answer.Serving.Applications["text"]
		one.State, one.Deployments = headclient.ApplicationDeploying, nil
		s.seen.Clusters[1].Answer.Serving.Applications["text"] = one
		plan := s.decide()
		if plan.Stalled != c.stalled || len(plan.Wants) != 1 || !c.stalled && !c.good && plan.Wake != time.Second {
			t.Errorf("%s: stalled is %v, wake in %s: %s", name, plan.Stalled, plan.Wake, plan.Finding.Text)
		}
	}
}
