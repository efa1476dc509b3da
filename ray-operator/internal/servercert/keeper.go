package servercert

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pki"
)

const (
	// every is how often the Secret is looked at: so one that an administrator empties or makes again is soon filled.
	every = time.Minute
	// within is how long the API server may take for a look.
	within = 10 * time.Second
)

// Keeper keeps the certificate in a Secret. It is a runnable of controller-runtime's manager, and because it writes, of the
// leader's alone.
type Keeper struct {
	// Live reads past the cache, which holds no Secrets.
	Live   client.Reader
	Writer *kube.Writer
	Clock  clock.WithTicker
	// Secret names the Secret and the ConfigMap, and Hosts are those of the server.
	Secret types.NamespacedName
	Hosts  Hosts
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (k *Keeper) NeedLeaderElection() bool { return true }

// Start keeps the certificate until the context ends. What fails is tried again.
func (k *Keeper) Start(ctx context.Context) error {
	ticker := k.Clock.NewTicker(every)
	defer ticker.Stop()
	for {
		if err := k.keep(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Cannot maintain the server's certificate", "secret", k.Secret)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// keep looks at the Secret, and writes what it must hold.
func (k *Keeper) keep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	seen := &corev1.Secret{}
	if err := k.Live.Get(ctx, k.Secret, seen); err != nil {
		return fmt.Errorf("read Secret %s: %w", k.Secret, err)
	}
	data, why, err := Renew(seen.Data, k.Hosts, k.Clock.Now())
	if err != nil {
		return fmt.Errorf("renew the certificate in Secret %s: %w", k.Secret, err)
	}
	if data == nil {
		return k.publish(ctx, seen.Data[pki.AuthorityCertificateFile])
	}
	log.FromContext(ctx).Info("Renewing the server's certificate", "secret", k.Secret, "because", why)
	wanted := seen.DeepCopy()
	wanted.Data = data
	if err := k.Writer.Edit(ctx, seen, wanted); err != nil {
		return err
	}
	return k.publish(ctx, data[pki.AuthorityCertificateFile])
}

// publish keeps the authority's certificate in the ConfigMap of the Secret's name: clients and a Gateway need it, and nobody
// else needs the key beside it.
func (k *Keeper) publish(ctx context.Context, certificate []byte) error {
	seen := &corev1.ConfigMap{}
	if err := k.Live.Get(ctx, k.Secret, seen); err != nil {
		return fmt.Errorf("read ConfigMap %s: %w", k.Secret, err)
	}
	if seen.Data[pki.AuthorityCertificateFile] == string(certificate) {
		return nil
	}
	wanted := seen.DeepCopy()
	wanted.Data = map[string]string{pki.AuthorityCertificateFile: string(certificate)}
	return k.Writer.Edit(ctx, seen, wanted)
}
