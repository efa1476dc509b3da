package testkit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"reflect"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// server is an API server in memory, as far as the operator leans on one: UIDs,
// generations, finalizers, grace periods, preconditions, merge patches, field ownership,
// and writes that change nothing. One write at a time: every revision is a state that a
// watcher could see. What it does not have ends the test, through the nil that it embeds.
type server struct {
	client.WithWatch
	clock clock.PassiveClock
	mu    sync.Mutex
	// latest is every object as it is now.
	latest *view
	owners owners
	// revision counts writes, made the objects, former the clusters, jobs and services of a name.
	revision, made int
	former         map[key]int
	// own reports whether the write that is under way is the operator's.
	own bool
	// tell is told of every revision, in order.
	tell func(Event)
	// admit may refuse a create.
	admit func(client.Object) error
}

// scheme knows the kinds that a World has.
var scheme = sync.OnceValue(func() *runtime.Scheme {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		appsv1.AddToScheme, corev1.AddToScheme, discoveryv1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme, v1beta1.AddToScheme, gatewayv1.Install,
	} {
		if err := add(known); err != nil {
			panic(err)
		}
	}
	return known
})

func newServer(now clock.PassiveClock, tell func(Event)) *server {
	return &server{
		clock: now, former: map[key]int{}, tell: tell, latest: newView(nil), owners: newOwners(),
		admit: func(client.Object) error { return nil },
	}
}

// Scheme knows the kinds.
func (s *server) Scheme() *runtime.Scheme { return scheme() }

// Get reads one object, with its field owners.
func (s *server) Get(ctx context.Context, name client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.latest.Get(ctx, name, obj, opts...); err != nil {
		return err
	}
	obj.SetManagedFields(s.owners.of(obj))
	return nil
}

// List reads the objects that match.
func (s *server) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return s.latest.List(ctx, list, opts...)
}

type ownKey struct{}

// begin locks for one write.
func (s *server) begin(ctx context.Context) (end func()) {
	s.mu.Lock()
	s.own = ctx.Value(ownKey{}) != nil
	return s.mu.Unlock
}

// Create makes an object.
func (s *server) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	defer s.begin(ctx)()
	var options client.CreateOptions
	options.ApplyOptions(opts)
	if err := s.admit(obj); err != nil {
		return err
	}
	if s.latest.find(keyOf(obj)) != nil {
		return apierrors.NewAlreadyExists(resourceOf(obj), obj.GetName())
	}
	made := copied(obj)
	made.SetUID(s.uid(made))
	made.SetCreationTimestamp(metav1.NewTime(s.clock.Now().Truncate(time.Second)))
	made.SetDeletionTimestamp(nil)
	made.SetGeneration(1)
	fill(made)
	if err := s.owners.update(made, made, options.FieldManager); err != nil {
		return err
	}
	s.publish(watch.Added, made)
	set(obj, made)
	return nil
}

// fill does what the schema and the API server's defaults do to a new object.
func fill(made client.Object) {
	switch made := made.(type) {
	case *v1beta1.ComputeCluster:
		fillCluster(made)
	case *v1beta1.ClusterJob:
		fillJob(made)
	case *v1beta1.ClusterService:
		fillService(made)
	case *corev1.Service:
		if made.Spec.ClusterIP == "" {
			made.Spec.ClusterIP = clusterIP(made.Name)
		}
	case *corev1.Secret:
		for name, text := range made.StringData {
			if made.Data == nil {
				made.Data = map[string][]byte{}
			}
			made.Data[name] = []byte(text)
		}
		made.StringData = nil
	case *corev1.Pod:
		made.Status = corev1.PodStatus{Phase: corev1.PodPending}
		if made.Spec.TerminationGracePeriodSeconds == nil {
			made.Spec.TerminationGracePeriodSeconds = new(int64(30))
		}
	}
}

// clusterIP is the address of a Service, one for each name.
func clusterIP(name string) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(name)) // a hash takes everything
	sum := hash.Sum32()
	return fmt.Sprintf("10.%d.%d.%d", 128+sum>>16&127, sum>>8&255, sum&255)
}

// doorOf is where the first port of a Service answers.
func doorOf(service *corev1.Service) string {
	if len(service.Spec.Ports) == 0 {
		return ""
	}
	return net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(int(service.Spec.Ports[0].Port)))
}

func fillCluster(made *v1beta1.ComputeCluster) {
	made.Status = v1beta1.ComputeClusterStatus{Conditions: unknown()}
	if made.Spec.ManagedBy == "" {
		made.Spec.ManagedBy = v1beta1.ManagedByOperator
	}
	for i := range made.Spec.WorkerGroups {
		group := &made.Spec.WorkerGroups[i]
		group.HostsPerReplica = max(1, group.HostsPerReplica)
	}
}

