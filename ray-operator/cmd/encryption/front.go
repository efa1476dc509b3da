package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"golang.org/x/net/netutil"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/pki"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/process"
)

// front takes TLS at one address, and hands on to another what goes over it.
type front struct{ listen, to, certificates string }

func defineFront(set *flag.FlagSet) *front {
	f := &front{}
	set.StringVar(&f.listen, "listen", ":8266", "host:port on which TLS is taken")
	set.StringVar(&f.to, "to", "localhost:8265", "host:port that is connected to in clear text")
	set.StringVar(&f.certificates, "certificates", "", "directory with ca.crt, tls.crt and tls.key, as certify wrote them")
	return f
}

func (f *front) run(ctx context.Context) error {
	process.FitMemory()
	return f.serve(ctx, slog.New(slog.NewJSONHandler(os.Stderr, nil)))
}

func (f *front) serve(ctx context.Context, log *slog.Logger) error {
	if err := f.check(); err != nil {
		return err
	}
	_, config, err := pki.ReadFiles(f.certificates)
	if err != nil {
		return err
	}
	config.ClientAuth, config.ClientCAs = tls.NoClientCert, nil // the token proves who asks
	config.NextProtos = nil                                     // what is spoken is between the two ends
	on, err := process.Listen(ctx, f.listen, clock.RealClock{}, log)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	log.Info("Accepting TLS", "address", on.Addr().String(), "to", f.to)
	r := &relay{to: f.to, config: config, log: log, limits: usual}
	return r.serve(ctx, netutil.LimitListener(on, connections))
}

// check refuses addresses that are none.
func (f *front) check() error {
	for _, given := range []struct {
		flag, address string
		anyHost       bool
	}{{"--listen", f.listen, true}, {"--to", f.to, false}} {
		host, port, err := net.SplitHostPort(given.address)
		if err != nil || port == "" || host == "" && !given.anyHost {
			return fmt.Errorf("read %s: %q is not host:port", given.flag, given.address)
		}
	}
	if f.certificates == "" {
		return errors.New("read --certificates: it is empty, and must be a directory")
	}
	return nil
}

// connections is how many there may be at once. With 512 that have all carried large requests and answers the program
// was measured to have 51 MiB, of the 64 MiB of its container.
const connections = 512

// limits are how long things may take.
type limits struct {
	handshake, connect time.Duration
	// linger is how long a client may hold its connection after the other end has said all.
	linger time.Duration
	// leave is how long connections may go on after the end of the program was asked for.
	leave time.Duration
}

// usual are the limits outside of tests.
var usual = limits{
	handshake: 10 * time.Second, connect: 5 * time.Second, linger: 10 * time.Second, leave: 5 * time.Second,
}
