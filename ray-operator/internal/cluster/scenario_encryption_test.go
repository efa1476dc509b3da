package cluster_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pki"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

func encrypted(workers int32) *v1beta1.ComputeCluster {
	cluster := testkit.Cluster("demo", testkit.Group("cpu", workers))
	cluster.Spec.Network = &v1beta1.Network{Encryption: v1beta1.Enabled}
	return cluster
}

// authorityOf reads the certificate authority of a cluster, which must be whole.
func authorityOf(w *testkit.World) *corev1.Secret {
	w.Helper()
	var secret corev1.Secret
	w.Must(w.Client.Get(w.Ctx, clientKey("demo-ca"), &secret))
	_, err := pki.Read(secret.Data[v1beta1.AuthorityCertificateKey], secret.Data[v1beta1.AuthorityKeyKey])
	w.Must(err)
	return &secret
}

func removeAuthority(w *testkit.World) {
	w.Helper()
	w.Delete(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "demo-ca", Namespace: testkit.Namespace}})
	w.Settle()
}

func TestEncryption(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "authority-made", Run: authorityMade},
		testkit.Scenario{Name: "authority-removed", Run: authorityRemoved, NoPast: true}, // as of a token
		testkit.Scenario{Name: "authority-renewed", Run: authorityRenewed},
		testkit.Scenario{Name: "authority-foreign", Run: authorityForeign},
		testkit.Scenario{Name: "authority-of-a-store", Run: authorityOfAStore},
		testkit.Scenario{Name: "authority-of-a-store-whose-head-is-refused", Run: authorityOfAStoreWhoseHeadIsRefused},
		testkit.Scenario{Name: "authority-of-a-store-foreign", Run: authorityOfAStoreForeign},
		testkit.Scenario{Name: "authority-of-a-store-removed", Run: authorityOfAStoreRemoved, NoPast: true},
	)
}

func authorityMade(w *testkit.World) {
	w.Create(encrypted(1))
	w.Settle()
	w.Expect("demo", ready)
	first := authorityOf(w)
	w.Scale("demo", 2)
	w.Settle()
	w.Expect("demo", ready)
	if again := authorityOf(w); again.UID != first.UID {
		w.Fatalf("the authority was made twice")
	}
}

func authorityRemoved(w *testkit.World) {
	w.Create(encrypted(1))
	w.Settle()
	before, lost := testkit.UIDs(w.Pods("demo")), authorityOf(w)
	removeAuthority(w)
	w.Scale("demo", 2)
	w.Settle()
	w.Expect("demo", "Ready=False CAMissing", "Stalled=False", "HeadReady=True")
	if !slices.Equal(before, testkit.UIDs(w.Pods("demo"))) {
		w.Fatalf("a missing authority touched running pods")
	}
	lost.UID, lost.ResourceVersion = "", ""
	w.Create(lost)
	w.Settle()
	w.Expect("demo", ready)
	if now := testkit.UIDs(w.Pods("demo")); len(now) != 3 {
		w.Fatalf("with the authority restored the pods are %v, after %v", now, before)
	}
}

func authorityRenewed(w *testkit.World) {
	w.Create(encrypted(1))
	w.Settle()
	first := authorityOf(w)
	w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.Suspend = new(true) })
	w.Settle()
	removeAuthority(w)
	w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.Suspend = new(false) })
	w.Settle()
	w.Expect("demo", ready)
	if authorityOf(w).UID == first.UID {
		w.Fatalf("the authority is the former one")
	}
}

func authorityForeign(w *testkit.World) {
	theirs := &corev1.Secret{ObjectMeta: foreign("demo-ca")}
	w.Create(theirs)
	w.Create(encrypted(1))
	w.SettleRefused()
	w.Expect("demo", "Ready=False NameConflict", "Stalled=True NameConflict")
	w.Delete(theirs)
	w.Settle()
	w.Expect("demo", ready, "Stalled=False")
	authorityOf(w)
}

