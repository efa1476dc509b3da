package diagnose

import (
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// long makes values of 500 characters of the digits 1 to 5 in a text: far longer than any bound.
func long(text string) string {
	for _, digit := range "12345" {
		text = strings.ReplaceAll(text, "<"+string(digit)+">", strings.Repeat(string(digit), 500))
	}
	return text
}

// runs are the lengths of the runs of more than 50 times one of those digits. The last
// character of what was cut is an ellipsis.
func runs(text string) map[string]int {
	found := map[string]int{}
	for _, digit := range "12345" {
		most, now := 0, 0
		for _, r := range text {
			if r != digit {
				now = 0
				continue
			}
			now++
			most = max(most, now)
		}
		if most > 50 {
			found[string(digit)] = most
		}
	}
	return found
}

// of is what a parser finds, without what else it tells.
func of(finding reason.Finding, _ bool) string { return finding.Text }

// cut are texts with values that are too long, and how much of each is left.
var cut = map[string]struct {
	have string
	want map[string]int
}{
	"missing object of a variable": {configFailure("ray", long(`secret "<1>" not found`)).Text, map[string]int{"1": 99}},
	"missing key of a variable": {
		configFailure("ray", long("couldn't find key <1> in Secret t/<2>")).Text, map[string]int{"1": 99, "2": 99},
	},
	"other fault of the configuration": {configFailure("ray", long("<1>")).Text, map[string]int{"1": 199}},
	"fault of a start":                 {startFailure("ray", long("<1>")).Text, map[string]int{"1": 199}},
	"volume's missing object":          {of(volumeFailure(long(`secret "<1>" not found`))), map[string]int{"1": 99}},
	"volumes that are not mounted":     {of(volumeFailure(long("unmounted volumes=[<1>]"))), map[string]int{"1": 199}},
	"other fault of volumes":           {of(volumeFailure(long("<1>"))), map[string]int{"1": 199}},
	"fault of a volume":                {of(volumeFailure(long(`failed for volume "<1>" : <2>`))), map[string]int{"1": 99, "2": 199}},
	"volume's missing key": {
		of(volumeFailure(long(`failed for volume "<1>" : references non-existent secret key: <2>`))), map[string]int{"1": 99, "2": 99},
	},
	"volume in use":        {of(volumeFailure(long(`Multi-Attach error for volume "<1>" <2>`))), map[string]int{"1": 99, "2": 199}},
	"sandbox":              {sandboxWords(long("desc = <1>")), map[string]int{"1": 199}},
	"quoted":               {quoted(long(`Pulling image "<1>"`)), map[string]int{"1": 199}},
	"not quoted":           {quoted(long("<1>")), map[string]int{"1": 199}},
	"image":                {imageFailure(&corev1.Container{Image: long("<1>")}, "ErrImagePull", long("<2>")).Text, map[string]int{"1": 199, "2": 199}},
	"preemptor":            {preemptor([]corev1.Event{{Reason: "Preempted", Message: long("Preempted by <1> on node a")}}), map[string]int{"1": 99}},
	"probe":                {probed(probing(long("<1>")), true), map[string]int{"1": 99}},
	"gate":                 {unscheduled(gated(long("<1>")), time.Time{}).Text, map[string]int{"1": 99}},
	"readiness gate":       {unready(readinessGated(long("<1>")), time.Time{}).Text, map[string]int{"1": 99}},
	"eviction":             {finishedFor("Evicted", long("<1>")), map[string]int{"1": 199}},
	"lost node":            {finishedFor("NodeLost", long("<1>")), map[string]int{"1": 199}},
	"refusal of a kubelet": {finishedFor(long("OutOf<1>"), long("<2>")), map[string]int{"1": 99 - len("OutOf"), "2": 199}},
	"scheduler":            {verdictOf(long("<1>"), nil).Text, map[string]int{"1": 199}},
	"scheduler's one word": {verdictOf(long("0/3 nodes are available: <x>, <1>."), nil).Text, map[string]int{"1": 199 - len("<x>, ")}},
	"claim": {
		verdictOf(long(`0/3 nodes are available: persistentvolumeclaim "<1>" not found.`), nil).Text, map[string]int{"1": 99},
	},
	"shortfalls": {
		verdictOf(long("0/3 nodes are available: 1 Insufficient <1>, 1 node(s) had untolerated taint {<2>}, 1 <3>."), nil).Text,
		map[string]int{"1": 99, "2": 99, "3": 99},
	},
	"namespace": {goingNamespace(long("in namespace <1> because")), map[string]int{"1": 99}},
	"right": {
		of(parseRights(long(`User "<1>" cannot <2> resource "<3>" in API group "<4>" in the namespace "<5>"`))),
		map[string]int{"1": 99, "2": 99, "3": 99, "4": 99, "5": 99},
	},
	"quota":            {of(parseQuota(long("exceeded quota: <1>, requested: <2>=1, used: a=1, limited: a=1"), nil)), map[string]int{"1": 99, "2": 299}},
	"quota of sizes":   {of(parseQuota(long("failed quota: <1>: must specify <2>"), nil)), map[string]int{"1": 99, "2": 199 - len("must specify ")}},
	"uncounted quota":  {of(parseQuota(long("status unknown for quota: <1>, resources: pods"), nil)), map[string]int{"1": 99}},
	"uncovering quota": {of(parseQuota(long("insufficient quota to <1>"), nil)), map[string]int{"1": 199 - len("insufficient quota to ")}},
	"pod security":     {of(parsePodSecurity(long(`violates PodSecurity "<1>:latest": <2>`))), map[string]int{"1": 99, "2": 299}},
	"webhook":          {of(parseWebhook(long(`admission webhook "<1>" denied the request: <2>`))), map[string]int{"1": 99, "2": 299}},
	"silent webhook":   {of(parseWebhook(long(`failed calling webhook "<1>": a: <2>`))), map[string]int{"1": 99, "2": 199}},
	"policy":           {of(parsePolicy(long("ValidatingAdmissionPolicy '<1>' denied request: <2>"))), map[string]int{"1": 99, "2": 299}},
	"reference":        {of(parseReference(long(`serviceaccount "<1>" not found`))), map[string]int{"1": 99}},
	"limits":           {of(parseLimitRange(long("minimum cpu usage per <1>"), nil)), map[string]int{"1": 299 - len("minimum cpu usage per ")}},
	"other refusal":    {Refusal("a", said(long("<1>"))).Text, map[string]int{"1": 299}},
	"no refusal":       {Refusal("a", errors.New(long("<1>"))).Text, map[string]int{"1": 299}},
	"log":              {lastLines(long("<1>")), map[string]int{"1": 399}},
}

// probing is a container with a readiness probe at a path.
func probing(path string) *corev1.Container {
	get := &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(8)}
	return &corev1.Container{ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: get}}}
}

