package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// pendingLook is how soon to look again whether the cache shows a write. Its event wakes sooner.
	pendingLook = 50 * time.Millisecond
	// pendingLimit is how long an object rests for a write at most. What somebody deleted before the cache had it never
	// comes.
	pendingLimit = 5 * time.Second
)

// Pending holds what passes of one controller wrote and the cache has yet to show, by the object that was reconciled.
// That object rests until the cache shows it: a pass over what was before would ask for what is there already. It never
// waits for writes of another object.
//
// Every write is safe to repeat, so nothing but the number of calls depends on it.
type Pending struct {
	cache  client.Reader
	scheme *runtime.Scheme
	clock  clock.PassiveClock
	kinds  map[schema.GroupVersionKind]bool

	mu sync.Mutex
	of map[types.NamespacedName]map[target]written
}

// target is an object that was written.
type target struct {
	kind schema.GroupVersionKind
	types.NamespacedName
}

// written is the last write of an object: the version that it led to, or the UID of what was deleted.
type written struct {
	version string
	deleted types.UID
	at      time.Time
}

// NewPending returns one that asks the cache for objects of these kinds, and takes no note of others. It fails for a kind
// that the scheme does not know.
func NewPending(cache client.Reader, scheme *runtime.Scheme, clock clock.PassiveClock, kinds ...client.Object) (*Pending, error) {
	p := &Pending{
		cache: cache, scheme: scheme, clock: clock,
		kinds: map[schema.GroupVersionKind]bool{}, of: map[types.NamespacedName]map[target]written{},
	}
	for _, kind := range kinds {
		gvk, err := apiutil.GVKForObject(kind, scheme)
		if err != nil {
			return nil, fmt.Errorf("find the kind of %T: %w", kind, err)
		}
		p.kinds[gvk] = true
	}
	return p, nil
}

// passOf is the key of the object that a context's pass is over.
type passOf struct{}

// Rest returns a reconciler that does nothing while the cache has yet to show what the pass before wrote.
func (p *Pending) Rest(inner reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		if p.awaits(ctx, request.NamespacedName) {
			return reconcile.Result{RequeueAfter: pendingLook}, nil
		}
		return inner.Reconcile(context.WithValue(ctx, passOf{}, request.NamespacedName), request)
	})
}

// awaits reports whether the cache has yet to show a write for an object, and forgets those that it shows.
func (p *Pending) awaits(ctx context.Context, owner types.NamespacedName) bool {
	p.mu.Lock()
	left := make(map[target]written, len(p.of[owner]))
	for at, write := range p.of[owner] {
		left[at] = write
	}
	p.mu.Unlock()
	for at, write := range left {
		if p.clock.Since(write.at) >= pendingLimit || p.isShown(ctx, at, write) {
			p.forget(owner, at, write)
			delete(left, at)
		}
	}
	return len(left) > 0
}

// isShown reports whether the cache shows a write. What it cannot tell counts as shown.
func (p *Pending) isShown(ctx context.Context, at target, write written) bool {
	made, err := p.scheme.New(at.kind)
	if err != nil {
		return true
	}
	obj := made.(client.Object) //nolint:forcetypeassert // the scheme gave the type of a client.Object
	err = p.cache.Get(ctx, at.NamespacedName, obj, client.UnsafeDisableDeepCopy)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return true
	case write.deleted != "":
		return err != nil || obj.GetUID() != write.deleted || obj.GetDeletionTimestamp() != nil
	case err != nil:
		return false
	}
	order, err := resourceversion.CompareResourceVersion(obj.GetResourceVersion(), write.version)
	return err != nil || order >= 0
}

// note remembers a write of the pass that the context is of.
func (p *Pending) note(ctx context.Context, obj client.Object, write written) {
	owner, within := ctx.Value(passOf{}).(types.NamespacedName)
	if !within || write.version == "" && write.deleted == "" {
		return
	}
	kind, err := apiutil.GVKForObject(obj, p.scheme)
	if err != nil || !p.kinds[kind] {
		return
	}
	write.at = p.clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of[owner] == nil {
		p.of[owner] = map[target]written{}
	}
	p.of[owner][target{kind, client.ObjectKeyFromObject(obj)}] = write
}

