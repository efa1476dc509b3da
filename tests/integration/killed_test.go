package integration

import (
	"cmp"
	"context"
	"flag"
	"math/rand/v2"
	"net/http"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

var seed = flag.Uint64("seed", 0, "what random choices of the tests follow from, so that a failure can be played again; 0 draws one")

// seeded returns a source of random choices that the test logs the seed of.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	drawn := cmp.Or(*seed, rand.Uint64())
	t.Logf("random choices: -seed %d", drawn)
	return rand.New(rand.NewPCG(drawn, 0))
}

func TestAnOperatorKilledAtAnyMomentComesToTheSameEnd(t *testing.T) {
	const clusters, workers, kills = 5, 2, 8
	namespace := newNamespace(t)
	random, began := seeded(t), shared.audit.now(t)
	create(t, namespace, 1, 0) // one cluster before the first start, the others between kills
	for i := range kills {
		o := startOperator(t)
		if i < clusters {
			must(t, client.IgnoreAlreadyExists(shared.Create(t.Context(), newCluster(namespace, "k"+string(rune('0'+i)), workers))))
		}
		// From before its caches are filled, at about 100 ms, to after all is done.
		pause := time.Duration(random.Int64N(int64(1500 * time.Millisecond)))
		t.Logf("kill %d after %v", i, pause)
		after(t, pause)
		o.stop(syscall.SIGKILL)
	}

	o := startOperator(t)
	for i := range clusters {
		same(t, types.NamespacedName{Namespace: namespace, Name: "k" + string(rune('0'+i))}, workers)
	}
	o.quiet()
	made := 0
	for _, r := range shared.audit.since(t, began, namespace) {
		if r.what() == "create pods" && r.ResponseStatus.Code == http.StatusCreated {
			made++
		}
	}
	// The log may lack the answer to a request whose sender was killed; the pod is there all the same.
	if want := 1 + clusters*(1+workers); made > want {
		t.Errorf("%d pods were made in all, want %d: one for each place", made, want)
	}
}

// after waits for a moment that is itself what is tested.
func after(t *testing.T, pause time.Duration) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), pause)
	defer stop()
	<-ctx.Done()
}

// same checks that a cluster has come to the end it would have come to undisturbed.
func same(t *testing.T, name types.NamespacedName, workers int) {
	t.Helper()
	cluster := ready(t, name)
	heads, others := podsOf(t, name, v1beta1.RoleHead), podsOf(t, name, v1beta1.RoleWorker)
	if len(heads) != 1 || len(others) != workers || cluster.Status.Epoch != 1 {
		t.Errorf("%s has %d heads and %d workers in epoch %d, want 1, %d and 1", name, len(heads), len(others), cluster.Status.Epoch, workers)
	}
	for _, list := range []client.ObjectList{&corev1.ServiceList{}, &corev1.SecretList{}} {
		must(t, shared.List(t.Context(), list, client.InNamespace(name.Namespace), client.MatchingLabels{v1beta1.LabelCluster: name.Name}))
		if n := meta.LenList(list); n != 1 {
			t.Errorf("%s has %d of %T, want 1", name, n, list)
		}
	}
}
