package sweep

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/controlstore"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Server reads how the Redis is reached, each Secret once, from the cluster's namespace.
// Errors: Terminal (StoreSecretMissing) where a Secret or a key of it is not there, else
// the API server's.
func (n Note) Server(ctx context.Context, secrets client.Reader) (controlstore.Server, error) {
	server := controlstore.Server{Address: n.Address, Given: true, Namespace: n.Cluster.Namespace, ServerName: n.ServerName}
	read := map[string]*corev1.Secret{}
	values := map[string][]byte{}
	for _, ref := range n.references() {
		if ref.to.Name == "" {
			continue
		}
		secret := read[ref.to.Name]
		if secret == nil {
			secret = &corev1.Secret{}
			err := secrets.Get(ctx, client.ObjectKey{Namespace: n.Cluster.Namespace, Name: ref.to.Name}, secret)
			if apierrors.IsNotFound(err) {
				return controlstore.Server{}, missing("%s names the Secret %s, which is not there", ref.field, ref.to.Name)
			}
			if err != nil {
				return controlstore.Server{}, fmt.Errorf("read Secret %s/%s: %w", n.Cluster.Namespace, ref.to.Name, err)
			}
			read[ref.to.Name] = secret
		}
		if len(secret.Data[ref.to.Key]) == 0 {
			return controlstore.Server{}, missing("%s names the key %s of the Secret %s, which is not there or empty", ref.field, ref.to.Key, ref.to.Name)
		}
		values[ref.field] = secret.Data[ref.to.Key]
	}
	server.Username, server.Password = string(values["usernameSecret"]), string(values["passwordSecret"])
	server.CA, server.Certificate, server.Key = values["caSecret"], values["certificateSecret"], values["keySecret"]
	return server, nil
}

func missing(format string, names ...any) error {
	return &fault.Terminal{Finding: reason.StoreSecretMissing.Of(fmt.Sprintf(format, names...))}
}
