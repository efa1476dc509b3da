// Package heads finds the running head of a cluster, and speaks to its dashboard.
//
// In: the namespace, name and UID of a cluster; the cluster and its pods from a cache; the head's pod and two Secrets as
// they are now. Out: a conversation with the head that the cluster owns, Ray's own jobs on it, or an *Unavailable that
// says why there is none and which call helps.
//
// It must never take a pod that the cluster does not own, an address from anywhere but such a pod, or a token or an
// authority that is not the cluster's. It never lists Secrets, asks no port but the dashboard's, and puts no token into a
// text.
package heads

import (
	"context"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// Clusters is where clusters are found: a cache.
type Clusters interface {
	FindCluster(namespace, name string) (*v1beta1.ComputeCluster, bool)
}

// Reader reads what a head is found by. Its objects are not changed.
type Reader interface {
	// HeadPods returns the pods in a namespace that have the label of a head and the owner, from a cache.
	HeadPods(namespace string, owner types.UID) []*corev1.Pod
	// Pod and Secret read an object as it is now. Errors are those of the API server.
	Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
}

// Settings are what Heads are made of.
type Settings struct {
	Clusters Clusters
	Reader   Reader
	// Options say how to speak to each head; Token and Trust are set here.
	Options headclient.Options
	// Random is where names of submissions come from.
	Random io.Reader
}

// Heads are the heads of all clusters. They may be used by many goroutines.
type Heads struct{ settings Settings }

// New returns the heads of the clusters in the settings.
func New(settings Settings) *Heads {
	if settings.Options.Connect == nil {
		settings.Options.Connect = headclient.ConnectAnywhere
	}
	return &Heads{settings}
}

// Reference names a cluster. Without a UID it is any cluster of that name.
type Reference struct {
	Namespace, Name string
	UID             types.UID
}

// Head is a pod that is the head of a cluster. Two that are equal are the same pod.
type Head struct {
	// Cluster has the cluster's UID.
	Cluster Reference
	Pod     string
	UID     types.UID
	Epoch   int64
	// HasStore: the memory of the cluster outlives the head.
	HasStore bool
}

// FindHead finds the head of a cluster by what the cache knows, and asks nobody. Why there is none is an *Unavailable.
func (h *Heads) FindHead(of Reference) (Head, error) {
	cluster, err := h.cluster(of)
	if err != nil {
		return Head{}, err
	}
	pods := h.settings.Reader.HeadPods(cluster.Namespace, cluster.UID)
	var newest *corev1.Pod
	for _, pod := range pods {
		if isHead(cluster, pod) && !isOver(pod) && (newest == nil || epoch(pod) > epoch(newest)) {
			newest = pod
		}
	}
	if newest == nil {
		return Head{}, absent(cluster)
	}
	return Head{
		Cluster: Reference{cluster.Namespace, cluster.Name, cluster.UID},
		Pod:     newest.Name, UID: newest.UID, Epoch: epoch(newest), HasStore: cluster.Spec.ControlStore != nil,
	}, nil
}

// cluster finds a cluster that this operator manages.
func (h *Heads) cluster(of Reference) (*v1beta1.ComputeCluster, error) {
	cluster, found := h.settings.Clusters.FindCluster(of.Namespace, of.Name)
	switch {
	case !found:
		return nil, missing(of)
	case of.UID != "" && cluster.UID != of.UID:
		return nil, replaced(of)
	case cluster.Spec.ManagedBy != "" && cluster.Spec.ManagedBy != v1beta1.ManagedByOperator:
		return nil, foreign(cluster)
	default:
		return cluster, nil
	}
}