// authorityOfAStore: a managed Redis has TLS without encryption too.
func authorityOfAStore(w *testkit.World) {
	of := testkit.Cluster("demo", testkit.Group("cpu", 1))
	of.Spec.ControlStore = managedRedis()
	w.Create(of)
	w.Settle()
	w.Expect("demo", ready, serves)
	first := authorityOf(w)
	for _, one := range w.Pods("demo") {
		if is := one.Labels[v1beta1.LabelRole] == v1beta1.RoleHead; pod.EncryptsStore(one) != is || pod.IsEncrypted(one) {
			w.Fatalf("pod %s speaks TLS with the Redis: %t, with others: %t", one.Name, !is, pod.IsEncrypted(one))
		}
	}
	w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.Suspend = new(true) })
	w.Settle()
	removeAuthority(w)
	w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.Suspend = new(false) })
	w.Settle()
	w.Expect("demo", ready, serves)
	if authorityOf(w).UID == first.UID {
		w.Fatalf("the authority is the former one")
	}
}

// authorityOfAStoreWhoseHeadIsRefused: the Redis runs before there is a record, and its authority is the one that it has.
func authorityOfAStoreWhoseHeadIsRefused(w *testkit.World) {
	w.Refuse(func(obj client.Object) error {
		if _, isPod := obj.(*corev1.Pod); isPod {
			return apierrors.NewForbidden(corev1.Resource("pods"), obj.GetName(), errors.New("exceeded quota"))
		}
		return nil
	})
	of := testkit.Cluster("demo", testkit.Group("cpu", 1))
	of.Spec.ControlStore = managedRedis()
	w.Create(of)
	w.SettleRefused()
	first := authorityOf(w)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "demo-redis", Namespace: testkit.Namespace}}
	w.Read(set)
	set.Status.ReadyReplicas = 1
	w.Must(w.Client.Status().Update(w.Ctx, set))
	w.SettleRefused()
	w.Expect("demo", "Ready=False CreateRefused")
	w.Refuse(nil)
	w.After(time.Minute)
	w.Expect("demo", ready, serves)
	if authorityOf(w).UID != first.UID {
		w.Fatalf("the authority is another one than the Redis has")
	}
}

// authorityOfAStoreForeign: a Redis gets no certificate of an authority that is not its cluster's.
func authorityOfAStoreForeign(w *testkit.World) {
	theirs := &corev1.Secret{ObjectMeta: foreign("demo-ca")}
	w.Create(theirs)
	of := testkit.Cluster("demo", testkit.Group("cpu", 1))
	of.Spec.ControlStore = managedRedis()
	w.Create(of)
	w.SettleRefused()
	w.Expect("demo", "Ready=False NameConflict", "Stalled=True NameConflict")
	var sets appsv1.StatefulSetList
	w.Must(w.Client.List(w.Ctx, &sets))
	if len(sets.Items) > 0 {
		w.Fatalf("a Redis was made beside an authority of others")
	}
	w.Delete(theirs)
	w.Settle()
	w.Expect("demo", ready, "Stalled=False")
}

// authorityOfAStoreRemoved: a Redis that starts cannot, and the status says so beside a head that lives.
func authorityOfAStoreRemoved(w *testkit.World) {
	of := testkit.Cluster("demo", testkit.Group("cpu", 1))
	of.Spec.ControlStore = managedRedis()
	w.Create(of)
	w.Settle()
	before := testkit.UIDs(w.Pods("demo"))
	w.Delete(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "demo-ca", Namespace: testkit.Namespace}})
	w.Scale("demo", 2)
	w.Settle()
	w.Expect("demo", "Ready=False CAMissing", "HeadReady=True")
	if !slices.Equal(before, testkit.UIDs(w.Pods("demo"))) {
		w.Fatalf("a missing authority touched running pods")
	}
}
