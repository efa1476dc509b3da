package cluster

import (
	"slices"

	"k8s.io/utils/ptr"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// checkRules applies the rules to the spec, and returns what stalls the cluster. What an earlier operator accepted
// does not: a newer one with stricter rules goes on with the cluster, and says what it refuses. Nor does anything keep
// a cluster from being suspended.
func checkRules(p *planner) *reason.Finding {
	findings := validate.Cluster(p.cluster)
	if len(findings) == 0 {
		return nil
	}
	broken := rulesOf(findings)
	text := findings.ErrorList().ToAggregate().Error()
	accepted := p.seen.Record.Accepted
	if wasAccepted(p.cluster) {
		accepted = broken
	}
	isNew := func(rule string) bool { return !slices.Contains(accepted, rule) }
	if slices.ContainsFunc(broken, isNew) && !ptr.Deref(p.cluster.Spec.Suspend, false) {
		finding := reason.InvalidSpec.Of(text)
		return &finding
	}
	p.Accepted = slices.DeleteFunc(broken, isNew)
	finding := reason.SpecRefused.Of(text)
	p.Refused = &finding
	return nil
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
