// Command localkube makes a real Kubernetes on this machine, without Docker:
// etcd and the control plane, and nodes with kubelet, containerd and kube-proxy,
// each in network and mount namespaces of its own. See README.md.
//
// In: what is wanted. Out: a kubeconfig. It must never leave anything behind
// when an instance is taken down, whatever was killed before.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/binaries"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/cluster"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/instance"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/progress"
)

const defaultBase = "/var/lib/localkube"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := root().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "localkube:", err)
		os.Exit(1)
	}
}

// options are those that every command on an instance has.
type options struct{ name, source string }

func root() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:           "localkube",
		Short:         "A real Kubernetes on this machine, without Docker",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	c.PersistentFlags().StringVar(&o.name, "name", "heliostat", "name of the instance")
	c.PersistentFlags().StringVar(&o.source, "source", "", "directory of the modules to build from (default: found from here upwards)")
	c.AddCommand(upCommand(&o), downCommand(&o), loadCommand(&o), statusCommand(&o), kubeconfigCommand(&o),
		nodeCommand(&o), buildCommand(&o), depsCommand(), agentCommand())
	return c
}

// cluster opens the instance that the options name.
func (o *options) cluster() (*cluster.Cluster, error) {
	base := os.Getenv("LOCALKUBE_DIR")
	if base == "" {
		base = defaultBase
	}
	i, err := instance.New(base, o.name)
	if err != nil {
		return nil, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("find the cache directory: %w: set HOME or XDG_CACHE_HOME", err)
	}
	return &cluster.Cluster{
		Instance: i, Source: o.source, Checkout: o.checkout(), Cache: filepath.Join(cache, "heliostat", "localkube"),
		Log: progress.New(os.Stderr, time.Now()),
	}, nil
}

// checkout returns the directory of the repository that the command is for, empty where it runs outside of any.
func (o *options) checkout() string {
	source := o.source
	if source == "" {
		var err error
		if source, err = binaries.FindSource(); err != nil {
			return ""
		}
	}
	source, err := filepath.Abs(source)
	if err != nil {
		return ""
	}
	if source, err = filepath.EvalSymlinks(source); err != nil { // one checkout, whichever way leads to it
		return ""
	}
	return filepath.Dir(filepath.Dir(source)) // it is tests/localkube there
}

// with makes a command's action of a function of the instance.
func (o *options) with(f func(ctx context.Context, c *cluster.Cluster, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := o.cluster()
		if err != nil {
			return err
		}
		return f(cmd.Context(), c, args)
	}
}
