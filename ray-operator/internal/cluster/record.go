package cluster

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

const (
	// recordVersion is the version of the record's form, recordLimit its largest size in bytes.
	recordVersion = 1
	recordLimit   = 4096
	// maxEpoch is the highest epoch of a record: programs of every language read it exactly, and a cluster that begins
	// one each second counts there for 285 million years.
	maxEpoch = 1 << 53
)

// Record holds the facts about a cluster that are neither spec nor observable. It
// lives in an annotation and is written before the act that depends on it.
type Record struct {
	Version int `json:"v"`
	// Of is the UID of the cluster that the record is about.
	Of types.UID `json:"of,omitempty"`
	// Epoch counts the heads, from 1.
	Epoch int64 `json:"epoch"`
	// Session is the epoch in which the cluster's memory began, 0 where that is Epoch.
	Session int64 `json:"session,omitempty"`
	// Failures counts the heads before this one that ended soon after they were made, one in place of the other.
	Failures int `json:"failures,omitempty"`
	// Accepted are the IDs of rules that the spec breaks and that no earlier operator asked for.
	Accepted []string `json:"accepted,omitempty"`
	// HeadUID is the UID of the epoch's head pod, empty until it was made.
	HeadUID types.UID `json:"headUID,omitempty"`
	// Volume is the UID of the claim that the head's memory is on, where it is on one.
	Volume types.UID `json:"volume,omitempty"`
	// Suspended is there from before the first pod is deleted until the cluster resumes.
	Suspended Suspension `json:"suspended,omitzero"`
	// Scaled is what must be remembered of groups that are or were autoscaled.
	Scaled map[string]RecordedSize `json:"scaled,omitempty"`
	// Roll is the autoscaled group that is being rolled.
	Roll Roll `json:"roll,omitzero"`
	// Policy is the idle policy as it was seen to change, zero where it is as old as the cluster.
	Policy SeenPolicy `json:"policy,omitzero"`
}

// SeenPolicy is an idle policy, by its hash, and since when it is the cluster's, in seconds of Unix time.
type SeenPolicy struct {
	Hash  string `json:"hash"`
	Since int64  `json:"since"`
}

// Causes of a suspension.
const (
	suspendedBySpec = "Spec"
	suspendedIdle   = "Idle"
	suspendedQueued = "Queue"
)

// Suspension says why a cluster has no pods, and for one that its idle policy suspended,
// what it looked like then: a change of either wakes it.
type Suspension struct {
	Cause      string `json:"cause"`
	Generation int64  `json:"generation,omitempty"`
	// Since is since when the cluster was idle, in seconds of Unix time.
	Since int64 `json:"since,omitempty"`
	// Resume is a hash of the value of the annotation heliostat.dev/resume.
	Resume string `json:"resume,omitempty"`
}

// idleSince returns since when the cluster was idle, as people read it. It is not known where the
// record was lost and came back from the status.
func (s Suspension) idleSince() string {
	if s.Since == 0 {
		return "before its record was lost"
	}
	return reconcile.Stamp(time.Unix(s.Since, 0))
}

// boundTo binds a record to its cluster, so that it counts nowhere else.
func (r Record) boundTo(cluster *v1beta1.ComputeCluster) Record {
	r.Of = cluster.UID
	return r
}

// isOf reports whether a record can be that of a cluster: one that was copied from another is not, nor is one of an
// epoch that the cluster cannot have reached. The status is at most one epoch behind the record, or behind the pods.
func (r Record) isOf(cluster *v1beta1.ComputeCluster, pods []corev1.Pod) bool {
	reached := cluster.Status.Epoch
	switch {
	case r.Of != cluster.UID:
		return false
	case reached == 0: // nothing was told yet, or it was wiped
		return true
	}
	for i := range pods {
		if at, err := naming.ParsePlace(pods[i].Labels); err == nil {
			reached = max(reached, at.Epoch)
		}
	}
	return r.Epoch <= reached+1
}

// contradictingHead returns the UID of the head that lives, where the status names it and the record another; else
// empty.
func (r Record) contradictingHead(cluster *v1beta1.ComputeCluster, pods []corev1.Pod) types.UID {
	head := cluster.Status.Head
	if head == nil || r.HeadUID == "" || r.HeadUID == head.UID || r.Epoch != cluster.Status.Epoch {
		return ""
	}
	for i := range pods {
		at, _ := naming.ParsePlace(pods[i].Labels)
		live := Pod{Pod: &pods[i], At: at}
		if live.UID == head.UID && live.isHead() && at.Epoch == r.Epoch && live.isStaying() {
			return live.UID
		}
	}
	return ""
}

