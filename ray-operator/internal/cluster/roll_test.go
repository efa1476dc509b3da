package cluster_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster/scaler"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// rollGame is a rolling update of an autoscaled group, all of whose workers are at work.
type rollGame struct {
	*rapid.T
	of                             *v1beta1.ComputeCluster
	seen                           cluster.Seen
	size, most, unavailable, surge int
	// nodes is the most workers that the cluster may have.
	nodes int
}

// elasticPods is what a pass sees of an autoscaled cluster with so many workers, all of them out of date.
func elasticPods(of *v1beta1.ComputeCluster, workers int) cluster.Seen {
	seen := given(1)
	seen.Fixtures = fixtures(of, 1)
	head := pod.OperatorImage{Image: "heliostat"}.Complete(pod.Head(of, 1), of)
	seen.Pods = []cluster.Pod{running(head, naming.Place{Epoch: 1})}
	seen.Record.HeadUID = seen.Pods[0].UID
	seen.Record.Scaled = map[string]cluster.RecordedSize{"cpu": {2}}
	for slot := range workers {
		worker := running(pod.Worker(of, &of.Spec.WorkerGroups[0], slot, 1), naming.Place{Group: "cpu", Slot: slot, Epoch: 1})
		old(worker.Pod)
		seen.Pods = append(seen.Pods, worker)
	}
	seen.Ray = cluster.Ray{At: now, Nodes: map[types.UID]cluster.RayNode{}}
	for _, worker := range seen.Pods {
		seen.Ray.Nodes[worker.UID] = cluster.RayNode{}
	}
	return seen
}

// TestRollOfAnAutoscaledGroup_KeepsItsBounds: whatever the autoscaler says meanwhile, and whatever is late to join or
// to go, there are never more workers nor fewer that are ready than the pace allows, and the roll ends.
func TestRollOfAnAutoscaledGroup_KeepsItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := rollGame{T: t, most: rapid.IntRange(1, 8).Draw(t, "most"), unavailable: rapid.IntRange(0, 3).Draw(t, "unavailable")}
		g.surge = rapid.IntRange(1-min(1, g.unavailable), 3).Draw(t, "surge")
		workers := rapid.IntRange(1, g.most).Draw(t, "workers")
		g.nodes = rapid.IntRange(workers, g.most+3).Draw(t, "nodes")
		g.of = elastic(func(c *v1beta1.ComputeCluster) {
			most := int32(g.most)
			c.Spec.WorkerGroups[0].MaxReplicas = &most
			nodes := int32(g.nodes)
			c.Spec.Autoscaling.MaxNodes = &nodes
			c.Spec.UpgradeStrategy = &v1beta1.ClusterUpgradeStrategy{
				Type: v1beta1.ClusterUpgradeRollingWorkers, RollingWorkers: &v1beta1.RollingWorkers{MaxUnavailable: new(intstr.FromInt32(int32(g.unavailable))), MaxSurge: new(intstr.FromInt32(int32(g.surge)))},
			}
		})
		g.seen = elasticPods(g.of, workers)
		g.hear()
		g.size = max(workers, min(g.most, g.nodes, g.seen.Scaler.Decision.Targets[0].Replicas))
		for range 200 {
			plan := decide(g.of, g.seen)
			if g.isDone() {
				if plan.Roll != (cluster.Roll{}) {
					t.Fatalf("nothing is out of date, and the record says that %+v is rolled", plan.Roll)
				}
				return
			}
			g.carryOut(plan)
			g.hear()
			g.happen()
		}
		t.Fatalf("it does not end: %s", decide(g.of, g.seen))
	})
}

// hear lets the autoscaler want anything.
func (g *rollGame) hear() {
	g.seen.Scaler = scaler.State{Heard: true, Connected: true, Decision: protocol.Decision{
		Targets: []protocol.Target{{Group: "cpu", Replicas: rapid.IntRange(0, g.most+2).Draw(g.T, "target")}},
	}}
}

// carryOut does what a plan says, and holds it against the bounds.
func (g *rollGame) carryOut(plan cluster.Plan) {
	if plan.Record != nil {
		g.seen.Record = *plan.Record
	}
	before := g.ready()
	for _, leave := range plan.Exits {
		leave.Pod.Annotations[v1beta1.AnnotationDrain] = leave.Exit.String()
	}
	for _, removal := range plan.Delete {
		if removal.Pod.Annotations[v1beta1.AnnotationDrain] == "" && isReady(removal.Pod) {
			g.Fatalf("%s is deleted at work: %s", removal.Pod.Name, removal.Why)
		}
		g.seen.Pods = slices.DeleteFunc(g.seen.Pods, func(p cluster.Pod) bool { return p.UID == removal.Pod.UID })
	}
	for _, filling := range plan.Create {
		for _, made := range filling.Pods {
			worker := running(made, placeOf(made))
			unreadyPod(worker.Pod)
			delete(g.seen.Ray.Nodes, worker.UID)
			worker.CreationTimestamp = metav1.NewTime(now.Add(-20 * time.Second))
			g.seen.Pods = append(g.seen.Pods, worker)
		}
	}
	beyond := min(g.surge, max(min(g.most, g.nodes)-g.size, 1-min(1, g.unavailable)))
	if all := len(g.seen.Pods) - 1; all > g.size+beyond {
		g.Fatalf("%d workers, of %d and %d beyond: %s", all, g.size, beyond, plan)
	}
	if after := g.ready(); after < min(before, g.size-g.unavailable) {
		g.Fatalf("%d of %d are ready, and %d may be missing: %s", after, g.size, g.unavailable, plan)
	}
}

func (g *rollGame) ready() int {
	count := 0
	for _, worker := range g.seen.Pods[1:] {
		if isReady(worker) && worker.Annotations[v1beta1.AnnotationDrain] == "" {
			count++
		}
	}
	return count
}

// happen lets some workers join, and some end their work.
func (g *rollGame) happen() {
	for _, worker := range g.seen.Pods[1:] {
		moves := rapid.Bool().Draw(g.T, "moves")
		switch {
		case moves && worker.Annotations[v1beta1.AnnotationDrain] != "":
			g.seen.Ray.Nodes[worker.UID] = cluster.RayNode{Dead: true}
		case moves && !isReady(worker):
			*worker.Pod = *running(worker.Pod.DeepCopy(), worker.At).Pod
			g.seen.Ray.Nodes[worker.UID] = cluster.RayNode{}
		}
	}
}

func (g *rollGame) isDone() bool {
	return !slices.ContainsFunc(g.seen.Pods, func(p cluster.Pod) bool {
		return p.Annotations[v1beta1.AnnotationIntent] == "v1-old"
	})
}

func isReady(worker cluster.Pod) bool {
	return slices.ContainsFunc(worker.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
