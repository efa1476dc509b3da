package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/apiserver/verbs"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

const (
	// page is how many objects one answer holds.
	page = 500
	// requestsPerSecond is that of one person, whom the API server slows down where it must.
	requestsPerSecond = 50
	// answerWithin is how long the API server may take for an answer, unless --request-timeout says it.
	answerWithin = 30 * time.Second
)

// Objects are those of one Kubernetes cluster, as one user may see and change them.
type Objects struct {
	client.WithWatch
	// Namespace is where commands look by default.
	Namespace string
}

// Scheme returns the kinds that commands read and write.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme,
		authorizationv1.AddToScheme, authenticationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(fmt.Errorf("register kinds: %w", err)) // two kinds of one name
		}
	}
	return scheme
}

// mapper knows the resources of the kinds, so that no command asks the API server for all that it has.
func mapper() meta.RESTMapper {
	known := meta.NewDefaultRESTMapper(nil)
	for _, kind := range Kinds() {
		known.Add(v1beta1.GroupVersion.WithKind(kind.Name), meta.RESTScopeNamespace)
	}
	for _, name := range []string{"Pod", "Secret", "Service", "Event", "ConfigMap"} {
		known.Add(corev1.SchemeGroupVersion.WithKind(name), meta.RESTScopeNamespace)
	}
	for _, name := range []string{"Deployment", "ControllerRevision"} {
		known.Add(appsv1.SchemeGroupVersion.WithKind(name), meta.RESTScopeNamespace)
	}
	for _, of := range []schema.GroupVersionKind{
		authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"),
		authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"),
	} {
		known.Add(of, meta.RESTScopeRoot)
	}
	return known
}

// Connect returns the objects of the API server and namespace that the flags name.
func Connect(access *genericclioptions.ConfigFlags) (*Objects, error) {
	config, err := ReadConfig(access)
	if err != nil {
		return nil, err
	}
	namespace, _, err := access.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, outcome.Errorf(outcome.Usage, "read the namespace of the kubeconfig: %w", err)
	}
	if config.Timeout == 0 {
		config.Timeout = answerWithin
	}
	config.QPS, config.Burst = requestsPerSecond, 2*requestsPerSecond
	found, err := client.NewWithWatch(config, client.Options{Scheme: Scheme(), Mapper: mapper()})
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server: %w", err)
	}
	return &Objects{found, namespace}, nil
}

// Read returns an object. Where there is none of that name, the error names the nearest one.
func (o *Objects) Read(ctx context.Context, target Target) (verbs.Object, error) {
	object := target.Kind.object()
	err := o.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: target.Name}, object)
	switch {
	case apierrors.IsNotFound(err) && !isUnknownKind(err):
		return nil, o.missing(ctx, target)
	case err != nil:
		return nil, Because(fmt.Errorf("read %s: %w", target, err))
	}
	return object, nil
}

// Find returns the object that a user named as KIND/NAME, or by the name alone where that is one object's. It is of one of
// some kinds, without any of all.
func (o *Objects) Find(ctx context.Context, text string, kinds ...Kind) (verbs.Object, error) {
	if len(kinds) == 0 {
		kinds = Kinds()
	}
	if strings.Contains(text, "/") {
		target, err := ParseTarget(text, kinds...)
		if err != nil {
			return nil, err
		}
		return o.Read(ctx, target)
	}
	if err := checkName(text, "KIND/NAME"); err != nil {
		return nil, err
	}
	found, err := o.findAll(ctx, text, kinds)
	if err != nil {
		return nil, err
	}
	if len(found) > 1 {
		return nil, outcome.Errorf(outcome.Usage, "%q is a %s and a %s; write KIND/NAME", text, KindOf(found[0]).Word,
			KindOf(found[1]).Word)
	}
	return found[0], nil
}

// findAll returns the objects of a name, at least one. A kind that the user may not read hides none of another.
func (o *Objects) findAll(ctx context.Context, name string, kinds []Kind) ([]verbs.Object, error) {
	var found []verbs.Object
	var read, unread []Kind
	var refused error
	for _, kind := range kinds {
		object, err := o.Read(ctx, Target{kind, name})
		switch {
		case err == nil:
			found = append(found, object)
		case outcome.Code(err) == outcome.Refused:
			unread = append(unread, kind)
			refused = cmp.Or(refused, err)
		case outcome.Code(err) == outcome.Usage:
			read = append(read, kind)
		default:
			return nil, err
		}
	}
	switch {
	case len(found) > 0:
		return found, nil
	case len(unread) == len(kinds):
		return nil, refused
	case len(unread) > 0:
		return nil, outcome.Errorf(outcome.Refused, "%s there is no %s %q, and a %s of that name cannot be read: %w",
			Where(o.Namespace), words(read), name, words(unread), refused)
	}
	return nil, outcome.Errorf(outcome.Usage, "%s there is no %s %q; see heliostat top", Where(o.Namespace), words(kinds), name)
}