// String returns the annotation's text, which ParseRecord reads again.
func (r Record) String() string { return reconcile.Fit(r, recordLimit, func() bool { return false }) }

// ParseRecord reads the annotation's text. It fails on text that this version did not write.
func ParseRecord(text string) (Record, error) {
	return reconcile.ParseRecord(text, recordLimit, checkRecord)
}

// checkRecord returns what is wrong with a record: it is of a later version, has no epoch, or keeps nothing of a group.
func checkRecord(record *Record) error {
	for name, held := range record.Scaled {
		if len(held) == 0 {
			return fmt.Errorf("nothing is kept of the group %q", name)
		}
	}
	if record.Version != recordVersion || record.Epoch < 1 || record.Epoch > maxEpoch || record.Session < 0 || record.Session > record.Epoch {
		return fmt.Errorf("version %d, epoch %d and session %d, want version %d, an epoch from 1 to %d and no session after it",
			record.Version, record.Epoch, record.Session, recordVersion, int64(maxEpoch))
	}
	return nil
}

// recallRecord gives the cluster's record and reports whether its annotation lacks it: what that says where it can be
// this cluster's, else what the status mirrors, else what the pods themselves say, else that of a new cluster.
func recallRecord(cluster *v1beta1.ComputeCluster, pods []corev1.Pod) (record Record, missing bool, err error) {
	text, ok := cluster.Annotations[v1beta1.AnnotationRecord]
	if !ok {
		return restoreRecord(cluster, pods), true, nil
	}
	if record, err = ParseRecord(text); err != nil {
		return record, false, err
	}
	if !record.isOf(cluster, pods) {
		return restoreRecord(cluster, pods), true, nil
	}
	if head := record.contradictingHead(cluster, pods); head != "" {
		record.HeadUID, missing = head, true
	}
	return record, missing, nil
}

// restoreRecord returns the record of a cluster whose annotation says nothing of it.
func restoreRecord(cluster *v1beta1.ComputeCluster, pods []corev1.Pod) Record {
	record := Record{Version: recordVersion, Epoch: min(max(1, cluster.Status.Epoch), maxEpoch)}
	if cluster.Status.Epoch > 0 {
		if head := cluster.Status.Head; head != nil {
			record.HeadUID, record.Failures = head.UID, int(head.Failures)
		}
		if session := cluster.Status.Session; session < record.Epoch {
			record.Session = session
		}
		if store := cluster.Status.ControlStore; store != nil && store.Session < record.Epoch {
			record.Session = store.Session
		}
		record.Suspended, record.Scaled, record.Roll = mirroredSuspension(cluster), mirroredSizes(cluster), mirroredRoll(cluster.Status)
		return record
	}
	session := int64(0)
	for i := range pods {
		if at, err := naming.ParsePlace(pods[i].Labels); err == nil {
			record.Epoch = max(record.Epoch, at.Epoch)
			if at.Group != "" {
				session = max(session, at.Epoch)
			}
		}
	}
	if cluster.Spec.ControlStore != nil && session < record.Epoch {
		record.Session = session
	}
	return record
}

// recordedIncarnation returns the incarnation that the record names.
func (r Record) recordedIncarnation() Incarnation {
	return Incarnation{Epoch: r.Epoch, Session: cmp.Or(r.Session, r.Epoch)}
}

// withIncarnation gives the record an incarnation.
func (r Record) withIncarnation(of Incarnation) Record {
	r.Epoch, r.Session = of.Epoch, of.Session
	if of.Session == of.Epoch {
		r.Session = 0
	}
	return r
}

// mirroredSuspension returns the suspension as the status tells of it: one that is complete, or one that
// has begun, of which the spec reports whether it is its own.
func mirroredSuspension(cluster *v1beta1.ComputeCluster) Suspension {
	told := meta.FindStatusCondition(cluster.Status.Conditions, v1beta1.ConditionSuspended)
	switch {
	case told == nil:
		return Suspension{}
	case told.Reason == reason.SuspendedIdle.Code, told.Reason == reason.Suspending.Code && !ptr.Deref(cluster.Spec.Suspend, false):
		return Suspension{Cause: suspendedIdle, Generation: told.ObservedGeneration, Resume: resumption(cluster)}
	case told.Reason == reason.SuspendedBySpec.Code, told.Reason == reason.Suspending.Code:
		return Suspension{Cause: suspendedBySpec}
	default: // it only tells that the idle policy is going to act, or that a queue has it wait
		return Suspension{}
	}
}
