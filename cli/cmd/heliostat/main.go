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

	"github.com/go-logr/logr"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // what kubeconfigs sign in with
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/cli/app"
)

// narrow is how wide a terminal is taken for that does not say it.
const narrow = 80

func main() {
	// What libraries log is not for users, and might hold more than a command may print.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	settings := app.Settings{
		IOStreams: genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		Clock:     clock.RealClock{},
		Environ:   os.Environ(),
		CanAsk:    term.IsTerminal(int(os.Stdin.Fd())),
	}
	if term.IsTerminal(int(os.Stderr.Fd())) {
		settings.Width = width
	}
	code := app.Run(ctx, os.Args[1:], settings)
	stop()
	os.Exit(code)
}

// width returns how many columns the terminal of standard error has.
func width() int {
	columns, _, err := term.GetSize(int(os.Stderr.Fd()))
	if err != nil {
		return narrow
	}
	return columns
}
