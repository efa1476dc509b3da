// Command kueue is Kueue for tests: its own controllers, scheduler and webhooks, on the API server that KUBECONFIG names.
//
// In: the directory of Kueue's module, from which it installs CRDs and webhooks. Out: "ready" on standard output, and then
// Kueue at work until it is told to end, when it takes the webhooks away again.
//
// It replaces cmd/kueue of that module, which gets its certificates through a kubelet. It must never change what Kueue
// decides, and it leaves out the integrations with jobs of others.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	configapi "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueuev1beta1 "sigs.k8s.io/kueue/apis/kueue/v1beta1"
	kueuev1beta2 "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/constants"
	"sigs.k8s.io/kueue/pkg/controller/core"
	"sigs.k8s.io/kueue/pkg/controller/core/indexer"
	"sigs.k8s.io/kueue/pkg/scheduler"
	"sigs.k8s.io/kueue/pkg/scheduler/preemption/expectations"
	"sigs.k8s.io/kueue/pkg/webhooks"
	"sigs.k8s.io/yaml"
)

// installWithin is how long a busy API server may take until it serves the kinds of Kueue.
const installWithin = 2 * time.Minute

func main() {
	module := flag.String("module", "", "directory of the module sigs.k8s.io/kueue")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, *module); err != nil {
		fmt.Fprintln(os.Stderr, "kueue:", err)
		os.Exit(1)
	}
}

// kinds are those that Kueue's core reads and writes.
func kinds() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, kueuev1beta1.AddToScheme, kueuev1beta2.AddToScheme, configapi.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build the scheme: %w", err)
		}
	}
	return scheme, nil
}

func run(ctx context.Context, module string) error {
	ctrl.SetLogger(zap.New())
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.QPS = -1
	scheme, err := kinds()
	if err != nil {
		return err
	}
	hooks, err := webhooksOf(filepath.Join(module, "config/components/webhook/manifests.yaml"))
	if err != nil {
		return err
	}
	if hooks.LocalServingHost, err = addressTowards(ctx, config.Host); err != nil {
		return err
	}
	hooks.MaxTime = installWithin
	env := &envtest.Environment{
		Config: config, UseExistingCluster: new(true), WebhookInstallOptions: hooks,
		CRDInstallOptions: envtest.CRDInstallOptions{
			Scheme: scheme, Paths: []string{filepath.Join(module, "config/components/crd/bases")}, MaxTime: installWithin,
		},
	}
	if _, err := env.Start(); err != nil {
		return fmt.Errorf("install CRDs and webhooks: %w", err)
	}
	defer func() { _ = env.WebhookInstallOptions.Cleanup() }() // the next start replaces what is left
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: env.WebhookInstallOptions.LocalServingHost, Port: env.WebhookInstallOptions.LocalServingPort,
			CertDir: env.WebhookInstallOptions.LocalServingCertDir,
		}),
	})
	if err != nil {
		return fmt.Errorf("build the manager: %w", err)
	}
	defer func() { _ = removeHooks(context.WithoutCancel(ctx), manager.GetClient(), env.WebhookInstallOptions) }()
	if err := assemble(ctx, manager); err != nil {
		return err
	}
	go func() {
		if manager.GetCache().WaitForCacheSync(ctx) {
			fmt.Println("ready")
		}
	}()
	return manager.Start(ctx)
}

// addressTowards returns the address of this machine at which the API server can reach it.
func addressTowards(ctx context.Context, server string) (string, error) {
	at, err := url.Parse(server)
	if err != nil {
		return "", fmt.Errorf("read the API server's address: %w", err)
	}
	talk, err := (&net.Dialer{}).DialContext(ctx, "udp", at.Host)
	if err != nil {
		return "", fmt.Errorf("find the way to the API server: %w", err)
	}
	defer func() { _ = talk.Close() }() // nothing was sent
	host, _, err := net.SplitHostPort(talk.LocalAddr().String())
	return host, err
}

// assemble adds what Kueue's own program adds for Workloads.
func assemble(ctx context.Context, manager ctrl.Manager) error {
	if err := indexer.Setup(ctx, manager.GetFieldIndexer()); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	requeuer := qcache.NewRequeuer()
	if err := manager.Add(requeuer); err != nil {
		return fmt.Errorf("add the requeuer: %w", err)
	}
	cache, expected := schdcache.New(manager.GetClient()), expectations.New()
	queues := qcache.NewManager(manager.GetClient(), cache, requeuer, qcache.WithPreemptionExpectations(expected))
	configuration := &configapi.Configuration{}
	manager.GetScheme().Default(configuration)
	if failed, err := core.SetupControllers(manager, queues, cache, configuration, nil, expected, nil); err != nil {
		return fmt.Errorf("add controller %s: %w", failed, err)
	}
	if failed, err := webhooks.Setup(manager, nil); err != nil {
		return fmt.Errorf("add webhook %s: %w", failed, err)
	}
	go queues.CleanUpOnContext(ctx)
	go cache.CleanUpOnContext(ctx)
	admits := scheduler.New(queues, cache, manager.GetClient(), manager.GetEventRecorderFor(constants.AdmissionName),
		scheduler.WithPreemptionExpectations(expected))
	if err := manager.Add(admits); err != nil {
		return fmt.Errorf("add the scheduler: %w", err)
	}
	return nil
}

// webhooksOf are those on Kueue's own kinds.
func webhooksOf(path string) (envtest.WebhookInstallOptions, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return envtest.WebhookInstallOptions{}, fmt.Errorf("read the webhooks: %w", err)
	}
	var options envtest.WebhookInstallOptions
	for _, document := range documents(text) {
		mutating, validating := &admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{}
		if err := yaml.Unmarshal(document, mutating); err != nil {
			return options, fmt.Errorf("read the webhooks: %w", err)
		}
		if mutating.Kind == "MutatingWebhookConfiguration" {
			mutating.Name = "kueue-for-tests"
			mutating.Webhooks = slices.DeleteFunc(mutating.Webhooks, func(hook admissionv1.MutatingWebhook) bool { return !isOwn(hook.Rules) })
			options.MutatingWebhooks = append(options.MutatingWebhooks, mutating)
			continue
		}
		if err := yaml.Unmarshal(document, validating); err != nil {
			return options, fmt.Errorf("read the webhooks: %w", err)
		}
		validating.Name = "kueue-for-tests"
		validating.Webhooks = slices.DeleteFunc(validating.Webhooks, func(hook admissionv1.ValidatingWebhook) bool { return !isOwn(hook.Rules) })
		options.ValidatingWebhooks = append(options.ValidatingWebhooks, validating)
	}
	return options, nil
}

func isOwn(rules []admissionv1.RuleWithOperations) bool {
	return len(rules) > 0 && slices.Equal(rules[0].APIGroups, []string{kueuev1beta2.GroupVersion.Group})
}

// documents are those of a YAML file.
func documents(text []byte) [][]byte {
	var all [][]byte
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		all = append(all, document)
	}
	return all
}

// removeHooks takes the webhooks away, which nobody answers any more.
func removeHooks(ctx context.Context, to client.Client, options envtest.WebhookInstallOptions) error {
	for _, hook := range options.MutatingWebhooks {
		if err := client.IgnoreNotFound(to.Delete(ctx, hook)); err != nil {
			return fmt.Errorf("delete the webhooks: %w", err)
		}
	}
	for _, hook := range options.ValidatingWebhooks {
		if err := client.IgnoreNotFound(to.Delete(ctx, hook)); err != nil {
			return fmt.Errorf("delete the webhooks: %w", err)
		}
	}
	return nil
}
