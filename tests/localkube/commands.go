package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/cluster"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/deps"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/plan"
)

func upCommand(o *options) *cobra.Command {
	var w cluster.Wanted
	var controlPlaneOnly bool
	var families string
	c := &cobra.Command{
		Use:   "up",
		Short: "Bring an instance up, or start what has died of it; prints the path of its kubeconfig",
		Args:  cobra.NoArgs,
		RunE: o.with(func(ctx context.Context, c *cluster.Cluster, _ []string) error {
			if controlPlaneOnly {
				w.Nodes = 0
			}
			var err error
			if w.IPFamilies, err = plan.NewFamilies(families); err != nil {
				return err
			}
			if err := c.Up(ctx, w); err != nil {
				return err
			}
			fmt.Println(c.Instance.Kubeconfig())
			return nil
		}),
	}
	c.Flags().IntVar(&w.Nodes, "nodes", 2, "number of nodes")
	c.Flags().BoolVar(&controlPlaneOnly, "control-plane-only", false, "etcd, API server, controller manager and scheduler, no nodes")
	c.Flags().IntVar(&w.GPUs, "gpus", 0, "fake devices on each node: as many whole GPUs, MIG slices and shared GPUs")
	c.Flags().BoolVar(&w.PodGroups, "pod-groups", false, "Kubernetes' own gang scheduling: the alpha API of PodGroups, and the scheduler's gates")
	c.Flags().StringVar(&families, "ip-families", string(plan.IPv4), "address families of nodes, pods and Services: ipv4, ipv6, or both, the first one first")
	c.Flags().StringArrayVar(&w.Images, "image", nil, "image archive that all nodes have; may be repeated")
	c.MarkFlagsMutuallyExclusive("nodes", "control-plane-only")
	return c
}

func downCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Remove an instance with everything that belongs to it",
		Args:  cobra.NoArgs,
		RunE: o.with(func(_ context.Context, c *cluster.Cluster, _ []string) error {
			return c.Down()
		}),
	}
}

func loadCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "load ARCHIVE...",
		Short: "Load image archives into all nodes",
		Args:  cobra.MinimumNArgs(1),
		RunE: o.with(func(ctx context.Context, c *cluster.Cluster, args []string) error {
			return c.Load(ctx, args)
		}),
	}
}

func statusCommand(o *options) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "status",
		Short: "Say what an instance is made of and whether it runs",
		Args:  cobra.NoArgs,
		RunE: o.with(func(_ context.Context, c *cluster.Cluster, _ []string) error {
			s, err := c.Status()
			if err != nil {
				return err
			}
			if output == "json" {
				e := json.NewEncoder(os.Stdout)
				e.SetIndent("", "  ")
				return e.Encode(s)
			}
			printStatus(s)
			return nil
		}),
	}
	c.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return c
}

func printStatus(s cluster.Status) {
	fmt.Printf("instance    %s is %s\n", s.Name, s.State)
	if s.Checkout != "" {
		fmt.Printf("checkout    %s\n", s.Checkout)
	}
	fmt.Printf("kubeconfig  %s\nkubectl     %s\naudit log   %s\nlogs        %s\ncpu stat    %s\n",
		s.Kubeconfig, s.Kubectl, s.AuditLog, s.Logs, s.CPUStat)
	for _, f := range s.Families {
		fmt.Printf("%-11s nodes %s, pods %s, services %s; pods reach this host at %s\n", f.Family, f.Network, f.Pods, f.Services, f.HostIP)
	}
	print := func(name string, m cluster.MemberStatus) {
		fmt.Printf("%-11s %s  %s %s\n", name, m.IP, m.State, strings.Join(m.Dead, " "))
	}
	print("control", s.ControlPlane)
	for _, n := range s.Nodes {
		print(n.Name, n.MemberStatus)
	}
}

func kubeconfigCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the path of an instance's kubeconfig",
		Args:  cobra.NoArgs,
		RunE: o.with(func(_ context.Context, c *cluster.Cluster, _ []string) error {
			if _, err := c.Status(); err != nil {
				return err
			}
			fmt.Println(c.Instance.Kubeconfig())
			return nil
		}),
	}
}

func nodeCommand(o *options) *cobra.Command {
	c := &cobra.Command{Use: "node", Short: "Do to a node what happens to nodes"}
	verb := func(use, short string, f func(ctx context.Context, c *cluster.Cluster, node string) error) {
		c.AddCommand(&cobra.Command{
			Use: use + " NODE", Short: short, Args: cobra.ExactArgs(1),
			RunE: o.with(func(ctx context.Context, c *cluster.Cluster, args []string) error { return f(ctx, c, args[0]) }),
		})
	}
	verb("stop", "Cut its power", func(_ context.Context, c *cluster.Cluster, node string) error { return c.Stop(node) })
	verb("start", "Boot it again", func(ctx context.Context, c *cluster.Cluster, node string) error { return c.Start(ctx, node) })
	verb("partition", "Cut it off from the network; it runs on", func(_ context.Context, c *cluster.Cluster, node string) error { return c.SetJoined(node, false) })
	verb("heal", "Join it to the network again", func(_ context.Context, c *cluster.Cluster, node string) error { return c.SetJoined(node, true) })
	return c
}

func buildCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "build",
		Short: "Build the programs that instances run; up does it when needed",
		Args:  cobra.NoArgs,
		RunE: o.with(func(ctx context.Context, c *cluster.Cluster, _ []string) error {
			p, err := c.Build(ctx)
			if err != nil {
				return err
			}
			fmt.Println(p.Kube)
			return nil
		}),
	}
}

func depsCommand() *cobra.Command {
	var install bool
	c := &cobra.Command{
		Use:   "deps",
		Short: "List the Debian packages that are needed and not installed",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			missing := deps.Missing(true)
			if !install || len(missing) == 0 {
				for _, name := range missing {
					fmt.Println(name)
				}
				return nil
			}
			fmt.Fprintln(os.Stderr, "installing with apt-get:", strings.Join(missing, " "))
			return deps.Install(cmd.Context(), os.Stderr, missing)
		},
	}
	c.Flags().BoolVar(&install, "install", false, "install them with apt-get")
	return c
}
