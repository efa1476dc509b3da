package cluster_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// told is the status of demo after a pass over seen whose apply ended in err.
func told(of *v1beta1.ComputeCluster, seen cluster.Seen, err error) v1beta1.ComputeClusterStatus {
	plan := decide(of, seen)
	return cluster.Status(of, seen, plan, cluster.Outcome{Outcome: reconcile.Outcome{Err: err}}, now)
}

func unreadyPod(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }

func starting(p *corev1.Pod) {
	unreadyPod(p)
	p.Status.Phase, p.Status.ContainerStatuses[0].Started = corev1.PodRunning, new(bool)
	p.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-5 * time.Second))}
}

func unscheduled(p *corev1.Pod) {
	p.Status, p.Spec.NodeName = corev1.PodStatus{Phase: corev1.PodPending}, ""
	fresh(p)
}

func outdated(p *corev1.Pod) { p.Annotations[v1beta1.AnnotationIntent] = "v1-x" }

func damaged(s *cluster.Seen) { s.RecordError = errors.New("half") }

func tokenless(s *cluster.Seen) { s.Token.Presence = reconcile.Absent }

// TestConditions holds Ready's status and reason with the phase, and which other conditions are true. Those that a row
// does not name are false; NameConflict is absent then.
func TestConditions(t *testing.T) {
	foreign, ill := errors.Join(fault.Conflict("Pod a"), errors.New("no")), apierrors.NewInternalError(errors.New("etcd"))
	overQuota := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("quota"))
	for name, test := range map[string]struct {
		seen        cluster.Seen
		err         error
		ready, true string
	}{
		"ready":                  {given(1), nil, "True AllReady Ready", "HeadReady WorkersReady UpToDate"},
		"head starts":            {given(1, pods(0, starting)), nil, "False HeadStarting Starting", "WorkersReady UpToDate Reconciling"},
		"head waits":             {given(1, pods(0, unscheduled)), nil, "False Scheduling Pending", "WorkersReady UpToDate Reconciling"},
		"head unready":           {given(1, pods(0, unreadyPod)), nil, "False ProbeFailing Starting", "WorkersReady UpToDate Reconciling"},
		"worker starts":          {given(1, pods(1, starting)), nil, "False WorkersStarting Starting", "HeadReady UpToDate Reconciling"},
		"worker failed":          {given(1, pods(1, failed), pods(1, fresh)), nil, "False Evicted Starting", "HeadReady UpToDate Reconciling"},
		"head gone":              {given(1, without(0)), errors.New("no"), "False HeadMissing Recovering", "UpToDate Reconciling"},
		"second head":            {given(2, pods(0, starting)), nil, "False HeadStarting Starting", "WorkersReady UpToDate Reconciling"},
		"outdated":               {given(1, pods(1, outdated)), nil, "True AllReady Ready", "HeadReady WorkersReady"},
		"damaged record":         {given(1, damaged), nil, "False RecordDamaged Failed", "UpToDate Stalled"},
		"foreign service":        {given(1, standing("Service", reconcile.Foreign)), nil, "False NameConflict Failed", "HeadReady WorkersReady UpToDate Stalled NameConflict"},
		"foreign pod":            {given(1, without(1)), foreign, "False NameConflict Failed", "HeadReady UpToDate Stalled NameConflict"},
		"refused":                {given(1, without(1)), overQuota, "False CreateRefused Starting", "HeadReady UpToDate Reconciling"},
		"token missing":          {given(1, without(1), tokenless), nil, "False TokenMissing Starting", "HeadReady Reconciling"},
		"token missing, all run": {given(1, tokenless), nil, "True AllReady Ready", "HeadReady WorkersReady"},
		"API server ill":         {given(1, without(1)), ill, "False WorkersStarting Starting", "HeadReady UpToDate Reconciling"},
		"waits for a name":       {given(1, without(1)), &fault.Wait{For: "a"}, "False WorkersStarting Starting", "HeadReady UpToDate Reconciling"},
	} {
		t.Run(name, func(t *testing.T) {
			status := told(demo(), test.seen, test.err)
			ready := meta.FindStatusCondition(status.Conditions, v1beta1.ConditionReady)
			if have := string(ready.Status) + " " + ready.Reason + " " + status.Phase; have != test.ready {
				t.Errorf("Ready is %q, want %q", have, test.ready)
			}
			if have := holding(t, status); have != test.true {
				t.Errorf("true are %q, want %q: %+v", have, test.true, status.Conditions)
			}
			kstatus(t, status)
		})
	}
}

