package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/apiserver/verbs"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/object"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/cli/output"
	"github.com/heliostat-dev/heliostat/cli/preset"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// request is what a user asks of up.
type request struct {
	console    *console.Console
	shape      Shape
	preset     preset.Flags
	out        *output.Flags
	dryRun     output.DryRun
	isDetached bool
	timeout    time.Duration
}

func up(c *console.Console) *cobra.Command {
	r := &request{console: c, out: output.NewFlags()}
	command := &cobra.Command{
		Use:   "up NAME",
		Short: "Create or resume a cluster, and wait until it is ready",
		Long: `Create a cluster, or resume it if it is suspended, and wait until it is ready. The spec of an existing cluster does not change:
flags that differ from it are refused.

Exit code: that of heliostat wait. Ctrl-C ends the wait; the cluster continues to start.`,
		Example: `  heliostat up dev --workers 2 --cpu 4 --memory 16Gi --idle 1h
  heliostat up train --autoscale 0:8 --gpu 1 --detach
  heliostat up dev --preset notebook --option workers=4
  heliostat up dev --dry-run=client -o yaml > dev.yaml`,
		Args: console.Arguments(1, 1, "NAME"), ValidArgsFunction: object.Complete(c, kube.Cluster),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(r.dryRun.Check(), r.out.Check()); err != nil {
				return &outcome.Error{Code: outcome.Usage, Err: err}
			}
			return r.up(cmd.Context(), cmd.Flags(), args[0])
		},
	}
	flags := command.Flags()
	r.shape.Add(flags)
	r.preset.Add(flags)
	r.out.AddFormat(flags)
	r.dryRun.Add(flags)
	flags.BoolVar(&r.isDetached, "detach", false, "do not wait until the cluster is ready")
	console.AddDuration(flags, &r.timeout, "timeout", "how long to wait; 0 waits without a limit")
	return command
}

func (r *request) up(ctx context.Context, flags *pflag.FlagSet, name string) error {
	target, err := kube.ParseTarget(name, kube.Cluster)
	if err != nil {
		return err
	}
	objects, err := r.console.Connect()
	if err != nil {
		return err
	}
	wanted, err := r.build(ctx, flags, objects, target.Name)
	if err != nil {
		return err
	}
	if r.dryRun.IsClient() {
		return r.out.Done(r.console.Out, wanted, fmt.Sprintf("%s created%s", target, r.dryRun.Suffix()))
	}
	if user := objects.UserName(ctx); user != "" {
		metav1.SetMetaDataAnnotation(&wanted.ObjectMeta, v1beta1.AnnotationOwner, user)
	}
	said := fmt.Sprintf("%s created%s: %s", target, r.dryRun.Suffix(), describe(wanted))
	found := verbs.Object(wanted)
	err = objects.CreateNew(ctx, wanted, r.dryRun.IsServer())
	if apierrors.IsAlreadyExists(err) {
		if found, said, err = r.bringBack(ctx, flags, objects, target); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	if err := r.out.Done(r.console.Out, found, said); err != nil || r.isDetached || r.dryRun.IsServer() {
		return err
	}
	wait := object.Wait{Console: r.console, Objects: objects, Goal: object.ForReady, Timeout: r.timeout}
	return wait.Until(ctx, found)
}

// build returns the cluster that flags describe, or a preset.
func (r *request) build(
	ctx context.Context, flags *pflag.FlagSet, objects *kube.Objects, name string,
) (*v1beta1.ComputeCluster, error) {
	if err := r.preset.Check(); err != nil {
		return nil, err
	}
	if !r.preset.IsGiven() {
		return r.shape.Build(objects.Namespace, name, flags.Changed("workers"))
	}
	if given := Given(flags); len(given) > 0 {
		return nil, outcome.Errorf(outcome.Usage, "--preset has the shape of the cluster, and --%s another; give one of the two",
			given[0])
	}
	text, err := r.preset.Manifest(ctx, objects, kube.Cluster, name)
	if err != nil {
		return nil, err
	}
	cluster := &v1beta1.ComputeCluster{}
	if err := kube.ReadManifest(text, kube.Cluster, cluster); err != nil {
		return nil, outcome.Errorf(outcome.Refused, "read the manifest of the preset: %w", err)
	}
	cluster.Namespace, cluster.Name, cluster.GenerateName = objects.Namespace, name, ""
	return cluster, nil
}

// bringBack resumes a cluster that is there, where it is suspended.
func (r *request) bringBack(
	ctx context.Context, flags *pflag.FlagSet, objects *kube.Objects, target kube.Target,
) (verbs.Object, string, error) {
	given := Given(flags)
	if r.preset.IsGiven() {
		given = []string{"preset"}
	}
	if len(given) > 0 {
		return nil, "", outcome.Errorf(outcome.Refused, "%s is there, and keeps its shape; leave --%s out, or change it with "+
			"heliostat scale or kubectl edit cc %s", target, given[0], target.Name)
	}
	found, err := objects.Read(ctx, target)
	if err != nil {
		return nil, "", err
	}
	change, err := verbs.Resume(found, r.console.Clock.Now())
	if err != nil {
		return nil, "", kube.Because(err)
	}
	if change.IsNothing() {
		return found, fmt.Sprintf("%s is there", target), nil
	}
	found, err = objects.Make(ctx, found, change, r.dryRun.IsServer())
	return found, fmt.Sprintf("%s resumed%s", target, r.dryRun.Suffix()), err
}
