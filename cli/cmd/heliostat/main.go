// Command heliostat does the daily work with Ray clusters on Kubernetes, from a kubeconfig alone.
//
// In: arguments, standard input and the kubeconfig. Out: data on standard output, everything else on standard error, and an
// exit code for scripts. It only hands these on: nothing is decided here. It must never print a credential.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // what kubeconfigs sign in with

	"github.com/heliostat-dev/heliostat/cli/app"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := app.Run(ctx, os.Args[1:], genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	stop()
	os.Exit(code)
}
