package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/apiserver/rest"
	"github.com/heliostat-dev/heliostat/portal/access"
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
	refused := f.aroundCall()(t.Context(), &rest.Call{Refused: access.ErrNoToken}, answered)
	if got, want := counted(t, registry), []string{"none 401 1"}; !slices.Equal(got, want) || !errors.Is(refused, access.ErrNoToken) {
		t.Errorf("counted are %q, want %q; it is %v", got, want, refused)
	}
}

// TestFront_WritesShortAuditLines whatever a call of gRPC names: its message is not checked yet.
func TestFront_WritesShortAuditLines(t *testing.T) {
	var log bytes.Buffer
	f := &front{log: slog.New(slog.NewJSONHandler(&log, nil))}
	owner := make(chan string, 1)
	owner <- "alice"
	long := strings.Repeat("é", 1<<20)
	f.audit(request{verb: "delete", resource: long, namespace: long, name: "a" + long}, entry{owner: owner})
	if log.Len() > 2<<10 || !strings.Contains(log.String(), "alice") || strings.Contains(log.String(), "\\ufffd") {
		t.Errorf("a line has %d bytes: %.2000s", log.Len(), log.String())
	}
}
