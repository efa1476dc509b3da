package cluster_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// case_ is demo with an edit, what a pass sees of it, and the gist of the plan that follows.
type case_ struct {
	edit func(*v1beta1.ComputeClusterSpec)
	seen cluster.Seen
	want string
}

func checkCases(t *testing.T, cases map[string]case_) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			of := demo()
			of.Generation = 4
			if c.edit != nil {
				c.edit(&of.Spec)
			}
			if policy := of.Spec.IdlePolicy; policy != nil {
				c.seen.Record.Policy = policySince(policy, now.Add(-24*time.Hour))
			}
			if have := gist(decide(of, c.seen)); have != c.want {
				t.Errorf("%q, want %q", have, c.want)
			}
		})
	}
}

// suspension notes in the record that the cluster is suspended.
func suspension(cause string, generation int64) func(*cluster.Seen) {
	return func(s *cluster.Seen) {
		s.Record.Suspended = cluster.Suspension{Cause: cause, Generation: generation}
	}
}

func podless(s *cluster.Seen)  { s.Pods = nil }
func noBudget(s *cluster.Seen) { delete(s.Fixtures, "PodDisruptionBudget") }
func suspendSpec(s *v1beta1.ComputeClusterSpec) {
	s.Suspend = new(true)
}

func idlePolicy(action v1beta1.IdleAction) func(*v1beta1.ComputeClusterSpec) {
	return func(s *v1beta1.ComputeClusterSpec) {
		s.IdlePolicy = &v1beta1.IdlePolicy{AfterSeconds: 600, Action: action}
	}
}

// answered has the head say that nobody has used the cluster for some time.
func answered(idle, ago time.Duration) func(*cluster.Seen) {
	return func(s *cluster.Seen) {
		s.Ray = cluster.Ray{At: now.Add(-ago), UseAt: now.Add(-ago), Nodes: map[types.UID]cluster.RayNode{}}
		if idle > 0 {
			s.Ray.IdleSince = now.Add(-idle)
		}
	}
}

func wanted(s *cluster.Seen) { s.Wanted = "train" }

func silent(s *cluster.Seen) { s.Ray = cluster.Ray{Failed: true, At: now} }

func TestDecideToSuspend(t *testing.T) {
	checkCases(t, map[string]case_{
		"by the spec": {suspendSpec, given(1), "record@1" + headName(1) + " unmake:PodDisruptionBudget -head@1/5s -cpu0@1/5s -cpu1@1/5s suspended"},
		"its pods are going": {
			suspendSpec, given(1, suspension("Spec", 0), noBudget, pods(0, leaving), pods(1, leaving), pods(2, leaving)), "suspended",
		},
		"done":    {suspendSpec, given(1, suspension("Spec", 0), noBudget, podless), "suspended"},
		"resumed": {nil, given(1, suspension("Spec", 0), noBudget, podless), "record@2 mend:Service +head@2 +cpu0@2 +cpu1@2 note !Resumed"},
		"resumed while pods are going": {
			nil, given(1, suspension("Spec", 0), noBudget, pods(0, leaving), without(2), without(1)),
			"record@2 mend:Service +head@2 +cpu0@2 +cpu1@2 note !Resumed 30s",
		},
		"idle": {
			idlePolicy("Suspend"), given(1, noBudget, answered(20*time.Minute, 0)),
			"record@1" + headName(1) + " -head@1/5s -cpu0@1/5s -cpu1@1/5s suspended !SuspendedIdle ask/5s/0",
		},
		"idle, and nothing changed since":  {idlePolicy("Suspend"), given(1, suspension("Idle", 4), noBudget, podless), "suspended"},
		"idle, and the spec changed since": {idlePolicy("Suspend"), given(1, suspension("Idle", 3), noBudget, podless), "record@2 mend:Service +head@2 +cpu0@2 +cpu1@2 note !Resumed"},
		"idle, and now by the spec too": {
			func(s *v1beta1.ComputeClusterSpec) { suspendSpec(s); idlePolicy("Suspend")(s) },
			given(1, suspension("Idle", 4), noBudget, podless), "record@1" + headName(1) + " suspended",
		},
		"idle not for long enough": {idlePolicy("Suspend"), given(1, answered(599*time.Second, 0)), "ask/5s/0 1s"},
		"idle by an old answer to that": {
			idlePolicy("Suspend"), given(1, answered(time.Hour, 0), func(s *cluster.Seen) { s.Ray.UseAt = now.Add(-11 * time.Second) }), "ask/5s/0",
		},
		"idle, and a job wants it":            {idlePolicy("Suspend"), given(1, answered(20*time.Minute, 0), wanted), "ask/5s/0 15s"},
		"idle, to be deleted, a job wants it": {idlePolicy("Delete"), given(1, answered(20*time.Minute, 0), wanted), "ask/5s/0 15s"},
		"suspended idle, and a job wants it": {
			idlePolicy("Suspend"), given(1, suspension("Idle", 4), noBudget, podless, wanted), "record@2 mend:Service +head@2 +cpu0@2 +cpu1@2 note !Resumed",
		},
		"suspended by the spec, and a job wants it": {suspendSpec, given(1, suspension("Spec", 0), noBudget, podless, wanted), "suspended"},
		"in use":                     {idlePolicy("Suspend"), given(1, answered(0, 0)), "ask/5s/0"},
		"idle by an old answer":      {idlePolicy("Suspend"), given(1, answered(time.Hour, 11*time.Second)), "ask/5s/0"},
		"the head does not answer":   {idlePolicy("Suspend"), given(1, silent), "ask/5s/0"},
		"idle, to be deleted":        {idlePolicy("Delete"), given(1, answered(20*time.Minute, 0)), "end ask/5s/0"},
		"idle, to be told":           {idlePolicy("None"), given(1, answered(20*time.Minute, 0)), "ask/5s/0"},
		"idle for longer than ready": {idlePolicy("Suspend"), given(1, answered(time.Hour, 0), pods(0, readyFor(time.Minute))), "ask/5s/0 9m0s"},
	})
}

