package cluster

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/naming"
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
	// HeadUID is the UID of the epoch's head pod, empty until it was made.
	HeadUID types.UID `json:"headUID,omitempty"`
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
	if record.Version != recordVersion || record.Epoch < 1 {
		return Record{}, fmt.Errorf("parse record: version %d and epoch %d, want version %d and an epoch from 1",
			record.Version, record.Epoch, recordVersion)
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
			record.HeadUID = types.UID(head.UID)
		}
		return record, nil
	}
	for i := range pods {
		if at, err := naming.ParsePlace(pods[i].Labels); err == nil {
			record.Epoch = max(record.Epoch, at.Epoch)
		}
	}
	return record, nil
}
