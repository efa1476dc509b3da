package diagnose_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// amounts is a resource list of name, quantity pairs.
func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i+1 < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// onNode is a pod that was given a node when it was born, with a container for each status.
func onNode(statuses ...corev1.ContainerStatus) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a-uid", CreationTimestamp: metav1.NewTime(born)},
		Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "ray"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodPending, ContainerStatuses: statuses,
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(born)}},
		},
	}
	for _, status := range statuses {
		if status.Name != "ray" {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: status.Name})
		}
	}
	return pod
}

// ended is a container that ended and waits to be started again.
func ended(name string, how corev1.ContainerStateTerminated) corev1.ContainerStatus {
	status := waitingFor("CrashLoopBackOff", "back-off 40s restarting failed container")
	status.Name, status.RestartCount, status.LastTerminationState.Terminated = name, 3, &how
	return status
}

func running(name string, started, ready bool) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: name, Started: &started, Ready: ready,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(born)}},
	}
}

// unreadySince makes a pod one whose containers are not all ready, since a time.
func unreadySince(at time.Time) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.ContainersReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(at),
		})
	}
}

func disrupted(why, message string) *corev1.Pod {
	pod := onNode(running("ray", true, true))
	gone := metav1.NewTime(born)
	pod.DeletionTimestamp = &gone
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: why, Message: message,
	})
	return pod
}

func failed(why, message string, statuses ...corev1.ContainerStatus) *corev1.Pod {
	pod := onNode(statuses...)
	pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, why, message
	return pod
}

func change(pod *corev1.Pod, how func(*corev1.Pod)) *corev1.Pod {
	how(pod)
	return pod
}

var (
	startup = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/up", Port: intstr.FromInt32(8265)}}}
	limited = func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits = amounts("memory", "2Gi") }
	oom     = corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}
)

