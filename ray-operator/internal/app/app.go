// Package app puts the operator together: scheme, caches, indexes, controllers.
//
// In: a Config, filled from flags by cmd/operator. Out: a manager that runs until its
// context ends. Every setting enters here and is passed on as a value; nothing below
// reads a flag or the environment.
package app

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	scaleclient "github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/client"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/wire"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/controlstore"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/egress"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/job"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kueue"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/jobs"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/nodes"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/servercert"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/sweep"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/turns"
)

// Name is the operator's name: its user agent, and the reporter of its events.
const Name = "heliostat-operator"

// endWithin is how long work that was begun may go on after the operator was told to end;
// a pod's default grace is longer.
const endWithin = 8 * time.Second

// Config is what can be set about the operator.
type Config struct {
	// REST is how to reach the API server.
	REST *rest.Config
	// MetricsAddress and HealthAddress are host:port to listen on; "0" turns off.
	MetricsAddress, HealthAddress string
	// MeasuredClusters is how many clusters have series of their own in the metrics.
	MeasuredClusters int
	// Workers is how many objects of one kind in one namespace are reconciled at once.
	Workers int
	// Resync is the interval at which every cluster is reconciled even without changes.
	Resync time.Duration
	// Namespaces are those whose objects the operator reconciles; none is all.
	Namespaces []string
	// WatchNodes reports whether nodes may be watched. Without it nobody sees that a node is
	// going before its pods are.
	WatchNodes bool
	// Namespace and Labels tell where the operator's own pods are and which labels they
	// have, for rules that let the operator in.
	Namespace string
	Labels    map[string]string
	// ServerLabels are those of the pods of the server for portals, in the same namespace; none lets no server in.
	ServerLabels map[string]string
	// ServerCertificate is the Secret beside the operator with the certificate of that server, which the operator keeps, and
	// ServerHosts are those that it is for; none keeps none.
	ServerCertificate string
	ServerHosts       servercert.Hosts
	// ArchiverLabels are those of the pods of the archiver of history, in the same namespace. HistoryCertificates is how the names of
	// the Secrets beside the operator with its certificates begin, which the operator keeps, and HistoryHosts are those that they are for.
	ArchiverLabels      map[string]string
	HistoryCertificates string
	HistoryHosts        servercert.Hosts
	// Pod is the name of the operator's own pod, empty outside of Kubernetes.
	Pod string
	// Kueue has clusters and jobs with the label of a queue wait for Kueue's admission. Its kinds must be installed.
	Kueue bool
	// Image is that of the operator's programs in pods of clusters.
	Image pod.OperatorImage
	// Mesh is the service mesh that pods may be in.
	Mesh desired.Mesh
	// Installed is what lies under the podDefaults of every cluster, and under its sizes of the operator's containers.
	Installed pod.Installed
	// LocalAddresses lets heads and control stores be at loopback addresses and at those of the operator's own machine.
	LocalAddresses bool
	// StoreAddresses are the only addresses at which a user's control store may be; none is all but those that egress refuses.
	StoreAddresses []netip.Prefix
	// Election is how operators agree on one that works; nil is without: there is one.
	Election *Election
	// assignsUsers is whether the platform gives pods their users: New finds it out.
	assignsUsers bool
}

// Scheme knows the kinds that the operator reads and writes.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme, kueue.AddToScheme, gatewayv1.Install} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build the scheme: %w", err)
		}
	}
	return scheme, nil
}

