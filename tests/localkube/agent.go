package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/devices"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/netpol"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/plan"
)

// kubeletDir is every node's, in its own mount namespace.
const kubeletDir = "/var/lib/kubelet"

// agentCommand runs in a node's namespaces, started by up: it enforces network
// policies and offers fake devices.
func agentCommand() *cobra.Command {
	var node, kubeconfig, families string
	var gpus int
	c := &cobra.Command{
		Use:    "agent",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return fmt.Errorf("read kubeconfig: %w", err)
			}
			log := slog.New(slog.NewTextHandler(os.Stderr, nil))
			group, ctx := errgroup.WithContext(cmd.Context())
			group.Go(func() error {
				return netpol.Run(ctx, netpol.Config{Node: node, Families: plan.Families(families).List(), REST: config, Log: log})
			})
			if gpus > 0 {
				group.Go(func() error { return offer(ctx, gpus, log) })
			}
			return group.Wait()
		},
	}
	c.Flags().StringVar(&node, "node", "", "name of the node")
	c.Flags().StringVar(&kubeconfig, "kubeconfig", "", "credentials that may watch pods, namespaces and network policies")
	c.Flags().StringVar(&families, "ip-families", "", "those of the instance")
	c.Flags().IntVar(&gpus, "gpus", 0, "number of devices of each kind")
	return c
}

// offer offers one resource of each sort that users name.
func offer(ctx context.Context, count int, log *slog.Logger) error {
	return devices.Run(ctx, devices.Config{
		KubeletDir: kubeletDir,
		Resources: map[string]int{
			"nvidia.com/gpu":        count,
			"nvidia.com/mig-1g.5gb": count,
			"nvidia.com/gpu.shared": count,
		},
		Log: log,
	})
}
