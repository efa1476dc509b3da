package service

import (
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/services"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/upgrade"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// TestShare_NeverTakesTheLastRequests: on the way back, an operator that was just started has asked no pod of the active
// version, none of which has requests. Those of the candidate keep theirs until one of the others is known to answer.
func TestShare_NeverTakesTheLastRequests(t *testing.T) {
	for name, c := range map[string]struct {
		asked       bool
		open, close int
	}{
		"nothing is known of the active version": {false, 0, 0},
		"the active version answers":             {true, 2, 2},
	} {
		s := upgrades(t, nil)
		for _, pod := range s.seen.Clusters[2].Pods[1:] {
			pod.Labels[naming.ServeLabel("text")] = v1beta1.ServeOn
		}
		active := s.seen.Clusters[1]
		for _, pod := range active.Pods {
			delete(pod.Labels, naming.ServeLabel("text"))
		}
		if !c.asked {
			active.Answer.Probes = map[services.Probe]services.Reply{}
		}
		s.seen.Record.Active.Good = s.seen.Record.Active.Revision
		s.seen.Record.Shift = upgrade.Shift{Active: 100, Candidate: 100, Proven: true, Back: true, At: time.Unix(now, 0)}
		r := route(s.advanced(assessment{active: Health{Open: active.Pods[1:]}, candidate: Health{Open: s.seen.Clusters[2].Pods[1:]}}))
		if len(r.open) != c.open || len(r.close) != c.close {
			t.Errorf("%s: %d get requests and %d lose them, want %d and %d", name, len(r.open), len(r.close), c.open, c.close)
		}
	}
}
