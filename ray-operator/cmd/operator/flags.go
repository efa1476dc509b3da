package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/app"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/servercert"
)

// flags are those that need more than to be put into a Config.
type flags struct {
	cfg                 app.Config
	verbosity           int
	namespaces          string
	ownLabels, ofServer string
	serverHosts         string
	pullPolicy          string
	storeAddresses      string
	podDefaults, sizes  string
	meshPort            int
	meshProbes          string
	logFormat           string
	elect               bool
	election            app.Election
}

func define(set *flag.FlagSet) *flags {
	f := &flags{}
	set.StringVar(&f.cfg.MetricsAddress, "metrics-bind-address", ":8080", "host:port of the metrics endpoint, or 0 for none")
	set.StringVar(&f.cfg.HealthAddress, "health-probe-bind-address", ":8081", "host:port of /healthz and /readyz, or 0 for none")
	set.IntVar(&f.cfg.Workers, "workers", 10, "objects of one kind in one namespace that are reconciled at once; in all, twice as many workers run")
	set.DurationVar(&f.cfg.Resync, "resync", 10*time.Hour, "interval at which every cluster is reconciled even without changes")
	set.StringVar(&f.namespaces, "watch-namespaces", "", "comma-separated namespaces to reconcile; empty for all")
	set.BoolVar(&f.cfg.WatchNodes, "watch-nodes", true, "watch nodes, to replace workers before their node is removed; needs rights on the whole Kubernetes cluster")
	set.BoolVar(&f.cfg.Kueue, "kueue", false, "have clusters and jobs with the label kueue.x-k8s.io/queue-name wait for Kueue's admission; its CRDs must be installed")
	set.StringVar(&f.cfg.Namespace, "namespace", "", "namespace of the operator")
	set.StringVar(&f.cfg.Pod, "pod", "", "name of the operator's own pod, to detect that it ran out of memory; empty outside of Kubernetes")
	set.StringVar(&f.ownLabels, "operator-labels", "", "comma-separated labels (key=value) that select the operator's pods in NetworkPolicies")
	set.StringVar(&f.ofServer, "server-labels", "", "comma-separated labels (key=value) that select the server's pods in NetworkPolicies, which may reach the dashboards of heads; empty for none")
	set.StringVar(&f.cfg.ServerCertificate, "server-certificate", "", "Secret in the operator's namespace for the certificate authority and certificate of the server, which the operator renews; empty for none")
	set.StringVar(&f.serverHosts, "server-hosts", "", "comma-separated names and addresses of that certificate")
	set.StringVar(&f.cfg.Image.Image, "autoscaler-image", "", "image with the programs /autoscaler and /encryption, which run in pods of clusters with autoscaling, encryption or a managed Redis: the operator's own; empty for none")
	set.StringVar(&f.pullPolicy, "autoscaler-pull-policy", "", "pull policy of that image: Always, IfNotPresent or Never; empty for Kubernetes' default")
	set.StringVar(&f.podDefaults, "pod-defaults", "", "defaults for the podDefaults of every cluster, as JSON of that field; empty for none. Running pods keep the defaults of their creation")
	set.StringVar(&f.sizes, "sizes", "", "sizes of the operator's containers in pods of clusters that give none, as JSON with the keys autoscaling, encryption and managedRedis; empty for the operator's own. Running pods keep the sizes of their creation")
	set.IntVar(&f.meshPort, "mesh-tunnel-port", 0, "port at which the tunnels of a service mesh arrive in pods, such as 15008 with Istio's ambient mode: NetworkPolicies open it to the peers of other ports; 0 for none")
	set.StringVar(&f.meshProbes, "mesh-probes-from", "", "comma-separated address ranges from which a service mesh sends on the probes of kubelets, such as 169.254.7.127/32: NetworkPolicies let them in; empty for none")
	set.StringVar(&f.storeAddresses, "control-store-allow", "", "comma-separated address ranges allowed for Redis servers of users, such as 10.0.0.0/8; empty for all that the operator may connect to")
	set.BoolVar(&f.cfg.LocalAddresses, "allow-local-addresses", false, "allow heads and control stores at loopback addresses and at those of the operator's own machine, for an operator outside of Kubernetes")
	set.BoolVar(&f.elect, "leader-elect", false, "reconcile only while this operator holds a Lease, so that several can run")
	set.StringVar(&f.election.Namespace, "leader-election-namespace", "", "namespace of the Lease; by default the operator's own")
	set.StringVar(&f.election.Name, "leader-election-name", app.Name, "name of the Lease")
	set.IntVar(&f.cfg.MeasuredClusters, "measured-clusters", 0, "number of clusters, the oldest first, with their own series in the metrics: five each; 0 for none")
	set.StringVar(&f.logFormat, "log-format", formatJSON, "format of the log: json or text")
	set.IntVar(&f.verbosity, "v", 0, "verbosity of the log: 0 for changes, 1 for more")
	return f
}

