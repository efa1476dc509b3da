package job

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/wake"
)

func TestWakeRules_HeedHeads(t *testing.T) {
	head := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "n", Name: "h", Labels: map[string]string{v1beta1.LabelRole: v1beta1.RoleHead},
		},
		Status: corev1.PodStatus{
			Phase:      corev1.PodPending,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}},
		},
	}
	now := metav1.Now()
	for _, c := range []struct {
		what   string
		change func(*corev1.Pod)
		want   bool
	}{
		{"an address", func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.1" }, true},
		{"its phase", func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, true},
		{"that it is ready", func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionTrue }, true},
		{"that it goes", func(p *corev1.Pod) { p.DeletionTimestamp = &now }, true},
		{"a label", func(p *corev1.Pod) { p.Labels["more"] = "x" }, false},
		{"a worker's address", func(p *corev1.Pod) {
			p.Labels[v1beta1.LabelRole], p.Status.PodIP = v1beta1.RoleWorker, "10.0.0.1"
		}, false},
	} {
		changed := head.DeepCopy()
		c.change(changed)
		if got := changesHead(wake.Change{Old: head, New: changed}); got != c.want {
			t.Errorf("%s wakes jobs: %t, want %t", c.what, got, c.want)
		}
	}
}

func TestWakeRules_HeedPlaces(t *testing.T) {
	waits := &v1beta1.ClusterJob{}
	holds := waits.DeepCopy()
	holds.Status.Attempts = []v1beta1.JobAttempt{{Number: 1, ClusterName: "demo", HeadUID: "head"}}
	for what, test := range map[string]struct {
		of   wake.Change
		want bool
	}{
		"that is created":        {wake.Change{New: waits}, false},
		"that takes its place":   {wake.Change{Old: waits, New: holds}, true},
		"that gives it back":     {wake.Change{Old: holds, New: waits}, true},
		"that keeps its place":   {wake.Change{Old: holds, New: holds}, false},
		"that goes with a place": {wake.Change{Old: holds}, true},
	} {
		if got := changesPlace(test.of); got != test.want {
			t.Errorf("a job %s matters: %t, want %t", what, got, test.want)
		}
	}
}
