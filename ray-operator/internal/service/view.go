package service

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/serveconfig"
)

// view is what a stage reads: the service, what was seen of it, what its spec asks for, and the record. It is passed by
// value. Only advance writes a record, into a copy of its own.
type view struct {
	service *v1beta1.ClusterService
	seen    *Seen
	site    desired.Site
	now     time.Time
	revisions
	record Record
}

// revisions are the revisions that versions may be of.
type revisions struct {
	// target is what the spec asks for, as far as it can be followed; held: it cannot, so clusters stay as they are.
	target Revision
	held   bool
	known  map[string]Revision
}

// find returns a revision that is kept, or the target.
func (r revisions) find(id string) Revision {
	if id == r.target.ID {
		return r.target
	}
	return r.known[id]
}

// proxyPorts returns the ports of the proxies where a version has the requests.
func (r revisions) proxyPorts(active Version) desired.Ports {
	if id := active.Revision; id != "" {
		if revision := r.find(id); revision.ID != "" {
			return revision.proxyPorts()
		}
	}
	if r.target.ID != "" {
		return r.target.proxyPorts()
	}
	return desired.Ports{HTTP: 8000}
}

// versionState is a version with its cluster and its revisions.
type versionState struct {
	Version
	// clusterName names its cluster, also one that is not there. cluster is nil where it is not there or goes.
	clusterName string
	cluster     *Cluster
	// revision is what it runs or must run; configured is the one whose configuration is asked of its head.
	revision, configured Revision
	// capacity is how much of the whole it must have, in percent. bounds are those that Serve is given meanwhile, by
	// application and deployment.
	capacity int
	bounds   map[string]map[string]serveconfig.Bounds
}

// versionStates are both versions; candidate is nil if there is none.
type versionStates struct {
	active    versionState
	candidate *versionState
}

// list returns the versions that there are, the active one first.
func (s versionStates) list() []versionState {
	if s.candidate == nil {
		return []versionState{s.active}
	}
	return []versionState{s.active, *s.candidate}
}

// stateOf returns a version with what belongs to it.
func (v view) stateOf(version Version) versionState {
	cluster := v.seen.findCluster(version.Cluster)
	state := versionState{
		Version: version, cluster: cluster,
		revision: v.find(version.Revision), configured: v.find(version.configuredRevision(cluster)), capacity: v.record.capacityOf(version),
	}
	if cluster != nil {
		state.clusterName = cluster.Name
	} else {
		state.clusterName = clusterName(v.service, version.Cluster)
	}
	state.bounds = v.record.boundsOf(version, state.configured.Config)
	return state
}

// states returns both versions of the record.
func (v view) states() versionStates {
	states := versionStates{active: v.stateOf(v.record.Active)}
	if v.record.Candidate != nil {
		candidate := v.stateOf(*v.record.Candidate)
		states.candidate = &candidate
	}
	return states
}

// digest names what is asked of a version's Serve.
func (s versionState) digest() string {
	asked := []any{s.configuredRevision(s.cluster), s.capacity}
	if len(s.bounds) > 0 {
		asked = append(asked, s.bounds)
	}
	hash, _ := naming.ObjectHash(asked) // it always marshals
	return hash
}

// configuredRevision returns the revision whose configuration is asked of the head of a version's cluster. While pods are
// replaced where they are it is the last good one, on a head that ran it or is to go: what is
// to come may need what only the new pods have, and is not to fail for the lack of it.
func (v Version) configuredRevision(cluster *Cluster) string {
	if v.Good != "" && cluster != nil && cluster.Head != nil && v.Renewing == string(cluster.Head.UID) {
		return v.Good
	}
	return v.Revision
}

// findCluster returns the cluster of a number, nil if it is not there or goes.
func (s *Seen) findCluster(number int) *Cluster {
	found := s.Clusters[number]
	if found == nil || found.DeletionTimestamp != nil {
		return nil
	}
	return found
}

