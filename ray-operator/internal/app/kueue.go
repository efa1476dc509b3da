package app

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kueue"
	keeping "github.com/heliostat-dev/heliostat/ray-operator/internal/queue"
)

// requireKueue fails where objects are to wait for Kueue, and the API server does not know its kinds.
func (cfg Config) requireKueue(mapper meta.RESTMapper) error {
	if !cfg.Kueue {
		return nil
	}
	kind := kueue.GroupVersion.WithKind("Workload")
	_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("find the kinds of Kueue: the API server has no Workload of %s; install Kueue 0.15 or later, "+
			"or start the operator without --kueue", kueue.GroupVersion)
	}
	if err != nil {
		return fmt.Errorf("find the kinds of Kueue: %w", err)
	}
	return nil
}

// keeperOf returns what keeps the Workloads of a controller's objects, nil without Kueue.
func keeperOf(manager ctrl.Manager, cfg Config, writer *kube.Writer) *keeping.Keeper {
	if !cfg.Kueue {
		return nil
	}
	return &keeping.Keeper{Client: manager.GetClient(), Writer: writer, Defaults: &cfg.Installed}
}

// queued returns kinds that passes wait for after their own writes, with Workloads where there are some.
func (cfg Config) queued(kinds ...client.Object) []client.Object {
	if cfg.Kueue {
		kinds = append(kinds, &kueue.Workload{})
	}
	return kinds
}
