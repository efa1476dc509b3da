package cluster_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// elastic is a cluster with autoscaling and a group cpu of 0 to 10 workers that begins with 2.
func elastic(edits ...func(*v1beta1.ComputeCluster)) *v1beta1.ComputeCluster {
	group := testkit.Group("cpu", 2)
	least, most := int32(0), int32(10)
	group.MinReplicas, group.MaxReplicas = &least, &most
	cluster := testkit.Cluster("demo", group)
	cluster.Spec.Autoscaling = &v1beta1.Autoscaling{}
	for _, edit := range edits {
		edit(cluster)
	}
	return cluster
}

// wants is an autoscaler that wants so many workers of cpu, and gives back idle ones, the
// last first.
func wants(replicas int) func(protocol.Snapshot) protocol.Decision {
	return func(snapshot protocol.Snapshot) protocol.Decision {
		decision := protocol.Decision{Targets: []protocol.Target{{Group: "cpu", Replicas: replicas, Reason: "3 × {CPU: 1}"}}}
		kept := replicas
		for _, group := range snapshot.Groups {
			if group.Name == "cpu" {
				kept = min(max(replicas, group.Min), group.Max)
			}
		}
		var there []protocol.Pod
		for _, pod := range snapshot.Pods {
			if pod.Group == "cpu" && pod.Stage != protocol.Leaving {
				there = append(there, pod)
			}
		}
		slices.SortFunc(there, func(a, b protocol.Pod) int { return b.Replica - a.Replica })
		for _, pod := range there[:max(0, len(there)-kept)] {
			decision.Removals = append(decision.Removals, protocol.Removal{Pod: pod.UID, Node: "00", Reason: protocol.Idle, Drained: true})
		}
		return decision
	}
}

// scaledTo has the autoscaler want so many, and waits until nothing happens any more.
func scaledTo(w *testkit.World, replicas int) {
	w.Helper()
	w.Scaler.Says = wants(replicas)
	w.After(5 * time.Second)
}

// begun is an elastic cluster whose autoscaler wants what is there.
func begun(w *testkit.World, edits ...func(*v1beta1.ComputeCluster)) {
	w.Helper()
	w.Scaler.Says = wants(2)
	w.Create(elastic(edits...))
	w.Settle()
	w.Expect("demo", ready, "Autoscaling=True Autoscaled")
	sizes(w, "demo", map[string]int{"": 1, "cpu": 2})
}

func TestAutoscaling(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "up-and-down", Run: func(w *testkit.World) {
			begun(w)
			scaledTo(w, 5)
			sizes(w, "demo", map[string]int{"cpu": 5})
			scaledTo(w, 0)
			sizes(w, "demo", map[string]int{"": 1, "cpu": 0})
			w.Expect("demo", ready, "UpToDate=True")
		}},
		testkit.Scenario{Name: "bounds", Run: func(w *testkit.World) {
			begun(w)
			scaledTo(w, 100)
			sizes(w, "demo", map[string]int{"cpu": 10})
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { *c.Spec.WorkerGroups[0].MaxReplicas = 4 })
			w.After(10 * time.Minute) // a lowered maximum drains
			sizes(w, "demo", map[string]int{"cpu": 4})
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { *c.Spec.WorkerGroups[0].MinReplicas = 2 })
			scaledTo(w, 0)
			sizes(w, "demo", map[string]int{"cpu": 2})
		}},
		testkit.Scenario{Name: "nobody-named", Run: func(w *testkit.World) {
			begun(w)
			w.Scaler.Says = func(protocol.Snapshot) protocol.Decision {
				return protocol.Decision{Targets: []protocol.Target{{Group: "cpu", Replicas: 0, Reason: "idle"}}}
			}
			w.After(time.Minute)
			sizes(w, "demo", map[string]int{"cpu": 2})
		}},
		testkit.Scenario{Name: "turned-off", Run: turnedOff},
		testkit.Scenario{Name: "turned-off-without-replicas", Run: func(w *testkit.World) {
			begun(w, func(c *v1beta1.ComputeCluster) {
				c.Spec.WorkerGroups[0].Replicas, *c.Spec.WorkerGroups[0].MinReplicas = nil, 2
			})
			scaledTo(w, 4)
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.Autoscaling, *c.Spec.WorkerGroups[0].MinReplicas = nil, 0 })
			w.After(time.Minute)
			sizes(w, "demo", map[string]int{"cpu": 4})
		}},
		testkit.Scenario{Name: "rolled-with-a-surge", Run: func(w *testkit.World) {
			begun(w, strategyOf(v1beta1.ClusterUpgradeRollingWorkers, &v1beta1.RollingWorkers{MaxUnavailable: new(intstr.FromInt32(0)), MaxSurge: new(intstr.FromInt32(1))}))
			reimage(w, "new")
			w.After(10 * time.Minute)
			imaged(w, map[string]int{"new": 2})
			sizes(w, "demo", map[string]int{"": 1, "cpu": 2})
			scaledTo(w, 5)
			sizes(w, "demo", map[string]int{"cpu": 5})
		}},
		testkit.Scenario{Name: "group-added", Run: groupAdded},
		testkit.Scenario{Name: "group-suspended", Run: func(w *testkit.World) {
			begun(w)
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups[0].Suspend = new(true) })
			w.After(10 * time.Minute)
			sizes(w, "demo", map[string]int{"cpu": 0})
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups[0].Suspend = new(false) })
			scaledTo(w, 3)
			sizes(w, "demo", map[string]int{"cpu": 3})
		}},
	)
}

