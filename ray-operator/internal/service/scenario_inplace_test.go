package service_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// inPlace is a world with a service whose pods are replaced where they are.
func inPlace(w *testkit.World, edits ...func(*v1beta1.ClusterService)) {
	w.Helper()
	own(w, append([]func(*v1beta1.ClusterService){strategy(v1beta1.ServiceUpgradeInPlace)}, edits...)...)
}

// workers is another sort of workers, and none of the head.
func workers(image string) func(*v1beta1.ClusterService) {
	return func(s *v1beta1.ClusterService) { s.Spec.ClusterTemplate.Spec.WorkerGroups[0].Image = image }
}

// keepAlive asks for what Serve reads at its first start only.
func keepAlive(s *v1beta1.ClusterService) {
	s.Spec.ServeConfig.Raw = []byte(`{"applications":[{"import_path":"app:v1","name":"text","route_prefix":"/text"}],"http_options":{"keep_alive_timeout_s":7}}`)
}

// underNotice asks for the service at each moment from now on. A request may be lost while the
// service says that it is not ready or that all its pods are replaced, or has yet to say
// anything of the spec that asks for it.
func underNotice(w *testkit.World) {
	w.Helper()
	w.Serving.DemandUnless("text", func(s *v1beta1.ClusterService) bool {
		told := s.Status.Conditions
		upgrading := meta.FindStatusCondition(told, v1beta1.ConditionUpgrading)
		return s.Status.ObservedGeneration < s.Generation || meta.IsStatusConditionFalse(told, v1beta1.ConditionReady) ||
			upgrading != nil && upgrading.Status == metav1.ConditionTrue && upgrading.Reason == reason.UpgradeRecreating.Code
	})
}

// built asserts that all pods of the service's cluster are of the images, the head's and the
// workers', and that nothing is left of how they came there.
func built(w *testkit.World, head, worker string) {
	w.Helper()
	name := clusterOf(w, 1)
	if have := w.Head(name).Spec.Containers[0].Image; have != head {
		w.Fatalf("the head has image %s, want %s", have, head)
	}
	for _, pod := range w.Workers(name, "cpu") {
		if have := pod.Spec.Containers[0].Image; have != worker {
			w.Fatalf("a worker has image %s, want %s", have, worker)
		}
	}
	w.Expect(name, "Ready=True", "UpToDate=True")
}

// of tells pods whose Ray container has an image.
func of(image string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool { return pod.Spec.Containers[0].Image == image }
}

const former = "rayproject/ray:2.60.0"

func TestInPlace(t *testing.T) {
	testkit.Play(t,
		testkit.Scenario{Name: "workers", Run: func(w *testkit.World) {
			inPlace(w)
			under(w)
			head := w.Head(clusterOf(w, 1)).UID
			w.EditService("text", workers("ray:new"))
			w.After(5 * time.Minute)
			serving(w, 1)
			built(w, former, "ray:new")
			if w.Head(clusterOf(w, 1)).UID != head {
				w.Fatalf("other workers cost the head")
			}
		}},
		testkit.Scenario{Name: "workers-and-code", Run: func(w *testkit.World) {
			inPlace(w)
			under(w)
			w.EditService("text", func(s *v1beta1.ClusterService) { workers("ray:new")(s); code("app:v2")(s) })
			w.After(5 * time.Minute)
			serving(w, 1)
			built(w, former, "ray:new")
			if starts := w.Serving.Starts(clusterOf(w, 1), "text"); starts != 2 {
				w.Fatalf("the application was started %d times", starts)
			}
		}},
		testkit.Scenario{Name: "head", AnyEpoch: true, Run: func(w *testkit.World) {
			inPlace(w)
			underNotice(w)
			w.EditService("text", image("ray:new"))
			w.After(5 * time.Minute)
			serving(w, 1)
			built(w, "ray:new", "ray:new")
			if w.Serving.Excused() == 0 {
				w.Fatalf("no request was lost: the head was not replaced")
			}
		}},
		testkit.Scenario{Name: "startup", AnyEpoch: true, Run: func(w *testkit.World) {
			inPlace(w)
			underNotice(w)
			head := w.Head(clusterOf(w, 1)).UID
			w.EditService("text", keepAlive)
			w.After(5 * time.Minute)
			serving(w, 1)
			built(w, former, former)
			if w.Head(clusterOf(w, 1)).UID == head {
				w.Fatalf("Serve has not started anew")
			}
		}},
	)
}

