package cluster

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

func TestTokenPause(t *testing.T) {
	for clusters, want := range map[int]time.Duration{
		0: 15 * time.Minute, 120: 15 * time.Minute, 121: 30 * time.Minute, 240: 30 * time.Minute, 700: 2 * time.Hour, 4000: 16 * time.Hour,
	} {
		if got := tokenPause(clusters); got != want {
			t.Errorf("%d clusters: %v, want %v", clusters, got, want)
		}
	}
}

// TestTokenLooks_AreFewForAllClusters: a fleet at rest is passed over each time that it asks to be, and now and then for other
// reasons. Each cluster has its turn within the pause, and they come one by one.
func TestTokenLooks_AreFewForAllClusters(t *testing.T) {
	const day = 24 * time.Hour
	start := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for _, clusters := range []int{1, 100, 4000} {
		tokens, perHour := Tokens{}, map[time.Duration]int{}
		fleet := make([]*v1beta1.ComputeCluster, clusters)
		for i := range fleet {
			name := fmt.Sprintf("c-%d", i)
			fleet[i] = &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid of " + name)}}
			tokens.recallToken(fleet[i], start)
		}
		pause := tokenPause(clusters)
		for i, cluster := range fleet {
			last := start
			for now := start; now.Before(start.Add(day)); {
				_, good := tokens.recallToken(cluster, now)
				if good == 0 {
					if late := now.Sub(last); late > pause {
						t.Fatalf("%d clusters: %s is looked at after %v, want %v at most", clusters, cluster.Name, late, pause)
					}
					tokens.keepToken(cluster, Token{}, now)
					perHour[now.Sub(start)/time.Hour]++
					last = now
					continue
				}
				now = now.Add(min(good, time.Duration(1+i%90)*time.Minute))
			}
			if left := start.Add(day).Sub(last); left > pause {
				t.Fatalf("%d clusters: %s is not looked at for %v", clusters, cluster.Name, left)
			}
		}
		for hour, looks := range perHour {
			if perMinute := float64(looks) / 60; perMinute >= 10 {
				t.Errorf("%d clusters: %.1f looks a minute in hour %d, want fewer than 10", clusters, perMinute, hour)
			}
		}
	}
}
