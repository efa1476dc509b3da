package cluster_test

import (
	"fmt"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit/anything"
)

// TestDecide_TakesAnyObject: an object may be older than a rule, and a CRD older than the operator.
func TestDecide_TakesAnyObject(t *testing.T) {
	for seed := range int64(1000) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			of := demo()
			anything.Field(seed, &of.Spec)
			done(of)
		})
	}
}
