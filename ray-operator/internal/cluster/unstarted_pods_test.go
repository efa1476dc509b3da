package cluster_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster/scaler"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// misspelt never started, and was built from an earlier spec.
func misspelt(p *corev1.Pod) { old(p); unborn(p) }

// looped ended once and waits to be started again.
func looped(p *corev1.Pod) {
	misspelt(p)
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "ray", RestartCount: 1}}
}

// rayless ended before it was ever ready, was started again in vain, and was built from an earlier spec.
func rayless(readyFor time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		old(p)
		started := metav1.NewTime(now.Add(-time.Minute))
		p.Status = corev1.PodStatus{
			Phase: corev1.PodRunning, StartTime: &started,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(started.Add(readyFor))}},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: v1beta1.ContainerRay, RestartCount: 2,
				State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 127, FinishedAt: metav1.NewTime(now.Add(-5 * time.Second))}},
			}},
		}
	}
}

const (
	newHead  = "record@2 mend:Service +head@2 "
	replaced = "-cpu0@1 !NeverStarted "
)

// TestDecide_ReplacesWhatNeverStarted: under every strategy, and nothing that ran with it.
func TestDecide_ReplacesWhatNeverStarted(t *testing.T) {
	for _, kind := range []v1beta1.ClusterUpgradeType{v1beta1.ClusterUpgradeNone, v1beta1.ClusterUpgradeRollingWorkers, v1beta1.ClusterUpgradeRecreate} {
		t.Run(string(kind), func(t *testing.T) {
			edit := upgrade(kind, nil)
			checkCases(t, map[string]case_{
				"a worker":                  {edit, given(1, pods(1, misspelt)), "+cpu2@1 " + replaced + "30s"},
				"all workers":               {edit, given(1, pods(1, misspelt), pods(2, misspelt)), "+cpu2@1 +cpu3@1 " + replaced + "-cpu1@1 30s"},
				"a worker without Ray":      {edit, given(1, pods(1, rayless(0))), "+cpu2@1 " + replaced + "30s"},
				"not one that is as wanted": {edit, given(1, pods(1, unborn)), "30s"},
				"not one that drains":       {edit, given(1, pods(1, misspelt), pods(1, exiting("Retired", 0, 0))), "+cpu2@1 -cpu0@1"},
				"a head, and workers that are as wanted wait for the next": {
					edit, given(1, pods(0, misspelt), pods(1, starting), pods(2, unborn)), newHead + "note -head@1/5s !NeverStarted 30s",
				},
				"a head and its workers": {
					edit, given(1, pods(0, misspelt), pods(1, misspelt), pods(2, unborn)),
					newHead + "+cpu2@1 note " + replaced + "-head@1/5s !NeverStarted 30s",
				},
				"a head, and workers that cannot wait for the next": {
					edit, given(1, pods(0, misspelt), pods(1, starting), pods(1, old), pods(2, unborn)),
					newEpoch + "-head@1/5s -cpu0@1/5s -cpu1@1/5s !" + map[v1beta1.ClusterUpgradeType]string{
						v1beta1.ClusterUpgradeNone: "NeverStarted", v1beta1.ClusterUpgradeRollingWorkers: "NeverStarted", v1beta1.ClusterUpgradeRecreate: "Recreating",
					}[kind] + " 30s",
				},
				"not a head that is as wanted": {edit, given(1, pods(0, unborn)), "30s"},
			})
		})
	}
}

// TestDecide_ReplacesUnstartedOfAnAutoscaledGroup: as many as the autoscaler wants, and none beside them.
func TestDecide_ReplacesUnstartedOfAnAutoscaledGroup(t *testing.T) {
	for _, kind := range []v1beta1.ClusterUpgradeType{v1beta1.ClusterUpgradeNone, v1beta1.ClusterUpgradeRollingWorkers, v1beta1.ClusterUpgradeRecreate} {
		of := elastic(func(c *v1beta1.ComputeCluster) { strategy(kind, nil)(&c.Spec) })
		seen := elasticPods(of, 2)
		seen.Scaler = scaler.State{Heard: true, Connected: true, Decision: protocol.Decision{Targets: []protocol.Target{{Group: "cpu", Replicas: 2}}}}
		for _, worker := range seen.Pods[1:] {
			misspelt(worker.Pod)
			delete(seen.Ray.Nodes, worker.UID)
		}
		if have, want := gist(decide(of, seen)), "+cpu2@1 +cpu3@1 "+replaced+"-cpu1@1"; !strings.Contains(have, want) || strings.Count(have, "+") != 2 {
			t.Errorf("%s: %q, want %q", kind, have, want)
		}
	}
}

