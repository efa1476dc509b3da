// Command floor is what an operator is compared with: nothing but the API writes that a
// ComputeCluster cannot do without. For each it makes the head's Service, the head and
// the workers, with the operator's parallelism, and writes one status when all are ready.
//
// In: flags, a kubeconfig, and the objects that the operator made of one cluster, so that
// both make the same. Reads come from informers. Out: those writes.
//
// It validates nothing, mends nothing, recovers from nothing and tells nobody anything: it
// must never be used for anything else.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

func main() {
	config := flag.String("kubeconfig", "", "of the API server")
	objects := flag.String("objects", "", "file with the objects that the operator made of one cluster")
	workers := flag.Int("workers", 10, "how many clusters are worked on at once")
	flag.Parse()
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *config, *objects, *workers); err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, path, objects string, workers int) error {
	mould, err := readMould(objects)
	if err != nil {
		return err
	}
	f := &floor{
		ctx: ctx, mould: mould, clusters: map[types.UID]*progress{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]()),
	}
	if err := f.connect(path); err != nil {
		return err
	}
	if err := f.watch(); err != nil {
		return err
	}
	for range workers {
		go f.work()
	}
	<-ctx.Done()
	f.queue.ShutDown()
	return nil
}

// floor makes the pods of clusters.
type floor struct {
	ctx    context.Context
	mould  mould
	client client.Client
	cache  cache.Cache
	queue  workqueue.TypedRateLimitingInterface[types.NamespacedName]
	// clusters holds what was done for each; mutex guards the map, the queue its values.
	mutex    sync.Mutex
	clusters map[types.UID]*progress
}

// progress is what was done for a cluster.
type progress struct {
	// service and head were made, and as many workers.
	service, head bool
	workers       int
	// told is the generation that the status tells of.
	told int64
}

// connect prepares to write, with the binary form for Kubernetes' own kinds as the
// operator does, and to read what is watched.
func (f *floor) connect(path string) error {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return fmt.Errorf("read the kubeconfig %s: %w", path, err)
	}
	config.QPS, config.UserAgent = -1, "heliostat-bench-floor"
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("build the scheme: %w", err)
	}
	if f.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("build a client: %w", err)
	}
	ours, err := labels.NewRequirement(v1beta1.LabelCluster, selection.Exists, nil)
	if err != nil {
		return fmt.Errorf("select the pods: %w", err)
	}
	f.cache, err = cache.New(config, cache.Options{
		Scheme: scheme, DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Label: labels.NewSelector().Add(*ours)}},
	})
	if err != nil {
		return fmt.Errorf("build the informers: %w", err)
	}
	return nil
}

// watch puts a cluster into the queue when it changes and when a pod of it is ready.
func (f *floor) watch() error {
	if err := f.cache.IndexField(f.ctx, &corev1.Pod{}, ownerIndex, ownerUID); err != nil {
		return fmt.Errorf("index the pods: %w", err)
	}
	for kind, enqueue := range map[client.Object]func(obj any){
		&v1beta1.ComputeCluster{}: func(obj any) {
			if cluster, ok := obj.(*v1beta1.ComputeCluster); ok {
				f.queue.Add(client.ObjectKeyFromObject(cluster))
			}
		},
		&corev1.Pod{}: func(obj any) {
			if pod, ok := obj.(*corev1.Pod); ok && isReady(pod) {
				f.queue.Add(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[v1beta1.LabelCluster]})
			}
		},
	} {
		informer, err := f.cache.GetInformer(f.ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
		handler := toolscache.ResourceEventHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, obj any) { enqueue(obj) }}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	go func() { _ = f.cache.Start(f.ctx) }() // it gives no error once its context has ended
	if !f.cache.WaitForCacheSync(f.ctx) {
		return errors.New("watch clusters and pods: they were never listed")
	}
	return nil
}

const ownerIndex = "owner"

func ownerUID(obj client.Object) []string {
	if owner := metav1.GetControllerOf(obj); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}

func isReady(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			return pod.Status.Conditions[i].Status == corev1.ConditionTrue
		}
	}
	return false
}

// work takes clusters from the queue until it is shut.
func (f *floor) work() {
	for {
		key, over := f.queue.Get()
		if over {
			return
		}
		if err := f.pass(key); err != nil {
			fmt.Fprintf(os.Stderr, "cluster %s: %v\n", key, err)
			f.queue.AddRateLimited(key)
		}
		f.queue.Done(key)
	}
}

// pass makes what is missing, and tells when all is ready.
func (f *floor) pass(key types.NamespacedName) error {
	var cluster v1beta1.ComputeCluster
	if err := f.cache.Get(f.ctx, key, &cluster); err != nil {
		return client.IgnoreNotFound(err)
	}
	f.mutex.Lock()
	done := f.clusters[cluster.UID]
	if done == nil {
		done = &progress{}
		f.clusters[cluster.UID] = done
	}
	f.mutex.Unlock()
	wanted := int(*cluster.Spec.WorkerGroups[0].Replicas)
	if err := f.fill(&cluster, done, wanted); err != nil {
		return err
	}
	if done.told == cluster.Generation {
		return nil
	}
	var pods corev1.PodList
	err := f.cache.List(f.ctx, &pods, client.InNamespace(key.Namespace), client.MatchingFields{ownerIndex: string(cluster.UID)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	ready := 0
	for i := range pods.Items {
		if isReady(&pods.Items[i]) {
			ready++
		}
	}
	if ready < 1+wanted {
		return nil
	}
	if err := f.tell(&cluster, wanted); err != nil {
		return err
	}
	done.told = cluster.Generation
	return nil
}

// fill makes the Service, then the head, then the workers in batches that double, as the
// operator does.
func (f *floor) fill(cluster *v1beta1.ComputeCluster, done *progress, wanted int) error {
	if !done.service {
		if err := f.create(f.mould.service(cluster)); err != nil {
			return err
		}
		done.service = true
	}
	if !done.head {
		if err := f.create(f.mould.head(cluster)); err != nil {
			return err
		}
		done.head = true
	}
	for size := 1; done.workers < wanted; size *= 2 {
		batch := min(size, wanted-done.workers)
		errs := make([]error, batch)
		var group sync.WaitGroup
		for i := range batch {
			group.Go(func() { errs[i] = f.create(f.mould.worker(cluster, done.workers+i)) })
		}
		group.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		done.workers += batch
	}
	return nil
}

func (f *floor) create(obj client.Object) error {
	if err := f.client.Create(f.ctx, obj); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %T %s: %w", obj, obj.GetName(), err)
	}
	return nil
}

// tell writes the one status.
func (f *floor) tell(cluster *v1beta1.ComputeCluster, workers int) error {
	patch := fmt.Appendf(nil, `{"status":{"observedGeneration":%d,"phase":"Ready","workers":{"desired":%d,"created":%d,"ready":%d},`+
		`"conditions":[{"type":"Ready","status":"True","reason":"AllReady","message":"","observedGeneration":%d,"lastTransitionTime":%q}]}}`,
		cluster.Generation, workers, workers, workers, cluster.Generation, metav1.Now().UTC().Format("2006-01-02T15:04:05Z"))
	name := &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}}
	if err := f.client.Status().Patch(f.ctx, name, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	return nil
}
