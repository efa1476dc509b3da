package cluster

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Status computes the status from what was seen, planned and done. It is pure. Of the
// former status only the times of conditions that did not change are kept.
func Status(cluster *v1alpha1.ComputeCluster, seen Seen, plan Plan, outcome Outcome, now time.Time) v1alpha1.ComputeClusterStatus {
	pods := current(seen.Pods, plan, outcome)
	status := v1alpha1.ComputeClusterStatus{
		ObservedGeneration: cluster.Generation,
		Epoch:              epochOf(cluster, seen, plan),
		ServiceName:        naming.HeadService(cluster.Name),
		TokenSecretName:    naming.TokenSecret(cluster.Name),
		DashboardURL:       fmt.Sprintf("http://%s.%s.svc:%d", naming.HeadService(cluster.Name), cluster.Namespace, pod.PortDashboard),
		Conditions:         cluster.DeepCopy().Status.Conditions,
	}
	head := headOf(pods, status.Epoch)
	if head != nil {
		made := head.CreationTimestamp
		status.Head = &v1alpha1.HeadStatus{
			PodName: head.Name, UID: string(head.UID), NodeName: head.Spec.NodeName, IP: head.Status.PodIP, Since: &made,
		}
	}
	outdated := count(&status, cluster, pods)
	if head != nil && isOutdated(cluster, *head) {
		outdated++
	}
	total(&status, cluster)
	s := summary{status: &status, head: head, outdated: outdated, pods: alive(pods), now: now}
	s.conditions(plan, outcome)
	return status
}

// epochOf is the epoch that the status speaks of: the plan's, or where there is none
// the recorded one, or where that is damaged the one last told.
func epochOf(cluster *v1alpha1.ComputeCluster, seen Seen, plan Plan) int64 {
	switch {
	case plan.Epoch > 0:
		return plan.Epoch
	case seen.RecordError == nil:
		return seen.Record.Epoch
	default:
		return cluster.Status.Epoch
	}
}

// current is the pods as they are after the plan: with those made, without those that
// are gone or going.
func current(pods []Pod, plan Plan, outcome Outcome) []Pod {
	removed := map[string]bool{}
	for _, removal := range plan.Delete {
		removed[removal.Pod.Name] = true
	}
	var all []Pod
	for _, p := range pods {
		if !removed[p.Name] && !p.leaving() {
			all = append(all, p)
		}
	}
	for _, made := range outcome.Created {
		all = append(all, Pod{Pod: made, At: place(made)})
	}
	return all
}

// count fills the workers' numbers and gives how many are outdated.
func count(status *v1alpha1.ComputeClusterStatus, cluster *v1alpha1.ComputeCluster, pods []Pod) int {
	outdated := 0
	for i := range cluster.Spec.WorkerGroups {
		group := &cluster.Spec.WorkerGroups[i]
		counts := v1alpha1.GroupStatus{Name: group.Name}
		counts.Desired = replicas(group)
		for _, p := range pods {
			if p.At.Group != group.Name || p.At.Epoch != status.Epoch || p.finished() {
				continue
			}
			counts.Created++
			if p.ready() {
				counts.Ready++
			}
			if isOutdated(cluster, p) {
				counts.Outdated++
			}
		}
		outdated += int(counts.Outdated)
		status.Workers.Desired += counts.Desired
		status.Workers.Created += counts.Created
		status.Workers.Ready += counts.Ready
		status.Groups = append(status.Groups, counts)
	}
	return outdated
}

func isOutdated(cluster *v1alpha1.ComputeCluster, p Pod) bool {
	return p.Annotations[v1alpha1.AnnotationIntent] != pod.Intent(cluster, p.At.Group)
}

// total sums what the wanted pods ask for.
func total(status *v1alpha1.ComputeClusterStatus, cluster *v1alpha1.ComputeCluster) {
	sum := corev1.ResourceList{}
	add := func(of *corev1.Pod, times int64) {
		for name, quantity := range resourcehelper.PodRequests(of, resourcehelper.PodResourcesOptions{}) {
			have := sum[name]
			quantity.Mul(times)
			have.Add(quantity)
			sum[name] = have
		}
	}
	add(pod.Head(cluster, 1), 1)
	for i := range cluster.Spec.WorkerGroups {
		group := &cluster.Spec.WorkerGroups[i]
		add(pod.Worker(cluster, group, 0, 1), int64(replicas(group)))
	}
	var gpus resource.Quantity
	for name, quantity := range sum {
		if pod.IsGPU(name) {
			gpus.Add(quantity)
		}
	}
	status.Resources = sum
	status.Summary = v1alpha1.ClusterSummary{
		Ready: fmt.Sprintf("%d/%d", status.Workers.Ready, status.Workers.Desired),
		CPUs:  sum.Cpu().String(), Memory: sum.Memory().String(), GPUs: gpus.String(),
	}
}