// headName is the UID that running gives the head of an epoch.
func headName(epoch int64) string { return string(given(epoch).Record.HeadUID) }

func readyFor(since time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-since)) }
}

// TestWakesByAnnotation: each new value of the annotation wakes an idle cluster.
func TestWakesByAnnotation(t *testing.T) {
	of := demo()
	of.Annotations = map[string]string{v1beta1.AnnotationResume: "monday"}
	of.Spec.IdlePolicy = &v1beta1.IdlePolicy{AfterSeconds: 600, Action: v1beta1.IdleSuspend}
	plan := decide(of, given(1, answered(time.Hour, 0)))
	if plan.Record == nil || !plan.Suspended {
		t.Fatalf("not suspended: %s", gist(plan))
	}
	asleep := given(1, podless, noBudget, func(s *cluster.Seen) { s.Record = *plan.Record })
	if again := decide(of, asleep); !again.Suspended || !again.Empty() {
		t.Errorf("it does not stay suspended: %s", gist(again))
	}
	of.Annotations[v1beta1.AnnotationResume] = "tuesday"
	if awake := decide(of, asleep); awake.Suspended || awake.Epoch != 2 {
		t.Errorf("another value does not wake it: %s", gist(awake))
	}
}

// exiting marks a worker as on its planned exit for some time, with some time left.
func exiting(why string, since, left time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		exit := cluster.Exit{Version: 1, Since: now.Add(-since), Until: now.Add(left), Why: why}
		p.Annotations[v1beta1.AnnotationDrain] = exit.String()
	}
}

// node says something of the Ray node in the i-th pod.
func node(i int, is cluster.RayNode) func(*cluster.Seen) {
	return func(s *cluster.Seen) {
		s.Ray.At = now
		if s.Ray.Nodes == nil {
			s.Ray.Nodes = map[types.UID]cluster.RayNode{}
		}
		s.Ray.Nodes[s.Pods[i].UID] = is
	}
}

func one_(s *v1beta1.ComputeClusterSpec) { *s.WorkerGroups[0].Replicas = 1 }

func drainFor(seconds int32) func(*v1beta1.ComputeClusterSpec) {
	return func(s *v1beta1.ComputeClusterSpec) { one_(s); s.WorkerGroups[0].DrainSeconds = &seconds }
}