// fillJob does for jobs what fillCluster does for clusters.
func fillJob(made *v1beta1.ClusterJob) {
	made.Status = v1beta1.ClusterJobStatus{Conditions: unknown()}
	made.Spec.ManagedBy = cmp.Or(made.Spec.ManagedBy, v1beta1.ManagedByOperator)
	if retry := made.Spec.Retry; retry != nil {
		retry.Scope = cmp.Or(retry.Scope, v1beta1.RetryDriver)
		for value, otherwise := range map[**int32]int32{&retry.BackoffSeconds: 10, &retry.MaxBackoffSeconds: 360} {
			if *value == nil {
				*value = &otherwise
			}
		}
	}
}

func fillService(made *v1beta1.ClusterService) {
	made.Status = v1beta1.ClusterServiceStatus{Conditions: unknown()}
	made.Spec.ManagedBy = cmp.Or(made.Spec.ManagedBy, v1beta1.ManagedByOperator)
	if template := made.Spec.ClusterTemplate; template != nil {
		filled := &v1beta1.ComputeCluster{Spec: template.Spec}
		fillCluster(filled)
		template.Spec = filled.Spec
	}
}

// unknown is the condition that a new object has.
func unknown() []metav1.Condition {
	return []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionUnknown, Reason: "Pending", LastTransitionTime: metav1.Unix(0, 0)}}
}

// uid numbers objects, except that clusters, jobs and services count by name: the names of what is
// made for them follow from their UIDs and must not depend on what else was made.
func (s *server) uid(obj client.Object) types.UID {
	switch kindOf(obj) {
	case clusterKind:
		s.former[keyOf(obj)]++
		return types.UID(fmt.Sprintf("%s-%d", obj.GetName(), s.former[keyOf(obj)]))
	case jobKind:
		s.former[keyOf(obj)]++
		return types.UID(fmt.Sprintf("job-%s-%d", obj.GetName(), s.former[keyOf(obj)]))
	case serviceKind:
		s.former[keyOf(obj)]++
		return types.UID(fmt.Sprintf("service-%s-%d", obj.GetName(), s.former[keyOf(obj)]))
	}
	s.made++
	return types.UID(fmt.Sprintf("uid-%d", s.made))
}

// Update replaces an object, but for its status.
func (s *server) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	var options client.UpdateOptions
	options.ApplyOptions(opts)
	return s.change(ctx, obj, options.FieldManager, func(client.Object) (client.Object, error) { return copied(obj), nil })
}

// Patch merges a patch into an object, but for its status.
func (s *server) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	var options client.PatchOptions
	options.ApplyOptions(opts)
	if patch.Type() == types.JSONPatchType {
		return s.upgrade(ctx, obj, patch)
	}
	return s.change(ctx, obj, options.FieldManager, func(there client.Object) (client.Object, error) {
		return merged(there, obj, patch)
	})
}

// merged is an object with a patch merged in.
func merged(there, obj client.Object, patch client.Patch) (client.Object, error) {
	text, err := patch.Data(obj)
	if err != nil {
		return nil, fmt.Errorf("testkit: patch %s: %w", obj.GetName(), err)
	}
	var changes map[string]any
	if err := utiljson.Unmarshal(text, &changes); err != nil {
		return nil, fmt.Errorf("testkit: patch %s: %w", obj.GetName(), err)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(there)
	if err != nil {
		return nil, fmt.Errorf("testkit: patch %s: %w", obj.GetName(), err)
	}
	switch patch.Type() {
	case types.MergePatchType:
		merge(fields, changes)
	case types.StrategicMergePatchType:
		fields, err = strategicpatch.StrategicMergeMapPatch(fields, changes, there)
	default:
		err = errors.New("no such patches of type " + string(patch.Type()))
	}
	if err != nil {
		return nil, fmt.Errorf("testkit: patch %s: %w", obj.GetName(), err)
	}
	after := reflect.New(reflect.TypeOf(there).Elem()).Interface().(client.Object)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, after); err != nil {
		return nil, fmt.Errorf("testkit: patch %s: %w", obj.GetName(), err)
	}
	return after, nil
}

// merge is RFC 7386. The text form of it, marshalled and parsed at each write, would be most of
// a test's time.
func merge(into, changes map[string]any) {
	for key, value := range changes {
		below, deeper := value.(map[string]any)
		switch there, ok := into[key].(map[string]any); {
		case value == nil:
			delete(into, key)
		case deeper && ok:
			merge(there, below)
		case deeper:
			fresh := map[string]any{}
			merge(fresh, below)
			into[key] = fresh
		default:
			into[key] = value
		}
	}
}