// summary turns numbers into conditions.
type summary struct {
	status         *v1alpha1.ComputeClusterStatus
	head           *Pod
	outdated, pods int
	now            time.Time
}

func (s summary) conditions(plan Plan, outcome Outcome) {
	stalled, held := obstacles(plan, outcome.Err)
	headReady, head := s.headCondition()
	workersReady, workers := s.workersCondition()
	s.set(v1alpha1.ConditionHeadReady, headReady, head)
	s.set(v1alpha1.ConditionWorkersReady, workersReady, workers)
	if s.outdated > 0 {
		s.set(v1alpha1.ConditionUpToDate, false, reason.PodsOutdated.Of(s.outdated, s.pods))
	} else {
		s.set(v1alpha1.ConditionUpToDate, true, reason.PodsUpToDate.Of())
	}
	overall := s.overall(headReady, workersReady, head, workers)
	ready := headReady && workersReady && stalled == nil && held == nil
	switch {
	case stalled != nil:
		overall = *stalled
	case held != nil:
		overall = *held
	}
	s.set(v1alpha1.ConditionReady, ready, overall)
	s.set(v1alpha1.ConditionReconciling, !ready && stalled == nil, orSettled(!ready && stalled == nil, overall))
	s.set(v1alpha1.ConditionStalled, stalled != nil, orSettled(stalled != nil, overall))
	if stalled != nil && stalled.Code == reason.NameConflict.Code {
		s.set(v1alpha1.ConditionNameConflict, true, *stalled)
	} else {
		meta.RemoveStatusCondition(&s.status.Conditions, v1alpha1.ConditionNameConflict)
	}
	s.status.Phase = s.phase(ready, stalled != nil)
}

// obstacles are what keeps the cluster from being worked on, and what keeps a part of it.
func obstacles(plan Plan, err error) (stalled, held *reason.Finding) {
	stalled, held = plan.Stalled, plan.Held
	if finding, ok := fault.Finding(err); ok {
		stalled = &finding
	} else if held == nil && err != nil && fault.Refused(err) {
		refusal := fault.Refusal("a part of the cluster", err)
		held = &refusal
	}
	return stalled, held
}

func (s summary) headCondition() (bool, reason.Finding) {
	switch {
	case s.head == nil:
		return false, reason.HeadMissing.Of()
	case s.head.ready():
		return true, reason.HeadReady.Of(s.head.Name)
	case hasStarted(s.head):
		return false, reason.HeadUnready.Of(s.head.Name)
	default:
		return false, reason.HeadStarting.Of(s.head.Name)
	}
}

// hasStarted tells whether the pod's Ray container got through its startup probe.
func hasStarted(p *Pod) bool {
	for _, container := range p.Status.ContainerStatuses {
		if container.Name == v1alpha1.ContainerRay {
			return container.Started != nil && *container.Started || container.RestartCount > 0
		}
	}
	return false
}

func (s summary) workersCondition() (bool, reason.Finding) {
	workers := s.status.Workers
	if workers.Ready >= workers.Desired && workers.Created == workers.Ready {
		return true, reason.WorkersReady.Of(workers.Ready, workers.Desired)
	}
	return false, reason.WorkersStarting.Of(workers.Ready, workers.Desired)
}

func (s summary) overall(headReady, workersReady bool, head, workers reason.Finding) reason.Finding {
	switch {
	case !headReady:
		return head
	case !workersReady:
		return workers
	default:
		return reason.AllReady.Of(s.status.Workers.Ready, s.status.Workers.Desired)
	}
}

func (s summary) phase(ready, stalled bool) string {
	switch {
	case stalled:
		return v1alpha1.PhaseFailed
	case ready:
		return v1alpha1.PhaseReady
	case s.status.Epoch > 1:
		return v1alpha1.PhaseRecovering
	case s.head == nil || s.head.Spec.NodeName == "":
		return v1alpha1.PhasePending
	default:
		return v1alpha1.PhaseStarting
	}
}

func orSettled(holds bool, finding reason.Finding) reason.Finding {
	if holds {
		return finding
	}
	return reason.Settled.Of()
}

func (s summary) set(kind string, holds bool, finding reason.Finding) {
	value := metav1.ConditionFalse
	if holds {
		value = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&s.status.Conditions, metav1.Condition{
		Type: kind, Status: value, ObservedGeneration: s.status.ObservedGeneration,
		Reason: finding.Code, Message: finding.Text, LastTransitionTime: metav1.NewTime(s.now),
	})
}