func TestDecideWhoLeaves(t *testing.T) {
	busy, idle := cluster.RayNode{}, cluster.RayNode{Idle: true}
	checkCases(t, map[string]case_{
		"Ray has to say first who is idle": {one_, given(1), "ask/1s/0"},
		"the idle one leaves":              {one_, given(1, node(1, idle), node(2, busy)), "~cpu0@1/Surplus/5m0s ask/1s/1 5m0s"},
		"the highest of two idle ones":     {one_, given(1, node(1, idle), node(2, idle)), "~cpu1@1/Surplus/5m0s ask/1s/1 5m0s"},
		"a silent head is not waited for":  {one_, given(1, silent), "~cpu1@1/Surplus/5m0s ask/1s/1 5m0s"},
		"with its own time":                {drainFor(7), given(1, silent), "~cpu1@1/Surplus/7s ask/1s/1 7s"},
		"with no time":                     {drainFor(0), given(1, silent), "-cpu1@1"},
		"one that has not joined goes at once": {
			one_, given(1, pods(1, unreadyPod)), "-cpu0@1 30s",
		},
		"a head that is not ready cannot drain": {one_, given(1, silent, pods(0, unreadyPod)), "-cpu1@1 30s"},
		"asked to retire":                       {nil, given(1, pods(1, retire)), "+cpu2@1 ~cpu0@1/Retired/5m0s ask/1s/1 5m0s"},
		"asked to retire, of one too many":      {one_, given(1, pods(1, retire)), "~cpu0@1/Retired/5m0s ask/1s/1 5m0s"},
		"its node is going":                     {nil, given(1, pods(1, on("n2")), nodeSeen("n2", cluster.Node{Going: "spot"})), "+cpu2@1 ~cpu0@1/NodeDraining/5m0s ask/1s/1 5m0s"},
		"a suspended group": {
			func(s *v1beta1.ComputeClusterSpec) { s.WorkerGroups[0].Suspend = new(true) }, given(1),
			"~cpu1@1/GroupSuspended/5m0s ~cpu0@1/GroupSuspended/5m0s ask/1s/2 5m0s",
		},
	})
}

func retire(p *corev1.Pod) { p.Annotations[v1beta1.AnnotationRetire] = "" }

func on(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = name } }

func nodeSeen(name string, is cluster.Node) func(*cluster.Seen) {
	return func(s *cluster.Seen) { s.Nodes = map[string]cluster.Node{name: is} }
}

// TestDrain_IsMeasured: how long a worker drained, and whether its time ran out.
func TestDrain_IsMeasured(t *testing.T) {
	for name, c := range map[string]struct {
		seen cluster.Seen
		want *cluster.Drain
	}{
		"finished":                {given(1, pods(2, exiting("Surplus", time.Minute, 4*time.Minute)), pods(2, failed)), &cluster.Drain{Took: time.Minute}},
		"its time ran out":        {given(1, pods(2, exiting("Surplus", time.Hour, 0))), &cluster.Drain{Took: time.Hour, TimedOut: true}},
		"its text cannot be read": {given(1, pods(2, func(p *corev1.Pod) { p.Annotations[v1beta1.AnnotationDrain] = "soon" })), nil},
		"it was not drained":      {given(1, pods(2, failed)), nil},
	} {
		of := demo()
		one_(&of.Spec)
		plan := decide(of, c.seen)
		if len(plan.Delete) != 1 {
			t.Errorf("%s: the plan is %s, want one deletion", name, plan.String())
			continue
		}
		if diff := cmp.Diff(c.want, plan.Delete[0].Drain); diff != "" {
			t.Errorf("%s (- wanted, + is):\n%s", name, diff)
		}
	}
}

