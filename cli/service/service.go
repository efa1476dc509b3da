// Package service has the commands about services alone: requests, and the rollout of their versions.
//
// In: the name of a service. Out: its answer, how its next version comes on, which versions are kept, or the change back
// to one. What undo does is package verbs' decision, as in the server.
//
// It must never begin or end an upgrade because a command was interrupted.
package service

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/apiserver/verbs"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/object"
	"github.com/heliostat-dev/heliostat/cli/output"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Command returns the command with those below it.
func Command(c *console.Console) *cobra.Command {
	rollout := console.Group("rollout", "Follow, list and undo versions of a service")
	rollout.AddCommand(status(c), history(c), undo(c))
	command := console.Group("service", "Call services, follow and undo their upgrades")
	command.AddCommand(newCall(c), rollout)
	return command
}

// find returns the service of a name.
func find(ctx context.Context, c *console.Console, name string) (*kube.Objects, *v1beta1.ClusterService, error) {
	target, err := kube.ParseTarget(name, kube.Service)
	if err != nil {
		return nil, nil, err
	}
	objects, err := c.Connect()
	if err != nil {
		return nil, nil, err
	}
	found, err := objects.Read(ctx, target)
	if err != nil {
		return nil, nil, err
	}
	service, is := found.(*v1beta1.ClusterService)
	if !is {
		return nil, nil, fmt.Errorf("read %s: it is of another kind", target)
	}
	return objects, service, nil
}

func status(c *console.Console) *cobra.Command {
	wait := object.Wait{Console: c, Goal: object.ForRollout}
	command := &cobra.Command{
		Use: "status NAME", Short: "Wait until a rollout is complete",
		Long: `Wait until a rollout is complete: the version of the spec gets all requests, and the operator no longer rolls it back. After
the last request to the earlier version, the operator watches the new one for upgradeStrategy.retireAfterSeconds, and on a second
cluster for at least upgradeStrategy.drainSeconds. On a cluster that the service refers to, it does so for 30 s.

Exit code: 0 complete; 1 the version was rolled back or the service failed; 3 suspended; 4 timed out; 5 refused by the
operator. Ctrl-C only ends the wait.`,
		Args: console.Arguments(1, 1, "NAME"), ValidArgsFunction: object.Complete(c, kube.Service),
		RunE: func(cmd *cobra.Command, args []string) error {
			objects, service, err := find(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			wait.Objects = objects
			return wait.Until(cmd.Context(), service)
		},
	}
	console.AddDuration(command.Flags(), &wait.Timeout, "timeout", "how long to wait; 0 waits without a limit")
	return command
}

// kept returns the versions that are kept of a service, the newest first.
func kept(
	ctx context.Context, objects *kube.Objects, service *v1beta1.ClusterService,
) ([]*appsv1.ControllerRevision, error) {
	list := &appsv1.ControllerRevisionList{}
	err := objects.List(ctx, list, client.InNamespace(service.Namespace),
		client.MatchingLabels{v1beta1.LabelService: service.Name})
	if err != nil {
		return nil, kube.Because(fmt.Errorf("list versions of service %s: %w", service.Name, err))
	}
	var all []*appsv1.ControllerRevision
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], service) {
			all = append(all, &list.Items[i])
		}
	}
	slices.SortFunc(all, func(a, b *appsv1.ControllerRevision) int { return int(b.Revision - a.Revision) })
	return all, nil
}

func history(c *console.Console) *cobra.Command {
	out := output.NewFlags()
	command := &cobra.Command{
		Use: "history NAME", Short: "List the stored versions of a service, newest first",
		Args: console.Arguments(1, 1, "NAME"), ValidArgsFunction: object.Complete(c, kube.Service),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			objects, service, err := find(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			all, err := kept(cmd.Context(), objects, service)
			if err != nil {
				return err
			}
			if !out.IsTable() {
				return output.List(out, c.Out, all)
			}
			table := output.Table{Columns: output.Columns("VERSION", "AGE", "STATE", "REQUESTS", "cluster")}
			for _, one := range all {
				table.Rows = append(table.Rows, rowOf(service, one, c.Clock.Now()))
			}
			return out.Rows(c.Out, table)
		},
	}
	out.Add(command.Flags())
	return command
}

// rowOf is one version: number, age, what it is to the service, its share of the requests, and its cluster.
func rowOf(service *v1beta1.ClusterService, one *appsv1.ControllerRevision, now time.Time) []string {
	number := strconv.FormatInt(one.Revision, 10)
	row := []string{number, duration.HumanDuration(now.Sub(one.CreationTimestamp.Time)), "", "", ""}
	for state, version := range map[string]*v1beta1.ServiceVersion{"active": service.Status.Active,
		"candidate": service.Status.Candidate} {
		if version != nil && version.Revision == one.Revision {
			row[2], row[3], row[4] = state, fmt.Sprintf("%d %%", version.TrafficPercent), version.ClusterName
		}
	}
	if last := service.Status.LastUpgrade; row[2] == "" && last != nil && last.To == one.Revision &&
		last.Result == v1beta1.UpgradeRolledBack {
		row[2] = "rolled back: " + last.Reason
	}
	return row
}

func undo(c *console.Console) *cobra.Command {
	number := ""
	command := &cobra.Command{
		Use: "undo NAME", Short: "Return a service to an earlier version",
		Long: `Return a service to an earlier version: the active one where the spec asks for another, else the one before it. It writes
the earlier serveConfig and clusterTemplate into the spec, so keep a manifest elsewhere in step.`,
		Example: "  heliostat service rollout undo translate\n  heliostat service rollout undo translate --to 3 --dry-run=server",
		Args:    console.Arguments(1, 1, "NAME"), ValidArgsFunction: object.Complete(c, kube.Service),
	}
	verb := object.NewVerb(c, command, "returns to the earlier version", "has that version already")
	command.RunE = func(cmd *cobra.Command, args []string) error {
		if err := verb.Check(); err != nil {
			return err
		}
		objects, service, err := find(cmd.Context(), c, args[0])
		if err != nil {
			return err
		}
		all, err := kept(cmd.Context(), objects, service)
		if err != nil {
			return err
		}
		verb.Decide = func(object verbs.Object) (verbs.Change, error) {
			return verbs.Undo(object, all, strings.TrimSpace(number))
		}
		return verb.Do(cmd.Context(), objects, service)
	}
	command.Flags().StringVar(&number, "to", "", "number of the version, as in rollout history")
	return command
}