// TestDecide_LeavesWhatRan: the strategy says what becomes of a pod that ran, and none of these says that it goes now.
func TestDecide_LeavesWhatRan(t *testing.T) {
	checkCases(t, map[string]case_{
		"a worker that starts":     {nil, given(1, pods(1, starting), pods(1, old)), "30s"},
		"a worker that was ready":  {nil, given(1, pods(1, rayless(10*time.Second))), "30s"},
		"a worker that ended once": {nil, given(1, pods(1, looped)), "30s"},
		"a head that starts":       {nil, given(1, pods(0, starting), pods(0, old)), "30s"},
		"a head that ended once":   {upgrade(v1beta1.ClusterUpgradeRollingWorkers, nil), given(1, pods(0, looped)), "30s"},
	})
}

// TestDecide_ReplacesReplicasAsOne: one of whose hosts never started is of no use, and those that run leave as planned.
func TestDecide_ReplacesReplicasAsOne(t *testing.T) {
	of := hosts()
	seen := settled(of)
	misspelt(seen.Pods[1].Pod)
	old(seen.Pods[2].Pod)
	if have, want := gist(decide(of, seen)), "+tpu4@1 +tpu5@1 ~tpu1@1/Rolling/5m0s -tpu0@1 !NeverStarted"; !strings.HasPrefix(have, want) {
		t.Errorf("%q, want %q", have, want)
	}
}

// TestDecide_KeepsSlotsWithClaims: the successor of a worker with claims waits for its slot.
func TestDecide_KeepsSlotsWithClaims(t *testing.T) {
	of := demo()
	of.Spec.WorkerGroups[0].VolumeClaimTemplates = data()
	seen := settled(of)
	misspelt(seen.Pods[1].Pod)
	if have := gist(decide(of, seen)); strings.Contains(have, "+") || !strings.HasPrefix(have, replaced) {
		t.Errorf("it does %q", have)
	}
	seen.Pods = append(seen.Pods[:1], seen.Pods[2:]...)
	if have := gist(decide(of, seen)); have != "+cpu0@1" {
		t.Errorf("once the slot is free, it does %q", have)
	}
}

// TestDecide_KeepsTheSizeItCorrects: a group that is scaled keeps its size while nobody says what it should be.
func TestDecide_KeepsTheSizeItCorrects(t *testing.T) {
	of, least, most := demo(), int32(0), int32(4)
	of.Spec.Autoscaling, of.Spec.WorkerGroups[0].Replicas = &v1beta1.Autoscaling{}, nil
	of.Spec.WorkerGroups[0].MinReplicas, of.Spec.WorkerGroups[0].MaxReplicas = &least, &most
	if have, want := gist(decide(of, given(1, pods(1, misspelt), pods(2, misspelt)))), "+cpu2@1 +cpu3@1 "+replaced+"-cpu1@1"; !strings.Contains(have, want) {
		t.Errorf("it does %q, want %q", have, want)
	}
}

// stuck is a cluster of a strategy whose pods have an image that nobody can pull, those of a role or all.
func stuck(w *testkit.World, kind v1beta1.ClusterUpgradeType, role string, edit func(*v1beta1.ComputeCluster)) {
	w.Helper()
	failing := true
	w.Kubelet.Idle = func(pod *corev1.Pod) bool { // workers run once their head does
		return broken(pod) || role != v1beta1.RoleWorker && failing && !isHead(pod)
	}
	of := testkit.Cluster("demo", testkit.Group("cpu", 2))
	of.Spec.UpgradeStrategy = &v1beta1.ClusterUpgradeStrategy{Type: kind}
	edit(of)
	w.Create(of)
	w.Settle()
	w.Expect("demo", "Ready=False Unschedulable")
	failing = false
}

func isHead(pod *corev1.Pod) bool { return pod.Labels[v1beta1.LabelRole] == v1beta1.RoleHead }

