package cluster

import (
	"slices"

	"k8s.io/utils/ptr"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// verdictOfRules is what the rules mean for a cluster.
type verdictOfRules struct {
	// invalid is what stalls the cluster, refused what an earlier operator accepted, by which rules in order. Nil for nothing.
	invalid, refused *reason.Finding
	accepted         []string
}

// checkRules applies the rules to the spec. What an earlier operator accepted
// does not: a newer one with stricter rules goes on with the cluster, and says what it refuses. Nor does anything keep
// a cluster from being suspended.
func checkRules(b basis) verdictOfRules {
	findings := validate.Cluster(b.cluster)
	if len(findings) == 0 {
		return verdictOfRules{}
	}
	broken := rulesOf(findings)
	text := findings.ErrorList().ToAggregate().Error()
	accepted := b.seen.Record.Accepted
	if wasAccepted(b.cluster) {
		accepted = broken
	}
	isNew := func(rule string) bool { return !slices.Contains(accepted, rule) }
	if slices.ContainsFunc(broken, isNew) && !ptr.Deref(b.cluster.Spec.Suspend, false) {
		finding := reason.InvalidSpec.Of(text)
		return verdictOfRules{invalid: &finding}
	}
	finding := reason.SpecRefused.Of(text)
	return verdictOfRules{refused: &finding, accepted: slices.DeleteFunc(broken, isNew)}
}

// rulesOf returns the IDs of the rules that are broken, each once, in order.
func rulesOf(findings validate.Findings) []string {
	var rules []string
	for _, finding := range findings {
		rules = append(rules, finding.Rule)
	}
	slices.Sort(rules)
	return slices.Compact(rules)
}

// wasAccepted reports whether an operator went on with the very spec. One that is suspended says nothing of that.
func wasAccepted(cluster *v1beta1.ComputeCluster) bool {
	status := &cluster.Status
	if refused := meta.FindStatusCondition(status.Conditions, v1beta1.ConditionInvalidSpec); refused != nil && ptr.Deref(cluster.Spec.Suspend, false) {
		return false
	}
	stalled := meta.FindStatusCondition(status.Conditions, v1beta1.ConditionStalled)
	return status.Epoch > 0 && status.ObservedGeneration == cluster.Generation && stalled != nil && stalled.Reason != reason.InvalidSpec.Code
}
