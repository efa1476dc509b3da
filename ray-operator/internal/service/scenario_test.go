package service_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	heads "github.com/heliostat-dev/heliostat/ray-operator/internal/poll/services"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// given makes a service and lets all come to rest.
func given(w *testkit.World, of *v1beta1.ClusterService, edits ...func(*v1beta1.ClusterService)) {
	w.Helper()
	for _, edit := range edits {
		edit(of)
	}
	w.Create(of)
	w.Settle()
}

// own is a world with a service on a cluster of its own with two workers.
func own(w *testkit.World, edits ...func(*v1beta1.ClusterService)) {
	w.Helper()
	given(w, testkit.OwnService("text", testkit.Group("cpu", 2)), edits...)
}

// serving asserts that a service serves on the cluster of a number, and that it is the only one.
func serving(w *testkit.World, number int) {
	w.Helper()
	w.ExpectService("text", "Ready", "Ready=True", "Reconciling=False", "Stalled=False", "Upgrading=False")
	if lost := w.Serving.Request("text"); lost != "" {
		w.Fatalf("a request is lost: %s", lost)
	}
	if have, want := w.ServiceClusters("text"), []string{clusterOf(w, number)}; !slices.Equal(have, want) {
		w.Fatalf("there are the clusters %q, want %q; the last upgrade is %+v", have, want, w.Service("text").Status.LastUpgrade)
	}
}

func clusterOf(w *testkit.World, number int) string {
	return naming.ServiceCluster("text", w.Service("text").UID, number)
}

// listsLiving asserts that no slice of the service's address lists a pod that is gone.
func listsLiving(w *testkit.World) {
	w.Helper()
	var slice discoveryv1.EndpointSlice
	slice.Namespace, slice.Name = testkit.Namespace, "text"
	w.Read(&slice)
	there := map[types.UID]bool{}
	for _, cluster := range w.ServiceClusters("text") {
		for _, pod := range w.Pods(cluster) {
			there[pod.UID] = pod.DeletionTimestamp == nil
		}
	}
	for _, endpoint := range slice.Endpoints {
		if !there[endpoint.TargetRef.UID] {
			w.Fatalf("a slice lists the pod %s, which is gone", endpoint.TargetRef.UID)
		}
	}
}

// code is another configuration, image another sort of pods.
func code(path string) func(*v1beta1.ClusterService) {
	return func(s *v1beta1.ClusterService) { s.Spec.ServeConfig = testkit.ServeConfig("text", path) }
}

func image(name string) func(*v1beta1.ClusterService) {
	return func(s *v1beta1.ClusterService) { s.Spec.ClusterTemplate.Spec.Image = name }
}

func suspended(is bool) func(*v1beta1.ClusterService) {
	return func(s *v1beta1.ClusterService) { s.Spec.Suspend = new(is) }
}

func strategy(of v1beta1.ServiceUpgradeType) func(*v1beta1.ClusterService) {
	return func(s *v1beta1.ClusterService) { s.Spec.UpgradeStrategy = &v1beta1.ServiceUpgradeStrategy{Type: of} }
}

// under asks for the service at each moment from now on.
func under(w *testkit.World) {
	w.Helper()
	w.Serving.Demand("text")
}

