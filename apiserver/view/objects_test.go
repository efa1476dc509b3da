package view_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

var began = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func meta(namespace, name string, rv int) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID("uid-" + name), ResourceVersion: strconv.Itoa(rv),
		CreationTimestamp: metav1.NewTime(began.Add(time.Duration(len(name)) * time.Minute)),
	}
}

// conditions returns what a status says.
func conditions(status metav1.ConditionStatus, found reason.Finding, since time.Time) []metav1.Condition {
	return []metav1.Condition{{
		Type: v1beta1.ConditionReady, Status: status, Reason: found.Code, Message: found.Text, LastTransitionTime: metav1.NewTime(since),
	}}
}

func cluster(namespace, name string, rv int) *v1beta1.ComputeCluster {
	return &v1beta1.ComputeCluster{ObjectMeta: meta(namespace, name, rv), Status: v1beta1.ComputeClusterStatus{
		Phase: v1beta1.PhaseReady, Conditions: conditions(metav1.ConditionTrue, reason.AllReady.Of(1, 1), began),
	}}
}

func job(namespace, name string, rv int) *v1beta1.ClusterJob {
	return &v1beta1.ClusterJob{ObjectMeta: meta(namespace, name, rv), Status: v1beta1.ClusterJobStatus{Phase: v1beta1.PhaseRunning}}
}

func service(namespace, name string, rv int) *v1beta1.ClusterService {
	return &v1beta1.ClusterService{ObjectMeta: meta(namespace, name, rv), Status: v1beta1.ClusterServiceStatus{Phase: v1beta1.PhaseReady}}
}

// ownedBy makes an object one of another.
func ownedBy[T metav1.Object](object T, kind string, owner metav1.Object) T {
	object.SetOwnerReferences([]metav1.OwnerReference{{Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: new(true)}})
	return object
}

func pod(of *v1beta1.ComputeCluster, name string, rv, gpus int) *corev1.Pod {
	one := &corev1.Pod{ObjectMeta: meta(of.Namespace, name, rv)}
	one.Labels = map[string]string{v1beta1.LabelCluster: of.Name}
	one.Spec.Containers = []corev1.Container{{Name: "ray", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(int64(gpus), resource.DecimalSI), "cpu": resource.MustParse("1")},
	}}}
	return ownedBy(one, "ComputeCluster", of)
}

// filled returns a view that was read once, of objects of any kind.
func filled(t testing.TB, objects ...any) *view.View {
	t.Helper()
	v := view.New()
	lists := map[string][]any{}
	for _, one := range objects {
		lists[view.KindOf(one)] = append(lists[view.KindOf(one)], one)
	}
	for _, kind := range append(view.Kinds(), view.Pods) {
		if err := v.Store(kind, "").Replace(lists[kind], "100"); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

func update(t testing.TB, v *view.View, objects ...any) {
	t.Helper()
	for _, one := range objects {
		if err := v.Store(view.KindOf(one), "").Update(one); err != nil {
			t.Fatal(err)
		}
	}
}

func remove(t testing.TB, v *view.View, objects ...any) {
	t.Helper()
	for _, one := range objects {
		if err := v.Store(view.KindOf(one), "").Delete(one); err != nil {
			t.Fatal(err)
		}
	}
}

func all(string, string) bool { return true }

// names returns the keys of a page's lines.
func names(page view.Page) []string {
	var found []string
	for _, line := range page.Lines {
		found = append(found, line.Key.String())
	}
	return found
}

func list(t testing.TB, v *view.View, q view.Query) view.Page {
	t.Helper()
	if q.May == nil {
		q.May = all
	}
	page, err := v.List(context.Background(), q)
	if err != nil {
		t.Fatalf("list %+v: %v", q, err)
	}
	return page
}

func key(kind, name string) view.Key { return view.Key{Kind: kind, Namespace: "a", Name: name} }

func number(i int) string { return fmt.Sprintf("c%04d", i) }
