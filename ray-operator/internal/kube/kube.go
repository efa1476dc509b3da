// Package kube is the only one that writes to Kubernetes.
//
// In: whole objects and what a decision was made on: owner, UID, resourceVersion.
// Out: the object as the API server has it, or an error that package fault sorts.
//
// Every write is safe to repeat. Create is POST under a deterministic name; what is
// already there is ours by owner UID and marks, or it is left alone. Delete carries the UID that
// was judged, and an update what it was based on.
package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/drift"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// FieldOwner is the field manager of every write.
const FieldOwner = "heliostat"

// Writer writes. Live reads past the cache, where a write met something unexpected.
type Writer struct {
	Client client.Client
	Live   client.Reader
}

// Create makes an object and gives true, or finds that it is there already and ours,
// and gives false. obj has its UID afterwards.
// Errors: Wait where ours is on its way out, Terminal (NameConflict) where it is not
// ours, else the API server's.
func (w *Writer) Create(ctx context.Context, obj client.Object) (bool, error) {
	err := w.Client.Create(ctx, obj, client.FieldOwner(FieldOwner))
	if !apierrors.IsAlreadyExists(err) {
		return err == nil, fault.Wrap(err, "create %s", w.describe(obj))
	}
	return false, w.examine(ctx, obj)
}

// CreateUnowned makes an object whose owner cannot be named, being in another namespace, or that its owner may have left behind,
// and gives true. It gives false where the name is taken: whose that one is, the caller has
// to tell by what it holds.
func (w *Writer) CreateUnowned(ctx context.Context, obj client.Object) (bool, error) {
	err := w.Client.Create(ctx, obj, client.FieldOwner(FieldOwner))
	if apierrors.IsAlreadyExists(err) {
		return false, nil
	}
	return err == nil, fault.Wrap(err, "create %s", w.describe(obj))
}

// examine looks at what stands under the name that obj was to have.
func (w *Writer) examine(ctx context.Context, obj client.Object) error {
	owner := metav1.GetControllerOf(obj)
	found, err := w.empty(obj)
	if err != nil {
		return err
	}
	err = w.Live.Get(ctx, client.ObjectKeyFromObject(obj), found)
	switch {
	case apierrors.IsNotFound(err):
		return &fault.Wait{For: w.describe(obj) + ", which just went"}
	case err != nil:
		return fmt.Errorf("read %s: %w", w.describe(obj), err)
	case owner == nil || !isMarked(found, obj) || !naming.IsOwned(found, owner.UID) && !IsPredecessors(found, *owner):
		return fault.Conflict(w.describe(obj))
	case found.GetDeletionTimestamp() != nil || !naming.IsOwned(found, owner.UID):
		return &fault.Wait{For: w.describe(obj) + " to be gone"}
	}
	obj.SetUID(found.GetUID())
	obj.SetCreationTimestamp(found.GetCreationTimestamp())
	return nil
}

func (w *Writer) empty(obj client.Object) (client.Object, error) {
	gvk, err := apiutil.GVKForObject(obj, w.Client.Scheme())
	if err != nil {
		return nil, fmt.Errorf("find the kind of %T: %w", obj, err)
	}
	if _, untyped := obj.(*unstructured.Unstructured); untyped {
		fresh := &unstructured.Unstructured{}
		fresh.SetGroupVersionKind(gvk)
		return fresh, nil
	}
	fresh, err := w.Client.Scheme().New(gvk)
	if err != nil {
		return nil, fmt.Errorf("make a %s: %w", gvk.Kind, err)
	}
	return fresh.(client.Object), nil //nolint:forcetypeassert // the scheme gave the type of a client.Object
}

// Mend brings an object that was seen to what is wanted of it by server-side apply, bound
// to its UID. What was wanted before and is not any more goes, and so does what others added to a spec that is ours as a
// whole. What others set elsewhere stays.
// That the object is gone, or another has its name by now, is success.
func (w *Writer) Mend(ctx context.Context, seen, wanted client.Object) error {
	live, err := w.empty(wanted)
	if err != nil {
		return err
	}
	switch err := w.Live.Get(ctx, client.ObjectKeyFromObject(seen), live); {
	case apierrors.IsNotFound(err) || err == nil && live.GetUID() != seen.GetUID():
		return nil
	case err != nil:
		return fmt.Errorf("read %s: %w", w.describe(seen), err)
	}
	config, fields, err := w.configuration(wanted, seen.GetUID())
	if err != nil {
		return err
	}
	// What was created by POST is owned by an update, of which an apply takes nothing away.
	if leavesOut(live.GetManagedFields(), fields) {
		if err := w.takeOver(ctx, live); err != nil {
			return err
		}
	}
	if err := w.strip(ctx, live, fields); err != nil {
		return err
	}
	err = w.Client.Apply(ctx, config, client.FieldOwner(FieldOwner), client.ForceOwnership)
	return fault.Wrap(err, "mend %s", w.describe(seen))
}

