package rest

import (
	"context"
	"fmt"
	"maps"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/heliostat-dev/heliostat/apiserver/verbs"
	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/problem"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// target is what calls about one object have in common.
type target interface {
	place
	GetKind() string
}

// actions are the calls that do a verb to an object.
type actions struct{ *reviewer }

// act does a verb: it reads the object as the caller, decides, and writes as the caller.
func (a actions) act(
	ctx context.Context, call string, on target, decide func(verbs.Object) (verbs.Change, error),
) (*heliostatv1.ActionResponse, error) {
	if err := a.permit(ctx, call, on); err != nil {
		return nil, err
	}
	caller, err := callerOf(ctx)
	if err != nil {
		return nil, err
	}
	of := access.ObjectName{Resource: view.Resource(on.GetKind()), Namespace: on.GetNamespace(), Name: on.GetName()}
	found, err := a.Access.FindObject(ctx, caller, of)
	if err != nil {
		return nil, fmt.Errorf("find %s %s: %w", on.GetKind(), on.GetName(), err)
	}
	object, err := typed(found)
	if err != nil {
		return nil, err
	}
	change, err := decide(object)
	if err != nil {
		return nil, err
	}
	isChanged := !change.IsNothing()
	switch {
	case change.Patch != nil:
		found, err = a.Access.PatchObject(ctx, caller, of, change.Type, change.Patch)
	case change.New != nil:
		found, isChanged, err = a.createOnce(ctx, change.New, found)
	}
	if err != nil {
		return nil, fmt.Errorf("change %s %s: %w", on.GetKind(), on.GetName(), err)
	}
	answer, err := toStruct(found)
	return &heliostatv1.ActionResponse{Object: answer, IsChanged: isChanged}, err
}

// createOnce creates an object with the spec of another one, or finds the one that a former call created. Fields that this
// server does not know are kept.
func (a actions) createOnce(
	ctx context.Context, object verbs.Object, like map[string]any,
) (map[string]any, bool, error) {
	caller, err := callerOf(ctx)
	if err != nil {
		return nil, false, err
	}
	annotations := object.GetAnnotations()
	annotations[v1beta1.AnnotationOwner] = caller.User().Username
	object.SetAnnotations(annotations)
	fields, err := toFields(object)
	if err != nil {
		return nil, false, err
	}
	delete(fields, "status")
	if spec, is := like["spec"].(map[string]any); is {
		spec = maps.Clone(spec)
		delete(spec, "suspend")
		fields["spec"] = spec
	}
	of := access.ObjectName{Resource: resourceOf(object), Namespace: object.GetNamespace(), Name: object.GetName()}
	created, _, err := a.Access.CreateObject(ctx, caller, of, fields, false)
	if !apierrors.IsAlreadyExists(err) {
		return created, err == nil, err
	}
	created, err = a.Access.FindObject(ctx, caller, of)
	if err == nil && annotation(created, v1beta1.AnnotationRetryOf) != annotations[v1beta1.AnnotationRetryOf] {
		err = problem.New(http.StatusConflict, "AlreadyExists",
			fmt.Sprintf("%s %s exists, and is no retry of this job", of.Resource, of.Name), "rename it")
	}
	return created, false, err
}

// SuspendObject implements the protocol.
func (a actions) SuspendObject(
	ctx context.Context, r *heliostatv1.SuspendObjectRequest,
) (*heliostatv1.ActionResponse, error) {
	return a.act(ctx, "SuspendObject", r, verbs.Suspend)
}

// ResumeObject implements the protocol.
func (a actions) ResumeObject(
	ctx context.Context, r *heliostatv1.ResumeObjectRequest,
) (*heliostatv1.ActionResponse, error) {
	return a.act(ctx, "ResumeObject", r, func(object verbs.Object) (verbs.Change, error) {
		return verbs.Resume(object, a.Clock.Now())
	})
}

// ScaleObject implements the protocol.
func (a actions) ScaleObject(
	ctx context.Context, r *heliostatv1.ScaleObjectRequest,
) (*heliostatv1.ActionResponse, error) {
	return a.act(ctx, "ScaleObject", r, func(object verbs.Object) (verbs.Change, error) {
		if r.Replicas == nil {
			return verbs.Change{}, problem.Bad("replicas", "is missing",
				"give how many the group should have, 0 for none")
		}
		return verbs.Scale(object, r.GetGroup(), r.GetReplicas())
	})
}

// StopObject implements the protocol.
func (a actions) StopObject(
	ctx context.Context, r *heliostatv1.StopObjectRequest,
) (*heliostatv1.ActionResponse, error) {
	return a.act(ctx, "StopObject", r, verbs.Stop)
}

// RetryObject implements the protocol.
func (a actions) RetryObject(
	ctx context.Context, r *heliostatv1.RetryObjectRequest,
) (*heliostatv1.ActionResponse, error) {
	return a.act(ctx, "RetryObject", r, verbs.Retry)
}

// UndoObject implements the protocol.
func (a actions) UndoObject(
	ctx context.Context, r *heliostatv1.UndoObjectRequest,
) (*heliostatv1.ActionResponse, error) {
	return a.act(ctx, "UndoObject", r, func(object verbs.Object) (verbs.Change, error) {
		kept, err := a.Access.Revisions(ctx, object.GetNamespace(), object.GetName(), object.GetUID())
		if err != nil {
			return verbs.Change{}, fmt.Errorf("list versions of service %s: %w", object.GetName(), err)
		}
		return verbs.Undo(object, kept, r.GetVersion())
	})
}

func resourceOf(object verbs.Object) string { return view.Resource(view.KindOf(object)) }
