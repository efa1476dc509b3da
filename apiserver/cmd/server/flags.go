package main

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/heliostat-dev/heliostat/apiserver/app"
	"github.com/heliostat-dev/heliostat/portal/access"
)

// flags are those that need more than to be put into a Config.
type flags struct {
	cfg                  app.Config
	namespaces, identity string
	frameAncestors       string
	dashboards           dashboardFlags
	signIn               signInFlags
	verbosity            int
	rest                 func() []string
}

// Where a pod finds what the chart and Kubernetes mount.
const (
	authority = "/etc/heliostat/api-server/ca.crt"
	token     = "/var/run/secrets/kubernetes.io/serviceaccount/token" //nolint:gosec // G101: a path
)

func define(set *flag.FlagSet) *flags {
	f := &flags{rest: set.Args}
	set.StringVar(&f.cfg.Address, "bind-address", ":8443", "host:port on which callers are served, with TLS")
	set.StringVar(&f.cfg.GRPCAddress, "grpc-address", ":9443", "host:port on which callers are served by gRPC, with TLS, or 0 for none")
	set.StringVar(&f.cfg.CertFile, "tls-cert-file", "", "file with the server's certificate; read again when it changes")
	set.StringVar(&f.cfg.KeyFile, "tls-private-key-file", "", "file with the key of that certificate; read again when it changes")
	set.StringVar(&f.cfg.APIServer, "api-server", "", "https address of the API server; in a pod by default that of Kubernetes")
	set.StringVar(&f.cfg.CAFile, "api-server-ca-file", authority, "file with the certificate of the API server's authority; read for each connection")
	set.StringVar(&f.cfg.TokenFile, "account-token-file", token, "file with the token of the server's own account; read again each minute")
	set.StringVar(&f.identity, "identity-file", "", "file with the configuration of caller identities; empty to let the API server authenticate callers' tokens")
	set.StringVar(&f.cfg.Namespace, "namespace", "", "namespace of the server, whose presets are for all users")
	set.StringVar(&f.namespaces, "watch-namespaces", "", "comma-separated namespaces whose objects the server reads; empty for all")
	set.StringVar(&f.cfg.OutputDirectory, "output-directory", os.TempDir(), "directory that stores outputs of jobs while they are read, up to 1 GiB")
	f.dashboards.define(set)
	set.StringVar(&f.cfg.MetricsAddress, "metrics-bind-address", ":8080", "host:port of the metrics endpoint, or 0 for none")
	set.StringVar(&f.cfg.HealthAddress, "health-probe-bind-address", ":8081", "host:port of /healthz and /readyz, or 0 for none")
	f.signIn.define(set)
	set.StringVar(&f.cfg.Page.Directory, "web-dir", "", "directory with the built page, for development; empty for the embedded page")
	set.StringVar(&f.frameAncestors, "frame-ancestors", "", "comma-separated origins that may show the page in a frame; empty for none")
	set.IntVar(&f.verbosity, "v", 0, "verbosity of the log: 0 for changes, 1 for more")
	return f
}

func (f *flags) level() slog.Level {
	if f.verbosity > 0 {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// config checks what was given. In a pod, Kubernetes says at which host and port its API server is.
func (f *flags) config(host, port string) (app.Config, error) {
	cfg := f.cfg
	if rest := f.rest(); len(rest) > 0 {
		return cfg, fmt.Errorf("read flags: unexpected argument %q", rest[0])
	}
	if cfg.APIServer == "" && host != "" {
		cfg.APIServer = "https://" + net.JoinHostPort(host, port)
	}
	if cfg.APIServer == "" {
		return cfg, errors.New("read --api-server: it is empty, and Kubernetes says nothing: give the https address of the API server")
	}
	for _, given := range []struct{ flag, file string }{
		{"--tls-cert-file", cfg.CertFile}, {"--tls-private-key-file", cfg.KeyFile}, {"--api-server-ca-file", cfg.CAFile},
		{"--account-token-file", cfg.TokenFile},
	} {
		if given.file == "" {
			return cfg, fmt.Errorf("read %s: it is empty: give a file", given.flag)
		}
	}
	for _, given := range []struct{ flag, address string }{
		{"--bind-address", cfg.Address}, {"--grpc-address", cfg.GRPCAddress},
		{"--metrics-bind-address", cfg.MetricsAddress}, {"--health-probe-bind-address", cfg.HealthAddress},
	} {
		if _, _, err := net.SplitHostPort(given.address); err != nil && (given.address != "0" || given.flag == "--bind-address") {
			return cfg, fmt.Errorf("read %s: %q is not host:port", given.flag, given.address)
		}
	}
	var err error
	if cfg.Namespaces, err = readNamespaces(f.namespaces); err != nil {
		return cfg, err
	}
	cfg.Page.FrameAncestors = listOf(f.frameAncestors)
	if cfg.Dashboards, err = f.dashboards.read(); err != nil {
		return cfg, err
	}
	if cfg.Identity, err = access.ReadIdentity(f.identity); err != nil {
		return cfg, err
	}
	cfg.SignIn, err = f.signIn.config(f.dashboards, cfg.Identity)
	return cfg, err
}

// listOf returns each entry of a list once.
func listOf(list string) []string {
	var all []string
	for entry := range strings.SplitSeq(list, ",") {
		if entry = strings.TrimSpace(entry); entry != "" && !slices.Contains(all, entry) {
			all = append(all, entry)
		}
	}
	return all
}

// readNamespaces returns each namespace of a list once.
func readNamespaces(list string) ([]string, error) {
	all := listOf(list)
	for _, name := range all {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return nil, fmt.Errorf("read --watch-namespaces: %q is no name of a namespace: %s", name, strings.Join(problems, "; "))
		}
	}
	if list != "" && len(all) == 0 {
		return nil, fmt.Errorf("read --watch-namespaces: %q names none; leave the flag out to watch all", list)
	}
	return all, nil
}
