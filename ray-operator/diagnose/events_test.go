package diagnose_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
)

const (
	creating = "ContainerCreating: its containers are being created on node n1"
	noSecret = `FailedMount: MountVolume.SetUp failed for volume "creds" : secret "team-creds" not found`
	summary  = "FailedMount: Unable to attach or mount volumes: unmounted volumes=[creds], unattached volumes=[], failed to process volumes=[]: context deadline exceeded"
	multi    = `FailedAttachVolume: Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) b`
	attached = `SuccessfulAttachVolume: AttachVolume.Attach succeeded for volume "pvc-1"`
	pulling  = `Pulling: Pulling image "rayproject/ray:2.60.0"`
	pulled   = `Pulled: Successfully pulled image "rayproject/ray:2.60.0" in 52s`
	sandbox  = "FailedCreatePodSandBox: Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox " +
		"\"26e54ee76e5bfb4d47f7d4b8b2f2b0e3c93e27c2a4d1f02b8a1f6dd7b0f4a911\": plugin type=\"calico\" failed (add): no IPs available in pool"
)

// eventful are events and what becomes of them. Each line is "reason: message", a second
// after the one before.
var eventful = map[string]struct{ events, want string }{
	"none":      {"", creating},
	"of no use": {"Scheduled: Successfully assigned t/a to n1", creating},
	"secret": {
		noSecret, "VolumeNotReady: Secret team-creds of a volume does not exist. Create Secret team-creds, or correct the volume in the template",
	},
	"the cause, not the summary": {
		noSecret + "\n" + summary,
		"VolumeNotReady: Secret team-creds of a volume does not exist. Create Secret team-creds, or correct the volume in the template",
	},
	"the summary alone": {summary, "VolumeNotReady: volumes not mounted yet: creds. Check the events of the pod and its claims"},
	"attached elsewhere": {
		multi + "\n" + summary,
		"VolumeNotReady: volume pvc-1: Volume is already used by pod(s) b. " +
			"Use a volume with access mode ReadWriteMany, or wait until the other pod is deleted",
	},
	"attached in the end": {multi + "\n" + attached, creating},
	"pulling":             {noSecret + "\n" + pulling, "ImagePulling: image rayproject/ray:2.60.0 is being pulled on node n1"},
	"pulling in the end": {
		noSecret + "\n" + summary + "\n" + pulling, "ImagePulling: image rayproject/ray:2.60.0 is being pulled on node n1",
	},
	"pulled": {pulling + "\n" + pulled, creating},
	"mount of a driver": {
		`FailedMount: MountVolume.MountDevice failed for volume "pvc-1" : rpc error: code = DeadlineExceeded desc = context deadline exceeded`,
		"VolumeNotReady: volume pvc-1: rpc error: code = DeadlineExceeded desc = context deadline exceeded. Check the events of the pod and its claims",
	},
	"limit of volumes": {
		"FailedAttachVolume: the node has no room", "VolumeNotReady: the node has no room. Check the events of the pod and its claims",
	},
	"network": {
		sandbox,
		`SetupFailed: cannot be set up on node n1: failed to setup network for sandbox "…": plugin type="calico" failed (add): no IPs available in pool. ` +
			"Check the node's network plugin, container runtime and device plugins",
	},
	"pulling without a name": {"Pulling: an image", "ImagePulling: image an image is being pulled on node n1"},
}

// TestEvents gives events newest first, as an API server may.
func TestEvents(t *testing.T) {
	for name, test := range eventful {
		t.Run(name, func(t *testing.T) {
			var events []corev1.Event
			for i, line := range strings.Split(test.events, "\n") {
				why, message, _ := strings.Cut(line, ": ")
				event := corev1.Event{Reason: why, Message: message, InvolvedObject: corev1.ObjectReference{UID: "a-uid"}}
				switch at := born.Add(time.Duration(i) * time.Second); i % 3 {
				case 0:
					event.FirstTimestamp = metav1.NewTime(at)
				case 1:
					event.FirstTimestamp, event.LastTimestamp = metav1.NewTime(born), metav1.NewTime(at)
				default:
					event.EventTime, event.Series = metav1.NewMicroTime(born), &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(at)}
				}
				events = append([]corev1.Event{event}, events...)
			}
			events = append(events, corev1.Event{Reason: "FailedMount", Message: "of a former pod", InvolvedObject: corev1.ObjectReference{UID: "b-uid"}})
			finding, _ := diagnose.Pod(onNode(waitingFor("ContainerCreating", "")), events, born)
			if have := finding.Code + ": " + finding.Text; have != test.want {
				t.Errorf("told as\n  %s\nwant\n  %s", have, test.want)
			}
		})
	}
}

func TestPreemptor(t *testing.T) {
	pod := disrupted("PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod")
	events := []corev1.Event{{Reason: "Preempted", Message: "Preempted by pod 13f7c14f-7a1e-4c80-9156-7ea470ff4ab7 on node n2"}}
	finding, _ := diagnose.Pod(pod, events, born)
	if !strings.HasPrefix(finding.Text, "was preempted on node n1: by pod 13f7c14f-7a1e-4c80-9156-7ea470ff4ab7. ") {
		t.Error(finding.Text)
	}
}