// correctedAll corrects the image of all pods: none of them ever ran.
func correctedAll(w *testkit.World, kind v1beta1.ClusterUpgradeType) {
	stuck(w, kind, "", func(c *v1beta1.ComputeCluster) { c.Spec.Image = "broken" })
	former := testkit.UIDs(w.Pods("demo"))
	w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.Image = "" })
	w.Settle()
	w.Expect("demo", ready, "UpToDate=True")
	sizes(w, "demo", map[string]int{"": 1, "cpu": 2})
	epochIs(w, 2)
	for _, pod := range w.Pods("demo") {
		if broken(pod) {
			w.Fatalf("pod %s has the image that was corrected; before there were %v", pod.Name, former)
		}
	}
}

// correctedHead corrects the head alone: the workers, which are as wanted, stay.
func correctedHead(w *testkit.World, kind v1beta1.ClusterUpgradeType) {
	stuck(w, kind, v1beta1.RoleHead, func(c *v1beta1.ComputeCluster) { c.Spec.Image, c.Spec.WorkerGroups[0].Image = "broken", "mine" })
	kept := testkit.UIDs(w.Workers("demo", "cpu"))
	w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.Image = "" })
	w.Settle()
	w.Expect("demo", ready, "UpToDate=True")
	untouched(w, kept, w.Workers("demo", "cpu"))
	epochIs(w, 2)
}

// correctedWorkers corrects a group: the head, which ran, stays.
func correctedWorkers(w *testkit.World, kind v1beta1.ClusterUpgradeType) {
	stuck(w, kind, v1beta1.RoleWorker, func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups[0].Image = "broken" })
	head := w.Head("demo").UID
	reimage(w, "")
	w.Settle()
	w.Expect("demo", ready, "UpToDate=True")
	imaged(w, map[string]int{"broken": 0, "rayproject/ray:2.60.0": 2})
	epochIs(w, 1)
	if w.Head("demo").UID != head {
		w.Fatalf("a correction of workers cost the head")
	}
}

// correctedBeside has a worker that never started beside two that run: these are touched by the strategy alone.
func correctedBeside(w *testkit.World) {
	w.Kubelet.Idle = broken
	started(w, "demo", testkit.Group("cpu", 2))
	kept := testkit.UIDs(w.Workers("demo", "cpu"))
	reimage(w, "broken")
	w.Scale("demo", 3)
	w.Settle()
	imaged(w, map[string]int{"broken": 1})
	reimage(w, "new")
	w.Settle()
	w.Expect("demo", ready, "UpToDate=False PodsOutdated")
	imaged(w, map[string]int{"broken": 0, "new": 1, "rayproject/ray:2.60.0": 2})
	epochIs(w, 1)
	for _, uid := range kept {
		if !strings.Contains(strings.Join(testkit.UIDs(w.Workers("demo", "cpu")), " "), uid) {
			w.Fatalf("a worker that ran was replaced")
		}
	}
}

func TestUnstarted(t *testing.T) {
	for _, kind := range []v1beta1.ClusterUpgradeType{v1beta1.ClusterUpgradeNone, v1beta1.ClusterUpgradeRollingWorkers, v1beta1.ClusterUpgradeRecreate} {
		play(t,
			testkit.Scenario{Name: "all-" + string(kind), Run: func(w *testkit.World) { correctedAll(w, kind) }},
			testkit.Scenario{Name: "head-" + string(kind), Run: func(w *testkit.World) { correctedHead(w, kind) }},
			testkit.Scenario{Name: "workers-" + string(kind), Run: func(w *testkit.World) { correctedWorkers(w, kind) }},
		)
	}
	play(t,
		testkit.Scenario{Name: "beside", Run: correctedBeside},
		testkit.Scenario{Name: "with-store", Run: func(w *testkit.World) {
			w.Kubelet.Idle = broken
			of := testkit.Cluster("demo", testkit.Group("cpu", 2))
			of.Spec.ControlStore, of.Spec.Image, of.Spec.WorkerGroups[0].Image = managedRedis(), "broken", "mine"
			w.Create(of)
			w.Settle()
			kept := testkit.UIDs(w.Workers("demo", "cpu"))
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.Image = "" })
			w.Settle()
			w.Expect("demo", ready, serves, "UpToDate=True")
			untouched(w, kept, w.Workers("demo", "cpu"))
			epochIs(w, 2)
			session(w, 1)
		}},
	)
}
