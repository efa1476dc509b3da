// Package cluster has the commands about clusters alone: up, scale, keep.
//
// In: the name of a cluster and its shape in flags. Out: a ComputeCluster that is new, resumed or changed, and how it comes
// up. What flags mean is a table that depends on nothing else.
//
// It must never change the shape of a cluster that is there but by scale: others may have written its spec.
package cluster

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/heliostat-dev/heliostat/apiserver/verbs"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/object"
	"github.com/heliostat-dev/heliostat/cli/outcome"
)

// Commands returns the commands of the package.
func Commands(c *console.Console) []*cobra.Command { return []*cobra.Command{up(c), scale(c), keep(c)} }

func scale(c *console.Console) *cobra.Command {
	command := &cobra.Command{
		Use:   "scale NAME [GROUP=]N…",
		Short: "Set the number of replicas of worker groups",
		Long: `Set the number of replicas of worker groups. The name of the group is optional for a cluster with one group. A cluster with
autoscaling follows demand: change minReplicas or maxReplicas instead.`,
		Example: "  heliostat scale dev 4\n  heliostat scale dev cpu=4 gpu=0 --dry-run=server",
		Args:    console.Arguments(2, -1, "NAME and GROUP=N"), ValidArgsFunction: object.Complete(c, kube.Cluster),
	}
	verb := object.NewVerb(c, command, "scaled", "has that many already")
	command.RunE = func(cmd *cobra.Command, args []string) error {
		if err := verb.Check(); err != nil {
			return err
		}
		target, err := kube.ParseTarget(args[0], kube.Cluster)
		if err != nil {
			return err
		}
		sizes, err := readSizes(args[1:])
		if err != nil {
			return err
		}
		objects, err := c.Connect()
		if err != nil {
			return err
		}
		for _, size := range sizes {
			found, err := objects.Read(cmd.Context(), target)
			if err != nil {
				return err
			}
			verb.Decide = func(object verbs.Object) (verbs.Change, error) { return verbs.Scale(object, size.group, size.replicas) }
			if err := verb.Do(cmd.Context(), objects, found); err != nil {
				return err
			}
		}
		return nil
	}
	return command
}

func keep(c *console.Console) *cobra.Command {
	command := &cobra.Command{
		Use:   "keep NAME --for DURATION",
		Short: "Pause the idle policy of a cluster for a while",
		Long: `Pause the idle policy of a cluster for up to seven days. The status of the cluster names the user.
Another call replaces the time; --for 0s ends the pause.`,
		Example: "  heliostat keep dev --for 8h\n  heliostat keep dev --for 0s",
		Args:    console.Arguments(1, 1, "NAME"), ValidArgsFunction: object.Complete(c, kube.Cluster),
	}
	verb := object.NewVerb(c, command, "", "has no idle policy that acts")
	var during time.Duration
	console.AddDuration(command.Flags(), &during, "for", "how long to pause it, such as 8h")
	command.RunE = func(cmd *cobra.Command, args []string) error {
		if err := verb.Check(); err != nil {
			return err
		}
		if !cmd.Flags().Changed("for") {
			return outcome.Errorf(outcome.Usage, "heliostat keep needs a time; give --for DURATION, such as --for 8h")
		}
		target, err := kube.ParseTarget(args[0], kube.Cluster)
		if err != nil {
			return err
		}
		objects, err := c.Connect()
		if err != nil {
			return err
		}
		found, err := objects.Read(cmd.Context(), target)
		if err != nil {
			return err
		}
		now := c.Clock.Now()
		if verb.Did = "kept no longer"; during > 0 {
			verb.Did = "kept until " + now.Add(during).UTC().Format(time.RFC3339)
		}
		verb.Decide = func(object verbs.Object) (verbs.Change, error) {
			return verbs.Keep(object, during, objects.UserName(cmd.Context()), now)
		}
		return verb.Do(cmd.Context(), objects, found)
	}
	return command
}

// size is how many replicas a group gets; the group is "" for the only one.
type size struct {
	group    string
	replicas int32
}

func readSizes(args []string) ([]size, error) {
	var all []size
	for _, arg := range args {
		group, number, hasGroup := strings.Cut(arg, "=")
		if !hasGroup {
			group, number = "", arg
		}
		replicas, err := strconv.ParseInt(number, 10, 32)
		if err != nil || replicas < 0 || hasGroup && group == "" {
			return nil, outcome.Errorf(outcome.Usage, "%q is no size of a group; write GROUP=N, such as cpu=4", arg)
		}
		all = append(all, size{group, int32(replicas)})
	}
	return all, nil
}
