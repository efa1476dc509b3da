// Package tune has the command that prints the trials of a job.
//
// In: a job, and the output of its last attempt. Out: a table of trials.
//
// It must never take a line of a program for one of the launcher.
package tune

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heliostat-dev/heliostat/cli/away"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/object"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/cli/output"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Commands returns the commands of the package.
func Commands(c *console.Console) []*cobra.Command { return []*cobra.Command{table(c)} }

func table(c *console.Console) *cobra.Command {
	clusters, out := &away.Clusters{Console: c}, output.NewFlags()
	command := &cobra.Command{
		Use: "tune NAME", Short: "List the trials of a tuning job, with their values",
		Long: `List the trials of a tuning job: number, state, value of the metric, values of the parameters, and why a trial failed. The
command reads them from the output of the last attempt. If the cluster is gone, only the last lines of the output remain.

It connects to the head as "heliostat logs" does.`,
		Example: "  heliostat tune search\n  heliostat tune search --no-headers",
		Args:    console.Arguments(1, 1, "NAME"), ValidArgsFunction: object.Complete(c, kube.Job),
		RunE: func(cmd *cobra.Command, args []string) error {
			target, err := kube.ParseTarget(args[0], kube.Job)
			if err != nil {
				return err
			}
			if clusters.Objects, err = c.Connect(); err != nil {
				return err
			}
			found, err := clusters.Objects.Read(cmd.Context(), target)
			if err != nil {
				return err
			}
			job, is := found.(*v1beta1.ClusterJob)
			if !is || job.Spec.Tune == nil {
				return outcome.Errorf(outcome.Usage, "%s has no trials, as it has no spec.tune; give a job that has", kube.TargetOf(found))
			}
			return printTrials(cmd.Context(), clusters, out, job)
		},
	}
	c.AddServer(command.Flags())
	out.Add(command.Flags())
	return command
}

// printTrials prints the trials of a job.
func printTrials(ctx context.Context, clusters *away.Clusters, out *output.Flags, job *v1beta1.ClusterJob) error {
	if err := out.Check(); err != nil {
		return err
	}
	c := clusters.Console
	var names []string
	for i := range job.Spec.Tune.Parameters {
		names = append(names, job.Spec.Tune.Parameters[i].Name)
	}
	trials, err := read(ctx, clusters, job, names)
	if err != nil {
		return err
	}
	if !out.IsTable() {
		return out.Answer(c.Out, "Trials", struct {
			Trials []trial `json:"trials"`
		}{trials})
	}
	if len(trials) == 0 {
		c.Note("job/%s has no trials yet", job.Name)
		return nil
	}
	columns := output.Columns("TRIAL", "STATE", strings.ToUpper(job.Spec.Tune.Objective.Metric))
	for _, name := range names {
		columns = append(columns, output.Column{Name: name})
	}
	columns = append(columns, output.Columns("MESSAGE")...)
	return out.Rows(c.Out, output.Table{Columns: columns, Rows: rows(trials, names)})
}

// read returns the trials in the output of the last attempt, or in the last lines that the status keeps of it.
func read(ctx context.Context, clusters *away.Clusters, job *v1beta1.ClusterJob, names []string) ([]trial, error) {
	if len(job.Status.Attempts) == 0 {
		return nil, nil
	}
	last := job.Status.Attempts[len(job.Status.Attempts)-1]
	heads, err := clusters.Find()
	if err != nil {
		return nil, err
	}
	found := newReader(names)
	err = heads.ReadOutput(ctx, away.Output{Job: job, Attempt: last}, found)
	if err == nil || len(last.LastLines) == 0 {
		return found.trials(), err
	}
	clusters.Console.Note("the head does not have the output: %v; these are the last lines that are kept", kube.Because(err))
	kept := newReader(names)
	if _, err := kept.Write([]byte(strings.Join(last.LastLines, "\n"))); err != nil {
		return nil, err
	}
	return kept.trials(), nil
}
