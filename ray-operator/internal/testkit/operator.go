package testkit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/job"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/service"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/sweep"
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

// call is one API call: whether it is to change something, and of what sort it is,
// as "verb Kind".
type call struct {
	write bool
	what  string
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
	// calls are those that can go wrong.
	calls []call
	// writes are the calls that were sent to change something, as "verb Kind name". requests are these and those that read past the
	// cache.
	writes, requests []string
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

// count takes note of a call and reports whether it is the one to go wrong, and whether
// the operator was dead before it.
func (o *operator) count(verb string, obj any) (hit, dead bool) {
	write := verb != "get" && verb != "list"
	o.mu.Lock()
	defer o.mu.Unlock()
	if write {
		o.writes, o.requests = append(o.writes, describe(verb, obj)), append(o.requests, describe(verb, obj))
	}
	if o.calm {
		return false, o.dead
	}
	o.calls = append(o.calls, call{write, verb + " " + kindCalled(obj)})
	hit, dead = len(o.calls) == o.fault.At, o.dead
	if hit && o.fault.Mode >= KillBefore {
		o.dead = true
	}
	return hit, dead
}

func describe(verb string, obj any) string {
	name := ""
	if named, ok := obj.(interface{ GetName() string }); ok {
		name = named.GetName()
	} else if named, ok := obj.(interface{ GetName() *string }); ok && named.GetName() != nil {
		name = *named.GetName()
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", verb, kindCalled(obj), name))
}

// kindCalled is the kind of an object or apply configuration.
func kindCalled(obj any) string {
	if generic, ok := obj.(runtime.Unstructured); ok {
		return generic.GetObjectKind().GroupVersionKind().Kind
	}
	return strings.TrimSuffix(kindOf(obj), "ApplyConfiguration")
}

// start builds the operator as its composition root does.
func (o *operator) start() {
	live, now := &liveReader{operator: o}, o.world.Clock
	site := desired.Site{
		OperatorNamespace: "heliostat", OperatorLabels: map[string]string{"app": "operator"}, ServerLabels: o.world.ServerLabels,
		Image: pod.OperatorImage{Image: "heliostat"},
	}
	clusters, jobs, services := o.client(clusterKind), o.client(jobKind), o.client(serviceKind)
	o.world.clusters = &cluster.Reconciler{
		Client: clusters, Live: live, Writer: &kube.Writer{Client: clusters, Live: live}, Groups: o.world.Gangs.writer(o),
		Heads: o.world.Ray, Scale: o.world.Scaler, Stores: o.world.Stores,
		Notes:  &sweep.Keeper{Writer: &kube.Writer{Client: clusters, Live: live}, Live: live, Namespace: "heliostat"},
		Events: telemetry.Recorder{Events: o.world}, Clock: now, WatchNodes: true, Site: site,
	}
	o.world.jobs = &job.Reconciler{
		Client: jobs, Nodes: jobs, Live: live, Writer: &kube.Writer{Client: jobs, Live: live},
		Runs: o.world.Jobs, Events: telemetry.Recorder{Events: o.world}, Clock: now,
	}
	o.world.services = &service.Reconciler{
		Client: services, Nodes: services, Live: live,
		Writer: &kube.Writer{Client: services, Live: live}, Routes: &kube.Writer{Client: services, Live: live},
		Heads: board{o.world.Serving}, Events: telemetry.Recorder{Events: o.world}, Clock: now, Site: site,
	}
}

// client is that of a kind's controller: it reads from the cache, but for Secrets, and
// writes to the API server.
func (o *operator) client(controller string) client.Client {
	return interceptor.NewClient(o.world.server, interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			return o.call("get", obj, func() error { return o.cacheOf(obj).Get(ctx, key, obj, opts...) })
		},
		List: func(ctx context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return o.call("list", list, func() error { return o.cacheOf(list).List(ctx, list, opts...) })
		},
		Create: func(ctx context.Context, below client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return o.call("create", obj, func() error {
				if err := o.world.Gateway.unknown(obj); err != nil {
					return err
				}
				return below.Create(own(ctx), obj, opts...)
			})
		},
		Delete: func(ctx context.Context, below client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return o.change(controller, "delete", obj, func() error { return below.Delete(own(ctx), obj, opts...) })
		},
		DeleteAllOf: func(ctx context.Context, below client.WithWatch, obj client.Object, opts ...client.DeleteAllOfOption) error {
			var meant client.DeleteAllOfOptions
			meant.ApplyOptions(opts)
			var pods corev1.PodList
			if err := below.List(ctx, &pods, &meant.ListOptions); err != nil {
				return err
			}
			for i := range pods.Items {
				o.world.History.Foreign(controller, "delete", &pods.Items[i])
			}
			return o.call("delete", obj, func() error { return below.DeleteAllOf(own(ctx), obj, opts...) })
		},
		Patch: func(ctx context.Context, below client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return o.change(controller, "patch", obj, func() error { return below.Patch(own(ctx), obj, patch, opts...) })
		},
		Apply: func(ctx context.Context, below client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return o.call("apply", config, func() error { return below.Apply(own(ctx), config, opts...) })
		},
		SubResourcePatch: func(
			ctx context.Context, below client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
		) error {
			return o.change(controller, sub, obj, func() error { return below.SubResource(sub).Patch(own(ctx), obj, patch, opts...) })
		},
	})
}

// own marks a call as the operator's.
func own(ctx context.Context) context.Context { return context.WithValue(ctx, ownKey{}, true) }

// cacheOf is where the operator reads a kind from.
func (o *operator) cacheOf(obj any) client.Reader {
	switch obj.(type) {
	case *corev1.Secret, *corev1.SecretList:
		return o.world.server
	default:
		return o.world.view
	}
}

// change is a call that changes or deletes an object: it must be one of the controller's,
// whatever the call's outcome.
func (o *operator) change(controller, verb string, obj client.Object, act func() error) error {
	there := o.world.server.latest.find(keyOf(obj))
	if there != nil && there.GetUID() == obj.GetUID() {
		o.world.History.Foreign(controller, verb, there)
	}
	return o.call(verb, obj, act)
}

// liveReader reads past the cache.
type liveReader struct{ operator *operator }

func (l *liveReader) note(verb string, obj any) {
	l.operator.mu.Lock()
	defer l.operator.mu.Unlock()
	l.operator.requests = append(l.operator.requests, describe(verb, obj))
}

// Get reads one object from the API server.
func (l *liveReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	l.note("get", obj)
	return l.operator.call("get", obj, func() error {
		if err := l.operator.world.Gateway.unknown(obj); err != nil {
			return err
		}
		return l.operator.world.server.Get(ctx, key, obj, opts...)
	})
}

// List reads a list from the API server.
func (l *liveReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	l.note("list", list)
	return l.operator.call("list", list, func() error { return l.operator.world.server.List(ctx, list, opts...) })
}
