package testkit

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/nodes"
)

// Ray stands in for all heads and, as a nodes.Source, for what asks them in the
// background: a pod that is ready is a node of its head, and one that must be drained is
// dead once its work is done.
type Ray struct {
	// Busy tells of pods that have work, Silent of heads that do not answer; nil is none.
	Busy, Silent func(*corev1.Pod) bool
	// WorkTakes is how long the work on a busy node goes on once it must be drained.
	WorkTakes time.Duration
	// IdleSince is since when nobody has used any cluster, zero while someone does.
	IdleSince time.Time

	world *World
	// asked and answers are what the operator wants to know and what it knows; they go
	// with its process.
	asked   map[types.NamespacedName]*question
	answers map[types.NamespacedName]answer
	// drains tells since when which nodes are drained; that is known to the heads.
	drains map[types.UID]time.Time
	// amounts are what nodes were told to count; that is known to the heads as well.
	amounts map[types.UID]map[string]float64
}

type question struct {
	nodes.Target
	at time.Time
}

type answer struct {
	head types.UID
	nodes.Answer
}

func newRay(w *World) *Ray {
	r := &Ray{world: w, drains: map[types.UID]time.Time{}, amounts: map[types.UID]map[string]float64{}}
	r.restart()
	return r
}

// restart forgets what the operator's process knew.
func (r *Ray) restart() {
	r.asked, r.answers = map[types.NamespacedName]*question{}, map[types.NamespacedName]answer{}
}

// Want says what to ask of a cluster's head from now on.
func (r *Ray) Want(name types.NamespacedName, target nodes.Target) {
	now := r.world.Clock.Now()
	before := r.asked[name]
	switch {
	case before == nil || before.Head != target.Head:
		r.asked[name] = &question{target, now}
		delete(r.answers, name)
	case len(before.Drains) != len(target.Drains) || len(before.Resizes) != len(target.Resizes) || before.Activity != target.Activity || before.Every != target.Every:
		r.asked[name] = &question{target, now}
	default:
		before.Target = target
	}
}

// Forget ends all that is asked about a cluster.
func (r *Ray) Forget(name types.NamespacedName) {
	delete(r.asked, name)
	delete(r.answers, name)
}

// Last is what the head of that UID said last.
func (r *Ray) Last(name types.NamespacedName, head types.UID) (nodes.Answer, bool) {
	last, ok := r.answers[name]
	return last.Answer, ok && last.head == head
}

// step asks the heads that are due, wakes the operator where what they say has another
// meaning than before, and gives how long it is until something happens by itself.
func (r *Ray) step() (changed bool, next time.Duration) {
	now := r.world.Clock.Now()
	for _, name := range slices.SortedFunc(maps.Keys(r.asked), byName) {
		question := r.asked[name]
		if wait := question.at.Sub(now); wait > 0 {
			if r.awaited(question) && (next == 0 || wait < next) {
				next = wait
			}
			continue
		}
		question.at = now.Add(question.Every)
		before, known := r.answers[name]
		after := answer{question.Head, r.answer(name, question, before.Answer)}
		r.answers[name] = after
		changed = true
		if !known || nodes.HasNews(before.Answer, after.Answer) {
			r.world.due[request{clusterKind, name}] = now
		}
	}
	return changed, next
}

func byName(a, b types.NamespacedName) int {
	if a.Namespace+"/"+a.Name < b.Namespace+"/"+b.Name {
		return -1
	}
	return 1
}

// awaited reports whether the clock is to go on to the next question for its own sake.
func (r *Ray) awaited(q *question) bool {
	return q.at.Sub(r.world.lastChange) <= patience || q.at.Before(r.world.until)
}

// answer is what a head says now, given what it said last.
func (r *Ray) answer(name types.NamespacedName, q *question, last nodes.Answer) nodes.Answer {
	pods := r.world.podsOf(name)
	i := slices.IndexFunc(pods, func(p *corev1.Pod) bool { return p.UID == q.Head })
	now := r.world.Clock.Now()
	if i < 0 || !isReady(pods[i]) || r.Silent != nil && r.Silent(pods[i]) {
		last.Failure = headclient.Unavailable
		return last
	}
	said := nodes.Answer{At: now, Nodes: map[types.UID]nodes.Node{}}
	if q.Activity {
		said.Use = nodes.Use{At: now, Active: r.IdleSince.IsZero(), IdleSince: r.IdleSince}
	}
	for _, wish := range q.Drains {
		if r.drains[wish.Pod].IsZero() {
			r.drains[wish.Pod] = now
		}
	}
	for _, wish := range q.Resizes {
		r.amounts[wish.Pod] = wish.Resources
	}
	for _, pod := range pods {
		if isReady(pod) {
			said.Nodes[pod.UID] = nodes.Node{State: r.state(pod), Total: r.amounts[pod.UID]}
		}
	}
	return said
}

func (r *Ray) state(pod *corev1.Pod) headclient.NodeState {
	busy := r.Busy != nil && r.Busy(pod)
	since, drains := r.drains[pod.UID]
	switch {
	case drains && (!busy || r.world.Clock.Now().Sub(since) >= r.WorkTakes):
		return headclient.Dead
	case drains:
		return headclient.Draining
	case busy:
		return headclient.Running
	default:
		return headclient.Idle
	}
}

func isReady(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// podsOf are the pods that belong to a cluster, not to be changed.
func (w *World) podsOf(name types.NamespacedName) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, obj := range w.server.latest.held() {
		pod, ok := obj.(*corev1.Pod)
		if owner := metav1.GetControllerOf(obj); ok && owner != nil && owner.Name == name.Name && pod.Namespace == name.Namespace {
			pods = append(pods, pod)
		}
	}
	return pods
}
