package service

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/services"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// failing is how many answers in a row tell that a proxy is not well: one may be lost.
const failing = 3

// idlePath is what Serve's proxies answer themselves. It is no request to an application, which would wake it.
const idlePath = services.IdlePath

// drained is what Serve's proxy says of itself on a Ray node that its last replica has left. It goes on answering
// requests, and the head names the proxy of the replica's new place a moment later.
const drained = "This node is being drained."

// prompt is how long after it was noted that nobody is led to a cluster any more that may still be
// to be done.
const prompt = 2 * time.Second

// countAnswers returns how many of the pods answer through their proxies and how many do not, as far as
// that is known, and what is the matter with the first other one.
func countAnswers(s *state, cluster *Cluster, pods []*corev1.Pod) (answering, failed int, finding reason.Finding) {
	if len(pods) == 0 {
		return 0, 0, reason.NoEndpoints.Of(cluster.Name, explainNoProxy(s, cluster))
	}
	for _, pod := range pods {
		reply, known := cluster.Answer.Probes[probeOf(s, cluster, pod)]
		switch {
		case known && reply.OK, known && s.hasRequests(pod) && reply.Times < failing: // one that serves is well until it is known better
			answering++
		case known && reply.Times >= failing && !strings.Contains(reply.Why, drained):
			if failed++; finding.Code != reason.ProxyFailing.Code {
				finding = reason.ProxyFailing.Of(pod.Name, healthPath(s), cut(reply.Why))
			}
		case finding.Code == "":
			finding = reason.ServeProving.Of(cluster.Name)
		}
	}
	return answering, failed, finding
}

// probeOf returns the question to the proxy of a pod.
func probeOf(s *state, cluster *Cluster, pod *corev1.Pod) services.Probe {
	return services.Probe{Pod: pod.UID, Address: address(pod, proxyPort(s, cluster, pod)), Path: healthPath(s), TLS: speaksTLS(s, cluster)}
}

// speaksTLS reports whether the proxies of a cluster speak HTTPS only, by what its own version says.
func speaksTLS(s *state, cluster *Cluster) bool {
	side := &s.record.Active
	if candidate := s.record.Candidate; candidate != nil && cluster != nil && cluster == s.findCluster(candidate) {
		side = candidate
	}
	if id := s.configuredRevision(side); id != "" && s.findRevision(id).ID != "" {
		return s.findRevision(id).Config.HTTPS
	}
	return s.target.Config.HTTPS
}

// healthPath returns what proxies are asked for.
func healthPath(s *state) string {
	if path := s.service.Spec.HealthPath; path != "" && !canSleep(s) {
		return path
	}
	return idlePath
}

// proxyPort returns where the proxy of a pod listens.
func proxyPort(s *state, cluster *Cluster, pod *corev1.Pod) int32 {
	for _, target := range cluster.Answer.Serving.Targets {
		if target.Instance == string(pod.UID) && target.Protocol == "HTTP" {
			return target.Port
		}
	}
	return s.proxyPorts().HTTP
}

// candidateDoor returns the question to the candidate through its Service, if it is its cluster and there
// is one to ask.
func candidateDoor(s *state, cluster *Cluster) (services.Probe, bool) {
	if cluster == nil || s.record.Candidate == nil || cluster.Name != s.clusterName(s.record.Candidate) {
		return services.Probe{}, false
	}
	return doorOf(s, s.seen.Versions[naming.ServeVersion(cluster.Name)])
}

// serviceDoor returns the question to the applications through the service's own address, if it has one that
// can be asked.
func serviceDoor(s *state) (services.Probe, bool) {
	found, _ := s.seen.Standing[kindService].Object.(*corev1.Service)
	return doorOf(s, found)
}

// doorOf returns the question to the applications through a Service, nil where it is not there.
func doorOf(s *state, found *corev1.Service) (services.Probe, bool) {
	if found == nil || found.Spec.ClusterIP == "" || found.Spec.ClusterIP == corev1.ClusterIPNone || len(found.Spec.Ports) == 0 {
		return services.Probe{}, false
	}
	port := strconv.Itoa(int(found.Spec.Ports[0].Port))
	return services.Probe{Address: net.JoinHostPort(found.Spec.ClusterIP, port), Path: healthPath(s), TLS: speaksTLS(s, nil)}, true
}

// isReached reports whether a service that was not ready answers through its own address: endpoints
// that were just given are known to nodes a moment later.
func isReached(s *state) bool {
	door, there := serviceDoor(s)
	if !there || wasReady(s.service) {
		return true
	}
	for _, cluster := range s.seen.Clusters {
		if cluster.Heard && cluster.Answer.Probes[door].OK {
			return true
		}
	}
	return false
}

// hasOpenPods reports whether anybody may be led to a pod of a cluster by the service's own address. A gateway
// that still knows the pods has no weight for them.
func hasOpenPods(s *state, cluster *Cluster) bool {
	return cluster != nil && slices.ContainsFunc(cluster.Pods, s.isAttended)
}

// lastRoutedAt returns since when nobody is led to some clusters, in Unix seconds: what was noted, or now where
// somebody still is. It is noted before it is done, and an operator may have been away in between;
// who was led there meanwhile has all the time to end.
func lastRoutedAt(s *state, noted int64, clusters ...*Cluster) int64 {
	if since(noted, s.now) > prompt && slices.ContainsFunc(clusters, func(c *Cluster) bool { return hasOpenPods(s, c) }) {
		return s.now.Unix()
	}
	return noted
}