// TestStalled_WhereAHeadEndsAgainAndAgain: it is failing once its deadline is over, and not where it is just restarted.
func TestStalled_WhereAHeadEndsAgainAndAgain(t *testing.T) {
	unready := func(ago time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			starting(p)
			p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-ago))
		}
	}
	restarted := func(times int32) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = times }
	}
	inVain := func(times int) func(*cluster.Seen) { return func(s *cluster.Seen) { s.Record.Failures = times } }
	for name, test := range map[string]struct {
		seen cluster.Seen
		want bool
	}{
		"a crash loop":            {given(1, pods(0, unready(11*time.Minute)), pods(0, ended(time.Minute)), pods(0, restarted(6))), true},
		"one that has just begun": {given(1, pods(0, unready(5*time.Minute)), pods(0, ended(time.Minute)), pods(0, restarted(6))), false},
		"one restart":             {given(1, pods(0, unready(11*time.Minute)), pods(0, ended(time.Minute)), pods(0, restarted(1))), false},
		"restarts of long ago":    {given(1, pods(0, unready(11*time.Minute)), pods(0, ended(55*time.Minute)), pods(0, restarted(6))), false},
		"six heads in vain":       {given(7, pods(0, starting), inVain(6)), true},
		"a head that got ready":   {given(7, inVain(6)), false},
	} {
		seen := test.seen
		seen.Pods = seen.Pods[:1] // a session whose workers had joined would be over
		of := testkit.Cluster("demo")
		status := told(of, seen, nil)
		stalled := meta.FindStatusCondition(status.Conditions, v1beta1.ConditionStalled)
		have := stalled.Status == metav1.ConditionTrue && stalled.Reason == reason.HeadFailing.Code && status.Phase == v1beta1.PhaseFailed
		if have != test.want {
			t.Errorf("%s: %s, %+v", name, status.Phase, stalled)
		}
	}
}

// TestStalled_NeverSaysThatNothingIsLeft beside something that cannot start.
func TestStalled_NeverSaysThatNothingIsLeft(t *testing.T) {
	for name, seen := range map[string]cluster.Seen{"ready": given(1), "a head that waits": given(1, pods(0, unscheduled))} {
		stalled := meta.FindStatusCondition(told(demo(), seen, nil).Conditions, v1beta1.ConditionStalled)
		if stalled.Status != metav1.ConditionFalse || stalled.Reason != reason.NotStalled.Code {
			t.Errorf("%s: %+v", name, stalled)
		}
	}
}

