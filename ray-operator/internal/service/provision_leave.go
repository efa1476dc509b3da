package service

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/services"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// closeFor is how long it may take to have kept connections closed, beyond the drain.
const closeFor = 20 * time.Second

// lastAnswers is how long a cluster stays at least once its connections must be closed, but no longer than half the
// drain: each is closed with its next answer, and one that has not had it breaks under a request when the pods go.
const lastAnswers = 10 * time.Second

// hardStop is how long HAProxy finishes what it has begun once its connections must be closed:
// RAY_SERVE_HAPROXY_HARD_STOP_AFTER_S of Serve 2.60 by default.
const hardStop = 120 * time.Second

// parting is how long after a pod had the last requests the connections are closed that clients keep
// to it: later than that is known to all nodes, and earlier than Serve ends its proxy, which is 30 s
// after there is no replica beside it.
const parting = 8 * time.Second

// closeVersions closes the connections that clients keep to versions that have no requests any more.
func (v *provisioner) closeVersions() {
	switch {
	case v.decision.baking:
		v.closeConnections(v.findCluster(&v.record.Active), v.record.Shift.At)
	case !v.decision.since.IsZero():
		v.closeConnections(v.findCluster(&v.record.Active), v.decision.since)
		v.closeConnections(v.findCluster(v.record.Candidate), v.decision.since)
	}
}

// closeConnections has a cluster of the service's own, which has had no requests since a moment, end the
// connections that clients keep, in the second half of the drain: until then most have come to
// their end. In a long drain it is later, so that HAProxy cuts no request before the drain is over. It
// returns until when the cluster must stay for it.
func (v *provisioner) closeConnections(cluster *Cluster, since time.Time) time.Time {
	drained := since.Add(drainOf(v.service))
	if !v.ownsClusters() || cluster == nil || cluster.Head == nil {
		return drained
	}
	left := since.Add(max(drainOf(v.service)/2, drainOf(v.service)-hardStop)).Sub(v.now)
	switch {
	case left > 0:
		v.wakeIn(left)
	case hasOpenPods(v.state, cluster): // a connection that is opened after it would be kept
	case v.requestClose(cluster, since, cluster.Pods) == cluster.Answer.Closed && cluster.Heard:
		if answered := cluster.Answer.ClosedAt.Add(min(drainOf(v.service)/2, lastAnswers)); answered.After(drained) {
			return answered
		}
		return drained
	}
	return drained.Add(closeFor)
}

// requestClose has a job end the connections that clients keep to a cluster, once for each moment that it is named by,
// and returns its name. Pods that leave, and that no service leads to, end their gRPC channels as well.
func (v *provisioner) requestClose(cluster *Cluster, since time.Time, leaving []*corev1.Pod) string {
	closing := headclient.Closing{ID: fmt.Sprintf("heliostat-close-%d", since.Unix()), Grace: drainOf(v.service)}
	for _, pod := range leaving {
		if pod.Status.PodIP != "" && !isServing(pod) {
			closing.Leaving = append(closing.Leaving, pod.Status.PodIP)
		}
	}
	slices.Sort(closing.Leaving)
	v.closing[cluster.Name] = closing
	return closing.ID
}

// isServing reports whether some service leads to a pod.
func isServing(pod *corev1.Pod) bool {
	for label, value := range pod.Labels {
		if strings.HasPrefix(label, v1beta1.LabelServePrefix) && value == v1beta1.ServeOn {
			return true
		}
	}
	return false
}

// closeParting has the connections closed that clients keep to pods that leave a cluster which stays: those of
// workers that are replaced or given up. Each proxy of the cluster closes those that it has then, with
// their next answer; for those that stay that costs a client one connection and no request, so on a cluster of several
// services any of them may ask for it.
func (v *provisioner) closeParting() {
	for _, side := range []*Side{&v.record.Active, v.record.Candidate} {
		if side == nil || v.findCluster(side) == nil {
			continue
		}
		cluster := v.findCluster(side)
		if _, all := v.closing[cluster.Name]; all {
			continue
		}
		leaving, latest, left := lastParting(v.state, cluster)
		v.wakeIn(left)
		if len(leaving) > 0 {
			v.requestClose(cluster, latest, leaving)
		}
	}
}

