package rest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/apiserver/explain"
	"github.com/heliostat-dev/heliostat/apiserver/feed"
	"github.com/heliostat-dev/heliostat/apiserver/phases"
	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/limits"
	"github.com/heliostat-dev/heliostat/portal/problem"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// isForbidden reports whether an error is that the caller may not do something.
func isForbidden(err error) bool {
	var p *problem.Problem
	isSaid := errors.As(err, &p) && p.Reason == "Forbidden"
	return isSaid || errors.Is(err, access.ErrForbidden) || apierrors.IsForbidden(err)
}

// GetObject implements the protocol.
func (p *portal) GetObject(
	ctx context.Context, r *heliostatv1.GetObjectRequest,
) (*heliostatv1.GetObjectResponse, error) {
	if err := p.permit(ctx, "GetObject", r); err != nil {
		return nil, err
	}
	key := view.Key{Kind: r.GetKind(), Namespace: r.GetNamespace(), Name: r.GetName()}
	if err := p.await(ctx, key); err != nil {
		return nil, err
	}
	object, line, is := p.View.Find(key)
	if !is { // it went in between
		return nil, missing(key)
	}
	caller, err := callerOf(ctx)
	if err != nil {
		return nil, err
	}
	// As the API server has it: the view's own lacks fields that this server does not know.
	of := access.ObjectName{Resource: view.Resource(key.Kind), Namespace: key.Namespace, Name: key.Name}
	fields, err := p.Access.FindObject(ctx, caller, of)
	if err != nil {
		return nil, fmt.Errorf("find %s %s: %w", key.Kind, key.Name, err)
	}
	answer := &heliostatv1.GetObjectResponse{Line: line.Proto()}
	if p.AddressOf != nil {
		answer.Dashboard = p.AddressOf(key.Kind, key.Namespace, key.Name)
	}
	if answer.Object, err = toStruct(fields); err != nil {
		return nil, err
	}
	pods := p.View.PodsOf(key)
	in := explain.Input{Object: object, Pods: pods, Now: p.Clock.Now()}
	if in.Clusters, err = p.clustersOf(ctx, key, answer); err != nil {
		return nil, err
	}
	err = p.Access.May(ctx, caller, authorizationv1.ResourceAttributes{Verb: "list", Version: "v1", Resource: "pods",
		Namespace: key.Namespace})
	switch {
	case err == nil:
		answer.Pods = podsOf(pods)
	case isForbidden(err):
		answer.Hidden, in.Pods = append(answer.Hidden, "pods"), nil
	default:
		return nil, fmt.Errorf("ask whether the caller may list pods: %w", err)
	}
	answer.Phases, answer.Why = phasesOf(phases.Of(in)), causesOf(explain.Explain(in))
	return answer, p.addEvents(ctx, answer, key.Namespace, object.GetUID())
}