// TestInPlaceAgain: the spec is changed again before a change in place has ended.
func TestInPlaceAgain(t *testing.T) {
	testkit.Play(t,
		testkit.Scenario{Name: "there-and-back", Run: func(w *testkit.World) {
			inPlace(w)
			under(w)
			w.EditService("text", workers("ray:new"))
			w.During(10 * time.Second)
			w.EditService("text", workers(""))
			w.After(5 * time.Minute)
			serving(w, 1)
			built(w, former, former)
		}},
		testkit.Scenario{Name: "two-deep", AnyEpoch: true, Run: func(w *testkit.World) {
			inPlace(w)
			underNotice(w)
			w.EditService("text", image("ray:two"))
			w.During(12 * time.Second)
			w.EditService("text", workers("ray:three"))
			w.After(5 * time.Minute)
			serving(w, 1)
			built(w, "ray:two", "ray:three")
		}},
	)
}

// TestInPlaceBadVersion: what fails is taken back, with its pods.
func TestInPlaceBadVersion(t *testing.T) {
	rolledBack := func(w *testkit.World) {
		w.Helper()
		w.ExpectService("text", "Ready", "Ready=True UpgradeRolledBack", "RolledBack=True UpgradeRolledBack", "Upgrading=False")
		serving(w, 1)
		built(w, former, former)
	}
	testkit.Play(t,
		testkit.Scenario{Name: "workers", Run: func(w *testkit.World) {
			w.Serving.Program = bad
			inPlace(w)
			under(w)
			w.EditService("text", func(s *v1beta1.ClusterService) { workers("ray:new")(s); code("app:bad")(s) })
			w.After(5 * time.Minute)
			rolledBack(w)
		}},
		testkit.Scenario{Name: "head", AnyEpoch: true, Run: func(w *testkit.World) {
			w.Serving.Program = bad
			inPlace(w)
			underNotice(w)
			w.EditService("text", func(s *v1beta1.ClusterService) { image("ray:new")(s); code("app:bad")(s) })
			w.After(5 * time.Minute)
			rolledBack(w)
		}},
		testkit.Scenario{Name: "pods-that-never-start", Run: func(w *testkit.World) {
			w.Kubelet.Idle = of("ray:none")
			inPlace(w, func(s *v1beta1.ClusterService) {
				s.Spec.UpgradeStrategy.HealthyDeadlineSeconds = new(int32(60))
			})
			under(w)
			w.EditService("text", workers("ray:none"))
			w.After(5 * time.Minute)
			rolledBack(w)
		}},
	)
}

// TestInPlaceTells: a service whose pods are all replaced does not say that it is ready, and one
// whose workers are does.
func TestInPlaceTells(t *testing.T) {
	w := testkit.NewWorld(t)
	inPlace(w)
	w.EditService("text", image("ray:new"))
	w.During(2 * time.Second)
	w.ExpectService("text", "Upgrading", "Ready=False UpgradeRecreating", "Upgrading=True UpgradeRecreating", "Reconciling=True")
	w.After(5 * time.Minute)
	w.Kubelet.Idle = of("ray:slow")
	w.EditService("text", workers("ray:slow"))
	w.During(10 * time.Second)
	w.ExpectService("text", "Upgrading", "Ready=True UpgradeInPlace", "Upgrading=True UpgradeInPlace")
	w.EditService("text", func(s *v1beta1.ClusterService) { workers("")(s); image("ray:newer")(s) })
	w.During(time.Second)
	w.EditService("text", image("ray:new"))
	w.During(time.Second)
	w.ExpectService("text", "RollingBack", "Ready=False UpgradeRecreating", "Upgrading=True UpgradeRecreating")
}

