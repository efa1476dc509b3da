package byhand

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/tests/live"
)

var (
	rounds = flag.Int("rounds", 1, "how often each side is started; with 5 or more the promised times are judged")
	out    = flag.String("out", "", "file for the samples, as JSON")
)

// judgedRounds is how many it takes to judge the promised times by their medians.
const judgedRounds = 5

func TestTheOperatorAddsLittleToAStartByHand(t *testing.T) {
	ctx := t.Context()
	kubernetes, err := live.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := live.Install(ctx, "../../.."); err != nil {
		t.Fatal(err)
	}
	prepare(t, kubernetes)
	b := &bench{Cluster: kubernetes}
	var all []Round
	for range *rounds {
		round, err := b.round(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(b.byHand, b.operator); diff != "" {
			t.Fatalf("the pods in manifests.yaml are not what the operator makes (- by hand, + operator):\n%s", diff)
		}
		t.Logf("by hand: listed %5.2f s, ready %5.2f s    operator: listed %5.2f s, ready %5.2f s",
			round.ByHand.Listed, round.ByHand.Ready, round.Operator.Listed, round.Operator.Ready)
		all = append(all, round)
	}
	if *out != "" {
		text, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(*out, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	judge(t, all)
}

// prepare makes the namespace, which is gone with all it held when the test ends.
func prepare(t *testing.T, kubernetes *live.Cluster) {
	t.Helper()
	made := live.Until(t.Context(), 2*time.Minute, "namespace "+Namespace+" to be made, and the former one gone", func(ctx context.Context) error {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}
		err := kubernetes.Create(ctx, namespace)
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		if err := kubernetes.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); err != nil {
			return err
		}
		if namespace.DeletionTimestamp != nil {
			return errors.New("it is still going")
		}
		return nil
	})
	if made != nil {
		t.Fatal(made)
	}
	t.Cleanup(func() {
		if err := kubernetes.Drop(context.WithoutCancel(t.Context()), Namespace); err != nil {
			t.Error(err)
		}
	})
	err := live.Until(t.Context(), time.Minute, "the namespace's service account", kubernetes.HasAccount(Namespace))
	if err != nil {
		t.Fatal(err)
	}
}

// judge prints the medians and compares them with what is promised.
func judge(t *testing.T, all []Round) {
	t.Helper()
	m := Summarise(all)
	t.Logf("medians of %d: listed by hand %.2f s, by the operator %.2f s, difference %.2f s; Ready %.2f s after listed",
		len(all), m.ByHand, m.Operator, m.Later(), m.Ready)
	switch {
	case m.TooEarly:
		t.Errorf("in a round Ray, asked after the ComputeCluster was Ready, did not list all nodes: %+v", all)
	case len(all) >= judgedRounds && !m.Kept():
		t.Errorf("%+v: promised are at most %.1f s later than by hand, and Ready at most %.1f s after that", m, PromisedListed, PromisedReady)
	}
}