// pods are pods and what they are told as.
var pods = map[string]struct {
	pod   *corev1.Pod
	after time.Duration
	want  string
}{
	"kubelet silent": {onNode(), 39 * time.Second, "ContainerCreating: its containers are being created on node n1"},
	"kubelet silent for long": {
		onNode(), 40 * time.Second, "NodeLost: its node n1 is lost: its kubelet has not taken the pod up",
	},
	"creating":  {onNode(waitingFor("ContainerCreating", "")), time.Hour, "ContainerCreating: its containers are being created on node n1"},
	"no status": {onNode(corev1.ContainerStatus{Name: "ray"}), 0, "ContainerCreating: its containers are being created on node n1"},
	"starting":  {onNode(running("ray", false, false)), 119 * time.Second, "Starting: container ray is starting"},
	"starting for long": {
		change(onNode(running("ray", false, false)), func(p *corev1.Pod) { p.Spec.Containers[0].StartupProbe = startup }), 120 * time.Second,
		"ProbeFailing: container ray runs and does not answer its probe at :8265/up. Check its log, and that it has enough CPU",
	},
	"out of memory": {
		change(onNode(ended("ray", oom)), limited), 0,
		"OutOfMemory: container ray ran out of memory at its limit of 2Gi (3 restarts). Raise memory in size or the template",
	},
	"out of memory without a limit": {
		onNode(ended("ray", oom)), 0,
		"OutOfMemory: container ray ran out of memory on its node (3 restarts). Give it a memory limit, or add memory to the nodes",
	},
	"sidecar out of memory": {
		change(onNode(ended("logs", oom)), func(p *corev1.Pod) { p.Spec.Containers[1].Resources.Limits = amounts("memory", "64Mi") }), 0,
		"OutOfMemory: container logs ran out of memory at its limit of 64Mi (3 restarts). Raise its memory limit in the template",
	},
	"made again after an end": {
		change(onNode(waitingFor("ContainerCreating", "")), func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 0}
		}), 0,
		"CrashLoop: container ray ended with exit code 0. Check its log: kubectl logs --previous",
	},
	"command missing": {
		onNode(ended("ray", corev1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError", Message: `exec: "ray": executable file not found in $PATH`})), 0,
		`StartFailed: container ray cannot be started: exec: "ray": executable file not found in $PATH. ` +
			"Correct command, mounts or securityContext of the container, or the image",
	},
	"an image for another architecture": {
		change(onNode(ended("ray", corev1.ContainerStateTerminated{ExitCode: 255, Reason: "Error", Message: "exec /bin/sh: exec format error\n"})), func(p *corev1.Pod) {
			p.Spec.Containers[0].Image, p.Spec.NodeSelector = "rayproject/ray:2.60.0", map[string]string{"kubernetes.io/arch": "arm64"}
		}), 0,
		"WrongArchitecture: container ray cannot run on node n1 (arm64): image rayproject/ray:2.60.0 is for amd64. " +
			"Use image rayproject/ray:2.60.0-aarch64, or set nodeSelector kubernetes.io/arch to amd64",
	},
	"an image for another architecture, of an older runtime": {
		change(onNode(ended("ray", corev1.ContainerStateTerminated{
			ExitCode: 1, Message: `standard_init_linux.go:228: exec user process caused: exec format error`,
		})), func(p *corev1.Pod) { p.Spec.Containers[0].Image = "own/ray:1" }), 0,
		"WrongArchitecture: container ray cannot run on node n1: image own/ray:1 is for another architecture. " +
			"Use an image for the node's architecture, or set nodeSelector kubernetes.io/arch to the image's",
	},
	"a start that fails for the architecture": {
		change(onNode(ended("logs", corev1.ContainerStateTerminated{
			ExitCode: 128, Reason: "StartError", Message: "container create failed: exec container process `/logs`: Exec format error",
		})), func(p *corev1.Pod) { p.Spec.Containers[1].Image = "own/logs:1-arm64" }), 0,
		"WrongArchitecture: container logs cannot run on node n1: image own/logs:1-arm64 is for arm64. " +
			"Use an image for the node's architecture, or set nodeSelector kubernetes.io/arch to the image's",
	},
	"a program of the user's for another architecture": {
		onNode(ended("ray", corev1.ContainerStateTerminated{ExitCode: 1, Message: "start\nexec /opt/tool: exec format error"})), 0,
		"CrashLoop: container ray ended with exit code 1 (3 restarts): start | exec /opt/tool: exec format error. Check its log: kubectl logs --previous",
	},
	"a sidecar that was made an init container": {
		change(onNode(waitingFor("PodInitializing", "")), func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "autoscaler"}}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{running("autoscaler", true, true)}
		}), 0,
		"SidecarRewritten: init container autoscaler has no restartPolicy Always any more, so the pod waits for its end. " +
			"Update the webhook that changes pods, or exempt the namespace from it",
	},
	"an image without Ray": {
		onNode(ended("ray", corev1.ContainerStateTerminated{ExitCode: 127, Reason: "Error", Message: "ray: 1: exec: ray: not found\n"})), 0,
		"StartFailed: container ray cannot be started: ray: 1: exec: ray: not found. " +
			"Correct command, mounts or securityContext of the container, or the image",
	},
	"a program of Ray's that is not found": {
		onNode(ended("ray", corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: "ray: not found"})), 0,
		"CrashLoop: container ray ended with exit code 1 (3 restarts): ray: not found. Check its log: kubectl logs --previous",
	},
	"started, and not ready so far": {
		change(onNode(running("ray", true, false)), unreadySince(born)), 119 * time.Second, "Starting: container ray is starting",
	},
	"not ready for long, with a probe of another sort": {
		onNode(running("ray", true, false)), 120 * time.Second,
		"ProbeFailing: container ray runs and does not answer its probe. Check its log, and that it has enough CPU",
	},
	"not ready any more": {
		change(onNode(running("ray", true, false)), unreadySince(born.Add(time.Second))), 2 * time.Second,
		"ProbeFailing: container ray runs and does not answer its probe. Check its log, and that it has enough CPU",
	},
	"after its init container": {
		change(onNode(running("ray", false, false)), func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "fetch"}}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{
				{Name: "fetch", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}},
			}
		}), 0, "Starting: container ray is starting",
	},
	"placed by someone who does not say so": {
		change(onNode(), func(p *corev1.Pod) { p.Status.Conditions = nil }), 40 * time.Second,
		"NodeLost: its node n1 is lost: its kubelet has not taken the pod up",
	},
	"failed on its way out": {
		change(disrupted("EvictionByEvictionAPI", "Eviction API: evicting"), func(p *corev1.Pod) {
			p.DeletionTimestamp, p.Status.Phase = nil, corev1.PodFailed
		}), 0, "Evicted: was evicted from node n1: by the eviction API, as kubectl drain and autoscalers do",
	},
	"killed": {
		onNode(ended("ray", corev1.ContainerStateTerminated{ExitCode: 137, Reason: "Error"})), 0,
		"CrashLoop: container ray ended with exit code 137, SIGKILL (3 restarts). Check its log: kubectl logs --previous",
	},
	"ended, nothing known": {
		onNode(waitingFor("CrashLoopBackOff", "")), 0,
		"CrashLoop: container ray ended with exit code unknown. Check its log: kubectl logs --previous",
	},
	"started again after an end": {
		change(onNode(running("ray", false, false)), func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].RestartCount = 1
			p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Message: "no"}
		}), 0,
		"CrashLoop: container ray ended with exit code 1 (1 restart): no. Check its log: kubectl logs --previous",
	},
	"user by name": {
		onNode(waitingFor("CreateContainerConfigError", `container has runAsNonRoot and image has non-numeric user (ray), cannot verify user is non-root (pod: "a", container: ray)`)), 0,
		"ConfigError: container ray cannot be created: container has runAsNonRoot and image has non-numeric user (ray), cannot verify user is non-root. " +
			"Set runAsUser in the securityContext of the template to a number: the user of the image is not numeric",
	},
	"another config error": {
		onNode(waitingFor("CreateContainerConfigError", "failed to sync configmap cache: timed out waiting for the condition")), 0,
		"ConfigError: container ray cannot be created: failed to sync configmap cache: timed out waiting for the condition. Correct the container in the template",
	},
	"hook": {
		onNode(waitingFor("PostStartHookError", "")), 0,
		"StartFailed: container ray cannot be started: PostStartHookError. Correct command, mounts or securityContext of the container, or the image",
	},
	"the worse of two": {
		change(onNode(ended("ray", corev1.ContainerStateTerminated{ExitCode: 1}), corev1.ContainerStatus{Name: "logs"}), func(p *corev1.Pod) {
			p.Spec.Containers[1].Image = "x/logs:1"
			p.Status.ContainerStatuses[1].State = waitingFor("ErrImageNeverPull", "").State
		}), 0,
		"ImagePullFailed: image x/logs:1 cannot be pulled: it is not on the node, and imagePullPolicy is Never. " +
			"Load it onto the nodes, or change imagePullPolicy",
	},
	"preempted": {
		disrupted("PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod"), 0,
		"Preempted: was preempted on node n1: by a pod of higher priority. Give it a higher priority with podDefaults.priorityClassName",
	},
	"node object gone": {disrupted("DeletionByPodGC", "PodGC: node no longer exists"), 0, "NodeLost: its node n1 is lost: there is no such Node any more"},
	"kubelet ends it":  {disrupted("TerminationByKubelet", "Pod was terminated in response to imminent node shutdown."), 0, "Evicted: was evicted from node n1: Pod was terminated in response to imminent node shutdown"},
	"terminating for long": {
		change(disrupted("PreemptionByScheduler", ""), func(p *corev1.Pod) { grace := int64(60); p.DeletionGracePeriodSeconds = &grace }), 30 * time.Second,
		"Terminating: has been terminating since 2026-11-21T14:59:00Z on node n1. " +
			"Check the node; if it is permanently gone, delete the Node or taint it node.kubernetes.io/out-of-service",
	},
	"memory pressure": {
		failed("Evicted", "The node was low on resource: memory. Threshold quantity: 100Mi, available: 95Mi. Container ray was using 3Gi, request is 1Gi, has larger consumption of memory. "), 0,
		"Evicted: was evicted from node n1: The node was low on resource: memory. Threshold quantity: 100Mi, available: 95Mi. " +
			"Container ray was using 3Gi, request is 1Gi, has larger consumption of memory. Set requests equal to limits for memory, so that it is not evicted first",
	},
	"shared memory full": {
		failed("Evicted", `Usage of EmptyDir volume "ray-shm" exceeds the limit "1Gi". `), 0,
		`Evicted: was evicted from node n1: Usage of EmptyDir volume "ray-shm" exceeds the limit "1Gi". Raise memory in size: /dev/shm grows with it`,
	},
	"pressure of processes": {
		failed("Evicted", "The node was low on resource: pids."), 0, "Evicted: was evicted from node n1: The node was low on resource: pids",
	},
	"critical pod": {
		failed("Preempting", "Preempted in order to admit critical pod"), 0,
		"Preempted: was preempted on node n1: by the kubelet, for a critical pod. Give it a higher priority with podDefaults.priorityClassName",
	},
	"shutdown": {
		failed("Terminated", "Pod was terminated in response to imminent node shutdown.", running("ray", true, true)), 0,
		"NodeLost: its node n1 is lost: it shuts down",
	},
	"lost without a word": {failed("NodeLost", ""), 0, "NodeLost: its node n1 is lost: it does not answer"},
	"lost":                {failed("NodeLost", "Node n1 which was running pod a is unresponsive"), 0, "NodeLost: its node n1 is lost: Node n1 which was running pod a is unresponsive"},
	"devices gone": {
		failed("UnexpectedAdmissionError", "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu."), 0,
		"NodeRefused: node n1 refused it (UnexpectedAdmissionError): Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. " +
			"The operator replaces it; if this repeats, check the node's devices and resources",
	},
	"ended as a whole": {
		failed("", "", corev1.ContainerStatus{Name: "ray", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 0, Reason: "Completed"}}}), 0,
		"CrashLoop: container ray ended with exit code 0. Check its log: kubectl logs --previous",
	},
	"deadline": {
		failed("DeadlineExceeded", "Pod was active on the node longer than the specified deadline", corev1.ContainerStatus{Name: "ray"}), 0,
		"PodFailed: ended as a whole: DeadlineExceeded: Pod was active on the node longer than the specified deadline. " +
			"Correct the template, unless this is intended",
	},
}

