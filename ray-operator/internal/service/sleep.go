package service

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/serveconfig"
)

// idlePath is what Serve's proxies answer themselves. It is no request to an application, which would wake it.
const idlePath = "/-/healthz"

// sleeps reports whether Serve runs no replica of some deployment of an application because no requests come, or is
// starting the first one because one came.
func sleeps(application headclient.Application) bool {
	return slices.ContainsFunc(application.Deployments, func(d headclient.Deployment) bool {
		return d.Running == 0 && (d.Wanted == 0 || scaling(d))
	})
}

// sleepsOn reports whether one of the service's applications sleeps on a cluster.
func (p *planner) sleepsOn(cluster *Cluster) bool {
	ids := []string{p.record.Active.Revision, p.record.Active.Good}
	if candidate := p.record.Candidate; candidate != nil {
		ids = append(ids, candidate.Revision)
	}
	return cluster.Heard && slices.ContainsFunc(ids, func(id string) bool {
		return slices.ContainsFunc(p.revision(id).Config.Applications, func(a serveconfig.Application) bool {
			return sleeps(cluster.Answer.Serving.Applications[a.Name])
		})
	})
}

// canSleep reports whether a version of the service may come to have no replica, so that nothing but Serve's own path
// may be asked for.
func (p *planner) canSleep() bool {
	sides := []*Side{&p.record.Active, p.record.Candidate}
	if p.target.Config.CanSleep || slices.ContainsFunc(sides, func(s *Side) bool { return s != nil && p.revision(s.Revision).Config.CanSleep }) {
		return true
	}
	for _, cluster := range p.seen.Clusters {
		if p.sleepsOn(cluster) {
			return true
		}
	}
	return false
}

// forbidsHead reports whether the user keeps requests from heads.
func (p *planner) forbidsHead() bool {
	given := p.service.Spec.Service
	return given != nil && given.HeadEndpoints != nil && !*given.HeadEndpoints
}

// substitute is the head of a cluster where its proxy takes the requests in the place of workers, nil where it need not:
// Serve leaves none on a worker without replicas, and wakes an application by a request to the head's. It stays until a
// worker's answers.
func (p *planner) substitute(cluster *Cluster, workers []*corev1.Pod) *corev1.Pod {
	head := cluster.Head
	switch {
	case head == nil || p.forbidsHead() || slices.Contains(workers, head):
		return nil
	case !reachable(head) || head.Annotations[v1alpha1.AnnotationDrain] != "" || !cluster.lists(head):
		return nil
	case !p.sleepsOn(cluster) && !p.serves(head):
		return nil
	case slices.ContainsFunc(workers, func(pod *corev1.Pod) bool { return cluster.Answer.Probes[p.probe(cluster, pod)].OK }):
		return nil
	}
	return head
}

// noProxy says why no pod of a cluster takes requests.
func (p *planner) noProxy(cluster *Cluster) string {
	if p.forbidsHead() && p.sleepsOn(cluster) {
		return "all replicas are scaled to zero, and service.headEndpoints keeps the requests from the head that would wake them"
	}
	return "Serve has no proxy there yet"
}
