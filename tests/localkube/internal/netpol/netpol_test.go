package netpol

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/plan"
)

// watching is an enforcer of the node north over a fake API server, in a bubble
// whose clock stands still until everybody waits for it.
type watching struct {
	t       *testing.T
	client  *fake.Clientset
	mu      sync.Mutex
	applied []Ruleset
	// failure is what the next attempt to apply returns.
	failure error
}

func watch(t *testing.T, act func(ctx context.Context, w *watching)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &watching{t: t}
		var objects []runtime.Object
		cluster := testCluster()
		for _, p := range cluster.Pods {
			objects = append(objects, p)
		}
		for _, n := range cluster.Namespaces {
			objects = append(objects, n)
		}
		w.client = fake.NewClientset(objects...)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- newEnforcer(w.client, Config{Node: "north", Families: families[:1], Log: slog.New(slog.DiscardHandler)}, w.apply).run(ctx)
		}()
		act(ctx, w)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the enforcer ended with %v, want nil", err)
		}
	})
}

func (w *watching) apply(_ context.Context, _ []plan.Family, r Ruleset) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.applied = append(w.applied, r)
	failure := w.failure
	w.failure = nil
	return failure
}

// after lets the bubble's time pass and returns what was applied in it.
func (w *watching) after(d time.Duration) []Ruleset {
	<-time.After(d)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.applied
	w.applied = nil
	return out
}

func (w *watching) failOnce(failure error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failure = failure
}

func (w *watching) create(ctx context.Context, p *networkingv1.NetworkPolicy) {
	w.t.Helper()
	if _, err := w.client.NetworkingV1().NetworkPolicies(p.Namespace).Create(ctx, p, metav1.CreateOptions{}); err != nil {
		w.t.Fatalf("create policy: %v", err)
	}
}

const (
	// started is when the caches are filled: they are polled each 100 ms.
	started = time.Second
	// promised is how soon a change has to be on its way to the kernel.
	promised = 100 * time.Millisecond
)

func TestAChangeIsAppliedSoonAndOnce(t *testing.T) {
	watch(t, func(ctx context.Context, w *watching) {
		if got := w.after(started); len(got) != 1 || len(got[0].Chains) != 0 {
			t.Fatalf("applied at the start: %v, want one empty ruleset, which clears what an earlier process left", got)
		}
		// A burst: the second is made while the first one waits.
		both := policies(t, "{podSelector: {}}\n---\n{podSelector: {matchLabels: {role: db}}, ingress: [{from: [{podSelector: {}}]}]}")
		w.create(ctx, both[0])
		w.create(ctx, both[1])
		got := w.after(promised)
		if len(got) != 1 || len(got[0].Chains) != 2 || len(got[0].Sets) != 1 {
			t.Fatalf("applied for two policies: %v, want one ruleset with the chains of web and db and a set", got)
		}
		if got := w.after(time.Hour); len(got) != 0 {
			t.Errorf("applied without a change: %v", got)
		}
	})
}

func TestAPodIsGuardedWhenItsAddressIsKnown(t *testing.T) {
	watch(t, func(ctx context.Context, w *watching) {
		w.create(ctx, policies(t, "{podSelector: {matchLabels: {role: new}}}")[0])
		fresh := pod("shop/fresh", "north", "", "role=new")
		fresh, err := w.client.CoreV1().Pods("shop").Create(ctx, fresh, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := w.after(started); len(got) != 1 || len(got[0].Chains) != 0 {
			t.Fatalf("applied for a pod without an address: %v, want the empty ruleset of the start", got)
		}
		fresh.Status = pod("", "", "10.244.1.77", "").Status
		if _, err := w.client.CoreV1().Pods("shop").UpdateStatus(ctx, fresh, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := w.after(promised); len(got) != 1 || len(got[0].Chains) != 1 {
			t.Fatalf("applied for a pod with an address: %v, want its chain", got)
		}
		if err := w.client.CoreV1().Pods("shop").Delete(ctx, "fresh", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := w.after(promised); len(got) != 1 || len(got[0].Chains) != 0 {
			t.Errorf("applied for a pod that is gone: %v, want no chain", got)
		}
	})
}

func TestAFailureIsTriedAgain(t *testing.T) {
	watch(t, func(ctx context.Context, w *watching) {
		w.after(started)
		w.failOnce(errors.New("another writer holds the tables"))
		w.create(ctx, policies(t, "{podSelector: {}}")[0])
		if got := w.after(promised); len(got) != 1 {
			t.Fatalf("%d attempts, want 1", len(got))
		}
		if got := w.after(retryAfter + coalesce); len(got) != 1 || len(got[0].Chains) != 2 {
			t.Errorf("applied after a failure: %v, want the same again, once", got)
		}
		if got := w.after(time.Hour); len(got) != 0 {
			t.Errorf("applied after a success: %v", got)
		}
	})
}

func TestAfterAFailureWhatIsInForceIsUnknown(t *testing.T) {
	watch(t, func(ctx context.Context, w *watching) {
		w.after(started)
		w.failOnce(errors.New("half of it was written"))
		w.create(ctx, policies(t, "{podSelector: {}}")[0])
		w.after(promised)
		if err := w.client.NetworkingV1().NetworkPolicies("shop").Delete(ctx, "p0", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := w.after(retryAfter + coalesce); len(got) != 1 || len(got[0].Chains) != 0 {
			t.Errorf("applied: %v, want the empty ruleset again, although it was the last that succeeded", got)
		}
	})
}
