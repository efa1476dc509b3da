package service

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/headwatch/serving"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pass"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

const (
	// silentAfter is for how long a head that says nothing is not told of: it may have just
	// come back.
	silentAfter = 20 * time.Second
	// failing is how many answers in a row tell that a proxy is not well: one may be lost.
	failing = 3
)

// missing is the state of an application that Serve does not know.
const missing = "MISSING"

// Health is how a version is on its cluster.
type Health struct {
	// Well: all applications run with all their replicas, and the proxies answer.
	Well bool
	// Ready is how much of its capacity is up, in percent; 0 where it is sick.
	Ready int
	// Failed: it will not get well by itself.
	Failed bool
	// Told: the head said what its applications do, since it took what is asked of it. Silent:
	// it has not answered for so long that what it said before counts no more.
	Told, Silent bool
	// Assumed: nothing is known of it, and it was well before. Ready is then what its proxies make likely.
	Assumed bool
	// Asked: a proxy has answered, or not often enough. Answers: one does, and no deployment that
	// Serve tells of is without a replica, whatever becomes of what was deployed last.
	Asked, Answers bool
	// Finding is the first thing that is wrong or waited for, empty while it is well.
	Finding reason.Finding
	// Applications as the status tells of them.
	Applications []v1alpha1.ApplicationStatus
	// Open are pods that may get requests.
	Open []*corev1.Pod
}

// healthOf judges a version on a cluster by what its deployments have to run; taken tells that the
// head has what is asked of it, proven that all was well before.
func (p *planner) healthOf(cluster *Cluster, revision Revision, requires requirement, taken, proven bool) Health {
	h := Health{Applications: applications(cluster, revision)}
	if cluster == nil || cluster.Head == nil || cluster.Head.Status.PodIP == "" {
		h.Finding, h.Open = p.headless(cluster), p.stillOpen(cluster)
		return h
	}
	h.Open = p.eligible(cluster)
	if cluster.Heard && cluster.Answer.Refused != "" {
		h.Finding, h.Failed = reason.ServeConfigRefused.Of(cluster.Name, cluster.Answer.Refused), true
		return h
	}
	h.Finding, h.Silent = p.unanswered(cluster)
	if cluster.Heard && !cluster.Answer.At.IsZero() && taken && !(proven && p.lacksController(cluster, h.Open)) {
		h.Told = true
		p.judge(&h, cluster, revision, requires, proven)
	} else if h.Finding.Code == "" {
		h.Finding = starting(cluster, p.clusterName(cluster))
	}
	return h
}

// lacksController reports whether Serve answers requests without its controller, which may have ended and comes back. Ray
// says nothing of applications then, and of those that were well that is no news.
func (p *planner) lacksController(cluster *Cluster, open []*corev1.Pod) bool {
	answering, _, _ := p.asked(cluster, open)
	return !cluster.Answer.Serving.Running && answering > 0
}

// unanswered says what is the matter with a head that does not answer, if that must be told, and
// whether it has been so for so long that what it said before counts no more.
func (p *planner) unanswered(cluster *Cluster) (reason.Finding, bool) {
	answer := &cluster.Answer
	switch {
	case !cluster.Heard || answer.Failure == "":
		return reason.Finding{}, false
	case answer.Failure == headclient.Unauthenticated:
		return reason.ServeHeadUnauthorized.Of(cluster.Name, cut(answer.Err)), false
	}
	if left := silentAfter - p.now.Sub(answer.FailingSince); left > 0 {
		p.wakeIn(left)
		return reason.Finding{}, false
	}
	if why := clusterStarting(cluster, cluster.Name); !pass.Ready(cluster.Head) && warns(why) {
		return why, true // a pod has an address before its image is there
	}
	return reason.ServeSilent.Of(cluster.Name, pass.Stamp(answer.FailingSince), cut(answer.Err)), true
}

