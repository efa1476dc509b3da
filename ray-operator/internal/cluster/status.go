package cluster

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Status computes the status from what was seen, planned and done. It is pure. Of the
// former status only the times of conditions that did not change are kept.
func Status(cluster *v1beta1.ComputeCluster, seen Seen, plan Plan, outcome Outcome, now time.Time) v1beta1.ComputeClusterStatus {
	if plan.Record != nil && !outcome.Recorded { // what it was to begin has not begun
		plan.Incarnation, plan.Failures = seen.Record.recordedIncarnation(), seen.Record.Failures
	}
	t := statusDraft{
		cluster: cluster, seen: seen, plan: plan, outcome: outcome, now: now, pods: currentPods(seen.Pods, plan, outcome),
		findings: map[string][]reason.Finding{}, intents: intentsOf(cluster),
	}
	t.status = v1beta1.ComputeClusterStatus{
		ObservedGeneration: cluster.Generation,
		Epoch:              statusEpoch(&t),
		ServiceName:        naming.HeadService(cluster.Name),
		TokenSecretName:    pod.TokenSecret(cluster),
		DashboardURL:       pod.DashboardURL(cluster),
		Conditions:         slices.Clone(cluster.Status.Conditions),
	}
	if of := t.statusIncarnation(); cluster.Spec.ControlStore == nil && of.Session < of.Epoch {
		t.status.Session = of.Session
	}
	t.say = reconcile.Conditions{All: &t.status.Conditions, Generation: cluster.Generation, Now: now}
	if t.head = headOf(t.pods, t.status.Epoch); t.head != nil {
		made := t.head.CreationTimestamp
		t.status.Head = &v1beta1.HeadStatus{
			PodName: t.head.Name, UID: t.head.UID, Restarts: restarts(*t.head), NodeName: t.head.Spec.NodeName,
			IP: t.head.Status.PodIP, CreationTime: &made, Failures: t.statusFailures(),
		}
	}
	examinePods(&t)
	countGroups(&t)
	sumResources(&t)
	reportSizes(&t)
	setConditions(&t)
	return t.status
}

// statusDraft is a status in the making, with what it is made from.
type statusDraft struct {
	status  v1beta1.ComputeClusterStatus
	cluster *v1beta1.ComputeCluster
	seen    Seen
	plan    Plan
	outcome Outcome
	now     time.Time
	intents intents
	// say sets the status's conditions.
	say reconcile.Conditions
	// pods are those after the plan: with those made, without those that are gone or going.
	pods []Pod
	head *Pod
	// findings say what pods of a group wait for, of the head under "".
	findings map[string][]reason.Finding
}

// statusEpoch returns the one that the status speaks of: the plan's, or where there is none the
// recorded one, or where that is damaged the one last told.
func statusEpoch(t *statusDraft) int64 {
	switch {
	case t.plan.Epoch > 0:
		return t.plan.Epoch
	case t.seen.RecordError == nil:
		return t.seen.Record.Epoch
	default:
		return t.cluster.Status.Epoch
	}
}

// statusIncarnation returns the one that the status speaks of.
func (t *statusDraft) statusIncarnation() Incarnation {
	if t.plan.Session > 0 {
		return t.plan.Incarnation
	}
	of := Incarnation{Epoch: t.status.Epoch, Session: t.status.Epoch}
	if t.seen.RecordError == nil {
		of.Session = t.seen.Record.recordedIncarnation().Session
	}
	return of
}

// statusFailures counts the heads before the one that the status speaks of that ended soon.
func (t *statusDraft) statusFailures() int32 {
	if t.plan.Session > 0 {
		return int32(t.plan.Failures)
	}
	return int32(t.seen.Record.Failures)
}

// currentPods returns the pods as they are after the plan: with those made, without those that
// are gone or going.
func currentPods(pods []Pod, plan Plan, outcome Outcome) []Pod {
	removed := map[string]bool{}
	for _, removal := range plan.Delete {
		removed[removal.Pod.Name] = true
	}
	var all []Pod
	for _, p := range pods {
		if !removed[p.Name] && !p.isTerminating() {
			all = append(all, p)
		}
	}
	for _, made := range outcome.Created {
		all = append(all, Pod{Pod: made, At: placeOf(made)})
	}
	return all
}

