package records

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/heliostat-dev/heliostat/history/record"
	"github.com/heliostat-dev/heliostat/history/retain"
	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Kinds that have records.
const (
	kindCluster = "ComputeCluster"
	kindJob     = "ClusterJob"
	kindService = "ClusterService"
)

// Bounds of a row. Texts of statuses and events are as long as who writes them makes them.
const (
	maxText     = 1 << 10
	maxEvents   = 100
	maxClusters = 1 << 10
)

// row is what is kept of an object. Times are milliseconds of Unix time.
type row struct {
	Kind         string `json:"kind"`
	Namespace    string `json:"namespace"`
	NamespaceUID string `json:"namespaceUID"`
	Name         string `json:"name"`
	UID          string `json:"uid"`
	Owner        string `json:"owner,omitempty"`
	Phase        string `json:"phase,omitempty"`
	Reason       string `json:"reason,omitempty"`
	Message      string `json:"message,omitempty"`
	Created      int64  `json:"created"`
	// Ended is when the object came to its end, and Deleted when it was deleted. 0 is that it has not, or was not.
	Ended   int64 `json:"ended,omitempty"`
	Deleted int64 `json:"deleted,omitempty"`
	// EndUnknown is that the object went while nobody watched.
	EndUnknown bool     `json:"endUnknown,omitempty"`
	Clusters   []string `json:"clusters,omitempty"`
	// KeepFor is that of the spec, and 0 where it has none.
	KeepFor int64 `json:"keepFor,omitempty"`
	// State is Expired or Deleted, of what is kept, since Marked and by MarkedBy.
	State    string `json:"state,omitempty"`
	Marked   int64  `json:"marked,omitempty"`
	MarkedBy string `json:"markedBy,omitempty"`
	// At is when the row was made. Of two rows of an object the newer one counts.
	At     int64           `json:"at"`
	Object json.RawMessage `json:"object,omitempty"`
	Events []event         `json:"events,omitempty"`
}

// event is an event about an object, or about a pod of a cluster.
type event struct {
	UID     string `json:"uid"`
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	First   int64  `json:"first"`
	Last    int64  `json:"last"`
	Count   int32  `json:"count"`
}

// newRow returns the row of an object as it is now. namespaceUID is that of the object's namespace.
func newRow(object *unstructured.Unstructured, namespaceUID string, now int64) (*row, error) {
	text, err := record.Of(object.Object)
	if err != nil {
		return nil, fmt.Errorf("make the record of %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	one := &row{
		Kind: object.GetKind(), Namespace: object.GetNamespace(), NamespaceUID: namespaceUID, Name: object.GetName(), UID: string(object.GetUID()),
		Owner: shortened(object.GetAnnotations()[v1beta1.AnnotationOwner]), Created: object.GetCreationTimestamp().UnixMilli(), At: now, Object: text,
	}
	one.Phase, _, _ = unstructured.NestedString(object.Object, "status", "phase")
	one.Phase = shortened(one.Phase)
	one.Reason, one.Message = causeOf(object)
	if ended, _, _ := unstructured.NestedString(object.Object, "status", "endTime"); ended != "" && one.Kind == kindJob {
		if at, err := time.Parse(time.RFC3339, ended); err == nil {
			one.Ended = at.UnixMilli()
		}
	}
	one.KeepFor = keepForOf(object)
	one.Clusters = clustersOf(object)
	return one, nil
}

// causeOf returns the reason and message of the condition that says how an object is.
func causeOf(object *unstructured.Unstructured) (reason, message string) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, wanted := range []string{"Finished", "Ready"} {
		for _, entry := range conditions {
			condition, _ := entry.(map[string]any)
			if condition["type"] != wanted || wanted == "Finished" && condition["status"] != string(metav1.ConditionTrue) {
				continue
			}
			reason, _ = condition["reason"].(string)
			message, _ = condition["message"].(string)
			return shortened(reason), shortened(message)
		}
	}
	return "", ""
}

// keepForOf returns how long what is left of an object is kept, as its spec says.
func keepForOf(object *unstructured.Unstructured) int64 {
	for _, path := range [][]string{{"spec", "history", "keepFor"}, {"spec", "clusterTemplate", "spec", "history", "keepFor"}} {
		text, _, _ := unstructured.NestedString(object.Object, path...)
		if keepFor, err := time.ParseDuration(text); err == nil && keepFor > 0 {
			return keepFor.Milliseconds()
		}
	}
	return 0
}

