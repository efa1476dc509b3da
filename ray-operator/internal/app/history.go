package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/archivecert"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/archives"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
)

// history is what keeps the certificates of archivers and follows what they say. A nil one is that none is installed.
type history struct {
	certificates *archivecert.Keeper
	archives     *archives.Set
	clock        clock.PassiveClock
	began        func() time.Time
}

// The authority of archivers is known a moment after the operator has begun. Passes wait for it, and not for long: without it pods
// have no collector.
const (
	authorityWithin = 15 * time.Second
	authorityAgain  = 200 * time.Millisecond
)

// addHistory adds what keeps the certificates of archivers and follows them, and returns nil where there are none.
func addHistory(manager ctrl.Manager, cfg Config, measured *telemetry.Metrics) (*history, error) {
	if cfg.Installed.History == nil {
		return nil, nil //nolint:nilnil // a nil one is none
	}
	now := clock.RealClock{}
	h := &history{clock: now, certificates: &archivecert.Keeper{
		Live: manager.GetAPIReader(), Writer: writer(manager, measured, nil), Clock: now, Namespace: cfg.Namespace,
		Secrets: archivecert.SecretsOf(cfg.HistoryCertificates), Hosts: cfg.HistoryHosts,
	}}
	h.began = sync.OnceValue(h.clock.Now)
	h.archives = archives.New(cfg.Installed.History.Archivers, h.certificates.ClientConfig, now)
	if err := manager.Add(h.certificates); err != nil {
		return nil, fmt.Errorf("add what keeps the certificates of archivers: %w", err)
	}
	if err := manager.Add(h.archives); err != nil {
		return nil, fmt.Errorf("add what follows archivers: %w", err)
	}
	return h, nil
}

// tell gives a reconciler what it needs of archivers.
func (h *history) tell(reconciler *cluster.Reconciler) {
	if h != nil {
		reconciler.Archives, reconciler.Authority = h.archives, h.certificates.Authority
	}
}

// wakes returns sources with what archivers say.
func (h *history) wakes(others []source.Source) []source.Source {
	if h == nil {
		return others
	}
	return append(others, h.archives.Changes())
}

// await has passes wait until the authority of archivers is known.
func (h *history) await(passes reconcile.Reconciler) reconcile.Reconciler {
	if h == nil {
		return passes
	}
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		if h.certificates.Authority() == "" && h.clock.Since(h.began()) < authorityWithin {
			return reconcile.Result{RequeueAfter: authorityAgain}, nil
		}
		return passes.Reconcile(ctx, request)
	})
}