// examinePods finds out what each pod of the epoch waits for.
func examinePods(t *statusDraft) {
	look := func(p Pod) {
		if finding, found := t.seen.diagnose(p, t.now); found && t.statusIncarnation().hasPod(p) {
			if isTokenGone(t.plan.Held) && lacksToken(t.cluster, finding) { // no template has that volume
				finding = *t.plan.Held
			}
			if lacks := findMissingIPv6(t.cluster, p); lacks != nil {
				finding = *lacks
			}
			t.findings[p.At.Group] = append(t.findings[p.At.Group], finding)
		}
	}
	for _, p := range t.pods {
		if !p.isDraining() {
			look(p)
		}
	}
	for _, p := range t.seen.Pods {
		if p.isTerminating() {
			look(p)
		}
	}
}

// countGroups fills the workers' numbers.
func countGroups(t *statusDraft) {
	of := t.statusIncarnation()
	for i := range t.cluster.Spec.WorkerGroups {
		group := &t.cluster.Spec.WorkerGroups[i]
		counts := v1beta1.GroupStatus{Name: group.Name}
		if !t.plan.Suspended {
			counts.Desired = int32(desiredReplicas(t.cluster, t.plan.Sizes, group) * pod.Hosts(group))
		}
		for _, p := range t.pods {
			switch {
			case p.At.Group != group.Name || !of.hasPod(p) || p.hasFinished():
				continue
			case p.isDraining() || isExiting(t.plan.Exits, p):
				counts.Draining++
				continue
			}
			counts.Created++
			if p.isReady() {
				counts.Ready++
			}
			if t.intents.isOld(p) {
				counts.Outdated++
			}
		}
		if finding, found := explainGroup(t, group, counts); found {
			counts.Reason, counts.Message = finding.Code, finding.Text
		}
		t.status.Workers.Desired += counts.Desired
		t.status.Workers.Created += counts.Created
		t.status.Workers.Ready += counts.Ready
		t.status.Groups = append(t.status.Groups, counts)
	}
}

// isExiting reports whether the plan began a pod's planned exit.
func isExiting(exits []Leave, p Pod) bool {
	for i := range exits {
		if exits[i].Pod.UID == p.UID {
			return true
		}
	}
	return false
}

// explainGroup returns what a group waits for, or why it is as it is.
func explainGroup(t *statusDraft, group *v1beta1.WorkerGroup, counts v1beta1.GroupStatus) (reason.Finding, bool) {
	complete := counts.Ready >= counts.Desired
	switch refused := t.outcome.Refused[group.Name]; {
	case refused != nil:
		return diagnose.Refusal("workers of "+group.Name, refused), true
	case t.plan.Held != nil && counts.Created < counts.Desired:
		return *t.plan.Held, true
	case counts.Draining > 0 && complete:
		return reason.Draining.Of(counts.Draining, group.Name), true
	case ptr.Deref(group.Suspend, false) && !t.plan.Suspended:
		return reason.GroupSuspended.Of(), true
	}
	findings := t.findings[group.Name]
	if complete { // what goes, or went, is told of only where it hangs
		findings = slices.DeleteFunc(slices.Clone(findings), func(f reason.Finding) bool { return f.Code != reason.Terminating.Code })
	}
	return diagnose.Group(group.Name, int(counts.Desired), findings)
}

// sumResources sums what the wanted pods ask for.
func sumResources(t *statusDraft) {
	sum, laid := corev1.ResourceList{}, t.plan.Given.Sized(t.cluster)
	add := func(group string, times int64) {
		for name, quantity := range pod.Requests(laid, group) {
			have := sum[name]
			quantity.Mul(times)
			have.Add(quantity)
			sum[name] = have
		}
	}
	if !t.plan.Suspended {
		add("", 1)
		for i := range t.cluster.Spec.WorkerGroups {
			group := &t.cluster.Spec.WorkerGroups[i]
			if times := int64(t.status.Groups[i].Desired); times > 0 {
				add(group.Name, times)
			}
		}
	}
	var gpus resource.Quantity
	for name, quantity := range sum {
		if v1beta1.IsGPU(name) {
			gpus.Add(quantity)
		}
	}
	workers := t.status.Workers
	t.status.Resources = sum
	t.status.Summary = v1beta1.ClusterSummary{
		Ready: fmt.Sprintf("%d/%d", workers.Ready, workers.Desired),
		CPUs:  sum.Cpu().String(), Memory: sum.Memory().String(), GPUs: gpus.String(), Connect: pod.Connect(t.cluster),
	}
}
