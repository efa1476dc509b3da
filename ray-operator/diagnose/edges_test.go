package diagnose

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

const (
	fewer   = "Relax the pod affinity or topologySpreadConstraints in the template, or add nodes"
	volumes = "Make its volumes available on the nodes that fit"
	more    = "Request less in size, or add nodes with more cpu"
)

// verdicts are the scheduler's words for causes, what becomes of them, and the remedy.
var verdicts = map[string][2]string{
	"2 node(s) didn't match pod affinity rules":                                   {"2 do not match its pod affinity", fewer},
	"2 node(s) didn't satisfy existing pods anti-affinity rules":                  {"2 are ruled out by other pods' anti-affinity", fewer},
	"2 node(s) didn't match pod topology spread constraints":                      {"2 do not match its topology spread", fewer},
	"2 node(s) didn't find available persistent volumes to bind":                  {"2 have no volume for its claims", volumes},
	"2 node(s) had volume node affinity conflict":                                 {"2 do not reach its volume", volumes},
	"2 node(s) had no available volume zone":                                      {"2 are in another zone than its volume", volumes},
	"2 node(s) exceed max volume count":                                           {"2 are full of volumes", volumes},
	"2 node(s) did not have enough free storage":                                  {"2 have too little storage for its claims", volumes},
	"2 node(s) had no available disk":                                             {"2 have its disk in use", volumes},
	"2 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)": {"2 cannot have its volume, which is gone", volumes},
	"2 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod": {
		"2 cannot have its claim, which another pod uses", volumes,
	},
	"1 Insufficient ephemeral-storage": {
		"1 too little ephemeral-storage", "Request less in size, or add nodes with more ephemeral-storage",
	},
	// Of causes that equally many nodes have, what the pod asks for comes first.
	"1 node(s) had untolerated taint {a: b}, 1 Insufficient cpu": {"1 too little cpu, 1 have taint a=b", more},
	// A taint is only named first where nodes lack a device.
	"2 Insufficient cpu, 1 node(s) had untolerated taint {a: b}": {"2 too little cpu, 1 have taint a=b", more},
	"2 node(s) were unschedulable, 1 Insufficient cpu":           {"2 are cordoned, 1 too little cpu", more},
	"2 node(s) were unschedulable, 1 are asleep":                 {"2 are cordoned, 1 are asleep", "Uncordon a node or add one"},
	"5 Insufficient cpu, 4 node(s) were unschedulable, 3 Too many pods, 2 node(s) had no available disk": {
		"5 too little cpu, 4 are cordoned, 3 are full of pods, 2 have its disk in use", more,
	},
	"5\nInsufficient cpu": {"5 too little cpu", more},
}

func TestVerdicts(t *testing.T) {
	for causes, want := range verdicts {
		have := verdictOf("0/9 nodes are available: "+causes+".", nil).Text
		if whole := "cannot be scheduled: 0/9 nodes fit: " + want[0] + ". " + want[1]; have != whole {
			t.Errorf("%s: %s\nwant %s", causes, have, whole)
		}
	}
}

func TestSignals(t *testing.T) {
	for code, want := range map[int32]string{
		1: "1", 132: "132, SIGILL", 134: "134, SIGABRT", 135: "135, SIGBUS", 137: "137, SIGKILL", 139: "139, SIGSEGV", 143: "143, SIGTERM",
	} {
		if have := exitCode(code); have != want {
			t.Errorf("%d is %q, want %q", code, have, want)
		}
	}
}

var then = time.Date(2026, 11, 21, 15, 0, 0, 0, time.UTC)

// TestJustBefore: at the last moment before a state has lasted too long, nothing is said of it.
func TestJustBefore(t *testing.T) {
	born := metav1.NewTime(then)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: born}}
	if have := unscheduled(pod, then.Add(schedulerAfter-1)); have.Code != "Scheduling" {
		t.Errorf("without a verdict: %+v", have)
	}
	if have := unscheduled(pod, then.Add(schedulerAfter)).Text; !strings.Contains(have, "scheduler default-scheduler has not looked at it") {
		t.Errorf("without a verdict for long: %s", have)
	}
	pod.Spec.NodeName = "n1"
	if have := unready(pod, then.Add(kubeletAfter-1)); have.Code != "ContainerCreating" {
		t.Errorf("without a word of the kubelet: %+v", have)
	}
	if NeedsEvents(pod, then.Add(eventsAfter-1)) || !NeedsEvents(pod, then.Add(eventsAfter)) {
		t.Error("events are asked for too early, or too late")
	}
	pod.DeletionTimestamp = &born
	if have, found := leaving(pod, then.Add(terminatingAfter-1)); found {
		t.Errorf("leaving: %+v", have)
	}
	if have, _ := leaving(pod, then.Add(terminatingAfter)); !strings.Contains(have.Text, "since 2026-11-21T15:00:00Z on node n1") {
		t.Errorf("leaving without a grace period: %s", have.Text)
	}
	c := ran(false, false, nil)
	c.now = then.Add(startAfter - 1)
	if have, _ := c.finding(); have.Code != "Starting" {
		t.Errorf("starting: %+v", have)
	}
}

