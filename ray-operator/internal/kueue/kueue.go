// Package kueue decides what Kueue's admission means for a cluster or a job that is queued.
//
// In: the object, its Workload as the cache has it, whether it wants to run and whether anything of it runs. Out: whether it
// may run, where its pods belong, what it waits for, and the next write to its Workload.
//
// Kueue gives a quota back only when the Workload says so. So this package must never have a Workload say that nothing
// runs while a pod is there, and never let run what is not admitted. It is pure, and no code of Kueue is linked.
// +kubebuilder:object:generate=true
package kueue

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels of an object that is queued. LabelOwner is, on a Workload of the operator's, the kind of the object that it is for.
const (
	LabelQueue    = "kueue.x-k8s.io/queue-name"
	LabelPriority = "kueue.x-k8s.io/priority-class"
	LabelOwner    = "heliostat.dev/workload-of"
)

// annotationAsks is, on a Workload, a hash of what its object asks for by itself, without the installation's defaults.
const annotationAsks = "heliostat.dev/asks-for"

// Conditions of a Workload.
const (
	quotaReserved = "QuotaReserved"
	admitted      = "Admitted"
	evicted       = "Evicted"
	requeued      = "Requeued"
	finished      = "Finished"
	podsReady     = "PodsReady"
)

// QueueOf returns the LocalQueue in which an object is to wait, empty for none.
func QueueOf(object metav1.Object) string { return object.GetLabels()[LabelQueue] }

// Seen is what is known of an object's place in a queue. Its zero value is that of an object that is in none.
type Seen struct {
	// Queue is the LocalQueue, empty where the object is in none.
	Queue string
	// Rides: the object is a cluster that a queued job made, and the Workload is the job's, which writes it.
	Rides bool
	// Workload is what is there, nil for nothing. Wanted is what must be there.
	Workload, Wanted *Workload
	// Problem is why the object must not run: no Workload can be made, or its admission cannot be followed. Empty for nothing.
	Problem string
	// Placements are where the pods of each set belong, once it is admitted.
	Placements map[string]Placement
	// Clusters are the names of the clusters whose pods the quota is for.
	Clusters []string
}

// State is how a queued object is.
type State struct {
	// Wants: nothing but the queue keeps it from running. Runs: a pod of it is there, or may come by itself.
	Wants, Runs bool
	// Ready: all its pods are ready that it needs.
	Ready bool
	// Ended is how it ended, empty while it has not. Failed says that it did not end well.
	Ended  string
	Failed bool
}

// Step is a write to a Workload.
type Step int

const (
	// Rest writes nothing.
	Rest Step = iota
	// Make creates the Workload.
	Make
	// Drop deletes it, which gives its quota back.
	Drop
	// Rank gives it another priority.
	Rank
	// Tell writes its status.
	Tell
)

// String is the verb.
func (s Step) String() string {
	return [...]string{"leave", "create", "delete", "rank", "write the status of"}[s]
}

// Answer is what follows for the object.
type Answer struct {
	// Held: it may not run now. Waits is what for.
	Held  bool
	Waits string
	Step  Step
	// Status is the Workload's new status, for Tell.
	Status WorkloadStatus
}

// Frees reports whether the step gives a quota back that no pod may use any more. One that has left its queue runs on.
func (a Answer) Frees(seen Seen) bool {
	switch {
	case seen.Queue == "" || seen.Workload == nil || !is(seen.Workload, quotaReserved):
		return false
	case a.Step == Tell:
		return a.Status.Admission == nil || meta.IsStatusConditionTrue(a.Status.Conditions, finished)
	default:
		return a.Step == Drop
	}
}

// Decide says what a queued object may do, and what its Workload must be told. It is pure and total.
func Decide(seen Seen, now State, at metav1.Time) Answer {
	switch {
	case seen.Queue == "" && seen.Workload != nil: // it has left the queue, and its quota with it
		return Answer{Step: Drop}
	case seen.Queue == "":
		return Answer{}
	case seen.Rides:
		return ride(seen, now)
	default:
		return follow(seen, now, at)
	}
}

// ride decides for a cluster by the Workload of the job that made it. What runs is the job's to stop, which ends its attempt
// first; and nothing begins to run that is not admitted, whatever the cluster says of its owner.
func ride(seen Seen, now State) Answer {
	if now.Runs {
		return Answer{}
	}
	answer := admission(seen)
	if seen.Workload == nil {
		answer.Waits = "the job that it belongs to is in no queue"
	}
	return Answer{Held: answer.Held, Waits: answer.Waits}
}

