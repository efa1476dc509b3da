package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// startAfter is for how long a container may run without an answer to its probe before that is worth a word.
const startAfter = 2 * time.Minute

// container is a container of a pod with what its kubelet says of it.
type container struct {
	spec   *corev1.Container
	status *corev1.ContainerStatus
	// isInit: it has to end before the next one starts. A sidecar among the init containers has not.
	isInit bool
}

// containersOf are the findings of a pod's containers, none for those that are as they should be.
func containersOf(pod *corev1.Pod, now time.Time) []reason.Finding {
	var all []reason.Finding
	collect := func(specs []corev1.Container, statuses []corev1.ContainerStatus, isInit bool) {
		for i := range specs {
			at := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == specs[i].Name })
			if at < 0 {
				continue
			}
			isSidecar := specs[i].RestartPolicy != nil && *specs[i].RestartPolicy == corev1.ContainerRestartPolicyAlways
			c := container{&specs[i], &statuses[at], isInit && !isSidecar}
			if finding, found := c.finding(now); found {
				all = append(all, finding)
			}
		}
	}
	collect(pod.Spec.InitContainers, pod.Status.InitContainerStatuses, true)
	collect(pod.Spec.Containers, pod.Status.ContainerStatuses, false)
	return all
}

func (c container) finding(now time.Time) (reason.Finding, bool) {
	state, last := c.status.State, c.status.LastTerminationState.Terminated
	hasCrashed := last != nil && last.ExitCode != 0
	switch {
	case state.Waiting != nil:
		return c.waiting(state.Waiting, last)
	case state.Terminated != nil:
		if c.isInit && state.Terminated.ExitCode == 0 {
			return reason.Finding{}, false
		}
		return c.ended(state.Terminated), true
	case state.Running == nil:
		return reason.Finding{}, false
	case hasCrashed && (c.isInit || c.status.Started == nil || !*c.status.Started):
		return c.ended(last), true
	case c.isInit:
		return reason.InitRunning.Of(c.spec.Name), true
	case c.status.Ready:
		return reason.Finding{}, false
	case now.Sub(state.Running.StartedAt.Time) >= startAfter:
		return reason.ProbeFailing.Of(c.spec.Name, ""), true
	default:
		return reason.Starting.Of(c.spec.Name), true
	}
}

// waiting is what a kubelet waits for before it runs a container, in the kubelet's own words.
func (c container) waiting(
	state *corev1.ContainerStateWaiting, last *corev1.ContainerStateTerminated,
) (finding reason.Finding, found bool) {
	words := cmp.Or(state.Message, state.Reason)
	switch state.Reason {
	case "", "ContainerCreating", "PodInitializing":
		if last != nil && (last.ExitCode != 0 || !c.isInit) {
			return c.ended(last), true
		}
		return reason.Finding{}, false
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError",
		"RegistryUnavailable", "SignatureValidationFailed":
		return reason.ImagePullFailed.Of(c.spec.Image, words), true
	case "CreateContainerConfigError":
		return reason.ConfigError.Of(c.spec.Name, words), true
	case "CrashLoopBackOff":
		if last == nil {
			last = &corev1.ContainerStateTerminated{ExitCode: -1}
		}
		return c.ended(last), true
	default:
		return reason.StartFailed.Of(c.spec.Name, words), true
	}
}

// ended is why a container ended.
func (c container) ended(how *corev1.ContainerStateTerminated) reason.Finding {
	switch how.Reason {
	case "OOMKilled":
		return c.outOfMemory()
	case "StartError", "ContainerCannotRun":
		return reason.StartFailed.Of(c.spec.Name, cmp.Or(how.Message, how.Reason))
	}
	entry := reason.CrashLoop
	switch {
	case c.isInit:
		entry = reason.InitFailed
	case c.spec.Name != v1beta1.ContainerRay:
		entry = reason.SidecarFailed
	}
	code, tail := "unknown", ""
	if how.ExitCode >= 0 {
		code = fmt.Sprint(how.ExitCode)
	}
	if lines := strings.Split(strings.TrimSpace(how.Message), "\n"); lines[len(lines)-1] != "" {
		tail = ": " + lines[len(lines)-1]
	}
	return entry.Of(c.spec.Name, code, c.restarts(), tail)
}

func (c container) outOfMemory() reason.Finding {
	limit, hasLimit := c.spec.Resources.Limits[corev1.ResourceMemory]
	switch {
	case !hasLimit:
		return reason.OutOfMemory.In("node").Of(c.spec.Name, " on its node", c.restarts())
	case c.spec.Name != v1beta1.ContainerRay:
		return reason.OutOfMemory.In("template").Of(c.spec.Name, " at its limit of "+limit.String(), c.restarts())
	default:
		return reason.OutOfMemory.Of(c.spec.Name, " at its limit of "+limit.String(), c.restarts())
	}
}

// restarts is the number of restarts as a remark.
func (c container) restarts() string {
	switch count := c.status.RestartCount; {
	case count <= 0:
		return ""
	case count == 1:
		return " (1 restart)"
	default:
		return fmt.Sprintf(" (%d restarts)", count)
	}
}
