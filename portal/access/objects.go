package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/portal/problem"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// maxListed is how many events, presets or namespaces are read at once.
const maxListed = 1000

// maxPresets is how many bytes the presets of a namespace may have together. Users write them, and reading takes twenty times as
// much memory.
const maxPresets = 2 << 20

// maxEvents is how many bytes the events about an object may have together. Who may create events writes 256 KiB into each.
const maxEvents = 1 << 20

// ErrManyEvents is that there is more of the events about an object than is read.
var ErrManyEvents = errors.New("the events about the object have more than 1 MiB together")

// ErrManyPresets is that a namespace has more presets than are read.
var ErrManyPresets = problem.New(http.StatusBadRequest, "TooManyPresets",
	"the presets of the namespace have more than 2 MiB together", "remove some of its ConfigMaps with the label "+v1beta1.LabelPreset)

// dynamic returns a client over a transport for objects as JSON has them, so that no field is lost. What the API server warns
// of goes to warned.
func (k *clients) dynamic(to http.RoundTripper, warned *warnings) (dynamic.Interface, error) {
	config, carrier := k.settings(to)
	if warned != nil {
		config.WarningHandler = warned
	}
	made, err := dynamic.NewForConfigAndClient(config, carrier)
	if err != nil {
		return nil, fmt.Errorf("make a client of objects: %w", err)
	}
	return made, nil
}

// warnings keeps what the API server warns of.
type warnings struct {
	mutex sync.Mutex
	texts []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.texts = append(w.texts, text)
}

// objects returns a client of a caller for a resource of heliostat.dev.
func (k *clients) objects(c *Caller, of ObjectName, warned *warnings) (dynamic.ResourceInterface, error) {
	made, err := k.dynamic(k.Transport(c), warned)
	if err != nil {
		return nil, err
	}
	return made.Resource(v1beta1.GroupVersion.WithResource(of.Resource)).Namespace(of.Namespace), nil
}

// FindObject returns an object of heliostat.dev as it is now, read as a caller.
func (k *clients) FindObject(ctx context.Context, c *Caller, of ObjectName) (map[string]any, error) {
	client, err := k.objects(c, of, nil)
	if err != nil {
		return nil, err
	}
	found, err := client.Get(ctx, of.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return found.Object, nil
}

// PatchObject changes an object of heliostat.dev as a caller, and returns it.
func (k *clients) PatchObject(
	ctx context.Context, c *Caller, of ObjectName, kind types.PatchType, patch []byte,
) (map[string]any, error) {
	client, err := k.objects(c, of, nil)
	if err != nil {
		return nil, err
	}
	found, err := client.Patch(ctx, of.Name, kind, patch, metav1.PatchOptions{FieldManager: agent,
		FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		return nil, err
	}
	return found.Object, nil
}

// ObjectName names an object of heliostat.dev.
type ObjectName struct{ Resource, Namespace, Name string }

// CreateObject creates an object of heliostat.dev as a caller, and returns it with what the API server warns of. A dry run creates
// nothing.
func (k *clients) CreateObject(
	ctx context.Context, c *Caller, of ObjectName, object map[string]any, isDry bool,
) (map[string]any, []string, error) {
	warned := &warnings{}
	client, err := k.objects(c, of, warned)
	if err != nil {
		return nil, nil, err
	}
	options := metav1.CreateOptions{FieldManager: agent, FieldValidation: metav1.FieldValidationStrict}
	if isDry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	created, err := client.Create(ctx, &unstructured.Unstructured{Object: object}, options)
	if err != nil {
		return nil, warned.texts, err
	}
	return created.Object, warned.texts, nil
}

// Namespaces returns the names of all namespaces, read as a caller.
func (k *clients) Namespaces(ctx context.Context, c *Caller) ([]string, error) {
	found, err := k.list(ctx, k.Transport(c), corev1.SchemeGroupVersion.WithResource("namespaces"), "", metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(found))
	for i := range found {
		names = append(names, found[i].GetName())
	}
	slices.Sort(names)
	return names, nil
}

// Presets returns the ConfigMaps of a namespace that are labelled as presets, read as a caller.
func (k *clients) Presets(ctx context.Context, c *Caller, namespace string) ([]*corev1.ConfigMap, error) {
	found, err := k.list(ctx, bounded{k.Transport(c), maxPresets}, corev1.SchemeGroupVersion.WithResource("configmaps"), namespace,
		metav1.ListOptions{LabelSelector: v1beta1.LabelPreset})
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, ErrManyPresets
	case err != nil:
		return nil, err
	}
	return convert[corev1.ConfigMap](found)
}

// Events returns the events about an object, read as a caller.
func (k *clients) Events(
	ctx context.Context, c *Caller, namespace string, about types.UID,
) ([]*eventsv1.Event, error) {
	found, err := k.list(ctx, bounded{k.Transport(c), maxEvents}, eventsv1.SchemeGroupVersion.WithResource("events"), namespace,
		metav1.ListOptions{FieldSelector: "regarding.uid=" + string(about)})
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, ErrManyEvents
	case err != nil:
		return nil, err
	}
	return convert[eventsv1.Event](found)
}

// bounded sends requests whose answers may have so many bytes. Reading a longer one fails by an http.MaxBytesError.
type bounded struct {
	http.RoundTripper
	most int64
}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(request)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, b.most)
	}
	return answer, err
}

