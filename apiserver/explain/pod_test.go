package explain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/apiserver/explain"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// placed is a pod on a node, and not ready since three minutes after everything was made.
func placed(pod *corev1.Pod) { starting(pod).Status.ContainerStatuses = nil }

// over is a pod that ended as a whole.
func over(why, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		placed(pod)
		pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, why, message
	}
}

// inState is a pod whose Ray container is in a state, after another one, and was started again so many times.
func inState(state corev1.ContainerState, last *corev1.ContainerStateTerminated, restarts int32) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		placed(pod)
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: v1beta1.ContainerRay, State: state, RestartCount: restarts,
			LastTerminationState: corev1.ContainerState{Terminated: last},
		}}
	}
}

func held(why, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: why, Message: message}}
}

// runs is a container that runs for some time.
func runs(since time.Duration) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-since))}}
}

// exit is how a container ended.
func exit(code int32, why, message string) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{ExitCode: code, Reason: why, Message: message}
}

// both are changes of one pod.
func both(changes ...func(*corev1.Pod)) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		for _, change := range changes {
			change(pod)
		}
	}
}

// in makes the pod's only container an init container.
func in(pod *corev1.Pod) {
	pod.Spec.InitContainers, pod.Spec.Containers = pod.Spec.Containers, nil
	pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses = pod.Status.ContainerStatuses, nil
}

func limited(pod *corev1.Pod) {
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
}

// renamed makes the pod's only container another one than Ray's.
func renamed(pod *corev1.Pod) {
	pod.Spec.Containers[0].Name, pod.Status.ContainerStatuses[0].Name = "logs", "logs"
}

func gone(minutes int, grace *int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		placed(pod)
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(at(minutes)), grace
	}
}

// restarting gives the pod's only init container a policy.
func restarting(policy corev1.ContainerRestartPolicy) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.InitContainers[0].RestartPolicy = &policy }
}

const (
	noImage   = "ImagePullFailed: image ray:1 cannot be pulled: x (Correct the image, or check the events of the pod) 3"
	seeLog    = "Check its log: kubectl logs --previous"
	otherNode = "The operator replaces it; if this repeats, check the node's devices and resources"
	hangs     = "Check the node; if it is permanently gone, delete the Node or taint it node.kubernetes.io/out-of-service"
)