// New builds the manager with its controllers. It reaches the API server to learn its
// resources, and fails if it cannot.
func New(cfg Config) (ctrl.Manager, error) {
	cfg.REST.UserAgent = Name
	// The API server's own fairness limits us; a client-side limit only adds delay.
	cfg.REST.QPS = -1
	options, permit, err := cfg.options()
	if err != nil {
		return nil, err
	}
	manager, err := ctrl.NewManager(cfg.REST, options)
	if err != nil {
		return nil, fmt.Errorf("build the manager: %w", err)
	}
	for _, probe := range []func(string, healthz.Checker) error{manager.AddHealthzCheck, manager.AddReadyzCheck} {
		if err := probe("ping", healthz.Ping); err != nil {
			return nil, fmt.Errorf("add a health check: %w", err)
		}
	}
	if err := cfg.requireKueue(manager.GetRESTMapper()); err != nil {
		return nil, err
	}
	if cfg.assignsUsers, err = assignsUsers(manager.GetRESTMapper()); err != nil {
		return nil, err
	}
	measured, err := telemetry.NewMetrics(metrics.Registry)
	if err != nil {
		return nil, err
	}
	if err := telemetry.NewFleet(metrics.Registry, manager.GetClient(), leading(manager), clock.RealClock{}, cfg.MeasuredClusters); err != nil {
		return nil, err
	}
	if err := indexed(context.Background(), manager.GetFieldIndexer()); err != nil {
		return nil, err
	}
	if err := warmed(context.Background(), manager.GetCache(), cfg); err != nil {
		return nil, err
	}
	rules, err := egress.Discover(context.Background(), cfg.REST, cfg.LocalAddresses)
	if err != nil {
		return nil, err
	}
	stores := storeAccess{
		client:      controlstore.Client{Connect: rules.Connect, ConnectGiven: rules.Narrowed(cfg.StoreAddresses).Connect, Permit: permit},
		turns:       turns.New(storesAtOnce, storesOfNamespace),
		credentials: &sweep.Credentials{},
	}
	heads := headclient.Options{Connect: rules.Connect, Permit: permit, Memory: headclient.NewMemory(answersAtOnce)}
	if err := addClusters(manager, cfg, measured, heads, stores); err != nil {
		return nil, err
	}
	if err := sweeps(manager, cfg, measured, stores); err != nil {
		return nil, err
	}
	if err := certificates(manager, cfg, measured); err != nil {
		return nil, err
	}
	return manager, addWorkloads(manager, cfg, measured, heads)
}

// addWorkloads adds the controllers of what runs on clusters: jobs, their schedules, and services.
func addWorkloads(manager ctrl.Manager, cfg Config, measured *telemetry.Metrics, heads headclient.Options) error {
	if err := addJobs(manager, cfg, measured, heads); err != nil {
		return err
	}
	if err := addSchedules(manager, cfg, measured); err != nil {
		return err
	}
	return addServices(manager, cfg, measured, heads)
}

// options are those of the manager, with what permits acts on the outside; nil permits all.
func (cfg Config) options() (ctrl.Options, func() error, error) {
	scheme, err := Scheme()
	if err != nil {
		return ctrl.Options{}, nil, err
	}
	cached, err := caches(cfg)
	if err != nil {
		return ctrl.Options{}, nil, err
	}
	end := endWithin
	options := ctrl.Options{
		Scheme:                  scheme,
		Metrics:                 server.Options{BindAddress: cfg.MetricsAddress},
		HealthProbeBindAddress:  cfg.HealthAddress,
		GracefulShutdownTimeout: &end,
		Cache:                   cached,
		Client:                  client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		Controller:              config.Controller{ReconciliationTimeout: time.Minute},
	}
	if cfg.Election == nil {
		return options, nil, nil
	}
	permit, err := cfg.Election.join(cfg.REST, &options)
	return options, permit, err
}

// leading reports whether this operator is the one that works.
func leading(manager ctrl.Manager) func() bool {
	return func() bool {
		select {
		case <-manager.Elected():
			return true
		default:
			return false
		}
	}
}

// How many questions and sweeps talk to control stores at once, in all and of one namespace. A question takes up to 10 s
// where a server hangs; what it takes of memory is bounded by controlstore.
const (
	storesAtOnce      = 48
	storesOfNamespace = 8
)

// answersAtOnce is how many bytes large answers of heads may take together: an eighth of what the chart gives the operator.
const answersAtOnce = 64 << 20

// storeAccess is how control stores are reached, in whose turn, and with what.
type storeAccess struct {
	client      controlstore.Client
	turns       *turns.Turns
	credentials *sweep.Credentials
}

// visit asks a store for a cluster.
func (a storeAccess) visit(server controlstore.Server, claim controlstore.Claim) controlstore.Visitor {
	return a.client.Visit(server, claim)
}

// site is what clusters and services are told of the installation.
func site(cfg Config) desired.Site {
	return desired.Site{
		OperatorNamespace: cfg.Namespace, OperatorLabels: cfg.Labels, ServerLabels: cfg.ServerLabels, ArchiverLabels: cfg.ArchiverLabels, Image: cfg.Image,
		AssignsUsers: cfg.assignsUsers, Mesh: cfg.Mesh, Installed: cfg.Installed,
	}
}

