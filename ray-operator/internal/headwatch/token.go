package headwatch

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// TokenFrom reads a cluster's token from its Secret each time that a head is about to be
// asked.
func TokenFrom(live client.Reader, name types.NamespacedName) headclient.Token {
	return func(ctx context.Context) (string, error) {
		var secret corev1.Secret
		if err := live.Get(ctx, name, &secret); err != nil {
			return "", fmt.Errorf("read Secret %s: %w", name, err)
		}
		return string(secret.Data[v1alpha1.TokenKey]), nil
	}
}