// judge looks at the applications and at the proxies; proven tells that all was well before.
func (p *planner) judge(h *Health, cluster *Cluster, revision Revision, requires requirement, proven bool) {
	ready, worst := 100, reason.Finding{}
	for _, name := range revision.names() {
		up, finding := appears(cluster, name, proven, requires)
		ready = min(ready, up)
		h.Failed = h.Failed || finding.Code == reason.ApplicationFailed.Code
		worst = worse(worst, finding)
	}
	answering, failed, finding := p.asked(cluster, h.Open)
	if ready > 0 {
		worst = worse(worst, finding)
	}
	h.Asked, h.Answers = answering+failed > 0, answering > 0
	for _, name := range revision.names() {
		h.Answers = h.Answers && running(cluster.Answer.Serving.Applications[name], wished) > 0
	}
	switch {
	case answering+failed == 0 && proven: // nobody was asked yet: no data is not zero
	case answering == 0: // what one of several does not answer goes through the others
		ready = 0
	case !proven:
		ready = ready * answering / len(h.Open)
	}
	h.Ready, h.Well = ready, ready == 100 && worst.Code == ""
	if !h.Well && (h.Finding.Code == "" || warns(worst)) {
		h.Finding = worst
	}
}

// worse is the more severe of two findings, the first of two that are alike.
func worse(a, b reason.Finding) reason.Finding {
	if b.Code != "" && (a.Code == "" || b.Severity() > a.Severity()) {
		return b
	}
	return a
}

// appears tells how much of an application runs, in percent, and what is the matter with it.
func appears(cluster *Cluster, name string, proven bool, requires requirement) (int, reason.Finding) {
	application, known := cluster.Answer.Serving.Applications[name]
	message := complaint(application)
	if line := cluster.Answer.LastLines[name]; line != "" {
		message = cut(fmt.Sprintf("%s; its log ends: %s", message, line))
	}
	switch {
	case !known && !cluster.Answer.Serving.Running:
		return 0, reason.ServeDeploying.Of(cluster.Name, "Serve is starting")
	case !known:
		return 0, reason.ServeDeploying.Of(cluster.Name, "Serve does not know application "+name+" yet")
	case application.State == headclient.ApplicationDeployFailed:
		if at := cluster.Answer.RetryAt; !at.IsZero() {
			message += "; it is deployed again at " + pass.Stamp(at)
		}
		return 0, reason.ApplicationFailed.Of(name, cluster.Name, message)
	case application.State == headclient.ApplicationUnhealthy:
		return 0, reason.ApplicationUnhealthy.Of(name, cluster.Name, message)
	}
	up, deploying := running(application, requires), application.State != headclient.ApplicationRunning
	if deploying && !proven { // Serve says so of all that it is asked for again, for a moment
		up = 0
	}
	switch {
	case deploying:
		return up, reason.ServeDeploying.Of(cluster.Name, fmt.Sprintf("application %s is %s: %s", name, application.State, message))
	case up < 100:
		return up, reason.ServeDeploying.Of(cluster.Name, "replicas of application "+name+" are starting")
	default:
		return up, reason.Finding{}
	}
}

// complaint is what Serve says of an application, with what it says of the first deployment that
// is not well: of what a replica died of the application itself says nothing.
func complaint(application headclient.Application) string {
	for _, deployment := range application.Deployments {
		if deployment.Message != "" && deployment.State != "HEALTHY" {
			return cut(fmt.Sprintf("%s deployment %s: %s", application.Message, deployment.Name, deployment.Message))
		}
	}
	return cut(application.Message)
}

// running is how much of an application's replicas run, in percent: of the deployment that lacks
// the most of what it requires.
func running(application headclient.Application, requires requirement) int {
	least := 100
	for _, deployment := range application.Deployments {
		if need := requires(application.Name, deployment); need > 0 {
			least = min(least, 100*deployment.Running/need)
		}
	}
	return least
}

