package object

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/apiserver/verbs"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/output"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

func remove(c *console.Console) *cobra.Command {
	var isSure bool
	var dryRun output.DryRun
	command := &cobra.Command{
		Use:   "delete KIND/NAME…",
		Short: "Delete objects, after a list of what is deleted with them",
		Long: `Delete clusters, jobs, services or schedules. The command first lists what is deleted with each: clusters, pods, and whatever
else runs there. Then it asks for confirmation. Without a terminal, set --yes.`,
		Example: "  heliostat delete cluster/dev\n  heliostat delete job/a job/b --yes",
		Args:    console.Arguments(1, -1, "KIND/NAME"), ValidArgsFunction: Complete(c),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := dryRun.Check(); err != nil {
				return err
			}
			objects, all, err := each(cmd.Context(), c, args)
			if err != nil {
				return err
			}
			for _, object := range all {
				with, err := goesWith(cmd.Context(), c, objects, object)
				if err != nil {
					return err
				}
				c.Note("%s goes%s", kube.TargetOf(object), with)
			}
			if !isSure && !dryRun.IsClient() && !dryRun.IsServer() {
				if err := c.Confirm(fmt.Sprintf("Delete %s?", plural(len(all), "object"))); err != nil {
					return err
				}
			}
			return deleteAll(cmd.Context(), c, objects, all, dryRun)
		},
	}
	command.Flags().BoolVarP(&isSure, "yes", "y", false, "do not ask for confirmation")
	dryRun.Add(command.Flags())
	return command
}

// deleteAll deletes the objects that were looked at, and none that has their name by now.
func deleteAll(
	ctx context.Context, c *console.Console, objects *kube.Objects, all []verbs.Object, dryRun output.DryRun,
) error {
	for _, object := range all {
		if !dryRun.IsClient() {
			if err := objects.Remove(ctx, object, dryRun.IsServer()); err != nil {
				return err
			}
		}
		fmt.Fprintf(c.Out, "%s deleted%s\n", kube.TargetOf(object), dryRun.Suffix())
	}
	return nil
}

// goesWith says what is deleted with an object, and what loses its cluster.
func goesWith(ctx context.Context, c *console.Console, objects *kube.Objects, object verbs.Object) (string, error) {
	if _, is := object.(*v1beta1.ClusterJobSchedule); is {
		return ", with its jobs", nil
	}
	in, err := objects.Around(ctx, object, c.Clock.Now())
	if err != nil && !errors.Is(err, kube.ErrNoPods) {
		return "", err
	}
	var with, lost []string
	for _, cluster := range in.Clusters {
		if metav1.IsControlledBy(cluster, object) {
			with = append(with, "cluster/"+cluster.Name)
		}
	}
	_, isCluster := object.(*v1beta1.ComputeCluster)
	if pods := len(in.Pods); pods > 0 && (isCluster || len(with) > 0) {
		with = append(with, plural(pods, "pod"))
	}
	if isCluster {
		if lost, err = usersOf(ctx, objects, object.GetName()); err != nil {
			return "", err
		}
	}
	text := ""
	if len(with) > 0 {
		text = ", with " + strings.Join(with, ", ")
	}
	if len(lost) > 0 {
		text += "; these lose their cluster: " + strings.Join(lost, ", ")
	}
	return text, nil
}

// usersOf returns the jobs and services that refer to a cluster and have not ended.
func usersOf(ctx context.Context, objects *kube.Objects, cluster string) ([]string, error) {
	var all []string
	for _, kind := range []kube.Kind{kube.Job, kube.Service} {
		found, err := objects.ListAll(ctx, kind, kube.Selection{Namespace: objects.Namespace})
		if err != nil {
			return nil, err
		}
		for _, object := range found {
			if refersTo(object) == cluster {
				all = append(all, kube.TargetOf(object).String())
			}
		}
	}
	return all, nil
}

// refersTo returns the name of the cluster that an object refers to, "" where it needs none.
func refersTo(object verbs.Object) string {
	var ref *v1beta1.ClusterReference
	switch object := object.(type) {
	case *v1beta1.ClusterJob:
		if object.Status.EndTime == nil {
			ref = object.Spec.ClusterRef
		}
	case *v1beta1.ClusterService:
		ref = object.Spec.ClusterRef
	}
	if ref == nil {
		return ""
	}
	return ref.Name
}

func plural(count int, word string) string {
	if count == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", count, word)
}
