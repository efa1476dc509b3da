package diagnose_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
)

var born = time.Date(2026, 11, 21, 15, 0, 0, 0, time.UTC)

// pending is a pod without a node, with what the scheduler says.
func pending(message string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", CreationTimestamp: metav1.NewTime(born)},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name:      "ray",
			Resources: corev1.ResourceRequirements{Requests: amounts("cpu", "100", "memory", "100Gi", "nvidia.com/gpu", "8")},
		}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodPending,
			Conditions: []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message,
			}},
		},
	}
}

const (
	behind   = " no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
	older    = " preemption: 0/42 nodes are available: 42 Preemption is not helpful for scheduling."
	tainted  = "1 node(s) had untolerated taint(s), "
	cordoned = "1 node(s) were unschedulable."
)

// schedulersWords are messages of schedulers and what becomes of them.
var schedulersWords = map[string]struct{ message, want string }{
	"several resources": {
		"0/3 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, 1 Insufficient nvidia.com/gpu, " + tainted + cordoned + behind,
		"Unschedulable: cannot be scheduled: 0/3 nodes fit: 1 too few nvidia.com/gpu (it asks for 8), " +
			"1 too little cpu (it asks for 100), 1 too little memory (it asks for 100Gi), 1 have a taint that it does not tolerate, 1 further causes. " +
			"Request less in size, or add nodes with more nvidia.com/gpu",
	},
	"devices behind a taint": {
		"0/42 nodes are available: 12 node(s) had untolerated taint {gpu: a100}, 30 Insufficient nvidia.com/gpu." + older,
		"Unschedulable: cannot be scheduled: 0/42 nodes fit: 30 too few nvidia.com/gpu (it asks for 8), 12 have taint gpu=a100. " +
			"Add a toleration for gpu=a100 to podDefaults.tolerations or the template",
	},
	"devices used up, and a control plane": {
		"0/4 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, 3 Insufficient nvidia.com/gpu." +
			" preemption: 0/4 nodes are available: 1 Preemption is not helpful for scheduling, 3 No preemption victims found for incoming pod.",
		"Unschedulable: cannot be scheduled: 0/4 nodes fit: 3 too few nvidia.com/gpu (it asks for 8), " +
			"1 have taint node-role.kubernetes.io/control-plane. Request less in size, or add nodes with more nvidia.com/gpu",
	},
	"selector": {
		"0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, " + tainted + cordoned + behind,
		"Unschedulable: cannot be scheduled: 0/3 nodes fit: 1 do not match its nodeSelector or node affinity, " +
			"1 have a taint that it does not tolerate, 1 are cordoned. Correct nodeSelector and affinity in the template, or label nodes to match",
	},
	"taints only": {
		"0/2 nodes are available: 2 node(s) had untolerated taint(s)." + behind,
		"Unschedulable: cannot be scheduled: 0/2 nodes fit: 2 have a taint that it does not tolerate. " +
			"Add a toleration for the nodes' taints to podDefaults.tolerations or the template",
	},
	"system taints only": {
		"0/2 nodes are available: 2 node(s) had untolerated taint {node.kubernetes.io/not-ready: }." + behind,
		"Unschedulable: cannot be scheduled: 0/2 nodes fit: 2 have taint node.kubernetes.io/not-ready. Free resources, add nodes, or request less",
	},
	"cordoned only": {
		"0/2 nodes are available: 2 node(s) were unschedulable." + behind,
		"Unschedulable: cannot be scheduled: 0/2 nodes fit: 2 are cordoned. Uncordon a node or add one",
	},
	"host ports": {
		"0/3 nodes are available: 1 node(s) didn't have free ports for the requested pod ports, " + tainted + cordoned + behind,
		"Unschedulable: cannot be scheduled: 0/3 nodes fit: 1 have its host ports taken, " +
			"1 have a taint that it does not tolerate, 1 are cordoned. Remove hostPort and hostNetwork from the template, or add nodes",
	},
	"anti-affinity": {
		"0/3 nodes are available: 1 node(s) didn't match pod anti-affinity rules, " + tainted + cordoned + behind,
		"Unschedulable: cannot be scheduled: 0/3 nodes fit: 1 are ruled out by its pod anti-affinity, " +
			"1 have a taint that it does not tolerate, 1 are cordoned. Relax the pod affinity or topologySpreadConstraints in the template, or add nodes",
	},
	"topology": {
		"0/3 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing required label), " + tainted + cordoned + behind,
		"Unschedulable: cannot be scheduled: 0/3 nodes fit: 1 lack the label of its topology spread, " +
			"1 have a taint that it does not tolerate, 1 are cordoned. Relax the pod affinity or topologySpreadConstraints in the template, or add nodes",
	},
	"full nodes": {
		"0/2 nodes are available: 2 Too many pods." + behind,
		"Unschedulable: cannot be scheduled: 0/2 nodes fit: 2 are full of pods. Add nodes, or raise their limit of pods",
	},
	"volume elsewhere": {
		"0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity." + behind,
		"Unschedulable: cannot be scheduled: 0/2 nodes fit: 2 do not reach its volume. Make its volumes available on the nodes that fit",
	},
	"a cause of another scheduler": {
		"0/2 nodes are available: 2 node(s) lack fabric, or are asleep." + behind,
		"Unschedulable: cannot be scheduled: 0/2 nodes fit: 2 lack fabric, or are asleep. Free resources, add nodes, or request less",
	},
	"no nodes": {
		"no nodes available to schedule pods",
		"Unschedulable: cannot be scheduled: there are no nodes. Free resources, add nodes, or request less",
	},
	"claim missing": {
		`0/3 nodes are available: persistentvolumeclaim "data" not found. not found`,
		"VolumeNotReady: PersistentVolumeClaim data does not exist. " +
			"Create PersistentVolumeClaim data, or correct the volume in the template",
	},
	"claim unbound": {
		"0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
		"VolumeNotReady: its PersistentVolumeClaims are not bound. " +
			"Check why its PersistentVolumeClaims are not bound: storage class, or a lack of volumes",
	},
	"before any node": {
		"0/3 nodes are available: waiting for ephemeral volume controller to create the persistentvolumeclaim \"a-scratch\". not found",
		`Unschedulable: cannot be scheduled: 0/3 nodes fit: waiting for ephemeral volume controller to create the persistentvolumeclaim "a-scratch". ` +
			"Free resources, add nodes, or request less",
	},
	"a gang scheduler": {
		"3/4 tasks in gang unschedulable: pod group is not ready",
		"Unschedulable: cannot be scheduled: 3/4 tasks in gang unschedulable: pod group is not ready. Free resources, add nodes, or request less",
	},
}