// asked tells how many of the pods answer through their proxies and how many do not, as far as
// that is known, and what is the matter with the first other one.
func (p *planner) asked(cluster *Cluster, pods []*corev1.Pod) (answering, failed int, finding reason.Finding) {
	if len(pods) == 0 {
		return 0, 0, reason.NoEndpoints.Of(cluster.Name, p.noProxy(cluster))
	}
	for _, pod := range pods {
		reply, known := cluster.Answer.Probes[p.probe(cluster, pod)]
		switch {
		case known && reply.OK, known && p.serves(pod) && reply.Times < failing: // one that serves is well until it is known better
			answering++
		case known && reply.Times >= failing:
			if failed++; finding.Code != reason.ProxyFailing.Code {
				finding = reason.ProxyFailing.Of(pod.Name, p.healthPath(), cut(reply.Why))
			}
		case finding.Code == "":
			finding = reason.ServeProving.Of(cluster.Name)
		}
	}
	return answering, failed, finding
}

// probe is the question to the proxy of a pod.
func (p *planner) probe(cluster *Cluster, pod *corev1.Pod) serving.Probe {
	return serving.Probe{Pod: pod.UID, Address: address(pod, p.portOf(cluster, pod)), Path: p.healthPath(), TLS: p.speaksTLS(cluster)}
}

// speaksTLS reports whether the proxies of a cluster speak HTTPS only, by what its own version says.
func (p *planner) speaksTLS(cluster *Cluster) bool {
	side := &p.record.Active
	if candidate := p.record.Candidate; candidate != nil && cluster != nil && cluster == p.cluster(candidate) {
		side = candidate
	}
	if id := p.configured(side); id != "" && p.revision(id).ID != "" {
		return p.revision(id).Config.HTTPS
	}
	return p.target.Config.HTTPS
}

// healthPath is what proxies are asked for.
func (p *planner) healthPath() string {
	if path := p.service.Spec.HealthPath; path != "" && !p.canSleep() {
		return path
	}
	return idlePath
}

// portOf is where the proxy of a pod listens.
func (p *planner) portOf(cluster *Cluster, pod *corev1.Pod) int32 {
	for _, target := range cluster.Answer.Serving.Targets {
		if target.Instance == string(pod.UID) && target.Protocol == "HTTP" {
			return target.Port
		}
	}
	return p.ports().HTTP
}

// eligible are the pods of a cluster whose proxies take requests, in the order of their names:
// those that the head names, of a head that answers. While it does not, those that have
// requests keep them: no data is not zero.
func (p *planner) eligible(cluster *Cluster) []*corev1.Pod {
	answer := &cluster.Answer
	if !cluster.Heard || answer.At.IsZero() || !answer.Serving.Running {
		return p.stillOpen(cluster)
	}
	open := p.listed(cluster)
	if head := p.substitute(cluster, open); head != nil {
		return []*corev1.Pod{head}
	}
	if len(open) == 0 {
		return p.stillOpen(cluster)
	}
	return open
}

// listed are the pods of a cluster that may serve and whose proxies the head names, in the order of their names.
func (p *planner) listed(cluster *Cluster) []*corev1.Pod {
	var open []*corev1.Pod
	for _, pod := range cluster.Pods {
		if cluster.lists(pod) && p.mayServe(pod) {
			open = append(open, pod)
		}
	}
	slices.SortFunc(open, byName)
	return open
}

