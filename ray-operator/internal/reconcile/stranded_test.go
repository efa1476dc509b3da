package reconcile_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
)

// nodeNamed is a node whose kubelet answers, or not.
func nodeNamed(name string, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure}, {Type: corev1.NodeReady, Status: ready}}},
	}
}

// podOn is a pod on a node whose time to end was over so long ago; the node names it.
func podOn(node string, over time.Duration, now time.Time) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: corev1.PodSpec{NodeName: node}}
	pod.DeletionTimestamp = &metav1.Time{Time: now.Add(-over)}
	return pod
}

func TestStranded_AreOverdueOnLostNodes(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	nodes := fake.NewClientBuilder().WithObjects(
		nodeNamed("well", corev1.ConditionTrue), nodeNamed("silent", corev1.ConditionUnknown), nodeNamed("ill", corev1.ConditionFalse),
	).Build()
	stays := podOn("silent", time.Hour, now)
	stays.DeletionTimestamp = nil
	for name, c := range map[string]struct {
		nodes client.Reader
		pods  []*corev1.Pod
		want  []string
		wait  time.Duration
	}{
		"no pod":                          {nodes: nodes},
		"one that stays":                  {nodes: nodes, pods: []*corev1.Pod{stays}},
		"one without a node":              {nodes: nodes, pods: []*corev1.Pod{podOn("", time.Hour, now)}},
		"within its time":                 {nodes: nodes, pods: []*corev1.Pod{podOn("silent", -time.Minute, now)}, wait: 90 * time.Second},
		"not for long":                    {nodes: nodes, pods: []*corev1.Pod{podOn("silent", 29*time.Second, now)}, wait: time.Second},
		"its node answers":                {nodes: nodes, pods: []*corev1.Pod{podOn("well", time.Hour, now)}, wait: 30 * time.Second},
		"its node is silent":              {nodes: nodes, pods: []*corev1.Pod{podOn("silent", 30*time.Second, now)}, want: []string{"silent"}},
		"its node is not ready":           {nodes: nodes, pods: []*corev1.Pod{podOn("ill", time.Minute, now)}, want: []string{"ill"}},
		"its node is gone":                {nodes: nodes, pods: []*corev1.Pod{podOn("gone", time.Minute, now)}, want: []string{"gone"}},
		"of several, the soonest":         {nodes: nodes, pods: []*corev1.Pod{podOn("ill", 10*time.Second, now), podOn("silent", 0, now), podOn("gone", time.Hour, now)}, want: []string{"gone"}, wait: 20 * time.Second},
		"nodes may not be read":           {pods: []*corev1.Pod{podOn("well", 4*time.Minute, now)}, wait: time.Minute},
		"nodes may not be read, for long": {pods: []*corev1.Pod{podOn("well", 5*time.Minute, now)}, want: []string{"well"}},
	} {
		found, wait, err := reconcile.Stranded(t.Context(), c.nodes, c.pods, now)
		var have []string
		for _, pod := range found {
			have = append(have, pod.Name)
		}
		if err != nil || !slices.Equal(have, c.want) || wait != c.wait {
			t.Errorf("%s: %q, wait %s, %v; want %q, %s", name, have, wait, err, c.want, c.wait)
		}
	}
}

// TestStranded_NeedsToKnowTheNode: one that cannot be read just now strands nothing.
func TestStranded_NeedsToKnowTheNode(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	away := errors.New("away")
	nodes := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return away
		},
	}).Build()
	if found, _, err := reconcile.Stranded(t.Context(), nodes, []*corev1.Pod{podOn("a", time.Hour, now)}, now); !errors.Is(err, away) || found != nil {
		t.Errorf("%v, %v", found, err)
	}
}

// TestIsOnLostNode: a node that may not be read is not known to be lost.
func TestIsOnLostNode(t *testing.T) {
	nodes := fake.NewClientBuilder().WithObjects(nodeNamed("well", corev1.ConditionTrue), nodeNamed("silent", corev1.ConditionUnknown)).Build()
	for name, want := range map[string]bool{"well": false, "silent": true, "gone": true, "": false} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: name}}
		if is, err := reconcile.IsOnLostNode(t.Context(), nodes, pod); is != want || err != nil {
			t.Errorf("on the node %q it is lost: %t, %v, want %t", name, is, err, want)
		}
		if is, err := reconcile.IsOnLostNode(t.Context(), nil, pod); is || err != nil {
			t.Errorf("on the node %q, which may not be read, it is lost: %t, %v", name, is, err)
		}
	}
}
