package cluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/client"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/nodes"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// asked and steered count how often somebody is to talk to a head.
type asked struct {
	nodes.Source
	count int
}

func (a *asked) Want(types.NamespacedName, nodes.Target) { a.count++ }
func (a *asked) Forget(types.NamespacedName)             {}

type steered struct {
	client.Source
	count int
}

func (s *steered) Want(types.NamespacedName, client.Target) { s.count++ }
func (s *steered) Forget(types.NamespacedName)              {}

// TestHeadsAreAskedUntilTheyHaveEnded: the address of a pod that has ended may be another's by now.
func TestHeadsAreAskedUntilTheyHaveEnded(t *testing.T) {
	for phase, want := range map[corev1.PodPhase]int{
		corev1.PodRunning: 1, corev1.PodUnknown: 1, corev1.PodFailed: 0, corev1.PodSucceeded: 0,
	} {
		head := Pod{At: naming.Place{Epoch: 1}, Pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{UID: "head", Labels: map[string]string{v1beta1.LabelRole: v1beta1.RoleHead}},
			Status:     corev1.PodStatus{Phase: phase, PodIP: "10.0.0.1"},
		}}
		heads, scale := &asked{}, &steered{}
		r := &Reconciler{Heads: heads, Scale: scale}
		seen, plan := Seen{Pods: []Pod{head}}, Plan{Incarnation: Incarnation{Epoch: 1}, Ask: Ask{Every: time.Second}, Snapshot: &protocol.Snapshot{Head: "head"}}
		r.askHead(&v1beta1.ComputeCluster{}, seen, plan)
		r.steerScaler(&v1beta1.ComputeCluster{}, seen, plan)
		if heads.count != want || scale.count != want {
			t.Errorf("a head that is %s: asked %d times and steered %d times, want %d", phase, heads.count, scale.count, want)
		}
	}
}

// TestSeen_NamesTheArchitectureOfANode: where an image does not fit its node, the finding says which one the node has.
func TestSeen_NamesTheArchitectureOfANode(t *testing.T) {
	ended := &corev1.ContainerStateTerminated{ExitCode: 255, Message: "exec /bin/sh: exec format error"}
	of := Pod{Pod: &corev1.Pod{
		Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: v1beta1.ContainerRay, Image: "rayproject/ray:2.60.0"}}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: v1beta1.ContainerRay, State: corev1.ContainerState{Terminated: ended},
		}}},
	}}
	node := nodeOf(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{corev1.LabelArchStable: "arm64"}}})
	for want, nodes := range map[string]map[string]Node{"node n (arm64)": {"n": node}, "node n:": nil} {
		finding, found := Seen{Nodes: nodes}.diagnose(of, time.Unix(1000, 0))
		if !found || finding.Code != reason.WrongArchitecture.Code || !strings.Contains(finding.Text, want) {
			t.Errorf("told as %s: %s, want %s", finding.Code, finding.Text, want)
		}
	}
}