// pullPolicies are those that Kubernetes knows, and none said.
var pullPolicies = []corev1.PullPolicy{"", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever}

// Forms of the log.
const (
	formatJSON = "json"
	formatText = "text"
)

// logger returns the log that goes to a writer, in the form and as verbose as the flags say.
func (f *flags) logger(to io.Writer) logr.Logger {
	readable := func(c *zapcore.EncoderConfig) { c.EncodeTime = zapcore.RFC3339TimeEncoder }
	encoder := zap.JSONEncoder(readable)
	if f.logFormat == formatText {
		encoder = zap.ConsoleEncoder(readable)
	}
	whole := zap.New(zap.Level(f.level()), zap.WriteTo(to), encoder)
	return whole.WithSink(lazySink{LogSink: whole.GetSink()})
}

func (f *flags) level() zapcore.Level { return zapcore.Level(-f.verbosity) }

// config checks what was given and puts it together.
func (f *flags) config() (app.Config, error) {
	cfg := f.cfg
	for name := range strings.SplitSeq(f.namespaces, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return cfg, fmt.Errorf("read --watch-namespaces: %q is no name of a namespace: %s", name, strings.Join(problems, "; "))
		}
		if !slices.Contains(cfg.Namespaces, name) {
			cfg.Namespaces = append(cfg.Namespaces, name)
		}
	}
	if f.namespaces != "" && len(cfg.Namespaces) == 0 {
		return cfg, fmt.Errorf("read --watch-namespaces: %q names none; leave the flag out to watch all", f.namespaces)
	}
	own, err := labels.ConvertSelectorToLabelsMap(f.ownLabels)
	if err != nil {
		return cfg, fmt.Errorf("read --operator-labels: %w: write key=value,key=value", err)
	}
	cfg.Labels = own
	if err := f.readServer(&cfg); err != nil {
		return cfg, err
	}
	cfg.Image.PullPolicy = corev1.PullPolicy(f.pullPolicy)
	if !slices.Contains(pullPolicies, cfg.Image.PullPolicy) {
		return cfg, fmt.Errorf("read --autoscaler-pull-policy: unknown value %q; use Always, IfNotPresent or Never", f.pullPolicy)
	}
	if err := f.readPods(&cfg); err != nil {
		return cfg, err
	}
	if err := f.readMesh(&cfg); err != nil {
		return cfg, err
	}
	if cfg.StoreAddresses, err = readRanges("control-store-allow", f.storeAddresses); err != nil {
		return cfg, err
	}
	if f.elect {
		cfg.Election = &app.Election{Namespace: cmp.Or(f.election.Namespace, cfg.Namespace), Name: f.election.Name}
	}
	return cfg, nil
}

// readRanges reads the address ranges that a flag lists.
func readRanges(name, list string) ([]netip.Prefix, error) {
	var ranges []netip.Prefix
	for text := range strings.SplitSeq(list, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		one, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("read --%s: %q is no range: write addresses like 10.0.0.0/8 or fd00::/8", name, text)
		}
		ranges = append(ranges, one.Masked())
	}
	return ranges, nil
}

// readMesh reads what was given about a service mesh.
func (f *flags) readMesh(into *app.Config) (err error) {
	if f.meshPort < 0 || f.meshPort > math.MaxUint16 {
		return fmt.Errorf("read --mesh-tunnel-port: %d is no port: write 1 to 65535, or 0 for none", f.meshPort)
	}
	into.Mesh.TunnelPort = int32(f.meshPort)
	into.Mesh.ProbesFrom, err = readRanges("mesh-probes-from", f.meshProbes)
	return err
}

// readPods reads what was given about all clusters' pods, and checks what was about the log and the metrics.
func (f *flags) readPods(into *app.Config) (err error) {
	if f.logFormat != formatJSON && f.logFormat != formatText {
		return fmt.Errorf("read --log-format: unknown value %q; use json or text", f.logFormat)
	}
	if n := f.cfg.MeasuredClusters; n < 0 {
		return fmt.Errorf("read --measured-clusters: %d is no number of clusters: write 0 or more", n)
	}
	if into.Installed.PodDefaults, err = readPodDefaults(f.podDefaults); err != nil {
		return err
	}
	into.Installed.Sizes, err = readSizes(f.sizes)
	return err
}

// readServer reads what was given about the server for portals.
func (f *flags) readServer(into *app.Config) error {
	ofServer, err := labels.ConvertSelectorToLabelsMap(f.ofServer)
	if err != nil {
		return fmt.Errorf("read --server-labels: %w: write key=value,key=value", err)
	}
	into.ServerLabels, into.ServerHosts = ofServer, servercert.ReadHosts(f.serverHosts)
	if into.ServerCertificate != "" && (into.Namespace == "" || len(into.ServerHosts.Names) == 0) {
		return errors.New("read --server-certificate: it needs --namespace, and a name in --server-hosts: give both")
	}
	return nil
}
