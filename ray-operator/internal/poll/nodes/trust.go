package nodes

import (
	"context"
	"crypto/tls"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pki"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// authority is the certificate authority of a head's cluster: in the Secret of that name whose owner is the head's.
type authority struct {
	live  client.Reader
	name  types.NamespacedName
	owner types.UID
}

// TrustOf returns what connections to a head are encrypted with, nil for one without encryption.
func TrustOf(live client.Reader, head *corev1.Pod) headclient.Trust {
	owner := metav1.GetControllerOf(head)
	if owner == nil || !pod.IsEncrypted(head) {
		return nil
	}
	return authority{live: live, owner: owner.UID, name: types.NamespacedName{
		Namespace: head.Namespace, Name: naming.AuthoritySecret(owner.Name),
	}}
}

// Config reads the Secret for each connection: a cluster has another authority after it was suspended and that was deleted.
func (a authority) Config(ctx context.Context) (*tls.Config, error) {
	secret, err := readSecret(ctx, a.live, a.name)
	if err != nil {
		return nil, err
	}
	if !naming.IsOwned(&secret, a.owner) {
		return nil, fmt.Errorf("read the certificate authority in Secret %s: its owner is another", a.name)
	}
	read, err := pki.Read(secret.Data[v1beta1.AuthorityCertificateKey], secret.Data[v1beta1.AuthorityKeyKey])
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority in Secret %s: %w", a.name, err)
	}
	config, err := read.ClientConfig(clock.RealClock{}.Now())
	if err != nil {
		return nil, fmt.Errorf("make a certificate by Secret %s: %w", a.name, err)
	}
	return config, nil
}
