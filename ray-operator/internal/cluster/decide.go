package cluster

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scale"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/validate"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

const (
	// recheck is how soon to look again at what no watch tells of, such as a foreign
	// object under our name; goingRetry at what is on its way out.
	recheck    = 15 * time.Second
	goingRetry = time.Second
	// lostGrace in seconds is for workers whose session has ended: there is nothing
	// left that they could hand over.
	lostGrace = int64(5)
)

// Decide chooses what to do about a cluster. It is pure and total: the same arguments
// give the same plan, and every input gives one.
func Decide(cluster *v1alpha1.ComputeCluster, seen Seen, now time.Time) Plan {
	if stalled := stall(cluster, seen); stalled != nil {
		return Plan{Stalled: stalled, Wake: recheck}
	}
	plan := Plan{Epoch: seen.Record.Epoch}
	head := headOf(seen.Pods, plan.Epoch)
	if wait, lost := plan.loss(head, seen, now); lost {
		plan.beginEpoch(head)
		head = headOf(seen.Pods, plan.Epoch)
	} else if wait > 0 {
		plan.Wake = wait
		return plan
	}
	if seen.ServicePresence == Going || seen.TokenPresence == Going {
		plan.Wake = goingRetry // the garbage collector is at it, and no watch tells of a Secret
	} else {
		plan.service(cluster, seen)
		plan.token(cluster, seen, head != nil)
		plan.head(cluster, head)
		plan.workers(cluster, seen.Pods, now)
	}
	if head != nil && (seen.RecordMissing || seen.Record.HeadUID == "" || plan.Record != nil) {
		plan.NoteHead = true
	}
	plan.leftovers(cluster, seen.Pods)
	return plan
}

// stall finds what keeps the whole cluster from being worked on.
func stall(cluster *v1alpha1.ComputeCluster, seen Seen) *reason.Finding {
	var finding reason.Finding
	errs := validate.Cluster(cluster)
	switch {
	case len(errs) > 0:
		finding = reason.InvalidSpec.Of(errs.ToAggregate().Error())
	case seen.RecordError != nil:
		finding = reason.RecordDamaged.Of(seen.RecordError.Error())
	case seen.ServicePresence == Foreign:
		finding = reason.NameConflict.Of("Service " + naming.HeadService(cluster.Name))
	case seen.TokenPresence == Foreign:
		finding = reason.NameConflict.Of("Secret " + naming.TokenSecret(cluster.Name))
	default:
		return nil
	}
	return &finding
}

// headOf finds the pod that is, or was, the head of an epoch: one that stays, before
// one that has finished, before one that is leaving.
func headOf(pods []Pod, epoch int64) *Pod {
	var found *Pod
	rank := func(p *Pod) int {
		switch {
		case p == nil:
			return 0
		case p.leaving():
			return 1
		case p.finished():
			return 2
		default:
			return 3
		}
	}
	for i := range pods {
		p := &pods[i]
		if p.At == (naming.Place{Epoch: epoch}) && p.Labels[v1alpha1.LabelRole] == v1alpha1.RoleHead && rank(p) > rank(found) {
			found = p
		}
	}
	return found
}

// loss judges whether the epoch's head is lost, or for how long to leave a head that
// failed soon after it was made.
func (p *Plan) loss(head *Pod, seen Seen, now time.Time) (wait time.Duration, lost bool) {
	switch {
	case head == nil: // a head is made before its workers, so where there are workers there was one
		return 0, seen.Record.HeadUID != "" || slices.ContainsFunc(seen.Pods, func(worker Pod) bool {
			return worker.At.Group != "" && worker.At.Epoch == p.Epoch
		})
	case head.leaving():
		return 0, true
	case head.finished():
		wait = head.replaceable(now)
		return wait, wait == 0
	case seen.Record.HeadUID != "" && seen.Record.HeadUID != head.UID:
		return 0, true
	default:
		return 0, sessionOver(head, seen.Pods)
	}
}

// sessionOver tells whether the head's Ray container ended after a worker had joined it.
// What the kubelet starts in its place is another session, of which that worker knows
// nothing, though its own raylet still says that it is healthy. A head that nobody had
// joined is left to the kubelet, whose back-off slows a head that cannot start.
func sessionOver(head *Pod, pods []Pod) bool {
	ended := head.endedAt()
	if ended.IsZero() {
		return false
	}
	return slices.ContainsFunc(pods, func(p Pod) bool {
		since := p.readySince()
		return p.At.Group != "" && p.At.Epoch == head.At.Epoch && !since.IsZero() && since.Before(ended)
	})
}

// beginEpoch lets a new head take over. The number is in the record before anything
// is made or deleted for it.
func (p *Plan) beginEpoch(former *Pod) {
	p.Epoch++
	p.Record = &Record{Version: recordVersion, Epoch: p.Epoch}
	name := "of the former epoch"
	if former != nil {
		name = former.Name
	}
	p.Events = append(p.Events, telemetry.Event{Finding: reason.HeadLost.Of(name, p.Epoch), Action: "Recover", Warning: true})
}