// pods are heads, with what they say themselves and since how many minutes after everything was made.
var pods = map[string]struct {
	change func(*corev1.Pod)
	want   string
}{
	"not looked at by the scheduler":  {func(*corev1.Pod) {}, "Scheduling: is being scheduled () 0"},
	"scheduled and not yet on a node": {scheduling(corev1.ConditionTrue, ""), "Scheduling: is being scheduled () 2"},
	"no node": {
		scheduling(corev1.ConditionFalse, "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: none."),
		"Unschedulable: cannot be scheduled: 0/1 nodes are available: 1 Insufficient cpu (Free resources, add nodes, or request less) 2",
	},
	"room is made": {
		both(scheduling(corev1.ConditionFalse, "x"), func(pod *corev1.Pod) { pod.Status.NominatedNodeName = "node2" }),
		"Preempting: waits for pods of lower priority to leave node node2 () 2",
	},
	"a gate": {
		func(pod *corev1.Pod) {
			pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "queue"}, {Name: "other"}}
		},
		"SchedulingGated: held back by scheduling gate queue () 0",
	},
	"no word of a kubelet": {placed, "ContainerCreating: its containers are being created on node node1 () 3"},
	"all ready and a gate closed": {
		both(inState(runs(0), nil, 0), func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses[0].Ready = true
			pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: corev1.PodReady}}
		}), "ReadinessGated: waits for its readiness gate Ready () 3",
	},
	"all ready on a node that is not": {
		both(inState(runs(0), nil, 0), func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].Ready = true }),
		"NodeLost: its node node1 is lost: it does not answer, and Kubernetes calls its pods not ready () 3",
	},

	"evicted":                {over("Evicted", "x"), "Evicted: was evicted from node node1: x () 3"},
	"preempted by a kubelet": {over("Preempting", "x"), "Preempted: was preempted on node node1: by the kubelet, for a critical pod (Give it a higher priority with podDefaults.priorityClassName) 3"},
	"lost":                   {over("NodeLost", "x"), "NodeLost: its node node1 is lost: x () 3"},
	"on a node that ended":   {over("Terminated", ""), "NodeLost: its node node1 is lost: Terminated () 3"},
	"on a node that ends":    {over("NodeShutdown", ""), "NodeLost: its node node1 is lost: NodeShutdown () 3"},
	"refused for a device":   {over("UnexpectedAdmissionError", "x"), "NodeRefused: node node1 refused it (UnexpectedAdmissionError): x (" + otherNode + ") 3"},
	"refused for want":       {over("OutOfcpu", "x"), "NodeRefused: node node1 refused it (OutOfcpu): x (" + otherNode + ") 3"},
	"ended for another cause": {
		over("DeadlineExceeded", ""), "PodFailed: ended as a whole: DeadlineExceeded (Correct the template, unless this is intended) 3",
	},
	"ended as it was meant to": {
		both(placed, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }),
		"PodFailed: ended as a whole: Succeeded (Correct the template, unless this is intended) 3",
	},
	"ended with its container": {
		both(inState(corev1.ContainerState{Terminated: exit(1, "Error", "a\nb\n")}, nil, 0), func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }),
		"CrashLoop: container ray ended with exit code 1: b (" + seeLog + ") 3",
	},

	"no image":                  {inState(held("ErrImagePull", "x"), nil, 0), "ImagePullFailed: image ray:1 cannot be pulled: x (Correct the image, or check the events of the pod) 3"},
	"no image, in no words":     {inState(held("ImagePullBackOff", ""), nil, 0), "ImagePullFailed: image ray:1 cannot be pulled: ImagePullBackOff (Correct the image, or check the events of the pod) 3"},
	"an image with no name":     {inState(held("InvalidImageName", "x"), nil, 0), noImage},
	"an image never pulled":     {inState(held("ErrImageNeverPull", "x"), nil, 0), noImage},
	"an image not read":         {inState(held("ImageInspectError", "x"), nil, 0), noImage},
	"a registry that is away":   {inState(held("RegistryUnavailable", "x"), nil, 0), noImage},
	"an image that is unsigned": {inState(held("SignatureValidationFailed", "x"), nil, 0), noImage},
	"a sidecar that starts": {
		both(inState(runs(0), nil, 0), in, restarting(corev1.ContainerRestartPolicyAlways)), "Starting: container ray is starting () 3",
	},
	"an init container that is retried": {
		both(inState(runs(0), nil, 0), in, restarting(corev1.ContainerRestartPolicyNever)), "InitRunning: init container ray is running () 3",
	},
	"no variable": {inState(held("CreateContainerConfigError", "x"), nil, 0), "ConfigError: container ray cannot be created: x (Correct the container in the template) 3"},
	"no start":    {inState(held("RunContainerError", "x"), nil, 0), "StartFailed: container ray cannot be started: x (Correct command, mounts or securityContext of the container, or the image) 3"},
	"no command": {
		inState(held("CrashLoopBackOff", ""), exit(128, "StartError", "x"), 1),
		"StartFailed: container ray cannot be started: x (Correct command, mounts or securityContext of the container, or the image) 3",
	},
	"a crash of which nothing is known":              {inState(held("CrashLoopBackOff", ""), nil, 2), "CrashLoop: container ray ended with exit code unknown (2 restarts) (" + seeLog + ") 3"},
	"a crash":                                        {inState(held("CrashLoopBackOff", ""), exit(1, "Error", ""), 1), "CrashLoop: container ray ended with exit code 1 (1 restart) (" + seeLog + ") 3"},
	"a crash before it is made again":                {inState(held("ContainerCreating", ""), exit(0, "Completed", ""), 1), "CrashLoop: container ray ended with exit code 0 (1 restart) (" + seeLog + ") 3"},
	"a crash before it answers again":                {inState(runs(0), exit(1, "Error", ""), 1), "CrashLoop: container ray ended with exit code 1 (1 restart) (" + seeLog + ") 3"},
	"a crash of another container":                   {both(inState(held("CrashLoopBackOff", ""), exit(1, "Error", ""), 1), renamed), "SidecarFailed: container logs ended with exit code 1 (1 restart) (Correct that container in the template) 3"},
	"a crash of an init container":                   {both(inState(held("CrashLoopBackOff", ""), exit(1, "Error", ""), 1), in), "InitFailed: init container ray ended with exit code 1 (1 restart) (Correct the init container in the template) 3"},
	"an init container that ended":                   {both(inState(corev1.ContainerState{Terminated: exit(0, "Completed", "")}, nil, 0), in), "ContainerCreating: its containers are being created on node node1 () 3"},
	"an init container that ended and is made again": {both(inState(held("", ""), exit(0, "Completed", ""), 0), in), "ContainerCreating: its containers are being created on node node1 () 3"},
	"an init container that runs":                    {both(inState(runs(0), nil, 0), in), "InitRunning: init container ray is running () 3"},
	"a container that is made":                       {inState(held("ContainerCreating", ""), nil, 0), "ContainerCreating: its containers are being created on node node1 () 3"},
	"a container without a state":                    {inState(corev1.ContainerState{}, nil, 0), "ContainerCreating: its containers are being created on node node1 () 3"},
	"a container that starts":                        {inState(runs(2*time.Minute-1), nil, 0), "Starting: container ray is starting () 3"},
	"a container that does not answer":               {inState(runs(2*time.Minute), nil, 0), "ProbeFailing: container ray runs and does not answer its probe (Check its log, and that it has enough CPU) 3"},
	"a container that was started and does not answer": {
		both(inState(runs(0), exit(1, "Error", ""), 1), func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].Started = new(true) }),
		"Starting: container ray is starting () 3",
	},
	"no memory on the node":       {inState(corev1.ContainerState{Terminated: exit(137, "OOMKilled", "")}, nil, 0), "OutOfMemory: container ray ran out of memory on its node (Give it a memory limit, or add memory to the nodes) 3"},
	"no memory within the limit":  {both(inState(corev1.ContainerState{Terminated: exit(137, "OOMKilled", "")}, nil, 0), limited), "OutOfMemory: container ray ran out of memory at its limit of 1Gi (Raise memory in size or the template) 3"},
	"no memory in a sidecar":      {both(inState(corev1.ContainerState{Terminated: exit(137, "OOMKilled", "")}, nil, 0), limited, renamed), "OutOfMemory: container logs ran out of memory at its limit of 1Gi (Raise its memory limit in the template) 3"},
	"the worse of two containers": {both(inState(runs(0), nil, 0), another), "SidecarFailed: container logs ended with exit code 2 (Correct that container in the template) 3"},

	"told to go": {gone(10, new(int64(60))), "Terminating: has been terminating since 2026-11-21T15:39:00Z on node node1 (" + hangs + ") 9"},
	"told to go without grace": {
		both(gone(10, nil), func(pod *corev1.Pod) { pod.Spec.NodeName = "" }),
		"Terminating: has been terminating since 2026-11-21T15:40:00Z on node unknown (" + hangs + ") 10",
	},
}