func TestServe(t *testing.T) {
	testkit.Play(t,
		testkit.Scenario{Name: "own", Run: func(w *testkit.World) {
			own(w)
			serving(w, 1)
		}},
		testkit.Scenario{Name: "head-name-taken", Run: func(w *testkit.World) { // by a Service that no cache holds
			w.Create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: testkit.Namespace, Name: "text-head"}})
			w.Create(testkit.OwnService("text", testkit.Group("cpu", 2)))
			w.During(2 * time.Minute)
			w.ExpectService("text", "Ready", "Ready=True", "Stalled=False", "NameConflict=True NameConflict")
			w.Delete(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: testkit.Namespace, Name: "text-head"}})
			w.After(time.Minute)
			w.ExpectService("text", "Ready", "Ready=True", "NameConflict=absent")
		}},
		testkit.Scenario{Name: "head-name-refused", Run: func(w *testkit.World) { // such as by a quota of Services
			w.Refuse(func(object client.Object) error {
				if _, is := object.(*corev1.Service); is && object.GetName() == "text-head" {
					return apierrors.NewForbidden(corev1.Resource("services"), "text-head", errors.New("exceeded quota: few, requested: services=1"))
				}
				return nil
			})
			w.Create(testkit.OwnService("text", testkit.Group("cpu", 2)))
			w.During(2 * time.Minute)
			w.ExpectService("text", "Ready", "Ready=True", "Stalled=False")
			w.Refuse(nil)
			w.After(time.Minute)
			w.ExpectService("text", "Ready", "Ready=True")
		}},
		testkit.Scenario{Name: "shared", Run: func(w *testkit.World) {
			w.Prepare(func() {
				w.Create(testkit.Cluster("demo", testkit.Group("cpu", 2)))
				w.Settle()
			})
			w.Serving.Plant("demo", "theirs", "{}")
			given(w, testkit.Service("text"))
			w.ExpectService("text", "Ready", "Ready=True")
			given(w, testkit.Service("other"))
			w.ExpectService("other", "Ready", "Ready=True")
			w.EditService("text", code("app:v2"))
			w.After(3 * time.Minute)
			w.ExpectService("text", "Ready", "Ready=True", "Upgrading=False")
			if starts := w.Serving.Starts("demo", "other"); starts != 1 {
				w.Fatalf("the other service was started %d times", starts)
			}
			w.Must(w.Client.Delete(w.Ctx, w.Service("text")))
			w.After(3 * time.Minute)
			if have := w.Serving.On("demo"); w.HasService("text") || !slices.Equal(have, []string{"other", "theirs"}) {
				w.Fatalf("%q run on the cluster", have)
			}
			w.ExpectService("other", "Ready", "Ready=True")
		}},
	)
}

func TestSharedClusterInTrouble(t *testing.T) {
	testkit.Play(t,
		testkit.Scenario{Name: "missing", Run: func(w *testkit.World) {
			given(w, testkit.Service("text"))
			w.ExpectService("text", "Starting", "Ready=False ClusterMissing")
			w.Create(testkit.Cluster("demo", testkit.Group("cpu", 1)))
			w.Settle()
			w.ExpectService("text", "Ready", "Ready=True")
		}},
		testkit.Scenario{Name: "suspended", Run: func(w *testkit.World) {
			w.Prepare(func() {
				w.Create(testkit.Cluster("demo", testkit.Group("cpu", 1)))
				w.Settle()
			})
			given(w, testkit.Service("text"))
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.Suspend = new(true) })
			w.After(2 * time.Minute)
			w.ExpectService("text", "Degraded", "Ready=False ClusterSuspended")
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.Suspend = new(false) })
			w.After(2 * time.Minute)
			w.ExpectService("text", "Ready", "Ready=True")
		}},
		testkit.Scenario{Name: "two-of-a-name", Run: func(w *testkit.World) {
			w.Prepare(func() {
				w.Create(testkit.Cluster("demo", testkit.Group("cpu", 1)))
				w.Settle()
			})
			given(w, testkit.Service("text"))
			w.After(2 * time.Second)
			given(w, testkit.Service("other"), func(s *v1beta1.ClusterService) { s.Spec.ServeConfig = testkit.ServeConfig("text", "app:mine") })
			w.ExpectService("other", "Pending", "Ready=False ServeCollision", "Stalled=True")
			w.ExpectService("text", "Ready", "Ready=True")
			w.Must(w.Client.Delete(w.Ctx, w.Service("text")))
			w.After(3 * time.Minute)
			w.ExpectService("other", "Ready", "Ready=True", "Stalled=False")
		}},
	)
}

