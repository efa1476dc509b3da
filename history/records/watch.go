package records

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	clientgo "k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

const (
	// maxAsked is how many pods wait until their events are read. Those beyond it have no events.
	maxAsked = 1_000
	// askedFor bounds one such call.
	askedFor = 10 * time.Second
)

// watch follows Kubernetes, and hands on what changed.
type watch struct {
	settings Settings
	cache    cache.Cache
	clients  clientgo.Interface
	pending  *pending
	// asked are pods whose events are to be read.
	asked chan *corev1.Pod
	mutex sync.Mutex
	known map[string]bool // pods whose events were read
}

// newWatch returns a watch of the settings' API server.
func newWatch(settings Settings, to *pending) (*watch, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("register the kinds: %w", err)
	}
	ofClusters, err := labels.NewRequirement(v1beta1.LabelCluster, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("select pods of clusters: %w", err)
	}
	options := cache.Options{
		Scheme: scheme, DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {Label: labels.NewSelector().Add(*ofClusters), Transform: trimPod},
		},
	}
	for _, name := range settings.Namespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[name] = cache.Config{}
	}
	w := &watch{settings: settings, pending: to, asked: make(chan *corev1.Pod, maxAsked), known: map[string]bool{}}
	if w.cache, err = cache.New(settings.Kubernetes, options); err != nil {
		return nil, fmt.Errorf("watch Kubernetes: %w", err)
	}
	if w.clients, err = clientgo.NewForConfig(settings.Kubernetes); err != nil {
		return nil, fmt.Errorf("watch Kubernetes: %w", err)
	}
	return w, nil
}

// kinds are those that have records.
func kinds() map[string]client.Object {
	return map[string]client.Object{
		kindCluster: &v1beta1.ComputeCluster{}, kindJob: &v1beta1.ClusterJob{}, kindService: &v1beta1.ClusterService{},
	}
}

// trimPod leaves of a pod what records and callers need.
func trimPod(object any) (any, error) {
	pod, is := object.(*corev1.Pod)
	if !is {
		return object, nil
	}
	kept := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion, CreationTimestamp: pod.CreationTimestamp,
			DeletionTimestamp: pod.DeletionTimestamp, Labels: pod.Labels, OwnerReferences: pod.OwnerReferences,
		},
		Spec: corev1.PodSpec{NodeName: pod.Spec.NodeName},
		Status: corev1.PodStatus{
			Phase: pod.Status.Phase, Reason: pod.Status.Reason, Conditions: pod.Status.Conditions, ContainerStatuses: pod.Status.ContainerStatuses,
		},
	}
	return kept, nil
}

// run watches until the context ends.
func (w *watch) run(ctx context.Context) error {
	for _, object := range kinds() {
		if err := w.follow(ctx, object, w.seeObject); err != nil {
			return err
		}
	}
	if err := errors.Join(w.follow(ctx, &corev1.Pod{}, w.seePod), w.follow(ctx, &corev1.Namespace{}, w.seeSpace)); err != nil {
		return err
	}
	var group sync.WaitGroup
	defer group.Wait()
	namespaces := w.settings.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for kind := range kinds() {
		for _, namespace := range namespaces {
			group.Go(func() { w.followEvents(ctx, namespace, kind) })
		}
	}
	group.Go(func() { w.readEvents(ctx) })
	if err := w.cache.Start(ctx); err != nil {
		return fmt.Errorf("watch Kubernetes: %w", err)
	}
	return nil
}

// follow calls see with each object that is there, changes, or goes.
func (w *watch) follow(ctx context.Context, object client.Object, see func(object any, isDeleted bool)) error {
	informer, err := w.cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch %T: %w", object, err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { see(object, false) },
		UpdateFunc: func(_, object any) { see(object, false) },
		DeleteFunc: func(object any) {
			if gone, is := object.(toolscache.DeletedFinalStateUnknown); is {
				object = gone.Obj
			}
			see(object, true)
		},
	})
	if err != nil {
		return fmt.Errorf("watch %T: %w", object, err)
	}
	return nil
}

// wait waits until all objects were seen.
func (w *watch) wait(ctx context.Context) error {
	if !w.cache.WaitForCacheSync(ctx) {
		return errors.Join(errors.New("the objects of Kubernetes are not known"), ctx.Err())
	}
	return nil
}

// seeObject hands on an object of a kind that has records.
func (w *watch) seeObject(seen any, isDeleted bool) {
	object, is := seen.(client.Object)
	if !is {
		return
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		w.settings.Log.Error("Reading an object failed", "error", err)
		return
	}
	for kind, one := range kinds() {
		if fmt.Sprintf("%T", one) == fmt.Sprintf("%T", seen) {
			fields["kind"], fields["apiVersion"] = kind, v1beta1.GroupVersion.String()
		}
	}
	now := w.settings.Now().UnixMilli()
	made, err := newRow(&unstructured.Unstructured{Object: fields}, w.spaceOf(object.GetNamespace()), now)
	if err != nil {
		w.settings.Log.Error("Making a record failed", "error", err)
		return
	}
	if isDeleted {
		made.Deleted = now
	}
	w.pending.addRow(made)
	if owner := metav1.GetControllerOf(object); made.Kind == kindCluster && owner != nil && owner.Kind == kindService {
		w.pending.addLink(string(owner.UID), made.UID)
	}
}