func (p *Pending) forget(owner types.NamespacedName, at target, write written) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of[owner][at] == write {
		delete(p.of[owner], at)
	}
	if len(p.of[owner]) == 0 {
		delete(p.of, owner)
	}
}

// Took reports whether an object of the controller's kind, as an event brings it, is as a pass over it left it.
func (p *Pending) Took(obj client.Object) bool {
	kind, err := apiutil.GVKForObject(obj, p.scheme)
	if err != nil {
		return false
	}
	name := client.ObjectKeyFromObject(obj)
	p.mu.Lock()
	write, waits := p.of[name][target{kind, name}]
	p.mu.Unlock()
	if !waits || write.version != obj.GetResourceVersion() {
		return false
	}
	p.forget(name, target{kind, name}, write)
	return true
}

// Client returns a client that does as c does and notes what passes write.
func (p *Pending) Client(c client.Client) client.Client { return &noting{Client: c, pending: p} }

type noting struct {
	client.Client
	pending *Pending
}

// noted notes a write that has succeeded, of an object that has its new version.
func (p *Pending) noted(ctx context.Context, obj client.Object, err error) error {
	if err == nil {
		p.note(ctx, obj, written{version: obj.GetResourceVersion()})
	}
	return err
}

// Create as client.Writer says.
func (n *noting) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return n.pending.noted(ctx, obj, n.Client.Create(ctx, obj, opts...))
}

// Update as client.Writer says.
func (n *noting) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return n.pending.noted(ctx, obj, n.Client.Update(ctx, obj, opts...))
}

// Patch as client.Writer says.
func (n *noting) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return n.pending.noted(ctx, obj, n.Client.Patch(ctx, obj, patch, opts...))
}

// Apply as client.Writer says.
func (n *noting) Apply(ctx context.Context, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	err := n.Client.Apply(ctx, config, opts...)
	if obj, is := config.(client.Object); is {
		return n.pending.noted(ctx, obj, err)
	}
	return err
}

// Delete as client.Writer says.
func (n *noting) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	err := n.Client.Delete(ctx, obj, opts...)
	if err == nil {
		n.pending.note(ctx, obj, written{deleted: obj.GetUID()})
	}
	return err
}

// DeleteAllOf as client.Writer says. Of pods it notes all that the cache has.
func (n *noting) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	var options client.DeleteAllOfOptions
	options.ApplyOptions(opts)
	var pods corev1.PodList
	if _, is := obj.(*corev1.Pod); is {
		err := n.pending.cache.List(ctx, &pods, &options.ListOptions, client.UnsafeDisableDeepCopy)
		if err != nil {
			return fmt.Errorf("list what is deleted together: %w", err)
		}
	}
	err := n.Client.DeleteAllOf(ctx, obj, opts...)
	for i := range pods.Items {
		if err == nil {
			n.pending.note(ctx, &pods.Items[i], written{deleted: pods.Items[i].UID})
		}
	}
	return err
}

// Status as client.StatusClient says.
func (n *noting) Status() client.SubResourceWriter { return n.SubResource("status") }

// SubResource as client.SubResourceClientConstructor says.
func (n *noting) SubResource(name string) client.SubResourceClient {
	return &notingPart{SubResourceClient: n.Client.SubResource(name), pending: n.pending}
}

// notingPart is a client of one subresource.
type notingPart struct {
	client.SubResourceClient
	pending *Pending
}

// Update as client.SubResourceWriter says.
func (n *notingPart) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	return n.pending.noted(ctx, obj, n.SubResourceClient.Update(ctx, obj, opts...))
}

// Patch as client.SubResourceWriter says.
func (n *notingPart) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return n.pending.noted(ctx, obj, n.SubResourceClient.Patch(ctx, obj, patch, opts...))
}
