package logs

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heliostat-dev/heliostat/apiserver/verbs"
	"github.com/heliostat-dev/heliostat/cli/away"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/object"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Commands returns the commands of the package.
func Commands(c *console.Console) []*cobra.Command { return []*cobra.Command{ofAnyKind(c)} }

// flagsOf are the flags that a kind alone has.
var flagsOf = map[string][]string{
	kube.Job.Word: {"attempt", "process", "round", "trial"}, kube.Cluster.Word: {"group", "pod"}, kube.Service.Word: {"deployment"},
}

// throughServer are the flags of the server, which reads no logs of pods.
var throughServer = []string{"server", "server-ca"}

// asked is what a user asks of the logs of an object.
type asked struct {
	isFollowed bool
	attempt    int32
	process    process
	choice     podChoice
	deployment string
	// uid is that of an earlier object, and file the pattern of files that are kept; empty where none is asked for.
	uid, file string
}

func (a *asked) add(flags *pflag.FlagSet) {
	flags.BoolVarP(&a.isFollowed, "follow", "f", false, "continue with new output")
	flags.Int32Var(&a.attempt, "attempt", 0, "of a job: number of the attempt; default: the current one, and with -f those that follow")
	a.process.add(flags, "of a gang: ")
	flags.StringVar(&a.choice.group, "group", "", "of a cluster: the pods of this worker group, in place of the head's")
	flags.StringVar(&a.choice.pod, "pod", "", "of a cluster: this pod, in place of the head's")
	flags.StringVar(&a.deployment, "deployment", "", "of a service: the replicas of this deployment, as NAME or APPLICATION/NAME")
}

// addKept adds the flags about what is kept.
func (a *asked) addKept(flags *pflag.FlagSet) {
	flags.StringVar(&a.uid, "uid", "", "UID of an earlier object with the same name, from the history (needs --server)")
	flags.StringVar(&a.file, "file", "", "files from the history that match this pattern, such as 'worker-*.err' (needs --server)")
}

// run prints what a user asks of an object.
func (a *asked) run(cmd *cobra.Command, c *console.Console, text string) error {
	objects, err := c.Connect()
	if err != nil {
		return err
	}
	isGiven := cmd.Flags().Changed
	if a.uid != "" || a.file != "" {
		if err := a.checkKeptFlags(isGiven); err != nil {
			return err
		}
		return a.readKept(cmd.Context(), c, objects.Namespace, text)
	}
	found, err := objects.Find(cmd.Context(), text, kube.Cluster, kube.Job, kube.Service)
	if err != nil {
		target, wrong := kube.ParseTarget(text, kube.Cluster, kube.Job, kube.Service)
		if wrong != nil {
			return err
		}
		return a.orFormer(cmd.Context(), c, objects.Namespace, target, err)
	}
	if err := checkFlags(kube.KindOf(found), isGiven); err != nil {
		return err
	}
	return a.print(cmd.Context(), away.Clusters{Console: c, Objects: objects}, found)
}

// print prints the logs of an object by its kind.
func (a *asked) print(ctx context.Context, clusters away.Clusters, found verbs.Object) error {
	switch found := found.(type) {
	case *v1beta1.ComputeCluster:
		of := podOutput{console: clusters.Console, objects: clusters.Objects, cluster: found, choice: a.choice, isFollowed: a.isFollowed}
		return of.print(ctx)
	case *v1beta1.ClusterService:
		of := replicaOutput{clusters: clusters, service: found, deployment: a.deployment, isFollowed: a.isFollowed}
		return of.print(ctx)
	}
	return a.process.print(ctx, &Output{Clusters: clusters, IsFollowed: a.isFollowed, Attempt: a.attempt}, found)
}

func ofAnyKind(c *console.Console) *cobra.Command {
	a := &asked{}
	command := &cobra.Command{
		Use: "logs KIND/NAME", Short: "Print the output of a job, of a cluster's pods or of a service's replicas",
		Long: `Print the output of an object, and with -f continue with new output.

Of a job: the output of its program, attempt by attempt, until it has ended. If the cluster is gone, the last lines in the job's
status, or through the server (--server) the whole output from the history, also of a deleted job. Of a process of a gang
(--process): its own log, from the Ray node where it ran, while that exists. Of a cluster: the log of the Ray container in the
head pod, in the pods of a worker group (--group) or in one pod (--pod). Of a service: the logs of the replicas of all
deployments or of one (--deployment), on each of its clusters. Of all kinds, through the server: files from the history
(--file), of an earlier object too (--uid).

The command retries a lost connection for 5 minutes, and prints each line once. It connects to jobs and services by a
port-forward of the head pod with the cluster's token, which the role "edit" permits, or through the server (--server), for
which "view" is enough. For pods "view" is enough.`,
		Example: `  heliostat logs job/train -f
  heliostat logs job/train --process worker/3 --round 2
  heliostat logs job/search --trial 12
  heliostat logs cluster/dev --group gpu -f
  heliostat logs service/translate --deployment Model
  heliostat logs cluster/dev --file 'worker-*.err'`,
		Args: console.Arguments(1, 1, "KIND/NAME"), ValidArgsFunction: object.Complete(c),
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(cmd, c, args[0]) },
	}
	a.add(command.Flags())
	a.addKept(command.Flags())
	c.AddServer(command.Flags())
	return command
}

// checkFlags refuses flags of another kind.
func checkFlags(kind kube.Kind, isGiven func(string) bool) error {
	for _, other := range kube.Kinds() {
		for _, flag := range flagsOf[other.Word] {
			if isGiven(flag) && other.Word != kind.Word {
				return outcome.Errorf(outcome.Usage, "--%s is for a %s, and this is a %s; leave it out", flag, other.Word, kind.Word)
			}
		}
	}
	for _, flag := range throughServer {
		if isGiven(flag) && kind.Word == kube.Cluster.Word {
			return outcome.Errorf(outcome.Usage, "--%s is for a job or a service, and this is a cluster; leave it out, or give --file", flag)
		}
	}
	if isGiven("group") && isGiven("pod") {
		return outcome.Errorf(outcome.Usage, "--group is several pods, and --pod one; give one of the two")
	}
	return nil
}

// detached is what an interruption of one that follows ends with.
func detached(of verbs.Object, flags ...string) error {
	words := slices.Concat([]string{"logs", kube.TargetOf(of).String(), "-f"}, flags)
	return outcome.Errorf(outcome.Detached, "detached; follow again: %s", console.Again(of.GetNamespace(), "%s", strings.Join(words, " ")))
}
