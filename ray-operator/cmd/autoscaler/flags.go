package main

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/sidecar"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pki"
)

// flags are what the process is told.
type flags struct {
	cfg                     sidecar.Config
	tokenFile, certificates string
	verbosity               int
}

func define(set *flag.FlagSet) *flags {
	f := &flags{}
	set.StringVar(&f.cfg.GCS, "gcs-address", "127.0.0.1:6379", "host:port of the head's GCS")
	set.StringVar(&f.cfg.Listen, "listen", ":6380", "host:port on which the autoscaler listens for the operator")
	set.StringVar(&f.cfg.Metrics, "metrics-listen", ":44217", "host:port of /metrics and /healthz")
	set.StringVar(&f.cfg.Head, "head", "", "UID of the head pod: orders for another pod are refused; empty accepts any")
	set.StringVar(&f.tokenFile, "token-file", "", "file with the cluster's token, read each time; empty for a cluster without one")
	set.StringVar(&f.certificates, "certificates", "", "directory with ca.crt, tls.crt and tls.key; empty for a cluster without encryption")
	set.IntVar(&f.verbosity, "v", 0, "verbosity of the log: 0 for changes, 1 for more")
	return f
}

func (f *flags) level() slog.Level { return slog.LevelInfo - 4*slog.Level(f.verbosity) }

// config checks what was given and puts it together.
func (f *flags) config() (sidecar.Config, error) {
	for _, given := range []struct {
		flag, address string
		anyHost       bool
	}{{"--gcs-address", f.cfg.GCS, false}, {"--listen", f.cfg.Listen, true}, {"--metrics-listen", f.cfg.Metrics, true}} {
		if host, port, err := net.SplitHostPort(given.address); err != nil || port == "" || host == "" && !given.anyHost {
			return f.cfg, fmt.Errorf("read %s: %q is not host:port", given.flag, given.address)
		}
	}
	cfg := f.cfg
	if f.tokenFile != "" {
		cfg.Token = func() (string, error) { return token(f.tokenFile) }
	}
	var err error
	if f.certificates != "" {
		cfg.Client, cfg.Server, err = pki.ReadFiles(f.certificates)
	}
	return cfg, err
}

var errNoToken = errors.New("it holds no token")

// token reads a token as Ray does: the first line, without the space around it.
func token(path string) (string, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the path is a flag of the operator's
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if line = strings.TrimSpace(line); line == "" {
		return "", fmt.Errorf("read the token from %s: %w", path, errNoToken)
	}
	return line, nil
}