func TestDecideWhenADrainIsOver(t *testing.T) {
	leaves := exiting("Surplus", time.Minute, 4*time.Minute)
	checkCases(t, map[string]case_{
		"it goes on":               {one_, given(1, pods(2, leaves)), "ask/1s/1 4m0s"},
		"its slot stays busy":      {nil, given(1, pods(1, leaves)), "+cpu2@1 ask/1s/1 4m0s"},
		"Ray has drained it":       {one_, given(1, pods(2, leaves), node(2, cluster.RayNode{Dead: true})), "-cpu1@1"},
		"its container has ended":  {one_, given(1, pods(2, leaves), pods(2, ended(time.Second))), "-cpu1@1"},
		"it had ended before":      {one_, given(1, pods(2, leaves), pods(2, ended(2*time.Minute))), "ask/1s/1 4m0s"},
		"it failed":                {one_, given(1, pods(2, leaves), pods(2, failed)), "-cpu1@1"},
		"its time is over":         {one_, given(1, pods(2, exiting("Surplus", time.Hour, 0))), "-cpu1@1"},
		"its text cannot be read":  {one_, given(1, pods(2, func(p *corev1.Pod) { p.Annotations[v1beta1.AnnotationDrain] = "soon" })), "-cpu1@1"},
		"the head is gone":         {one_, given(1, pods(2, leaves), without(0)), "record@2 mend:Service +head@2 +cpu0@2 note -cpu0@1/5s -cpu1@1/5s !HeadLost"},
		"the head answers no more": {one_, given(1, pods(2, leaves), silent), "ask/1s/1 4m0s"},
		"the cluster is suspended": {
			suspendSpec, given(1, pods(2, leaves), suspension("Spec", 0), noBudget), "-head@1/5s -cpu0@1/5s -cpu1@1/5s suspended",
		},
		"its group is gone": {
			func(s *v1beta1.ComputeClusterSpec) { s.WorkerGroups = nil },
			given(1, without(2), pods(1, exiting("GroupRemoved", time.Minute, time.Minute))), "ask/1s/1 1m0s",
		},
	})
}

// old was built from a spec that differs in more than sizes.
func old(p *corev1.Pod) {
	p.Annotations[v1beta1.AnnotationIntent], p.Annotations[v1beta1.AnnotationShape] = "v1-old", "v1-old"
}

func upgrade(kind v1beta1.ClusterUpgradeType, rolling *v1beta1.RollingWorkers) func(*v1beta1.ComputeClusterSpec) {
	return func(s *v1beta1.ComputeClusterSpec) { strategy(kind, rolling)(s) }
}

func TestDecideToUpgrade(t *testing.T) {
	rolling := upgrade("RollingWorkers", nil)
	surge := upgrade("RollingWorkers", &v1beta1.RollingWorkers{MaxUnavailable: new(intstr.FromInt32(0)), MaxSurge: new(intstr.FromInt32(1))})
	shares := func(unavailable, surge string) func(*v1beta1.ComputeClusterSpec) {
		return upgrade("RollingWorkers", &v1beta1.RollingWorkers{
			MaxUnavailable: new(intstr.FromString(unavailable)), MaxSurge: new(intstr.FromString(surge)),
		})
	}
	checkCases(t, map[string]case_{
		"None":                                            {nil, given(1, pods(1, old), pods(2, old)), ""},
		"a hash of a later version":                       {rolling, given(1, pods(1, func(p *corev1.Pod) { p.Annotations[v1beta1.AnnotationIntent] = "v9-a" })), ""},
		"no hash":                                         {rolling, given(1, pods(2, unhashed)), "~cpu1@1/Rolling/5m0s ask/1s/1 5m0s"},
		"rolling: the first":                              {rolling, given(1, pods(1, old), pods(2, old)), "~cpu1@1/Rolling/5m0s ask/1s/1 5m0s"},
		"rolling: while it drains":                        {rolling, given(1, pods(1, old), pods(2, old), pods(2, exiting("Rolling", time.Minute, time.Minute))), "ask/1s/1 1m0s"},
		"rolling: once it is gone":                        {rolling, given(1, pods(1, old), without(2)), "+cpu1@1"},
		"rolling: while it leaves":                        {rolling, given(1, pods(1, old), pods(2, leaving)), "+cpu2@1 30s"},
		"rolling: while one starts":                       {rolling, given(1, pods(1, old), pods(2, unreadyPod)), "30s"},
		"rolling: the last":                               {rolling, given(1, pods(1, old)), "~cpu0@1/Rolling/5m0s ask/1s/1 5m0s"},
		"rolling: the head is old":                        {rolling, given(1, pods(0, old), pods(1, old)), ""},
		"rolling: only the head is":                       {rolling, given(1, pods(0, old)), ""},
		"what may be missing is rounded down, a surge up": {shares("49%", "1%"), given(1, pods(1, old), pods(2, old)), "+cpu2@1"},
		"none missing nor beyond, rounded, is one missing": {
			shares("49%", "0%"), given(1, pods(1, old), pods(2, old)), "~cpu1@1/Rolling/5m0s ask/1s/1 5m0s",
		},
		"all missing at once":        {shares("100%", "0%"), given(1, pods(1, old), pods(2, old)), "~cpu0@1/Rolling/5m0s ~cpu1@1/Rolling/5m0s ask/1s/2 5m0s"},
		"surge first":                {surge, given(1, pods(1, old), pods(2, old)), "+cpu2@1"},
		"recreate: a worker is old":  {upgrade("Recreate", nil), given(1, pods(1, old)), "record@2 mend:Service +head@2 +cpu0@2 +cpu1@2 note -head@1/5s -cpu0@1/5s -cpu1@1/5s !Recreating"},
		"recreate: the head is old":  {upgrade("Recreate", nil), given(1, pods(0, old)), "record@2 mend:Service +head@2 +cpu0@2 +cpu1@2 note -head@1/5s -cpu0@1/5s -cpu1@1/5s !Recreating"},
		"recreate: nothing is":       {upgrade("Recreate", nil), given(1), ""},
		"recreate: the head is lost": {upgrade("Recreate", nil), given(1, pods(1, old), without(0)), "record@2 mend:Service +head@2 +cpu0@2 +cpu1@2 note -cpu0@1/5s -cpu1@1/5s !HeadLost"},
		"recreate: a leaving one is": {upgrade("Recreate", nil), given(1, pods(1, old), pods(1, leaving)), "+cpu2@1 30s"},
	})
}

