package store

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/controlstore"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/sweep"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Servers finds out how the Redis of clusters are reached.
type Servers struct {
	Live client.Reader
	// Credentials remembers how given servers were reached.
	Credentials *sweep.Credentials
	// Trust returns the certificate by which a managed Redis with TLS is known, and the name that it must be for.
	Trust func(ctx context.Context, cluster *v1beta1.ComputeCluster) (certificate []byte, host string, err error)
}

// Of returns what reads how a cluster's Redis is reached, with TLS where it is a managed one that encrypts.
func (s Servers) Of(cluster *v1beta1.ComputeCluster, encrypts bool) func(context.Context) (controlstore.Server, error) {
	if given := cluster.Spec.ControlStore.Redis; given != nil {
		note := sweep.Of(cluster, given)
		return func(ctx context.Context) (controlstore.Server, error) {
			server, err := note.Server(ctx, s.Live)
			if err == nil {
				s.Credentials.Remember(note, server)
			}
			return server, err
		}
	}
	secret := types.NamespacedName{Namespace: cluster.Namespace, Name: naming.Store(cluster.Name)}
	owner := cluster.UID
	return func(ctx context.Context) (controlstore.Server, error) {
		var kept corev1.Secret
		if err := s.Live.Get(ctx, secret, &kept); client.IgnoreNotFound(err) != nil {
			return controlstore.Server{}, fmt.Errorf("read Secret %s: %w", secret, err)
		}
		if !naming.IsOwned(&kept, owner) {
			return controlstore.Server{}, &fault.Terminal{Finding: reason.StoreSecretMissing.In("managed").Of("Secret "+secret.Name+" is not there", secret.Name)}
		}
		server := controlstore.Server{
			Address: pod.ManagedStoreAddress(cluster, encrypts), Username: v1beta1.StoreOperatorUser, Password: string(kept.Data[v1beta1.StoreOperatorKey]),
			HeadPassword: string(kept.Data[v1beta1.StoreHeadKey]),
		}
		if !encrypts {
			return server, nil
		}
		var err error
		server.CA, server.ServerName, err = s.Trust(ctx, cluster)
		return server, err
	}
}
