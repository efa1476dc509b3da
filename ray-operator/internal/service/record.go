package service

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/upgrade"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// recordVersion is the version of the annotation's form, recordLimit its longest text in bytes.
const (
	recordVersion = 1
	recordLimit   = 4 << 10
)

// Record holds the facts that are neither spec nor observable: which version runs where, how
// far an upgrade is, and what failed. It is written before the act that depends on it.
type Record struct {
	Version int `json:"v"`
	// Of is the UID of the service that the record is about.
	Of types.UID `json:"of,omitempty"`
	// Clusters is the number of the last cluster that was made.
	Clusters int `json:"clusters,omitempty"`
	// Active has the requests, or had them before an upgrade began; Candidate is to have them.
	Active    Version  `json:"active,omitzero"`
	Candidate *Version `json:"candidate,omitempty"`
	// Shift is how far the upgrade to the candidate is.
	Shift upgrade.Shift `json:"shift,omitzero"`
	// Whole is what the shares of both versions are of, where Serve scales a deployment.
	Whole Whole `json:"whole,omitempty"`
	// Routing: the gateway has yet to divide requests as the last step has it.
	Routing bool `json:"routing,omitempty"`
	// Routed: there may be an HTTPRoute of the service's.
	Routed bool `json:"routed,omitempty"`
	// Began is since when something is on its way, in Unix seconds.
	Began int64 `json:"began,omitempty"`
	// Failed is the revision that is not tried again while its circumstances are FailedAs; Fault is why.
	Failed   string `json:"failed,omitempty"`
	FailedAs string `json:"failedAs,omitempty"`
	Fault    *Fault `json:"fault,omitempty"`
	// Retiring are clusters that have no requests any more.
	Retiring []Retired `json:"retiring,omitempty"`
	// Last is the change that ended last.
	Last *Last `json:"last,omitempty"`
	// Drained is since when no pod gets requests because the service is suspended, in Unix
	// seconds.
	Drained int64 `json:"drained,omitempty"`
	// Suspended: nothing of the service runs.
	Suspended bool `json:"suspended,omitempty"`
	// Applications are those that were last asked of a cluster that is not the service's own, each by the hash of its
	// name: names may be so long and so many that no annotation of ours holds them.
	Applications []string `json:"asked,omitempty"`
}

// mostAsked bounds Applications: those of three versions that are asked for one after another while no head takes any.
// One more is not noted, and stays on the cluster when the service gives it up.
const mostAsked = 192

// Version is a revision on a cluster.
type Version struct {
	// Cluster is the number of the service's own, 0 on one that is not.
	Cluster int `json:"c,omitempty"`
	// Pods names what of the spec cannot change without other pods.
	Pods string `json:"p"`
	// Revision is what Serve is asked for there, Good the one that was healthy last.
	Revision string `json:"r"`
	Good     string `json:"g,omitempty"`
	// At is since when Revision is asked for, Healthy since when it is healthy; Unix seconds.
	At      int64 `json:"t,omitempty"`
	Healthy int64 `json:"h,omitempty"`
	// Taken is the digest that the head of this UID took last, Took the revision, of whatever
	// capacity.
	Taken string `json:"d,omitempty"`
	Took  string `json:"k,omitempty"`
	Head  string `json:"u,omitempty"`
	// Renewing tells that pods are replaced where they are: the UID of the head that ran before,
	// or one of the words below. It is empty once all is well again.
	Renewing string `json:"n,omitempty"`
}

// Progress of an in-place replacement of pods, without a head.
const (
	// headlessly: there was no head when it began.
	headlessly = "headless"
	// renewed: all pods are those that must be.
	renewed = "renewed"
)

// Fault is why something was taken back.
type Fault struct {
	Reason string `json:"r"`
	Text   string `json:"x"`
}

// Retired is a cluster that has no requests any more, since a moment in Unix seconds; Unused is
// one that never had any.
type Retired struct {
	Cluster int   `json:"c"`
	At      int64 `json:"t"`
	Unused  bool  `json:"n,omitempty"`
	// Held: the gateway has yet to lead no requests there any more. At counts from then.
	Held bool `json:"w,omitempty"`
}

