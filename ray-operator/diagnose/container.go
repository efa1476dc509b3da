package diagnose

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// container is one container of a pod with what the kubelet says of it.
type container struct {
	spec   *corev1.Container
	status *corev1.ContainerStatus
	// init: it has to end before the next one starts. A sidecar among the init
	// containers has not.
	init bool
	// node is the pod's, and architecture that of the node, empty where it is not known.
	node, architecture string
	// unreadySince is when the pod's containers were last seen to be not all ready.
	unreadySince time.Time
	now          time.Time
}

// containers are the findings of a pod's containers, none for those that are as they should be.
func containers(pod *corev1.Pod, architecture string, now time.Time) []reason.Finding {
	var all []reason.Finding
	var unreadySince time.Time
	if ready := condition(pod, corev1.ContainersReady); ready != nil && ready.Status == corev1.ConditionFalse {
		unreadySince = ready.LastTransitionTime.Time
	}
	collect := func(specs []corev1.Container, statuses []corev1.ContainerStatus, init bool) {
		for i := range specs {
			status := statusOf(statuses, specs[i].Name)
			if status == nil {
				continue
			}
			c := container{
				spec: &specs[i], status: status, init: init && !isSidecar(&specs[i]), node: nodeOf(pod),
				architecture: cmp.Or(architecture, pod.Spec.NodeSelector[corev1.LabelArchStable]), unreadySince: unreadySince, now: now,
			}
			if finding, ok := c.finding(); ok {
				all = append(all, finding)
			}
		}
	}
	collect(pod.Spec.InitContainers, pod.Status.InitContainerStatuses, true)
	collect(pod.Spec.Containers, pod.Status.ContainerStatuses, false)
	return all
}

func (c container) finding() (reason.Finding, bool) {
	state, last := c.status.State, c.status.LastTerminationState.Terminated
	switch {
	case state.Waiting != nil:
		return c.waiting(*state.Waiting, last)
	case state.Terminated != nil:
		if c.init && state.Terminated.ExitCode == 0 {
			return reason.Finding{}, false
		}
		return c.ended(state.Terminated), true
	case state.Running != nil:
		return c.running(*state.Running, last)
	}
	return reason.Finding{}, false
}

func (c container) waiting(waiting corev1.ContainerStateWaiting, last *corev1.ContainerStateTerminated) (reason.Finding, bool) {
	switch waiting.Reason {
	case "", "ContainerCreating", "PodInitializing":
		if last != nil && (last.ExitCode != 0 || !c.init) {
			return c.ended(last), true
		}
		return reason.Finding{}, false
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError",
		"RegistryUnavailable", "SignatureValidationFailed":
		return imageFailure(c.spec, waiting.Reason, waiting.Message), true
	case "CreateContainerConfigError":
		return configFailure(c.spec.Name, waiting.Message), true
	case "CrashLoopBackOff":
		if last != nil {
			return c.ended(last), true
		}
		return c.reason().Of(c.spec.Name, "unknown", c.restarts(), ""), true
	default:
		return startFailure(c.spec.Name, cmp.Or(waiting.Message, waiting.Reason)), true
	}
}

func (c container) running(running corev1.ContainerStateRunning, last *corev1.ContainerStateTerminated) (reason.Finding, bool) {
	started := c.status.Started != nil && *c.status.Started
	crashed := last != nil && last.ExitCode != 0
	switch {
	case c.init && crashed, !c.init && !started && crashed:
		return c.ended(last), true
	case c.init && runsBeside(c.spec.Name):
		return reason.SidecarRewritten.Of(c.spec.Name), true
	case c.init:
		return reason.InitRunning.Of(c.spec.Name), true
	case c.status.Ready:
		return reason.Finding{}, false
	// One that has never been ready since it started is still on its way: Ray's head is
	// started some seconds before it answers.
	case started && c.unreadySince.After(running.StartedAt.Time), c.now.Sub(running.StartedAt.Time) >= startAfter:
		return reason.ProbeFailing.Of(c.spec.Name, probed(c.spec, started)), true
	default:
		return reason.Starting.Of(c.spec.Name), true
	}
}

// probed is the probe that does not succeed, where it is one of a path.
func probed(spec *corev1.Container, started bool) string {
	probe := spec.ReadinessProbe
	if !started && spec.StartupProbe != nil {
		probe = spec.StartupProbe
	}
	if probe == nil || probe.HTTPGet == nil {
		return ""
	}
	return fmt.Sprintf(" at :%s%s", probe.HTTPGet.Port.String(), clean(probe.HTTPGet.Path, nameLength))
}

func (c container) reason() reason.Reason {
	switch {
	case c.init:
		return reason.InitFailed
	case c.spec.Name != v1beta1.ContainerRay:
		return reason.SidecarFailed
	default:
		return reason.CrashLoop
	}
}