// TestInPlaceBegins: what is under way ends the way it began.
func TestInPlaceBegins(t *testing.T) {
	testkit.Play(t,
		testkit.Scenario{Name: "after-a-candidate", Run: func(w *testkit.World) {
			own(w)
			under(w)
			w.EditService("text", image("ray:new"))
			w.During(35 * time.Second)
			w.EditService("text", strategy(v1beta1.ServiceUpgradeInPlace))
			w.After(5 * time.Minute)
			serving(w, 2)
		}},
		testkit.Scenario{Name: "before-a-candidate", Run: func(w *testkit.World) {
			w.Kubelet.Idle = of("ray:slow")
			inPlace(w)
			under(w)
			w.EditService("text", workers("ray:slow"))
			w.During(12 * time.Second)
			w.EditService("text", func(s *v1beta1.ClusterService) {
				strategy(v1beta1.ServiceUpgradeSurge)(s)
				image("ray:new")(s)
				workers("")(s)
			})
			w.After(5 * time.Minute)
			serving(w, 2)
		}},
		testkit.Scenario{Name: "then-suspended", AnyEpoch: true, Run: func(w *testkit.World) {
			w.Kubelet.Idle = of("ray:slow")
			inPlace(w)
			w.EditService("text", workers("ray:slow"))
			w.During(12 * time.Second)
			w.EditService("text", suspended(true))
			w.After(3 * time.Minute)
			w.EditService("text", func(s *v1beta1.ClusterService) { suspended(false)(s); workers("ray:new")(s) })
			w.After(5 * time.Minute)
			serving(w, 1)
			built(w, former, "ray:new")
		}},
		testkit.Scenario{Name: "then-its-cluster-is-deleted", AnyEpoch: true, AnyLoss: true, Run: func(w *testkit.World) {
			w.Kubelet.Idle = of("ray:slow")
			inPlace(w)
			w.EditService("text", workers("ray:slow"))
			w.During(12 * time.Second)
			w.EditService("text", workers("ray:new"))
			w.Must(w.Client.Delete(w.Ctx, w.Cluster(clusterOf(w, 1))))
			w.After(5 * time.Minute)
			w.ExpectService("text", "Ready", "Ready=True", "Upgrading=False")
		}},
	)
}

// TestGroups: groups of workers come and go on the cluster that serves, without a version.
func TestGroups(t *testing.T) {
	grouped := func(names ...string) func(*v1beta1.ClusterService) {
		return func(s *v1beta1.ClusterService) {
			all := &s.Spec.ClusterTemplate.Spec.WorkerGroups
			*all = (*all)[:1]
			for _, name := range names {
				*all = append(*all, testkit.Group(name, 1))
			}
		}
	}
	has := func(w *testkit.World, number, gpus int, revision int64) {
		w.Helper()
		serving(w, number)
		if have := len(w.Workers(clusterOf(w, number), "gpu")); have != gpus {
			w.Fatalf("there are %d workers of the other group, want %d", have, gpus)
		}
		if have := w.Service("text").Status.Active.Revision; have != revision {
			w.Fatalf("it is version %d, want %d", have, revision)
		}
	}
	testkit.Play(t,
		testkit.Scenario{Name: "more-and-fewer", Run: func(w *testkit.World) {
			own(w)
			under(w)
			w.EditService("text", grouped("gpu"))
			w.After(2 * time.Minute)
			has(w, 1, 1, 1)
			w.EditService("text", grouped())
			w.After(2 * time.Minute)
			has(w, 1, 0, 1)
		}},
		testkit.Scenario{Name: "more-during-an-upgrade", Run: func(w *testkit.World) {
			own(w)
			under(w)
			w.EditService("text", image("ray:new"))
			w.During(35 * time.Second)
			w.EditService("text", grouped("gpu"))
			w.After(5 * time.Minute)
			has(w, 2, 1, 2)
		}},
	)
}