// addClusters adds the controller of ComputeClusters.
func addClusters(manager ctrl.Manager, cfg Config, measured *telemetry.Metrics, dial headclient.Options, access storeAccess) error {
	now := clock.RealClock{}
	heads := nodes.New(nodes.DialBy(dial), now)
	if err := manager.Add(heads); err != nil {
		return fmt.Errorf("add what asks heads: %w", err)
	}
	scalers := scaleclient.New(now, wire.Dialer(dial.Connect), dial.Permit)
	if err := manager.Add(scalers); err != nil {
		return fmt.Errorf("add the streams to autoscalers: %w", err)
	}
	stores := controlstore.New(access.visit, access.turns, now)
	if err := manager.Add(stores); err != nil {
		return fmt.Errorf("add what asks control stores: %w", err)
	}
	kept, err := addHistory(manager, cfg, measured)
	if err != nil {
		return err
	}
	own, err := pending(manager, append(cluster.Children(), cfg.queued(&v1beta1.ComputeCluster{})...)...)
	if err != nil {
		return err
	}
	written := writer(manager, measured, own)
	reconciler := &cluster.Reconciler{
		Client:      manager.GetClient(),
		Live:        manager.GetAPIReader(),
		Writer:      written,
		Groups:      written,
		Queue:       keeperOf(manager, cfg, written),
		Heads:       heads,
		Scale:       scalers,
		Stores:      stores,
		Notes:       keeper(manager, cfg, measured),
		Credentials: access.credentials,
		Events:      telemetry.Recorder{Events: manager.GetEventRecorder(Name)},
		Metrics:     measured,
		Clock:       now,
		Site:        site(cfg),
		WatchNodes:  cfg.WatchNodes,
	}
	kept.tell(reconciler)
	build := ctrl.NewControllerManagedBy(manager).Named("computecluster").
		For(&v1beta1.ComputeCluster{}, builder.WithPredicates(notes(&reconciler.Deleted), notItsStatus(own)))
	woken := sources{manager.GetCache(), manager.GetCache(), nil}.ofClusters(cfg, heads, scalers, stores)
	if err := complete(build, kept.wakes(woken), kept.await(own.Rest(reconciler)), workers{cfg.Workers, measured}); err != nil {
		return fmt.Errorf("add the controller of ComputeClusters: %w", err)
	}
	return nil
}

// addJobs adds the controller of ClusterJobs.
func addJobs(manager ctrl.Manager, cfg Config, measured *telemetry.Metrics, dial headclient.Options) error {
	now := clock.RealClock{}
	heads := jobs.New(jobs.DialBy(dial), job.Abandoned(manager.GetClient(), manager.GetAPIReader()), now)
	if err := manager.Add(heads); err != nil {
		return fmt.Errorf("add what asks heads about jobs: %w", err)
	}
	own, err := pending(manager, cfg.queued(&v1beta1.ClusterJob{}, &v1beta1.ComputeCluster{})...)
	if err != nil {
		return err
	}
	written := writer(manager, measured, own)
	reconciler := &job.Reconciler{
		Client:  manager.GetClient(),
		Live:    manager.GetAPIReader(),
		Writer:  written,
		Nodes:   readerOfNodes(manager, cfg),
		Queue:   keeperOf(manager, cfg, written),
		Runs:    heads,
		Events:  telemetry.Recorder{Events: manager.GetEventRecorder(Name)},
		Metrics: measured,
		Clock:   now,
	}
	known := newCensus()
	build := ctrl.NewControllerManagedBy(manager).Named("clusterjob").
		For(&v1beta1.ClusterJob{}, builder.WithPredicates(known.counts(), notItsStatus(own)))
	woken := sources{manager.GetCache(), manager.GetCache(), known}.ofJobs(&reconciler.Waiting, now, cfg, heads)
	if err := complete(build, woken, own.Rest(reconciler), workers{cfg.Workers, measured}); err != nil {
		return fmt.Errorf("add the controller of ClusterJobs: %w", err)
	}
	return nil
}

// pending returns what holds back passes of a controller until the cache shows the objects of these kinds as the passes
// before left them.
func pending(manager ctrl.Manager, kinds ...client.Object) (*kube.Pending, error) {
	own, err := kube.NewPending(manager.GetCache(), manager.GetScheme(), clock.RealClock{}, kinds...)
	if err != nil {
		return nil, fmt.Errorf("follow the operator's own writes: %w", err)
	}
	return own, nil
}

// writer returns what writes for a controller and is measured. Its passes wait for their own writes; without a controller
// nobody does, and own is nil.
func writer(manager ctrl.Manager, measured *telemetry.Metrics, own *kube.Pending) *kube.Writer {
	sparing := kube.Sparing(manager.GetClient(), manager.GetConfig(), manager.GetHTTPClient())
	metered := kube.Metered(sparing, clock.RealClock{}, measured.Wrote)
	if own != nil {
		metered = own.Client(metered)
	}
	return &kube.Writer{Client: metered, Live: manager.GetAPIReader()}
}
