package cluster_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// demo is a cluster with two workers.
func demo() *v1beta1.ComputeCluster { return testkit.Cluster("demo", testkit.Group("cpu", 2)) }

// given is what a pass sees of demo: settled in an epoch, made an hour ago, but for edits.
func given(epoch int64, edits ...func(*cluster.Seen)) cluster.Seen {
	of := demo()
	head := pod.Head(of, epoch)
	seen := cluster.Seen{
		Record:   cluster.Record{Version: 1, Epoch: epoch, HeadUID: types.UID(head.Name)},
		Fixtures: fixtures(of, epoch), Token: cluster.Token{Presence: reconcile.Ours}, Authority: reconcile.Ours,
		Pods: []cluster.Pod{running(head, naming.Place{Epoch: epoch})},
	}
	for slot := range 2 {
		at := naming.Place{Group: "cpu", Slot: slot, Epoch: epoch}
		seen.Pods = append(seen.Pods, running(pod.Worker(of, &of.Spec.WorkerGroups[0], slot, epoch), at))
	}
	for _, edit := range edits {
		edit(&seen)
	}
	return seen
}

// decide is a pass over a cluster.
func decide(of *v1beta1.ComputeCluster, seen cluster.Seen) cluster.Plan {
	return cluster.Decide(of, seen, desired.Site{Image: pod.OperatorImage{Image: "heliostat"}}, now)
}

// fixtures are the objects of fixed names as the operator makes them.
func fixtures(of *v1beta1.ComputeCluster, epoch int64) map[string]reconcile.Fixture {
	standing := map[string]reconcile.Fixture{}
	for _, fixing := range decide(of, cluster.Seen{Record: cluster.Record{Version: 1, Epoch: epoch}}).Fixtures {
		standing[fixing.Kind] = reconcile.Fixture{Presence: reconcile.Ours, Object: fixing.Wanted}
	}
	// By now the head has been ready for long enough to have its budget.
	standing["PodDisruptionBudget"] = budget(of)
	return standing
}

func budget(of *v1beta1.ComputeCluster) reconcile.Fixture {
	head := running(pod.Head(of, 1), naming.Place{Epoch: 1})
	seen := cluster.Seen{Record: cluster.Record{Version: 1, Epoch: 1, HeadUID: head.UID}, Pods: []cluster.Pod{head}, Token: cluster.Token{Presence: reconcile.Ours}}
	for _, fixing := range decide(of, seen).Fixtures {
		if fixing.Kind == "PodDisruptionBudget" {
			return reconcile.Fixture{Presence: reconcile.Ours, Object: fixing.Wanted}
		}
	}
	panic("a head that has been ready for an hour has no budget")
}

// standing edits what is seen of a fixture.
func standing(kind string, presence reconcile.Presence) func(*cluster.Seen) {
	return func(s *cluster.Seen) {
		s.Fixtures[kind] = reconcile.Fixture{Presence: presence, Object: s.Fixtures[kind].Object}
	}
}

func service(edit func(*corev1.Service)) func(*cluster.Seen) {
	return func(s *cluster.Seen) { edit(s.Fixtures["Service"].Object.(*corev1.Service)) }
}

// running is a built pod as it is an hour later; its UID is its name.
func running(built *corev1.Pod, at naming.Place) cluster.Pod {
	built.UID, built.CreationTimestamp = types.UID(built.Name), metav1.NewTime(now.Add(-time.Hour))
	built.Spec.NodeName = "node-1"
	built.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: "10.0.0.1",
		Conditions: []corev1.PodCondition{{
			Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-50 * time.Minute)),
		}},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "ray", Started: new(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}},
	}
	return cluster.Pod{Pod: built, At: at}
}

func pods(i int, edit func(*corev1.Pod)) func(*cluster.Seen) {
	return func(s *cluster.Seen) { edit(s.Pods[i].Pod) }
}

func failed(p *corev1.Pod)  { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted" }
func leaving(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now} }
func noTime(p *corev1.Pod)  { p.Status.Conditions[0].LastTransitionTime = metav1.Time{} }
func fresh(p *corev1.Pod)   { p.CreationTimestamp = metav1.NewTime(now.Add(-4 * time.Second)) }

// placed gives a pod that had to wait for an hour its node just now.
func placed(p *corev1.Pod) {
	p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-2 * time.Second)),
	}}}
}

// ended has the Ray container of a pod end some time ago and start again.
func ended(ago time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(now.Add(-ago))}
	}
}

func without(i int) func(*cluster.Seen) {
	return func(s *cluster.Seen) { s.Pods = slices.Delete(s.Pods, i, i+1) }
}

