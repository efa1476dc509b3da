package integration

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

const (
	queueLabel    = "kueue.x-k8s.io/queue-name"
	priorityLabel = "kueue.x-k8s.io/priority-class"
)

// startKueue builds Kueue's own controllers, scheduler and webhooks, and runs them until the test ends.
func startKueue(t *testing.T) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "make", "-C", "../..", "bin/kueue").CombinedOutput(); err != nil {
		t.Fatalf("build Kueue: %v: %s", err, out)
	}
	module, err := exec.CommandContext(t.Context(), "go", "list", "-C", "../kueue", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kueue").Output()
	must(t, err)
	var log lockedBuffer
	command := exec.Command("../../bin/kueue", "-module", strings.TrimSpace(string(module)))
	command.Stderr = &log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	said, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait() // how it ends by a signal is not judged
		if t.Failed() {
			t.Logf("Kueue's log ends with:\n%s", tail(log.String(), 60))
		}
	})
	lines := bufio.NewScanner(said)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("Kueue did not start: %s", log.String())
	}
}

// tail is the end of a text, of so many lines.
func tail(text string, lines int) string {
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// quota is what a namespace may use of a queue of Kueue: CPUs of one flavor, with preemption by priority.
type quota struct {
	namespace string
	cpus      int
}

const quotaObjects = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: NAME}
spec: {nodeLabels: {kueue-flavor: tests}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: NAME-high}
value: 1000
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: NAME-low}
value: 10
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: NAME}
spec:
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME}}
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups:
  - coveredResources: [cpu, memory]
    flavors:
    - name: NAME
      resources:
      - {name: cpu, nominalQuota: CPUS}
      - {name: memory, nominalQuota: 100Ti}
`

const localQueue = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team, namespace: NAME}
spec: {clusterQueue: NAME}
`

// set makes the objects of the quota, until the test ends, and has the node be one of the flavor's.
func (q quota) set(t *testing.T) {
	t.Helper()
	q.apply(t, quotaObjects)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "integration"}}
	must(t, shared.Patch(t.Context(), node, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"kueue-flavor":"tests"}}}`))))
}

// apply makes objects of the quota, until the test ends.
func (q quota) apply(t *testing.T, text string) {
	t.Helper()
	applyObjects(t, strings.NewReplacer("NAME", q.namespace, "CPUS", fmt.Sprint(q.cpus)).Replace(text))
}

// applyObjects makes objects, and deletes those that are in no namespace when the test ends.
func applyObjects(t *testing.T, text string) {
	t.Helper()
	objects, err := live.Decode([]byte(text))
	must(t, err)
	for _, object := range objects {
		eventually(t, object.GetKind()+" to be taken", func(ctx context.Context) error { return shared.ApplyObject(ctx, object) })
		if object.GetNamespace() == "" {
			t.Cleanup(func() {
				if err := client.IgnoreNotFound(shared.Delete(context.WithoutCancel(t.Context()), object)); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// inQueue puts an object into the queue of its namespace, with a priority or none.
func inQueue(object client.Object, priority string) {
	object.SetLabels(map[string]string{queueLabel: "team"})
	if priority != "" {
		object.SetLabels(map[string]string{queueLabel: "team", priorityLabel: priority})
	}
}

// oneEach is the spec of a cluster whose head and whose only worker ask for one CPU each.
func oneEach() v1beta1.ComputeClusterSpec {
	size := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")}
	spec := newCluster("", "", 1).Spec
	spec.Head.Size, spec.WorkerGroups[0].Size = size, size
	return spec
}

// workloads are those of a namespace.
func workloads(ctx context.Context, namespace string) ([]unstructured.Unstructured, error) {
	list := workloadList()
	err := shared.List(ctx, list, client.InNamespace(namespace))
	return list.Items, err
}

func workloadList() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("kueue.x-k8s.io/v1beta2")
	list.SetKind("WorkloadList")
	return list
}

// holds reports whether a condition of a Workload is true.
func holds(workload *unstructured.Unstructured, kind string) bool {
	conditions, _, _ := unstructured.NestedSlice(workload.Object, "status", "conditions") // none is none
	return slices.ContainsFunc(conditions, func(one any) bool {
		condition, is := one.(map[string]any)
		return is && condition["type"] == kind && condition["status"] == "True"
	})
}

// consumption follows what the pods of a namespace ask for, revision by revision, and which Workloads are evicted.
type consumption struct {
	mu      sync.Mutex
	pods    map[types.UID]int64
	most    int64
	evicted map[string]bool
	ended   error
}

// consumed follows a namespace until the test ends.
func consumed(t *testing.T, namespace string) *consumption {
	t.Helper()
	u := &consumption{pods: map[types.UID]int64{}, evicted: map[string]bool{}}
	for _, list := range []client.ObjectList{&corev1.PodList{}, workloadList()} {
		watched, err := shared.Watch(t.Context(), list, client.InNamespace(namespace))
		must(t, err)
		go func() {
			for event := range watched.ResultChan() {
				u.see(string(event.Type), event.Object)
			}
			u.mu.Lock()
			defer u.mu.Unlock()
			if t.Context().Err() == nil {
				u.ended = errors.New("the API server ended a watch")
			}
		}()
	}
	return u
}

func (u *consumption) see(kind string, object any) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch seen := object.(type) {
	case *corev1.Pod:
		delete(u.pods, seen.UID)
		if kind != "DELETED" && seen.Status.Phase != corev1.PodSucceeded && seen.Status.Phase != corev1.PodFailed {
			for i := range seen.Spec.Containers {
				u.pods[seen.UID] += seen.Spec.Containers[i].Resources.Requests.Cpu().MilliValue()
			}
		}
		sum := int64(0)
		for of := range maps.Values(u.pods) {
			sum += of
		}
		u.most = max(u.most, sum)
	case *unstructured.Unstructured:
		if holds(seen, "Evicted") {
			u.evicted[seen.GetName()] = true
		}
	}
}

// judge holds what was used by so many clusters and jobs against their quota.
func (u *consumption) judge(t *testing.T, c crowd) {
	t.Helper()
	cpus := c.cpus
	u.mu.Lock()
	defer u.mu.Unlock()
	must(t, u.ended)
	t.Logf("%d clusters and %d jobs ran; at most %d of %d mCPU were used at once, and %d Workloads were evicted",
		c.clusters, c.jobs, u.most, cpus*1000, len(u.evicted))
	if u.most > int64(cpus)*1000 || u.most < int64(cpus-1)*1000 {
		t.Errorf("at most %d mCPU were used at once, want the quota of %d or one pod less", u.most, cpus*1000)
	}
	if len(u.evicted) == 0 {
		t.Error("nobody was preempted")
	}
}

// queueLimit is how long a whole queue may take.
const queueLimit = 15 * time.Minute