// ran is a container that runs, and how it ended before.
func ran(started, ready bool, last *corev1.ContainerStateTerminated) container {
	status := &corev1.ContainerStatus{Started: &started, Ready: ready, State: corev1.ContainerState{
		Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(then)},
	}}
	status.LastTerminationState.Terminated = last
	return container{spec: &corev1.Container{Name: "ray"}, status: status, now: then}
}

// TestAfterAnEnd: an earlier end counts until the container has come further, and only
// where it was a failure.
func TestAfterAnEnd(t *testing.T) {
	failed, done := &corev1.ContainerStateTerminated{ExitCode: 1}, &corev1.ContainerStateTerminated{}
	waits := corev1.ContainerStateWaiting{Reason: "PodInitializing"}
	for name, test := range map[string]struct {
		c    container
		init bool
		want string
	}{
		"starts again after a failure":        {ran(false, false, failed), false, "CrashLoop"},
		"starts again":                        {ran(false, false, done), false, "Starting"},
		"is well after a failure":             {ran(true, true, failed), false, ""},
		"was started again after a failure":   {ran(true, false, failed), false, "Starting"},
		"init container once more":            {ran(false, false, done), true, "InitRunning"},
		"init container after a failure":      {ran(false, false, failed), true, "InitFailed"},
		"init container waits after an end":   {waiting(ran(false, false, done), waits), true, ""},
		"init container waits after failures": {waiting(ran(false, false, failed), waits), true, "InitFailed"},
		"waits after an end":                  {waiting(ran(false, false, done), waits), false, "CrashLoop"},
	} {
		test.c.init = test.init
		if have, found := test.c.finding(); have.Code != test.want || found != (test.want != "") {
			t.Errorf("%s: %+v, want %s", name, have, test.want)
		}
	}
}

// waiting makes a container one that waits.
func waiting(c container, state corev1.ContainerStateWaiting) container {
	c.status.State = corev1.ContainerState{Waiting: &state}
	return c
}

func TestTheProbeThatCounts(t *testing.T) {
	both := probing("/ready")
	both.StartupProbe = probing("/started").ReadinessProbe
	for want, have := range map[string]string{
		" at :8/ready": probed(both, true), " at :8/started": probed(both, false), " at :8/alone": probed(probing("/alone"), false),
	} {
		if have != want {
			t.Errorf("%q, want %q", have, want)
		}
	}
}

// TestAFailureOutranksEvents: what is wrong with a container is said before what events tell
// of its neighbour, and they before a container that is on its way.
func TestAFailureOutranksEvents(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "ray"}, {Name: "side"}}}}
	making := corev1.ContainerStatus{Name: "side", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}
	events := []corev1.Event{{Reason: "FailedMount", Message: `secret "a" not found`}}
	for want, ray := range map[string]container{
		"ImagePullFailed": waiting(ran(false, false, nil), corev1.ContainerStateWaiting{Reason: "ErrImagePull"}),
		"VolumeNotReady":  ran(false, false, nil),
	} {
		ray.status.Name = "ray"
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{*ray.status, making}
		if have, found := Pod(pod, events, then); !found || have.Code != want {
			t.Errorf("%+v, want %s", have, want)
		}
	}
	for _, last := range []string{"Pulled", "Created", "Started"} {
		if have, found := eventful(pod, append(events, corev1.Event{Reason: last})); found {
			t.Errorf("after %s: %+v", last, have)
		}
	}
}

func TestPlaced(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(then)}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, LastTransitionTime: metav1.NewTime(then.Add(time.Hour))}, {Type: corev1.PodScheduled}}
	if have := placed(pod); !have.Equal(then) {
		t.Errorf("%s, want when it was made: the scheduler's word has no time", have)
	}
	pod.Status.Conditions[1].LastTransitionTime = metav1.NewTime(then.Add(time.Minute))
	if have := placed(pod); !have.Equal(then.Add(time.Minute)) {
		t.Errorf("%s, want when it was scheduled", have)
	}
}

