package service

import (
	"fmt"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit/anything"
)

// TestDecide_TakesAnyObject: an object may be older than a rule, and a CRD older than the operator.
func TestDecide_TakesAnyObject(t *testing.T) {
	for seed := range int64(1000) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			edit := func(spec *v1beta1.ClusterServiceSpec) { anything.Field(seed, spec) }
			of, seen := text(), Seen{Record: Record{Version: recordVersion}}
			opened(&of.Spec)
			edit(&of.Spec)
			if seen.Target, seen.TargetError = revisionOf(of); seen.TargetError == nil {
				done(t, edit)
			} else if plan := Decide(of, seen, desired.Site{}, at()); !plan.Stalled {
				t.Errorf("a service of which no revision can be made gives %+v", plan)
			}
		})
	}
}
