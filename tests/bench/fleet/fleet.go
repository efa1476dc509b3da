package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// Layouts: where the clusters of a fleet are.
const (
	// Spread puts ten clusters into each namespace.
	Spread = "spread"
	// One puts all into one namespace.
	One = "one"
	// Mixed is Spread with jobs, services and idle policies.
	Mixed = "mixed"
)

func layouts() []string { return []string{Spread, One, Mixed} }

// usualLayouts are those that need no root.
func usualLayouts() []string { return []string{Spread, One} }

const (
	clustersInNamespace = 10
	workersInCluster    = 3
	podsInCluster       = 1 + workersInCluster
	// atOnce is how many clusters the client creates at the same time.
	atOnce = 16
)

// namespaces of a fleet.
func namespaces(layout string, n int) []string {
	if layout == One {
		return []string{"fleet"}
	}
	var all []string
	for i := range (n + clustersInNamespace - 1) / clustersInNamespace {
		all = append(all, fmt.Sprintf("fleet-%d", i))
	}
	return all
}

// prepare makes namespaces and waits until pods can be made in them.
func (cp *controlPlane) prepare(ctx context.Context, names []string) error {
	for _, name := range names {
		if err := cp.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return fmt.Errorf("create namespace %s: %w", name, err)
		}
	}
	for _, name := range names {
		if err := live.Until(ctx, limit, "the service account of namespace "+name, cp.HasAccount(name)); err != nil {
			return err
		}
	}
	return nil
}

func newCluster(name types.NamespacedName) *v1beta1.ComputeCluster {
	return &v1beta1.ComputeCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
		Spec: v1beta1.ComputeClusterSpec{
			RayVersion:   "2.60.0",
			WorkerGroups: []v1beta1.WorkerGroup{{Name: "cpu", Replicas: new(int32(workersInCluster))}},
		},
	}
}

// fleet is a number of clusters as their users see them.
type fleet struct {
	*controlPlane
	subject
	names []types.NamespacedName
	// beside are objects beside the clusters.
	beside []client.Object

	mutex   sync.Mutex
	created map[types.NamespacedName]time.Time
	// since is when a watch told of a cluster that was ready, for the generation in generations.
	since       map[types.NamespacedName]time.Time
	generations map[types.NamespacedName]int64
}

func newFleet(cp *controlPlane, of subject, layout string, n int) *fleet {
	f := &fleet{
		controlPlane: cp, subject: of,
		created: map[types.NamespacedName]time.Time{},
		since:   map[types.NamespacedName]time.Time{}, generations: map[types.NamespacedName]int64{},
	}
	places := namespaces(layout, n)
	for i := range n {
		f.names = append(f.names, types.NamespacedName{Namespace: places[i%len(places)], Name: fmt.Sprintf("cluster-%d", i)})
	}
	if layout == Mixed {
		f.subject, f.beside = withPolicies(of, f.names), f.mixed()
	}
	return f
}

// follow notes when clusters are ready, until ctx ends. A watch that a busy API server
// breaks off is taken up again.
func (f *fleet) follow(ctx context.Context) error {
	watches, err := cache.New(f.Config, cache.Options{Scheme: f.Scheme()})
	if err != nil {
		return fmt.Errorf("prepare to watch the clusters: %w", err)
	}
	clusters, err := watches.GetInformer(ctx, f.make(types.NamespacedName{}), cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch the clusters: %w", err)
	}
	see := func(obj any) {
		if cluster, ok := obj.(client.Object); ok {
			f.note(cluster)
		}
	}
	handler := toolscache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, obj any) { see(obj) }}
	if _, err := clusters.AddEventHandler(handler); err != nil {
		return fmt.Errorf("watch the clusters: %w", err)
	}
	go func() { _ = watches.Start(ctx) }() // it gives no error once its context has ended
	if !watches.WaitForCacheSync(ctx) {
		return errors.New("watch the clusters: they were never listed")
	}
	return nil
}

func (f *fleet) note(cluster client.Object) {
	if !f.ready(cluster) {
		return
	}
	name := client.ObjectKeyFromObject(cluster)
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if generation := cluster.GetGeneration(); f.generations[name] < generation {
		f.generations[name], f.since[name] = generation, time.Now()
	}
}

// create makes all clusters, and what is beside them, as fast as the API server takes them.
func (f *fleet) create(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, name := range f.names {
		group.Go(func() error {
			begin := time.Now()
			if err := f.Create(ctx, f.make(name)); err != nil {
				return fmt.Errorf("create cluster %s: %w", name, err)
			}
			f.mutex.Lock()
			defer f.mutex.Unlock()
			f.created[name] = begin
			return nil
		})
	}
	for _, object := range f.beside {
		group.Go(func() error {
			if err := f.Create(ctx, object); err != nil {
				return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
			}
			return nil
		})
	}
	return group.Wait()
}

// untilReady waits until all clusters are ready for a generation.
func (f *fleet) untilReady(ctx context.Context, names []types.NamespacedName, generation int64) error {
	return live.Until(ctx, limit, fmt.Sprintf("%d clusters to be ready", len(names)), func(context.Context) error {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		ready := 0
		for _, name := range names {
			if f.generations[name] >= generation {
				ready++
			}
		}
		if ready < len(names) {
			return fmt.Errorf("%d are", ready)
		}
		return nil
	})
}

// Times are in seconds.
type Times struct {
	// AllReady is from the first creation until the last cluster was ready.
	AllReady float64 `json:"allReady"`
	// P50 and P95 are of the times from a cluster's creation until it was ready.
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
}

func (f *fleet) times() Times {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	var first, last time.Time
	var each []float64
	for _, name := range f.names {
		created, ready := f.created[name], f.since[name]
		if first.IsZero() || created.Before(first) {
			first = created
		}
		if ready.After(last) {
			last = ready
		}
		each = append(each, ready.Sub(created).Seconds())
	}
	return Times{AllReady: last.Sub(first).Seconds(), P50: quantile(each, 0.5), P95: quantile(each, 0.95)}
}

// quantile is the smallest value that at least the share q of all values do not exceed.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// growAll adds a worker to clusters, one after the other, and waits for them.
func (f *fleet) growAll(ctx context.Context, names []types.NamespacedName) error {
	for _, name := range names {
		if err := f.grow(ctx, f.controlPlane, name); err != nil {
			return err
		}
	}
	return f.untilReady(ctx, names, 2)
}