// TestNeighbour_IsRefusedAlone: what Ray refuses of one service keeps no other from changing, nor from a new head.
func TestNeighbour_IsRefusedAlone(t *testing.T) {
	testkit.Play(t,
		testkit.Scenario{Name: "a-neighbour-is-refused", Run: func(w *testkit.World) {
			w.Serving.Refuse = func(_ string, config *heads.Config) string {
				if strings.Contains(string(config.Applications["other"]), "bad") {
					return "applications.0.num_gpus: Input should be at least 0"
				}
				return ""
			}
			w.Prepare(func() {
				w.Create(testkit.Cluster("demo", testkit.Group("cpu", 1)))
				w.Settle()
			})
			given(w, testkit.Service("text"))
			given(w, testkit.Service("other"), func(s *v1beta1.ClusterService) { s.Spec.ServeConfig = testkit.ServeConfig("other", "app:bad") })
			w.ExpectService("other", "Starting", "Ready=False ServeConfigRefused")
			w.ExpectService("text", "Ready", "Ready=True")
			w.EditService("text", code("app:v2"))
			w.After(3 * time.Minute)
			w.ExpectService("text", "Ready", "Ready=True", "Upgrading=False", "RolledBack=absent")
			w.Delete(w.Head("demo"))
			w.After(3 * time.Minute)
			w.ExpectService("text", "Ready", "Ready=True")
			w.EditService("other", func(s *v1beta1.ClusterService) { s.Spec.ServeConfig = testkit.ServeConfig("other", "app:v2") })
			w.After(3 * time.Minute)
			w.ExpectService("other", "Ready", "Ready=True")
		}},
	)
}

// TestLostNode_BlocksNoUpgrade: a pod of a former cluster that its node keeps is waited for by nobody.
func TestLostNode_BlocksNoUpgrade(t *testing.T) {
	testkit.Play(t,
		testkit.Scenario{Name: "another-upgrade", Run: func(w *testkit.World) {
			onOld := func(pod *corev1.Pod) string {
				if pod.Labels[v1beta1.LabelRole] == v1beta1.RoleWorker {
					return "old"
				}
				return "node-1"
			}
			w.Kubelet.Node = onOld
			own(w)
			w.Kubelet.Node = nil
			w.EditService("text", image("ray:two"))
			w.During(20 * time.Second)
			w.Silence("old")
			w.After(10 * time.Minute)
			serving(w, 2)
			w.EditService("text", image("ray:three"))
			w.After(10 * time.Minute)
			serving(w, 3)
			w.Answer("old")
			w.After(time.Minute)
		}},
	)
}

func TestUpgrade(t *testing.T) {
	testkit.Play(t,
		testkit.Scenario{Name: "code", Run: func(w *testkit.World) {
			own(w)
			under(w)
			w.EditService("text", code("app:v2"))
			w.After(3 * time.Minute)
			serving(w, 1)
		}},
		testkit.Scenario{Name: "image", Run: func(w *testkit.World) {
			own(w)
			under(w)
			w.EditService("text", image("ray:new"))
			w.After(5 * time.Minute)
			serving(w, 2)
		}},
		testkit.Scenario{Name: "half-the-room", Run: halfTheRoom},
		testkit.Scenario{Name: "there-and-back", Run: func(w *testkit.World) {
			own(w)
			under(w)
			former := w.Service("text").Spec.ClusterTemplate.Spec.Image
			w.EditService("text", image("ray:new"))
			w.During(35 * time.Second)
			w.EditService("text", image(former))
			w.After(5 * time.Minute)
			serving(w, 1)
		}},
		testkit.Scenario{Name: "three-deep", Run: func(w *testkit.World) {
			own(w)
			under(w)
			w.EditService("text", image("ray:two"))
			w.During(35 * time.Second)
			w.EditService("text", image("ray:three"))
			w.After(8 * time.Minute)
			serving(w, 3)
		}},
	)
}

