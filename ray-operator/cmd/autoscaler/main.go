// Command autoscaler runs beside a cluster's head until it is told to end.
//
// In: flags, and the files with the cluster's token and the pod's certificate. Out: what internal/autoscaler/sidecar does, and a
// log to standard error.
//
// It only turns flags into a sidecar.Config: nothing is decided here. It must never hold a
// credential of Kubernetes.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/sidecar"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/process"
)

func main() {
	flags := define(flag.CommandLine)
	flag.Parse()
	if err := run(flags); err != nil {
		fmt.Fprintln(os.Stderr, "autoscaler:", err)
		os.Exit(1)
	}
}

func run(f *flags) error {
	cfg, err := f.config()
	if err != nil {
		return err
	}
	cfg.Clock = clock.RealClock{}
	cfg.Log = slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: f.level()}))
	process.FitMemory()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := sidecar.Run(ctx, cfg); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}
