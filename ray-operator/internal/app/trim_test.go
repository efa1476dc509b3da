package app

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// served returns a worker as the API server has it once it is ready, in its binary form.
func served(t *testing.T, cluster, slot int) []byte {
	t.Helper()
	of := testkit.Cluster(fmt.Sprintf("cluster-%d", cluster), testkit.Group("cpu", 3))
	of.UID = types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", cluster))
	worker := desired.Site{}.WorkerPod(of, &of.Spec.WorkerGroups[0], slot, 1)
	now, started := metav1.NewTime(time.Unix(1_800_000_000, 0)), true
	worker.UID = types.UID(fmt.Sprintf("10000000-0000-0000-%04d-%012d", slot, cluster))
	worker.CreationTimestamp, worker.Spec.NodeName, worker.Spec.SchedulerName = now, "node-1", corev1.DefaultSchedulerName
	worker.Spec.NodeSelector = map[string]string{corev1.LabelArchStable: "arm64", "disk": "ssd"}
	worker.Labels["team"], worker.Annotations["example.com/large"] = "red", "text"
	worker.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: "10.0.0.1", PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}}, StartTime: &now,
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: v1beta1.ContainerRay, Image: "ray", ImageID: "sha256:1", ContainerID: "containerd://1", Ready: true, Started: &started,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		}},
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, "gate", corev1.PodScheduled} {
		worker.Status.Conditions = append(worker.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	text, err := worker.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// trimmed returns what is kept of a pod.
func trimmed(t *testing.T, by *trimmer, text []byte) *corev1.Pod {
	t.Helper()
	whole := &corev1.Pod{}
	if err := whole.Unmarshal(text); err != nil {
		t.Fatal(err)
	}
	kept, err := by.trim(whole)
	pod, is := kept.(*corev1.Pod)
	if err != nil || !is {
		t.Fatalf("kept is %v, %v", kept, err)
	}
	return pod
}

func TestTrimmer_KeepsWhatIsReadOfPods(t *testing.T) {
	var whole corev1.Pod
	text := served(t, 1, 0)
	if err := whole.Unmarshal(text); err != nil {
		t.Fatal(err)
	}
	kept := trimmed(t, newTrimmer(), text)
	at, err := naming.ParsePlace(kept.Labels)
	if want, _ := naming.ParsePlace(whole.Labels); err != nil || at != want || kept.Labels["team"] != "" {
		t.Errorf("of the labels are kept %v, %v", kept.Labels, err)
	}
	intent := kept.Annotations[v1beta1.AnnotationIntent]
	if intent == "" || intent != whole.Annotations[v1beta1.AnnotationIntent] || kept.Annotations["example.com/large"] != "" {
		t.Errorf("of the annotations are kept %v", kept.Annotations)
	}
	ray, had := kept.Spec.Containers[0], whole.Spec.Containers[0]
	if ray.ReadinessProbe.HTTPGet.Path != had.ReadinessProbe.HTTPGet.Path || ray.ReadinessProbe.HTTPGet.Port != had.ReadinessProbe.HTTPGet.Port ||
		!cmp.Equal(ray.Resources, had.Resources) || len(ray.Env) > 0 || kept.Spec.NodeName != "node-1" ||
		!cmp.Equal(kept.Spec.NodeSelector, map[string]string{corev1.LabelArchStable: "arm64"}) {
		t.Errorf("of the spec is kept %+v", kept.Spec)
	}
}

// TestTrimmer_KeepsConditionsOfGates: a condition that is not known may be what a readiness gate waits for.
func TestTrimmer_KeepsConditionsOfGates(t *testing.T) {
	kept := trimmed(t, newTrimmer(), served(t, 1, 0))
	var kinds []corev1.PodConditionType
	for _, condition := range kept.Status.Conditions {
		kinds = append(kinds, condition.Type)
	}
	if diff := cmp.Diff([]corev1.PodConditionType{corev1.PodReady, "gate", corev1.PodScheduled}, kinds); diff != "" {
		t.Error(diff)
	}
	marker := toolscache.DeletedFinalStateUnknown{Key: "n"}
	if same, err := newTrimmer().trim(marker); err != nil || same != any(marker) {
		t.Errorf("a marker became %v, %v", same, err)
	}
}

// TestTrimmer_KeepsAlikeOnce: pods that are alike share what is kept of their specs, and no other does.
func TestTrimmer_KeepsAlikeOnce(t *testing.T) {
	by := newTrimmer()
	one, next := trimmed(t, by, served(t, 1, 0)), trimmed(t, by, served(t, 1, 1))
	if &one.Spec.Containers[0] != &next.Spec.Containers[0] {
		t.Error("two workers of a group have each a copy of what is kept of their containers")
	}
	var other corev1.Pod
	if err := other.Unmarshal(served(t, 1, 2)); err != nil {
		t.Fatal(err)
	}
	other.Spec.Containers[0].Image, other.Spec.NodeName = "another", "node-2"
	if _, err := by.trim(&other); err != nil || other.Spec.Containers[0].Image != "another" || other.Spec.NodeName != "node-2" || one.Spec.NodeName != "node-1" {
		t.Errorf("another one has %+v, %v", other.Spec, err)
	}
	policies := make([]*networkingv1.NetworkPolicy, 2)
	for i := range policies {
		policies[i] = desired.NetworkPolicy(testkit.Cluster(fmt.Sprint("c", i)), desired.Site{}).DeepCopy()
		if _, err := by.trim(policies[i]); err != nil {
			t.Fatal(err)
		}
	}
	rules := func(i int) []networkingv1.NetworkPolicyIngressRule { return policies[i].Spec.Ingress }
	if &rules(0)[1].Ports[0] != &rules(1)[1].Ports[0] || cmp.Equal(rules(0)[0], rules(1)[0]) {
		t.Errorf("two policies have the rules %+v and %+v", rules(0), rules(1))
	}
	for i := range sharedValues + 10 {
		if name := fmt.Sprint(i); by.text(name) != name {
			t.Fatalf("%s became another text", name)
		}
	}
	if len(by.texts) > sharedValues {
		t.Errorf("%d texts are remembered", len(by.texts))
	}
}

// TestTrimmer_KeepsPodsSmall holds the memory of a fleet: it was 6,900 bytes for each pod.
func TestTrimmer_KeepsPodsSmall(t *testing.T) {
	const clusters, workers, most = 250, 4, 4500
	var texts [][]byte
	for i := range clusters * workers {
		texts = append(texts, served(t, i/workers, i%workers))
	}
	by, kept := newTrimmer(), make([]*corev1.Pod, 0, len(texts))
	before := heapInUse()
	for _, text := range texts {
		kept = append(kept, trimmed(t, by, text))
	}
	each := (heapInUse() - before) / uint64(len(texts))
	runtime.KeepAlive(texts)
	runtime.KeepAlive(kept)
	t.Logf("%d bytes for each pod", each)
	if each > most {
		t.Errorf("a pod takes %d bytes, want at most %d", each, most)
	}
}

// heapInUse returns the bytes of what is alive.
func heapInUse() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// BenchmarkTrimmer is what a pod event costs before any controller hears of it.
func BenchmarkTrimmer(b *testing.B) {
	text, by := served(&testing.T{}, 1, 1), newTrimmer()
	for b.Loop() {
		var pod corev1.Pod
		if err := pod.Unmarshal(text); err != nil {
			b.Fatal(err)
		}
		if _, err := by.trim(&pod); err != nil {
			b.Fatal(err)
		}
	}
}