// list reads objects as a caller, up to a bound.
func (k *clients) list(
	ctx context.Context, by http.RoundTripper, of schema.GroupVersionResource, namespace string, options metav1.ListOptions,
) ([]unstructured.Unstructured, error) {
	made, err := k.dynamic(by, nil)
	if err != nil {
		return nil, err
	}
	options.Limit = maxListed
	list, err := made.Resource(of).Namespace(namespace).List(ctx, options)
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// convert returns objects in Go's form.
func convert[T any](all []unstructured.Unstructured) ([]*T, error) {
	converted := make([]*T, 0, len(all))
	for i := range all {
		one := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(all[i].Object, one); err != nil {
			return nil, fmt.Errorf("read %s: %w", all[i].GetName(), err)
		}
		converted = append(converted, one)
	}
	return converted, nil
}

// ReleasePresets returns the presets of the server's own namespace, which are for all users. They are read as the server.
func (k *clients) ReleasePresets(ctx context.Context, namespace string) ([]*corev1.ConfigMap, error) {
	found, err := k.listOwn(ctx, corev1.SchemeGroupVersion.WithResource("configmaps"), namespace, v1beta1.LabelPreset)
	if err != nil {
		return nil, fmt.Errorf("list presets of the server: %w", err)
	}
	return convert[corev1.ConfigMap](found)
}

// Revisions returns the versions that are kept of a service, by its UID. They are read as the server: whether the caller may
// read the service was asked before.
func (k *clients) Revisions(
	ctx context.Context, namespace, service string, uid types.UID,
) ([]*appsv1.ControllerRevision, error) {
	found, err := k.listOwn(ctx, appsv1.SchemeGroupVersion.WithResource("controllerrevisions"), namespace,
		v1beta1.LabelService+"="+service)
	if err != nil {
		return nil, fmt.Errorf("list versions of service %s: %w", service, err)
	}
	revisions, err := convert[appsv1.ControllerRevision](found)
	return slices.DeleteFunc(revisions, func(one *appsv1.ControllerRevision) bool {
		owner := metav1.GetControllerOfNoCopy(one)
		return owner == nil || owner.UID != uid
	}), err
}

// For how long the UID of a namespace is known, and the list of all of them. A namespace of the same name that is made again is another
// one within that time.
const (
	keepNamespace  = time.Second
	keepNamespaces = 5 * time.Second
)

// NamespaceUID returns the UID of a namespace that is there now, read as the server; it is empty where there is none.
func (k *Kubernetes) NamespaceUID(ctx context.Context, name string) (types.UID, error) {
	if uid, is := k.namespaces.find(name); is {
		return uid, nil
	}
	made, err := k.metadata()
	if err != nil {
		return "", err
	}
	found, err := made.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("find namespace %s: %w", name, OfServer(err))
	}
	uid := types.UID("")
	if err == nil {
		uid = found.UID
	}
	k.namespaces.put(name, uid, keepNamespace)
	return uid, nil
}

// NamespaceUIDs returns those of all namespaces by their names, read as the server.
func (k *Kubernetes) NamespaceUIDs(ctx context.Context) (map[string]types.UID, error) {
	if all, is := k.allNamespaces.find(""); is {
		return all, nil
	}
	made, err := k.metadata()
	if err != nil {
		return nil, err
	}
	all := map[string]types.UID{}
	for next, isFirst := "", true; isFirst || next != ""; isFirst = false {
		page, err := made.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).List(ctx, metav1.ListOptions{Limit: maxListed, Continue: next})
		if err != nil {
			return nil, fmt.Errorf("list namespaces: %w", OfServer(err))
		}
		for i := range page.Items {
			all[page.Items[i].Name] = page.Items[i].UID
		}
		next = page.Continue
	}
	k.allNamespaces.put("", all, keepNamespaces)
	return all, nil
}

// metadata returns a client of the server's own that reads metadata alone.
func (k *clients) metadata() (metadata.Interface, error) {
	config, carrier := k.settings(k.account)
	made, err := metadata.NewForConfigAndClient(config, carrier)
	if err != nil {
		return nil, fmt.Errorf("make a client of metadata: %w", err)
	}
	return made, nil
}

// listOwn reads objects as the server itself, up to a bound.
func (k *clients) listOwn(
	ctx context.Context, of schema.GroupVersionResource, namespace, labels string,
) ([]unstructured.Unstructured, error) {
	made, err := k.dynamic(k.account, nil)
	if err != nil {
		return nil, err
	}
	list, err := made.Resource(of).Namespace(namespace).List(ctx,
		metav1.ListOptions{LabelSelector: labels, Limit: maxListed})
	if err != nil {
		return nil, OfServer(err)
	}
	return list.Items, nil
}

// Reader reads as the server's own account, without a cache. What a caller gets of it must be asked about by May.
type Reader = client.WithWatch

// Object is what a Reader reads.
type Object = client.Object

// Own returns what reads as the server's own account.
func (k *clients) Own() (Reader, error) {
	config, carrier := k.settings(k.account)
	made, err := client.NewWithWatch(config, client.Options{HTTPClient: carrier, Scheme: k.scheme, Mapper: k.mapper})
	if err != nil {
		return nil, fmt.Errorf("make a client of the server: %w", err)
	}
	return made, nil
}
