package heads

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Conversation is one with the dashboard of a head, over one connection and with one token. The caller closes it.
type Conversation struct {
	*headclient.Jobs
	*Way
}

// Converse begins a conversation with a head, on the way that FindWay finds. The caller asks something at once, which
// connects.
func (h *Heads) Converse(ctx context.Context, head Head) (*Conversation, error) {
	way, err := h.FindWay(ctx, head)
	if err != nil {
		return nil, err
	}
	options := h.settings.Options
	options.Token, options.Trust = nil, way.trust
	if way.token != "" {
		options.Token = func(context.Context) (string, error) { return way.token, nil }
	}
	jobs, err := headclient.DialJobs(way.address, options)
	if err != nil {
		return nil, err
	}
	return &Conversation{Jobs: jobs, Way: way}, nil
}

// Way is how the dashboard of a head is reached. It may be used by many goroutines.
type Way struct {
	cluster *v1beta1.ComputeCluster
	pod     *corev1.Pod
	address string
	token   string
	trust   headclient.Trust
	connect headclient.Connect
}

// FindWay finds the way to a head. It reads the head's pod first, as it is now: an address may be another pod's by now.
//
// Why there is none is an *Unavailable, or that the API server did not answer.
func (h *Heads) FindWay(ctx context.Context, head Head) (*Way, error) {
	cluster, err := h.cluster(head.Cluster)
	if err != nil {
		return nil, err
	}
	pod, err := h.settings.Reader.Pod(ctx, head.Cluster.Namespace, head.Pod)
	if apierrors.IsNotFound(err) {
		return nil, gone(head)
	}
	if err != nil {
		return nil, fmt.Errorf("read head pod %s/%s: %w", head.Cluster.Namespace, head.Pod, err)
	}
	if pod.UID != head.UID || !isHead(cluster, pod) || isOver(pod) {
		return nil, gone(head)
	}
	at, known := address(pod)
	if !known || !runsRay(pod) {
		return nil, starting(cluster, pod)
	}
	way := &Way{cluster: cluster, pod: pod, address: at, connect: h.settings.Options.Connect}
	if way.token, err = h.token(ctx, cluster, pod); err != nil {
		return nil, err
	}
	if isEncrypted(pod) {
		if way.trust, err = h.authority(ctx, cluster); err != nil {
			return nil, err
		}
	}
	return way, nil
}

// Token returns the token of the cluster, which outputs of jobs may hold; it is empty where the cluster has none.
func (w *Way) Token() string { return w.token }

// Address returns the host:port of the dashboard.
func (w *Way) Address() string { return w.address }

// Connect makes a connection to the dashboard, encrypted where the cluster is.
func (w *Way) Connect(ctx context.Context) (net.Conn, error) {
	return w.connect.Over(w.trust)(ctx, w.address)
}

// Refused returns why a head does not let the server in, which has refused the token.
func (w *Way) Refused() *Unavailable { return unauthorized(w.cluster.Name, "it refused the token") }

// Starting returns why a head may not answer yet, and nil where its pod is ready.
func (w *Way) Starting() *Unavailable {
	if IsReady(w.pod) {
		return nil
	}
	return starting(w.cluster, w.pod)
}

// Explain returns a failure to get an answer as an *Unavailable, and an answer of Ray's that says no as it is.
func (w *Way) Explain(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	var failure *headclient.Error
	if !errors.As(err, &failure) {
		return err
	}
	switch failure.Kind {
	case headclient.Unauthenticated:
		return unauthorized(w.cluster.Name, headclient.CauseOf(err))
	case headclient.Unavailable, headclient.Timeout, headclient.Protocol:
		if !IsReady(w.pod) {
			return starting(w.cluster, w.pod)
		}
		return silent(w.cluster.Name, headclient.CauseOf(err))
	default:
		return err
	}
}

// token reads the token of a cluster; it is empty where the cluster has none. One that is not what the pod was started
// with is not given: the head would refuse it, and who reads that would not learn why.
func (h *Heads) token(ctx context.Context, cluster *v1beta1.ComputeCluster, pod *corev1.Pod) (string, error) {
	wanted := cluster.Spec.Authentication
	if wanted != nil && wanted.Mode == v1beta1.AuthenticationDisabled {
		return "", nil
	}
	name, isOwn := naming.TokenSecret(cluster.Name), true
	if wanted != nil && wanted.SecretName != "" {
		name, isOwn = wanted.SecretName, false
	}
	secret, err := h.settings.Reader.Secret(ctx, cluster.Namespace, name)
	switch {
	case apierrors.IsNotFound(err) && isOwn, err == nil && isOwn && !naming.IsOwned(secret, cluster.UID):
		return "", of(reason.TokenMissing.Of(name))
	case apierrors.IsNotFound(err):
		return "", of(reason.TokenSecretInvalid.Of(name, "is not there"))
	case err != nil:
		return "", fmt.Errorf("read Secret %s/%s: %w", cluster.Namespace, name, err)
	}
	token := string(secret.Data[v1beta1.TokenKey])
	if token == "" {
		return "", of(reason.TokenSecretInvalid.Of(name, "has no key "+v1beta1.TokenKey))
	}
	if started := pod.Annotations[v1beta1.AnnotationToken]; started != "" && started != naming.TokenHash(token) {
		return "", &Unavailable{
			Code:    reason.TokenChanged.Code,
			Message: fmt.Sprintf("the token in Secret %s is not the one that head pod %s was started with", name, pod.Name),
			Remedy:  reason.TokenChanged.Remedy,
		}
	}
	return token, nil
}

// trust is what the one connection of a conversation is encrypted with.
type trust struct{ config *tls.Config }

// Config returns what was read when the conversation began.
func (t trust) Config(context.Context) (*tls.Config, error) { return t.config, nil }

// authority reads the certificate authority of a cluster, which its head's certificate must be of. The server shows no
// certificate of its own: the token proves who asks.
func (h *Heads) authority(ctx context.Context, cluster *v1beta1.ComputeCluster) (headclient.Trust, error) {
	name := naming.AuthoritySecret(cluster.Name)
	secret, err := h.settings.Reader.Secret(ctx, cluster.Namespace, name)
	switch {
	case apierrors.IsNotFound(err), err == nil && !naming.IsOwned(secret, cluster.UID):
		return nil, of(reason.CAMissing.Of(name))
	case err != nil:
		return nil, fmt.Errorf("read Secret %s/%s: %w", cluster.Namespace, name, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(secret.Data[v1beta1.AuthorityCertificateKey]) {
		return nil, of(reason.CAMissing.Of(name))
	}
	return trust{&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}}, nil
}