func placeOf(p *corev1.Pod) naming.Place {
	at, _ := naming.ParsePlace(p.Labels)
	return at
}

// gist is a plan in short, with places for names.
func gist(plan cluster.Plan) string {
	parts := slices.Concat(gistOfCluster(plan), gistOfWorkers(plan), gistOfRest(plan))
	return strings.Join(parts, " ")
}

func where(p *corev1.Pod) string {
	at, _ := naming.ParsePlace(p.Labels)
	if at.Group == "" {
		return fmt.Sprintf("head@%d", at.Epoch)
	}
	return fmt.Sprintf("%s%d@%d", at.Group, at.Slot, at.Epoch)
}

func gistOfCluster(plan cluster.Plan) []string {
	var parts []string
	if plan.Stalled != nil {
		parts = append(parts, "stalled", plan.Stalled.Code)
	}
	if plan.Record != nil {
		parts = append(parts, fmt.Sprintf("record@%d%s", plan.Record.Epoch, plan.Record.HeadUID))
	}
	if plan.Token {
		parts = append(parts, "token")
	}
	for _, fixing := range plan.Fixtures {
		act := map[reconcile.Act]string{reconcile.Make: "make", reconcile.Mend: "mend", reconcile.Remove: "unmake"}[fixing.Act]
		parts = append(parts, act+":"+fixing.Kind)
	}
	if plan.Head != nil {
		parts = append(parts, "+"+where(plan.Head))
	}
	return parts
}

func gistOfWorkers(plan cluster.Plan) []string {
	var parts []string
	for _, filling := range plan.Create {
		for _, created := range filling.Pods {
			parts = append(parts, "+"+where(created))
		}
	}
	if plan.NoteHead {
		parts = append(parts, "note")
	}
	for _, leave := range plan.Exits {
		parts = append(parts, fmt.Sprintf("~%s/%s/%s", where(leave.Pod.Pod), leave.Exit.Why, leave.Exit.Until.Sub(leave.Exit.Since)))
	}
	for _, removal := range plan.Delete {
		text := "-" + where(removal.Pod.Pod)
		if removal.GraceSeconds != nil {
			text += fmt.Sprintf("/%ds", *removal.GraceSeconds)
		}
		parts = append(parts, text)
		if removal.Event != nil {
			parts = append(parts, "!"+removal.Event.Finding.Code)
		}
	}
	for _, resizing := range plan.Resize {
		parts = append(parts, "^"+where(resizing.Pod.Pod))
	}
	for _, adopting := range plan.Adopt {
		parts = append(parts, "="+where(adopting.Pod.Pod))
	}
	return parts
}

func gistOfRest(plan cluster.Plan) []string {
	var parts []string
	for _, part := range []struct {
		holds bool
		text  string
	}{{plan.End != nil, "end"}, {plan.Held != nil, "held"}, {plan.Suspended, "suspended"}} {
		if part.holds {
			parts = append(parts, part.text)
		}
	}
	if plan.Began != nil {
		parts = append(parts, "!"+plan.Began.Finding.Code)
	}
	if plan.Ask.Every > 0 {
		text := fmt.Sprintf("ask/%s/%d", plan.Ask.Every, len(plan.Ask.Drains))
		if count := len(plan.Ask.Resizes); count > 0 {
			text += fmt.Sprintf("+%d", count)
		}
		parts = append(parts, text)
	}
	if plan.Wake > 0 {
		parts = append(parts, plan.Wake.String())
	}
	return parts
}

// decision is what a pass sees of demo, and the gist of the plan that follows.
type decision struct {
	seen cluster.Seen
	want string
}

const (
	newEpoch = "record@2 mend:Service +head@2 +cpu0@2 +cpu1@2 note "
	lost     = " -cpu0@1/5s -cpu1@1/5s !HeadLost"
)

