package app

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/servercert"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
)

// certificates adds what keeps the certificate of the server for portals, if there is one to keep.
func certificates(manager ctrl.Manager, cfg Config, measured *telemetry.Metrics) error {
	if cfg.ServerCertificate == "" {
		return nil
	}
	keeper := &servercert.Keeper{
		Live: manager.GetAPIReader(), Writer: writer(manager, measured, nil), Clock: clock.RealClock{},
		Secret: types.NamespacedName{Namespace: cfg.Namespace, Name: cfg.ServerCertificate}, Hosts: cfg.ServerHosts,
	}
	if err := manager.Add(keeper); err != nil {
		return fmt.Errorf("add what keeps the certificate of the server for portals: %w", err)
	}
	return nil
}