// strip takes away what others added to the spec, where that is ours as a whole and an apply would leave it.
func (w *Writer) strip(ctx context.Context, live client.Object, wanted map[string]any) error {
	there, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return fmt.Errorf("convert %s: %w", w.describe(live), err)
	}
	excess := drift.Excess(live, there, wanted)
	if excess == nil {
		return nil
	}
	change, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": live.GetUID()}, "spec": excess})
	if err != nil {
		return fmt.Errorf("strip %s: %w", w.describe(live), err)
	}
	err = w.Client.Patch(ctx, live, client.RawPatch(types.MergePatchType, change), client.FieldOwner(FieldOwner))
	if isAnother(err) {
		return nil
	}
	return fault.Wrap(err, "strip %s", w.describe(live))
}

// takeOver makes what an update of ours owns the apply's.
func (w *Writer) takeOver(ctx context.Context, live client.Object) error {
	upgrade, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New(FieldOwner), FieldOwner)
	if err != nil {
		return fmt.Errorf("take over the fields of %s: %w", w.describe(live), err)
	}
	if upgrade == nil {
		return nil
	}
	err = w.Client.Patch(ctx, live, client.RawPatch(types.JSONPatchType, upgrade), client.FieldOwner(FieldOwner))
	return fault.Wrap(err, "take over the fields of %s", w.describe(live))
}

// configuration is an object as server-side apply takes it, bound to a UID, and its fields.
func (w *Writer) configuration(obj client.Object, uid types.UID) (runtime.ApplyConfiguration, map[string]any, error) {
	gvk, err := apiutil.GVKForObject(obj, w.Client.Scheme())
	if err != nil {
		return nil, nil, fmt.Errorf("find the kind of %T: %w", obj, err)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, nil, fmt.Errorf("convert %s: %w", w.describe(obj), err)
	}
	delete(fields, "status")
	config := &unstructured.Unstructured{Object: fields}
	config.SetGroupVersionKind(gvk)
	config.SetUID(uid)
	unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")
	return client.ApplyConfigurationFromUnstructured(config), fields, nil
}

// Note sets an annotation of the very object that was seen, whatever else of it has
// changed since. That it is gone, or another has its name by now, is success.
func (w *Writer) Note(ctx context.Context, obj client.Object, key, value string) error {
	change, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": obj.GetUID(), "annotations": map[string]string{key: value},
	}})
	if err != nil {
		return fmt.Errorf("annotate %s: %w", w.describe(obj), err)
	}
	noted := obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the type of its original
	err = w.Client.Patch(ctx, noted, client.RawPatch(types.MergePatchType, change), client.FieldOwner(FieldOwner))
	if isAnother(err) {
		return nil
	}
	return fault.Wrap(err, "annotate %s", w.describe(obj))
}

// Own makes an owner the controller of an object as it was seen, which has none. If it has changed since, it fails with a
// conflict. That it is gone is success.
func (w *Writer) Own(ctx context.Context, obj client.Object, owner metav1.OwnerReference) error {
	change, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": obj.GetUID(), "resourceVersion": obj.GetResourceVersion(), "ownerReferences": append(slices.Clone(obj.GetOwnerReferences()), owner),
	}})
	if err != nil {
		return fmt.Errorf("own %s: %w", w.describe(obj), err)
	}
	owned := obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the type of its original
	err = w.Client.Patch(ctx, owned, client.RawPatch(types.MergePatchType, change), client.FieldOwner(FieldOwner))
	return fault.Wrap(client.IgnoreNotFound(err), "own %s", w.describe(obj))
}

// Label sets labels and annotations of the very object that was seen, or takes those away whose
// value is nil, whatever else of it has changed since. That it is gone, or another has its name by
// now, is success.
func (w *Writer) Label(ctx context.Context, obj client.Object, labels, annotations map[string]*string) error {
	type metadata struct {
		UID         types.UID          `json:"uid"`
		Labels      map[string]*string `json:"labels,omitempty"`
		Annotations map[string]*string `json:"annotations,omitempty"`
	}
	change, err := json.Marshal(map[string]metadata{"metadata": {obj.GetUID(), labels, annotations}})
	if err != nil {
		return fmt.Errorf("label %s: %w", w.describe(obj), err)
	}
	labelled := obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the type of its original
	err = w.Client.Patch(ctx, labelled, client.RawPatch(types.MergePatchType, change), client.FieldOwner(FieldOwner))
	if isAnother(err) {
		return nil
	}
	return fault.Wrap(err, "label %s", w.describe(obj))
}

