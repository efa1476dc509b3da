package service

import (
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
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

// probes are the questions to the proxies of a service.
type probes struct {
	// path is what is asked for, port where a proxy listens that the head does not name.
	path string
	port int32
	// candidate is the cluster of the candidate, nil if there is none.
	candidate *Cluster
	// isHTTPS: the proxies of the active version speak HTTPS only. isCandidateHTTPS: those of the candidate.
	isHTTPS, isCandidateHTTPS bool
	// address is the service's own Service, door that of the candidate; nil if there is none.
	address, door *corev1.Service
}

// probesOf returns the questions to the proxies of a service.
func probesOf(v view, states versionStates, sleeps bool) probes {
	p := probes{path: idlePath, port: v.proxyPorts(v.record.Active).HTTP, isHTTPS: speaksHTTPS(states.active, v.target)}
	if path := v.service.Spec.HealthPath; path != "" && !sleeps {
		p.path = path
	}
	p.address, _ = v.seen.Standing[kindService].Object.(*corev1.Service)
	if states.candidate != nil && states.candidate.cluster != nil {
		p.candidate, p.isCandidateHTTPS = states.candidate.cluster, speaksHTTPS(*states.candidate, v.target)
		p.door = v.seen.Versions[naming.ServeVersion(p.candidate.Name)]
	}
	return p
}

// speaksHTTPS reports whether the proxies of a version speak HTTPS only, by what it runs, or by the target where that is
// not known.
func speaksHTTPS(version versionState, target Revision) bool {
	if version.configured.ID != "" {
		return version.configured.Config.HTTPS
	}
	return target.Config.HTTPS
}

// probeOf returns the question to the proxy of a pod.
func (p probes) probeOf(cluster *Cluster, pod *corev1.Pod) services.Probe {
	isHTTPS := p.isHTTPS
	if cluster == p.candidate {
		isHTTPS = p.isCandidateHTTPS
	}
	return services.Probe{Pod: pod.UID, Address: address(pod, cluster.proxyPort(pod, p.port)), Path: p.path, TLS: isHTTPS}
}

// proxyPort returns where the proxy of a pod listens, as the head says, or otherwise the default.
func (c *Cluster) proxyPort(pod *corev1.Pod, otherwise int32) int32 {
	for _, target := range c.Answer.Serving.Targets {
		if target.Instance == string(pod.UID) && target.Protocol == "HTTP" {
			return target.Port
		}
	}
	return otherwise
}

// candidateDoor returns the question to the candidate through its Service, if it is its cluster and there
// is one to ask.
func (p probes) candidateDoor(cluster *Cluster) (services.Probe, bool) {
	if cluster == nil || cluster != p.candidate {
		return services.Probe{}, false
	}
	return p.doorOf(p.door)
}

// serviceDoor returns the question to the applications through the service's own address, if it has one that
// can be asked.
func (p probes) serviceDoor() (services.Probe, bool) { return p.doorOf(p.address) }

// doorOf returns the question to the applications through a Service, false where there is none to ask.
func (p probes) doorOf(found *corev1.Service) (services.Probe, bool) {
	if found == nil || found.Spec.ClusterIP == "" || found.Spec.ClusterIP == corev1.ClusterIPNone || len(found.Spec.Ports) == 0 {
		return services.Probe{}, false
	}
	port := strconv.Itoa(int(found.Spec.Ports[0].Port))
	return services.Probe{Address: net.JoinHostPort(found.Spec.ClusterIP, port), Path: p.path, TLS: p.isHTTPS}, true
}

// countAnswers returns how many of the pods answer through their proxies and how many do not, as far as
// that is known, and what is the matter with the first other one.
func countAnswers(p proxies, cluster *Cluster, pods []*corev1.Pod) (answering, failed int, finding reason.Finding) {
	if len(pods) == 0 {
		return 0, 0, reason.NoEndpoints.Of(cluster.Name, p.explainNoProxy(cluster))
	}
	for _, pod := range pods {
		reply, known := cluster.Answer.Probes[p.probeOf(cluster, pod)]
		switch {
		case known && reply.OK, known && p.hasRequests(pod) && reply.Times < failing: // one that serves is well until it is known better
			answering++
		case known && reply.Times >= failing && !strings.Contains(reply.Why, drained):
			if failed++; finding.Code != reason.ProxyFailing.Code {
				finding = reason.ProxyFailing.Of(pod.Name, p.path, cut(reply.Why))
			}
		case finding.Code == "":
			finding = reason.ServeProving.Of(cluster.Name)
		}
	}
	return answering, failed, finding
}

// isReached reports whether a service that was not ready answers through its own address: endpoints
// that were just given are known to nodes a moment later.
func isReached(service *v1beta1.ClusterService, clusters map[int]*Cluster, p probes) bool {
	door, there := p.serviceDoor()
	if !there || wasReady(service) {
		return true
	}
	for _, cluster := range clusters {
		if cluster.Heard && cluster.Answer.Probes[door].OK {
			return true
		}
	}
	return false
}