// strategyOf edits a cluster's upgrade strategy.
func strategyOf(kind v1beta1.ClusterUpgradeType, rolling *v1beta1.RollingWorkers) func(*v1beta1.ComputeCluster) {
	return func(c *v1beta1.ComputeCluster) { strategy(kind, rolling)(&c.Spec) }
}

// turnedOff keeps the size until replicas is edited.
func turnedOff(w *testkit.World) {
	begun(w)
	scaledTo(w, 7)
	w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.Autoscaling = nil })
	w.After(time.Minute)
	sizes(w, "demo", map[string]int{"cpu": 7})
	w.Expect("demo", ready, "Autoscaling=False SizesHeld")
	w.Force(w.Workers("demo", "cpu")[3])
	w.Settle()
	sizes(w, "demo", map[string]int{"cpu": 7})
	w.Edit("demo", func(c *v1beta1.ComputeCluster) { *c.Spec.WorkerGroups[0].Replicas = 3 })
	w.After(10 * time.Minute)
	sizes(w, "demo", map[string]int{"cpu": 3})
	w.Expect("demo", ready, "Autoscaling=absent")
}

// groupAdded: a group that is new begins with its replicas, also beside others that run.
func groupAdded(w *testkit.World) {
	begun(w)
	w.Edit("demo", func(c *v1beta1.ComputeCluster) {
		gpu, most := testkit.Group("gpu", 1), int32(3)
		gpu.MaxReplicas = &most
		c.Spec.WorkerGroups = append(c.Spec.WorkerGroups, gpu)
	})
	w.Settle()
	sizes(w, "demo", map[string]int{"cpu": 2, "gpu": 1})
	w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups = c.Spec.WorkerGroups[1:] })
	w.After(10 * time.Minute)
	sizes(w, "demo", map[string]int{"cpu": 0, "gpu": 1})
}

