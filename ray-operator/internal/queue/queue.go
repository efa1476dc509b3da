// Package queue reads and writes the Workloads by which Kueue knows clusters and jobs that are queued.
//
// In: a cluster or a job with the label of a queue, from a pass of its controller. Out: what package kueue decides by, and the
// write that it decided on.
//
// It must never give a quota back that a pod still uses, touch a Workload of somebody else, or wait for Kueue. A nil Keeper keeps
// none: no object is in a queue then.
package queue

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kueue"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// Kinds of objects that are queued.
const (
	clusterKind = "ComputeCluster"
	jobKind     = "ClusterJob"
)

// Keeper keeps the Workloads of one controller's objects.
type Keeper struct {
	// Client reads from the cache.
	Client client.Reader
	Writer *kube.Writer
	// Defaults lie under the podDefaults of every cluster.
	Defaults *pod.Installed
}

// OfCluster returns what is known of a cluster's place in a queue. One that a job made goes by the job's.
func (k *Keeper) OfCluster(ctx context.Context, cluster *v1beta1.ComputeCluster) (kueue.Seen, error) {
	if k == nil {
		return kueue.Seen{}, nil
	}
	owner := naming.Controller(cluster)
	if owner == nil || owner.Kind != jobKind || cluster.Labels[v1beta1.LabelJob] != owner.Name {
		seen, err := k.of(ctx, clusterKind, cluster, cluster)
		seen.Clusters = []string{cluster.Name}
		return seen, err
	}
	seen := kueue.Seen{Queue: kueue.QueueOf(cluster), Rides: true}
	if seen.Queue == "" {
		return kueue.Seen{}, nil
	}
	key := types.NamespacedName{Namespace: cluster.Namespace, Name: naming.Workload(jobKind, owner.Name, owner.UID)}
	err := k.read(ctx, key, owner.UID, &seen)
	return seen, err
}

// onForeign is why a job cannot wait for a quota of its own.
const onForeign = "it runs on the cluster that its clusterRef names, which holds the quota"

// OfJob returns what is known of a job's place in a queue. The cluster is the one that it makes, nil for none.
func (k *Keeper) OfJob(ctx context.Context, job *v1beta1.ClusterJob, cluster *v1beta1.ComputeCluster) (kueue.Seen, error) {
	switch {
	case k == nil:
		return kueue.Seen{}, nil
	case cluster == nil && kueue.QueueOf(job) != "":
		return kueue.Seen{Queue: kueue.QueueOf(job), Problem: onForeign}, nil
	case cluster == nil:
		return kueue.Seen{}, nil
	default:
		return k.of(ctx, jobKind, job, cluster)
	}
}

func (k *Keeper) of(ctx context.Context, kind string, object client.Object, cluster *v1beta1.ComputeCluster) (kueue.Seen, error) {
	seen := kueue.Seen{Queue: kueue.QueueOf(object)}
	key := types.NamespacedName{Namespace: object.GetNamespace(), Name: naming.Workload(kind, object.GetName(), object.GetUID())}
	if err := k.read(ctx, key, object.GetUID(), &seen); err != nil || seen.Queue == "" || seen.Problem != "" {
		return seen, err
	}
	seen.Wanted = kueue.For(kind, object, cluster, k.Defaults)
	if seen.Problem = seen.Wanted.Refusal(); seen.Problem != "" {
		return seen, nil
	}
	return seen, k.rank(ctx, object, &seen)
}

// read reads the Workload of an owner, and where its admission has its pods.
func (k *Keeper) read(ctx context.Context, key types.NamespacedName, owner types.UID, seen *kueue.Seen) error {
	var workload kueue.Workload
	switch err := k.Client.Get(ctx, key, &workload); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read Workload %s: %w", key, err)
	case !naming.IsOwned(&workload, owner):
		seen.Problem = fmt.Sprintf("Workload %s belongs to something else", key.Name)
		return nil
	}
	seen.Workload = &workload
	flavors := map[string]*kueue.ResourceFlavor{}
	for name := range workload.Flavors() {
		var flavor kueue.ResourceFlavor
		switch err := k.Client.Get(ctx, types.NamespacedName{Name: name}, &flavor); {
		case apierrors.IsNotFound(err):
			seen.Problem = fmt.Sprintf("ResourceFlavor %s of its admission does not exist", name)
			return nil
		case err != nil:
			return fmt.Errorf("read ResourceFlavor %s: %w", name, err)
		}
		flavors[name] = &flavor
	}
	seen.Placements = workload.Placements(flavors)
	return nil
}

// rank gives the wanted Workload the priority that the object names. One that is queued already keeps what it has while there
// is no such class: what runs must not stop for that.
func (k *Keeper) rank(ctx context.Context, object client.Object, seen *kueue.Seen) error {
	name := object.GetLabels()[kueue.LabelPriority]
	if name == "" {
		return nil
	}
	var class kueue.WorkloadPriorityClass
	switch err := k.Client.Get(ctx, types.NamespacedName{Name: name}, &class); {
	case apierrors.IsNotFound(err) && seen.Workload != nil:
		seen.Wanted.Spec.Priority, seen.Wanted.Spec.PriorityClassRef = seen.Workload.Spec.Priority, seen.Workload.Spec.PriorityClassRef
		return nil
	case apierrors.IsNotFound(err):
		seen.Problem = fmt.Sprintf("there is no WorkloadPriorityClass %s, which its label %s names", name, kueue.LabelPriority)
		return nil
	case err != nil:
		return fmt.Errorf("read WorkloadPriorityClass %s: %w", name, err)
	}
	seen.Wanted.Spec.Priority = &class.Value
	seen.Wanted.Spec.PriorityClassRef = &kueue.ClassRef{Group: kueue.GroupVersion.Group, Kind: "WorkloadPriorityClass", Name: name}
	return nil
}

// Do carries out what was decided about a Workload. A nil Keeper has nothing to do.
func (k *Keeper) Do(ctx context.Context, seen kueue.Seen, answer kueue.Answer) error {
	if answer.Frees(seen) {
		if err := k.confirm(ctx, seen); err != nil {
			return err
		}
	}
	switch answer.Step {
	case kueue.Make:
		_, err := k.Writer.Create(ctx, seen.Wanted)
		return err
	case kueue.Drop:
		return k.Writer.Delete(ctx, seen.Workload, nil)
	case kueue.Rank:
		ranked := seen.Workload.DeepCopy()
		ranked.Spec.Priority, ranked.Spec.PriorityClassRef = seen.Wanted.Spec.Priority, seen.Wanted.Spec.PriorityClassRef
		return k.Writer.Edit(ctx, seen.Workload, ranked)
	case kueue.Tell:
		told := seen.Workload.DeepCopy()
		told.Status = answer.Status
		return k.Writer.EditStatus(ctx, seen.Workload, told)
	default:
		return nil
	}
}

// confirm looks past the cache for pods that still use a quota which is about to be given back.
func (k *Keeper) confirm(ctx context.Context, seen kueue.Seen) error {
	for _, name := range seen.Clusters {
		var pods corev1.PodList
		labels := client.MatchingLabels{v1beta1.LabelCluster: name}
		if err := k.Writer.Live.List(ctx, &pods, client.InNamespace(seen.Workload.Namespace), labels); err != nil {
			return fault.Wrap(err, "list the pods of ComputeCluster %s", name)
		}
		for i := range pods.Items {
			if owner := naming.Controller(&pods.Items[i]); owner != nil && owner.Kind == clusterKind && owner.Name == name {
				return &fault.Wait{For: "the cache to know of Pod " + pods.Items[i].Name}
			}
		}
	}
	return nil
}
