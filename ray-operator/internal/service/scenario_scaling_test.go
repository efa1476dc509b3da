package service_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// scales has Serve scale the service's deployment between bounds.
func scales(path string, least, most int) func(*v1beta1.ClusterService) {
	return func(s *v1beta1.ClusterService) { s.Spec.ServeConfig = testkit.ScaledConfig("text", path, least, most) }
}

// loaded is a world with a service that Serve has scaled to so many of at most six replicas.
func loaded(w *testkit.World, replicas int, edits ...func(*v1beta1.ClusterService)) {
	w.Helper()
	w.Serving.Loads("text", replicas)
	own(w, append([]func(*v1beta1.ClusterService){scales("app:v1", 1, 6)}, edits...)...)
	w.After(time.Minute)
	under(w)
}

// scaledTo asserts that so many replicas run, each of them started once.
func scaledTo(w *testkit.World, cluster int, replicas string) {
	w.Helper()
	shown := w.Service("text").Status.Active.Applications[0]
	if have := fmt.Sprintf("%d/%d", shown.RunningReplicas, shown.DesiredReplicas); have != replicas {
		w.Fatalf("%s replicas run, want %s", have, replicas)
	}
	if starts := w.Serving.Starts(clusterOf(w, cluster), "text"); starts != 1 {
		w.Fatalf("the application was started %d times", starts)
	}
}

// TestScaledService: Serve scales both versions by the requests that they get.
func TestScaledService(t *testing.T) {
	half := int32(50)
	testkit.Play(t,
		testkit.Scenario{Name: "image", Run: scaledImage},
		testkit.Scenario{Name: "half-the-room", Run: func(w *testkit.World) {
			loaded(w, 4, func(s *v1beta1.ClusterService) {
				s.Spec.UpgradeStrategy = &v1beta1.ServiceUpgradeStrategy{Surge: &v1beta1.Surge{MaxSurgePercent: &half, StepPercent: &half}}
			})
			w.EditService("text", image("ray:new"))
			w.After(8 * time.Minute)
			serving(w, 2)
			scaledTo(w, 2, "4/4")
		}},
		testkit.Scenario{Name: "more-load-meanwhile", Run: func(w *testkit.World) {
			loaded(w, 2)
			w.EditService("text", image("ray:new"))
			w.During(35 * time.Second)
			w.Serving.Loads("text", 5)
			w.After(5 * time.Minute)
			serving(w, 2)
			scaledTo(w, 2, "5/5")
		}},
		testkit.Scenario{Name: "there-and-back", Run: func(w *testkit.World) {
			loaded(w, 4)
			former := w.Service("text").Spec.ClusterTemplate.Spec.Image
			w.EditService("text", image("ray:new"))
			w.During(45 * time.Second)
			w.EditService("text", image(former))
			w.After(5 * time.Minute)
			serving(w, 1)
			scaledTo(w, 1, "4/4")
		}},
	)
}

// sleeping asserts that a service without a replica still answers.
func sleeping(w *testkit.World, cluster int) {
	w.Helper()
	w.ExpectService("text", "Ready", "Ready=True", "Upgrading=False", "Stalled=False")
	scaledTo(w, cluster, "0/0")
}

// TestSleepingService: Serve takes the last replica away when no requests come, and a request has it start one.
func TestSleepingService(t *testing.T) {
	fromZero := scales("app:v1", 0, 4)
	testkit.Play(t,
		testkit.Scenario{Name: "wakes-and-sleeps", Run: func(w *testkit.World) {
			own(w, fromZero)
			sleeping(w, 1)
			under(w)
			w.After(30 * time.Second)
			serving(w, 1)
			scaledTo(w, 1, "1/1")
			w.Serving.Demand("")
			w.After(3 * time.Minute)
			sleeping(w, 1)
			if lost := w.Serving.Request("text"); lost != "" {
				w.Fatalf("a request is lost: %s", lost)
			}
			w.During(20 * time.Second)
			scaledTo(w, 1, "1/1")
			w.After(3 * time.Minute)
			sleeping(w, 1)
		}},
		testkit.Scenario{Name: "upgraded-asleep", Run: func(w *testkit.World) {
			own(w, fromZero, func(s *v1beta1.ClusterService) { s.Spec.HealthPath = "/text/health" })
			w.EditService("text", image("ray:new"))
			w.After(5 * time.Minute)
			sleeping(w, 2)
			under(w)
			w.After(time.Minute)
			serving(w, 2)
		}},
	)
}

// scaledImage has a service that was scaled get another image.
func scaledImage(w *testkit.World) {
	loaded(w, 4)
	w.EditService("text", image("ray:new"))
	w.After(5 * time.Minute)
	serving(w, 2)
	scaledTo(w, 2, "4/4")
}
