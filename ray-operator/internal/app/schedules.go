package app

import (
	"fmt"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/schedule"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
)

// addSchedules adds the controller of ClusterJobSchedules.
func addSchedules(manager ctrl.Manager, cfg Config, measured *telemetry.Metrics) error {
	own, err := pending(manager, &v1beta1.ClusterJobSchedule{}, &v1beta1.ClusterJob{})
	if err != nil {
		return err
	}
	reconciler := &schedule.Reconciler{
		Client: manager.GetClient(),
		Writer: writer(manager, measured, own),
		Events: telemetry.Recorder{Events: manager.GetEventRecorder(Name)},
		Clock:  clock.RealClock{},
	}
	known := newCensus()
	build := ctrl.NewControllerManagedBy(manager).Named("clusterjobschedule").
		For(&v1beta1.ClusterJobSchedule{}, builder.WithPredicates(known.counts(), notItsStatus(own)))
	woken := sources{manager.GetCache(), manager.GetCache(), known}.follow(schedule.WakeRules())
	if err := complete(build, woken, own.Rest(reconciler), workers{cfg.Workers, measured}); err != nil {
		return fmt.Errorf("add the controller of ClusterJobSchedules: %w", err)
	}
	return nil
}
