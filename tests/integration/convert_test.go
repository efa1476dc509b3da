package integration

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/convert"
	"github.com/heliostat-dev/heliostat/tests/kubeflow"
	"github.com/heliostat-dev/heliostat/tests/rayio"
)

// conversions is how many generated objects are converted and sent, one in four of them a job of Kubeflow; HELIOSTAT_CONVERSIONS asks for
// others.
const conversions = 100

// TestConvertedObjectsAreAdmitted: what the converter lets out, a real API server takes, with the chart's CRDs and policies.
func TestConvertedObjectsAreAdmitted(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	policyInForce(t, namespace)
	many, sent := number(t, "HELIOSTAT_CONVERSIONS", conversions), 0
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(4)
	for seed := range many {
		chance := rand.New(rand.NewPCG(uint64(seed), 27))
		from, _ := rayio.Generate(chance)
		if seed%4 == 0 {
			from = kubeflow.Generate(chance)
		}
		from.SetNamespace(namespace)
		result := convert.Object(from, convert.Options{Aliases: chance.IntN(2) == 0, KeepOpen: chance.IntN(2) == 0})
		for _, object := range result.Objects {
			sent++
			group.Go(func() error {
				err := shared.Create(ctx, object, client.DryRunAll)
				if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) {
					t.Errorf("seed %d: the API server refuses the %s: %v", seed, object.GetKind(), err)
					return nil
				}
				if err != nil {
					return fmt.Errorf("send the object of seed %d: %w", seed, err)
				}
				return nil
			})
		}
	}
	must(t, group.Wait())
	t.Logf("%d objects of %d inputs were sent", sent, many)
	if sent < many/3 {
		t.Errorf("only %d objects of %d came out", sent, many)
	}
}