// TestSchedulersWords: messages of real schedulers 1.34 to 1.36, boiled down.
func TestSchedulersWords(t *testing.T) {
	for name, test := range schedulersWords {
		t.Run(name, func(t *testing.T) {
			finding, ok := diagnose.Pod(pending(test.message), nil, born)
			if have := finding.Code + ": " + finding.Text; !ok || have != test.want {
				t.Errorf("told as\n  %s\nwant\n  %s", have, test.want)
			}
		})
	}
}

func TestWithoutNode(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		after  time.Duration
		want   string
	}{
		"no verdict yet": {
			func(p *corev1.Pod) { p.Status.Conditions = nil }, 29 * time.Second, "Scheduling: is being scheduled",
		},
		"no verdict for long": {
			func(p *corev1.Pod) { p.Status.Conditions, p.Spec.SchedulerName = nil, "volcano" }, 30 * time.Second,
			"Unschedulable: cannot be scheduled: scheduler volcano has not looked at it. Check that the scheduler volcano runs",
		},
		"gated": {
			func(p *corev1.Pod) {
				p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}
			}, time.Hour,
			"SchedulingGated: held back by scheduling gate kueue.x-k8s.io/admission",
		},
		"others make room": {
			func(p *corev1.Pod) { p.Status.NominatedNodeName = "n2" }, 0,
			"Preempting: waits for pods of lower priority to leave node n2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := pending("0/1 nodes are available: 1 Insufficient cpu.")
			test.change(pod)
			finding, ok := diagnose.Pod(pod, nil, born.Add(test.after))
			if have := finding.Code + ": " + finding.Text; !ok || have != test.want {
				t.Errorf("told as\n  %s\nwant\n  %s", have, test.want)
			}
			if diagnose.NeedsEvents(pod, born.Add(time.Hour)) {
				t.Error("events of a pod without a node say nothing")
			}
		})
	}
}
