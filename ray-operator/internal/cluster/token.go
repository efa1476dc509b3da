package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// Token is what is known of the Secret with the cluster's token.
type Token struct {
	// Presence is Ours also for a Secret of the user's that holds a token.
	Presence Presence
	// Hash is a short hash of the token, empty where it was not read. It tells a token
	// from another, and is far too short to tell which one it is.
	Hash string
	// Lacking says what is wrong with a Secret of the user's.
	Lacking string
}

// ownSecret is the name of the user's own Secret, empty where the operator makes one.
func ownSecret(cluster *v1alpha1.ComputeCluster) string {
	if name := pod.TokenSecret(cluster); name != naming.TokenSecret(cluster.Name) {
		return name
	}
	return ""
}

// tokenLook is how often a Secret of the user's is looked at for a change: the operator
// may not watch Secrets.
const tokenLook = time.Minute

// seeToken looks at the token's Secret. The operator has no right to list Secrets, so
// this is a live read; it is for where a pod is to be made, or where the Secret is the
// user's, who may change it.
func (r *Reconciler) seeToken(ctx context.Context, cluster *v1alpha1.ComputeCluster, seen *Seen) error {
	if !pod.TokenRequired(cluster) {
		return nil
	}
	var secret corev1.Secret
	key := types.NamespacedName{Namespace: cluster.Namespace, Name: pod.TokenSecret(cluster)}
	err := r.Live.Get(ctx, key, &secret)
	if ownSecret(cluster) != "" {
		seen.Token, err = usersToken(err, &secret)
	} else {
		seen.Token.Presence, err = presence(err, &secret, cluster)
	}
	if err != nil {
		return fmt.Errorf("read Secret %s: %w", key, err)
	}
	if seen.Token.Presence == Ours {
		seen.Token.Hash = naming.TokenHash(string(secret.Data[v1alpha1.TokenKey]))
	}
	return nil
}

// usersToken judges a Secret that the user made.
func usersToken(err error, secret *corev1.Secret) (Token, error) {
	switch {
	case apierrors.IsNotFound(err):
		return Token{Lacking: "is not there"}, nil
	case err != nil:
		return Token{}, err
	case len(secret.Data[v1alpha1.TokenKey]) == 0:
		return Token{Lacking: "has no key " + v1alpha1.TokenKey}, nil
	default:
		return Token{Presence: Ours}, nil
	}
}