// leavesSoon reports whether the proxy of a pod ends soon: the pod goes, or Serve has no more use for it.
func leavesSoon(cluster *Cluster, pod *corev1.Pod) bool {
	if pod.Annotations[v1beta1.AnnotationDrain] != "" {
		return true
	}
	return cluster.Heard && cluster.Answer.Serving.Running && !cluster.listsProxy(pod)
}

// freeCluster suspends a cluster: its pods go with a short grace, which the garbage collector would
// not give them.
func (v *provisioner) freeCluster(cluster *Cluster) {
	if ptr.Deref(cluster.Spec.Suspend, false) || cluster.DeletionTimestamp != nil {
		return
	}
	wanted := cluster.DeepCopy()
	wanted.Spec.Suspend = new(true)
	v.change = append(v.change, Change{Seen: cluster.ComputeCluster, Wanted: wanted})
}

// removeVersions takes away what the service runs.
func (v *provisioner) removeVersions() {
	if !v.ownsClusters() {
		v.removeApplications()
		return
	}
	for _, number := range []int{v.record.Active.Cluster, v.candidateNumber()} {
		if cluster := v.seen.Clusters[number]; cluster != nil {
			v.freeCluster(cluster)
		}
	}
	for _, cluster := range v.seen.Clusters {
		v.wakeIn(cluster.StrandsIn)
	}
}

// removeApplications takes the service's applications from a cluster that is not its own. The head knows the names of
// what was asked of it, so it is heard first.
func (v *provisioner) removeApplications() {
	cluster := v.findCluster(&v.record.Active)
	switch {
	case len(v.record.Applications) == 0 || !canBeAsked(cluster) || ptr.Deref(cluster.Spec.Suspend, false):
	case !cluster.Heard || cluster.Answer.At.IsZero():
		v.addWant(cluster, nil)
	default:
		v.addWant(cluster, &services.Config{
			Digest: leaveDigest(v.record.Applications), Applications: map[string]json.RawMessage{}, Drop: askedNames(v.state),
			Options: optionsOf(v.findRevision(v.record.Active.Revision), 100, cluster.Head),
		})
	}
}

// waitsForPods reports whether a cluster has pods that may yet end by themselves.
func (v *provisioner) waitsForPods(cluster *Cluster) bool {
	v.wakeIn(cluster.StrandsIn)
	return hasRemains(cluster)
}

// removeRetired lets clusters go that have no requests any more, once those that they had may have ended.
func (v *provisioner) removeRetired() {
	if !v.ownsClusters() {
		return
	}
	for _, retired := range v.record.Retiring {
		cluster := v.seen.Clusters[retired.Cluster]
		if retired.Held {
			v.askLast(cluster)
			continue
		}
		var left time.Duration
		if !retired.Unused {
			left = v.closeConnections(cluster, time.Unix(retired.At, 0)).Sub(v.now)
		}
		switch {
		case cluster.DeletionTimestamp != nil:
		case left > 0:
			v.wakeIn(left)
			v.askLast(cluster)
		case v.waitsForPods(cluster):
			v.freeCluster(cluster)
		default:
			v.events = append(v.events, leftBehind(cluster)...)
			v.discard = append(v.discard, cluster.ComputeCluster)
		}
	}
}

// lastParting returns the pods that leave a cluster and whose connections must be closed, and since when the last of them
// has no requests. left is after how long there is another.
func lastParting(s *state, cluster *Cluster) (leaving []*corev1.Pod, latest time.Time, left time.Duration) {
	var next timer
	for _, pod := range cluster.Pods {
		since, err := time.Parse(time.RFC3339, pod.Annotations[v1beta1.AnnotationClosed])
		if err != nil || s.hasRequests(pod) || s.isAttended(pod) || !isReachable(pod) || !leavesSoon(cluster, pod) {
			continue
		}
		if wait := since.Add(parting).Sub(s.now); wait > 0 {
			next.wakeIn(wait)
			continue
		}
		leaving = append(leaving, pod)
		if since.After(latest) {
			latest = since
		}
	}
	return leaving, latest, next.wake
}

// leftBehind returns the events about pods of a cluster that are not waited for any more.
func leftBehind(cluster *Cluster) []telemetry.Event {
	var events []telemetry.Event
	for _, pod := range cluster.Stranded {
		command := reason.Command(reconcile.OffCommand(pod.Spec.NodeName))
		events = append(events, eventOf(reason.PodStranded.Of(pod.Name, cluster.Name, pod.Spec.NodeName, command), "LeaveBehind"))
	}
	return events
}
