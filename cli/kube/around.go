package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/apiserver/explain"
	"github.com/heliostat-dev/heliostat/apiserver/verbs"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// ErrNoPods is that a user may see an object and not its pods, so that an explanation ends above them.
var ErrNoPods = errors.New("the pods cannot be seen")

// Around returns an object with its clusters and their pods, as explanations need them. Where the user may not see pods,
// the rest comes with ErrNoPods.
func (o *Objects) Around(ctx context.Context, object verbs.Object, now time.Time) (explain.Input, error) {
	in := explain.Input{Object: object, Now: now}
	clusters, err := o.clustersOf(ctx, object)
	if err != nil {
		return in, err
	}
	all := clusters
	if _, is := object.(*v1beta1.ComputeCluster); !is {
		in.Clusters = clusters
	}
	for _, cluster := range all {
		pods := &corev1.PodList{}
		err := o.List(ctx, pods, client.InNamespace(cluster.Namespace),
			client.MatchingLabels{v1beta1.LabelCluster: cluster.Name})
		switch {
		case apierrors.IsForbidden(err):
			return in, ErrNoPods
		case err != nil:
			return in, Because(fmt.Errorf("list pods of cluster %s: %w", cluster.Name, err))
		}
		for i := range pods.Items {
			in.Pods = append(in.Pods, &pods.Items[i])
		}
	}
	return in, nil
}

// clustersOf returns the clusters that an object is or uses.
func (o *Objects) clustersOf(ctx context.Context, object verbs.Object) ([]*v1beta1.ComputeCluster, error) {
	var ref *v1beta1.ClusterReference
	var label string
	switch object := object.(type) {
	case *v1beta1.ComputeCluster:
		return []*v1beta1.ComputeCluster{object}, nil
	case *v1beta1.ClusterJob:
		ref, label = object.Spec.ClusterRef, v1beta1.LabelJob
	case *v1beta1.ClusterService:
		ref, label = object.Spec.ClusterRef, v1beta1.LabelService
	default:
		return nil, nil // a schedule's jobs use clusters
	}
	if ref == nil {
		return o.labelledClusters(ctx, object.GetNamespace(), client.MatchingLabels{label: object.GetName()})
	}
	cluster := &v1beta1.ComputeCluster{}
	err := o.Get(ctx, client.ObjectKey{Namespace: object.GetNamespace(), Name: ref.Name}, cluster)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, Because(fmt.Errorf("read cluster %s: %w", ref.Name, err))
	}
	return []*v1beta1.ComputeCluster{cluster}, nil
}

func (o *Objects) labelledClusters(
	ctx context.Context, namespace string, labels client.MatchingLabels,
) ([]*v1beta1.ComputeCluster, error) {
	list := &v1beta1.ComputeClusterList{}
	if err := o.List(ctx, list, client.InNamespace(namespace), labels); err != nil {
		return nil, Because(fmt.Errorf("list clusters: %w", err))
	}
	var all []*v1beta1.ComputeCluster
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all, nil
}
