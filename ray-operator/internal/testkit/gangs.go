package testkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
)

// Gangs stands in for the API server's PodGroups, of one kind. What it does not have ends the test, through the nil that
// it embeds.
type Gangs struct {
	client.Client
	// Kind is the one that the API server knows, none at first.
	Kind schema.GroupVersionKind

	world *World
	mu    sync.Mutex
	// made counts the objects.
	made    int
	objects map[types.NamespacedName]*unstructured.Unstructured
}

func newGangs(w *World) *Gangs {
	return &Gangs{world: w, objects: map[types.NamespacedName]*unstructured.Unstructured{}}
}

// Of returns the object of a cluster, nil where there is none.
func (g *Gangs) Of(cluster string) *unstructured.Unstructured {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.collect()
	return g.objects[types.NamespacedName{Namespace: Namespace, Name: cluster + "-gang"}]
}

// Put stores an object as somebody else makes it.
func (g *Gangs) Put(object *unstructured.Unstructured) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.objects[client.ObjectKeyFromObject(object)] = object
}

// collect takes away what belongs to clusters that are gone.
func (g *Gangs) collect() {
	maps.DeleteFunc(g.objects, func(_ types.NamespacedName, object *unstructured.Unstructured) bool {
		owner := metav1.GetControllerOf(object)
		there := g.world.server.latest.find(key{clusterKind, types.NamespacedName{Namespace: object.GetNamespace(), Name: owner.Name}})
		return there == nil || there.GetUID() != owner.UID
	})
}

// writer is that of an operator.
func (g *Gangs) writer(o *operator) *kube.Writer {
	each := &gangClient{Gangs: g, operator: o}
	return &kube.Writer{Client: each, Live: each}
}

// gangClient is one operator's client for PodGroups.
type gangClient struct {
	*Gangs
	operator *operator
}

// RESTMapper knows the kind.
func (g *gangClient) RESTMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	if !g.Kind.Empty() {
		mapper.Add(g.Kind, meta.RESTScopeNamespace)
	}
	return mapper
}

// Scheme knows no type of theirs.
func (g *gangClient) Scheme() *runtime.Scheme { return scheme() }

// call lets a call through, or not, and gives it the objects that there are.
func (g *gangClient) call(verb string, obj any, act func() error) error {
	return g.operator.call(verb, obj, func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.collect()
		return act()
	})
}

// find gives an object by its name, or the error that there is none.
func (g *gangClient) find(name types.NamespacedName) (*unstructured.Unstructured, error) {
	if there := g.objects[name]; there != nil {
		return there, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: g.Kind.Group, Resource: g.Kind.Kind}, name.Name)
}

// Get reads one.
func (g *gangClient) Get(_ context.Context, name client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	return g.call("get", obj, func() error {
		there, err := g.find(name)
		if err == nil {
			there.DeepCopyInto(obj.(*unstructured.Unstructured))
		}
		return err
	})
}

// Create makes one.
func (g *gangClient) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	return g.call("create", obj, func() error {
		name := client.ObjectKeyFromObject(obj)
		if _, err := g.find(name); err == nil {
			return apierrors.NewAlreadyExists(schema.GroupResource{Resource: g.Kind.Kind}, name.Name)
		}
		g.made++
		obj.SetUID(types.UID(fmt.Sprintf("gang-%d", g.made)))
		g.objects[name] = obj.(*unstructured.Unstructured).DeepCopy()
		return nil
	})
}

// Delete removes one if it is the one meant.
func (g *gangClient) Delete(_ context.Context, obj client.Object, _ ...client.DeleteOption) error {
	return g.call("delete", obj, func() error {
		there, err := g.find(client.ObjectKeyFromObject(obj))
		if err == nil && there.GetUID() == obj.GetUID() {
			delete(g.objects, client.ObjectKeyFromObject(obj))
		}
		return err
	})
}

// Apply writes all of one again, where it is the one meant.
func (g *gangClient) Apply(_ context.Context, config runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	return g.call("apply", config, func() error {
		text, err := json.Marshal(config)
		if err != nil {
			return fmt.Errorf("testkit: apply %T: %w", config, err)
		}
		wanted := &unstructured.Unstructured{}
		if err := wanted.UnmarshalJSON(text); err != nil {
			return fmt.Errorf("testkit: apply %T: %w", config, err)
		}
		there, err := g.find(client.ObjectKeyFromObject(wanted))
		if err != nil {
			return err
		}
		if there.GetUID() != wanted.GetUID() {
			return apierrors.NewConflict(schema.GroupResource{Resource: g.Kind.Kind}, wanted.GetName(), errors.New("the UID does not match"))
		}
		g.objects[client.ObjectKeyFromObject(wanted)] = wanted
		return nil
	})
}
