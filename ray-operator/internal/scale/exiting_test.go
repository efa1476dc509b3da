package scale

import (
	"reflect"
	"testing"
)

// TestAsManyExitAsAreOld: two counts that are equal are not nothing.
func TestAsManyExitAsAreOld(t *testing.T) {
	have := PlanRoll(RollPace{Wanted: 3, Unavailable: 1}, 1, []RollReplica{oldReady(0), newReady(1)})
	if want := (RollStep{Size: 2}); !reflect.DeepEqual(have, want) {
		t.Errorf("%+v, want %+v: the one that exits must not be replaced beside itself", have, want)
	}
}