// service keeps the head's Service pointing at the epoch's head.
func (p *Plan) service(cluster *v1alpha1.ComputeCluster, seen Seen) {
	switch {
	case seen.ServicePresence == Absent:
		p.Service = Make
	case seen.ServicePresence == Ours && !serves(seen.Service, desired.HeadService(cluster, p.Epoch)):
		p.Service = Mend
	}
}

// serves tells whether a Service has what is wanted of it; what others added stays.
func serves(seen, wanted *corev1.Service) bool {
	for key, value := range wanted.Labels {
		if seen.Labels[key] != value {
			return false
		}
	}
	ports := slices.Clone(seen.Spec.Ports)
	for i := range ports {
		ports[i].NodePort = 0
	}
	return maps.Equal(seen.Spec.Selector, wanted.Spec.Selector) && equality.Semantic.DeepEqual(ports, wanted.Spec.Ports) &&
		seen.Spec.PublishNotReadyAddresses == wanted.Spec.PublishNotReadyAddresses
}

// token sees to the token's Secret. A living head has read its token, so a new one would
// only keep new pods out: none is made then.
func (p *Plan) token(cluster *v1alpha1.ComputeCluster, seen Seen, headLives bool) {
	switch {
	case seen.TokenPresence == Ours:
	case headLives:
		missing := reason.TokenMissing.Of(naming.TokenSecret(cluster.Name))
		p.Held, p.Wake = &missing, recheck
	default:
		p.Token = Make
	}
}

// head makes the epoch's head where there is none.
func (p *Plan) head(cluster *v1alpha1.ComputeCluster, head *Pod) {
	if head != nil {
		return
	}
	p.Head, p.NoteHead = pod.Head(cluster, p.Epoch), true
	if p.Epoch > 1 {
		p.Events = append(p.Events, telemetry.Event{Finding: reason.HeadReplaced.Of(p.Head.Name, p.Epoch), Action: "Recover"})
	}
}

// workers brings each group to its size.
func (p *Plan) workers(cluster *v1alpha1.ComputeCluster, pods []Pod, now time.Time) {
	for i := range cluster.Spec.WorkerGroups {
		group := &cluster.Spec.WorkerGroups[i]
		bySlot := map[int]Pod{}
		var taken []scale.Slot
		for _, worker := range pods {
			if worker.At.Group != group.Name || worker.At.Epoch != p.Epoch {
				continue
			}
			state, wait := stateOf(worker, now)
			p.wakeIn(wait)
			bySlot[worker.At.Slot] = worker
			taken = append(taken, scale.Slot{Index: worker.At.Slot, State: state})
		}
		change := scale.Target(int(replicas(group)), taken)
		for _, slot := range change.Create {
			if p.Held == nil {
				p.Create = append(p.Create, pod.Worker(cluster, group, slot, p.Epoch))
			}
		}
		for _, slot := range change.Remove {
			p.remove(bySlot[slot.Index], slot.State)
		}
	}
}

// stateOf sorts a worker. One that failed soon after it was made counts as starting for
// a while, so that its successor does not fail at the same pace.
func stateOf(worker Pod, now time.Time) (scale.State, time.Duration) {
	switch {
	case worker.leaving():
		return scale.Leaving, 0
	case worker.finished():
		if wait := worker.replaceable(now); wait > 0 {
			return scale.Starting, wait
		}
		return scale.Finished, 0
	case worker.ready():
		return scale.Ready, 0
	default:
		return scale.Starting, 0
	}
}

func (p *Plan) remove(worker Pod, state scale.State) {
	why := "the group has too many"
	if state == scale.Finished {
		why = "it has finished"
		detail := worker.Status.Reason
		if detail == "" {
			detail = string(worker.Status.Phase)
		}
		p.Events = append(p.Events, telemetry.Event{
			Finding: reason.WorkerFailed.Of(worker.Name, detail), Action: "Replace", Warning: true,
		})
	}
	p.Delete = append(p.Delete, Removal{Pod: worker, Why: why})
}

// leftovers deletes what belongs to no group of the spec or to a former epoch.
func (p *Plan) leftovers(cluster *v1alpha1.ComputeCluster, pods []Pod) {
	for _, left := range pods {
		switch {
		case left.leaving():
		case left.At.Epoch != p.Epoch:
			grace := lostGrace
			p.Delete = append(p.Delete, Removal{Pod: left, GraceSeconds: &grace, Why: "its epoch is over"})
		case left.At.Group != "" && pod.FindGroup(cluster, left.At.Group) == nil:
			p.Delete = append(p.Delete, Removal{Pod: left, Why: "its group is gone from the spec"})
		}
	}
}

func (p *Plan) wakeIn(wait time.Duration) {
	if wait > 0 && (p.Wake == 0 || wait < p.Wake) {
		p.Wake = wait
	}
}