// change makes a write to an object as it is now, and publishes it if it changed
// anything. A resourceVersion or UID in what is wanted must be that of the object.
func (s *server) change(ctx context.Context, obj client.Object, manager string, want edit) error {
	return s.write(ctx, obj, func(there client.Object) (client.Object, error) {
		after, err := want(there)
		if err != nil {
			return nil, err
		}
		if err := sameOne(there, after); err != nil {
			return nil, err
		}
		setField(after, there, "Status")
		if !equality.Semantic.DeepEqual(fieldOf(there, "Spec"), fieldOf(after, "Spec")) && there.GetGeneration() > 0 {
			after.SetGeneration(there.GetGeneration() + 1)
		}
		return after, s.owners.update(there, after, manager)
	})
}

// replace stores an object as it is given.
func (s *server) replace(ctx context.Context, obj client.Object) error {
	return s.write(ctx, obj, func(client.Object) (client.Object, error) { return copied(obj), nil })
}

// changeField is change for a subresource that holds one field. What the schema refuses of a status is refused.
func (s *server) changeField(ctx context.Context, obj client.Object, field string, want edit) error {
	return s.write(ctx, obj, func(there client.Object) (client.Object, error) {
		wanted, err := want(there)
		if err != nil {
			return nil, err
		}
		if err := sameOne(there, wanted); err != nil {
			return nil, err
		}
		after := copied(there)
		setField(after, wanted, field)
		if field == "Status" {
			return after, checkStatus(after)
		}
		return after, nil
	})
}

// edit gives what becomes of an object, which it leaves as it is.
type edit func(there client.Object) (client.Object, error)

// write stores what act makes of an object, and brings obj up to date.
func (s *server) write(ctx context.Context, obj client.Object, act edit) error {
	defer s.begin(ctx)()
	held := s.latest.find(keyOf(obj))
	if held == nil {
		return apierrors.NewNotFound(resourceOf(obj), obj.GetName())
	}
	after, err := act(held)
	if err != nil {
		return err
	}
	touched := after.GetManagedFields() != nil
	keepIdentity(after, held)
	if touched || !equality.Semantic.DeepEqual(held, after) {
		if after.GetDeletionTimestamp() != nil && len(after.GetFinalizers()) == 0 && len(held.GetFinalizers()) > 0 {
			s.publish(watch.Deleted, after)
		} else {
			s.publish(watch.Modified, after)
		}
	}
	set(obj, after)
	return nil
}

// keepIdentity takes over what no write can change.
func keepIdentity(after, from client.Object) {
	after.SetUID(from.GetUID())
	after.SetResourceVersion(from.GetResourceVersion())
	after.SetCreationTimestamp(from.GetCreationTimestamp())
	after.SetDeletionTimestamp(from.GetDeletionTimestamp())
	after.SetDeletionGracePeriodSeconds(from.GetDeletionGracePeriodSeconds())
	after.SetManagedFields(nil)
	after.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
}

func sameOne(there, wanted client.Object) error {
	switch {
	case wanted.GetUID() != "" && wanted.GetUID() != there.GetUID():
		return conflict(there, "the UID does not match")
	case wanted.GetResourceVersion() != "" && wanted.GetResourceVersion() != there.GetResourceVersion():
		return conflict(there, "the object has been modified")
	default:
		return nil
	}
}

// publish gives an object its revision and tells everybody.
func (s *server) publish(kind watch.EventType, obj client.Object) {
	s.revision++
	obj.SetResourceVersion(strconv.Itoa(s.revision))
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	event := Event{Type: kind, Object: copied(obj), Own: s.own}
	s.latest.push(event)
	s.latest.deliver(late{})
	if kind == watch.Deleted {
		s.owners.forget(obj.GetUID())
	}
	s.tell(event)
}

func conflict(obj client.Object, why string) error {
	return apierrors.NewConflict(resourceOf(obj), obj.GetName(), errors.New(why))
}

func resourceOf(obj client.Object) schema.GroupResource {
	return schema.GroupResource{Resource: kindOf(obj)}
}

// fieldOf is a field of an object by its name, nil where its kind has none.
func fieldOf(obj client.Object, name string) any {
	if field := reflect.ValueOf(obj).Elem().FieldByName(name); field.IsValid() {
		return field.Interface()
	}
	return nil
}

// setField copies a field, where the kind has it.
func setField(to, from client.Object, name string) {
	if field := reflect.ValueOf(to).Elem().FieldByName(name); field.IsValid() {
		field.Set(reflect.ValueOf(copied(from)).Elem().FieldByName(name))
	}
}
