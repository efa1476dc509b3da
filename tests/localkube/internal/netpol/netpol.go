// Package netpol enforces NetworkPolicy on one node of the local cluster.
//
// In come the cluster's NetworkPolicies, Pods and Namespaces, watched through
// client-go. Compile turns them into a Ruleset, a plain value. Out go chains in
// the mangle table and ipsets of the network namespace that the process runs in,
// replaced in one transaction and only when the Ruleset has changed.
//
// It relies on pods being routed (CNI ptp), so that FORWARD sees every packet
// between two pods, on one node as well. What the node itself sends to its pods
// leaves through OUTPUT and is never filtered: a node always reaches its pods.
// Neighbour discovery of IPv6 stays on a link and is never forwarded: policies
// cannot drop it.
//
// An instance has one or two families of addresses. Rules are compiled for each
// alone; the tables that hold chains are the family's, the space of sets is shared.
//
// It must never touch a chain or set without its own prefix, write to the API
// server, or open a pod because its own input is late: rules stay as they are
// until there are new ones, also when the process ends.
package netpol

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/plan"
)

const (
	// coalesce is how long a change waits for the changes that come with it.
	// It bounds, together with the 10 to 20 ms of writing the rules, how long
	// a pod whose address the API server knows is without its policy.
	coalesce = 20 * time.Millisecond
	// retryAfter is the wait before rules that could not be written are tried
	// again: long enough for another writer of the tables to finish.
	retryAfter = time.Second
)

// Config says for which node policies are enforced.
type Config struct {
	// Node is the name of the Node whose pods are guarded.
	Node string
	// Families are those of the pods' addresses.
	Families []plan.Family
	// REST reaches the API server. Its user needs get, list and watch on
	// pods, namespaces and networkpolicies of the whole cluster, which is more
	// than the node's own identity may do.
	REST *rest.Config
	// Log receives one record for each change of the rules and each failure.
	Log *slog.Logger
}

// Run enforces policies until ctx ends and then returns nil. It must be started
// inside the node's network namespace, as root. An error means that it could
// not begin: a program is missing or REST cannot be used. Later failures are
// logged and tried again.
func Run(ctx context.Context, cfg Config) error {
	if err := requirePrograms(); err != nil {
		return err
	}
	config := rest.CopyConfig(cfg.REST)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.UserAgent = "localkube-netpol/" + cfg.Node
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client for node %s: %w", cfg.Node, err)
	}
	return newEnforcer(client, cfg, apply).run(ctx)
}

// enforcer carries changes of the watched objects to the node's tables.
type enforcer struct {
	Config
	factory informers.SharedInformerFactory
	watched []cache.SharedIndexInformer
	pods    corelisters.PodLister
	spaces  corelisters.NamespaceLister
	rules   networkinglisters.NetworkPolicyLister
	apply   func(context.Context, []plan.Family, Ruleset) error
	changed chan struct{}
}

func newEnforcer(client kubernetes.Interface, cfg Config, apply func(context.Context, []plan.Family, Ruleset) error) *enforcer {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTransform(withoutManagedFields))
	core, networking := factory.Core().V1(), factory.Networking().V1()
	return &enforcer{
		Config:  cfg,
		factory: factory,
		watched: []cache.SharedIndexInformer{
			core.Pods().Informer(), core.Namespaces().Informer(), networking.NetworkPolicies().Informer(),
		},
		pods:    core.Pods().Lister(),
		spaces:  core.Namespaces().Lister(),
		rules:   networking.NetworkPolicies().Lister(),
		apply:   apply,
		changed: make(chan struct{}, 1),
	}
}

func (e *enforcer) run(ctx context.Context) error {
	for _, informer := range e.watched {
		if _, err := informer.AddEventHandler(e.wakers()); err != nil {
			return fmt.Errorf("watch for node %s: %w", e.Node, err)
		}
	}
	e.factory.Start(ctx.Done())
	defer e.factory.Shutdown()
	for _, informer := range e.watched {
		// Rules made from half of the objects could open a pod.
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return nil
		}
	}
	e.wake()
	return e.loop(ctx)
}

// loop applies the ruleset of each burst of changes until ctx ends.
func (e *enforcer) loop(ctx context.Context) error {
	var applied *Ruleset
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-e.changed:
		}
		if !wait(ctx, coalesce) {
			return nil
		}
		var err error
		if applied, err = e.update(ctx, applied); err == nil {
			continue
		}
		if ctx.Err() != nil {
			return nil
		}
		e.Log.Error("network policies not applied, trying again", "node", e.Node, "error", err)
		if !wait(ctx, retryAfter) {
			return nil
		}
		e.wake()
	}
}

// update applies the ruleset of now if it differs from the one applied, and
// returns what is in force: nil, which differs from all, if that is unknown.
func (e *enforcer) update(ctx context.Context, applied *Ruleset) (*Ruleset, error) {
	next, err := e.compile()
	if err != nil {
		return nil, err
	}
	if applied != nil && reflect.DeepEqual(*applied, next) {
		return applied, nil
	}
	if err := e.apply(ctx, e.Families, next); err != nil {
		return nil, err
	}
	e.Log.Info("network policies applied", "node", e.Node, "chains", len(next.Chains), "sets", len(next.Sets))
	return &next, nil
}

func (e *enforcer) compile() (Ruleset, error) {
	pods, podsErr := e.pods.List(labels.Everything())
	spaces, spacesErr := e.spaces.List(labels.Everything())
	policies, policiesErr := e.rules.List(labels.Everything())
	if err := errors.Join(podsErr, spacesErr, policiesErr); err != nil {
		return Ruleset{}, fmt.Errorf("list for node %s: %w", e.Node, err)
	}
	return Compile(Cluster{Policies: policies, Pods: pods, Namespaces: spaces}, e.Node, e.Families...), nil
}

func (e *enforcer) wakers() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { e.wake() },
		UpdateFunc: func(any, any) { e.wake() },
		DeleteFunc: func(any) { e.wake() },
	}
}

func (e *enforcer) wake() {
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

// withoutManagedFields drops what is often the larger half of a pod in the cache.
func withoutManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

// wait returns true after d, or false as soon as ctx ends.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