func decisionsOnHeads() map[string]decision {
	return map[string]decision{
		"settled":        {given(1), ""},
		"record missing": {given(2, func(s *cluster.Seen) { s.RecordMissing = true }), "note"},
		"record not needed yet": {
			given(1, func(s *cluster.Seen) { s.RecordMissing, s.Record.HeadUID = true, "" }), "",
		},
		"head not noted": {given(1, func(s *cluster.Seen) { s.Record.HeadUID = "" }), "note"},
		"stopped before the head was made": {
			given(2, func(s *cluster.Seen) { s.Pods, s.Record.HeadUID = nil, "" }), "+head@2 +cpu0@2 +cpu1@2 note",
		},
		"head gone before it was noted": {
			given(1, without(0), func(s *cluster.Seen) { s.Record.HeadUID = "" }), newEpoch + "-cpu0@1/5s -cpu1@1/5s !HeadLost",
		},
		"head gone":    {given(1, without(0)), newEpoch + "-cpu0@1/5s -cpu1@1/5s !HeadLost"},
		"head leaving": {given(1, pods(0, leaving)), newEpoch[:len(newEpoch)-1] + lost + " 30s"},
		"head failed":  {given(1, pods(0, failed)), newEpoch + "-head@1/5s" + lost},
		"head failed at once": {
			given(1, pods(0, failed), pods(0, fresh)), "6s",
		},
		"another head under the name": {
			given(1, pods(0, func(p *corev1.Pod) { p.UID = "other" })), newEpoch + "-head@1/5s" + lost,
		},
		"head's container ended":                {given(1, pods(0, ended(time.Minute))), newEpoch + "-head@1/5s" + lost},
		"head's container ended before joining": {given(1, pods(0, ended(55*time.Minute))), ""},
		"head's container ended, time unknown": {
			given(1, pods(0, ended(time.Minute)), pods(1, noTime), pods(2, noTime)), "",
		},
		"worker's container ended": {given(1, pods(1, ended(time.Minute))), ""},
	}
}

func decisionsOnWorkers() map[string]decision {
	return map[string]decision{
		"worker gone":    {given(1, without(1)), "+cpu0@1"},
		"worker leaving": {given(1, pods(1, leaving)), "+cpu2@1 30s"},
		"worker failed":  {given(1, pods(1, failed)), "+cpu2@1 -cpu0@1 !WorkerFailed"},
		"worker failed at once": {
			given(1, pods(1, failed), pods(1, fresh)), "6s",
		},
		"worker unready": {given(1, pods(1, func(p *corev1.Pod) { p.Status.Conditions = nil })), "30s"},
		"worker that has a node at last, whose events tell more in a moment": {given(1, pods(1, placed)), "3s"},
		"worker of a former epoch": {
			given(2, func(s *cluster.Seen) {
				former := given(1)
				s.Pods = append(s.Pods, former.Pods[1])
			}), "-cpu0@1/5s",
		},
		"place unknown": {given(1, func(s *cluster.Seen) { s.Pods[1].At = naming.Place{} }), "+cpu0@1 -cpu0@1/5s"},
	}
}

func decisionsOnTheRest() map[string]decision {
	nothing := func(s *cluster.Seen) { *s = cluster.Seen{Record: cluster.Record{Version: 1, Epoch: 1}} }
	return map[string]decision{
		"from nothing":  {given(1, nothing), "token make:NetworkPolicy make:Service +head@1 +cpu0@1 +cpu1@1 note"},
		"service gone":  {given(1, standing("Service", reconcile.Absent)), "make:Service"},
		"service going": {given(1, standing("Service", reconcile.Terminating)), "1s"},
		"token going":   {given(1, func(s *cluster.Seen) { s.Token.Presence = reconcile.Terminating }), "1s"},
		"service edited": {
			given(1, service(func(s *corev1.Service) { s.Spec.Selector[v1beta1.LabelEpoch] = "7" })), "mend:Service",
		},
		"service with more than ours": {
			given(1, service(func(s *corev1.Service) {
				s.Labels["a"], s.Spec.Ports[0].NodePort, s.Generation = "b", 30000, 3
				s.CreationTimestamp, s.Spec.ClusterIP = metav1.NewTime(now), "10.0.0.9"
			})), "",
		},
		"service's label gone": {given(1, service(func(s *corev1.Service) { delete(s.Labels, v1beta1.LabelCluster) })), "mend:Service"},
		"token gone, head lives": {
			given(1, without(1), func(s *cluster.Seen) { s.Token.Presence = reconcile.Absent }), "held 15s",
		},
		"token and head gone": {
			given(1, without(0), func(s *cluster.Seen) { s.Token.Presence = reconcile.Absent }),
			"record@2 token mend:Service +head@2 +cpu0@2 +cpu1@2 note -cpu0@1/5s -cpu1@1/5s !HeadLost",
		},
		"foreign service": {given(1, standing("Service", reconcile.Foreign)), "stalled NameConflict 15s"},
		"foreign token":   {given(1, func(s *cluster.Seen) { s.Token.Presence = reconcile.Foreign }), "stalled NameConflict 15s"},
		"damaged record": {
			given(1, func(s *cluster.Seen) { s.RecordError = fmt.Errorf("half") }), "stalled RecordDamaged 15s",
		},
	}
}

func TestDecide(t *testing.T) {
	for _, rows := range []map[string]decision{decisionsOnHeads(), decisionsOnWorkers(), decisionsOnTheRest()} {
		for name, row := range rows {
			t.Run(name, func(t *testing.T) { row.check(t) })
		}
	}
}

