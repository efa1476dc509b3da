package service

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/serveconfig"
)

// eligiblePods returns the pods of a cluster whose proxies take requests, in the order of their names:
// those that the head names, of a head that answers. While it does not, those that have
// requests keep them: no data is not zero.
func eligiblePods(s *state, cluster *Cluster) []*corev1.Pod {
	answer := &cluster.Answer
	if !cluster.Heard || answer.At.IsZero() || !answer.Serving.Running {
		return stillServing(s, cluster)
	}
	open := listedPods(s, cluster)
	if head := substituteHead(s, cluster, open); head != nil {
		return []*corev1.Pod{head}
	}
	if len(open) == 0 {
		return stillServing(s, cluster)
	}
	return open
}

// listedPods returns the pods of a cluster that may serve and whose proxies the head names, in the order of their
// names.
func listedPods(s *state, cluster *Cluster) []*corev1.Pod {
	var open []*corev1.Pod
	for _, pod := range cluster.Pods {
		if cluster.listsProxy(pod) && mayServe(s, pod) {
			open = append(open, pod)
		}
	}
	slices.SortFunc(open, byName)
	return open
}

// probedPods returns the pods of a cluster whose proxies are asked: also those of workers in whose place the head takes
// requests until they answer.
func probedPods(s *state, cluster *Cluster) []*corev1.Pod {
	pods := eligiblePods(s, cluster)
	for _, pod := range listedPods(s, cluster) {
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

// stillServing returns the pods of a cluster that have requests by some way and are not on their way
// out. Where all are, it is those: a proxy that drains goes on answering.
func stillServing(s *state, cluster *Cluster) []*corev1.Pod {
	return stillHaving(s, cluster, s.hasRequests)
}

// stillHaving returns the pods of a cluster that have something and are not on their way out, and those that
// are where there is no other.
func stillHaving(s *state, cluster *Cluster, has func(*corev1.Pod) bool) []*corev1.Pod {
	if cluster == nil {
		return nil
	}
	var open, leaving []*corev1.Pod
	for _, pod := range cluster.Pods {
		switch {
		case !has(pod) || !isReachable(pod):
		case mayServe(s, pod):
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

// mayServe reports whether a pod stays and is of those that take requests.
func mayServe(s *state, pod *corev1.Pod) bool {
	if !isReachable(pod) || pod.Annotations[v1beta1.AnnotationDrain] != "" {
		return false
	}
	return pod.Labels[v1beta1.LabelRole] != v1beta1.RoleHead || headServes(s, pod.Labels[v1beta1.LabelCluster])
}

// headServes reports whether the head's proxy takes requests too: where the user says so, and by
// default where there are no workers, or while they are replaced one after another. The last
// one may then go before the next has a proxy.
func headServes(s *state, cluster string) bool {
	if given := s.service.Spec.Service; given != nil && given.HeadEndpoints != nil {
		return *given.HeadEndpoints
	}
	if rollsWorkers(s, cluster) {
		return true
	}
	for _, own := range s.seen.Clusters {
		if own.Name == cluster {
			return len(own.Spec.WorkerGroups) == 0
		}
	}
	return false
}

// rollsWorkers reports whether the workers of a cluster are replaced where they are, by its name, and its
// head stays.
func rollsWorkers(s *state, name string) bool {
	active := &s.record.Active
	cluster := s.findCluster(active)
	return active.Renewing != "" && cluster != nil && cluster.Name == name && !isRecreated(cluster.ComputeCluster)
}

// substituteHead returns the head of a cluster where its proxy takes the requests in the place of workers, nil where it
// need not: Serve leaves none on a worker without replicas, and wakes an application by a request to the head's. It
// stays until a worker's answers.
func substituteHead(s *state, cluster *Cluster, workers []*corev1.Pod) *corev1.Pod {
	head := cluster.Head
	switch {
	case head == nil || forbidsHead(s.service) || slices.Contains(workers, head):
		return nil
	case !isReachable(head) || head.Annotations[v1beta1.AnnotationDrain] != "" || !cluster.listsProxy(head):
		return nil
	case !sleepsOn(s, cluster) && !s.hasRequests(head):
		return nil
	case slices.ContainsFunc(workers, func(pod *corev1.Pod) bool { return cluster.Answer.Probes[probeOf(s, cluster, pod)].OK }):
		return nil
	}
	return head
}

// explainNoProxy says why no pod of a cluster takes requests.
func explainNoProxy(s *state, cluster *Cluster) string {
	if forbidsHead(s.service) && sleepsOn(s, cluster) {
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
func sleepsOn(s *state, cluster *Cluster) bool {
	ids := []string{s.record.Active.Revision, s.record.Active.Good}
	if candidate := s.record.Candidate; candidate != nil {
		ids = append(ids, candidate.Revision)
	}
	return cluster.Heard && slices.ContainsFunc(ids, func(id string) bool {
		return slices.ContainsFunc(s.findRevision(id).Config.Applications, func(a serveconfig.Application) bool {
			return isAsleep(cluster.Answer.Serving.Applications[a.Name])
		})
	})
}

// canSleep reports whether a version of the service may come to have no replica, so that nothing but Serve's own path
// may be asked for.
func canSleep(s *state) bool {
	sides := []*Side{&s.record.Active, s.record.Candidate}
	may := func(side *Side) bool { return side != nil && s.findRevision(side.Revision).Config.CanSleep }
	if s.target.Config.CanSleep || slices.ContainsFunc(sides, may) {
		return true
	}
	for _, cluster := range s.seen.Clusters {
		if sleepsOn(s, cluster) {
			return true
		}
	}
	return false
}