// follow decides for an object that has a Workload of its own, or must have.
func follow(seen Seen, now State, at metav1.Time) Answer {
	answer := admission(seen)
	switch {
	case now.Ended != "":
		return Answer{Held: answer.Held, Waits: answer.Waits, Step: ending(seen.Workload, now), Status: ended(seen.Workload, now, at)}
	case !now.Wants:
		answer.Step = gone(seen.Workload, now)
	case seen.Problem != "":
		answer = Answer{Held: true, Waits: seen.Problem, Step: gone(seen.Workload, now)}
	case seen.Workload == nil:
		answer.Step = Make
		if now.Runs { // it ran outside of the queue, or its Workload was deleted
			answer.Step = Rest
		}
	case !asks(seen.Workload, seen.Wanted, now.Runs), is(seen.Workload, finished):
		answer = Answer{Held: true, Waits: "its place in the queue is made again, as what it asks for has changed", Step: gone(seen.Workload, now)}
	case ranks(seen.Workload, seen.Wanted):
		answer.Step = Rank
	default:
		answer.tell(seen.Workload, now, at)
	}
	return answer
}

// admission is what the Workload alone says.
func admission(seen Seen) Answer {
	workload := seen.Workload
	switch {
	case workload == nil:
		return Answer{Held: true, Waits: "it is being queued"}
	case workload.DeletionTimestamp != nil:
		return Answer{Held: true, Waits: "its Workload is being deleted"}
	case is(workload, evicted):
		return Answer{Held: true, Waits: "it was evicted: " + said(workload, evicted)}
	case is(workload, admitted) && seen.Problem == "":
		return Answer{}
	case is(workload, admitted):
		return Answer{Held: true, Waits: seen.Problem}
	case is(workload, quotaReserved):
		return Answer{Held: true, Waits: checks(workload)}
	default:
		return Answer{Held: true, Waits: said(workload, quotaReserved)}
	}
}

// said is the message of a condition.
func said(workload *Workload, kind string) string {
	if told := meta.FindStatusCondition(workload.Status.Conditions, kind); told != nil && told.Message != "" {
		return told.Message
	}
	return "Kueue has not looked at it yet"
}

// checks are the admission checks that are not ready.
func checks(workload *Workload) string {
	for _, check := range workload.Status.AdmissionChecks {
		if check.State != "Ready" {
			return fmt.Sprintf("admission check %s is %s: %s", check.Name, check.State, check.Message)
		}
	}
	return "Kueue has reserved its quota and not admitted it yet"
}

func is(workload *Workload, kind string) bool {
	return meta.IsStatusConditionTrue(workload.Status.Conditions, kind)
}

// gone deletes a Workload that is for nothing, once nothing runs.
func gone(workload *Workload, now State) Step {
	if workload == nil || now.Runs || workload.DeletionTimestamp != nil {
		return Rest
	}
	return Drop
}

// asks reports whether a Workload asks for what is wanted. What runs goes on where only the installation has other defaults:
// its pods keep what they were made with.
func asks(workload, wanted *Workload, runs bool) bool {
	same := equality.Semantic.DeepEqual(workload.Spec.PodSets, wanted.Spec.PodSets) ||
		runs && workload.Annotations[annotationAsks] == wanted.Annotations[annotationAsks]
	return same && workload.Spec.QueueName == wanted.Spec.QueueName
}

// ranks reports whether a Workload has another priority than is wanted, and can take it: one with quota can change its class,
// and neither get nor lose one.
func ranks(workload, wanted *Workload) bool {
	if is(workload, quotaReserved) && (workload.Spec.PriorityClassRef == nil) != (wanted.Spec.PriorityClassRef == nil) {
		return false
	}
	return !equality.Semantic.DeepEqual(workload.Spec.PriorityClassRef, wanted.Spec.PriorityClassRef) ||
		wanted.Spec.Priority != nil && !equality.Semantic.DeepEqual(workload.Spec.Priority, wanted.Spec.Priority)
}

// ending is the step for an object that has ended: its Workload says so once nothing runs.
func ending(workload *Workload, now State) Step {
	if workload == nil || now.Runs || is(workload, finished) || workload.DeletionTimestamp != nil {
		return Rest
	}
	return Tell
}

func ended(workload *Workload, now State, at metav1.Time) WorkloadStatus {
	if workload == nil {
		return WorkloadStatus{}
	}
	why := "Succeeded"
	if now.Failed {
		why = "Failed"
	}
	status := *workload.Status.DeepCopy()
	status.set(workload, at, metav1.Condition{Type: finished, Status: metav1.ConditionTrue, Reason: why, Message: now.Ended})
	return status
}

