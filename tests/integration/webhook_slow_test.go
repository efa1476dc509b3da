package integration

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/tests/live"
)

const (
	// slowClusters are more than the operator has workers, slowCalls as many as it has for one namespace.
	slowClusters, slowCalls = 20, 10
	// slowHangs is how long the API server waits for the webhook. It never waits longer for a handshake.
	slowHangs = 10 * time.Second
	// slowShare is how much longer honest clusters may wait beside a slow webhook.
	slowShare = 1.2
)

// TestSlowWebhook_SlowsNobodyElse: a webhook of one namespace that never answers holds up the clusters there, which are
// more than the operator has workers, and no cluster of another. It times requests.
func TestSlowWebhook_SlowsNobodyElse(t *testing.T) {
	h, slow := newHonest(t, honestClusters), newNamespace(t)
	watched := "--watch-namespaces=" + strings.Join(append(h.namespaces(), slow), ",")
	startOperator(t, "--namespace="+live.ReleaseNamespace, "--autoscaler-image=none", watched)
	h.ready(t)
	calm := h.edit(t, hostileSeconds*time.Second)
	asked := hangingWebhook(t, slow)
	create(t, slow, slowClusters, 1)
	eventually(t, "the webhook to hold up passes", func(context.Context) error {
		if n := asked.Load(); n < slowCalls {
			return fmt.Errorf("%d calls", n)
		}
		return nil
	})
	beside := h.edit(t, hostileSeconds*time.Second)
	t.Logf("calm %+v, beside a slow webhook %+v, which was called %d times", calm, beside, asked.Load())
	var pods corev1.PodList
	must(t, shared.List(t.Context(), &pods, client.InNamespace(slow)))
	if len(pods.Items) > 0 {
		t.Errorf("the webhook did not hang: %d pods were made there", len(pods.Items))
	}
	switch {
	case *judging && beside.P99 > slowShare*calm.P99:
		t.Errorf("honest clusters waited %.0f ms (p99), and %.0f ms when all was calm", beside.P99, calm.P99)
	case beside.P99 > calm.P99+float64((slowHangs/2).Milliseconds()):
		t.Errorf("honest clusters waited %.0f ms (p99) beside a webhook that hangs for %s", beside.P99, slowHangs)
	}
}

// here is the address of this machine that the API server reaches.
func here(t *testing.T) string {
	t.Helper()
	api, err := url.Parse(shared.Config.Host)
	must(t, err)
	near, err := net.Dial("udp", api.Host)
	must(t, err)
	defer func() { _ = near.Close() }() // nothing was sent
	host, _, err := net.SplitHostPort(near.LocalAddr().String())
	must(t, err)
	return host
}

// hangingWebhook has the API server ask about each pod of a namespace a server that takes connections and says nothing.
// It counts the connections.
func hangingWebhook(t *testing.T, namespace string) *atomic.Int64 {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(here(t), "0"))
	must(t, err)
	var asked atomic.Int64
	go func() {
		var taken []net.Conn
		for {
			one, err := listener.Accept()
			if err != nil {
				break
			}
			asked.Add(1)
			taken = append(taken, one)
		}
		for _, one := range taken {
			_ = one.Close()
		}
	}()
	none, refuse, seconds := admissionv1.SideEffectClassNone, admissionv1.Fail, int32(slowHangs.Seconds())
	address := "https://" + listener.Addr().String()
	hook := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "pods.example.com", NamespaceSelector: only(namespace), Rules: []admissionv1.RuleWithOperations{creationOfPods},
			SideEffects: &none, FailurePolicy: &refuse, TimeoutSeconds: &seconds, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionv1.WebhookClientConfig{URL: &address},
		}},
	}
	must(t, shared.Create(t.Context(), hook))
	t.Cleanup(func() {
		_ = listener.Close() // the end of the test
		if err := shared.Delete(context.WithoutCancel(t.Context()), hook); err != nil {
			t.Error(err)
		}
	})
	return &asked
}