func TestPod(t *testing.T) {
	for name, test := range pods {
		t.Run(name, func(t *testing.T) {
			finding, ok := diagnose.Pod(test.pod, nil, born.Add(test.after))
			if have := finding.Code + ": " + finding.Text; !ok || have != test.want {
				t.Errorf("told as\n  %s\nwant\n  %s", have, test.want)
			}
		})
	}
}

func TestPodThatIsWell(t *testing.T) {
	ready := change(onNode(running("ray", true, true)), func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	})
	gone := metav1.NewTime(born)
	going := change(onNode(running("ray", true, true)), func(p *corev1.Pod) { p.DeletionTimestamp = &gone })
	for name, pod := range map[string]*corev1.Pod{"ready": ready, "leaves in time": going} {
		if finding, ok := diagnose.Pod(pod, nil, born.Add(29*time.Second)); ok {
			t.Errorf("%s: told as %s: %s", name, finding.Code, finding.Text)
		}
		if diagnose.NeedsEvents(pod, born.Add(time.Hour)) {
			t.Errorf("%s: needs its events", name)
		}
	}
}

// TestNeedsEvents: only while a container whose turn it is waits to be made, and after some seconds.
func TestNeedsEvents(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	inits := func(statuses ...corev1.ContainerStatus) *corev1.Pod {
		pod := onNode(waitingFor("PodInitializing", ""))
		for i, status := range statuses {
			container := corev1.Container{Name: status.Name}
			if i == 0 {
				container.RestartPolicy = &always
			}
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, container)
		}
		pod.Status.InitContainerStatuses = statuses
		return pod
	}
	named := func(name string, state corev1.ContainerState) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: state}
	}
	done := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	broken := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	waits := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
	backOff := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"creating":                     {onNode(waitingFor("ContainerCreating", "")), true},
		"kubelet silent":               {onNode(), true},
		"one of two is made":           {onNode(running("ray", true, true), named("logs", corev1.ContainerState{})), true},
		"pull failed":                  {onNode(waitingFor("ErrImagePull", "x")), false},
		"running":                      {onNode(running("ray", false, false)), false},
		"first init container waits":   {inits(named("proxy", waits), named("two", waits)), true},
		"no word of an init container": {change(inits(named("proxy", runs)), func(p *corev1.Pod) { p.Status.InitContainerStatuses = nil }), true},
		"second init container waits":  {inits(named("proxy", runs), named("two", waits)), true},
		"second init container runs":   {inits(named("proxy", runs), named("two", runs)), false},
		"second init container failed": {inits(named("proxy", runs), named("two", broken)), false},
		"second init container backs":  {inits(named("proxy", runs), named("two", backOff)), false},
		"init containers done":         {inits(named("proxy", runs), named("two", done)), true},
		"finished":                     {failed("Evicted", "x"), false},
	} {
		if diagnose.NeedsEvents(test.pod, born.Add(4*time.Second)) {
			t.Errorf("%s: needs events after four seconds", name)
		}
		if have := diagnose.NeedsEvents(test.pod, born.Add(5*time.Second)); have != test.want {
			t.Errorf("%s: needs events %v, want %v", name, have, test.want)
		}
	}
}