// tell writes what only the object knows: that an evicted one has no pod any more, and whether an admitted one is ready.
func (a *Answer) tell(workload *Workload, now State, at metav1.Time) {
	status := *workload.Status.DeepCopy()
	var changed bool
	switch {
	case workload.DeletionTimestamp != nil:
		return
	case is(workload, evicted) && !now.Runs && is(workload, quotaReserved):
		status.release(workload, at)
		changed = true
	case a.Held || now.Ready == is(workload, podsReady):
		return
	case now.Ready:
		changed = status.set(workload, at, metav1.Condition{
			Type: podsReady, Status: metav1.ConditionTrue, Reason: "Started", Message: "All pods that it needs are ready",
		})
	default:
		changed = status.set(workload, at, metav1.Condition{
			Type: podsReady, Status: metav1.ConditionFalse, Reason: "WaitForRecovery", Message: "Not all pods that it needs are ready",
		})
	}
	if changed {
		a.Step, a.Status = Tell, status
	}
}

// release gives the quota back. Kueue queues a Workload again by itself where somebody took its place or its node failed,
// and where it had another reason to evict it, once that is gone.
func (s *WorkloadStatus) release(workload *Workload, at metav1.Time) {
	told := meta.FindStatusCondition(workload.Status.Conditions, evicted)
	again := metav1.ConditionFalse
	if told.Reason == "Preempted" || told.Reason == "NodeFailures" {
		again = metav1.ConditionTrue
	}
	no := metav1.ConditionFalse
	for _, condition := range []metav1.Condition{
		{Type: requeued, Status: again, Reason: told.Reason, Message: told.Message},
		{Type: quotaReserved, Status: no, Reason: "Pending", Message: told.Message},
		{Type: admitted, Status: no, Reason: "NoReservation", Message: "The workload has no reservation"},
	} {
		s.set(workload, at, condition)
	}
	if is(workload, podsReady) {
		s.set(workload, at, metav1.Condition{Type: podsReady, Status: no, Reason: "WaitForStart", Message: "No pod is there"})
	}
	s.Admission = nil
}

// set sets a condition of a Workload, and reports whether that changes it.
func (s *WorkloadStatus) set(of *Workload, at metav1.Time, condition metav1.Condition) bool {
	condition.ObservedGeneration, condition.LastTransitionTime = of.Generation, at
	return meta.SetStatusCondition(&s.Conditions, condition)
}

// Placement is what an admission adds to the pods of one set.
type Placement struct {
	Labels, Annotations, NodeSelector map[string]string
	Tolerations                       []corev1.Toleration
}

// On adds it to a pod.
func (p Placement) On(pod *corev1.Pod) {
	lay(&pod.Labels, p.Labels)
	lay(&pod.Annotations, p.Annotations)
	lay(&pod.Spec.NodeSelector, p.NodeSelector)
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, p.Tolerations...)
}

func lay(onto *map[string]string, more map[string]string) {
	for key, value := range more {
		if *onto == nil {
			*onto = map[string]string{}
		}
		(*onto)[key] = value
	}
}

// Flavors are the names of the flavors that an admission is of.
func (w *Workload) Flavors() map[string]bool {
	names := map[string]bool{}
	if w.Status.Admission != nil {
		for _, assigned := range w.Status.Admission.PodSetAssignments {
			for _, name := range assigned.Flavors {
				names[name] = true
			}
		}
	}
	return names
}

// Placements returns what the Workload's admission adds to the pods of each set, from the flavors and the admission checks.
func (w *Workload) Placements(flavors map[string]*ResourceFlavor) map[string]Placement {
	all := map[string]Placement{}
	if w.Status.Admission == nil {
		return all
	}
	for _, assigned := range w.Status.Admission.PodSetAssignments {
		var placed Placement
		taken := map[string]bool{}
		for _, name := range assigned.Flavors {
			if flavor := flavors[name]; flavor != nil && !taken[name] {
				taken[name] = true
				lay(&placed.NodeSelector, flavor.Spec.NodeLabels)
				placed.Tolerations = append(placed.Tolerations, flavor.Spec.Tolerations...)
			}
		}
		for _, check := range w.Status.AdmissionChecks {
			for _, update := range check.PodSetUpdates {
				if update.Name == assigned.Name {
					lay(&placed.Labels, update.Labels)
					lay(&placed.Annotations, update.Annotations)
					lay(&placed.NodeSelector, update.NodeSelector)
					placed.Tolerations = append(placed.Tolerations, update.Tolerations...)
				}
			}
		}
		all[assigned.Name] = placed
	}
	return all
}
