// Command collector runs in each pod of a cluster whose outputs are kept, until it is told to end.
//
// In: flags, two variables, and the files with its token and the cluster's. Out: what history/collector does, and a log to standard
// error.
//
// It only turns flags into a collector.Config: nothing is decided here. It links no client of Kubernetes and no store.
package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/heliostat-dev/heliostat/history/collector"
	"github.com/heliostat-dev/heliostat/history/redact"
	"github.com/heliostat-dev/heliostat/history/wire"
)

// Variables of the container.
const (
	variableAuthority = "HELIOSTAT_HISTORY_AUTHORITY"
	variableRedact    = "HELIOSTAT_HISTORY_REDACT"
)

func main() {
	flags := define(flag.CommandLine)
	flag.Parse()
	if err := run(flags); err != nil {
		fmt.Fprintln(os.Stderr, "collector:", err)
		os.Exit(1)
	}
}

// flags are the flags of the program.
type flags struct{ directory, archivers, cluster, tokenFile, redactFile string }

func define(set *flag.FlagSet) *flags {
	f := &flags{}
	set.StringVar(&f.directory, "directory", "/tmp/ray", "the directory of Ray's sessions")
	set.StringVar(&f.archivers, "archivers", "", "the addresses of the archiver's replicas, each HOST:PORT, with commas")
	set.StringVar(&f.cluster, "cluster", "", "the UID of the cluster, all of whose pods prefer the same replica")
	set.StringVar(&f.tokenFile, "token-file", "", "the file with the token for the archiver, read anew for each stream")
	set.StringVar(&f.redactFile, "redact-file", "", "a file whose text is replaced in what is sent, such as the token of the cluster")
	return f
}

func run(f *flags) error {
	cfg, err := f.config()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	return collector.Run(ctx, cfg)
}

func (f *flags) config() (collector.Config, error) {
	if f.archivers == "" || f.tokenFile == "" {
		return collector.Config{}, errors.New("--archivers and --token-file are needed")
	}
	redactor, err := f.redactor()
	if err != nil {
		return collector.Config{}, err
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM([]byte(os.Getenv(variableAuthority))) {
		return collector.Config{}, fmt.Errorf("read %s: it has no certificate", variableAuthority)
	}
	options := append(wire.DialOptions(),
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS13})),
		grpc.WithPerRPCCredentials(token{f.tokenFile}))
	return collector.Config{
		Directory: f.directory, Archivers: strings.Split(f.archivers, ","), Cluster: f.cluster, Redactor: redactor,
		Dial:  func(address string) (*grpc.ClientConn, error) { return grpc.NewClient(address, options...) },
		Log:   slog.New(slog.NewJSONHandler(os.Stderr, nil)),
		Times: collector.DefaultTimes(), Now: time.Now,
	}, nil
}

// redactor returns what replaces the text of the file and the matches of the variable's expressions.
func (f *flags) redactor() (*redact.Redactor, error) {
	var texts, expressions []string
	if f.redactFile != "" {
		text, err := os.ReadFile(f.redactFile)
		if err != nil {
			return nil, fmt.Errorf("read what to replace: %w", err)
		}
		texts = append(texts, strings.TrimSpace(string(text)))
	}
	if err := json.Unmarshal([]byte(cmp.Or(os.Getenv(variableRedact), "[]")), &expressions); err != nil {
		return nil, fmt.Errorf("read %s: %w", variableRedact, err)
	}
	redactor, err := redact.New(texts, expressions)
	if err != nil {
		return nil, fmt.Errorf("read what to replace: %w", err)
	}
	return redactor, nil
}

// token gives each stream the token that the file has now.
type token struct{ file string }

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (t token) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	text, err := os.ReadFile(t.file)
	if err != nil {
		return nil, fmt.Errorf("read the token for the archiver: %w", err)
	}
	return map[string]string{"authorization": "Bearer " + strings.TrimSpace(string(text))}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (token) RequireTransportSecurity() bool { return true }
