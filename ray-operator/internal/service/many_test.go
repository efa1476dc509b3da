package service_test

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

var upgrades = flag.Int("upgrades", 6, "how many upgrades one service goes through")

// TestManyUpgrades: one service goes from version to version, in place, to other pods, there and
// back, and three deep, and is asked at each moment. No request is lost.
func TestManyUpgrades(t *testing.T) {
	w := testkit.NewWorld(t)
	own(w)
	under(w)
	before := w.Serving.Asked()
	for i := range *upgrades {
		switch i % 4 {
		case 0:
			w.EditService("text", code(fmt.Sprintf("app:v%d", i)))
		case 1:
			w.EditService("text", image(fmt.Sprintf("ray:%d", i)))
		case 2:
			former := w.Service("text").Spec.DeepCopy()
			w.EditService("text", image(fmt.Sprintf("ray:%d", i)))
			w.During(time.Duration(5+i%40) * time.Second)
			w.EditService("text", func(s *v1beta1.ClusterService) { s.Spec = *former })
		default:
			w.EditService("text", image(fmt.Sprintf("ray:%d", i)))
			w.During(time.Duration(5+i%40) * time.Second)
			w.EditService("text", image(fmt.Sprintf("ray:%d-after", i)))
		}
		w.After(8 * time.Minute)
		w.ExpectService("text", "Ready", "Ready=True", "Upgrading=False", "Reconciling=False")
		if n := len(w.ServiceClusters("text")); n != 1 {
			t.Fatalf("after change %d there are %d clusters", i, n)
		}
	}
	t.Logf("%d requests in %d upgrades, none lost", w.Serving.Asked()-before, *upgrades)
}
