// Package explain says why an object of ours is as it is, as a chain of causes.
//
// In: a cluster, a job, a service or a schedule as the API server has it, the clusters that it uses, their pods, and the time. Out:
// links from the object down to the pod that it waits for, each with code, message and remedy. The first link says what
// the object's own status says first.
//
// It is pure and total. It never fails or panics, whatever half of an object it is given. It never asks a server, never
// repeats a link, and gives a bounded number of them with texts of bounded length.
package explain

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Kinds of the objects that links are about.
const (
	KindCluster  = "ComputeCluster"
	KindJob      = "ClusterJob"
	KindService  = "ClusterService"
	KindSchedule = "ClusterJobSchedule"
	KindPod      = "Pod"
)

// mostCauses bounds a chain. One with more links than this helps nobody.
const mostCauses = 32

// Cause is a link of the chain that explains a state.
type Cause struct {
	// Kind, Namespace and Name are of the object that the link is about.
	Kind, Namespace, Name string
	// Code is a reason of the catalogue. Message says it in words, and Remedy what helps, if anything has to.
	Code, Message, Remedy string
	// Since is when the code began, as far as Kubernetes keeps it; zero where nobody knows.
	Since time.Time
}

// Input is what an explanation is made of.
type Input struct {
	// Object is a ComputeCluster, a ClusterJob, a ClusterService or a ClusterJobSchedule.
	Object runtime.Object
	// Clusters are those of a job or a service. Others among them are left out.
	Clusters []*v1beta1.ComputeCluster
	// Pods are those of the cluster, or of those clusters. Others among them are left out.
	Pods []*corev1.Pod
	Now  time.Time
}

// Headline returns the first link of the chain: what the status of an object says first. Of another object, and of
// none, it is empty.
func Headline(object runtime.Object) Cause {
	about, ok := subjectOf(object)
	if !ok {
		return Cause{}
	}
	return about.headline()
}

// Ready returns the status of an object's condition Ready: "True", "False" or "Unknown".
func Ready(object runtime.Object) string {
	about, ok := subjectOf(object)
	if !ok {
		return string(metav1.ConditionUnknown)
	}
	return string(about.ready())
}

// Explain returns the chain from the object down to the pod that it waits for. Of another object it is empty.
func Explain(in Input) []Cause {
	about, ok := subjectOf(in.Object)
	if !ok {
		return nil
	}
	c := chain{now: in.Now, pods: in.Pods, told: map[Cause]bool{}}
	switch object := in.Object.(type) {
	case *v1beta1.ComputeCluster:
		c.addCluster(object, true)
	case *v1beta1.ClusterJob:
		c.add(about.headline())
		c.addAttempt(object)
		c.addRestart(object)
		c.addNotes(about)
	default:
		c.add(about.headline())
		c.addNotes(about)
	}
	if !isOver(in.Object) {
		for _, cluster := range clustersOf(in) {
			c.addCluster(cluster, false)
		}
	}
	return c.causes
}

// chain is an explanation in the making.
type chain struct {
	causes []Cause
	told   map[Cause]bool
	pods   []*corev1.Pod
	now    time.Time
}

// add adds a link that was not told yet.
func (c *chain) add(cause Cause) {
	key := cause
	key.Since, key.Remedy = time.Time{}, ""
	if len(c.causes) < mostCauses && !c.told[key] {
		c.told[key] = true
		c.causes = append(c.causes, cause)
	}
}

// addCluster adds what a cluster waits for. Of one that is ready and only used by the object, what does not come is
// told: a job may wait for a worker that the cluster can do without.
func (c *chain) addCluster(cluster *v1beta1.ComputeCluster, isRoot bool) {
	about, _ := subjectOf(cluster)
	isReady := about.ready() == metav1.ConditionTrue
	switch {
	case isRoot || !isReady:
		c.add(about.headline())
		c.addNotes(about)
	default:
		c.addNote(about, v1beta1.ConditionAutoscaling)
	}
	for i := range cluster.Status.Groups {
		group := &cluster.Status.Groups[i]
		if isWarning(group.Reason) {
			c.add(about.cause(group.Reason, group.Message, about.since(group.Reason, group.Message)))
		}
	}
	c.addPods(cluster, isReady)
}

// notes are the conditions that may say more than Ready does, in the order in which they are told.
func notes() []string {
	return []string{
		v1beta1.ConditionNameConflict, v1beta1.ConditionInvalidSpec, v1beta1.ConditionHeadReady, v1beta1.ConditionControlStoreReady,
		v1beta1.ConditionWorkersReady, v1beta1.ConditionVersionMismatch, v1beta1.ConditionAutoscaling,
		v1beta1.ConditionUpToDate, v1beta1.ConditionRolledBack, v1beta1.ConditionUpgrading,
		v1beta1.ConditionGatewayProgrammed, v1beta1.ConditionSuspended,
	}
}

func (c *chain) addNotes(about subject) {
	for _, kind := range notes() {
		c.addNote(about, kind)
	}
}

// addNote adds what a condition warns of. What is on its way by itself is told where nothing else is waited for: before
// that it waits for the same.
func (c *chain) addNote(about subject, kind string) {
	condition := about.condition(kind)
	if condition == nil || condition.Reason == "" {
		return
	}
	finding := reason.Finding{Code: condition.Reason}
	isAhead := finding.Severity() == reason.Progress && about.ready() == metav1.ConditionTrue
	if isWarning(condition.Reason) || isAhead {
		c.add(about.cause(condition.Reason, condition.Message, about.since(condition.Reason, condition.Message)))
	}
}

// addAttempt adds why the last attempt of a job ended, where the job itself says something else.
func (c *chain) addAttempt(job *v1beta1.ClusterJob) {
	if len(job.Status.Attempts) == 0 {
		return
	}
	about, _ := subjectOf(job)
	last := &job.Status.Attempts[len(job.Status.Attempts)-1]
	isTold := about.ready() == metav1.ConditionTrue || about.headline().Code == last.Reason
	if isTold || last.Message == "" || !isWarning(last.Reason) {
		return
	}
	var ended time.Time
	if last.EndTime != nil {
		ended = last.EndTime.Time
	}
	c.add(about.cause(last.Reason, last.Message, ended))
}

// addRestart adds why the last round of a gang ended, while the gang starts again or runs.
func (c *chain) addRestart(job *v1beta1.ClusterJob) {
	if isOver(job) || job.Status.Gang == nil || job.Status.Gang.LastRestart == nil {
		return
	}
	about, _ := subjectOf(job)
	last := job.Status.Gang.LastRestart
	var ended time.Time
	if last.RestartTime != nil {
		ended = last.RestartTime.Time
	}
	what := cmp.Or(last.Replica, "the round")
	c.add(about.cause(reason.GangRestarted.Code, fmt.Sprintf("%s ended first, and all processes start again: %s", what, last.Message), ended))
}

// isWarning reports whether a person has to act on a code, or at least wants to know. A code that the catalogue does
// not know is a warning.
func isWarning(code string) bool {
	return code != "" && reason.Finding{Code: code}.Severity() == reason.Warning
}