func TestSince_IsWhatTheStatusSays(t *testing.T) {
	at := func(minutes int) metav1.Time { return metav1.NewTime(then.Add(time.Duration(minutes) * time.Minute)) }
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   int
	}{
		"nobody has looked at it": {func(pod *corev1.Pod) { pod.Spec.NodeName, pod.Status.Conditions = "", nil }, 0},
		"no node":                 {func(pod *corev1.Pod) { pod.Spec.NodeName = "" }, 2},
		"not ready":               {func(*corev1.Pod) {}, 3},
		"on its way out":          {func(pod *corev1.Pod) { pod.DeletionTimestamp = new(at(60)) }, 3},
		"on its way out too long": {func(pod *corev1.Pod) { pod.DeletionTimestamp = new(at(10)) }, 10},
		"told to go with some time": {func(pod *corev1.Pod) {
			pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(at(10)), new(int64(60))
		}, 9},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(0)}, Spec: corev1.PodSpec{NodeName: "n1"}}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, LastTransitionTime: at(2)}, {Type: corev1.PodReady, LastTransitionTime: at(3)}}
		c.change(pod)
		if have := Since(pod, at(60).Time); !have.Equal(at(c.want).Time) {
			t.Errorf("%s: since %s, want minute %d", name, have, c.want)
		}
	}
}

// TestHowPodsEnd: what tells that a kubelet refused a pod.
func TestHowPodsEnd(t *testing.T) {
	statuses := []corev1.ContainerStatus{{Name: "ray"}}
	for name, test := range map[string]struct {
		status corev1.PodStatus
		want   string
	}{
		"refused before any container": {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "SysctlForbidden"}, "NodeRefused"},
		"refused for its devices":      {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "UnexpectedAdmissionError", ContainerStatuses: statuses}, "NodeRefused"},
		"refused for want of room":     {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfcpu", ContainerStatuses: statuses}, "NodeRefused"},
		"failed after that":            {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "DeadlineExceeded", ContainerStatuses: statuses}, "PodFailed"},
		"ended well":                   {corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: statuses}, "PodFailed"},
	} {
		have, found := Pod(&corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1"}, Status: test.status}, nil, then)
		if !found || have.Code != test.want {
			t.Errorf("%s: %+v, want %s", name, have, test.want)
		}
	}
}

// TestWords are small transformations of what was said.
func TestWords(t *testing.T) {
	noCause := []corev1.Event{{Reason: "Preempted", Message: "by somebody"}, {Reason: "Other", Message: "Preempted by x on node n"}}
	for want, have := range map[string]string{
		"unknown":                     nodeOf(&corev1.Pod{}),
		"by a pod of higher priority": preemptor(noCause),
		"plain":                       sandboxWords("desc = plain"),
		"last":                        lastPart(": last"),
		"aaa…":                        clean("aaa bbb", 5),
		`container ray cannot be created: Secret x does not exist. Create Secret x, or correct env and envFrom in the template`://
		configFailure("ray", "secret\n\"x\" not found").Text,
		"Secret x of a volume does not exist. Create Secret x, or correct the volume in the template": of(volumeFailure("secret\n\"x\" not found")),
		"image a cannot be pulled: plain. Correct the image, or check the events of the pod":          imageFailure(&corev1.Container{Image: "a"}, "ErrImagePull", "desc = plain").Text,
		"cannot be written: ServiceAccount a/b:c may not get pods in the whole cluster. Grant it that verb; the chart's roles contain all that is needed"://
		of(parseRights(`User "system:serviceaccount:a:b:c" cannot get resource "pods" in API group ""`)),
		"a: the API server refuses it: one two. Change what it names; the operator retries by itself": Refusal("a", said("one\ntwo")).Text,
	} {
		if have != want {
			t.Errorf("%q, want %q", have, want)
		}
	}
}

// TestSpecific: only the kubelet's summary leaves the cause open.
func TestSpecific(t *testing.T) {
	for message, want := range map[string]bool{
		"anything": true, "unmounted volumes=[a]": false, `for volume "a" : b`: true,
		`for volume "a" : references non-existent secret key: b`: true, `Multi-Attach error for volume "a" b`: true,
	} {
		finding, have := volumeFailure(message)
		if have != want || finding.Code != reason.VolumeNotReady.Code {
			t.Errorf("%s: %+v, specific %v, want %v", message, finding, have, want)
		}
	}
}