// isAnother reports whether the object that a write named with its UID is gone, or another
// has its name by now. Of a patch the API server calls that a change of what cannot change.
func isAnother(err error) bool {
	var status apierrors.APIStatus
	if apierrors.IsInvalid(err) && errors.As(err, &status) && status.Status().Details != nil {
		return slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool { return cause.Field == "metadata.uid" })
	}
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err)
}

// Resize gives a container of a running pod other resources, without a restart where the
// kubelet can. That the pod is gone, or another has its name by now, is success.
func (w *Writer) Resize(ctx context.Context, pod *corev1.Pod, container string, resources corev1.ResourceRequirements) error {
	change, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"spec":     map[string]any{"containers": []map[string]any{{"name": container, "resources": resources}}},
	})
	if err != nil {
		return fmt.Errorf("resize %s: %w", w.describe(pod), err)
	}
	patch := client.RawPatch(types.StrategicMergePatchType, change)
	err = w.Client.SubResource("resize").Patch(ctx, pod.DeepCopy(), patch, client.FieldOwner(FieldOwner))
	if isAnother(err) {
		return nil
	}
	return fault.Wrap(err, "resize %s", w.describe(pod))
}

// DeleteSeen removes the object as it was seen: if anything of it has changed since, it
// fails with a conflict and nothing is deleted. That it is gone already is success.
func (w *Writer) DeleteSeen(ctx context.Context, obj client.Object) error {
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	options := &client.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}}
	return fault.Wrap(client.IgnoreNotFound(w.Client.Delete(ctx, obj, options)), "delete %s", w.describe(obj))
}

// Delete removes the very object that was judged. That it is gone already, or that
// another has its name by now, is success.
func (w *Writer) Delete(ctx context.Context, obj client.Object, graceSeconds *int64) error {
	uid := obj.GetUID()
	options := &client.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, GracePeriodSeconds: graceSeconds}
	err := w.Client.Delete(ctx, obj, options)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fault.Wrap(err, "delete %s", w.describe(obj))
}

// DeleteTogether removes all pods of a namespace that have a label, with one call.
func (w *Writer) DeleteTogether(ctx context.Context, namespace, label, value string, graceSeconds *int64) error {
	err := w.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespace), client.MatchingLabels{label: value},
		&client.DeleteAllOfOptions{DeleteOptions: client.DeleteOptions{GracePeriodSeconds: graceSeconds}})
	return fault.Wrap(err, "delete the pods of %s with the label %s=%s", namespace, label, value)
}

// Annotate sets an annotation of the object as it was seen, and brings obj up to date
// with what was written. If the object has changed since it was seen, it fails with a
// conflict and nothing is written.
func (w *Writer) Annotate(ctx context.Context, obj client.Object, key, value string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": obj.GetResourceVersion(), "annotations": map[string]string{key: value},
	}})
	if err != nil {
		return fmt.Errorf("annotate %s: %w", w.describe(obj), err)
	}
	err = w.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldOwner))
	return fault.Wrap(err, "annotate %s", w.describe(obj))
}

// Edit writes the difference between the object as it was seen and as it is wanted, its
// status apart, and brings wanted up to date with what was written. If the object has
// changed since it was seen, it fails with a conflict and nothing is written.
func (w *Writer) Edit(ctx context.Context, seen, wanted client.Object) error {
	patch := client.MergeFromWithOptions(seen, client.MergeFromWithOptimisticLock{})
	err := w.Client.Patch(ctx, wanted, patch, client.FieldOwner(FieldOwner))
	return fault.Wrap(err, "edit %s", w.describe(seen))
}

// Status writes the status that is wanted in place of the one that was seen. If the object
// has changed since it was seen, it fails with a conflict and nothing is written: a UID would
// not do, which the API server does not compare here. That the object is gone is success. A
// status that the API server refuses is logged, and written with shorter texts.
func (w *Writer) Status(ctx context.Context, seen, wanted client.Object) error {
	err := w.patchStatus(ctx, seen, wanted)
	if apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) {
		log.FromContext(ctx).Error(err, "The API server refused a status; writing it with shorter texts", "object", w.describe(seen))
		var shorter client.Object
		if shorter, err = shortened(wanted); err == nil {
			err = w.patchStatus(ctx, seen, shorter)
		}
	}
	return fault.Wrap(client.IgnoreNotFound(err), "write the status of %s", w.describe(seen))
}

// EditStatus writes the difference between the status as it was seen and as it is wanted, of an object that has more in its
// status than its type holds. If the object has changed since it was seen, it fails with a conflict and nothing is written.
// That it is gone is success.
func (w *Writer) EditStatus(ctx context.Context, seen, wanted client.Object) error {
	patch := client.MergeFromWithOptions(seen, client.MergeFromWithOptimisticLock{})
	err := w.Client.Status().Patch(ctx, wanted, patch, client.FieldOwner(FieldOwner))
	return fault.Wrap(client.IgnoreNotFound(err), "write the status of %s", w.describe(seen))
}

