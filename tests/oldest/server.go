// Package oldest serves the CRDs as the oldest Kubernetes does that the chart supports.
//
// In: a directory for etcd's files. Out: a client configuration of the part of that Kubernetes' API server that keeps custom
// resources, with etcd, both in this process. The version is that of the libraries in go.mod, and the chart's kubeVersion is
// the same. Built-in kinds, admission policies and namespaces are not there, and everybody may do everything.
//
// It must never listen beyond loopback.
package oldest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
)

// nowhere is a kubeconfig of an API server that nobody asks: the options want one.
const nowhere = `{"apiVersion":"v1","kind":"Config","current-context":"none","clusters":[{"name":"none","cluster":{"server":"http://127.0.0.1:1"}}],` +
	`"contexts":[{"name":"none","context":{"cluster":"none","user":"none"}}],"users":[{"name":"none","user":{}}]}`

// Serve starts etcd and the API server, with their files in a directory. They end with the context.
func Serve(ctx context.Context, dir string) (*rest.Config, error) {
	store, err := startEtcd(ctx, filepath.Join(dir, "etcd"))
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(config, []byte(nowhere), 0o600); err != nil {
		return nil, fmt.Errorf("write kubeconfig: %w", err)
	}
	flags := pflag.NewFlagSet("server", pflag.ContinueOnError)
	given := options.NewCustomResourceDefinitionsServerOptions(io.Discard, io.Discard)
	given.AddFlags(flags)
	secure := given.RecommendedOptions.SecureServing
	if secure.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	secure.BindPort = secure.Listener.Addr().(*net.TCPAddr).Port
	secure.ServerCert.CertDirectory = dir
	if err := flags.Parse([]string{
		"--etcd-servers=" + store, "--kubeconfig=" + config, "--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config,
		"--authentication-skip-lookup", "--enable-priority-and-fairness=false", // which would ask the API server of built-in kinds
		"--disable-admission-plugins=NamespaceLifecycle,MutatingAdmissionWebhook,ValidatingAdmissionWebhook,ValidatingAdmissionPolicy",
	}); err != nil {
		return nil, fmt.Errorf("set the API server's options: %w", err)
	}
	return start(ctx, given)
}

// start runs the API server in the background.
func start(ctx context.Context, given *options.CustomResourceDefinitionsServerOptions) (*rest.Config, error) {
	if err := given.Complete(); err != nil {
		return nil, fmt.Errorf("complete the API server's options: %w", err)
	}
	if err := given.Validate(); err != nil {
		return nil, fmt.Errorf("validate the API server's options: %w", err)
	}
	config, err := given.Config()
	if err != nil {
		return nil, fmt.Errorf("configure the API server: %w", err)
	}
	server, err := config.Complete().New(genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("make the API server: %w", err)
	}
	go func() { _ = server.GenericAPIServer.PrepareRun().RunWithContext(ctx) }() // who asks it is told where it has ended
	return server.GenericAPIServer.LoopbackClientConfig, nil
}

// startEtcd starts an etcd of one member and returns its address.
func startEtcd(ctx context.Context, dir string) (string, error) {
	config := embed.NewConfig()
	config.Dir, config.LogLevel, config.UnsafeNoFsync = dir, "error", true
	free := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{free}, []url.URL{free}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{free}, []url.URL{free}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return "", fmt.Errorf("start etcd: %w", err)
	}
	go func() {
		<-ctx.Done()
		etcd.Close()
	}()
	select {
	case <-etcd.Server.ReadyNotify():
		return "http://" + etcd.Clients[0].Addr().String(), nil
	case err := <-etcd.Err():
		return "", fmt.Errorf("start etcd: %w", err)
	case <-ctx.Done():
		return "", fmt.Errorf("start etcd: %w", ctx.Err())
	}
}
