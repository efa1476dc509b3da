package cluster_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// The stores that there are.
func givenRedis() *v1beta1.ControlStore {
	return &v1beta1.ControlStore{Redis: &v1beta1.GivenRedis{Address: "redis://redis.infra:6379"}}
}

func managedRedis() *v1beta1.ControlStore {
	return &v1beta1.ControlStore{ManagedRedis: &v1beta1.ManagedRedis{}}
}

func embedded() *v1beta1.ControlStore {
	return &v1beta1.ControlStore{Embedded: &v1beta1.EmbeddedStore{}}
}

const serves = "ControlStoreReady=True StoreServes"

// keeping brings a cluster with a control store and two workers to Ready.
func keeping(w *testkit.World, store *v1beta1.ControlStore) {
	w.Helper()
	cluster := testkit.Cluster("demo", testkit.Group("cpu", 2))
	cluster.Spec.ControlStore = store
	w.Create(cluster)
	w.Settle()
	bind(w)
	w.Settle()
	w.Expect("demo", ready, serves)
	session(w, 1)
}

// bind binds the store's claim, if there is one.
func bind(w *testkit.World) {
	w.Helper()
	var claim corev1.PersistentVolumeClaim
	if err := w.Client.Get(w.Ctx, clientKey("demo-store"), &claim); apierrors.IsNotFound(err) {
		return
	}
	if claim.Status.Phase != corev1.ClaimBound {
		claim.Status.Phase = corev1.ClaimBound
		w.Must(w.Client.Status().Update(w.Ctx, &claim))
	}
}

func session(w *testkit.World, want int64) {
	w.Helper()
	if store := w.Cluster("demo").Status.ControlStore; store == nil || store.Session != want {
		w.Fatalf("the store is %+v, want session %d", store, want)
	}
}

// kept asserts that a head came back in an epoch, and no worker was touched.
func kept(w *testkit.World, workers []string, epoch int64) {
	w.Helper()
	w.Expect("demo", ready, serves, "UpToDate=True")
	untouched(w, workers, w.Workers("demo", "cpu"))
	sizes(w, "demo", map[string]int{"": 1})
	epochIs(w, epoch)
	session(w, 1)
}

// renewed asserts that head and workers are new.
func renewed(w *testkit.World, former []string, epoch int64) {
	w.Helper()
	w.Expect("demo", ready, serves)
	sizes(w, "demo", map[string]int{"": 1, "cpu": 2})
	for _, uid := range testkit.UIDs(w.Pods("demo")) {
		if slices.Contains(former, uid) {
			w.Fatalf("a pod of the lost session is still there")
		}
	}
	epochIs(w, epoch)
	session(w, epoch)
}

// headComesBack loses the head in a way and finds it back.
func headComesBack(store func() *v1beta1.ControlStore, epoch int64, lose func(*testkit.World, *corev1.Pod)) func(*testkit.World) {
	return func(w *testkit.World) {
		keeping(w, store())
		workers := testkit.UIDs(w.Workers("demo", "cpu"))
		lose(w, w.Head("demo"))
		w.Settle()
		kept(w, workers, epoch)
	}
}