// unhashed is a pod that lost its hashes, or never had any.
func unhashed(p *corev1.Pod) {
	delete(p.Annotations, v1beta1.AnnotationIntent)
	delete(p.Annotations, v1beta1.AnnotationShape)
}

// TestRollsGroupByGroup: the second group waits until the first is complete.
func TestRollsGroupByGroup(t *testing.T) {
	of := testkit.Cluster("demo", testkit.Group("a", 1), testkit.Group("b", 1))
	of.Spec.UpgradeStrategy = &v1beta1.ClusterUpgradeStrategy{Type: v1beta1.ClusterUpgradeRollingWorkers}
	for name, test := range map[string]struct {
		edit func(a, b *corev1.Pod)
		want string
	}{
		"both are old":      {func(a, b *corev1.Pod) { old(a); old(b) }, "~a0@1/Rolling/5m0s ask/1s/1 5m0s"},
		"the first starts":  {func(a, b *corev1.Pod) { unreadyPod(a); old(b) }, "30s"},
		"the first is done": {func(_, b *corev1.Pod) { old(b) }, "~b0@1/Rolling/5m0s ask/1s/1 5m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := settled(of)
			test.edit(seen.Pods[1].Pod, seen.Pods[2].Pod)
			if have := gist(decide(of, seen)); have != test.want {
				t.Errorf("%q, want %q", have, test.want)
			}
		})
	}
}

// settled is a cluster as it is an hour after its first pass.
func settled(of *v1beta1.ComputeCluster) cluster.Seen {
	seen := cluster.Seen{
		Record: cluster.Record{Version: 1, Epoch: 1}, Fixtures: fixtures(of, 1), Token: cluster.Token{Presence: reconcile.Ours},
		Claims: map[string]*corev1.PersistentVolumeClaim{},
	}
	plan := decide(of, cluster.Seen{Record: seen.Record})
	seen.Pods = []cluster.Pod{running(plan.Head, placeOf(plan.Head))}
	seen.Record.HeadUID = seen.Pods[0].UID
	for _, filling := range plan.Create {
		for _, made := range filling.Pods {
			seen.Pods = append(seen.Pods, running(made, placeOf(made)))
		}
		for _, claim := range filling.Claims {
			seen.Claims[claim.Name] = claim
		}
	}
	return seen
}

// hosts has a group of two replicas with two hosts each.
func hosts() *v1beta1.ComputeCluster {
	group := testkit.Group("tpu", 2)
	group.HostsPerReplica = 2
	return testkit.Cluster("demo", group)
}

func TestDecideOnReplicas(t *testing.T) {
	for name, test := range map[string]struct {
		edits []func(*cluster.Seen)
		want  string
	}{
		"settled":            {nil, ""},
		"a host failed":      {[]func(*cluster.Seen){pods(1, failed)}, "+tpu4@1 +tpu5@1 -tpu0@1 !WorkerFailed -tpu1@1"},
		"a host is gone":     {[]func(*cluster.Seen){without(4)}, "+tpu4@1 +tpu5@1 -tpu2@1"},
		"one is being made":  {[]func(*cluster.Seen){without(4), pods(3, unreadyPod), pods(3, fresh)}, "+tpu3@1 5s"},
		"one never complete": {[]func(*cluster.Seen){without(4), pods(3, unreadyPod)}, "+tpu4@1 +tpu5@1 -tpu2@1 30s"},
	} {
		t.Run(name, func(t *testing.T) {
			of := hosts()
			seen := settled(of)
			for _, edit := range test.edits {
				edit(&seen)
			}
			if have := gist(decide(of, seen)); have != test.want {
				t.Errorf("%q, want %q", have, test.want)
			}
		})
	}
}