// TestLog: what is quoted of a log is its end, bounded, printable, one line.
func TestLog(t *testing.T) {
	quote := func(log string) string {
		finding, _ := diagnose.Pod(onNode(ended("ray", corev1.ContainerStateTerminated{ExitCode: 1, Message: log})), nil, born)
		_, rest, _ := strings.Cut(finding.Text, "(3 restarts)")
		return strings.TrimSuffix(rest, ". Check its log: kubectl logs --previous")
	}
	for name, test := range map[string]struct{ log, want string }{
		"empty":     {" \n ", ""},
		"lines":     {"one\n\n  two  words\r\nthree.\n", ": one | two words | three"},
		"colours":   {"\x1b[31mred\x1b[0m \x1b[1;32mgreen", ": red green"},
		"controls":  {"a\x00b\x07c\x7f\u202etxt\u200b", ": abctxt"},
		"no utf-8":  {"a\xff\xfeb", ": ab"},
		"verbs":     {"100%s %d", ": 100%s %d"},
		"last fits": {strings.Repeat("x", 500) + "\nlast", ": last"},
		"one long":  {strings.Repeat("x", 500), ": " + strings.Repeat("x", 399) + "…"},
	} {
		if have := quote(test.log); have != test.want {
			t.Errorf("%s: %q, want %q", name, have, test.want)
		}
	}
	if have := quote(strings.Repeat("0123456789\n", 10000)); utf8.RuneCountInString(have) > 402 || utf8.RuneCountInString(have) < 380 {
		t.Errorf("a long log becomes %d characters", utf8.RuneCountInString(have))
	}
}