// patchStatus replaces the status as a whole: to find what of it differs costs more than to send it.
func (w *Writer) patchStatus(ctx context.Context, seen, wanted client.Object) error {
	if seen.GetResourceVersion() == "" { // the API server would compare it with nothing
		return errors.New("the object was not read from the API server")
	}
	status := reflect.Indirect(reflect.ValueOf(wanted)).FieldByName("Status")
	if !status.IsValid() {
		return fmt.Errorf("find the status of %T: it has no such field", wanted)
	}
	type change struct {
		Operation string `json:"op"`
		Path      string `json:"path"`
		Value     any    `json:"value"`
	}
	patch, err := json.Marshal([]change{
		{"replace", "/metadata/resourceVersion", seen.GetResourceVersion()}, {"add", "/status", status.Interface()},
	})
	if err != nil {
		return fmt.Errorf("print the status: %w", err)
	}
	gvk, err := apiutil.GVKForObject(wanted, w.Client.Scheme())
	if err != nil {
		return fmt.Errorf("find the kind of %T: %w", wanted, err)
	}
	// Nobody needs more of the answer than its version: to decode the whole object takes longer than to write the patch.
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: wanted.GetNamespace(), Name: wanted.GetName()}}
	answer.SetGroupVersionKind(gvk)
	return w.Client.Status().Patch(ctx, answer, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(FieldOwner))
}

// marks are labels and annotations that say for whom an object was created. On our kinds and on ControllerRevisions of a
// service, only the operator sets them, and each release has set them.
var marks = []string{v1beta1.LabelJob, v1beta1.LabelSchedule, v1beta1.LabelService, v1beta1.AnnotationRevisionCluster}

// isMarked reports whether an object that was found has the same marks as one that was to be created in its place.
func isMarked(found, wanted client.Object) bool {
	return !slices.ContainsFunc(marks, func(key string) bool {
		return wanted.GetLabels()[key] != found.GetLabels()[key] && wanted.GetLabels()[key] != "" ||
			wanted.GetAnnotations()[key] != found.GetAnnotations()[key] && wanted.GetAnnotations()[key] != ""
	})
}

// IsPredecessors reports whether the object's controller has the owner's kind and name but
// another UID: that owner was deleted, and the garbage collector has yet to come by.
func IsPredecessors(obj metav1.Object, owner metav1.OwnerReference) bool {
	ref := metav1.GetControllerOfNoCopy(obj)
	return ref != nil && ref.UID != owner.UID && ref.Kind == owner.Kind && ref.Name == owner.Name && ref.APIVersion == owner.APIVersion
}

func (w *Writer) describe(obj client.Object) string {
	kind := "object"
	if gvk, err := apiutil.GVKForObject(obj, w.Client.Scheme()); err == nil {
		kind = gvk.Kind
	}
	return fmt.Sprintf("%s %s/%s", kind, obj.GetNamespace(), obj.GetName())
}

// batchLimit is how many acts of a batch are under way: with 512 pods at once, others waited 600 ms for an API server of
// two cores (docs/results/tenancy.md).
const batchLimit = 4

// Batches runs n acts in parallel batches that double: 1, 2, 4 and so on, at most 4 acts at once. One that fails does not
// keep its batch from going on, but after a batch in which every act failed the rest is not tried: what refused them all
// would refuse more. It gives the error of each act; an act that was not tried has none.
func Batches(n int, act func(i int) error) []error {
	errs := make([]error, n)
	for begin, size := 0, 1; begin < n; begin, size = begin+size, size*2 {
		end := min(begin+size, n)
		var failed atomic.Int32
		var group errgroup.Group
		group.SetLimit(batchLimit)
		for i := begin; i < end; i++ {
			group.Go(func() error {
				if errs[i] = act(i); errs[i] != nil {
					failed.Add(1)
				}
				return nil // the others go on
			})
		}
		_ = group.Wait()
		if int(failed.Load()) == end-begin {
			break
		}
	}
	return errs
}

// atOnceLimit is how many acts AtOnce has under way.
const atOnceLimit = 64

// AtOnce runs n acts in parallel and gives the error of each.
func AtOnce(n int, act func(i int) error) []error {
	errs := make([]error, n)
	var group errgroup.Group
	group.SetLimit(atOnceLimit)
	for i := range n {
		group.Go(func() error {
			errs[i] = act(i)
			return nil // one that fails does not keep the others from being done
		})
	}
	_ = group.Wait()
	return errs
}