// larger asks for more CPU and memory than the workers were built with.
func larger(s *v1beta1.ComputeClusterSpec) {
	s.WorkerGroups[0].Size = testkit.Resources("cpu", "2", "memory", "4Gi")
}

// resized has a worker's spec, and what the kubelet gave it, say that it has more.
func resized(given bool) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		wanted := corev1.ResourceRequirements{
			Requests: testkit.Resources("cpu", "2", "memory", "4Gi"), Limits: testkit.Resources("memory", "4Gi"),
		}
		p.Spec.Containers[0].Resources = wanted
		if given {
			p.Status.ContainerStatuses[0].Resources = &wanted
		}
	}
}

func pending(why string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: why})
	}
}

// limited has a worker that may have twice the CPU that it requests.
func limited(p *corev1.Pod) {
	p.Spec.Containers[0].Resources = corev1.ResourceRequirements{
		Requests: testkit.Resources("cpu", "1", "memory", "2Gi"), Limits: testkit.Resources("cpu", "2", "memory", "2Gi"),
	}
}

func ofSize(pairs ...string) func(*v1beta1.ComputeClusterSpec) {
	return func(s *v1beta1.ComputeClusterSpec) { s.WorkerGroups[0].Size = testkit.Resources(pairs...) }
}

func TestDecideToResize(t *testing.T) {
	bigger := cluster.RayNode{Total: map[string]float64{"CPU": 2, "memory": 4<<30 - 644245080, "other": 1}}
	checkCases(t, map[string]case_{
		"larger":          {larger, given(1), "^cpu0@1 ^cpu1@1 15s"},
		"under way":       {larger, given(1, pods(1, resized(false)), pods(2, resized(false))), ""},
		"waits for room":  {larger, given(1, pods(1, resized(false)), pods(2, resized(true)), pods(2, pending("Deferred"))), ""},
		"Ray has to know": {larger, given(1, pods(1, resized(true)), pods(2, resized(true))), "ask/1s/0+2"},
		"done":            {larger, given(1, pods(1, resized(true)), pods(2, resized(true)), node(1, bigger), node(2, bigger)), "=cpu0@1 =cpu1@1"},
		"never, on its node, and so replaced": {
			func(s *v1beta1.ComputeClusterSpec) { larger(s); upgrade("RollingWorkers", nil)(s) },
			given(1, pods(1, resized(true)), node(1, bigger), pods(2, resized(false)), pods(2, pending("Infeasible"))),
			"~cpu1@1/Rolling/5m0s =cpu0@1 ask/1s/1 5m0s",
		},
		"smaller":                          {func(s *v1beta1.ComputeClusterSpec) { s.WorkerGroups[0].Size = testkit.Resources("cpu", "500m") }, given(1), ""},
		"a larger limit":                   {ofSize("cpu", "2", "limits.cpu", "4"), given(1, pods(1, limited), pods(2, limited)), "^cpu0@1 ^cpu1@1 15s"},
		"a limit where there was none":     {ofSize("cpu", "2", "limits.cpu", "4"), given(1), ""},
		"a request that becomes the limit": {ofSize("cpu", "2", "limits.cpu", "2"), given(1, pods(1, limited), pods(2, limited)), ""},
		"a limit that is taken away":       {ofSize("cpu", "2"), given(1, pods(1, limited), pods(2, limited)), ""},
		"of another kind": {
			func(s *v1beta1.ComputeClusterSpec) {
				s.WorkerGroups[0].Size = testkit.Resources("cpu", "2", "nvidia.com/gpu", "1")
			}, given(1), "",
		},
		"with an older Ray": {func(s *v1beta1.ComputeClusterSpec) { larger(s); s.RayVersion = "2.55.1" }, given(1), ""},
		"not ready":         {larger, given(1, pods(1, unreadyPod), pods(2, unreadyPod)), "30s"},
	})
}
