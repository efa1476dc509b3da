package service

import (
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// replaceInPlace brings the version that the spec asks for to the cluster that runs, whose pods are
// replaced where they are.
func (d *draft) replaceInPlace() {
	active := d.stateOf(d.record.Active)
	if why := whyUnfit(d.service, d.revisions, active); why != "" {
		unfit := reason.UpgradeNotInPlace.Of(active.clusterName, why)
		d.waiting = &unfit
		return
	}
	d.keepTarget()
	d.requestRevision(&d.record.Active, d.target.ID)
	d.record.Active.replacePods(d.target.Pods, active.cluster)
}

// wantedOf returns a version's cluster as it must be while its pods are replaced where they are; nil if they are not, or it
// stays as it is.
func wantedOf(v view, version versionState) *v1beta1.ComputeCluster {
	if version.Renewing == "" || version.Renewing == renewed || version.cluster == nil {
		return nil
	}
	return wantedCluster(v.service, v.revisions, version)
}

// noteReplacement notes how far pods that are replaced where they are have come, on a cluster that is wanted otherwise; nil
// where none are.
func (v *Version) noteReplacement(cluster *Cluster, wanted *v1beta1.ComputeCluster) {
	switch {
	case wanted == nil:
	case isReplaced(cluster, wanted):
		v.Renewing = renewed
	case cluster.Head != nil && hasOldHead(cluster, wanted): // it is to go, too
		v.Renewing = string(cluster.Head.UID)
	}
}

// isKnown reports whether it can be gone back to a revision: the pods of the version that runs are those that it needs, or
// what they are built from was kept.
func isKnown(revision Revision, pods string) bool {
	return revision.Template != nil || revision.Pods == pods
}

// replacePods begins to replace the pods of a version on its cluster, if it needs others.
func (v *Version) replacePods(pods string, cluster *Cluster) {
	if v.Pods == pods {
		return
	}
	v.Pods, v.Renewing = pods, headlessly
	if cluster != nil && cluster.Head != nil {
		v.Renewing = string(cluster.Head.UID)
	}
}
