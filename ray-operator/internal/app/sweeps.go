package app

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/controlstore"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/sweep"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
)

// sweeps adds what removes the keys of clusters that are gone. An operator that does not
// know its own namespace has no notes to sweep by.
func sweeps(manager ctrl.Manager, cfg Config, measured *telemetry.Metrics, access storeAccess) error {
	if cfg.Namespace == "" {
		ctrl.Log.Info("Without --namespace, clusters cannot use a Redis of their own as control store")
		return nil
	}
	sweeper := &sweep.Sweeper{
		Cache:       manager.GetClient(),
		Live:        manager.GetAPIReader(),
		Writer:      writer(manager, measured, nil),
		Nodes:       readerOfNodes(manager, cfg),
		Sweep:       access.client.Sweep,
		Command:     controlstore.CleanUp,
		Turns:       access.turns,
		Credentials: access.credentials,
		Metrics:     measured,
		Events:      telemetry.Recorder{Events: manager.GetEventRecorder(Name)},
		Clock:       clock.RealClock{},
		Namespace:   cfg.Namespace,
		Pod:         cfg.Pod,
	}
	if err := manager.Add(sweeper); err != nil {
		return fmt.Errorf("add what sweeps after clusters: %w", err)
	}
	return nil
}

// readerOfNodes returns what reads nodes from the cache, nil where they may not be watched.
func readerOfNodes(manager ctrl.Manager, cfg Config) client.Reader {
	if cfg.WatchNodes {
		return manager.GetClient()
	}
	return nil
}

// keeper keeps the notes that are swept by.
func keeper(manager ctrl.Manager, cfg Config, measured *telemetry.Metrics) *sweep.Keeper {
	return &sweep.Keeper{Writer: writer(manager, measured, nil), Live: manager.GetAPIReader(), Namespace: cfg.Namespace}
}

// cacheNotes makes the cache hold the notes, and no other ConfigMap: those beside the
// operator, whichever namespaces are watched for clusters.
func cacheNotes(into map[client.Object]cache.ByObject, namespace string) error {
	if namespace == "" {
		return nil
	}
	noted, err := labels.NewRequirement(v1beta1.LabelNote, selection.Exists, nil)
	if err != nil {
		return fmt.Errorf("select the notes: %w", err)
	}
	into[&corev1.ConfigMap{}] = cache.ByObject{
		Namespaces: map[string]cache.Config{namespace: {LabelSelector: labels.NewSelector().Add(*noted)}},
	}
	return nil
}
