package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/heliostat-dev/heliostat/apiserver/kept"
	"github.com/heliostat-dev/heliostat/apiserver/spelling"
	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/portal/problem"
	historyv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
)

// kindsKept are the kinds that have a history, and what records call them.
var kindsKept = map[string]string{view.Clusters: "ComputeCluster", view.Jobs: "ClusterJob", view.Services: "ClusterService"}

// namesKept are the kinds that have a history, in order.
var namesKept = []string{view.Clusters, view.Jobs, view.Services}

// histories are what a right to the archives of namespaces that are gone is a right to. No object is of that kind.
const histories = "histories"

// history are the calls about what is kept of objects.
type history struct{ *reviewer }

// keptTarget is what calls about what is kept of an object have in common.
type keptTarget interface {
	target
	GetUid() string
}

// errHistoryOff is that there are no archivers.
var errHistoryOff = problem.New(http.StatusConflict, "HistoryOff", "no history is kept here: it is not installed",
	"set history.enabled=true in the values of the chart")

// kept returns what reads histories, or that none are kept.
func (v *reviewer) kept() (*kept.Kept, error) {
	if v.History == nil {
		return nil, errHistoryOff
	}
	return &kept.Kept{Archivers: v.History, Clock: v.Clock}, nil
}

// checkKept returns what is wrong with what a call names.
func checkKept(on keptTarget) error {
	values := map[string]string{"namespace": on.GetNamespace(), "kind": on.GetKind(), "name": on.GetName()}
	if on.GetUid() != "" {
		values["uid"] = on.GetUid()
	}
	if err := checkPath(values); err != nil {
		return err
	}
	if kindsKept[on.GetKind()] == "" {
		return problem.New(http.StatusNotFound, "NotFound", fmt.Sprintf("no history is kept of %s", on.GetKind()),
			spelling.Remedy(on.GetKind(), namesKept))
	}
	return nil
}

// goneAttributes return the right to what namespaces left that are gone.
func goneAttributes(verb string) authorizationv1.ResourceAttributes {
	return attributes(verb, histories, "", "", "")
}

// found is what is kept of an object that the caller may read.
type found struct {
	*kept.Object
	got *historyv1.GetRecordResponse
	// rights are those that were asked for: they are asked for again while an answer goes on.
	rights []authorizationv1.ResourceAttributes
}

// find returns what is kept of the object that a call names. Its namespace must be the one that is there now, or the caller must have the
// right to those that are gone. A UID that nothing is kept of is refused as one that the caller has no right to.
func (v *reviewer) find(ctx context.Context, call string, on keptTarget) (*found, error) {
	if err := checkKept(on); err != nil {
		return nil, err
	}
	rights := attributesOf(call, on.GetKind(), on)
	refused := v.mayAll(ctx, rights)
	if refused != nil && !isForbidden(refused) {
		return nil, refused
	}
	archivers, err := v.kept()
	if err != nil {
		if refused != nil {
			return nil, refused
		}
		return nil, err
	}
	namespace, err := v.Access.NamespaceUID(ctx, on.GetNamespace())
	if err != nil {
		return nil, fmt.Errorf("find namespace %s: %w", on.GetNamespace(), err)
	}
	request := &historyv1.GetRecordRequest{Kind: kindsKept[on.GetKind()], Name: on.GetName(), Uid: on.GetUid()}
	if refused == nil && namespace != "" {
		request.NamespaceUid = string(namespace)
		if got, err := getRecord(ctx, archivers, request, on); got != nil || err != nil {
			return foundOf(got, rights, err)
		}
	}
	verb := "get"
	if call == "DeleteHistory" {
		verb = "delete"
	}
	gone := []authorizationv1.ResourceAttributes{goneAttributes(verb)}
	switch err := v.mayAll(ctx, gone); {
	case isForbidden(err):
	case err != nil:
		return nil, err
	default:
		request.NamespaceUid, request.Namespace = "", on.GetNamespace()
		got, err := getRecord(ctx, archivers, request, on)
		if err != nil || got != nil && got.GetRecord().GetNamespaceUid() != string(namespace) {
			return foundOf(got, gone, err)
		}
	}
	return nil, v.whyNothing(ctx, on, rights[0], refused)
}