// findCandidate returns the cluster of a candidate, nil if there is no candidate, or its cluster is not there or goes.
func (s *Seen) findCandidate(candidate *Version) *Cluster {
	if candidate == nil {
		return nil
	}
	return s.findCluster(candidate.Cluster)
}

// ownsClusters reports whether a service has clusters of its own.
func ownsClusters(service *v1beta1.ClusterService) bool { return service.Spec.ClusterTemplate != nil }

// clusterName returns the name of the cluster that a service refers to, or of that of its own with a number.
func clusterName(service *v1beta1.ClusterService, number int) string {
	if ref := service.Spec.ClusterRef; ref != nil {
		return ref.Name
	}
	return naming.ServiceCluster(service.Name, service.UID, number)
}

// traffic says which pods may get requests for a service.
type traffic struct {
	service string
	// listed are the pods, by UID, that EndpointSlices of the service's address list.
	listed map[types.UID]bool
}

// trafficOf returns which pods may get requests for a service.
func trafficOf(service *v1beta1.ClusterService, seen *Seen) traffic {
	return traffic{service: service.Name, listed: seen.Listed}
}

// isOpened reports whether a pod gets requests.
func (t traffic) isOpened(pod *corev1.Pod) bool {
	return pod.Labels[naming.ServeLabel(t.service)] == v1beta1.ServeOn
}

// isLed reports whether a gateway may lead requests to a pod.
func (t traffic) isLed(pod *corev1.Pod) bool {
	return pod.Labels[naming.RouteLabel(t.service)] == v1beta1.ServeOn
}

// hasRequests reports whether a pod may get requests by any way.
func (t traffic) hasRequests(pod *corev1.Pod) bool { return t.isOpened(pod) || t.isLed(pod) }

// isAttended reports whether a pod may get requests by the service's own address: it must, or nodes may yet send it some,
// because an EndpointSlice still lists it.
func (t traffic) isAttended(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && (t.isOpened(pod) || t.listed[pod.UID])
}

// hasOpenPods reports whether anybody may be led to a pod of a cluster by the service's own address. A gateway
// that still knows the pods has no weight for them.
func (t traffic) hasOpenPods(cluster *Cluster) bool {
	return cluster != nil && slices.ContainsFunc(cluster.Pods, t.isAttended)
}

// prompt is how long after it was noted that nobody is led to a cluster any more that may still be
// to be done.
const prompt = 2 * time.Second

// lastRoutedAt returns since when nobody is led to some clusters, in Unix seconds: what was noted, or now where
// somebody still is. It is noted before it is done, and an operator may have been away in between;
// who was led there meanwhile has all the time to end.
func (t traffic) lastRoutedAt(noted int64, now time.Time, clusters ...*Cluster) int64 {
	if since(noted, now) > prompt && slices.ContainsFunc(clusters, t.hasOpenPods) {
		return now.Unix()
	}
	return noted
}

// canBeAsked reports whether a cluster has a head with an address.
func canBeAsked(cluster *Cluster) bool {
	return cluster != nil && cluster.Head != nil && cluster.Head.Status.PodIP != ""
}

// timer is after how long to look again though nothing happened; 0 is never.
type timer struct{ wake time.Duration }

// wakeIn asks to look again after a while, if nothing asks for sooner.
func (t *timer) wakeIn(wait time.Duration) {
	if wait > 0 && (t.wake == 0 || wait < t.wake) {
		t.wake = wait
	}
}

func byName(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) }

func address(pod *corev1.Pod, port int32) string {
	return net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port)))
}

// longest is how many bytes of others' words a text of ours takes.
const longest = 400

// cut keeps the end of a text, which says most.
func cut(value any) string {
	text := strings.ToValidUTF8(strings.Join(strings.Fields(wordsOf(value)), " "), "")
	if runes := []rune(text); len(runes) > longest {
		return "… " + string(runes[len(runes)-longest:])
	}
	return text
}

func wordsOf(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case error:
		return value.Error()
	default:
		return ""
	}
}