func TestStore(t *testing.T) {
	var all []testkit.Scenario
	for name, store := range map[string]func() *v1beta1.ControlStore{"redis": givenRedis, "managed": managedRedis, "embedded": embedded} {
		all = append(all,
			testkit.Scenario{Name: name + "-head-deleted", Run: headComesBack(store, 2, func(w *testkit.World, head *corev1.Pod) { w.Delete(head) })},
			testkit.Scenario{Name: name + "-head-gone-without-trace", Run: headComesBack(store, 2, func(w *testkit.World, head *corev1.Pod) { w.Force(head) })},
			testkit.Scenario{Name: name + "-head-failed", Run: headComesBack(store, 2, func(w *testkit.World, head *corev1.Pod) {
				w.Clock.Step(time.Minute)
				w.Must(w.Kubelet.Fail(w.Ctx, head, "Evicted"))
			})},
			testkit.Scenario{Name: name + "-head-ended-in-place", Run: headComesBack(store, 1, func(w *testkit.World, head *corev1.Pod) {
				w.Clock.Step(time.Minute)
				w.Must(w.Kubelet.Restart(w.Ctx, head))
			})},
			testkit.Scenario{Name: name + "-suspended", Run: func(w *testkit.World) {
				keeping(w, store())
				suspend(w, true)
				w.Settle()
				gaveBack(w, isSuspended, "ControlStoreReady=absent")
				if set := (&appsv1.StatefulSet{}); w.Client.Get(w.Ctx, clientKey(naming.Store("demo")), set) == nil && *set.Spec.Replicas != 0 {
					w.Fatalf("the Redis of a suspended cluster goes on")
				}
				suspend(w, false)
				w.Settle()
				w.Expect("demo", ready, serves)
				sizes(w, "demo", map[string]int{"": 1, "cpu": 2})
				epochIs(w, 2)
				session(w, 1)
			}},
			testkit.Scenario{Name: name + "-recreated", Run: func(w *testkit.World) {
				keeping(w, store())
				former := testkit.UIDs(w.Pods("demo"))
				w.Edit("demo", func(c *v1beta1.ComputeCluster) {
					c.Spec.UpgradeStrategy = &v1beta1.ClusterUpgradeStrategy{Type: v1beta1.ClusterUpgradeRecreate}
					c.Spec.Image = "another"
				})
				w.Settle()
				w.Expect("demo", ready, serves, "UpToDate=True")
				for _, uid := range testkit.UIDs(w.Pods("demo")) {
					if slices.Contains(former, uid) {
						w.Fatalf("a pod is still what it was")
					}
				}
				session(w, 1)
			}, AnyEpoch: true, Waits: true},
			testkit.Scenario{Name: name + "-deleted", Run: func(w *testkit.World) {
				keeping(w, store())
				w.Delete(w.Cluster("demo"))
				w.Settle()
				w.After(time.Minute)
			}},
		)
	}
	play(t, all...)
}

// unreachable is what is said of a Redis that is away.
func unreachable() *reason.Finding {
	finding := reason.StoreUnreachable.Of("redis://redis.infra:6379", "connection refused")
	return &finding
}

func TestStoreTrouble(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "away-at-first", Run: func(w *testkit.World) {
			w.Stores.Down = unreachable()
			cluster := testkit.Cluster("demo", testkit.Group("cpu", 2))
			cluster.Spec.ControlStore = givenRedis()
			w.Create(cluster)
			w.Settle()
			w.Expect("demo", "Ready=False StoreUnreachable", "ControlStoreReady=False StoreUnreachable")
			if pods := w.Pods("demo"); len(pods) > 0 {
				w.Fatalf("%d pods were made against a store that cannot serve them", len(pods))
			}
			w.Stores.Down = nil
			w.Settle()
			w.Expect("demo", ready, serves)
			epochIs(w, 1)
		}},
		testkit.Scenario{Name: "away-and-back", Run: awayAndBack, AnyEpoch: true},
		testkit.Scenario{Name: "away-while-the-head-goes-on", Run: func(w *testkit.World) {
			keeping(w, givenRedis())
			pods := testkit.UIDs(w.Pods("demo"))
			w.Stores.Down = unreachable()
			w.Settle()
			w.Expect("demo", "Ready=True", "ControlStoreReady=False StoreUnreachable")
			w.Stores.Down = nil
			w.Settle()
			w.Expect("demo", ready, serves)
			untouched(w, pods, w.Pods("demo"))
		}},
		testkit.Scenario{Name: "flushed", Run: func(w *testkit.World) {
			keeping(w, givenRedis())
			former := testkit.UIDs(w.Pods("demo"))
			w.Stores.Flush()
			w.Settle()
			renewed(w, former, 2)
		}},
		testkit.Scenario{Name: "flushed-while-suspended", Run: func(w *testkit.World) {
			keeping(w, managedRedis())
			suspend(w, true)
			w.Settle()
			w.Stores.Flush()
			suspend(w, false)
			w.Settle()
			w.Expect("demo", ready, serves)
			sizes(w, "demo", map[string]int{"": 1, "cpu": 2})
		}, AnyEpoch: true},
		testkit.Scenario{Name: "image-of-a-managed-one-is-missing", Run: managedWithoutImage, AnyEpoch: true},
		testkit.Scenario{Name: "volume-replaced", Run: volumeReplaced, KeepRecord: true, NoPast: true},
		testkit.Scenario{Name: "scaled-down-without-a-head", Run: scaledDownWithoutHead, AnyEpoch: true},
	)
}