func gated(name string) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: name}}}}
}

func readinessGated(name string) *corev1.Pod {
	return &corev1.Pod{
		Spec:   corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{{ConditionType: corev1.PodConditionType(name)}}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Ready: true}}},
	}
}

// finishedFor is what is said of a pod that ended as a whole.
func finishedFor(why, message string) string {
	return finished(&corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: why, Message: message}}, nil, "").Text
}

// said is an answer of the API server.
func said(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: message}}
}

// TestWhereTextsAreCut: each value to its own bound, so that one does not crowd out the others.
func TestWhereTextsAreCut(t *testing.T) {
	for name, test := range cut {
		if have := runs(test.have); !maps.Equal(have, test.want) {
			t.Errorf("%s: %v is left, want %v: %s", name, have, test.want, test.have)
		}
	}
	running := []corev1.ContainerStatus{{Ready: true}}
	pod := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: running, Reason: long("<1>"), Message: long("<2>")}}
	if have, want := runs(finished(pod, nil, "").Text), map[string]int{"1": 99, "2": 199}; !maps.Equal(have, want) {
		t.Errorf("a pod that failed: %v is left, want %v", have, want)
	}
	pod.DeletionTimestamp = &metav1.Time{}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Message: long("<1>")}}
	if have, want := runs(of(disrupted(pod, nil))), map[string]int{"1": 199}; !maps.Equal(have, want) {
		t.Errorf("a pod that is sent away: %v is left, want %v", have, want)
	}
}

// TestWhatFitsIsWhole: a text as long as its bound is not cut.
func TestWhatFitsIsWhole(t *testing.T) {
	for _, length := range []int{nameLength, wordLength, listLength} {
		whole := strings.Repeat("𝕏", length) // of four bytes each
		if have := clean(whole, length); have != whole {
			t.Errorf("%d of %d characters are left", len([]rune(have)), length)
		}
	}
	half := strings.Repeat("a", (logLength-2*len(" | "))/2)
	if have := lastLines("b\n" + half + "\n" + half); have != half+" | "+half {
		t.Errorf("two lines of %d characters became %d", len(half), len(have))
	}
	if have := lastLines("b\n" + half + "\n" + half + "a"); have != half+"a" {
		t.Errorf("a line too many is shown: %d characters", len(have))
	}
}

// TestWhereReadingEnds: what is said behind 32 bytes of nothing per character is not looked at.
func TestWhereReadingEnds(t *testing.T) {
	for blanks, want := range map[int]string{5*32 - 1: "a", 5 * 32: ""} {
		if have := clean(strings.Repeat(" ", blanks)+"a", 5); have != want {
			t.Errorf("behind %d blanks %q is read, want %q", blanks, have, want)
		}
	}
}
