package app

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/apiserver/access"
	"github.com/heliostat-dev/heliostat/apiserver/rest"
)

// TestAroundCall_CountsWhatHasNoCaller as the same requests of REST are counted.
func TestAroundCall_CountsWhatHasNoCaller(t *testing.T) {
	registry := prometheus.NewRegistry()
	measured, err := newMetrics(registry, func() int { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	f := &front{metrics: measured, clock: clock.RealClock{}}
	answered := func(context.Context) error {
		t.Error("it is answered")
		return nil
	}
	refused := f.aroundCall()(t.Context(), rest.Call{Refused: access.ErrNoToken}, answered)
	if got, want := counted(t, registry), []string{"none 401 1"}; !slices.Equal(got, want) || !errors.Is(refused, access.ErrNoToken) {
		t.Errorf("counted are %q, want %q; it is %v", got, want, refused)
	}
}
