package app

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/services"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/service"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
)

// addServices adds the controller of ClusterServices.
func addServices(manager ctrl.Manager, cfg Config, measured *telemetry.Metrics, dial headclient.Options) error {
	now := clock.RealClock{}
	heads := services.New(services.DialBy(dial), services.AskBy(dial.Connect), now)
	if err := manager.Add(heads); err != nil {
		return fmt.Errorf("add what asks heads about Serve: %w", err)
	}
	own, err := pending(manager, append(cluster.Children(), &v1beta1.ClusterService{}, &v1beta1.ComputeCluster{}, &appsv1.ControllerRevision{})...)
	if err != nil {
		return err
	}
	written := writer(manager, measured, own)
	reconciler := &service.Reconciler{
		Client:  manager.GetClient(),
		Live:    manager.GetAPIReader(),
		Writer:  written,
		Routes:  written,
		Nodes:   readerOfNodes(manager, cfg),
		Heads:   heads,
		Events:  telemetry.Recorder{Events: manager.GetEventRecorder(Name)},
		Metrics: measured,
		Clock:   now,
		Site:    site(cfg),
	}
	known := newCensus()
	build := ctrl.NewControllerManagedBy(manager).Named("clusterservice").
		For(&v1beta1.ClusterService{}, builder.WithPredicates(known.counts(), notItsStatus(own)))
	woken := sources{manager.GetCache(), manager.GetCache(), known}.ofServices(heads)
	if err := complete(build, woken, own.Rest(reconciler), workers{cfg.Workers, measured}); err != nil {
		return fmt.Errorf("add the controller of ClusterServices: %w", err)
	}
	return nil
}
