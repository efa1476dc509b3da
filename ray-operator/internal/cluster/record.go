package cluster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// recordVersion is the version of the record's form; recordLimit its largest size in
// bytes.
const (
	recordVersion = 1
	recordLimit   = 4096
)

// Record holds the facts about a cluster that are neither spec nor observable. It
// lives in an annotation and is written before the act that depends on it.
type Record struct {
	Version int `json:"v"`
	// Epoch counts the heads, from 1.
	Epoch int64 `json:"epoch"`
	// Session is the epoch in which the cluster's memory began, 0 where that is Epoch.
	Session int64 `json:"session,omitempty"`
	// Failures counts the heads before this one that ended soon after they were made, one in place of the other.
	Failures int `json:"failures,omitempty"`
	// HeadUID is the UID of the epoch's head pod, empty until it was made.
	HeadUID types.UID `json:"headUID,omitempty"`
	// Volume is the UID of the claim that the head's memory is on, where it is on one.
	Volume types.UID `json:"volume,omitempty"`
	// Suspended is there from before the first pod is deleted until the cluster resumes.
	Suspended Suspension `json:"suspended,omitzero"`
	// Scaled is what is to be remembered of groups that are or were autoscaled.
	Scaled map[string]Held `json:"scaled,omitempty"`
	// Roll is the autoscaled group that is being rolled.
	Roll Roll `json:"roll,omitzero"`
}

// Causes of a suspension.
const (
	suspendedBySpec = "Spec"
	suspendedIdle   = "Idle"
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

// since is since when the cluster was idle, as people read it. It is not known where the
// record was lost and came back from the status.
func (s Suspension) since() string {
	if s.Since == 0 {
		return "before its record was lost"
	}
	return told(time.Unix(s.Since, 0))
}

// String is the annotation's text.
func (r Record) String() string {
	text, _ := json.Marshal(r) // two numbers and a string always marshal
	return string(text)
}

// ParseRecord reads the annotation's text. It fails on text that this version did not
// write: too long, not JSON, of a later version, or without an epoch.
func ParseRecord(text string) (Record, error) {
	var record Record
	if len(text) > recordLimit {
		return record, fmt.Errorf("parse record: %d bytes, at most %d", len(text), recordLimit)
	}
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		return Record{}, fmt.Errorf("parse record: %w", err)
	}
	for name, held := range record.Scaled {
		if len(held) == 0 {
			return Record{}, fmt.Errorf("parse record: nothing is kept of the group %q", name)
		}
	}
	if record.Version != recordVersion || record.Epoch < 1 || record.Session < 0 || record.Session > record.Epoch {
		return Record{}, fmt.Errorf("parse record: version %d, epoch %d and session %d, want version %d, an epoch from 1 and no session after it",
			record.Version, record.Epoch, record.Session, recordVersion)
	}
	return record, nil
}

// recall gives the cluster's record: the annotation, else what the status mirrors,
// else what the pods themselves say, else that of a new cluster.
func recall(cluster *v1alpha1.ComputeCluster, pods []corev1.Pod) (Record, error) {
	if text, ok := cluster.Annotations[v1alpha1.AnnotationRecord]; ok {
		return ParseRecord(text)
	}
	record := Record{Version: recordVersion, Epoch: max(1, cluster.Status.Epoch)}
	if cluster.Status.Epoch > 0 {
		if head := cluster.Status.Head; head != nil {
			record.HeadUID, record.Failures = types.UID(head.UID), int(head.Failures)
		}
		if session := cluster.Status.Session; session < record.Epoch {
			record.Session = session
		}
		if store := cluster.Status.ControlStore; store != nil && store.Session < record.Epoch {
			record.Session = store.Session
		}
		record.Suspended, record.Scaled, record.Roll = mirrored(cluster), mirroredSizes(cluster), mirroredRoll(cluster.Status)
		return record, nil
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
	return record, nil
}

// turn is the record's.
func (r Record) turn() Turn { return Turn{Epoch: r.Epoch, Session: cmp.Or(r.Session, r.Epoch)} }

// taking gives the record a turn.
func (r Record) taking(turn Turn) Record {
	r.Epoch, r.Session = turn.Epoch, turn.Session
	if turn.Session == turn.Epoch {
		r.Session = 0
	}
	return r
}

// mirrored is the suspension as the status tells of it: one that is complete, or one that
// has begun, of which the spec tells whether it is its own.
func mirrored(cluster *v1alpha1.ComputeCluster) Suspension {
	told := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionSuspended)
	switch {
	case told == nil:
		return Suspension{}
	case told.Reason == reason.SuspendedIdle.Code, told.Reason == reason.Suspending.Code && !cluster.Spec.Suspend:
		return Suspension{Cause: suspendedIdle, Generation: told.ObservedGeneration, Resume: resumption(cluster)}
	case told.Reason == reason.SuspendedBySpec.Code, told.Reason == reason.Suspending.Code:
		return Suspension{Cause: suspendedBySpec}
	default: // it only tells that the idle policy is going to act
		return Suspension{}
	}
}