// managedWithoutImage: the status says why the pod of a managed Redis is not made, and why it waits. That pod is in no cache.
func managedWithoutImage(w *testkit.World) {
	w.Stores.Down = unreachable()
	w.Kubelet.Idle = func(pod *corev1.Pod) bool { return pod.Name == "demo-redis-0" }
	of := testkit.Cluster("demo", testkit.Group("cpu", 1))
	of.Spec.ControlStore = managedRedis()
	w.Create(of)
	w.Settle()
	w.Expect("demo", "ControlStoreReady=False StoreStarting")
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "demo-redis", Namespace: testkit.Namespace}}
	w.Read(set)
	refused := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "refused", Namespace: testkit.Namespace}, InvolvedObject: corev1.ObjectReference{UID: set.UID}, Reason: "FailedCreate",
		Message: `create Pod demo-redis-0 in StatefulSet demo-redis failed error: pods "demo-redis-0" is forbidden: failed quota: team: must specify limits.cpu for: redis`,
	}
	w.Create(refused)
	w.After(time.Minute)
	w.Expect("demo", "Ready=False QuotaExceeded", "ControlStoreReady=False QuotaExceeded")
	w.Delete(refused) // whose set has another UID in each play
	waits := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "demo-redis-0", Namespace: testkit.Namespace}}
	w.Must(controllerutil.SetControllerReference(set, waits, w.Client.Scheme()))
	waits.Spec = corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "redis", Image: "private"}}}
	w.Create(waits)
	waits.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "redis", Image: "private", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}},
	}}}
	w.Must(w.Client.Status().Update(w.Ctx, waits))
	set.Status.Replicas = 1
	w.Must(w.Client.Status().Update(w.Ctx, set))
	w.After(10 * time.Second)
	w.Expect("demo", "ControlStoreReady=False ImagePullFailed")
	w.Delete(waits) // whose owner has another UID in each play
	w.Stores.Down = nil
	w.Settle()
	w.Expect("demo", ready, serves)
}

// awayAndBack: a head that ended because its Redis is away goes, and comes back with it.
func awayAndBack(w *testkit.World) {
	keeping(w, givenRedis())
	workers := testkit.UIDs(w.Workers("demo", "cpu"))
	w.Stores.Down = unreachable()
	w.Settle()
	w.Clock.Step(time.Minute)
	head := w.Head("demo")
	w.Must(w.Kubelet.Die(w.Ctx, head, false))
	w.Settle()
	w.Expect("demo", "Ready=False StoreUnreachable", "ControlStoreReady=False StoreUnreachable")
	sizes(w, "demo", map[string]int{"": 0, "cpu": 2})
	w.Stores.Down = nil
	w.Settle()
	w.Expect("demo", ready, serves)
	untouched(w, workers, w.Workers("demo", "cpu"))
	session(w, 1)
}

// volumeReplaced: a claim of the same name that is another has no memory of this cluster.
func volumeReplaced(w *testkit.World) {
	keeping(w, embedded())
	former := testkit.UIDs(w.Pods("demo"))
	var claim corev1.PersistentVolumeClaim
	w.Must(w.Client.Get(w.Ctx, clientKey("demo-store"), &claim))
	w.Delete(&claim)
	w.Settle()
	bind(w)
	w.Settle()
	renewed(w, former, 2)
}

