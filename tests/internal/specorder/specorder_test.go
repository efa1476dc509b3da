package specorder

import (
	"reflect"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
)

func TestReadPlan_OrdersAndLeavesOut(t *testing.T) {
	transform, err := readPlan([]byte(`{"priorities": {"a service": 7, "a job": 3}, "leftOut": ["a job"]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, node string
		kind       types.NodeType
		want       []any
	}{
		{"a planned container gets its priority", "a service", types.NodeTypeContainer, []any{ginkgo.SpecPriority(7)}},
		{"a planned spec outside of containers too", "a service", types.NodeTypeIt, []any{ginkgo.SpecPriority(7)}},
		{"one that is left out gets the label", "a job", types.NodeTypeContainer, []any{ginkgo.SpecPriority(3), ginkgo.Label(LeftOut)}},
		{"another one gets nothing", "a cluster", types.NodeTypeContainer, nil},
		{"a set-up of that name gets nothing", "a service", types.NodeTypeBeforeEach, nil},
	} {
		name, args, errs := transform(c.kind, ginkgo.Offset(0), c.node, []any{"first"})
		if want := append([]any{"first"}, c.want...); name != c.node || len(errs) != 0 || !reflect.DeepEqual(args, want) {
			t.Errorf("%s: got %q with %v, %v, want %v", c.name, name, args, errs, want)
		}
	}
	if _, err := readPlan([]byte("[")); err == nil {
		t.Error("a broken plan is read")
	}
}
