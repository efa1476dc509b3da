package cluster

import (
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster/store"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
)

// situation is what a pass knows. It is passed by value, and nothing changes what it points to.
type situation struct {
	cluster *v1beta1.ComputeCluster
	seen    *Seen
	site    desired.Site
	now     time.Time
	intents intents
}

// basis is what a plan stands on at one moment: the situation, the incarnation that it works for, and the head of that. What
// takes one reads it, and changes nothing of the plan.
type basis struct {
	situation
	Incarnation
	// head is the pod that is, or was, the head of its epoch, Failures how many before it ended soon.
	head     *Pod
	Failures int
	// suspended: the plan is that no pods stay.
	suspended bool
	// records: the plan writes a record first, so that what a Redis said was about another claim.
	records bool
}

// hasStore reports whether the head's memory outlives the head.
func (s situation) hasStore() bool { return store.Exists(s.cluster) }

// isRolling reports whether workers that are out of date are replaced one after the other.
func (s situation) isRolling() bool {
	strategy := s.cluster.Spec.UpgradeStrategy
	return strategy != nil && strategy.Type == v1beta1.ClusterUpgradeRollingWorkers
}