// scaledDownWithoutHead: workers are not taken while there is no head that could drain them.
func scaledDownWithoutHead(w *testkit.World) {
	keeping(w, givenRedis())
	w.Stores.Down = unreachable()
	w.Force(w.Head("demo"))
	w.Settle()
	w.Scale("demo", 1)
	w.Settle()
	sizes(w, "demo", map[string]int{"": 0, "cpu": 2})
	w.Stores.Down = nil
	w.Settle()
	w.Expect("demo", ready, serves)
	sizes(w, "demo", map[string]int{"": 1, "cpu": 1})
}

// onLostNode has the head's node fall silent and gives the workers.
func onLostNode(w *testkit.World, store *v1beta1.ControlStore) []string {
	w.Helper()
	spread(w)
	keeping(w, store)
	w.Silence("head")
	w.Kubelet.Node = func(*corev1.Pod) string { return "new" }
	return testkit.UIDs(w.Workers("demo", "cpu"))
}

func TestStoreOnLostNodes(t *testing.T) {
	play(t,
		// The new head's user locks the old one out, so nobody has to be waited for.
		testkit.Scenario{Name: "managed", Run: func(w *testkit.World) {
			workers := onLostNode(w, managedRedis())
			w.Settle()
			w.Expect("demo", ready, serves)
			untouched(w, workers, w.Workers("demo", "cpu"))
			epochIs(w, 2)
		}},
		testkit.Scenario{Name: "redis", Run: func(w *testkit.World) {
			workers := onLostNode(w, givenRedis())
			w.During(20 * time.Second)
			w.Expect("demo", "Ready=False OldHeadRemains", serves)
			w.After(time.Minute)
			w.Expect("demo", ready, serves)
			untouched(w, workers, w.Workers("demo", "cpu"))
			epochIs(w, 2)
		}},
		testkit.Scenario{Name: "embedded", Run: func(w *testkit.World) {
			workers := onLostNode(w, embedded())
			w.After(10 * time.Minute)
			w.Expect("demo", "Ready=False VolumeHeldByLostNode", "ControlStoreReady=False VolumeHeldByLostNode")
			w.Taint("head", corev1.TaintNodeOutOfService)
			w.Settle()
			w.Expect("demo", ready, serves)
			untouched(w, workers, w.Workers("demo", "cpu"))
			epochIs(w, 2)
		}},
	)
}

// TestVolumeOnLostNode: the head is gone, but its volume can be used on the lost node only.
func TestVolumeOnLostNode(t *testing.T) {
	w := testkit.NewWorld(t)
	spread(w)
	cluster := testkit.Cluster("demo", testkit.Group("cpu", 2))
	cluster.Spec.ControlStore = embedded()
	w.Create(cluster)
	w.Settle()
	var claim corev1.PersistentVolumeClaim
	w.Must(w.Client.Get(w.Ctx, clientKey("demo-store"), &claim))
	claim.Spec.VolumeName = "local"
	w.Must(w.Client.Update(w.Ctx, &claim))
	bind(w)
	w.Create(&corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "local"},
		Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"head"}}},
		}}}}},
	})
	w.Settle()
	w.Expect("demo", ready, serves)
	head := w.Head("demo")
	w.Silence("head")
	w.Force(head)
	w.After(time.Minute)
	w.Expect("demo", "Ready=False VolumeHeldByLostNode", "ControlStoreReady=False VolumeHeldByLostNode")
	sizes(w, "demo", map[string]int{"": 0, "cpu": 2})
	w.Answer("head")
	w.After(10 * time.Second)
	w.Expect("demo", ready, serves)
	epochIs(w, 2)
}

// storeObjects are what a managed store is made of.
func storeObjects() map[string]client.Object {
	return map[string]client.Object{
		"StatefulSet": &appsv1.StatefulSet{}, "Service": &corev1.Service{}, "NetworkPolicy": &networkingv1.NetworkPolicy{}, "Secret": &corev1.Secret{},
	}
}

