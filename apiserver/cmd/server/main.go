// Command server serves the kinds of heliostat.dev to portals and scripts, as their callers.
//
// In: flags, and files with certificates; in a pod also the variables by which Kubernetes says where its API server is.
// Out: answers over HTTPS, a log to standard error, metrics and health over HTTP.
//
// It only turns flags into an app.Config: nothing is decided here. It must never open a file with a credential.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/apiserver/app"
)

func main() {
	flags := define(flag.CommandLine)
	flag.Parse()
	if err := run(flags); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

func run(flags *flags) error {
	cfg, err := flags.config(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	if err != nil {
		return err
	}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return fmt.Errorf("read how many files can be open: %w", err)
	}
	cfg.Dashboards.MaxFiles = files.Cur
	log := slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: flags.level()})
	ctrl.SetLogger(logr.FromSlogHandler(log)) // for what reads the certificate again
	cfg.Log, cfg.Clock = slog.New(log), clock.RealClock{}
	klog.SetSlogLogger(cfg.Log) // for what reads objects
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
		go tuneCollector(ctx)
	}
	return app.Run(ctx, cfg)
}