// another is one more container, which ended.
func another(pod *corev1.Pod) {
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "logs"})
	pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
		Name: "logs", State: corev1.ContainerState{Terminated: exit(2, "Error", "")},
	})
}

func scheduling(status corev1.ConditionStatus, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: status, Message: message, LastTransitionTime: at(2),
		}}
	}
}

// TestExplain_Pods: what a pod says itself, where the status says nothing of it.
func TestExplain_Pods(t *testing.T) {
	cluster := clusterOf("demo", unready(reason.HeadMissing.Of()))
	for name, test := range pods {
		t.Run(name, func(t *testing.T) {
			pod := podOf(cluster, "demo-head", "")
			test.change(pod)
			chain := explain.Explain(explain.Input{Object: cluster, Pods: []*corev1.Pod{pod}, Now: now})
			if len(chain) != 2 {
				t.Fatalf("the chain is %v", lines(chain))
			}
			last := chain[1]
			have := fmt.Sprintf("%s: %s (%s) %d", last.Code, last.Message, last.Remedy, int(last.Since.Sub(born).Minutes()))
			if diff := cmp.Diff(test.want, have); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestExplain_PodsThatLeave: half a minute after its time is what a pod may take.
func TestExplain_PodsThatLeave(t *testing.T) {
	cluster := clusterOf("demo", unready(reason.HeadMissing.Of()))
	pod := podOf(cluster, "demo-head", "")
	gone(10, nil)(pod)
	for after, want := range map[time.Duration]int{30*time.Second - 1: 1, 30 * time.Second: 2} {
		chain := explain.Explain(explain.Input{Object: cluster, Pods: []*corev1.Pod{pod}, Now: at(10).Add(after)})
		if len(chain) != want || want == 2 && !chain[1].Since.Equal(at(10).Time) {
			t.Errorf("after %s: %v", after, lines(chain))
		}
	}
}

// TestExplain_Attempts: of a job's last attempt what is not told yet.
func TestExplain_Attempts(t *testing.T) {
	lost := v1beta1.JobAttempt{Reason: "DriverLost", Message: "x", EndTime: new(at(7))}
	for name, test := range map[string]struct {
		ready   metav1.Condition
		attempt v1beta1.JobAttempt
		want    int
	}{
		"why it ended":                 {unready(reason.Retrying.Of(1, "DriverLost", "10:00")), lost, 2},
		"not twice":                    {unready(reason.DriverLost.Of("y")), lost, 1},
		"not of a job that succeeded":  {isReady(reason.JobSucceeded.Of(2)), lost, 1},
		"not without words":            {unready(reason.Retrying.Of(1, "DriverLost", "10:00")), v1beta1.JobAttempt{Reason: "DriverLost"}, 1},
		"not what is no trouble":       {unready(reason.JobRunning.Of(1, "demo")), v1beta1.JobAttempt{Reason: "JobRunning", Message: "x"}, 1},
		"nothing of one that goes on":  {unready(reason.JobRunning.Of(1, "demo")), v1beta1.JobAttempt{}, 1},
		"the code without a catalogue": {unready(reason.JobRunning.Of(1, "demo")), v1beta1.JobAttempt{Reason: "Unheard", Message: "x"}, 2},
	} {
		job := jobOf("train", test.ready)
		job.Status.Attempts = []v1beta1.JobAttempt{{Reason: "ClusterGone", Message: "a former one"}, test.attempt}
		chain := explain.Explain(explain.Input{Object: job, Now: now})
		if len(chain) != test.want {
			t.Errorf("%s: %v", name, lines(chain))
		} else if test.want == 2 && (chain[1].Code != test.attempt.Reason || test.attempt.EndTime != nil && !chain[1].Since.Equal(at(7).Time)) {
			t.Errorf("%s: %+v", name, chain[1])
		}
	}
}

// TestExplain_Notes: what a condition warns of is told after the headline, of every kind; what is fine, or on its way, not.
func TestExplain_Notes(t *testing.T) {
	warning, progress := reason.StoreFull.Of("a", "b"), reason.WorkersStarting.Of(0, 1)
	for _, kind := range []string{
		v1beta1.ConditionNameConflict, v1beta1.ConditionInvalidSpec, v1beta1.ConditionHeadReady, v1beta1.ConditionControlStoreReady,
		v1beta1.ConditionWorkersReady,
		v1beta1.ConditionVersionMismatch, v1beta1.ConditionAutoscaling, v1beta1.ConditionUpToDate, v1beta1.ConditionRolledBack,
		v1beta1.ConditionUpgrading, v1beta1.ConditionGatewayProgrammed, v1beta1.ConditionSuspended,
	} {
		for finding, want := range map[reason.Finding]int{warning: 2, progress: 1, allReady: 1, {}: 1} {
			condition := condition(kind, metav1.ConditionFalse, finding, 1)
			for _, object := range []runtime.Object{
				clusterOf("a", unready(crash), condition), jobOf("a", unready(crash), condition), serviceOf("a", unready(crash), condition),
			} {
				chain := explain.Explain(explain.Input{Object: object, Now: now})
				if len(chain) != want || want == 2 && chain[1].Code != warning.Code {
					t.Errorf("%T, %s %s: %v", object, kind, finding.Code, lines(chain))
				}
			}
		}
	}
}

// TestExplain_EndedJobs: a job that came to its end waits for no cluster.
func TestExplain_EndedJobs(t *testing.T) {
	cluster := clusterOf("demo", unready(crash))
	for name, test := range map[string]struct {
		condition metav1.Condition
		want      int
	}{
		"complete":     {condition(v1beta1.ConditionComplete, metav1.ConditionTrue, allReady, 1), 1},
		"failed":       {condition(v1beta1.ConditionFailed, metav1.ConditionTrue, crash, 1), 1},
		"not complete": {condition(v1beta1.ConditionComplete, metav1.ConditionFalse, allReady, 1), 2},
		"not failed":   {condition(v1beta1.ConditionFailed, metav1.ConditionFalse, crash, 1), 2},
		"another one":  {condition(v1beta1.ConditionReconciling, metav1.ConditionTrue, crash, 1), 2},
	} {
		job := jobOf("train", unready(reason.JobRunning.Of(1, "demo")), test.condition)
		job.Spec.ClusterRef = &v1beta1.ClusterReference{Name: "demo"}
		chain := explain.Explain(explain.Input{Object: job, Clusters: []*v1beta1.ComputeCluster{cluster}, Now: now})
		if len(chain) != test.want {
			t.Errorf("%s: %v", name, lines(chain))
		}
	}
}

// TestExplain_OrderOfClusters: the version that serves comes before the one on its way, and before what is only owned.
func TestExplain_OrderOfClusters(t *testing.T) {
	service := serviceOf("serve", unready(reason.ServeSilent.Of("a", "b", "c")))
	service.Status.Active = &v1beta1.ServiceVersion{ClusterName: "z"}
	service.Status.Candidate = &v1beta1.ServiceVersion{ClusterName: "y"}
	var clusters []*v1beta1.ComputeCluster
	for _, name := range []string{"b", "a", "y", "z", "foreign"} {
		cluster := clusterOf(name, unready(crash))
		if name != "foreign" {
			cluster.OwnerReferences = []metav1.OwnerReference{{UID: service.UID, Controller: new(true)}}
		}
		clusters = append(clusters, cluster)
	}
	notOwner := clusterOf("c", unready(crash))
	notOwner.OwnerReferences = []metav1.OwnerReference{{UID: service.UID, Controller: new(false)}, {UID: service.UID}}
	chain := explain.Explain(explain.Input{Object: service, Clusters: append(clusters, notOwner), Now: now})
	var names []string
	for _, cause := range chain[1:] {
		names = append(names, cause.Name)
	}
	if diff := cmp.Diff([]string{"z", "y", "a", "b"}, names); diff != "" {
		t.Error(diff)
	}
}

// TestExplain_UsedClusters: of a ready cluster what its autoscaler cannot make is told, and else nothing.
func TestExplain_UsedClusters(t *testing.T) {
	job := jobOf("train", unready(reason.JobPending.Of("x")))
	job.Status.ClusterName = "demo"
	cluster := clusterOf("demo", isReady(allReady),
		condition(v1beta1.ConditionAutoscaling, metav1.ConditionTrue, reason.Infeasible.Of("1 × GPU"), 1),
		condition(v1beta1.ConditionUpToDate, metav1.ConditionFalse, reason.PodsOutdated.Of(1, 2, "x"), 1))
	chain := explain.Explain(explain.Input{Object: job, Clusters: []*v1beta1.ComputeCluster{cluster}, Now: now})
	if len(chain) != 2 || chain[1].Code != reason.Infeasible.Code || chain[1].Name != "demo" {
		t.Error(lines(chain))
	}
}

// TestHeadline_IsCut: a text of 4 KiB stays, and one that is longer ends with an ellipsis and no half character.
func TestHeadline_IsCut(t *testing.T) {
	const most = 4 << 10
	for name, test := range map[string]struct{ text, want string }{
		"one that fits":   {strings.Repeat("x", most), strings.Repeat("x", most)},
		"one that is cut": {strings.Repeat("x", most+1), strings.Repeat("x", most-3) + "…"},
		"half characters": {strings.Repeat("x", most-4) + "世界", strings.Repeat("x", most-4) + "…"},
		"what is none":    {"a\xffb", "a�b"},
	} {
		have := explain.Headline(clusterOf("demo", unready(reason.Finding{Code: "Unheard", Text: test.text})))
		if have.Message != test.want {
			t.Errorf("%s: %d bytes, %q", name, len(have.Message), have.Message[max(0, len(have.Message)-20):])
		}
	}
}