func (d decision) check(t *testing.T) {
	plan := decide(demo(), d.seen)
	if have := gist(plan); have != d.want {
		t.Errorf("%q, want %q", have, d.want)
	}
	_, err := time.ParseDuration(d.want)
	if idle := d.want == "" || err == nil || plan.Stalled != nil || plan.Held != nil; plan.Empty() != idle {
		t.Errorf("Empty says %v of %q", plan.Empty(), plan)
	}
	if plan.Empty() == (plan.String() != "") && plan.Stalled == nil {
		t.Errorf("the log would say %q", plan)
	}
}

// TestDecide_BuildsSomeWorkersAPass: whatever a cluster asks for, a plan stays small, and passes follow until all are made.
func TestDecide_BuildsSomeWorkersAPass(t *testing.T) {
	const asked, most = 1000, 256
	of := demo()
	*of.Spec.WorkerGroups[0].Replicas = asked - 3
	of.Spec.WorkerGroups = append(of.Spec.WorkerGroups, v1beta1.WorkerGroup{Name: "gpu", Replicas: new(int32(3))})
	seen := given(1)
	for passes := 0; len(seen.Pods) < 1+asked; passes++ {
		plan := decide(of, seen)
		made := 0
		for _, filling := range plan.Create {
			made += len(filling.Pods)
			for _, created := range filling.Pods {
				at, _ := naming.ParsePlace(created.Labels)
				seen.Pods = append(seen.Pods, running(created, at))
			}
		}
		if left := 1 + asked - len(seen.Pods); made == 0 || made > most || passes > asked/most+1 || left > 0 && (plan.Wake == 0 || plan.Wake > time.Second) {
			t.Fatalf("pass %d makes %d workers, leaves %d, and wakes after %s", passes, made, left, plan.Wake)
		}
	}
}

func TestDecideOnSpecs(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(*v1beta1.ComputeCluster)
		want string
	}{
		"larger":        {func(c *v1beta1.ComputeCluster) { *c.Spec.WorkerGroups[0].Replicas = 4 }, "+cpu2@1 +cpu3@1"},
		"smaller":       {func(c *v1beta1.ComputeCluster) { *c.Spec.WorkerGroups[0].Replicas = 0 }, "~cpu1@1/Surplus/5m0s ~cpu0@1/Surplus/5m0s ask/1s/2 5m0s"},
		"not said":      {func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups[0].Replicas = nil }, "ask/1s/0"},
		"no groups":     {func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups = nil }, "~cpu0@1/GroupRemoved/5m0s ~cpu1@1/GroupRemoved/5m0s ask/1s/2 5m0s"},
		"renamed group": {func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups[0].Name = "x" }, "+x0@1 +x1@1 ~cpu0@1/GroupRemoved/5m0s ~cpu1@1/GroupRemoved/5m0s ask/1s/2 5m0s"},
		"another image": {func(c *v1beta1.ComputeCluster) { c.Spec.Image = "mine" }, ""},
		"invalid":       {func(c *v1beta1.ComputeCluster) { c.Spec.Head.RayStartParams = map[string]string{"UPPER": ""} }, "stalled InvalidSpec 15s"},
	} {
		t.Run(name, func(t *testing.T) {
			of := demo()
			test.edit(of)
			if have := gist(decide(of, given(1))); have != test.want {
				t.Errorf("%q, want %q", have, test.want)
			}
		})
	}
}

// TestDecideKeepsItsHandsOff: a plan changes nothing of what it was made from.
func TestDecideKeepsItsHandsOff(t *testing.T) {
	of, seen := demo(), given(1, pods(0, failed))
	first := gist(decide(of, seen))
	if second := gist(decide(of, seen)); first != second {
		t.Errorf("%q, then %q", first, second)
	}
}

// TestDecide_KeepsSizesForANewHead: groups that were scaled do not fall back when the head is lost.
func TestDecide_KeepsSizesForANewHead(t *testing.T) {
	of := demo()
	held := map[string]cluster.RecordedSize{"cpu": {*of.Spec.WorkerGroups[0].Replicas, 3}}
	plan := decide(of, given(1, without(0), func(s *cluster.Seen) { s.Record.Scaled = held }))
	if plan.Record == nil || plan.Record.Epoch != 2 || !maps.EqualFunc(plan.Record.Scaled, held, slices.Equal[cluster.RecordedSize]) {
		t.Errorf("the new epoch's record is %+v, want the sizes %v", plan.Record, held)
	}
	if have := gist(plan); !strings.Contains(have, "+cpu2@2") {
		t.Errorf("%s, want three workers", have)
	}
}
