package nodes

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// TokenFrom reads a cluster's token from its Secret each time that it is called;
// those who ask heads remember it.
func TokenFrom(live client.Reader, name types.NamespacedName) headclient.Token {
	return func(ctx context.Context) (string, error) {
		secret, err := readSecret(ctx, live, name)
		return string(secret.Data[v1beta1.TokenKey]), err
	}
}

// TokenOwnedBy is TokenFrom of a Secret that must have an owner. It gives no token of any other.
func TokenOwnedBy(live client.Reader, name types.NamespacedName, owner types.UID) headclient.Token {
	return func(ctx context.Context) (string, error) {
		secret, err := readSecret(ctx, live, name)
		if err == nil && !naming.IsOwned(&secret, owner) {
			return "", fmt.Errorf("read the token in Secret %s: its owner is another", name)
		}
		return string(secret.Data[v1beta1.TokenKey]), err
	}
}

func readSecret(ctx context.Context, live client.Reader, name types.NamespacedName) (secret corev1.Secret, err error) {
	if err = live.Get(ctx, name, &secret); err != nil {
		err = fmt.Errorf("read Secret %s: %w", name, err)
	}
	return secret, err
}
