package cluster

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/nodes"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// Ray is what the head said last of its nodes.
type Ray struct {
	// At is when it said so, zero where it did not yet.
	At time.Time
	// Failed tells that the last question had no answer.
	Failed bool
	// Nodes are Ray's nodes by the UID of their pods.
	Nodes map[types.UID]RayNode
	// UseAt is when it said whether someone uses the cluster, and IdleSince since when
	// nobody does, zero while someone does.
	UseAt, IdleSince time.Time
}

// RayNode is one of Ray's nodes.
type RayNode struct {
	// Idle: nothing runs on it. Dead: it has left, or Ray gave it up.
	Idle, Dead bool
	// Total is what it has, of the resources that a resizing names.
	Total map[string]float64
}

// freshFor is how old an answer may be to decide on it; askIdle how often to ask for
// the sake of an idle policy, askDrain of a drain.
const (
	freshFor = 10 * time.Second
	askIdle  = 5 * time.Second
	askDrain = time.Second
)

// isFresh reports whether an answer is young enough to decide on it.
func (r Ray) isFresh(now time.Time) bool {
	return !r.Failed && !r.At.IsZero() && now.Sub(r.At) <= freshFor
}

// Ask is what must be asked of the head in the background. The zero value is nothing.
type Ask struct {
	// Every is how often, 0 is never.
	Every time.Duration
	// Use asks whether someone uses the cluster.
	Use bool
	// Drains are the pods whose nodes must be drained, each until when.
	Drains map[types.UID]time.Time
	// Resizes are the pods whose nodes must count more of some of Ray's resources.
	Resizes map[types.UID]map[string]float64
}

// askEvery has the head asked at least so often.
func (a *Ask) askEvery(every time.Duration) {
	if a.Every == 0 || every < a.Every {
		a.Every = every
	}
}

// addDrain has the node of a pod drained.
func (a *Ask) addDrain(pod types.UID, until time.Time) {
	if a.Drains == nil {
		a.Drains = map[types.UID]time.Time{}
	}
	a.Drains[pod] = until
	a.askEvery(askDrain)
}

// addResize has the node of a pod count more resources.
func (a *Ask) addResize(pod types.UID, amounts map[string]float64) {
	if a.Resizes == nil {
		a.Resizes = map[types.UID]map[string]float64{}
	}
	a.Resizes[pod] = amounts
	a.askEvery(askDrain)
}

// seeRay recalls what the head said last, if it is the head that is there now.
func (o observer) seeRay(_ context.Context, cluster *v1beta1.ComputeCluster, seen *Seen) error {
	head := headOf(seen.Pods, seen.Record.Epoch)
	if head == nil {
		return nil
	}
	answer, ok := o.heads.Last(client.ObjectKeyFromObject(cluster), head.UID)
	if !ok {
		return nil
	}
	seen.Ray = Ray{At: answer.At, Failed: answer.Failure != "", UseAt: answer.Use.At, IdleSince: answer.Use.IdleSince, Nodes: map[types.UID]RayNode{}}
	for pod, node := range answer.Nodes {
		seen.Ray.Nodes[pod] = RayNode{Idle: node.State == headclient.Idle, Dead: node.State == headclient.Dead, Total: node.Total}
	}
	return nil
}

// askHead sets what is asked of the head in the background. It is reached by the address of the pod that is ours, and
// by nothing that anyone else could have written.
func (r *Reconciler) askHead(cluster *v1beta1.ComputeCluster, seen Seen, plan Plan) {
	name, head := client.ObjectKeyFromObject(cluster), headOf(seen.Pods, plan.Epoch)
	if plan.Ask.Every == 0 || head == nil || !head.hasAddress() {
		r.Heads.Forget(name)
		return
	}
	target := nodes.Target{
		Head: head.UID, Address: net.JoinHostPort(head.Status.PodIP, strconv.Itoa(naming.PortGCS)),
		Every: plan.Ask.Every, Activity: plan.Ask.Use, Trust: nodes.TrustOf(r.Live, head.Pod),
	}
	if secret := pod.TokenSecret(cluster); secret != "" {
		target.Token = nodes.TokenFrom(r.Live, types.NamespacedName{Namespace: cluster.Namespace, Name: secret})
	}
	for uid, until := range plan.Ask.Drains {
		target.Drains = append(target.Drains, nodes.Drain{
			Pod: uid, Reason: headclient.Preemption, Message: "the worker is on its planned exit", Deadline: until,
		})
	}
	for uid, amounts := range plan.Ask.Resizes {
		target.Resizes = append(target.Resizes, nodes.Resize{Pod: uid, Resources: amounts})
	}
	slices.SortFunc(target.Resizes, func(a, b nodes.Resize) int { return cmp.Compare(a.Pod, b.Pod) })
	slices.SortFunc(target.Drains, func(a, b nodes.Drain) int { return cmp.Compare(a.Pod, b.Pod) })
	r.Heads.Want(name, target)
}