// Selection says which objects are listed.
type Selection struct {
	// Namespace is "" for all.
	Namespace string
	Selector  client.MatchingLabelsSelector
}

// ListAll returns all objects of a kind in pages.
func (o *Objects) ListAll(ctx context.Context, kind Kind, of Selection) ([]verbs.Object, error) {
	var all []verbs.Object
	for token := ""; ; {
		list := kind.list()
		options := []client.ListOption{client.InNamespace(of.Namespace), client.Limit(page), client.Continue(token)}
		if of.Selector.Selector != nil {
			options = append(options, of.Selector)
		}
		if err := o.List(ctx, list, options...); err != nil {
			return nil, Because(fmt.Errorf("list %ss %s: %w", kind.Word, Where(of.Namespace), err))
		}
		all = slices.Concat(all, itemsOf(list))
		if token = list.GetContinue(); token == "" {
			return all, nil
		}
	}
}

func itemsOf(list client.ObjectList) []verbs.Object {
	var all []verbs.Object
	switch list := list.(type) {
	case *v1beta1.ComputeClusterList:
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
	case *v1beta1.ClusterJobList:
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
	case *v1beta1.ClusterServiceList:
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
	case *v1beta1.ClusterJobScheduleList:
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
	}
	return all
}

// Make makes the change of a verb, or asks the API server what it would do. It returns the object as it is then.
func (o *Objects) Make(ctx context.Context, object verbs.Object, change verbs.Change, isDryRun bool) (verbs.Object, error) {
	target := TargetOf(object)
	switch {
	case change.Patch != nil:
		var options []client.PatchOption
		if isDryRun {
			options = append(options, client.DryRunAll)
		}
		if err := o.Patch(ctx, object, client.RawPatch(change.Type, change.Patch), options...); err != nil {
			return nil, Because(fmt.Errorf("change %s: %w", target, err))
		}
		return object, nil
	case change.New != nil:
		return change.New, o.CreateNew(ctx, change.New, isDryRun)
	default:
		return object, nil
	}
}

// Preview returns an object as a change would make it, without asking the API server.
func Preview(object verbs.Object, change verbs.Change) (verbs.Object, error) {
	if change.New != nil {
		return change.New, nil
	}
	before, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", TargetOf(object), err)
	}
	after := before
	if change.Type == types.JSONPatchType {
		var patch jsonpatch.Patch
		if patch, err = jsonpatch.DecodePatch(change.Patch); err == nil {
			after, err = patch.Apply(before)
		}
	} else if change.Patch != nil {
		after, err = jsonpatch.MergePatch(before, change.Patch)
	}
	if err != nil {
		return nil, fmt.Errorf("change %s: %w", TargetOf(object), err)
	}
	changed := KindOf(object).object()
	if err := json.Unmarshal(after, changed); err != nil {
		return nil, fmt.Errorf("read %s: %w", TargetOf(object), err)
	}
	return changed, nil
}

// CreateNew creates an object, or asks the API server whether it would.
func (o *Objects) CreateNew(ctx context.Context, object verbs.Object, isDryRun bool) error {
	return o.create(ctx, object, TargetOf(object).String(), isDryRun)
}

// CreateFiles creates the ConfigMap with the files of a job, or asks the API server whether it would.
func (o *Objects) CreateFiles(ctx context.Context, files *corev1.ConfigMap, isDryRun bool) error {
	return o.create(ctx, files, "the ConfigMap of the files", isDryRun)
}

func (o *Objects) create(ctx context.Context, object client.Object, what string, isDryRun bool) error {
	var options []client.CreateOption
	if isDryRun {
		options = append(options, client.DryRunAll)
	}
	if err := o.Create(ctx, object, options...); err != nil {
		return Because(fmt.Errorf("create %s: %w", what, err))
	}
	return nil
}

// Remove deletes an object and none that has its name by now, or asks the API server whether it would. What belongs to the
// object goes after it.
func (o *Objects) Remove(ctx context.Context, object verbs.Object, isDryRun bool) error {
	uid, background := object.GetUID(), metav1.DeletePropagationBackground
	options := &client.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background}
	if isDryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	if err := o.Delete(ctx, object, options); err != nil {
		return Because(fmt.Errorf("delete %s: %w", TargetOf(object), err))
	}
	return nil
}