// Last is a change that ended.
type Last struct {
	From   int64                 `json:"f"`
	To     int64                 `json:"t"`
	Result v1beta1.UpgradeResult `json:"r"`
	Fault  *Fault                `json:"x,omitempty"`
	Began  int64                 `json:"b,omitempty"`
	Ended  int64                 `json:"e"`
}

// String returns the annotation's text, which ParseRecord reads again: where it would be too long, it has fewer words
// of others.
func (r Record) String() string {
	r.Fault, r.Last = copied(r.Fault), copied(r.Last)
	if r.Last != nil {
		r.Last.Fault = copied(r.Last.Fault)
	}
	return reconcile.Fit(&r, recordLimit, r.shorten)
}

// textOf returns the annotation's text in a service of this UID.
func (r Record) textOf(service types.UID) string {
	r.Of = service
	return r.String()
}

func copied[T any](from *T) *T {
	if from == nil {
		return nil
	}
	to := *from
	return &to
}

// noteApplications adds those of a revision to the applications that were asked for.
func (r *Record) noteApplications(revision Revision) {
	for _, name := range revision.applicationNames() {
		r.noteApplication(name)
	}
}

// noteApplication adds an application to those that were asked for, if there is room.
func (r *Record) noteApplication(application string) {
	hash := hashOf(application)
	if !slices.Contains(r.Applications, hash) && len(r.Applications) < mostAsked {
		r.Applications = append(r.Applications, hash)
		slices.Sort(r.Applications)
	}
}

// hashOf returns how a record names an application.
func hashOf(application string) string {
	hash, _ := naming.ObjectHash(application) // a string always marshals
	return hash
}

// shorten takes away what is needed least, and reports whether there was anything.
func (r *Record) shorten() bool {
	for _, fault := range []*Fault{r.lastFault(), r.Fault} {
		if fault != nil && fault.Text != "" {
			fault.Text = reconcile.Shorten(fault.Text)
			return true
		}
	}
	return false
}

// lastFault returns why the change that ended last was taken back, nil if it was not.
func (r *Record) lastFault() *Fault {
	if r.Last == nil {
		return nil
	}
	return r.Last.Fault
}

// clone returns a record that shares nothing with this one that advance changes.
func (r Record) clone() Record {
	r.Candidate, r.Fault, r.Last = copied(r.Candidate), copied(r.Fault), copied(r.Last)
	r.Retiring, r.Applications = slices.Clone(r.Retiring), slices.Clone(r.Applications)
	return r
}

// listVersions returns the versions that there are, the active one first.
func (r Record) listVersions() []Version {
	if r.Candidate == nil {
		return []Version{r.Active}
	}
	return []Version{r.Active, *r.Candidate}
}

// isCandidate reports whether a version is the candidate: no two versions have one cluster.
func (r Record) isCandidate(version Version) bool {
	return r.Candidate != nil && r.Candidate.Cluster == version.Cluster
}

// ParseRecord reads the annotation's text. It fails on text that this version did not write.
func ParseRecord(text string) (Record, error) {
	return reconcile.ParseRecord(text, recordLimit, func(record *Record) error {
		if record.Version != recordVersion || record.Clusters < 0 {
			return fmt.Errorf("version %d, cluster %d, want version %d and numbers from 0", record.Version, record.Clusters, recordVersion)
		}
		return nil
	})
}

