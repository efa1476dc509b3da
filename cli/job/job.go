// Package job has the commands about jobs alone: submit, list, logs, stop, retry.
//
// In: names of jobs. Out: rows, or what became of a job. What a verb does is package verbs' decision, as in the server.
//
// It must never stop a job because a command was interrupted.
package job

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/heliostat-dev/heliostat/apiserver/explain"
	"github.com/heliostat-dev/heliostat/apiserver/verbs"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/logs"
	"github.com/heliostat-dev/heliostat/cli/object"
	"github.com/heliostat-dev/heliostat/cli/output"
	"github.com/heliostat-dev/heliostat/cli/overview"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Command returns the command with those below it.
func Command(c *console.Console) *cobra.Command {
	command := console.Group("job", "Submit jobs, list them, read their outputs, stop and retry them")
	command.AddCommand(list(c), logs.Command(c, "logs NAME"), retry(c), stop(c), submit(c))
	return command
}

func list(c *console.Console) *cobra.Command {
	chosen := overview.NewChoice(c)
	command := &cobra.Command{
		Use: "list", Short: "List jobs, newest first", Args: console.Arguments(0, 0, "no arguments"),
		Example: "  heliostat job list -A\n  heliostat job list -w\n  heliostat job list -l team=a -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			look := func() ([]verbs.Object, error) {
				all, err := chosen.Objects(cmd.Context(), kube.Job)
				slices.SortStableFunc(all, func(a, b verbs.Object) int {
					return b.GetCreationTimestamp().Compare(a.GetCreationTimestamp().Time)
				})
				return all, err
			}
			return chosen.Show(cmd.Context(), look, func(all []verbs.Object) error {
				return chosen.Print(all, "jobs", output.Columns("NAME", "PHASE", "CLUSTER", "ATTEMPT", "TOOK", "AGE", "why", "entrypoint"),
					func(object verbs.Object) []string { return row(object, c.Clock.Now()) })
			})
		},
	}
	chosen.Add(command)
	chosen.AddWatch(command)
	return command
}

// row is one job: name, phase, cluster, attempt, how long it took, age, why, and what it runs.
func row(object verbs.Object, now time.Time) []string {
	job, is := object.(*v1beta1.ClusterJob)
	if !is {
		return nil
	}
	status, took := &job.Status, ""
	if status.StartTime != nil {
		until := now
		if status.EndTime != nil {
			until = status.EndTime.Time
		}
		took = duration.HumanDuration(until.Sub(status.StartTime.Time))
	}
	cluster := status.ClusterName
	if cluster == "" && job.Spec.ClusterRef != nil {
		cluster = job.Spec.ClusterRef.Name
	}
	age := duration.HumanDuration(now.Sub(job.CreationTimestamp.Time))
	return []string{job.Name, overview.Phase(job), cluster, strconv.Itoa(int(status.Attempt)), took, age,
		explain.Headline(job).Code, strings.Join(strings.Fields(job.Spec.Entrypoint), " ")}
}

func stop(c *console.Console) *cobra.Command {
	command := &cobra.Command{
		Use: "stop NAME…", Short: "Stop jobs permanently",
		Long:    "Stop jobs permanently. The status keeps the attempts of a job. heliostat job retry runs it again as a new job.",
		Example: "  heliostat job stop train",
	}
	verb := object.NewVerb(c, command, "stopping", "is stopped or has ended already")
	verb.Decide = verbs.Stop
	return overNames(c, command, verb)
}

func retry(c *console.Console) *cobra.Command {
	command := &cobra.Command{
		Use: "retry NAME…", Short: "Run ended jobs again, as new jobs",
		Example: "  heliostat job retry train",
	}
	verb := object.NewVerb(c, command, "is retried", "")
	verb.Decide = verbs.Retry
	return overNames(c, command, verb)
}

// overNames has a command do its verb to jobs by their names.
func overNames(c *console.Console, command *cobra.Command, verb *object.Verb) *cobra.Command {
	command.Args, command.ValidArgsFunction = console.Arguments(1, -1, "NAME"), object.Complete(c, kube.Job)
	command.RunE = func(cmd *cobra.Command, args []string) error {
		if err := verb.Check(); err != nil {
			return err
		}
		objects, err := c.Connect()
		if err != nil {
			return err
		}
		var all []verbs.Object
		for _, name := range args {
			target, err := kube.ParseTarget(name, kube.Job)
			if err != nil {
				return err
			}
			found, err := objects.Read(cmd.Context(), target)
			if err != nil {
				return err
			}
			all = append(all, found)
		}
		for _, one := range all {
			if err := verb.Do(cmd.Context(), objects, one); err != nil {
				return err
			}
		}
		return nil
	}
	return command
}
