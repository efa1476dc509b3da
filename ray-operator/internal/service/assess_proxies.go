package service

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
)

// proxies says which pods of a service's clusters may take requests, and how their proxies are asked.
type proxies struct {
	traffic
	probes
	// onHead: the head takes requests too, or must not; nil where the user does not say.
	onHead *bool
	// rolled is the cluster whose workers are replaced where they are while its head stays, nil if there is none.
	rolled *Cluster
	// applications are the names of all that the service's versions run.
	applications []string
}

// proxiesOf returns which pods of a service's clusters may take requests, with the versions that it has.
func proxiesOf(v view, states versionStates) proxies {
	p := proxies{traffic: trafficOf(v.service, v.seen)}
	if given := v.service.Spec.Service; given != nil {
		p.onHead = given.HeadEndpoints
	}
	active := states.active
	if active.Renewing != "" && active.cluster != nil && !isRecreated(active.cluster.ComputeCluster) {
		p.rolled = active.cluster
	}
	running := []Revision{active.revision, v.find(active.Good)}
	canSleep := v.target.Config.CanSleep || active.revision.Config.CanSleep
	if candidate := states.candidate; candidate != nil {
		running = append(running, candidate.revision)
		canSleep = canSleep || candidate.revision.Config.CanSleep
	}
	for _, revision := range running {
		p.applications = append(p.applications, revision.applicationNames()...)
	}
	for _, cluster := range v.seen.Clusters {
		canSleep = canSleep || p.sleepsOn(cluster)
	}
	p.probes = probesOf(v, states, canSleep)
	return p
}

// eligiblePods returns the pods of a cluster whose proxies take requests, in the order of their names:
// those that the head names, of a head that answers. While it does not, those that have
// requests keep them: no data is not zero.
func (p proxies) eligiblePods(cluster *Cluster) []*corev1.Pod {
	answer := &cluster.Answer
	if !cluster.Heard || answer.At.IsZero() || !answer.Serving.Running {
		return p.stillHaving(cluster, p.hasRequests)
	}
	open := p.listedPods(cluster)
	if head := p.substituteHead(cluster, open); head != nil {
		return []*corev1.Pod{head}
	}
	if len(open) == 0 {
		return p.stillHaving(cluster, p.hasRequests)
	}
	return open
}

// listedPods returns the pods of a cluster that may serve and whose proxies the head names, in the order of their
// names.
func (p proxies) listedPods(cluster *Cluster) []*corev1.Pod {
	var open []*corev1.Pod
	for _, pod := range cluster.Pods {
		if cluster.listsProxy(pod) && p.mayServe(cluster, pod) {
			open = append(open, pod)
		}
	}
	slices.SortFunc(open, byName)
	return open
}

// probedPods returns the pods of a cluster whose proxies are asked: also those of workers in whose place the head takes
// requests until they answer.
func (p proxies) probedPods(cluster *Cluster) []*corev1.Pod {
	pods := p.eligiblePods(cluster)
	for _, pod := range p.listedPods(cluster) {
		if cluster.Heard && cluster.Answer.Serving.Running && !slices.Contains(pods, pod) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// listsProxy reports whether the head names a pod's proxy as one that takes requests.
func (c *Cluster) listsProxy(pod *corev1.Pod) bool {
	return slices.ContainsFunc(c.Answer.Serving.Targets, func(target headclient.Target) bool { return target.Instance == string(pod.UID) })
}

// stillHaving returns the pods of a cluster that have something and are not on their way out, and those that
// are where there is no other: a proxy that drains goes on answering.
func (p proxies) stillHaving(cluster *Cluster, has func(*corev1.Pod) bool) []*corev1.Pod {
	if cluster == nil {
		return nil
	}
	var open, leaving []*corev1.Pod
	for _, pod := range cluster.Pods {
		switch {
		case !has(pod) || !isReachable(pod):
		case p.mayServe(cluster, pod):
			open = append(open, pod)
		default:
			leaving = append(leaving, pod)
		}
	}
	if len(open) == 0 {
		open = leaving
	}
	slices.SortFunc(open, byName)
	return open
}

// isReachable reports whether a pod is there and can be reached.
func isReachable(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.PodIP != "" && reconcile.Ready(pod)
}

// mayServe reports whether a pod of a cluster stays and is of those that take requests.
func (p proxies) mayServe(cluster *Cluster, pod *corev1.Pod) bool {
	if !isReachable(pod) || pod.Annotations[v1beta1.AnnotationDrain] != "" {
		return false
	}
	return pod.Labels[v1beta1.LabelRole] != v1beta1.RoleHead || p.headServes(cluster)
}

// headServes reports whether the head's proxy takes requests too: where the user says so, and by
// default where there are no workers, or while they are replaced one after another. The last
// one may then go before the next has a proxy.
func (p proxies) headServes(cluster *Cluster) bool {
	if p.onHead != nil {
		return *p.onHead
	}
	return cluster == p.rolled || len(cluster.Spec.WorkerGroups) == 0
}

// forbidsHead reports whether the user keeps requests from heads.
func (p proxies) forbidsHead() bool { return p.onHead != nil && !*p.onHead }

// substituteHead returns the head of a cluster where its proxy takes the requests in the place of workers, nil where it
// need not: Serve leaves none on a worker without replicas, and wakes an application by a request to the head's. It
// stays until a worker's answers.
func (p proxies) substituteHead(cluster *Cluster, workers []*corev1.Pod) *corev1.Pod {
	head := cluster.Head
	switch {
	case head == nil || p.forbidsHead() || slices.Contains(workers, head):
		return nil
	case !isReachable(head) || head.Annotations[v1beta1.AnnotationDrain] != "" || !cluster.listsProxy(head):
		return nil
	case !p.sleepsOn(cluster) && !p.hasRequests(head):
		return nil
	case slices.ContainsFunc(workers, func(pod *corev1.Pod) bool { return cluster.Answer.Probes[p.probeOf(cluster, pod)].OK }):
		return nil
	}
	return head
}

// explainNoProxy says why no pod of a cluster takes requests.
func (p proxies) explainNoProxy(cluster *Cluster) string {
	if p.forbidsHead() && p.sleepsOn(cluster) {
		return "all replicas are scaled to zero, and service.headEndpoints keeps the requests from the head that would wake them"
	}
	return "Serve has no proxy there yet"
}

// isAsleep reports whether Serve runs no replica of some deployment of an application because no requests come, or is
// starting the first one because one came.
func isAsleep(application headclient.Application) bool {
	return slices.ContainsFunc(application.Deployments, func(d headclient.Deployment) bool {
		return d.Running == 0 && (d.Wanted == 0 || isScaling(d))
	})
}

// sleepsOn reports whether one of the service's applications sleeps on a cluster.
func (p proxies) sleepsOn(cluster *Cluster) bool {
	return cluster.Heard && slices.ContainsFunc(p.applications, func(name string) bool {
		return isAsleep(cluster.Answer.Serving.Applications[name])
	})
}
