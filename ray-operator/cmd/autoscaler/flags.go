package main

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/sidecar"
)

// flags are what the process is told.
type flags struct {
	cfg       sidecar.Config
	tokenFile string
	verbosity int
}

func define(set *flag.FlagSet) *flags {
	f := &flags{}
	set.StringVar(&f.cfg.GCS, "gcs-address", "127.0.0.1:6379", "host:port of the head's GCS")
	set.StringVar(&f.cfg.Listen, "listen", ":6380", "host:port on which the operator is listened to")
	set.StringVar(&f.cfg.Metrics, "metrics-listen", ":44217", "host:port of /metrics and /healthz")
	set.StringVar(&f.cfg.Head, "head", "", "UID of the pod that this runs in: orders for another are refused; empty takes any")
	set.StringVar(&f.tokenFile, "token-file", "", "file with the cluster's token, read anew each time; empty for a cluster without one")
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
	return cfg, nil
}

var errNoToken = errors.New("it holds no token")

// token reads a token as Ray does: the first line, without the space around it.
func token(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if line = strings.TrimSpace(line); line == "" {
		return "", fmt.Errorf("read the token from %s: %w", path, errNoToken)
	}
	return line, nil
}

// softLimit is the memory up to which Go need not hurry: three quarters of what the
// container may use, which the kernel tells as text, or else of 64 MiB.
func softLimit(limit []byte, err error) int64 {
	most, parsed := strconv.ParseInt(strings.TrimSpace(string(limit)), 10, 64)
	switch {
	case err == nil && strings.TrimSpace(string(limit)) == "max":
		return math.MaxInt64
	case err != nil || parsed != nil || most <= 0:
		most = 64 << 20
	}
	return most / 4 * 3
}
