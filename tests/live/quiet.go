package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// What an idle cluster's autoscaler costs: the label of a spec, and the name under which it
// reports a Quiet.
const (
	QuietLabel, QuietEntry = "quiet", "an idle cluster"

	// What is promised. Ray's own autoscaler was charged 93 MB, took 0.9 % of a core, and made
	// 48 calls a minute.
	PromisedQuietBytes = 30_000_000
	PromisedQuietCPU   = 2 * time.Millisecond
)

// Quiet is what an autoscaler cost while nothing happened.
type Quiet struct {
	// Seconds that were measured, with so many rounds.
	Seconds float64 `json:"seconds"`
	Rounds  int     `json:"rounds"`
	// Bytes that its container was charged at the end, what the kernel can take back left out.
	Bytes int64 `json:"bytes"`
	// CPUMs is its CPU time of a round, in milliseconds.
	CPUMs float64 `json:"cpuMs"`
	// Calls that the operator made about the cluster.
	Calls []string `json:"calls"`
}

// Kept reports whether the promises were kept.
func (q Quiet) Kept() bool {
	return q.Bytes < PromisedQuietBytes && q.CPUMs < PromisedQuietCPU.Seconds()*1000 && len(q.Calls) == 0
}

// String is the measure in one line.
func (q Quiet) String() string {
	return fmt.Sprintf("%.0f s: %.1f MB, %.2f ms of CPU in each of %d rounds, %d calls to the API server", q.Seconds, float64(q.Bytes)/1e6, q.CPUMs, q.Rounds, len(q.Calls))
}

// Usage is what a kubelet says of a container.
type Usage struct {
	// At is when it was measured, which may be ten seconds ago.
	At time.Time
	// CPU is what it used since it began, Bytes the memory that cannot be taken back from it.
	CPU   time.Duration
	Bytes int64
}

// Usage asks the kubelet of a pod what a container uses.
func (c *Cluster) Usage(ctx context.Context, pod *corev1.Pod, container string) (Usage, error) {
	text, err := c.Kubernetes.CoreV1().RESTClient().Get().Resource("nodes").Name(pod.Spec.NodeName).SubResource("proxy").Suffix("stats/summary").DoRaw(ctx)
	if err != nil {
		return Usage{}, fmt.Errorf("ask the kubelet of %s what pods use: %w", pod.Spec.NodeName, err)
	}
	var summary struct {
		Pods []struct {
			PodRef     struct{ UID string }
			Containers []struct {
				Name string
				CPU  struct {
					Time                 time.Time
					UsageCoreNanoSeconds int64
				}
				Memory struct{ WorkingSetBytes int64 }
			}
		}
	}
	if err := json.Unmarshal(text, &summary); err != nil {
		return Usage{}, fmt.Errorf("parse what the kubelet of %s says: %w", pod.Spec.NodeName, err)
	}
	for _, one := range summary.Pods {
		for _, used := range one.Containers {
			if one.PodRef.UID == string(pod.UID) && used.Name == container {
				return Usage{At: used.CPU.Time, CPU: time.Duration(used.CPU.UsageCoreNanoSeconds), Bytes: used.Memory.WorkingSetBytes}, nil
			}
		}
	}
	return Usage{}, fmt.Errorf("find container %s of pod %s: %w", container, pod.Name, errNotMeasured)
}

var errNotMeasured = errors.New("its kubelet does not tell of it yet")