// written returns what the annotation says of the service, nil where it says nothing, or was copied from another.
func written(service *v1beta1.ClusterService) (*Record, error) {
	text, ok := service.Annotations[v1beta1.AnnotationRecord]
	if !ok {
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	record, err := ParseRecord(text)
	if err == nil && record.Of != service.UID {
		return nil, nil //nolint:nilnil // as above
	}
	return &record, err
}

// recall gives the service's record: what the annotation says, else what can be restored of it
// from the status and the clusters, else that of a service that has not begun.
func recall(service *v1beta1.ClusterService, seen *Seen, now time.Time) (Record, error) {
	if record, err := written(service); record != nil {
		return *record, err
	}
	record := Record{Version: recordVersion}
	record.Routed = meta.FindStatusCondition(service.Status.Conditions, v1beta1.ConditionGatewayProgrammed) != nil
	for number := range seen.Clusters {
		record.Clusters = max(record.Clusters, number)
	}
	told := &service.Status
	active, ok := restored(told.Active, seen, now)
	if !ok {
		return record, nil
	}
	record.Active, record.Began = active, now.Unix()
	record.Active.restoreRenewal(told, seen)
	if service.Spec.ClusterRef != nil {
		for i := range told.Active.Applications {
			record.noteApplication(told.Active.Applications[i].Name)
		}
	}
	if candidate, ok := restored(told.Candidate, seen, now); ok && candidate.Cluster != active.Cluster {
		record.Candidate, record.Shift = &candidate, restoredShift(told, now)
		record.Whole = restoredWhole(seen, active, candidate)
	}
	record.restoreFault(told, seen)
	if last := told.LastUpgrade; last != nil {
		record.Last = &Last{From: last.From, To: last.To, Result: last.Result, Began: unix(last.StartTime), Ended: unix(last.EndTime)}
		if last.Reason != "" {
			record.Last.Fault = &Fault{Reason: last.Reason, Text: last.Message}
		}
	}
	if meta.IsStatusConditionTrue(told.Conditions, v1beta1.ConditionSuspended) {
		record.Suspended, record.Drained = true, now.Unix()
	}
	return record, nil
}

// restoreRenewal takes over that pods are being replaced where they are.
func (v *Version) restoreRenewal(told *v1beta1.ClusterServiceStatus, seen *Seen) {
	upgrading := meta.FindStatusCondition(told.Conditions, v1beta1.ConditionUpgrading)
	if upgrading == nil || upgrading.Reason != reason.UpgradeInPlace.Code && upgrading.Reason != reason.UpgradeRecreating.Code {
		return
	}
	v.Renewing = headlessly
	if cluster := seen.Clusters[v.Cluster]; cluster != nil && cluster.Head != nil {
		v.Renewing = string(cluster.Head.UID)
	}
}

// restoredShift returns how far an upgrade is as the status tells of it.
func restoredShift(told *v1beta1.ClusterServiceStatus, now time.Time) upgrade.Shift {
	shift := upgrade.Shift{
		Traffic: int(told.Candidate.TrafficPercent), Active: int(told.Active.CapacityPercent), Candidate: int(told.Candidate.CapacityPercent),
		Proven: told.Candidate.TrafficPercent > 0, Back: told.Phase == v1beta1.PhaseRollingBack, Began: now,
	}
	if shift.Proven || shift.Back { // it has requests, or had some
		shift.At = now
	}
	return shift
}

// restoreFault takes over what was taken back.
func (r *Record) restoreFault(told *v1beta1.ClusterServiceStatus, seen *Seen) {
	rolled := meta.FindStatusCondition(told.Conditions, v1beta1.ConditionRolledBack)
	if rolled == nil || rolled.Status != metav1.ConditionTrue {
		return
	}
	if r.Candidate != nil {
		r.Failed, r.Fault = r.Candidate.Revision, &Fault{Reason: rolled.Reason, Text: cut(rolled.Message)}
		return
	}
	if told.LastUpgrade == nil {
		return
	}
	for id, revision := range seen.Revisions {
		if revision.Number == told.LastUpgrade.To {
			r.Failed, r.Fault = id, &Fault{Reason: told.LastUpgrade.Reason, Text: told.LastUpgrade.Message}
		}
	}
}

// restored returns a version as the status tells of it, if its revision is still kept, and a cluster of the
// service's own is there.
func restored(told *v1beta1.ServiceVersion, seen *Seen, now time.Time) (Version, bool) {
	if told == nil {
		return Version{}, false
	}
	version := Version{At: now.Unix()}
	for number, cluster := range seen.Clusters {
		if cluster.Name == told.ClusterName {
			version.Cluster = number
		}
	}
	for id, revision := range seen.Revisions {
		if revision.Number == told.Revision {
			version.Pods, version.Revision = revision.Pods, id
		}
		if revision.Number == told.GoodRevision {
			version.Good = id
		}
	}
	gone := seen.Clusters[version.Cluster] == nil && version.Pods != "" // and its number with it
	return version, version.Revision != "" && !gone
}

func unix(at *metav1.Time) int64 {
	if at == nil {
		return 0
	}
	return at.Unix()
}

func since(seconds int64, now time.Time) time.Duration { return now.Sub(time.Unix(seconds, 0)) }
