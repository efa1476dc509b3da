package cluster

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster/store"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pki"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// isStoreEncrypted reports whether a managed Redis speaks TLS. One that was made while the operator had no image for pods
// goes on in clear text until its cluster is suspended, as does a head that was made with it.
func isStoreEncrypted(b basis) bool {
	set, isThere := b.seen.storeSet(), b.seen.storeSet() != nil
	isAsleep := isThere && set.Spec.Replicas != nil && *set.Spec.Replicas == 0
	switch {
	case !store.IsManaged(b.cluster):
		return false
	case naming.EncryptionRequired(b.cluster):
		return true
	case isThere && (!isAsleep || desired.EncryptsStore(set)):
		return desired.EncryptsStore(set)
	case b.head != nil: // somebody has deleted the set
		return pod.EncryptsStore(b.head.Pod)
	default:
		return b.site.Image.Image != ""
	}
}

// needsAuthority reports whether a plan depends on the Secret of the certificate authority: where pods are made that
// have it, and as long as something waits, which may be for it.
func needsAuthority(cluster *v1beta1.ComputeCluster, seen Seen, plan Plan) bool {
	encrypts := naming.EncryptionRequired(cluster)
	switch {
	case !encrypts && !plan.EncryptsStore, plan.Stalled != nil:
		return false
	case len(seen.Pods) == 0, plan.Held != nil, plan.EncryptsStore && !seen.isRedisRunning():
		return true
	default:
		return plan.Head != nil || encrypts && plan.Makes()
	}
}

// seeAuthority looks at the Secret of the certificate authority, past the cache, as seeToken does.
func (o observer) seeAuthority(ctx context.Context, cluster *v1beta1.ComputeCluster, seen *Seen) (err error) {
	seen.Authority, err = readAuthority(ctx, o.live, cluster, &corev1.Secret{})
	return err
}

// readAuthority reads the Secret of the certificate authority, past the cache.
func readAuthority(ctx context.Context, live client.Reader, cluster *v1beta1.ComputeCluster, into *corev1.Secret) (reconcile.Presence, error) {
	name := types.NamespacedName{Namespace: cluster.Namespace, Name: naming.AuthoritySecret(cluster.Name)}
	found, err := presence(live.Get(ctx, name, into), into, cluster)
	if err != nil {
		err = fmt.Errorf("read Secret %s: %w", name, err)
	}
	return found, err
}

// planAuthority plans the Secret of the certificate authority, which is there before the first pod. Pods that live
// have certificates of the one that is gone, and could not speak with those of another: none is made then.
func planAuthority(b basis) secretPlan {
	switch {
	case !naming.EncryptionRequired(b.cluster) && !isStoreEncrypted(b), b.seen.Authority == reconcile.Ours:
		return secretPlan{}
	case b.head != nil && hasCertificate(*b.head), b.hasStore() && slices.ContainsFunc(b.seen.Pods, hasCertificate), b.seen.isRedisRunning():
		missing := reason.CAMissing.Of(naming.AuthoritySecret(b.cluster.Name))
		return secretPlan{missing: &missing}
	default:
		return secretPlan{isMade: true}
	}
}

// hasCertificate reports whether a pod has a certificate of its cluster's authority, or trusts this for its Redis.
func hasCertificate(of Pod) bool {
	return pod.IsEncrypted(of.Pod) || of.isHead() && pod.EncryptsStore(of.Pod)
}

// isRedisRunning reports whether a managed Redis answers, with a certificate of the authority that there was.
func (s Seen) isRedisRunning() bool {
	set := s.storeSet()
	return set != nil && set.Status.ReadyReplicas > 0 && desired.EncryptsStore(set)
}

// makeAuthority makes a certificate authority and its Secret; one that is there stays.
func (a applier) makeAuthority(ctx context.Context, cluster *v1beta1.ComputeCluster) error {
	made, err := pki.New(cluster.Name, a.clock.Now())
	if err != nil {
		return fmt.Errorf("make the certificate authority of %s: %w", cluster.Name, err)
	}
	certificate, key, err := made.Encode()
	if err != nil {
		return fmt.Errorf("write the certificate authority of %s: %w", cluster.Name, err)
	}
	_, err = a.writer.Create(ctx, desired.AuthoritySecret(cluster, certificate, key))
	return err
}

// trustStore returns the certificate by which a managed Redis with TLS is known, and the name that it must be for.
func (r *Reconciler) trustStore(ctx context.Context, cluster *v1beta1.ComputeCluster) (certificate []byte, host string, err error) {
	var secret corev1.Secret
	found, err := readAuthority(ctx, r.Live, cluster, &secret)
	switch {
	case err != nil:
		return nil, "", err
	case found != reconcile.Ours:
		return nil, "", &fault.Terminal{Finding: reason.CAMissing.Of(naming.AuthoritySecret(cluster.Name))}
	}
	certificate = secret.Data[v1beta1.AuthorityCertificateKey]
	if _, err := pki.Read(certificate, secret.Data[v1beta1.AuthorityKeyKey]); err != nil { // without one, all public authorities would count
		return nil, "", fmt.Errorf("read Secret %s: %w", naming.AuthoritySecret(cluster.Name), err)
	}
	return certificate, pod.StoreHost(cluster), nil
}
