package testkit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
)

// Mode is what goes wrong with an API call.
type Mode int

const (
	// Fail answers with an error before the call is sent.
	Fail Mode = iota
	// LoseReply carries a write out and answers with an error.
	LoseReply
	// KillBefore ends the operator before a write is sent, KillAfter once it is done.
	KillBefore
	KillAfter
)

// String names the mode in the names of tests.
func (m Mode) String() string {
	return [...]string{"fail", "lose-reply", "kill-before", "kill-after"}[m]
}

// Fault goes wrong once, at the operator's API call of the number At, counted from 1;
// 0 is never.
type Fault struct {
	At   int
	Mode Mode
}

var errKilled = errors.New("testkit: the operator was killed")

// operator is one life of the operator's process: its calls pass through here.
type operator struct {
	world *World
	mu    sync.Mutex
	fault Fault
	dead  bool
	// calm keeps calls from counting, so that none of them goes wrong.
	calm bool
	// calls tells of each call whether it was a write.
	calls []bool
	// writes are the calls that were sent to change something, as "verb Kind name".
	writes []string
}

// call lets one API call through, or not.
func (o *operator) call(verb string, obj any, act func() error) error {
	hit, dead := o.count(verb, obj)
	switch {
	case dead, hit && o.fault.Mode == KillBefore:
		return errKilled
	case !hit:
		return act()
	case o.fault.Mode == Fail:
		return apierrors.NewInternalError(errors.New("testkit: injected"))
	}
	if err := act(); err != nil {
		return err
	}
	return apierrors.NewTimeoutError("testkit: the reply was lost", 1)
}

// count takes note of a call and tells whether it is the one to go wrong, and whether
// the operator was dead before it.
func (o *operator) count(verb string, obj any) (hit, dead bool) {
	write := verb != "get" && verb != "list"
	o.mu.Lock()
	defer o.mu.Unlock()
	if write {
		o.writes = append(o.writes, describe(verb, obj))
	}
	if o.calm {
		return false, o.dead
	}
	o.calls = append(o.calls, write)
	hit, dead = len(o.calls) == o.fault.At, o.dead
	if hit && o.fault.Mode >= KillBefore {
		o.dead = true
	}
	return hit, dead
}

func describe(verb string, obj any) string {
	name := ""
	if named, ok := obj.(client.Object); ok {
		name = named.GetName()
	}
	kind := fmt.Sprintf("%T", obj)
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", verb, kind[strings.LastIndex(kind, ".")+1:], name))
}

// reconciler builds the operator as its composition root does: reads from the cache,
// writes and live reads to the API server.
func (o *operator) reconciler() *cluster.Reconciler {
	server, cache := o.world.server, o.world.view
	live := &liveReader{operator: o}
	through := interceptor.NewClient(server.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			return o.call("get", obj, func() error { return cache.Get(ctx, key, obj, opts...) })
		},
		List: func(ctx context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return o.call("list", list, func() error { return cache.List(ctx, list, opts...) })
		},
		Create: func(ctx context.Context, below client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return o.call("create", obj, func() error { return below.Create(ctx, obj, opts...) })
		},
		Delete: func(ctx context.Context, below client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return o.change(ctx, "delete", obj, func() error { return below.Delete(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, below client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return o.change(ctx, "patch", obj, func() error { return below.Patch(ctx, obj, patch, opts...) })
		},
		Apply: func(ctx context.Context, below client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return o.call("apply", config, func() error { return below.Apply(ctx, config, opts...) })
		},
		SubResourcePatch: func(
			ctx context.Context, below client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
		) error {
			return o.change(ctx, sub, obj, func() error { return below.SubResource(sub).Patch(ctx, obj, patch, opts...) })
		},
	})
	return &cluster.Reconciler{
		Client: through, Live: live, Writer: &kube.Writer{Client: through, Live: live},
		Events: telemetry.Recorder{Events: o.world}, Clock: o.world.Clock,
	}
}

// change is a call that changes or deletes an object: it must be one of ours, whatever
// the call's outcome.
func (o *operator) change(ctx context.Context, verb string, obj client.Object, act func() error) error {
	there := obj.DeepCopyObject().(client.Object)
	if err := o.world.server.Get(ctx, client.ObjectKeyFromObject(obj), there); err == nil && there.GetUID() == obj.GetUID() {
		o.world.History.Foreign(verb, there)
	}
	return o.call(verb, obj, act)
}

// liveReader reads past the cache.
type liveReader struct{ operator *operator }

// Get reads one object from the API server.
func (l *liveReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return l.operator.call("get", obj, func() error { return l.operator.world.server.Get(ctx, key, obj, opts...) })
}

// List reads a list from the API server.
func (l *liveReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return l.operator.call("list", list, func() error { return l.operator.world.server.List(ctx, list, opts...) })
}
