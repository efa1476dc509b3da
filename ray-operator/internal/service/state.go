package service

import (
	"net"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/serveconfig"
)

// state is what a pass decides on: what was seen, and the record. Its methods only read. All stages share one; advance
// alone writes it.
type state struct {
	service *v1beta1.ClusterService
	seen    *Seen
	site    desired.Site
	now     time.Time
	// target is what the spec asks for, as far as it can be followed; held: it cannot, so clusters stay as they are.
	target Revision
	held   bool
	record Record
}

// ownsClusters reports whether the service has clusters of its own.
func (s *state) ownsClusters() bool { return s.service.Spec.ClusterTemplate != nil }

// listVersions returns the versions that there are, the active one first.
func (s *state) listVersions() []*Side {
	sides := []*Side{&s.record.Active}
	if s.record.Candidate != nil {
		sides = append(sides, s.record.Candidate)
	}
	return sides
}

// findCluster returns the cluster of a side, nil if it is not there or goes.
func (s *state) findCluster(side *Side) *Cluster {
	if side == nil {
		return nil
	}
	found := s.seen.Clusters[side.Cluster]
	if found == nil || found.DeletionTimestamp != nil {
		return nil
	}
	return found
}

// clusterName returns the name of a side's cluster.
func (s *state) clusterName(side *Side) string {
	if ref := s.service.Spec.ClusterRef; ref != nil {
		return ref.Name
	}
	return naming.ServiceCluster(s.service.Name, s.service.UID, side.Cluster)
}

// nameOf names a cluster, also one that is not there.
func (s *state) nameOf(cluster *Cluster) string {
	switch {
	case cluster != nil:
		return cluster.Name
	case s.service.Spec.ClusterRef != nil:
		return s.service.Spec.ClusterRef.Name
	default:
		return s.clusterName(&s.record.Active)
	}
}

// findRevision returns a revision that is kept, or the target.
func (s *state) findRevision(id string) Revision {
	if id == s.target.ID {
		return s.target
	}
	return s.seen.Revisions[id]
}

// candidateNumber returns the number of the candidate's cluster, 0 if there is none.
func (s *state) candidateNumber() int {
	if s.record.Candidate == nil {
		return 0
	}
	return s.record.Candidate.Cluster
}

// proxyPorts returns the ports of the version that has the requests.
func (s *state) proxyPorts() desired.Ports {
	if id := s.record.Active.Revision; id != "" {
		if revision := s.findRevision(id); revision.ID != "" {
			return revision.proxyPorts()
		}
	}
	if s.target.ID != "" {
		return s.target.proxyPorts()
	}
	return desired.Ports{HTTP: 8000}
}

// isOpened reports whether a pod gets requests.
func (s *state) isOpened(pod *corev1.Pod) bool {
	return pod.Labels[naming.ServeLabel(s.service.Name)] == v1beta1.ServeOn
}

// isLed reports whether a gateway may lead requests to a pod.
func (s *state) isLed(pod *corev1.Pod) bool {
	return pod.Labels[naming.RouteLabel(s.service.Name)] == v1beta1.ServeOn
}

// hasRequests reports whether a pod may get requests by any way.
func (s *state) hasRequests(pod *corev1.Pod) bool { return s.isOpened(pod) || s.isLed(pod) }

// isAttended reports whether a pod may get requests by the service's own address: it must, or nodes may yet send it some,
// because an EndpointSlice still lists it.
func (s *state) isAttended(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && (s.isOpened(pod) || s.seen.Listed[pod.UID])
}

// hasServed reports whether the service ever had requests that may not have ended.
func (s *state) hasServed() bool { return s.record.Active.Good != "" && !s.record.Suspended }

// configuredRevision returns the revision whose configuration is asked of a side's head. While pods are
// replaced where they are it is the last good one, on a head that ran it or is to go: what is
// to come may need what only the new pods have, and is not to fail for the lack of it.
func (s *state) configuredRevision(side *Side) string {
	cluster := s.findCluster(side)
	if side.Good != "" && cluster != nil && cluster.Head != nil && side.Renewing == string(cluster.Head.UID) {
		return side.Good
	}
	return side.Revision
}

// capacityOf returns how much of the whole a side must have, in percent.
func (s *state) capacityOf(side *Side) int {
	switch {
	case s.record.Candidate == nil:
		return 100
	case side == s.record.Candidate:
		return s.record.Shift.Candidate
	default:
		return s.record.Shift.Active
	}
}

// boundsOf returns, by application and deployment, between how many replicas a side's Serve scales for the time of an
// upgrade: the candidate has the whole before it gets its share of the requests, and the active version keeps it from
// then on, to go back to.
func (s *state) boundsOf(side *Side) map[string]map[string]serveconfig.Bounds {
	record := &s.record
	if record.Candidate == nil || side != record.Candidate && record.Shift.Traffic == 0 {
		return nil
	}
	all := map[string]map[string]serveconfig.Bounds{}
	for _, application := range s.findRevision(s.configuredRevision(side)).Config.Applications {
		if held := record.Whole.boundsFor(application, s.capacityOf(side) < 100); len(held) > 0 {
			all[application.Name] = held
		}
	}
	return all
}

// requirementOf returns what a side's deployments have to run.
func (s *state) requirementOf(side *Side) requirement {
	switch {
	case s.record.Candidate == nil:
		return wished
	case side != s.record.Candidate:
		return s.record.Whole.ofActive
	}
	percent := 100
	if cluster := s.findCluster(side); cluster != nil {
		percent = capacityOf(cluster.Answer.Serving)
	}
	return s.record.Whole.ofCandidate(s.findRevision(s.configuredRevision(side)).Config, percent)
}

// digestOf names what is asked of a side's Serve.
func (s *state) digestOf(side *Side) string {
	asked := []any{s.configuredRevision(side), s.capacityOf(side)}
	if bounds := s.boundsOf(side); len(bounds) > 0 {
		asked = append(asked, bounds)
	}
	hash, _ := naming.ObjectHash(asked) // it always marshals
	return hash
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
