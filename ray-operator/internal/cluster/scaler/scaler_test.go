package scaler_test

import (
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/decision"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
)

// The program beside a head does not link the kinds' API, so it has the words of its own that this compares.
func TestProtocol_HasTheWordsOfTheAPI(t *testing.T) {
	for ours, theirs := range map[string]string{
		string(decision.Default): string(v1beta1.PaceDefault), string(decision.Conservative): string(v1beta1.PaceConservative),
		string(decision.Aggressive): string(v1beta1.PaceAggressive), protocol.Idle: v1beta1.RetireIdle,
		protocol.Unneeded: v1beta1.RetireUnneeded, protocol.NoCapacity: v1beta1.RetireNoCapacity, protocol.Late: v1beta1.RetireLate,
	} {
		if ours != theirs {
			t.Errorf("the protocol says %q, the API %q", ours, theirs)
		}
	}
}
