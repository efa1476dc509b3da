package diagnose_test

import (
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// most is the longest text of a finding in characters: what is quoted is bounded, and so
// are messages and remedies.
const most = 1000

// fit fails the test when a finding is not fit for a status.
func fit(t *testing.T, input string, finding reason.Finding) {
	t.Helper()
	if _, known := reason.Lookup(finding.Code); !known {
		t.Errorf("%q: code %q is not in the catalogue", input, finding.Code)
	}
	if !utf8.ValidString(finding.Text) || strings.ContainsFunc(finding.Text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("%q becomes %q", input, finding.Text)
	}
	if n := utf8.RuneCountInString(finding.Text); n > most {
		t.Errorf("%q becomes %d characters", input, n)
	}
	if strings.Contains(finding.Text, "%!") && !strings.Contains(input, "%") {
		t.Errorf("%q becomes %q: values do not fit the message", input, finding.Text)
	}
}

// fuzz runs a pod that says something through the diagnosis, twice.
func fuzz(f *testing.F, seeds []string, saying func(string) (*corev1.Pod, []corev1.Event)) {
	for _, seed := range append(seeds, "", "\x00\u202e", strings.Repeat("a b\n", 5000), strings.Repeat("世", 3000)) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, input string) {
		pod, events := saying(input)
		finding, _ := diagnose.Pod(pod, events, born)
		fit(t, input, finding)
		if again, _ := diagnose.Pod(pod, events, born); again != finding {
			t.Errorf("%q becomes %q and then %q", input, finding.Text, again.Text)
		}
	})
}

func FuzzScheduler(f *testing.F) {
	seeds := []string{
		"0/3 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint {gpu: a100}. preemption: 0/3 nodes are available: 3 x.",
		`0/3 nodes are available: persistentvolumeclaim "data" not found. not found`, "0/9999999 nodes are available: 9999999 x, y, 1 ",
		"0/0 nodes are available: 0 , 0 00",
	}
	fuzz(f, seeds, func(message string) (*corev1.Pod, []corev1.Event) { return pending(message), nil })
}

func FuzzImage(f *testing.F) {
	fuzz(f, []string{"rpc error: code = Unknown desc = x", "401 Unauthorized"}, func(message string) (*corev1.Pod, []corev1.Event) {
		return onNode(waitingFor("ErrImagePull", message)), nil
	})
}

func FuzzConfig(f *testing.F) {
	seeds := []string{`secret "a" not found`, "couldn't find key k in Secret n/a", "container has runAsNonRoot (pod: x)"}
	fuzz(f, seeds, func(message string) (*corev1.Pod, []corev1.Event) {
		return onNode(waitingFor("CreateContainerConfigError", message)), nil
	})
}

func FuzzLog(f *testing.F) {
	seeds := []string{"\x1b[31mred\x1b[0m\nRuntimeError: Version mismatch: The cluster was started with:\n    Ray: 2.60.0\n    Python: 3.11.9\n" +
		"This process on node 10.0.0.1 was started with:\n    Ray: 2.59.0\n    Python: 3.11.2\n"}
	fuzz(f, seeds, func(message string) (*corev1.Pod, []corev1.Event) {
		return onNode(ended("ray", corev1.ContainerStateTerminated{ExitCode: 1, Message: message})), nil
	})
}

func FuzzEvents(f *testing.F) {
	seeds := []string{`MountVolume.SetUp failed for volume "a" : secret "b" not found`, "unmounted volumes=[a]", `Multi-Attach error for volume "a" x`}
	fuzz(f, seeds, func(message string) (*corev1.Pod, []corev1.Event) {
		var events []corev1.Event
		for _, why := range []string{"FailedMount", "FailedCreatePodSandBox", "Pulling", "Preempted"} {
			if len(message)%4 == len(events) || len(events) > 0 {
				events = append(events, corev1.Event{Reason: why, Message: message})
			}
		}
		return onNode(waitingFor("ContainerCreating", "")), events
	})
}

func FuzzEviction(f *testing.F) {
	fuzz(f, []string{"The node was low on resource: memory."}, func(message string) (*corev1.Pod, []corev1.Event) {
		return failed("Evicted", message), nil
	})
}

func FuzzRefusal(f *testing.F) {
	for _, seed := range []string{
		"exceeded quota: q, requested: a=1,b=2, used: a=1, limited: a=1", "failed quota: q: must specify x", `violates PodSecurity "restricted:latest": x`,
		`admission webhook "a" denied the request: x`, `failed calling webhook "a": x: y`, "ValidatingAdmissionPolicy 'a' with binding 'b' denied request: x",
		`User "a" cannot create resource "b" in API group "c" in the namespace "d"`, "maximum cpu usage per Container is 1", strings.Repeat("é", 9000),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cause string) {
		for _, err := range []error{forbidden(cause), answer(500, "InternalError", cause), errors.New(cause)} {
			finding := diagnose.Refusal("worker a", err)
			fit(t, cause, finding)
			if again := diagnose.Refusal("worker a", err); again != finding {
				t.Errorf("%q becomes %q and then %q", cause, finding.Text, again.Text)
			}
		}
	})
}