// whyNothing returns why nothing of an object is shown.
func (v *reviewer) whyNothing(ctx context.Context, on keptTarget, right authorizationv1.ResourceAttributes, refused error) error {
	if refused != nil {
		return refused
	}
	if on.GetUid() == "" {
		return problem.New(http.StatusNotFound, "NotFound", fmt.Sprintf("nothing is kept of %s %s", view.Resource(on.GetKind()), on.GetName()),
			"look at the list of what is kept (GET /v1/history)")
	}
	caller, err := callerOf(ctx)
	if err != nil {
		return err
	}
	resource := right.Resource
	if right.Subresource != "" {
		resource += "/" + right.Subresource
	}
	return problem.Forbidden(caller.User().Username, right.Verb, resource, on.GetNamespace())
}

// getRecord returns the record of an object, and nil where there is none of that name.
func getRecord(
	ctx context.Context, archivers *kept.Kept, request *historyv1.GetRecordRequest, on keptTarget,
) (*historyv1.GetRecordResponse, error) {
	got, err := archivers.GetRecord(ctx, request)
	switch its := got.GetRecord(); {
	case status.Code(err) == codes.NotFound, status.Code(err) == codes.InvalidArgument:
		return nil, nil //nolint:nilnil // there is none, or the UID can be none
	case err != nil:
		return nil, ofArchivers(err)
	case its.GetName() != on.GetName() || its.GetNamespace() != on.GetNamespace() || its.GetKind() != request.GetKind():
		return nil, nil //nolint:nilnil // a UID of another object
	}
	return got, nil
}

func foundOf(got *historyv1.GetRecordResponse, rights []authorizationv1.ResourceAttributes, err error) (*found, error) {
	if err != nil {
		return nil, err
	}
	object, err := kept.ObjectOf(got)
	if err != nil {
		return nil, err
	}
	return &found{object, got, rights}, nil
}

// ofArchivers returns why archivers did not answer as a problem. Other errors stay.
func ofArchivers(err error) error {
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return err
	case kept.IsUnavailable(err):
		return problem.New(http.StatusServiceUnavailable, "HistoryAway", "no archiver answers", "try again").Later(5 * time.Second)
	case status.Code(err) == codes.FailedPrecondition:
		return problem.New(http.StatusServiceUnavailable, "HistoryAway", "no archiver writes now", "try again").Later(5 * time.Second)
	case status.Code(err) == codes.InvalidArgument:
		return problem.Bad("continue", "is none that a page gave, or something is too long", "begin with the first page")
	}
	return err
}

// isRemoved reports whether the state of an archive is that nothing of it is left.
func isRemoved(state string) bool { return state == "Expired" || state == "Deleted" }

// errGone returns that what was kept of an object is gone, and since when.
func errGone(record *historyv1.Record) error {
	at := time.UnixMilli(record.GetMarked()).UTC().Format(time.RFC3339)
	if record.GetArchiveState() == "Deleted" {
		return problem.New(http.StatusGone, "Gone", fmt.Sprintf("the history was deleted at %s by %s", at, record.GetMarkedBy()), "")
	}
	return problem.New(http.StatusGone, "Gone", "the history expired at "+at, "keep it for longer (spec.history.keepFor)")
}

// GetHistory implements the protocol.
func (h history) GetHistory(ctx context.Context, r *heliostatv1.GetHistoryRequest) (*heliostatv1.GetHistoryResponse, error) {
	object, err := h.find(ctx, "GetHistory", r)
	if err != nil {
		return nil, err
	}
	if isRemoved(object.Record.GetArchiveState()) && len(object.got.GetObject()) == 0 {
		return nil, errGone(object.Record)
	}
	answer := &heliostatv1.GetHistoryResponse{Record: recordOf(object.Record)}
	if len(object.got.GetObject()) > 0 {
		answer.Object = &structpb.Struct{}
		if err := answer.Object.UnmarshalJSON(object.got.GetObject()); err != nil {
			return nil, fmt.Errorf("read the record of %s %s: %w", r.GetKind(), r.GetName(), err)
		}
	}
	answer.Hidden, err = h.hidden(ctx, object, r.GetNamespace())
	if err != nil {
		return nil, err
	}
	if !slices.Contains(answer.Hidden, "events") {
		answer.Events = keptEvents(object.got.GetEvents())
	}
	if !slices.Contains(answer.Hidden, "pods") {
		answer.Pods = keptPods(object.got.GetPods())
	}
	return answer, nil
}

