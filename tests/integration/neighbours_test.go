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
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/bench/jobs"
	"github.com/heliostat-dev/heliostat/tests/live"
)

const (
	// slowClusters are more than the operator has workers, slowCalls as many as it has for one namespace.
	slowClusters, slowCalls = 20, 10
	// slowHangs is how long the API server waits for the webhook. It never waits longer for a handshake.
	slowHangs = 10 * time.Second
	// grownWorkers are added to one cluster, refusedWorkers to another one by the quota of its namespace, unless variables
	// give others.
	grownWorkers, refusedWorkers = 50, 25
)

// TestNeighbours_SlowNobodyElse: honest clusters wait no longer beside a webhook of one namespace that never answers,
// a cluster that grows by many workers, or a quota that refuses many. It times requests.
func TestNeighbours_SlowNobodyElse(t *testing.T) {
	figures := &live.Neighbours{
		Honest: number(t, "HELIOSTAT_HONEST", honestClusters), Beside: map[string]live.Reactions{},
		Grown: number(t, "HELIOSTAT_GROWN", grownWorkers), Refused: number(t, "HELIOSTAT_REFUSED", refusedWorkers),
	}
	h, slow, grown, refused := newHonest(t, figures.Honest), newNamespace(t), newNamespace(t), newNamespaceOf(t, denying)
	watched := "--watch-namespaces=" + strings.Join(append(h.namespaces(), slow, grown, refused), ",")
	startOperator(t, "--namespace="+live.ReleaseNamespace, "--autoscaler-image=none", watched)
	h.ready(t)
	while := time.Duration(number(t, "HELIOSTAT_NEIGHBOUR_SECONDS", hostileSeconds)) * time.Second
	figures.Calm = h.edit(t, while)

	growing := create(t, grown, 1, 0)[0]
	ready(t, growing)
	scaleTo(t, growing, int32(figures.Grown))
	figures.Beside[live.NeighbourGrows] = h.edit(t, while)
	eventually(t, "the cluster to have grown", func(context.Context) error { return hasPods(t, grown, 1+figures.Grown) })
	must(t, shared.Delete(t.Context(), newCluster(grown, growing.Name, 0)))
	emptied(t, grown)

	must(t, shared.Create(t.Context(), onlyPods(refused, 1)))
	bounded := create(t, refused, 1, int32(figures.Refused))[0]
	figures.Beside[live.NeighbourRefused] = h.edit(t, while)
	untilRefused(t, bounded)

	asked := hangingWebhook(t, slow)
	create(t, slow, slowClusters, 1)
	eventually(t, "the webhook to hold up passes", func(context.Context) error {
		if n := asked.Load(); n < slowCalls {
			return fmt.Errorf("%d calls", n)
		}
		return nil
	})
	figures.Beside[live.NeighbourHangs] = h.edit(t, while)
	must(t, hasPods(t, slow, 0))

	t.Log(figures)
	must(t, jobs.Save(figures))
	for _, broken := range figures.Broken() {
		if *judging {
			t.Error(broken)
		}
	}
	if late := figures.Beside[live.NeighbourHangs].P99; late > figures.Calm.P99+float64((slowHangs/2).Milliseconds()) {
		t.Errorf("honest clusters waited %.0f ms (p99) beside a webhook that hangs for %s", late, slowHangs)
	}
}

// hasPods checks how many pods a namespace has.
func hasPods(t *testing.T, namespace string, want int) error {
	t.Helper()
	var pods corev1.PodList
	must(t, shared.List(t.Context(), &pods, client.InNamespace(namespace)))
	if len(pods.Items) != want {
		return fmt.Errorf("%s has %d pods, not %d", namespace, len(pods.Items), want)
	}
	return nil
}

// onlyPods lets a namespace have so many pods.
func onlyPods(namespace string, most int64) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "few"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(most, resource.DecimalSI)}},
	}
}

// untilRefused waits until a cluster reports that a quota refuses its workers.
func untilRefused(t *testing.T, name types.NamespacedName) {
	t.Helper()
	eventually(t, "the quota to refuse workers", func(ctx context.Context) error {
		cluster, err := shared.Find(ctx, name)
		if err != nil {
			return err
		}
		condition := meta.FindStatusCondition(cluster.Status.Conditions, v1beta1.ConditionWorkersReady)
		if condition == nil || condition.Reason != reason.QuotaExceeded.Code {
			return fmt.Errorf("its workers are %+v", condition)
		}
		return nil
	})
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