// TestAutoscalerThatIsNotThere: sizes are frozen, but the bounds hold.
func TestAutoscalerThatIsNotThere(t *testing.T) {
	frozen := func(w *testkit.World) {
		w.Helper()
		sizes(w, "demo", map[string]int{"cpu": 5})
		bound := func(least, replicas, most int32) {
			w.Edit("demo", func(c *v1beta1.ComputeCluster) {
				c.Spec.WorkerGroups[0].MinReplicas, c.Spec.WorkerGroups[0].Replicas, c.Spec.WorkerGroups[0].MaxReplicas = &least, &replicas, &most
			})
		}
		bound(6, 6, 10)
		w.Settle()
		sizes(w, "demo", map[string]int{"cpu": 6})
		bound(0, 2, 3)
		w.After(10 * time.Minute)
		sizes(w, "demo", map[string]int{"cpu": 3})
	}
	play(t,
		testkit.Scenario{Name: "stream-broken", Run: func(w *testkit.World) {
			begun(w)
			scaledTo(w, 5)
			w.Scaler.Says, w.Scaler.Away = wants(0), true
			w.After(time.Minute)
			w.Expect("demo", "Ready=True", "Autoscaling=False AutoscalerUnreachable")
			frozen(w)
		}},
		testkit.Scenario{Name: "head-without-it", Run: func(w *testkit.World) {
			w.Scaler.Says = wants(0)
			w.Create(elastic(func(c *v1beta1.ComputeCluster) { c.Spec.Autoscaling, *c.Spec.WorkerGroups[0].Replicas = nil, 5 }))
			w.Settle()
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.Autoscaling = &v1beta1.Autoscaling{} })
			w.After(time.Minute)
			w.Expect("demo", "Ready=True", "Autoscaling=False HeadWithoutAutoscaler", "UpToDate=False PodsOutdated")
			frozen(w)
			w.Delete(w.Head("demo"))
			w.After(time.Minute)
			w.Expect("demo", "Ready=True", "Autoscaling=True", "UpToDate=True")
		}, AnyEpoch: true},
		testkit.Scenario{Name: "it-cannot-decide", Run: func(w *testkit.World) {
			begun(w)
			w.Scaler.Says = func(o protocol.Snapshot) protocol.Decision {
				decision := wants(2)(o)
				decision.Error = "the control service does not answer"
				return decision
			}
			w.Settle()
			w.Expect("demo", ready, "Autoscaling=False AutoscalerTrouble")
		}},
	)
}

// TestHostileAutoscaler: whatever it says, sizes stay within bounds, and no pod of another
// cluster is touched.
func TestHostileAutoscaler(t *testing.T) {
	begin := func(w *testkit.World) []string {
		w.Helper()
		w.Create(testkit.Cluster("other", testkit.Group("cpu", 2)))
		begun(w)
		return testkit.UIDs(append(w.Workers("other", "cpu"), w.Head("other")))
	}
	play(t,
		testkit.Scenario{Name: "names-others-pods", Run: func(w *testkit.World) {
			others := begin(w)
			w.Scaler.Says = func(protocol.Snapshot) protocol.Decision {
				decision := protocol.Decision{Targets: []protocol.Target{{Group: "cpu", Replicas: -7}, {Group: "nonsense", Replicas: 1000}, {Group: "", Replicas: 9}}}
				for _, uid := range append(slices.Clone(others), string(w.Head("demo").UID), "", "nonsense") {
					decision.Removals = append(decision.Removals, protocol.Removal{Pod: uid, Node: "00", Drained: true})
				}
				return decision
			}
			w.After(time.Minute)
			sizes(w, "demo", map[string]int{"": 1, "cpu": 2})
			untouched(w, others, append(w.Workers("other", "cpu"), w.Head("other")))
		}},
		testkit.Scenario{Name: "names-all", Run: func(w *testkit.World) {
			others := begin(w)
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { *c.Spec.WorkerGroups[0].MinReplicas = 1 })
			w.Settle()
			w.Scaler.Says = func(snapshot protocol.Snapshot) protocol.Decision {
				decision := protocol.Decision{Targets: []protocol.Target{{Group: "cpu", Replicas: 0, Reason: strings.Repeat("x", 500)}}}
				for _, pod := range snapshot.Pods {
					decision.Removals = append(decision.Removals, protocol.Removal{Pod: pod.UID, Node: "00", Reason: protocol.Idle, Drained: true})
				}
				return decision
			}
			w.During(time.Minute) // it does not come to rest: one that is given back is made again
			sizes(w, "demo", map[string]int{"": 1, "cpu": 1})
			scaledTo(w, 2)
			sizes(w, "demo", map[string]int{"": 1, "cpu": 2})
			untouched(w, others, append(w.Workers("other", "cpu"), w.Head("other")))
		}},
	)
}