func TestUpgrade_WaitsForSlices(t *testing.T) {
	testkit.Play(t,
		testkit.Scenario{Name: "slices-late", Run: func(w *testkit.World) { // nodes send requests for far longer than the drain
			w.Gateway.Slices = 20 * time.Second
			own(w, func(s *v1beta1.ClusterService) {
				soon := int32(2)
				s.Spec.UpgradeStrategy = &v1beta1.ServiceUpgradeStrategy{DrainSeconds: &soon, RetireAfterSeconds: &soon}
			})
			w.After(time.Minute)
			w.EditService("text", image("ray:new"))
			for range 60 {
				w.During(5 * time.Second)
				listsLiving(w)
			}
			w.After(time.Minute)
			serving(w, 2)
		}},
	)
}

// bad has an application fail that says that it is.
func bad(a testkit.Application) testkit.Deployed {
	return testkit.Deployed{Takes: 3 * time.Second, Fails: strings.Contains(a.Text, "bad"), Message: "no module named app"}
}

func TestBadVersion(t *testing.T) {
	testkit.Play(t,
		testkit.Scenario{Name: "config", Run: func(w *testkit.World) {
			w.Serving.Program = bad
			own(w)
			under(w)
			w.EditService("text", code("app:bad"))
			w.After(3 * time.Minute)
			w.ExpectService("text", "Ready", "Ready=True UpgradeRolledBack", "RolledBack=True UpgradeRolledBack", "Upgrading=False")
		}},
		testkit.Scenario{Name: "image", Run: func(w *testkit.World) {
			own(w)
			under(w)
			w.Serving.Program = func(a testkit.Application) testkit.Deployed {
				return testkit.Deployed{Takes: 3 * time.Second, Fails: true}
			}
			w.EditService("text", image("ray:new"))
			w.After(5 * time.Minute)
			w.ExpectService("text", "Ready", "Ready=True UpgradeRolledBack", "RolledBack=True UpgradeRolledBack", "Upgrading=False")
			serving(w, 1)
		}},
		testkit.Scenario{Name: "sickens", Run: func(w *testkit.World) {
			own(w)
			w.Serving.Program = func(a testkit.Application) testkit.Deployed {
				return testkit.Deployed{Takes: 3 * time.Second, Sickens: 15 * time.Second}
			}
			w.EditService("text", image("ray:new"))
			w.After(5 * time.Minute)
			w.ExpectService("text", "Ready", "RolledBack=True UpgradeRolledBack")
			serving(w, 1)
		}},
	)
}

// TestBadVersion_IsTriedAgainOnRequest once it would get on.
func TestBadVersion_IsTriedAgainOnRequest(t *testing.T) {
	w, fails := testkit.NewWorld(t), true
	own(w)
	under(w)
	w.Serving.Program = func(a testkit.Application) testkit.Deployed {
		return testkit.Deployed{Takes: 3 * time.Second, Fails: fails && strings.Contains(a.Text, "v2")}
	}
	w.EditService("text", code("app:v2"))
	w.After(3 * time.Minute)
	w.ExpectService("text", "Ready", "RolledBack=True UpgradeRolledBack")
	fails = false
	w.After(3 * time.Minute)
	w.ExpectService("text", "Ready", "RolledBack=True UpgradeRolledBack")
	w.EditService("text", func(s *v1beta1.ClusterService) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1beta1.AnnotationRetry, "1")
	})
	w.After(3 * time.Minute)
	w.ExpectService("text", "Ready", "Ready=True", "Upgrading=False", "RolledBack=absent")
}