func TestWorst(t *testing.T) {
	if _, ok := diagnose.Worst(); ok {
		t.Error("something is the worst of nothing")
	}
	starting, creating, crash := reason.Starting.Of("ray"), reason.ContainerCreating.Of("n1"), reason.CrashLoop.Of("ray", "1", "", "")
	other := reason.Starting.Of("another")
	for name, test := range map[string]struct {
		of   []reason.Finding
		want reason.Finding
	}{
		"severity":  {[]reason.Finding{starting, crash, creating}, crash},
		"catalogue": {[]reason.Finding{starting, creating}, creating},
		"text":      {[]reason.Finding{starting, other}, other},
	} {
		if have, ok := diagnose.Worst(test.of...); !ok || have != test.want {
			t.Errorf("%s: %+v, want %+v", name, have, test.want)
		}
	}
}

func TestGroup(t *testing.T) {
	if _, ok := diagnose.Group("gpu", 3, nil); ok {
		t.Error("a group of ready workers has a finding")
	}
	full, fuller := reason.Unschedulable.Of("0/2 nodes fit"), reason.Unschedulable.Of("0/3 nodes fit")
	crash, starting := reason.CrashLoop.Of("ray", "1", "", ""), reason.Starting.Of("ray")
	for name, test := range map[string]struct {
		of   []reason.Finding
		want string
	}{
		"of the severest":     {[]reason.Finding{starting, starting, starting, full}, "1 of 8 workers of gpu: " + full.Text},
		"the most frequent":   {[]reason.Finding{crash, full, full, crash, full}, "3 of 8 workers of gpu: " + full.Text},
		"by the catalogue":    {[]reason.Finding{crash, full}, "1 of 8 workers of gpu: " + full.Text},
		"words of most":       {[]reason.Finding{full, fuller, fuller}, "3 of 8 workers of gpu: " + fuller.Text},
		"words by themselves": {[]reason.Finding{fuller, full}, "2 of 8 workers of gpu: " + full.Text},
	} {
		if have, ok := diagnose.Group("gpu", 8, test.of); !ok || have.Text != test.want {
			t.Errorf("%s: %s, want %s", name, have.Text, test.want)
		}
	}
	if have, _ := diagnose.Group("gpu", 1, []reason.Finding{full, full}); have.Text != "2 of 2 workers of gpu: "+full.Text {
		t.Errorf("more than wanted: %s", have.Text)
	}
}
