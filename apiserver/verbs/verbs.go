// Package verbs decides what a verb of the API does to an object: suspend, resume, scale, stop, retry, undo.
//
// In: an object as it is now, and what the caller asks for. Out: a patch, a new object, or nothing where the object is so
// already; or why it cannot be. The same call twice changes an object once.
//
// It is pure. It never asks what the caller may do, and it never writes: package access does, as the caller.
package verbs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/portal/problem"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Object is of one of our kinds.
type Object interface {
	metav1.Object
	runtime.Object
}

// Change is what a verb does. Its zero value is nothing.
type Change struct {
	// Patch of the object, of the sort Type.
	Patch []byte
	Type  types.PatchType
	// New is an object to create.
	New Object
}

// IsNothing reports whether the object is as it was asked for.
func (c Change) IsNothing() bool { return c.Patch == nil && c.New == nil }

// merge returns a change that merges fields into the object.
func merge(fields map[string]any) Change {
	text, err := json.Marshal(fields)
	if err != nil { // strings and booleans always marshal
		panic(fmt.Errorf("write a patch: %w", err))
	}
	return Change{Patch: text, Type: types.MergePatchType}
}

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// replace returns a change that replaces fields, which merging cannot.
func replace(operations ...operation) (Change, error) {
	text, err := json.Marshal(operations)
	if err != nil {
		return Change{}, fmt.Errorf("write a patch: %w", err)
	}
	return Change{Patch: text, Type: types.JSONPatchType}, nil
}

// forbid returns why an object's state does not let a verb be done.
func forbid(reason, detail, remedy string) error {
	return problem.New(http.StatusConflict, reason, detail, remedy)
}

// unsuited returns that a kind does not have a verb.
func unsuited(verb, kinds string) error {
	return problem.New(http.StatusBadRequest, "BadRequest", fmt.Sprintf("%s has %s as its objects, and no others", verb,
		kinds),
		"choose another verb or object")
}

// owner returns that an object is made from another one, which would undo the verb; nil where it is not.
func owner(object Object) error {
	by := metav1.GetControllerOf(object)
	if by == nil || by.APIVersion != v1beta1.GroupVersion.String() {
		return nil
	}
	return forbid("Owned", fmt.Sprintf("%s %s owns the cluster, and would undo the change", by.Kind, by.Name),
		fmt.Sprintf("do it to %s %s", by.Kind, by.Name))
}

// Suspend returns the change that takes an object's pods away.
func Suspend(object Object) (Change, error) {
	if err := owner(object); err != nil {
		return Change{}, err
	}
	if job, is := object.(*v1beta1.ClusterJob); is && hasEnded(job) {
		return Change{}, forbid("JobEnded", "the job has ended, and has nothing to suspend", "delete it, or retry it")
	}
	if suspended, err := isSuspended(object); err != nil || suspended {
		return Change{}, err
	}
	return merge(map[string]any{"spec": map[string]any{"suspend": true}}), nil
}

// isSuspended returns what the spec says.
func isSuspended(object Object) (bool, error) {
	switch object := object.(type) {
	case *v1beta1.ComputeCluster:
		return ptr.Deref(object.Spec.Suspend, false), nil
	case *v1beta1.ClusterJob:
		return ptr.Deref(object.Spec.Suspend, false), nil
	case *v1beta1.ClusterService:
		return ptr.Deref(object.Spec.Suspend, false), nil
	case *v1beta1.ClusterJobSchedule:
		return ptr.Deref(object.Spec.Suspend, false), nil
	}
	return false, unsuited("suspend", "clusters, jobs, services and schedules")
}

// Resume returns the change that undoes a suspension, by spec or by idleness.
func Resume(object Object, now time.Time) (Change, error) {
	bySpec, err := isSuspended(object)
	if err != nil {
		return Change{}, err
	}
	fields := map[string]any{}
	if bySpec {
		if err := owner(object); err != nil {
			return Change{}, err
		}
		fields["spec"] = map[string]any{"suspend": false}
	}
	// The annotation wakes once, by another value: what is awake gets none, so that a call twice is a call once.
	if cluster, is := object.(*v1beta1.ComputeCluster); is && meta.IsStatusConditionTrue(cluster.Status.Conditions,
		v1beta1.ConditionSuspended) {
		fields["metadata"] = map[string]any{"annotations": map[string]string{v1beta1.AnnotationResume: now.UTC().Format(time.RFC3339Nano)}}
	}
	if len(fields) == 0 {
		return Change{}, nil
	}
	return merge(fields), nil
}