// TestSpecThatCannotBeFollowed: what serves goes on as it is.
func TestSpecThatCannotBeFollowed(t *testing.T) {
	testkit.Play(t,
		testkit.Scenario{Name: "another-port", Run: func(w *testkit.World) {
			own(w)
			under(w)
			cluster := clusterOf(w, 1)
			generation := w.Cluster(cluster).Generation
			w.EditService("text", func(s *v1beta1.ClusterService) {
				s.Spec.ServeConfig.Raw = []byte(`{"applications":[{"import_path":"app:v1","name":"text","route_prefix":"/text"}],"http_options":{"port":9999}}`)
				s.Spec.ClusterTemplate.Spec.Image = "ray:new"
			})
			w.After(2 * time.Minute)
			w.ExpectService("text", "Ready", "Ready=True InvalidSpec", "Stalled=True InvalidSpec")
			if have := w.Cluster(cluster).Generation; have != generation {
				w.Fatalf("the cluster was changed: generation %d, was %d", have, generation)
			}
			w.EditService("text", func(s *v1beta1.ClusterService) { s.Spec.ServeConfig = testkit.ServeConfig("text", "app:v1") })
			w.After(5 * time.Minute)
			serving(w, 2)
		}},
		testkit.Scenario{Name: "https-while-suspended", Run: func(w *testkit.World) {
			own(w)
			secure := func(s *v1beta1.ClusterService) {
				s.Spec.ServeConfig.Raw = []byte(`{"applications":[{"import_path":"app:v1","name":"text","route_prefix":"/text"}],"http_options":{"ssl_certfile":"/c","ssl_keyfile":"/k"}}`)
			}
			w.EditService("text", secure)
			w.After(2 * time.Minute)
			w.ExpectService("text", "Ready", "Ready=True InvalidSpec", "Stalled=True InvalidSpec")
			w.EditService("text", suspended(true))
			w.After(3 * time.Minute)
			w.EditService("text", suspended(false))
			w.After(5 * time.Minute)
			serving(w, 2)
		}},
	)
}

func TestLeave(t *testing.T) {
	testkit.Play(t,
		testkit.Scenario{Name: "suspended", Run: func(w *testkit.World) {
			own(w)
			address := addressOf(w).UID
			w.EditService("text", suspended(true))
			w.After(3 * time.Minute)
			w.ExpectService("text", "Suspended", "Suspended=True ServiceSuspended", "Ready=absent", "Reconciling=False", "Stalled=False")
			for _, cluster := range w.ServiceClusters("text") {
				if pods := w.Pods(cluster); len(pods) > 0 {
					w.Fatalf("%d pods of cluster %s run", len(pods), cluster)
				}
			}
			w.EditService("text", suspended(false))
			w.After(3 * time.Minute)
			w.ExpectService("text", "Ready", "Ready=True", "Suspended=False")
			serving(w, 1)
			if now := addressOf(w).UID; now != address {
				w.Fatalf("it has another Service: %s, was %s", now, address)
			}
		}},
		testkit.Scenario{Name: "deleted", Run: func(w *testkit.World) {
			own(w)
			w.Must(w.Client.Delete(w.Ctx, w.Service("text")))
			w.After(5 * time.Minute)
			if w.HasService("text") {
				w.Fatalf("it is there")
			}
		}},
	)
}

// addressOf returns the Service of the service.
func addressOf(w *testkit.World) *corev1.Service {
	w.Helper()
	address := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: testkit.Namespace, Name: "text"}}
	w.Read(address)
	return address
}

// halfTheRoom is an upgrade by a candidate that has room for half of the service.
func halfTheRoom(w *testkit.World) {
	half := int32(50)
	own(w, func(s *v1beta1.ClusterService) {
		s.Spec.UpgradeStrategy = &v1beta1.ServiceUpgradeStrategy{Surge: &v1beta1.Surge{MaxSurgePercent: &half, StepPercent: &half}}
	})
	under(w)
	w.EditService("text", image("ray:new"))
	w.After(8 * time.Minute)
	serving(w, 2)
	if have := w.Cluster(clusterOf(w, 2)).Spec.WorkerGroups[0].Replicas; *have != 2 {
		w.Fatalf("%d workers are asked for", *have)
	}
}