// spaceOf returns the UID of a namespace, and nothing where it is not known.
func (w *watch) spaceOf(name string) string {
	ctx, stop := context.WithTimeout(context.Background(), askedFor)
	defer stop()
	found, err := w.Namespace(ctx, name)
	if err != nil || found == nil {
		return ""
	}
	return string(found.UID)
}

func (w *watch) seePod(seen any, isDeleted bool) {
	pod, is := seen.(*corev1.Pod)
	if !is {
		return
	}
	made := newPodRow(pod, isDeleted, w.settings.Now().UnixMilli())
	if made == nil {
		return
	}
	w.pending.addPod(made)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if isDeleted {
		delete(w.known, made.UID)
	} else if !w.known[made.UID] && isUnhealthy(pod) {
		select {
		case w.asked <- pod:
			w.known[made.UID] = true
		default:
		}
	}
}

func (w *watch) seeSpace(seen any, isDeleted bool) {
	namespace, is := seen.(*corev1.Namespace)
	if !is {
		return
	}
	now := w.settings.Now().UnixMilli()
	one := space{Name: namespace.Name, At: now}
	if isDeleted {
		one.Gone = now
	}
	w.pending.addSpace(string(namespace.UID), one)
}

// followEvents follows the events about one kind in one namespace. None is kept here.
func (w *watch) followEvents(ctx context.Context, namespace, kind string) {
	source := toolscache.NewListWatchFromClient(w.clients.CoreV1().RESTClient(), "events", namespace, fields.OneTermEqualSelector("involvedObject.kind", kind))
	toolscache.NewReflectorWithOptions(source, &corev1.Event{}, sink{w.seeEvent}, toolscache.ReflectorOptions{}).RunWithContext(ctx)
}

func (w *watch) seeEvent(seen any) {
	if one, is := seen.(*corev1.Event); is {
		w.pending.addEvent(string(one.InvolvedObject.UID), newEvent(one))
	}
}

func newEvent(from *corev1.Event) event {
	one := event{
		UID: string(from.UID), Kind: from.InvolvedObject.Kind, Name: from.InvolvedObject.Name, Type: shortened(from.Type), Reason: shortened(from.Reason),
		Message: shortened(from.Message), First: from.FirstTimestamp.UnixMilli(), Last: from.LastTimestamp.UnixMilli(), Count: max(from.Count, 1),
	}
	if from.FirstTimestamp.IsZero() {
		one.First = from.CreationTimestamp.UnixMilli()
	}
	if from.LastTimestamp.IsZero() {
		one.Last = one.First
	}
	return one
}

// readEvents reads the events of pods that were asked for, one after another.
func (w *watch) readEvents(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case pod := <-w.asked:
			owner := metav1.GetControllerOf(pod)
			if owner == nil {
				continue
			}
			asking, stop := context.WithTimeout(ctx, askedFor)
			found, err := w.clients.CoreV1().Events(pod.Namespace).List(asking, metav1.ListOptions{
				FieldSelector: fields.OneTermEqualSelector("involvedObject.uid", string(pod.UID)).String(), Limit: maxEvents,
			})
			stop()
			if err != nil {
				w.settings.Log.Error("Reading the events of a pod failed", "error", err)
				continue
			}
			for i := range found.Items {
				w.pending.addEvent(string(owner.UID), newEvent(&found.Items[i]))
			}
		}
	}
}

// living returns what Kubernetes has.
func (w *watch) living(ctx context.Context) (living, error) {
	all := living{map[string]bool{}, map[string]bool{}, map[string]bool{}}
	var clusters v1beta1.ComputeClusterList
	var jobs v1beta1.ClusterJobList
	var services v1beta1.ClusterServiceList
	var pods corev1.PodList
	var spaces corev1.NamespaceList
	for _, list := range []client.ObjectList{&clusters, &jobs, &services, &pods, &spaces} {
		if err := w.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return all, fmt.Errorf("list what is there: %w", err)
		}
	}
	for i := range clusters.Items {
		all.objects[string(clusters.Items[i].UID)] = true
	}
	for i := range jobs.Items {
		all.objects[string(jobs.Items[i].UID)] = true
	}
	for i := range services.Items {
		all.objects[string(services.Items[i].UID)] = true
	}
	for i := range pods.Items {
		all.pods[string(pods.Items[i].UID)] = true
	}
	for i := range spaces.Items {
		all.spaces[string(spaces.Items[i].UID)] = true
	}
	return all, nil
}

// Pod returns a pod of a cluster, and nil where there is none.
func (w *watch) Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	return get(ctx, w.cache, namespace, name, &corev1.Pod{})
}

// Cluster returns a cluster, and nil where there is none.
func (w *watch) Cluster(ctx context.Context, namespace, name string) (*v1beta1.ComputeCluster, error) {
	return get(ctx, w.cache, namespace, name, &v1beta1.ComputeCluster{})
}

// Namespace returns a namespace, and nil where there is none.
func (w *watch) Namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	return get(ctx, w.cache, "", name, &corev1.Namespace{})
}

func get[T client.Object](ctx context.Context, from client.Reader, namespace, name string, into T) (T, error) {
	var none T
	err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("look up %s/%s: %w", namespace, name, err)
	}
	return into, nil
}

// sink is a store of a reflector that hands on objects and keeps none.
type sink struct{ see func(object any) }

func (s sink) Add(object any) error    { s.see(object); return nil }
func (s sink) Update(object any) error { s.see(object); return nil }
func (s sink) Delete(any) error        { return nil }
func (s sink) Replace(objects []any, _ string) error {
	for _, one := range objects {
		s.see(one)
	}
	return nil
}
func (s sink) Resync() error { return nil }