func TestManagedStore(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "complete", Run: func(w *testkit.World) {
			keeping(w, managedRedis())
			for kind, obj := range storeObjects() {
				if err := w.Client.Get(w.Ctx, clientKey(naming.Store("demo")), obj); err != nil {
					w.Fatalf("%s: %v", kind, err)
				}
			}
		}},
		testkit.Scenario{Name: "set-deleted", Run: setDeleted},
		testkit.Scenario{Name: "retained", Run: func(w *testkit.World) {
			keeping(w, managedRedis())
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.ControlStore.ManagedRedis.Retain = new(true) })
			w.Settle()
			w.Delete(w.Cluster("demo"))
			w.Settle()
			w.After(time.Minute)
			var claim corev1.PersistentVolumeClaim
			w.Must(w.Client.Get(w.Ctx, clientKey("demo-store"), &claim))
			again := managedRedis()
			again.ManagedRedis.Retain = new(true)
			keeping(w, again)
			var now corev1.PersistentVolumeClaim
			w.Must(w.Client.Get(w.Ctx, clientKey("demo-store"), &now))
			if claim.UID != now.UID {
				w.Fatalf("the claim that was retained is not used")
			}
		}},
		testkit.Scenario{Name: "others-claim", Run: func(w *testkit.World) {
			w.Create(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
				Namespace: testkit.Namespace, Name: "demo-store", Labels: map[string]string{v1beta1.LabelCluster: "demo"},
			}})
			cluster := testkit.Cluster("demo", testkit.Group("cpu", 2))
			cluster.Spec.ControlStore = embedded()
			w.Create(cluster)
			w.Settle()
			w.Expect("demo", "Ready=False NameConflict")
			if pods := w.Pods("demo"); len(pods) > 0 {
				w.Fatalf("%d pods were made", len(pods))
			}
		}},
	)
}

// TestHeadThatRunsIsNotWithdrawn: a head that is on its way back waits for its Redis by itself,
// and no answer that comes late takes it away.
func TestHeadThatRunsIsNotWithdrawn(t *testing.T) {
	for name, down := range map[string]reason.Finding{
		"away": *unreachable(), "slow": reason.StoreSlow.Of("redis://redis:6379", "1s"),
	} {
		w := testkit.NewWorld(t)
		keeping(w, givenRedis())
		head := w.Head("demo")
		w.Clock.Step(time.Minute)
		w.Stores.Down = &down
		w.Must(w.Kubelet.Die(w.Ctx, head, name != "slow"))
		w.Settle()
		if now := w.Head("demo"); now.UID != head.UID || now.DeletionTimestamp != nil {
			t.Errorf("%s: the head was taken away", name)
		}
	}
}

// TestStoreIsTold: what people read while a head comes back.
func TestStoreIsTold(t *testing.T) {
	w := testkit.NewWorld(t)
	keeping(w, givenRedis())
	w.Clock.Step(time.Minute)
	head := w.Head("demo")
	w.Must(w.Kubelet.Die(w.Ctx, head, true))
	w.Settle()
	w.Expect("demo", "HeadReady=False HeadRecovering", "Ready=False HeadRecovering", serves)
	if status := w.Cluster("demo").Status; status.Phase != v1beta1.PhaseRecovering || status.Head.Restarts != 1 {
		t.Errorf("phase %s, %d restarts", status.Phase, status.Head.Restarts)
	}
	w.Must(w.Kubelet.Ready(w.Ctx, w.Head("demo")))
	w.Settle()
	w.Expect("demo", ready, serves)
	for _, want := range []string{
		"HeadRestarted: " + reason.HeadRestarted.Of(head.Name).Text, "HeadRecovered: " + reason.HeadRecovered.Of(head.Name).Text,
	} {
		if !slices.Contains(w.Told, want) {
			t.Errorf("nobody tells %q, but %s", want, fmt.Sprint(w.Told))
		}
	}
}

// setDeleted has the StatefulSet of a managed Redis deleted: it comes back, and pods of the cluster stay.
func setDeleted(w *testkit.World) {
	keeping(w, managedRedis())
	pods := testkit.UIDs(w.Pods("demo"))
	w.Delete(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: testkit.Namespace, Name: naming.Store("demo")}})
	w.Settle()
	w.Must(w.Client.Get(w.Ctx, clientKey(naming.Store("demo")), &appsv1.StatefulSet{}))
	untouched(w, pods, w.Pods("demo"))
}
