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

	_ "golang.org/x/crypto/x509roots/fallback" // public authorities: the image has no files but the programs
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/app"
)

func main() {
	flags := define(flag.CommandLine) // beside --kubeconfig, which controller-runtime defines
	flag.Parse()
	ctrl.SetLogger(flags.logger(os.Stderr))
	if err := run(flags); err != nil {
		fmt.Fprintln(os.Stderr, "operator:", err)
		os.Exit(1)
	}
}

func run(flags *flags) error {
	cfg, err := flags.config()
	if err != nil {
		return err
	}
	if cfg.REST, err = ctrl.GetConfig(); err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	ctx := ctrl.SetupSignalHandler()
	if err := app.Await(ctx, cfg); err != nil {
		return err
	}
	manager, err := app.New(cfg)
	if err != nil {
		return err
	}
	if err := manager.Start(ctx); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}
