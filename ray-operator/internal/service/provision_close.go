package service

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
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
	switch active := v.states.active.cluster; {
	case v.baking:
		v.closeConnections(active, v.record.Shift.At)
	case !v.since.IsZero():
		v.closeConnections(active, v.since)
		v.closeConnections(v.seen.findCandidate(v.record.Candidate), v.since)
	}
}

// closeConnections has a cluster of the service's own, which has had no requests since a moment, end the
// connections that clients keep, once it is time.
func (v *provisioner) closeConnections(cluster *Cluster, since time.Time) {
	left := closesAt(v.service, since).Sub(v.now)
	switch {
	case !keepsConnections(v.service, cluster):
	case left > 0:
		v.wakeIn(left)
	case v.proxies.hasOpenPods(cluster): // a connection that is opened after it would be kept
	default:
		v.requestClose(cluster, since, cluster.Pods)
	}
}

// keepsConnections reports whether clients may keep connections to a cluster that is the service's own.
func keepsConnections(service *v1beta1.ClusterService, cluster *Cluster) bool {
	return ownsClusters(service) && cluster != nil && cluster.Head != nil
}

// closesAt returns when the connections are closed that clients keep to a cluster, which has had no requests since a moment:
// in the second half of the drain, as until then most have come to their end. In a long drain it is later, so that HAProxy
// cuts no request before the drain is over.
func closesAt(service *v1beta1.ClusterService, since time.Time) time.Time {
	drain := drainOf(service)
	return since.Add(max(drain/2, drain-hardStop))
}

// staysUntil returns until when a cluster stays that has had no requests since a moment: until they may have ended, and the
// connections are closed that clients keep. isOpen: somebody may yet be led there.
func staysUntil(service *v1beta1.ClusterService, cluster *Cluster, since, now time.Time, isOpen bool) time.Time {
	drained := since.Add(drainOf(service))
	switch {
	case !keepsConnections(service, cluster):
		return drained
	case isOpen || now.Before(closesAt(service, since)) || !cluster.Heard || cluster.Answer.Closed != closeID(since):
		return drained.Add(closeFor)
	}
	if answered := cluster.Answer.ClosedAt.Add(min(drainOf(service)/2, lastAnswers)); answered.After(drained) {
		return answered
	}
	return drained
}

// closeID returns the name of the job that closes the connections that clients keep to pods without requests since a moment.
func closeID(since time.Time) string { return fmt.Sprintf("heliostat-close-%d", since.Unix()) }

// requestClose has a job end the connections that clients keep to a cluster, once for each moment that it is named by.
// Pods that leave, and that no service leads to, end their gRPC channels as well.
func (v *provisioner) requestClose(cluster *Cluster, since time.Time, leaving []*corev1.Pod) {
	closing := headclient.Closing{ID: closeID(since), Grace: drainOf(v.service)}
	for _, pod := range leaving {
		if pod.Status.PodIP != "" && !isServing(pod) {
			closing.Leaving = append(closing.Leaving, pod.Status.PodIP)
		}
	}
	slices.Sort(closing.Leaving)
	v.closing[cluster.Name] = closing
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
	for _, version := range v.states.list() {
		cluster := version.cluster
		if cluster == nil {
			continue
		}
		if _, all := v.closing[cluster.Name]; all {
			continue
		}
		leaving, latest, left := lastParting(v.proxies.traffic, cluster, v.now)
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

// lastParting returns the pods that leave a cluster and whose connections must be closed, and since when the last of them
// has no requests. left is after how long there is another.
func lastParting(t traffic, cluster *Cluster, now time.Time) (leaving []*corev1.Pod, latest time.Time, left time.Duration) {
	var next timer
	for _, pod := range cluster.Pods {
		since, err := time.Parse(time.RFC3339, pod.Annotations[v1beta1.AnnotationClosed])
		if err != nil || t.hasRequests(pod) || t.isAttended(pod) || !isReachable(pod) || !leavesSoon(cluster, pod) {
			continue
		}
		if wait := since.Add(parting).Sub(now); wait > 0 {
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