// clustersOf returns the UIDs of the clusters that an object ran on, as it names them itself.
func clustersOf(object *unstructured.Unstructured) []string {
	switch object.GetKind() {
	case kindCluster:
		return []string{string(object.GetUID())}
	case kindJob:
		var all []string
		attempts, _, _ := unstructured.NestedSlice(object.Object, "status", "attempts")
		for _, entry := range attempts {
			attempt, _ := entry.(map[string]any)
			if uid, _ := attempt["clusterUID"].(string); uid != "" && !slices.Contains(all, uid) && len(all) < maxClusters {
				all = append(all, uid)
			}
		}
		return all
	}
	return nil
}

// after returns the row that holds after another one of the same object: the newer of both, with what only the older one has.
func (r *row) after(before *row) *row {
	if before == nil {
		return r
	}
	newer, older := r, before
	if r.At < before.At {
		newer, older = before, r
	}
	one := *newer
	// An end that was watched counts more than one that was only noticed.
	// An object that is seen again after its absence was noticed had not gone.
	if older.Deleted != 0 && (one.Deleted == 0 && !older.EndUnknown || one.EndUnknown && !older.EndUnknown) {
		one.Deleted, one.EndUnknown = older.Deleted, older.EndUnknown
	}
	if older.State != "" && one.State == "" {
		one.State, one.Marked, one.MarkedBy = older.State, older.Marked, older.MarkedBy
	}
	if one.NamespaceUID == "" {
		one.NamespaceUID = older.NamespaceUID
	}
	if one.Object == nil {
		one.Object = older.Object
	}
	for _, uid := range older.Clusters {
		if !slices.Contains(one.Clusters, uid) && len(one.Clusters) < maxClusters {
			one.Clusters = append(slices.Clip(one.Clusters), uid)
		}
	}
	one.Events = merged(one.Events, older.Events)
	if one.State != "" && one.Kind != kindCluster { // what was deleted does not come back with an older row
		one.Object, one.Events, one.Message = nil, nil, ""
	}
	return &one
}

// merged returns the events of both, the newer of two with one UID, and at most the newest of all.
func merged(newer, older []event) []event {
	byUID := map[string]event{}
	for _, one := range slices.Concat(older, newer) {
		if known, is := byUID[one.UID]; !is || one.Last >= known.Last {
			byUID[one.UID] = one
		}
	}
	all := make([]event, 0, len(byUID))
	for _, one := range byUID {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b event) int { return cmp.Or(cmp.Compare(a.Last, b.Last), cmp.Compare(a.UID, b.UID)) })
	if len(all) > maxEvents {
		all = all[len(all)-maxEvents:]
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// end returns when the object ended or was deleted, and 0 while it goes on.
func (r *row) end() int64 { return cmp.Or(r.Ended, r.Deleted) }

// hasFailed reports whether the object failed.
func (r *row) hasFailed() bool { return r.Phase == "Failed" }

// life returns how far the object is, for retention.
func (r *row) life() retain.Record {
	one := retain.Record{Life: retain.Living}
	switch {
	case r.State != "":
		one.Life, one.At = retain.Marked, r.Marked
	case r.Deleted != 0:
		one.Life, one.At = retain.Ended, r.end()
	}
	return one
}

// message returns the row as the protocol has it.
func (r *row) message() *pb.Record {
	one := &pb.Record{
		Kind: r.Kind, Namespace: r.Namespace, NamespaceUid: r.NamespaceUID, Name: r.Name, Uid: r.UID, Owner: r.Owner, Phase: r.Phase,
		Reason: r.Reason, Message: r.Message, Created: r.Created, Ended: r.Ended, Deleted: r.Deleted, EndUnknown: r.EndUnknown,
		ClusterUids: r.Clusters, ArchiveState: r.State, Marked: r.Marked, MarkedBy: r.MarkedBy,
	}
	if r.Kind == kindCluster {
		one.Ended = r.Deleted
	}
	return one
}

// summary returns the row as lists have it.
func (r *row) summary() row {
	one := *r
	one.Object, one.Events = nil, nil
	return one
}

func (e event) message() *pb.Event {
	return &pb.Event{Kind: e.Kind, Name: e.Name, Type: e.Type, Reason: e.Reason, Message: e.Message, First: e.First, Last: e.Last, Count: e.Count}
}

// shortened returns the beginning of a text.
func shortened(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}
