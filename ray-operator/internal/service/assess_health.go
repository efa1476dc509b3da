package service

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// missing is the state of an application that Serve does not know.
const missing = "MISSING"

// isUnheard reports whether nothing is known yet of a version that was well, by its cluster: as after a restart of
// the operator. Nothing goes on, and nothing goes back, until its head answers or has not for a
// while.
func isUnheard(cluster *Cluster, h Health) bool {
	if cluster == nil || cluster.Head == nil || h.Failed || h.Silent {
		return false
	}
	return h.Assumed || h.Ready == 0 && (!h.Told || !h.Asked && !warns(h.Finding))
}

// hindranceOf returns what a version waits for: what is the matter with its applications, or with its
// cluster in the cluster's own words.
func hindranceOf(version versionState, finding reason.Finding) reason.Finding {
	cluster := version.cluster
	if warns(finding) || cluster == nil || version.Renewing == "" {
		return finding
	}
	var progress reason.Finding
	for _, kind := range []string{v1beta1.ConditionReady, v1beta1.ConditionUpToDate} {
		told := meta.FindStatusCondition(cluster.Status.Conditions, kind)
		if told == nil || told.Status != "False" || told.ObservedGeneration == 0 {
			continue
		}
		if progress = (reason.Finding{Code: told.Reason, Text: told.Message}); warns(progress) {
			return progress
		}
	}
	if progress.Code == "" {
		return finding
	}
	return progress
}

// lacksController reports whether Serve answers requests without its controller, which may have ended and comes back.
// Ray says nothing of applications then, and of those that were well that is no news.
func lacksController(p proxies, cluster *Cluster, open []*corev1.Pod) bool {
	answering, _, _ := countAnswers(p, cluster, open)
	return !cluster.Answer.Serving.Running && answering > 0
}

// explainSilence says what is the matter with a head that does not answer, if that must be told, and whether it has
// been so for so long that what it said before counts no more. Before, it returns how long is left.
func explainSilence(cluster *Cluster, now time.Time) (finding reason.Finding, silent bool, left time.Duration) {
	answer := &cluster.Answer
	switch {
	case !cluster.Heard || answer.Failure == "":
		return reason.Finding{}, false, 0
	case answer.Failure == headclient.Unauthenticated:
		return reason.ServeHeadUnauthorized.Of(cluster.Name, cut(answer.Err)), false, 0
	}
	if left := silentAfter - now.Sub(answer.FailingSince); left > 0 {
		return reason.Finding{}, false, left
	}
	if why := explainClusterStart(cluster, cluster.Name); !reconcile.Ready(cluster.Head) && warns(why) {
		return why, true, 0 // a pod has an address before its image is there
	}
	return reason.ServeSilent.Of(cluster.Name, reconcile.Stamp(answer.FailingSince), cut(answer.Err)), true, 0
}

// judgeApplications looks at the applications of a version, and at its proxies.
func judgeApplications(h *Health, p proxies, cluster *Cluster, version expected) {
	ready, worst := 100, reason.Finding{}
	for _, name := range version.revision.applicationNames() {
		up, finding := judgeApplication(cluster, name, version.proven, version.requires)
		ready = min(ready, up)
		h.Failed = h.Failed || finding.Code == reason.ApplicationFailed.Code
		worst = worseOf(worst, finding)
	}
	answering, failed, finding := countAnswers(p, cluster, h.Open)
	if ready > 0 {
		worst = worseOf(worst, finding)
	}
	h.Asked, h.Answers = answering+failed > 0, answering > 0
	for _, name := range version.revision.applicationNames() {
		h.Answers = h.Answers && runningPercent(cluster.Answer.Serving.Applications[name], wished) > 0
	}
	switch {
	case answering+failed == 0 && version.proven: // nobody was asked yet: no data is not zero
	case answering == 0: // what one of several does not answer goes through the others
		ready = 0
	case !version.proven:
		ready = ready * answering / len(h.Open)
	}
	h.Ready, h.Well = ready, ready == 100 && worst.Code == ""
	if !h.Well && (h.Finding.Code == "" || warns(worst)) {
		h.Finding = worst
	}
}

// worseOf returns the more severe of two findings, the first of two that are alike.
func worseOf(a, b reason.Finding) reason.Finding {
	if b.Code != "" && (a.Code == "" || b.Severity() > a.Severity()) {
		return b
	}
	return a
}

