package service

import (
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// replaceInPlace brings the version that the spec asks for to the cluster that runs, whose pods are
// replaced where they are.
func (d *draft) replaceInPlace() {
	active := &d.record.Active
	if why := whyUnfit(d.state); why != "" {
		unfit := reason.UpgradeNotInPlace.Of(d.clusterName(active), why)
		d.waiting = &unfit
		return
	}
	d.keepTarget()
	d.requestRevision(active, d.target.ID)
	active.replacePods(d.target.Pods, d.findCluster(active))
}

// noteReplacement notes how far pods that are replaced where they are have come.
func (d *draft) noteReplacement() {
	side := &d.record.Active
	cluster := d.findCluster(side)
	if side.Renewing == "" || side.Renewing == renewed || cluster == nil {
		return
	}
	wanted := wantedCluster(d.state, side, cluster)
	switch {
	case wanted == nil:
	case isReplaced(cluster, wanted):
		side.Renewing = renewed
	case cluster.Head != nil && hasOldHead(cluster, wanted): // it is to go, too
		side.Renewing = string(cluster.Head.UID)
	}
}

// isKnown reports whether it can be gone back to a revision: the pods are those that it needs, or
// what they are built from was kept.
func isKnown(s *state, id string) bool {
	revision := s.findRevision(id)
	return revision.Template != nil || revision.Pods == s.record.Active.Pods
}

// replacePods begins to replace the pods of a side on its cluster, if it needs others.
func (s *Side) replacePods(pods string, cluster *Cluster) {
	if s.Pods == pods {
		return
	}
	s.Pods, s.Renewing = pods, headlessly
	if cluster != nil && cluster.Head != nil {
		s.Renewing = string(cluster.Head.UID)
	}
}