// TestPhase_RecoversOnlyWhatWasLost: a cluster that is resumed, recreated or scaled has lost nothing.
func TestPhase_RecoversOnlyWhatWasLost(t *testing.T) {
	starts := given(2, pods(0, starting))
	former := func(epoch int64, phase string) *v1beta1.ComputeCluster {
		of := demo()
		of.Status.Epoch, of.Status.Phase = epoch, phase
		return of
	}
	began := func(of *v1beta1.ComputeCluster, event reason.Finding) string {
		plan := decide(of, starts)
		plan.Began = &telemetry.Event{Finding: event}
		return cluster.Status(of, starts, plan, cluster.Outcome{}, now).Phase
	}
	for name, test := range map[string]struct{ have, want string }{
		"a lost head":               {began(former(1, v1beta1.PhaseReady), reason.HeadLost.Of("a", "b")), v1beta1.PhaseRecovering},
		"as it goes on":             {told(former(2, v1beta1.PhaseRecovering), starts, nil).Phase, v1beta1.PhaseRecovering},
		"one that was not told of":  {told(former(1, v1beta1.PhaseReady), starts, nil).Phase, v1beta1.PhaseRecovering},
		"a cluster that is resumed": {began(former(1, v1beta1.PhaseSuspended), reason.Resumed.Of("Spec", 2)), v1beta1.PhaseStarting},
		"one that is recreated":     {began(former(1, v1beta1.PhaseReady), reason.Recreating.Of(2)), v1beta1.PhaseStarting},
		"one that is scaled":        {told(former(2, v1beta1.PhaseReady), given(2, pods(1, starting)), nil).Phase, v1beta1.PhaseStarting},
	} {
		if test.have != test.want {
			t.Errorf("%s is %s, want %s", name, test.have, test.want)
		}
	}
}

// TestCondition_RayUnverified: a Ray that was not verified runs, and the status says what may not hold. One that was says
// nothing.
func TestCondition_RayUnverified(t *testing.T) {
	for version, want := range map[string]bool{"2.60.0": false, "2.52.1": false, "2.61.0rc1": true, "2.60.0+acme": true, "nightly": true} {
		of := demo()
		of.Spec.RayVersion, of.Spec.Image = version, "mine"
		condition := meta.FindStatusCondition(told(of, given(1), nil).Conditions, v1beta1.ConditionRayUnverified)
		switch {
		case want != (condition != nil):
			t.Errorf("%s: condition %+v, want one: %v", version, condition, want)
		case want && (condition.Status != metav1.ConditionTrue || !strings.Contains(condition.Message, version)):
			t.Errorf("%s: condition %+v", version, condition)
		}
	}
}

// TestReady_NamesARayWithoutIPv6: where a pod that is not ready has an address that the cluster's Ray cannot listen at, it is
// said what helps, and who waits for the cluster waits no longer. What is ready needs no word.
func TestReady_NamesARayWithoutIPv6(t *testing.T) {
	for name, c := range map[string]struct {
		version, address string
		change           func(*corev1.Pod)
		want             bool
	}{
		"an old Ray on IPv6":          {"2.52.1", "fd00::7", unreadyPod, true},
		"an old Ray on IPv4":          {"2.52.1", "10.0.0.7", unreadyPod, false},
		"an old Ray that never ended": {"2.52.1", "fd00::7", func(p *corev1.Pod) { unreadyPod(p); p.Status.ContainerStatuses[0].RestartCount = 0 }, false},
		"no address yet":              {"2.52.1", "", unreadyPod, false},
		"a new Ray on IPv6":           {"2.60.0", "fd00::7", unreadyPod, false},
		"a Ray without a number":      {"nightly", "fd00::7", unreadyPod, false},
		"an old Ray that is ready":    {"2.52.1", "fd00::7", func(*corev1.Pod) {}, false},
	} {
		of := demo()
		of.Spec.RayVersion = c.version
		seen := given(1)
		for _, p := range seen.Pods {
			p.Status.PodIP = c.address
			p.Status.ContainerStatuses[0].RestartCount = 1
			c.change(p.Pod)
		}
		conditions := told(of, seen, nil).Conditions
		for kind, status := range map[string]metav1.ConditionStatus{v1beta1.ConditionReady: metav1.ConditionFalse, v1beta1.ConditionStalled: metav1.ConditionTrue} {
			is := meta.FindStatusCondition(conditions, kind)
			have := is != nil && is.Status == status && is.Reason == reason.IPv6Unsupported.Code && strings.Contains(is.Message, c.version)
			if have != c.want {
				t.Errorf("%s: %s is %+v, want it told: %v", name, kind, is, c.want)
			}
		}
	}
}