// judgeApplication returns how much of an application runs, in percent, and what is the matter with it.
func judgeApplication(cluster *Cluster, name string, proven bool, requires requirement) (int, reason.Finding) {
	application, known := cluster.Answer.Serving.Applications[name]
	message := complaintOf(application)
	if line := cluster.Answer.LastLines[name]; line != "" {
		message = cut(joinTexts("; ", message, "its log ends: "+line))
	}
	switch {
	case !known && !cluster.Answer.Serving.Running:
		return 0, reason.ServeDeploying.Of(cluster.Name, "Serve is starting")
	case !known:
		return 0, reason.ServeDeploying.Of(cluster.Name, "Serve does not know application "+name+" yet")
	case application.State == headclient.ApplicationDeployFailed:
		if at := cluster.Answer.RetryAt; !at.IsZero() {
			message += "; it is deployed again at " + reconcile.Stamp(at)
		}
		return 0, reason.ApplicationFailed.Of(name, cluster.Name, message)
	case application.State == headclient.ApplicationUnhealthy:
		return 0, reason.ApplicationUnhealthy.Of(name, cluster.Name, message)
	}
	up, deploying := runningPercent(application, requires), application.State != headclient.ApplicationRunning
	if deploying && !proven { // Serve says so of all that it is asked for again, for a moment
		up = 0
	}
	switch {
	case deploying:
		return up, reason.ServeDeploying.Of(cluster.Name, explainDeploying(application, message))
	case up < 100:
		return up, reason.ServeDeploying.Of(cluster.Name, "replicas of application "+name+" are starting")
	default:
		return up, reason.Finding{}
	}
}

// complaintOf returns what Serve says of an application, with what it says of the first deployment that
// is not well: of what a replica died of the application itself says nothing.
func complaintOf(application headclient.Application) string {
	for _, deployment := range application.Deployments {
		if deployment.Message != "" && deployment.State != "HEALTHY" {
			return cut(joinTexts(" ", application.Message, fmt.Sprintf("deployment %s: %s", deployment.Name, deployment.Message)))
		}
	}
	return cut(application.Message)
}

// explainDeploying returns how far Serve is with an application: in its words, or by the replicas that run.
func explainDeploying(application headclient.Application, message string) string {
	said := fmt.Sprintf("application %s is %s: ", application.Name, application.State)
	if message != "" {
		return said + message
	}
	for _, deployment := range application.Deployments {
		if deployment.Running < deployment.Wanted {
			return said + fmt.Sprintf("%d of %d replicas of deployment %s run", deployment.Running, deployment.Wanted, deployment.Name)
		}
	}
	return said + "its code and runtime environment are being loaded"
}

// joinTexts joins those that say something.
func joinTexts(by string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), by)
}

// runningPercent returns how much of an application's replicas run, in percent: of the deployment that lacks
// the most of what it requires.
func runningPercent(application headclient.Application, requires requirement) int {
	least := 100
	for _, deployment := range application.Deployments {
		if need := requires(application.Name, deployment); need > 0 {
			least = min(least, 100*deployment.Running/need)
		}
	}
	return least
}

// listApplications returns the applications of a revision as Serve reports them.
func listApplications(cluster *Cluster, revision Revision) []v1beta1.ApplicationStatus {
	var all []v1beta1.ApplicationStatus
	for _, name := range revision.applicationNames() {
		one := v1beta1.ApplicationStatus{Name: name, State: missing}
		if cluster != nil && cluster.Heard {
			if told, known := cluster.Answer.Serving.Applications[name]; known {
				one.State, one.RoutePrefix, one.Message = string(told.State), told.RoutePrefix, cut(told.Message)
				for _, deployment := range told.Deployments {
					one.RunningReplicas += int32(deployment.Running)
					one.DesiredReplicas += int32(deployment.Wanted)
				}
			}
		}
		all = append(all, one)
	}
	return all
}

// explainNoHead says why there is no head to ask on a cluster of a name: one that is found and not the service's own may
// not be there, or be kept from running by somebody.
func explainNoHead(service *v1beta1.ClusterService, found, cluster *Cluster, name string) reason.Finding {
	switch {
	case ownsClusters(service):
		return explainClusterStart(cluster, name)
	case found == nil:
		return reason.ClusterMissing.Of(name)
	case found.DeletionTimestamp != nil:
		return reason.ClusterDeleting.Of(name)
	case found.Spec.ManagedBy != "" && found.Spec.ManagedBy != v1beta1.ManagedByOperator:
		return reason.ClusterForeign.Of(name, found.Spec.ManagedBy)
	case ptr.Deref(found.Spec.Suspend, false):
		return reason.ClusterSuspended.Of(name)
	default:
		return explainClusterStart(cluster, name)
	}
}

// explainClusterStart says why a cluster has no head yet that answers, in the cluster's own words.
func explainClusterStart(cluster *Cluster, name string) reason.Finding {
	why := "it is being made"
	if cluster != nil {
		ready := meta.FindStatusCondition(cluster.Status.Conditions, v1beta1.ConditionReady)
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

// explainStart says what a cluster whose head is there waits for.
func explainStart(cluster *Cluster, name string) reason.Finding {
	if told := explainClusterStart(cluster, name); warns(told) {
		return told
	}
	return reason.ServeDeploying.Of(name, "Serve is being asked")
}

// warns reports whether a finding asks for a person.
func warns(finding reason.Finding) bool {
	return finding.Code != "" && finding.Severity() == reason.Warning
}
