// Command encryption makes the certificate of a pod (certify), and takes TLS for the dashboard beside a head (front).
//
// In: flags, and files with certificates; for certify the variable POD_IPS. Out: the files of internal/pki, or bytes
// that go from one connection to another, and a log to standard error.
//
// It must never log what goes over its connections, ask who a client is (the token proves that), or hold a credential
// of Kubernetes. Only certify sees the key of the authority.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "encryption:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: encryption certify|front FLAGS; encryption certify --help lists them")

func run(args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	set := flag.NewFlagSet("encryption "+args[0], flag.ExitOnError)
	var start func(context.Context) error
	switch args[0] {
	case "certify":
		start = defineCertify(set).run
	case "front":
		start = defineFront(set).run
	default:
		return errUsage
	}
	if err := parse(set, args[1:]); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	return start(ctx)
}

// parse reads flags, and refuses what is none.
func parse(set *flag.FlagSet, args []string) error {
	if err := set.Parse(args); err != nil {
		return fmt.Errorf("read flags: %w", err)
	}
	if set.NArg() > 0 {
		return fmt.Errorf("read flags: unexpected argument %q", set.Arg(0))
	}
	return nil
}