// TestUpToDate_NamesTheGroupThatARollWaitsFor: a group that cannot be complete keeps the next ones from being replaced.
func TestUpToDate_NamesTheGroupThatARollWaitsFor(t *testing.T) {
	of := testkit.Cluster("demo", testkit.Group("cpu", 2), testkit.Group("gpu", 1))
	of.Spec.UpgradeStrategy = &v1beta1.ClusterUpgradeStrategy{Type: v1beta1.ClusterUpgradeRollingWorkers}
	gpu := running(pod.Worker(of, &of.Spec.WorkerGroups[1], 0, 1), naming.Place{Group: "gpu", Epoch: 1})
	outdated(gpu.Pod)
	gpu.Annotations[v1beta1.AnnotationShape] = "other" // so that it cannot become what is wanted
	seen := given(1, pods(2, unscheduled))
	for i := range seen.Pods {
		seen.Pods[i].Annotations[v1beta1.AnnotationIntent] = pod.Intent(of, seen.Pods[i].At.Group)
	}
	seen.Pods = append(seen.Pods, gpu)
	told := meta.FindStatusCondition(told(of, seen, nil).Conditions, v1beta1.ConditionUpToDate)
	if told.Status != metav1.ConditionFalse || told.Reason != reason.RollWaiting.Code || !strings.Contains(told.Message, "group cpu with 1 of 2") {
		t.Errorf("%+v", told)
	}
}

// holding returns the names of the conditions but Ready that are true, in the order of a status.
func holding(t *testing.T, status v1beta1.ComputeClusterStatus) string {
	t.Helper()
	var names []string
	for _, kind := range []string{"HeadReady", "WorkersReady", "UpToDate", "Reconciling", "Stalled", "NameConflict"} {
		condition := meta.FindStatusCondition(status.Conditions, kind)
		switch {
		case condition == nil && kind == "NameConflict":
		case condition == nil || condition.Status == metav1.ConditionUnknown:
			t.Errorf("%s is neither true nor false", kind)
		case condition.Status == metav1.ConditionTrue:
			names = append(names, kind)
		case kind == "NameConflict":
			t.Errorf("NameConflict is there and %s", condition.Status)
		}
	}
	return strings.Join(names, " ")
}

// kstatus holds what tools rely on: exactly one of Ready, Reconciling and Stalled is
// true, or both of the first two while workers are replaced, and every condition is about this generation and says something.
func kstatus(t *testing.T, status v1beta1.ComputeClusterStatus) {
	t.Helper()
	count := 0
	for _, condition := range status.Conditions {
		if condition.ObservedGeneration != status.ObservedGeneration || condition.Reason == "" || condition.Message == "" {
			t.Errorf("condition %+v", condition)
		}
		if slices.Contains([]string{"Ready", "Reconciling", "Stalled"}, condition.Type) && condition.Status == metav1.ConditionTrue {
			count++
		}
	}
	rolls := status.Phase == v1beta1.PhaseUpdating && meta.IsStatusConditionTrue(status.Conditions, v1beta1.ConditionReconciling)
	if count != 1 && (count != 2 || !rolls) {
		t.Errorf("%d of Ready, Reconciling and Stalled are true: %+v", count, status.Conditions)
	}
}

// TestStatus_TellsNoSessionThatNobodyKnows: the schema asks for a session of a control store. A status without one would
// be refused, with all that it says of the damaged record.
func TestStatus_TellsNoSessionThatNobodyKnows(t *testing.T) {
	of := demo()
	of.Spec.ControlStore = managedRedis()
	status := told(of, cluster.Seen{RecordError: errors.New("half")}, nil)
	if status.ControlStore != nil {
		t.Errorf("the status tells of the control store %+v, want nothing", status.ControlStore)
	}
	if status := told(of, cluster.Seen{Record: cluster.Record{Version: 1, Epoch: 1}}, nil); status.ControlStore == nil || status.ControlStore.Session != 1 {
		t.Errorf("the status tells of the control store %+v, want session 1", status.ControlStore)
	}
}

