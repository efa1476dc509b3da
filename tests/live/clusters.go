package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Find reads a ComputeCluster.
func (c *Cluster) Find(ctx context.Context, name types.NamespacedName) (*v1beta1.ComputeCluster, error) {
	cluster := &v1beta1.ComputeCluster{}
	if err := c.Get(ctx, name, cluster); err != nil {
		return nil, fmt.Errorf("read ComputeCluster %s: %w", name, err)
	}
	return cluster, nil
}

// IsReady tells by nil that a cluster is Ready for the spec it has, and else what keeps it.
func IsReady(cluster *v1beta1.ComputeCluster) error {
	ready := meta.FindStatusCondition(cluster.Status.Conditions, v1beta1.ConditionReady)
	switch {
	case ready == nil:
		return fmt.Errorf("%s has no condition Ready", cluster.Name)
	case ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != cluster.Generation:
		return fmt.Errorf("%s: Ready is %s for generation %d of %d: %s: %s",
			cluster.Name, ready.Status, ready.ObservedGeneration, cluster.Generation, ready.Reason, ready.Message)
	}
	return nil
}

// UntilReady waits until a cluster is Ready for the spec it has, and gives it.
func (c *Cluster) UntilReady(ctx context.Context, name types.NamespacedName, limit time.Duration) (*v1beta1.ComputeCluster, error) {
	var cluster *v1beta1.ComputeCluster
	err := Until(ctx, limit, "ComputeCluster "+name.String()+" to be Ready", func(ctx context.Context) (err error) {
		if cluster, err = c.Find(ctx, name); err != nil {
			return err
		}
		return IsReady(cluster)
	})
	return cluster, err
}

// Edit changes the spec of a cluster, as kubectl edit does.
func (c *Cluster) Edit(ctx context.Context, name types.NamespacedName, change func(*v1beta1.ComputeClusterSpec)) error {
	cluster, err := c.Find(ctx, name)
	if err != nil {
		return err
	}
	seen := cluster.DeepCopy()
	change(&cluster.Spec)
	if err := c.Patch(ctx, cluster, client.MergeFrom(seen)); err != nil {
		return fmt.Errorf("edit ComputeCluster %s: %w", name, err)
	}
	return nil
}

// PodsOf lists the pods of a cluster of a role, those on their way out included; of
// every role where role is empty.
func (c *Cluster) PodsOf(ctx context.Context, name types.NamespacedName, role string) ([]corev1.Pod, error) {
	labels := client.MatchingLabels{v1beta1.LabelCluster: name.Name}
	if role != "" {
		labels[v1beta1.LabelRole] = role
	}
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(name.Namespace), labels); err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", name, err)
	}
	return pods.Items, nil
}

// UntilGone waits until a deleted cluster is gone with all that was made for it: pods,
// Service, Secret, EndpointSlices.
func (c *Cluster) UntilGone(ctx context.Context, name types.NamespacedName, limit time.Duration) error {
	return Until(ctx, limit, "ComputeCluster "+name.String()+" to leave nothing", func(ctx context.Context) error {
		return errors.Join(c.absent(ctx, name), c.leftovers(ctx, name))
	})
}

func (c *Cluster) absent(ctx context.Context, name types.NamespacedName) error {
	switch _, err := c.Find(ctx, name); {
	case err == nil:
		return errors.New("the ComputeCluster itself is there")
	case !apierrors.IsNotFound(err):
		return err
	}
	return nil
}

func (c *Cluster) leftovers(ctx context.Context, name types.NamespacedName) error {
	var found []error
	for _, list := range []client.ObjectList{
		&corev1.PodList{}, &corev1.ServiceList{}, &corev1.SecretList{}, &discoveryv1.EndpointSliceList{}, &corev1.ConfigMapList{},
	} {
		if err := c.List(ctx, list, client.InNamespace(name.Namespace), client.MatchingLabels{v1beta1.LabelCluster: name.Name}); err != nil {
			return fmt.Errorf("list what %s left: %w", name, err)
		}
		if n := meta.LenList(list); n > 0 {
			found = append(found, fmt.Errorf("%d of %T are there", n, list))
		}
	}
	return errors.Join(found...)
}