// clustersOf returns the clusters that explain an object, as far as the caller may list them.
func (p *portal) clustersOf(
	ctx context.Context, key view.Key, answer *heliostatv1.GetObjectResponse,
) ([]*v1beta1.ComputeCluster, error) {
	if key.Kind != view.Clusters { // a caller that can get a cluster can read what explains it
		err := p.may(ctx, attributes("list", view.Resource(view.Clusters), "", key.Namespace, ""))
		if isForbidden(err) {
			answer.Hidden = append(answer.Hidden, "clusters")
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return p.View.ClustersOf(key), nil
}

// addEvents adds the events about an object, read as the caller.
func (p *portal) addEvents(
	ctx context.Context, answer *heliostatv1.GetObjectResponse, namespace string, about types.UID,
) error {
	caller, err := callerOf(ctx)
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, memoryWithin)
	defer cancel()
	giveBack, err := p.listing.Take(within, senderOf(caller), eventsMemory)
	if err != nil {
		return ofPlaces(err)
	}
	defer giveBack()
	events, err := p.Access.Events(ctx, caller, namespace, about)
	switch {
	case isForbidden(err), errors.Is(err, access.ErrManyEvents): // others may have written them
		answer.Hidden = append(answer.Hidden, "events")
		return nil
	case err != nil:
		return fmt.Errorf("list events: %w", err)
	}
	answer.Events = eventsOf(events)
	return nil
}

// maxEvents is how many events an answer has: the newest. eventsMemory is what the events about an object take while they are read.
const (
	maxEvents    = 100
	eventsMemory = limits.MaxMemoryEach / 4
)

func eventsOf(events []*eventsv1.Event) []*heliostatv1.Event {
	var all []*heliostatv1.Event
	for _, one := range events {
		at, count := one.EventTime.Time, int32(1)
		if at.IsZero() {
			at, count = one.DeprecatedLastTimestamp.Time, max(one.DeprecatedCount, 1)
		}
		if one.Series != nil {
			at, count = one.Series.LastObservedTime.Time, one.Series.Count
		}
		all = append(all, &heliostatv1.Event{Time: stamp(at), Type: one.Type, Reason: one.Reason, Message: one.Note,
			Count: count})
	}
	slices.SortStableFunc(all,
		func(a, b *heliostatv1.Event) int { return b.GetTime().AsTime().Compare(a.GetTime().AsTime()) })
	return all[:min(len(all), maxEvents)]
}

func podsOf(pods []*corev1.Pod) []*heliostatv1.Pod {
	var all []*heliostatv1.Pod
	for _, pod := range pods {
		one := &heliostatv1.Pod{
			Name: pod.Name, Role: pod.Labels[v1beta1.LabelRole], Group: pod.Labels[v1beta1.LabelGroup],
			Phase: string(pod.Status.Phase), Node: pod.Spec.NodeName, Created: stamp(pod.CreationTimestamp.Time),
		}
		for _, condition := range pod.Status.Conditions {
			one.Ready = one.Ready || condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
		}
		for i := range pod.Status.ContainerStatuses {
			one.Restarts += pod.Status.ContainerStatuses[i].RestartCount
		}
		all = append(all, one)
	}
	return all
}

func phasesOf(all []phases.Phase) []*heliostatv1.Phase {
	var found []*heliostatv1.Phase
	for _, one := range all {
		found = append(found, &heliostatv1.Phase{Name: one.Name, State: one.State, Since: stamp(one.Since),
			Until: stamp(one.Until), WaitsFor: one.WaitsFor})
	}
	return found
}

func causesOf(all []explain.Cause) []*heliostatv1.Cause {
	var found []*heliostatv1.Cause
	for _, one := range all {
		found = append(found, &heliostatv1.Cause{
			Kind: one.Kind, Namespace: one.Namespace, Name: one.Name, Code: one.Code, Message: one.Message, Remedy: one.Remedy, Since: stamp(one.Since)})
	}
	return found
}

// stamp returns a time as the protocol has it, and nothing for none.
func stamp(at time.Time) *timestamppb.Timestamp {
	if at.IsZero() {
		return nil
	}
	return timestamppb.New(at)
}

// queryOf returns a query of lines.
func queryOf(r filter) view.Query {
	return view.Query{
		Kinds: r.GetKinds(), Namespaces: r.GetNamespaces(), Labels: r.GetLabels(), Phases: r.GetPhases(), Codes: r.GetCodes(), Text: r.GetText(),
	}
}

// filter is what lists and watches have in common.
type filter interface {
	GetKinds() []string
	GetNamespaces() []string
	GetLabels() string
	GetPhases() []string
	GetCodes() []string
	GetText() string
}

// ListObjects implements the protocol.
func (p *portal) ListObjects(
	ctx context.Context, r *heliostatv1.ListObjectsRequest,
) (*heliostatv1.ListObjectsResponse, error) {
	query := queryOf(r)
	query.Sort, query.Limit, query.Continue = r.GetSort(), int(r.GetLimit()), r.GetContinue()
	if err := view.Check(query); err != nil { // each name costs a review
		return nil, ofView(err)
	}
	rights, err := p.askRights(ctx, "list", r)
	if err != nil {
		return nil, err
	}
	if !p.View.IsSynced() { // a page of a part would look like all of it
		return nil, ofView(feed.ErrUnready)
	}
	query.May = rights.cover
	page, err := p.View.List(ctx, query)
	if err != nil {
		return nil, ofView(err)
	}
	answer := &heliostatv1.ListObjectsResponse{Continue: page.Continue, Cursor: page.Cursor}
	for _, line := range page.Lines {
		answer.Lines = append(answer.Lines, line.Proto())
	}
	return answer, nil
}