func TestStatusNumbers(t *testing.T) {
	of := testkit.Cluster("demo", testkit.Sized(testkit.Group("cpu", 2), "cpu", "500m", "memory", "1Gi", "nvidia.com/gpu", "1"))
	of.Spec.Head.Size = testkit.Resources("cpu", "2", "memory", "3Gi")
	of.Generation = 7
	seen := given(1, pods(2, starting))
	seen.Pods[2].Annotations[v1beta1.AnnotationIntent] = pod.Intent(of, "cpu")
	have := told(of, seen, nil)
	have.Conditions = nil
	counts, since := v1beta1.WorkerCounts{Desired: 2, Created: 2, Ready: 1}, metav1.NewTime(now.Add(-time.Hour))
	want := v1beta1.ComputeClusterStatus{
		ObservedGeneration: 7, Phase: v1beta1.PhaseStarting, Epoch: 1,
		Summary:     v1beta1.ClusterSummary{Ready: "1/2", CPUs: "3", Memory: "5Gi", GPUs: "2", Connect: pod.Connect(of)},
		ServiceName: "demo-head", TokenSecretName: "demo-token", DashboardURL: "http://demo-head.default.svc:8265",
		Head: &v1beta1.HeadStatus{
			PodName: seen.Pods[0].Name, UID: seen.Pods[0].UID, NodeName: "node-1", IP: "10.0.0.1", CreationTime: &since,
		},
		Workers: counts,
		Groups: []v1beta1.GroupStatus{{ // the other one was built without a size
			Name: "cpu", WorkerCounts: counts, Outdated: 1, Reason: "Starting", Message: "1 of 2 workers of cpu: container ray is starting",
		}},
		Resources: testkit.Resources("cpu", "3", "memory", "5Gi", "nvidia.com/gpu", "2"),
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("(- wanted, + is):\n%s", diff)
	}
}

// TestStatusOfWhatWasMade counts pods that the pass has just made, before any cache
// tells of them.
func TestStatusOfWhatWasMade(t *testing.T) {
	of, seen := demo(), given(1, without(1))
	plan := decide(of, seen)
	status := cluster.Status(of, seen, plan, cluster.Outcome{Created: plan.Create[0].Pods}, now)
	if status.Workers != (v1beta1.WorkerCounts{Desired: 2, Created: 2, Ready: 1}) {
		t.Errorf("workers %+v", status.Workers)
	}
}

// TestStatusIsStable: the same world gives the same status at any later time.
func TestStatusIsStable(t *testing.T) {
	of, seen := demo(), given(1)
	of.Status = told(of, seen, nil)
	plan := decide(of, seen)
	later := cluster.Status(of, seen, plan, cluster.Outcome{}, now.Add(time.Hour))
	if !slices.Equal(of.Status.Conditions, later.Conditions) {
		t.Errorf("conditions changed by time alone: %+v, then %+v", of.Status.Conditions, later.Conditions)
	}
	seen = given(1, pods(1, starting))
	changed := cluster.Status(of, seen, plan, cluster.Outcome{}, now.Add(time.Hour))
	ready := meta.FindStatusCondition(changed.Conditions, v1beta1.ConditionReady)
	if !ready.LastTransitionTime.Time.Equal(now.Add(time.Hour)) {
		t.Errorf("Ready changed and says that it did at %s", ready.LastTransitionTime)
	}
}

// TestHeadStatusOutlivesNothing: with the head gone and none made, nothing is named.
func TestHeadStatusOutlivesNothing(t *testing.T) {
	of, seen := demo(), given(1, without(0))
	plan := decide(of, seen)
	for recorded, epoch := range map[bool]int64{true: 2, false: 1} { // an epoch begins with its record
		outcome := cluster.Outcome{Outcome: reconcile.Outcome{Err: errors.New("no")}, Recorded: recorded}
		if status := cluster.Status(of, seen, plan, outcome, now); status.Head != nil || status.Epoch != epoch {
			t.Errorf("recorded %v: head %+v, epoch %d", recorded, status.Head, status.Epoch)
		}
	}
}
