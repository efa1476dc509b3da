package index_test

import (
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/index"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

func TestFields(t *testing.T) {
	yes := true
	owned := metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "heliostat.dev/v1beta1", UID: "other"}, {APIVersion: "heliostat.dev/v1beta1", UID: "u", Controller: &yes},
	}}
	forged := metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", UID: "u", Controller: &yes}}}
	objects := []client.Object{
		&corev1.Pod{ObjectMeta: owned, Spec: corev1.PodSpec{NodeName: "n1"}},
		&corev1.Pod{},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1beta1.LabelServePrefix + "echo": v1beta1.ServeOn}}},
		&corev1.PersistentVolumeClaim{ObjectMeta: owned},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1beta1.LabelCluster: "lost"}}},
		&v1beta1.ComputeCluster{ObjectMeta: owned},
		&v1beta1.ClusterJob{Spec: v1beta1.ClusterJobSpec{ClusterRef: &v1beta1.ClusterReference{Name: "demo"}}},
		&v1beta1.ClusterJob{
			Spec:   v1beta1.ClusterJobSpec{ClusterRef: &v1beta1.ClusterReference{Name: "demo"}},
			Status: v1beta1.ClusterJobStatus{EndTime: &metav1.Time{}},
		},
		&v1beta1.ClusterJob{ObjectMeta: owned}, &v1beta1.ClusterJob{ObjectMeta: forged},
		&v1beta1.ClusterService{Spec: v1beta1.ClusterServiceSpec{ClusterRef: &v1beta1.ClusterReference{Name: "shared"}}},
		&v1beta1.ClusterService{},
		&appsv1.ControllerRevision{ObjectMeta: owned},
		&networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{"Egress"}}},
		&networkingv1.NetworkPolicy{},
	}
	want := []string{
		"u", "", "n1", "", "", "", "", "", "", "", "", "echo", "u", "", "lost", "", "",
		"u", "demo", "", "", "", "", "u", "", "", "shared", "", "u", "ruled", "",
	}
	var got []string
	for _, obj := range objects {
		for _, field := range index.Fields() {
			if kind(field.Kind) == kind(obj) {
				got = append(got, strings.Join(field.Value(obj), ","))
			}
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("indexed by %q, want %q", got, want)
	}
}

func TestRulesEgress_IsOfEveryPodAndSomebodyElse(t *testing.T) {
	both := []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}
	some := metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	ours := desired.NetworkPolicy(testkit.Cluster("demo"), desired.Site{})
	ours.Spec.PodSelector = metav1.LabelSelector{}
	for name, test := range map[string]struct {
		policy *networkingv1.NetworkPolicy
		want   bool
	}{
		"egress of all pods":  {&networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{PolicyTypes: both}}, true},
		"egress of some pods": {&networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{PolicyTypes: both, PodSelector: some}}, false},
		"ingress alone":       {&networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{PolicyTypes: both[:1]}}, false},
		"one of a cluster":    {ours, false},
	} {
		if have := index.RulesEgress(test.policy); have != test.want {
			t.Errorf("%s: %v", name, have)
		}
	}
}

func kind(obj client.Object) string { return reflect.TypeOf(obj).String() }