// inquired are the pods of a cluster whose proxies are asked: also those of workers in whose place the head takes
// requests until they answer.
func (p *planner) inquired(cluster *Cluster) []*corev1.Pod {
	pods := p.eligible(cluster)
	for _, pod := range p.listed(cluster) {
		if cluster.Heard && cluster.Answer.Serving.Running && !slices.Contains(pods, pod) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// lists reports whether the head names a pod's proxy as one that takes requests.
func (c *Cluster) lists(pod *corev1.Pod) bool {
	return slices.ContainsFunc(c.Answer.Serving.Targets, func(target headclient.Target) bool { return target.Instance == string(pod.UID) })
}

// stillOpen are the pods of a cluster that have requests by some way and are not on their way
// out. Where all are, it is those: a proxy that drains goes on answering.
func (p *planner) stillOpen(cluster *Cluster) []*corev1.Pod { return p.still(cluster, p.serves) }

// still are the pods of a cluster that have something and are not on their way out, and those that
// are where there is no other.
func (p *planner) still(cluster *Cluster, has func(*corev1.Pod) bool) []*corev1.Pod {
	if cluster == nil {
		return nil
	}
	var open, leaving []*corev1.Pod
	for _, pod := range cluster.Pods {
		switch {
		case !has(pod) || !reachable(pod):
		case p.mayServe(pod):
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

// reachable reports whether a pod is there and can be reached.
func reachable(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.PodIP != "" && pass.Ready(pod)
}

// mayServe reports whether a pod stays and is of those that take requests.
func (p *planner) mayServe(pod *corev1.Pod) bool {
	if !reachable(pod) || pod.Annotations[v1alpha1.AnnotationDrain] != "" {
		return false
	}
	return pod.Labels[v1alpha1.LabelRole] != v1alpha1.RoleHead || p.headServes(pod.Labels[v1alpha1.LabelCluster])
}

// headServes reports whether the head's proxy takes requests too: where the user says so, and by
// default where there are no workers, or while they are replaced one after another. The last
// one may then go before the next has a proxy.
func (p *planner) headServes(cluster string) bool {
	if given := p.service.Spec.Service; given != nil && given.HeadEndpoints != nil {
		return *given.HeadEndpoints
	}
	if p.rolls(cluster) {
		return true
	}
	for _, own := range p.seen.Clusters {
		if own.Name == cluster {
			return len(own.Spec.WorkerGroups) == 0
		}
	}
	return false
}

// applications are those of a revision as Serve tells of them.
func applications(cluster *Cluster, revision Revision) []v1alpha1.ApplicationStatus {
	var all []v1alpha1.ApplicationStatus
	for _, name := range revision.names() {
		one := v1alpha1.ApplicationStatus{Name: name, State: missing}
		if cluster != nil && cluster.Heard {
			if told, known := cluster.Answer.Serving.Applications[name]; known {
				one.State, one.RoutePrefix, one.Message = string(told.State), told.RoutePrefix, cut(told.Message)
				up, wanted := 0, 0
				for _, deployment := range told.Deployments {
					up, wanted = up+deployment.Running, wanted+deployment.Wanted
				}
				one.Replicas = fmt.Sprintf("%d/%d", up, wanted)
			}
		}
		all = append(all, one)
	}
	return all
}

// headless says why there is no head to ask: a cluster that is not the service's own may not be
// there, or be kept from running by somebody.
func (p *planner) headless(cluster *Cluster) reason.Finding {
	name := p.clusterName(cluster)
	switch found := p.seen.Clusters[0]; {
	case p.own():
		return clusterStarting(cluster, name)
	case found == nil:
		return reason.ClusterMissing.Of(name)
	case found.DeletionTimestamp != nil:
		return reason.ClusterDeleting.Of(name)
	case found.Spec.ManagedBy != "" && found.Spec.ManagedBy != v1alpha1.ManagedByOperator:
		return reason.ClusterForeign.Of(name, found.Spec.ManagedBy)
	case found.Spec.Suspend:
		return reason.ClusterSuspended.Of(name)
	default:
		return clusterStarting(cluster, name)
	}
}

// clusterStarting says why a cluster has no head yet that answers, in the cluster's own words.
func clusterStarting(cluster *Cluster, name string) reason.Finding {
	why := "it is being made"
	if cluster != nil {
		ready := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionReady)
		if ready != nil && ready.ObservedGeneration > 0 {
			why = ready.Message
			told := reason.Finding{Code: ready.Reason, Text: ready.Message}
			if ready.Status != "True" && warns(told) {
				return told.About("ComputeCluster " + cluster.Name)
			}
		}
	}
	return reason.ServeClusterStarting.Of(name, cut(why))
}

// starting says what a cluster whose head is there waits for.
func starting(cluster *Cluster, name string) reason.Finding {
	if told := clusterStarting(cluster, name); warns(told) {
		return told
	}
	return reason.ServeDeploying.Of(name, "Serve is being asked")
}

// warns reports whether a finding asks for a person.
func warns(finding reason.Finding) bool {
	return finding.Code != "" && finding.Severity() == reason.Warning
}
