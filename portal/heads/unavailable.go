package heads

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// After how long to call again.
const (
	retryStarting = 5 * time.Second
	retrySilent   = 10 * time.Second
)

// Unavailable is that a cluster has no head that answers. It is found with errors.As.
type Unavailable struct {
	// Code is one of the catalogue. ClusterMissing is that there is no such cluster.
	Code string
	// Message says what is the case, Remedy what helps; the remedy may be empty.
	Message, Remedy string
	// Temporary: the same call may succeed later by itself; RetryAfter is after how long.
	Temporary  bool
	RetryAfter time.Duration
}

// Error returns the message and the remedy.
func (u *Unavailable) Error() string {
	if u.Remedy == "" {
		return u.Message
	}
	return u.Message + ". " + u.Remedy
}

// IsEnding reports whether the cluster takes its attempts with it: it is suspended, being deleted or gone.
func (u *Unavailable) IsEnding() bool {
	switch u.Code {
	case reason.ClusterMissing.Code, reason.ClusterDeleting.Code, reason.SuspendedBySpec.Code, reason.SuspendedIdle.Code:
		return true
	default:
		return false
	}
}

// of returns an Unavailable that lasts until somebody acts, with the words of the catalogue.
func of(finding reason.Finding) *Unavailable {
	message, remedy := reason.Split(finding.Code, finding.Text)
	return &Unavailable{Code: finding.Code, Message: message, Remedy: remedy}
}

// passing returns an Unavailable that is over by itself.
func passing(finding reason.Finding, after time.Duration) *Unavailable {
	u := of(finding)
	u.Temporary, u.RetryAfter = true, after
	return u
}

func missing(of Reference) *Unavailable {
	return &Unavailable{
		Code: reason.ClusterMissing.Code, Message: fmt.Sprintf("there is no ComputeCluster %s in namespace %s", of.Name, of.Namespace),
		Remedy: "Look for its name among the clusters of the namespace",
	}
}

// replaced is for a cluster whose name is another's by now.
func replaced(of Reference) *Unavailable {
	return &Unavailable{
		Code:    reason.ClusterMissing.Code,
		Message: fmt.Sprintf("the ComputeCluster %s that is meant was deleted, and another one has its name", of.Name),
		Remedy:  "Ask the one that is there",
	}
}

func foreign(cluster *v1beta1.ComputeCluster) *Unavailable {
	u := of(reason.ClusterForeign.Of(cluster.Name, cluster.Spec.ManagedBy))
	u.Remedy = "Ask where that controller works"
	return u
}

// absent is why a cluster has no head.
func absent(cluster *v1beta1.ComputeCluster) *Unavailable {
	suspended := meta.FindStatusCondition(cluster.Status.Conditions, v1beta1.ConditionSuspended)
	switch {
	case cluster.DeletionTimestamp != nil:
		u := of(reason.ClusterDeleting.Of(cluster.Name))
		u.Remedy = "Create it again"
		return u
	case suspended != nil && suspended.Status == metav1.ConditionTrue:
		return asleep(cluster, suspended)
	case ptr.Deref(cluster.Spec.Suspend, false):
		return asleep(cluster, &metav1.Condition{Reason: reason.SuspendedBySpec.Code})
	}
	u := passing(reason.HeadMissing.Of(), retryStarting)
	u.Message = fmt.Sprintf("ComputeCluster %s has no head pod now", cluster.Name)
	tell(u, cluster)
	return u
}

// asleep is for a cluster that is suspended, by its spec or by its idle policy.
func asleep(cluster *v1beta1.ComputeCluster, condition *metav1.Condition) *Unavailable {
	u := &Unavailable{
		Code: reason.SuspendedBySpec.Code, Message: fmt.Sprintf("ComputeCluster %s is suspended by its spec", cluster.Name),
		Remedy: fmt.Sprintf("Resume it with POST /v1/namespaces/%s/clusters/%s:resume, and call again", cluster.Namespace, cluster.Name),
	}
	if condition.Reason == reason.SuspendedIdle.Code {
		u.Code, u.Message = condition.Reason, fmt.Sprintf("ComputeCluster %s is suspended by its idle policy", cluster.Name)
	}
	if !condition.LastTransitionTime.IsZero() {
		u.Message += ", since " + condition.LastTransitionTime.UTC().Format(time.RFC3339)
	}
	return u
}

// starting is for a head that is there, and does not answer yet.
func starting(cluster *v1beta1.ComputeCluster, pod *corev1.Pod) *Unavailable {
	u := passing(reason.HeadStarting.Of(pod.Name), retryStarting)
	tell(u, cluster)
	return u
}

// tell adds what the operator says of the head, where that is more than that it starts.
func tell(u *Unavailable, cluster *v1beta1.ComputeCluster) {
	condition := meta.FindStatusCondition(cluster.Status.Conditions, v1beta1.ConditionHeadReady)
	known := []string{reason.HeadMissing.Code, reason.HeadStarting.Code, reason.HeadReady.Code}
	if condition == nil || condition.Status == metav1.ConditionTrue || slices.Contains(known, condition.Reason) {
		return
	}
	if _, listed := reason.Lookup(condition.Reason); !listed {
		return
	}
	message, remedy := reason.Split(condition.Reason, condition.Message)
	u.Message, u.Remedy = u.Message+": "+message, remedy
}

// gone is for a head that the cache knows, and that is not there or is going.
func gone(head Head) *Unavailable {
	return passing(reason.HeadLost.Of(head.Pod, "it is not there any more"), retryStarting)
}

// silent is for a head that does not answer though it is ready.
func silent(cluster, why string) *Unavailable {
	return &Unavailable{
		Code: reason.HeadUnreachable.Code, Temporary: true, RetryAfter: retrySilent,
		Message: fmt.Sprintf("the dashboard of ComputeCluster %s does not answer: %s", cluster, why),
		Remedy:  "See whether the head is well, and whether a network policy keeps the server out",
	}
}

// unauthorized is for a head that does not take the token.
func unauthorized(cluster, why string) *Unavailable {
	return &Unavailable{
		Code:    reason.HeadUnauthorized.Code,
		Message: fmt.Sprintf("the head of ComputeCluster %s does not let the server in: %s", cluster, why),
		Remedy:  reason.HeadUnauthorized.Remedy,
	}
}