// ended is why a container ended.
func (c container) ended(how *corev1.ContainerStateTerminated) reason.Finding {
	if how.Reason == "OOMKilled" {
		return c.outOfMemory()
	}
	if isForeign(how.Message) {
		return c.wrongArchitecture()
	}
	if how.Reason == "StartError" || how.Reason == "ContainerCannotRun" || c.lacksRay(how) {
		return startFailure(c.spec.Name, cmp.Or(how.Message, how.Reason))
	}
	if versions, ok := mismatch(how.Message); ok {
		return reason.VersionMismatch.Of(versions[0], versions[1], versions[2], versions[3])
	}
	return c.reason().Of(c.spec.Name, exitCode(how.ExitCode), c.restarts(), after(": ", lastLines(how.Message)))
}

// lacksRay reports whether the image has no Ray: the shell that the Ray container begins with did not find the program.
func (c container) lacksRay(how *corev1.ContainerStateTerminated) bool {
	const notFound = 127
	return c.spec.Name == v1beta1.ContainerRay && how.ExitCode == notFound && strings.Contains(how.Message, "ray: not found")
}

func (c container) outOfMemory() reason.Finding {
	limit, ok := c.spec.Resources.Limits[corev1.ResourceMemory]
	switch {
	case !ok:
		return reason.OutOfMemory.In("node").Of(c.spec.Name, " on its node", c.restarts())
	case c.spec.Name != v1beta1.ContainerRay:
		return reason.OutOfMemory.In("template").Of(c.spec.Name, " at its limit of "+limit.String(), c.restarts())
	default:
		return reason.OutOfMemory.Of(c.spec.Name, " at its limit of "+limit.String(), c.restarts())
	}
}

// restarts is the number of restarts as a remark.
func (c container) restarts() string {
	switch c.status.RestartCount {
	case 0:
		return ""
	case 1:
		return " (1 restart)"
	default:
		return fmt.Sprintf(" (%d restarts)", c.status.RestartCount)
	}
}

// exitCode is the code, with the signal that it stands for where it is one that people meet.
func exitCode(code int32) string {
	signals := map[int32]string{132: "SIGILL", 134: "SIGABRT", 135: "SIGBUS", 137: "SIGKILL", 139: "SIGSEGV", 143: "SIGTERM"}
	return fmt.Sprint(code) + after(", ", signals[code])
}

// mismatchForm is the error with which Ray 2.52 to 2.60 refuses a node of another version.
var mismatchForm = regexp.MustCompile(`RuntimeError: Version mismatch: The cluster was started with:\s+` +
	`Ray: ([0-9A-Za-z.+_-]{1,40})\s+Python: ([0-9A-Za-z.+_-]{1,40})\s+` +
	`This process on [^\n]{1,200}? was started with:\s+` +
	`Ray: ([0-9A-Za-z.+_-]{1,40})\s+Python: ([0-9A-Za-z.+_-]{1,40})`)

// mismatch reads the head's and the worker's versions of Ray and Python from a log.
func mismatch(log string) (versions [4]string, ok bool) {
	form := mismatchForm.FindStringSubmatch(log)
	if form == nil {
		return versions, false
	}
	copy(versions[:], form[1:])
	return versions, true
}

// startFailure leaves out the programs that pass the runtime's error on.
func startFailure(name, message string) reason.Finding {
	if _, cause, ok := strings.Cut(message, "unable to start container process: "); ok {
		message = strings.TrimSuffix(strings.TrimSpace(cause), ": unknown")
	}
	return reason.StartFailed.Of(name, clean(message, wordLength))
}

// What the kubelet says when a container's variables or user cannot be had.
var (
	missingForm = regexp.MustCompile(`(?i)\b(secret|configmap) "([^"]+)" not found`)
	keyForm     = regexp.MustCompile(`couldn't find key (\S+) in (Secret|ConfigMap) [^/\s]+/(\S+)`)
	podSuffix   = regexp.MustCompile(` \(pod: .*$`)
)

func configFailure(name, message string) reason.Finding {
	message = strings.ReplaceAll(message, "\n", " ")
	if form := missingForm.FindStringSubmatch(message); form != nil {
		object := kindOf(form[1]) + " " + clean(form[2], nameLength)
		return reason.ConfigError.In("missing").Of(name, object+" does not exist", object)
	}
	if form := keyForm.FindStringSubmatch(message); form != nil {
		object := form[2] + " " + clean(form[3], nameLength)
		return reason.ConfigError.In("key").Of(name, object+" has no key "+clean(form[1], nameLength), object)
	}
	words := clean(podSuffix.ReplaceAllString(message, ""), wordLength)
	switch {
	case strings.Contains(message, "non-numeric user"):
		return reason.ConfigError.In("user").Of(name, words)
	case strings.Contains(message, "non-root") || strings.Contains(message, "runAsNonRoot"):
		return reason.ConfigError.In("root").Of(name, words)
	default:
		return reason.ConfigError.Of(name, words)
	}
}

// kindOf is the kind that a message names in lower case.
func kindOf(lower string) string {
	if strings.EqualFold(lower, "secret") {
		return "Secret"
	}
	return "ConfigMap"
}
