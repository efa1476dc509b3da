package service

import (
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/upgrade"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/ray-operator/serveconfig"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// chooseTarget returns what the spec asks for, and what is in the way of it, nil if nothing is. The version that
// serves is reconciled in any case.
func chooseTarget(v view) (Revision, *reason.Finding) {
	if invalid := whyInvalid(v.service, v.seen.TargetError); invalid != nil {
		return v.target, invalid
	}
	v.target = numbered(v.seen.Target, v.seen.Revisions)
	v.target = adoptPods(v)
	if ptr.Deref(v.service.Spec.Suspend, false) {
		return v.target, nil
	}
	return v.target, whyRefused(v.target, v.seen, v.record)
}

// adoptPods returns the target, as a version that runs where the cluster of one needs nothing but groups of workers more,
// or fewer: it gets them, or gives them up. A target that is a version's already stays so.
func adoptPods(v view) Revision {
	versions := v.states().list()
	if !ownsClusters(v.service) || slices.ContainsFunc(versions, func(version versionState) bool { return version.Pods == v.target.Pods }) {
		return v.target
	}
	for _, version := range slices.Backward(versions) {
		if !hasAllButGroups(v.service, v.revisions, version) {
			continue
		}
		adopted := v.seen.Target
		adopted.Pods = version.Pods
		if named, err := adopted.named(); err == nil {
			return numbered(named, v.seen.Revisions)
		}
	}
	return v.target
}

// hasAllButGroups reports whether the cluster of a version is what the spec asks for, but for groups of workers that were
// added or removed. Where the cluster is gone, what it was built from is compared.
func hasAllButGroups(service *v1beta1.ClusterService, r revisions, version versionState) bool {
	kept, asked, cluster := version.revision, service.Spec.ClusterTemplate, version.cluster
	switch {
	case kept.Template == nil, version.Renewing != "", kept.Startup != r.target.Startup:
		return false
	case !areAlike(intentsOf(&kept.Template.Spec), intentsOf(&asked.Spec)): // the cluster may be ahead of a record that was lost
		return false
	case cluster == nil:
		return differByGroups(&kept.Template.Spec, &asked.Spec)
	}
	wanted := cluster.DeepCopy()
	wanted.Spec = clusterFor(service, r, version.turnedTo(r.target)).Spec
	markRestart(r.target, wanted)
	return differByGroups(&cluster.Spec, &wanted.Spec)
}

// whyInvalid returns what is wrong with a spec, of which the target is read or not, nil if nothing is.
func whyInvalid(service *v1beta1.ClusterService, unread error) *reason.Finding {
	var finding reason.Finding
	if errs := validate.Service(service).ErrorList(); len(errs) > 0 {
		finding = reason.InvalidSpec.Of(errs.ToAggregate())
	} else if unread != nil {
		finding = reason.InvalidSpec.Of(unread)
	} else {
		return nil
	}
	return &finding
}

// whyRefused returns why a valid spec cannot be followed beside what there is, nil if it can.
func whyRefused(target Revision, seen *Seen, record Record) *reason.Finding {
	if collision := findCollision(target, seen.Elders); collision != nil {
		return collision
	}
	good, known := seen.Revisions[record.Active.Good]
	if !known || record.Suspended { // while the service is suspended nothing is there
		return nil
	}
	if why := whyApart(good, target); why != "" {
		finding := reason.InvalidSpec.Of(why)
		return &finding
	}
	return nil
}

// findCollision returns what an older service on the cluster has that a target asks for, nil if there is nothing.
func findCollision(target Revision, elders []Elder) *reason.Finding {
	for _, elder := range elders {
		service, theirs := elder.Service, elder.Target
		if elder.TargetError != nil || ptr.Deref(service.Spec.Suspend, false) || service.DeletionTimestamp != nil {
			continue
		}
		var finding reason.Finding
		if what := findClash(target, theirs); what != "" {
			finding = reason.ServeCollision.Of(what, service.Name, service.Spec.ClusterRef.Name)
		} else if theirs.Startup != target.Startup || serveconfig.Common(theirs.Raw) != serveconfig.Common(target.Raw) {
			finding = reason.ServeOptionsDiffer.Of(service.Name, service.Spec.ClusterRef.Name)
		} else {
			continue
		}
		return &finding
	}
	return nil
}

// followTarget brings what is asked for to what the spec says.
func (d *draft) followTarget() {
	record := &d.record
	if record.Failed != "" {
		record.clearFailure(d.target.ID, circumstances(d.service))
	}
	switch active := &record.Active; {
	case record.Failed == d.target.ID:
	case active.Revision == "":
		d.keepTarget()
		d.beginVersion()
	case ownsClusters(d.service) && d.target.Pods != active.Pods:
		d.changePods()
	default:
		if record.Candidate != nil {
			d.withdrawCandidate()
		}
		d.keepTarget() // also where somebody deleted it: nothing could be taken back to it
		if active.Revision != d.target.ID {
			d.requestRevision(active, d.target.ID)
		}
	}
}

// beginVersion begins the first version.
func (d *draft) beginVersion() {
	version := Version{Pods: d.target.Pods, Revision: d.target.ID, At: d.now.Unix()}
	if ownsClusters(d.service) {
		d.record.Clusters++
		version.Cluster = d.record.Clusters
	}
	d.record.Active, d.record.Began = version, d.now.Unix()
}

// requestRevision asks for another revision on a cluster that runs.
func (d *draft) requestRevision(version *Version, revision string) {
	if version == &d.record.Active && d.record.Candidate == nil {
		if version.Good != "" && version.Good != revision {
			d.addEvent(reason.UpgradeBegan.Of(d.target.numberText(), d.find(version.Good).numberText()), "Upgrade")
		}
		d.record.Began = d.now.Unix()
	}
	version.Revision, version.At, version.Healthy = revision, d.now.Unix(), 0
}

// changePods begins the way to a target that needs other pods than those of the version that serves.
func (d *draft) changePods() {
	record := &d.record
	crowded := whyCrowded(d.seen.Clusters, record.Active.Cluster)
	switch strategy := strategyOf(d.service); {
	case record.Candidate != nil: // it ends the way it began
		d.overtakeCandidate()
	case record.Active.Good == "" && yieldsTo(d.view, strategy):
		if d.waiting = crowded; crowded == nil {
			d.keepTarget()
			record.retireCluster(record.Active.Cluster, time.Time{}, d.now)
			d.beginVersion()
		}
	case strategy == v1beta1.ServiceUpgradeNone:
		held := reason.UpgradeHeld.Of()
		d.waiting = &held
	case strategy == v1beta1.ServiceUpgradeInPlace:
		d.replaceInPlace()
	case crowded != nil:
		d.waiting = crowded
	default:
		d.keepTarget()
		d.beginUpgrade()
	}
}

// yieldsTo reports whether a version that has never served makes room for another at once: nothing is lost with it,
// so no strategy holds that up. Where its pods can be replaced where they are, and must be, they are.
func yieldsTo(v view, strategy v1beta1.ServiceUpgradeType) bool {
	return strategy != v1beta1.ServiceUpgradeInPlace || whyUnfit(v.service, v.revisions, v.stateOf(v.record.Active)) != ""
}

// overtakeCandidate follows another target while a candidate is on its way.
func (d *draft) overtakeCandidate() {
	record := &d.record
	switch candidate := record.Candidate; {
	case candidate.Pods == d.target.Pods:
		record.Shift.Back = false
		if candidate.Revision != d.target.ID {
			d.keepTarget()
			d.requestRevision(candidate, d.target.ID)
			record.Shift.Began, record.Shift.Proven = d.now, false
		}
	case record.Shift.Traffic == 0: // a third one: what nobody uses goes first
		d.recordEnd(v1beta1.UpgradeSuperseded, nil)
		record.retireCluster(candidate.Cluster, record.Shift.At, d.now)
		record.Candidate, record.Shift = nil, upgrade.Shift{}
	default:
		record.Shift.Back = true
	}
}

// beginUpgrade begins an upgrade to a second cluster.
func (d *draft) beginUpgrade() {
	d.record.Clusters++
	d.record.Candidate = &Version{Cluster: d.record.Clusters, Pods: d.target.Pods, Revision: d.target.ID, At: d.now.Unix()}
	d.record.Shift, d.record.Began = upgrade.Begin(termsOf(d.service), d.now), d.now.Unix()
	d.addEvent(reason.UpgradeBegan.Of(d.target.numberText(), d.find(d.record.Active.Revision).numberText()), "Upgrade")
}

// whyCrowded returns why there is no room for a cluster beside the one of a number, nil if there is: at most two are ever
// alive.
func whyCrowded(clusters map[int]*Cluster, number int) *reason.Finding {
	for other, cluster := range clusters {
		if other != number {
			waiting := reason.UpgradeWaiting.Of(cluster.Name)
			return &waiting
		}
	}
	return nil
}

// withdrawCandidate turns back because the spec does.
func (d *draft) withdrawCandidate() {
	if d.record.Shift.Traffic == 0 {
		d.endWithFormer(nil)
		return
	}
	d.record.Shift.Back = true
}

// keepTarget ensures that the target is kept before anything is asked for in its name.
func (d *draft) keepTarget() {
	if _, ok := d.seen.Revisions[d.target.ID]; !ok {
		d.keep = d.target.toObject(d.service, d.target.Number)
	}
}

// findClash names what two versions both ask for, empty if nothing.
func findClash(a, b Revision) string {
	for _, mine := range a.Config.Applications {
		for _, other := range b.Config.Applications {
			switch {
			case mine.Name == other.Name:
				return "application " + mine.Name
			case mine.HasRoute && other.HasRoute && mine.RoutePrefix == other.RoutePrefix:
				return "route_prefix " + mine.RoutePrefix
			}
		}
	}
	return ""
}

// whyApart says why the proxies of two versions cannot stand behind one Service, empty if they can: it leads to one
// port, where clients speak one protocol, and both stand behind it while requests go over.
func whyApart(good, target Revision) string {
	have, want := good.proxyPorts(), target.proxyPorts()
	switch {
	case have.HTTP != want.HTTP, have.GRPC != want.GRPC && have.GRPC != 0 && want.GRPC != 0:
		return "the ports of http_options and grpc_options cannot change while the service runs; set them back, or suspend the service for the change"
	case good.Config.HTTPS != target.Config.HTTPS:
		return "http_options.ssl_certfile cannot come or go while the service runs, because clients would speak HTTP to proxies of HTTPS; set it back, or suspend the service for the change"
	}
	return ""
}

// clearFailure has a version that failed be tried again where the spec asks for something else by now, or for the same
// under other circumstances. What is still being taken back is waited for.
func (r *Record) clearFailure(target, circumstances string) {
	if r.FailedAs == "" { // restored from the status
		r.FailedAs = circumstances
	}
	if r.Failed != target || r.Candidate == nil && r.FailedAs != circumstances {
		r.Failed, r.FailedAs, r.Fault = "", "", nil
	}
}

// noteFailure notes that a version is not tried again under these circumstances.
func (r *Record) noteFailure(revision, circumstances string, fault *Fault) {
	r.Failed, r.FailedAs, r.Fault = revision, circumstances, fault
}
