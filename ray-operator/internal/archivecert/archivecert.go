// Package archivecert keeps the certificates by which the archive of history is known, and by which it knows who calls.
//
// In: three Secrets that the chart makes without content, the hosts of the archivers, and the time. Out: in the first an authority
// for ten years, in the second the certificate of archivers, in the third that of the server for portals; for the operator itself a
// certificate that no Secret has.
//
// It must never make another key for an authority that can be used: its certificate stands in the specs of pods, which live for
// months. An authority is renewed with its key two years before its end, so that what it issues is trusted by pods with either
// certificate. It puts no key into an error or a log.
package archivecert

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pki"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/servercert"
)

// The names of clients, by which archivers tell what they may do.
const (
	clientServer   = "heliostat-server"
	clientOperator = "heliostat-operator"
)

const (
	authorityName = "heliostat history"
	// every is how often the Secrets are looked at, and retry how often until they were good once.
	every = time.Minute
	retry = time.Second
	// within is how long the API server may take for a look.
	within = 10 * time.Second
	// renewBefore is how long before its end an authority gets another certificate. No pod lives for two years.
	renewBefore = 2 * 365 * 24 * time.Hour
)

// Secrets are the names of the Secrets.
type Secrets struct{ Authority, Archiver, Server string }

// SecretsOf returns the names of the Secrets whose names begin alike.
func SecretsOf(prefix string) Secrets {
	return Secrets{prefix + "-authority", prefix + "-archiver", prefix + "-server"}
}

// Keeper keeps the certificates. It is a runnable of controller-runtime's manager, and because it writes, of the leader's alone.
type Keeper struct {
	// Live reads past the cache, which holds no Secrets.
	Live      client.Reader
	Writer    *kube.Writer
	Clock     clock.WithTicker
	Namespace string
	Secrets   Secrets
	// Hosts are those of the archivers.
	Hosts servercert.Hosts

	mu        sync.Mutex
	authority *pki.Authority
	text      string
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (k *Keeper) NeedLeaderElection() bool { return true }

// Start keeps the certificates until the context ends. What fails is tried again.
func (k *Keeper) Start(ctx context.Context) error {
	for {
		if err := k.keep(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Cannot keep the certificates of history", "secrets", k.Secrets)
		}
		wait := every
		if k.Authority() == "" {
			wait = retry
		}
		timer := k.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
	}
}

// Authority returns the certificate of the authority, as PEM, and nothing before it is known.
func (k *Keeper) Authority() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text
}

// ClientConfig returns what the operator needs to call an archiver now.
func (k *Keeper) ClientConfig() (*tls.Config, error) {
	k.mu.Lock()
	authority := k.authority
	k.mu.Unlock()
	if authority == nil {
		return nil, errors.New("make a certificate for the archive: its authority is not known yet")
	}
	return authority.ClientConfigAs(clientOperator, k.Clock.Now())
}

// keep looks at the Secrets, and writes what they must hold. The authority comes first: it issues the others.
func (k *Keeper) keep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	authority, err := k.keepAuthority(ctx)
	if err != nil {
		return err
	}
	text, _, err := authority.Encode()
	if err != nil {
		return fmt.Errorf("encode the authority of history: %w", err)
	}
	for name, holder := range map[string]servercert.Holder{
		k.Secrets.Archiver: k.Hosts, k.Secrets.Server: servercert.Client(clientServer),
	} {
		if err := k.keepIssued(ctx, name, authority, text, holder); err != nil {
			return err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.authority, k.text = authority, string(text)
	return nil
}

// keepAuthority returns the authority, which its Secret holds afterwards.
func (k *Keeper) keepAuthority(ctx context.Context) (*pki.Authority, error) {
	var authority *pki.Authority
	err := k.edit(ctx, k.Secrets.Authority, func(held map[string][]byte) (made map[string][]byte, why error, err error) {
		now := k.Clock.Now()
		authority, why = servercert.ReadAuthority(held, now)
		switch {
		case authority == nil:
			authority, err = pki.New(authorityName, now)
		case why != nil || authority.Until().Before(now.Add(renewBefore)):
			why = fmt.Errorf("the certificate of the authority ends at %s", authority.Until().Format(time.RFC3339))
			authority, err = authority.Renewed(now)
		default:
			return nil, nil, nil
		}
		if err != nil {
			return nil, nil, err
		}
		made = map[string][]byte{}
		made[pki.AuthorityCertificateFile], made[pki.AuthorityKeyFile], err = authority.Encode()
		return made, why, err
	})
	return authority, err
}

// keepIssued has a Secret hold a certificate for its holder, and the authority's.
func (k *Keeper) keepIssued(ctx context.Context, name string, authority *pki.Authority, text []byte, holder servercert.Holder) error {
	return k.edit(ctx, name, func(held map[string][]byte) (map[string][]byte, error, error) {
		why := servercert.Check(held, authority, holder, k.Clock.Now())
		made := map[string][]byte{pki.AuthorityCertificateFile: text}
		if why != nil {
			if err := servercert.Issue(made, authority, holder, k.Clock.Now()); err != nil {
				return nil, nil, err
			}
			return made, why, nil
		}
		if bytes.Equal(held[pki.AuthorityCertificateFile], text) {
			return nil, nil, nil
		}
		return made, errors.New("it has another certificate of the authority"), nil
	})
}

// edit changes a Secret to what is made of its content, and nothing where that is nothing. What else is in it stays.
func (k *Keeper) edit(ctx context.Context, name string, renew func(held map[string][]byte) (made map[string][]byte, why error, err error)) error {
	key, seen := types.NamespacedName{Namespace: k.Namespace, Name: name}, &corev1.Secret{}
	if err := k.Live.Get(ctx, key, seen); err != nil {
		return fmt.Errorf("read Secret %s: %w", key, err)
	}
	made, why, err := renew(seen.Data)
	if err != nil {
		return fmt.Errorf("renew what Secret %s has: %w", key, err)
	}
	if made == nil {
		return nil
	}
	log.FromContext(ctx).Info("Renewing a certificate of history", "secret", key, "because", why.Error())
	wanted := seen.DeepCopy()
	wanted.Data = map[string][]byte{}
	maps.Copy(wanted.Data, seen.Data)
	maps.Copy(wanted.Data, made)
	return k.Writer.Edit(ctx, seen, wanted)
}
