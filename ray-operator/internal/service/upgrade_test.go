package service

import (
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/rollout"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// TestFault_OfALateVersionIsItsTime: what was last in its way is in the text alone.
func TestFault_OfALateVersionIsItsTime(t *testing.T) {
	p := &planner{service: text()}
	last := reason.Finding{Code: reason.ProxyFailing.Code, Text: "the proxy answers 503"}
	for cause, want := range map[rollout.Cause]string{
		rollout.Late:   reason.ServeNotHealthyInTime.Code,
		rollout.Sick:   last.Code,
		rollout.Failed: last.Code,
	} {
		if got := p.fault(cause, last).Reason; got != want {
			t.Errorf("cause %v: reason %s, want %s", cause, got, want)
		}
	}
}