// TestWhatTheAutoscalerSays: the status and the events tell of it in words, once.
func TestWhatTheAutoscalerSays(t *testing.T) {
	w := testkit.NewWorld(t)
	begun(w)
	w.Scaler.Says = func(o protocol.Snapshot) protocol.Decision {
		decision := wants(5)(o)
		decision.Infeasible = []protocol.Infeasible{{Shape: "{GPU: 16}", Count: 1, Reason: "the largest group has 8 GPU"}}
		return decision
	}
	w.After(time.Minute)
	w.Expect("demo", ready, "Autoscaling=True Infeasible")
	status := w.Cluster("demo").Status.Autoscaling
	if len(status.Groups) != 1 || !reflect.DeepEqual(status.Groups[0], v1beta1.GroupTarget{Name: "cpu", Target: 5, Replicas: new(int32(2)), Message: "3 × {CPU: 1}"}) {
		t.Errorf("groups %+v", status.Groups)
	}
	if len(status.Infeasible) != 1 || status.Infeasible[0].Shape != "{GPU: 16}" || status.HeadUID != w.Head("demo").UID {
		t.Errorf("status %+v", status)
	}
	grew := func(event string) bool {
		return strings.HasPrefix(event, "Scaled: scaled group cpu 2 → 5: 3 × {CPU: 1}")
	}
	if told := slices.DeleteFunc(slices.Clone(w.Told), func(e string) bool { return !grew(e) }); len(told) != 1 {
		t.Errorf("the growth was told %d times: %q", len(told), w.Told)
	}
}

// TestWhoIsLeavingIsTold: by the autoscaler's decision, and for a lowered maximum with the time
// at which the pod goes at the latest.
func TestWhoIsLeavingIsTold(t *testing.T) {
	w := testkit.NewWorld(t)
	w.Ray.Busy, w.Ray.WorkTakes = all, longer
	begun(w)
	scaledTo(w, 5)
	w.Scaler.Says = func(o protocol.Snapshot) protocol.Decision {
		decision := wants(4)(o)
		for i := range decision.Removals {
			decision.Removals[i].Drained = false
		}
		return decision
	}
	w.Settle()
	retiring := w.Cluster("demo").Status.Autoscaling.Retiring
	if len(retiring) != 1 || retiring[0].State != v1beta1.RetiringDraining || retiring[0].Reason != v1beta1.RetireIdle {
		t.Errorf("retiring %+v", retiring)
	}
	sizes(w, "demo", map[string]int{"cpu": 5})
	w.Scaler.Says = wants(5)
	w.Edit("demo", func(c *v1beta1.ComputeCluster) { *c.Spec.WorkerGroups[0].MaxReplicas = 4 })
	w.Settle()
	retiring = w.Cluster("demo").Status.Autoscaling.Retiring
	if len(retiring) != 1 || retiring[0].State != v1beta1.RetiringDraining || retiring[0].Reason != "Surplus" || retiring[0].DeadlineTime == nil {
		t.Errorf("retiring above the maximum %+v", retiring)
	}
}

// TestPodsThatNobodyNeedsAnyMore: one that is given back and never was a node goes only as
// long as it is not ready.
func TestPodsThatNobodyNeedsAnyMore(t *testing.T) {
	w := testkit.NewWorld(t)
	w.Kubelet.Idle = func(pod *corev1.Pod) bool { return pod.Labels[v1beta1.LabelSlot] == "3" }
	begun(w)
	scaledTo(w, 4)
	w.Scaler.Says = func(o protocol.Snapshot) protocol.Decision {
		decision := wants(2)(o)
		for i := range decision.Removals {
			decision.Removals[i].Node, decision.Removals[i].Reason = "", protocol.Unneeded
		}
		return decision
	}
	w.After(time.Minute)
	sizes(w, "demo", map[string]int{"cpu": 3})
}