// Keep returns the change that keeps the idle policy of a cluster from acting for a while, or no longer where that is 0.
// A cluster without a policy that acts needs none.
func Keep(object Object, during time.Duration, by string, now time.Time) (Change, error) {
	cluster, is := object.(*v1beta1.ComputeCluster)
	switch {
	case !is:
		return Change{}, unsuited("keep", "clusters")
	case during < 0 || during > v1beta1.MaxKeep:
		return Change{}, problem.Bad("for", "must be a time of seven days at most", "give one such as 8h")
	case cluster.Spec.IdlePolicy == nil || cluster.Spec.IdlePolicy.Action == v1beta1.IdleNone:
		return Change{}, nil
	}
	annotations := map[string]any{v1beta1.AnnotationKeepUntil: nil, v1beta1.AnnotationKeepRequestedBy: nil}
	if during > 0 {
		annotations[v1beta1.AnnotationKeepUntil] = now.Add(during).UTC().Format(time.RFC3339)
	}
	if during > 0 && by != "" {
		annotations[v1beta1.AnnotationKeepRequestedBy] = by
	}
	return merge(map[string]any{"metadata": map[string]any{"annotations": annotations}}), nil
}

// Stop returns the change that ends a job for good.
func Stop(object Object) (Change, error) {
	job, is := object.(*v1beta1.ClusterJob)
	if !is {
		return Change{}, unsuited("stop", "jobs")
	}
	if hasEnded(job) || job.Annotations[v1beta1.AnnotationStop] == v1beta1.StopOn {
		return Change{}, nil
	}
	return merge(map[string]any{"metadata": map[string]any{"annotations": map[string]string{v1beta1.AnnotationStop: v1beta1.StopOn}}}), nil
}

// hasEnded reports whether a job has come to its end.
func hasEnded(job *v1beta1.ClusterJob) bool {
	return meta.IsStatusConditionTrue(job.Status.Conditions, v1beta1.ConditionComplete) ||
		meta.IsStatusConditionTrue(job.Status.Conditions, v1beta1.ConditionFailed)
}

// Scale returns the change that gives a group of a cluster a number of replicas. The group's name may be left out where
// there is one group.
func Scale(object Object, group string, replicas int32) (Change, error) {
	cluster, is := object.(*v1beta1.ComputeCluster)
	if !is {
		return Change{}, unsuited("scale", "clusters")
	}
	if err := owner(object); err != nil {
		return Change{}, err
	}
	at, err := findGroup(cluster, group)
	if err != nil {
		return Change{}, err
	}
	if cluster.Spec.Autoscaling != nil {
		return Change{}, forbid("Autoscaled", "the cluster has autoscaling, so demand says how many workers there are",
			"change minReplicas or maxReplicas of the group")
	}
	if replicas < 0 {
		return Change{}, problem.Bad("replicas", "must not be negative", "give 0 or more")
	}
	one := &cluster.Spec.WorkerGroups[at]
	if one.Replicas != nil && *one.Replicas == replicas {
		return Change{}, nil
	}
	path := fmt.Sprintf("/spec/workerGroups/%d", at)
	// The test fails where the groups have another order by now.
	return replace(operation{"test", path + "/name", one.Name}, operation{"add", path + "/replicas", replicas})
}

// findGroup returns which group of a cluster a name is of.
func findGroup(cluster *v1beta1.ComputeCluster, name string) (int, error) {
	groups := cluster.Spec.WorkerGroups
	if name == "" && len(groups) == 1 {
		return 0, nil
	}
	names := make([]string, 0, len(groups))
	for i := range groups {
		if groups[i].Name == name {
			return i, nil
		}
		names = append(names, groups[i].Name)
	}
	switch {
	case len(groups) == 0:
		return 0, forbid("NoGroups", "the cluster has no worker group", "add one to spec.workerGroups")
	case name == "":
		return 0, problem.Bad("group", "must be given, as the cluster has several groups",
			"give one of "+strings.Join(names, ", "))
	}
	return 0, problem.Bad("group", fmt.Sprintf("must be a group of the cluster; %q is not one", name),
		"give one of "+strings.Join(names, ", "))
}
