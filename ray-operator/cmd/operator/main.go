// Command operator runs Heliostat's controllers until it is told to end.
//
// In: flags, and a kubeconfig or the pod's own service account. Out: what the
// controllers write, a log to standard error, metrics and health over HTTP.
//
// It only turns flags into an app.Config: nothing is decided here.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"go.uber.org/zap/zapcore"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/app"
)

func main() {
	var cfg app.Config
	flag.StringVar(&cfg.MetricsAddress, "metrics-bind-address", ":8080", "host:port of the metrics endpoint, or 0 for none")
	flag.StringVar(&cfg.HealthAddress, "health-probe-bind-address", ":8081", "host:port of /healthz and /readyz, or 0 for none")
	flag.IntVar(&cfg.Workers, "workers", 10, "how many clusters are worked on at once")
	flag.DurationVar(&cfg.Resync, "resync", 10*time.Hour, "after how long every cluster is looked at again though nothing happened")
	level := flag.Int("v", 0, "verbosity of the log: 0 for changes, 1 for more")
	flag.Parse() // --kubeconfig is registered by controller-runtime
	ctrl.SetLogger(zap.New(zap.Level(zapcore.Level(-*level))))
	if err := run(cfg); err != nil {
		fmt.Fprintln(os.Stderr, "operator:", err)
		os.Exit(1)
	}
}

func run(cfg app.Config) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	cfg.REST = config
	manager, err := app.New(cfg)
	if err != nil {
		return err
	}
	if err := manager.Start(ctrl.SetupSignalHandler()); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}