// hidden returns what a caller may not list in a namespace. Who has the right to namespaces that are gone may.
func (h history) hidden(ctx context.Context, object *found, namespace string) ([]string, error) {
	if object.rights[0].Resource == histories {
		return nil, nil
	}
	caller, err := callerOf(ctx)
	if err != nil {
		return nil, err
	}
	var hidden []string
	for _, one := range []authorizationv1.ResourceAttributes{
		{Verb: "list", Version: "v1", Resource: "pods", Namespace: namespace},
		{Verb: "list", Group: "events.k8s.io", Version: "v1", Resource: "events", Namespace: namespace},
	} {
		err := h.Access.May(ctx, caller, one)
		switch {
		case isForbidden(err):
			hidden = append(hidden, one.Resource)
		case err != nil:
			return nil, fmt.Errorf("ask whether the caller may list %s: %w", one.Resource, err)
		}
	}
	return hidden, nil
}

// DeleteHistory implements the protocol.
func (h history) DeleteHistory(ctx context.Context, r *heliostatv1.DeleteHistoryRequest) (*heliostatv1.DeleteHistoryResponse, error) {
	object, err := h.find(ctx, "DeleteHistory", r)
	if err != nil {
		return nil, err
	}
	if object.Record.GetArchiveState() == "Deleted" {
		return nil, errGone(object.Record)
	}
	caller, err := callerOf(ctx)
	if err != nil {
		return nil, err
	}
	its := object.Record
	err = h.History.DeleteHistory(ctx, &historyv1.DeleteHistoryRequest{
		NamespaceUid: its.GetNamespaceUid(), Kind: its.GetKind(), Uid: its.GetUid(), User: caller.User().Username,
	})
	if err != nil {
		return nil, ofArchivers(err)
	}
	return &heliostatv1.DeleteHistoryResponse{Uid: its.GetUid()}, nil
}

// recordOf returns a record as the protocol has it.
func recordOf(one *historyv1.Record) *heliostatv1.HistoryRecord {
	answer := &heliostatv1.HistoryRecord{
		Kind: kindOf(one.GetKind()), Namespace: one.GetNamespace(), Name: one.GetName(), Uid: one.GetUid(), Owner: valid(one.GetOwner()),
		Phase: one.GetPhase(), Code: one.GetReason(), Message: valid(one.GetMessage()), Created: stampOf(one.GetCreated()),
		Ended: stampOf(one.GetEnded()), Deleted: stampOf(one.GetDeleted()), EndUnknown: one.GetEndUnknown(), ClusterUids: one.GetClusterUids(),
	}
	if one.GetArchiveState() != "" {
		answer.Archive = &heliostatv1.Archive{
			ClusterUid: one.GetUid(), State: one.GetArchiveState(), Archived: stampOf(one.GetArchived()), Removed: stampOf(one.GetMarked()),
			RemovedBy: valid(one.GetMarkedBy()),
		}
	}
	return answer
}

// kindOf returns the kind of a record as paths have it.
func kindOf(kind string) string {
	for _, one := range namesKept {
		if kindsKept[one] == kind {
			return one
		}
	}
	return ""
}

func keptEvents(all []*historyv1.Event) []*heliostatv1.HistoryEvent {
	events := make([]*heliostatv1.HistoryEvent, 0, len(all))
	for _, one := range all {
		events = append(events, &heliostatv1.HistoryEvent{
			Kind: one.GetKind(), Name: one.GetName(), Type: one.GetType(), Reason: one.GetReason(), Message: valid(one.GetMessage()),
			First: stampOf(one.GetFirst()), Last: stampOf(one.GetLast()), Count: one.GetCount(),
		})
	}
	return events
}

func keptPods(all []*historyv1.Pod) []*heliostatv1.HistoryPod {
	pods := make([]*heliostatv1.HistoryPod, 0, len(all))
	for _, one := range all {
		pods = append(pods, &heliostatv1.HistoryPod{
			Name: one.GetName(), Uid: one.GetUid(), Group: one.GetGroup(), Node: one.GetNode(), Created: stampOf(one.GetCreated()),
			Ended: stampOf(one.GetEnded()), Reason: one.GetReason(), ExitCode: one.GetExitCode(),
		})
	}
	return pods
}
