// Command archiver keeps the histories of clusters, until it is told to end.
//
// In: flags, and the pod's own service account. Credentials of the store come from the environment, as the cloud's libraries find
// them. Out: what history/archiver does, and a log to standard error.
//
// It only turns flags into an archiver.Config: nothing is decided here.
package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	_ "golang.org/x/crypto/x509roots/fallback" // public authorities: the image has no files but the programs
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"

	"github.com/heliostat-dev/heliostat/history/archiver"
	"github.com/heliostat-dev/heliostat/history/records"
)

// grace is how long the end may take. The pod has a little more.
const grace = 25 * time.Second

func main() {
	flags := define(flag.CommandLine)
	flag.Parse()
	if err := run(flags); err != nil {
		fmt.Fprintln(os.Stderr, "archiver:", err)
		os.Exit(1)
	}
}

// flags are the flags of the program.
type flags struct {
	config     archiver.Config
	namespaces string
	limits     map[string]*string
}

// names of flags whose values are quantities.
const (
	flagSpoolSize      = "spool-size"
	flagLimitCluster   = "limit-cluster"
	flagLimitNamespace = "limit-namespace"
	flagPodRate        = "pod-rate"
	flagNamespaceRate  = "namespace-rate"
)

func define(set *flag.FlagSet) *flags {
	f := &flags{limits: map[string]*string{}}
	c, keep := &f.config, &f.config.Retention
	set.StringVar(&c.Listen, "listen", ":8444", "host:port for collectors, the server for portals and the operator")
	set.StringVar(&c.MetricsListen, "metrics-listen", ":8080", "host:port for /metrics, /healthz and /readyz")
	set.StringVar(&c.Spool, "spool", "/var/lib/heliostat/spool", "the directory of the volume where bytes wait for their pack")
	set.StringVar(&c.StoreURL, "store-url", "", "the bucket of archives: s3://, gs:// or azblob://")
	set.StringVar(&c.Claim, "claim", "", "the directory of a volume claim for archives, in place of a bucket")
	set.StringVar(&c.Certificate, "certificate", "", "the file with the certificate that is shown to callers, and its chain")
	set.StringVar(&c.Key, "key", "", "the file with the key of that certificate")
	set.StringVar(&c.Authorities, "authorities", "",
		"the file with the certificates of the authorities that sign those of the server for portals and of the operator")
	set.StringVar(&c.Namespace, "namespace", "", "the namespace of the release, where the Lease is")
	set.StringVar(&c.LeaseName, "lease-name", "heliostat-archiver", "the name of the Lease that the replica has that writes records and retention")
	set.StringVar(&c.Pod, "pod", "", "the name of this pod, as a StatefulSet gives it. By default that of the host")
	set.DurationVar(&keep.KeepFor, "keep-for", 720*time.Hour, "how long a file is kept after its last byte, where an object does not have a time of its own")
	set.DurationVar(&keep.MaxKeepFor, "max-keep-for", 8760*time.Hour, "the longest such time that an object can have")
	set.DurationVar(&keep.AfterNamespace, "after-namespace", 168*time.Hour, "how long archives outlive their namespace. 0 is no limit")
	set.IntVar(&keep.NamespaceObjects, "limit-objects", 20_000, "how many records a namespace has at most. 0 is no limit")
	set.StringVar(&f.namespaces, "watch-namespaces", "", "the namespaces of whose objects records are kept, with commas. By default all")
	for name, one := range map[string][2]string{
		flagSpoolSize:      {"20Gi", "how many bytes of the spool's volume may be used"},
		flagLimitCluster:   {"20Gi", "how many bytes the archive of a cluster has at most. 0 is no limit"},
		flagLimitNamespace: {"200Gi", "how many bytes the archives of a namespace have at most. 0 is no limit"},
		flagPodRate:        {"4Mi", "how many bytes a second a pod may send. 0 is no limit"},
		flagNamespaceRate:  {"64Mi", "how many bytes a second the pods of a namespace may send. 0 is no limit"},
	} {
		f.limits[name] = set.String(name, one[0], one[1])
	}
	return f
}

func run(f *flags) error {
	cfg, err := f.complete()
	if err != nil {
		return err
	}
	if cfg.Kubernetes, err = rest.InClusterConfig(); err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	return archiver.Run(ctx, cfg)
}

// complete returns the Config of the flags.
func (f *flags) complete() (archiver.Config, error) {
	cfg := f.config
	if cfg.Certificate == "" || cfg.Key == "" || cfg.Authorities == "" || cfg.Namespace == "" {
		return cfg, errors.New("--certificate, --key, --authorities and --namespace are needed")
	}
	for name, to := range map[string]*int64{
		flagSpoolSize: &cfg.SpoolBytes, flagLimitCluster: &cfg.Retention.ClusterBytes, flagLimitNamespace: &cfg.Retention.NamespaceBytes,
		flagPodRate: &cfg.PodRate, flagNamespaceRate: &cfg.NamespaceRate,
	} {
		quantity, err := resource.ParseQuantity(*f.limits[name])
		if err != nil || quantity.Value() < 0 {
			return cfg, fmt.Errorf("read --%s %q: it must be a quantity such as 4Mi", name, *f.limits[name])
		}
		*to = quantity.Value()
	}
	if cfg.SpoolBytes == 0 {
		return cfg, fmt.Errorf("--%s must be above 0", flagSpoolSize)
	}
	if f.namespaces != "" {
		cfg.WatchNamespaces = strings.Split(f.namespaces, ",")
	}
	if cfg.Pod == "" {
		host, err := os.Hostname()
		if err != nil {
			return cfg, fmt.Errorf("find the name of the pod: %w", err)
		}
		cfg.Pod = host
	}
	cfg.Memory, cfg.Grace, cfg.Records = debug.SetMemoryLimit(-1), grace, openRecords
	cfg.Now, cfg.Log = time.Now, slog.New(slog.NewJSONHandler(os.Stderr, nil))
	return cfg, nil
}

// openRecords opens the records on the volume of the spool.
func openRecords(needs archiver.Needs) (archiver.Records, error) {
	var first [4]byte
	if _, err := rand.Read(first[:]); err != nil {
		return nil, fmt.Errorf("draw a number: %w", err)
	}
	cfg := needs.Config
	return records.Open(records.Settings{
		Directory: cfg.Spool, Store: needs.Store, Replica: needs.Replica, First: uint64(binary.BigEndian.Uint32(first[:])) << 20,
		KeepFor: cfg.Retention.KeepFor, MaxKeepFor: cfg.Retention.MaxKeepFor, AfterNamespace: cfg.Retention.AfterNamespace, Objects: cfg.Retention.NamespaceObjects,
		Namespaces: cfg.WatchNamespaces, Kubernetes: cfg.Kubernetes, IsWriter: needs.IsWriter, Now: cfg.Now, Log: cfg.Log,
	})
}
