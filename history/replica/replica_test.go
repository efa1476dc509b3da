package replica

import (
	"fmt"
	"slices"
	"testing"
)

func TestOrder_DividesClustersAndKeepsThem(t *testing.T) {
	first := map[string]int{}
	for i := range 1000 {
		cluster := fmt.Sprint("cluster-", i)
		order := Order(cluster, []string{"a:1", "b:1", "c:1"})
		if other := Order(cluster, []string{"c:1", "a:1", "b:1"}); !slices.Equal(order, other) {
			t.Fatalf("%s is %v and %v", cluster, order, other)
		}
		if two := Order(cluster, []string{"a:1", "b:1"}); order[0] != "c:1" && two[0] != order[0] {
			t.Fatalf("%s moves from %s to %s, whose replica stayed", cluster, order[0], two[0])
		}
		first[order[0]]++
	}
	for replica, count := range first {
		if count < 250 || count > 420 {
			t.Errorf("%s is preferred by %d of 1000 clusters", replica, count)
		}
	}
}
