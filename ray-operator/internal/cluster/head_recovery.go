package cluster

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// isRecovering reports whether the head comes back with the memory of an earlier life.
func isRecovering(t *statusDraft) bool {
	of := t.statusIncarnation()
	return t.cluster.Spec.ControlStore != nil && t.head != nil && (of.Session < of.Epoch || restarts(*t.head) > 0)
}

// isComingBack reports whether a head that recovers is on its way back, given the code of
// what was found of it, if anything was. A container that runs again after it had ended is
// in no crash loop yet: the kubelet's back-off shows those.
func isComingBack(head Pod, found string) bool {
	if found == reason.CrashLoop.Code {
		container := diagnose.RayStatus(head.Pod)
		return container != nil && container.State.Waiting == nil
	}
	return found == "" || found == reason.Starting.Code
}

// restarts returns how often Ray's container was started again in a pod.
func restarts(p Pod) int32 {
	if container := diagnose.RayStatus(p.Pod); container != nil {
		return container.RestartCount
	}
	return 0
}

// cameBack returns what to tell when a status shows that a head ended in its pod, or is back.
func cameBack(before, after *v1beta1.ComputeClusterStatus) []telemetry.Event {
	if after.ControlStore == nil || after.Head == nil || before.Head == nil {
		return nil
	}
	var events []telemetry.Event
	was := before.Head
	if was.UID == after.Head.UID && after.Head.Restarts > was.Restarts {
		events = append(events, telemetry.Event{Finding: reason.HeadRestarted.Of(was.PodName), Action: "Recover"})
	}
	ready := meta.IsStatusConditionTrue(after.Conditions, v1beta1.ConditionHeadReady)
	notYet := meta.IsStatusConditionFalse(before.Conditions, v1beta1.ConditionHeadReady)
	again := after.Head.Restarts > 0 || after.ControlStore.Session < after.Epoch
	if ready && notYet && again {
		events = append(events, telemetry.Event{Finding: reason.HeadRecovered.Of(after.Head.PodName), Action: "Recover"})
	}
	return events
}
