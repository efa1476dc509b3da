// Package convert is the command that turns objects of ray.io, and jobs of Kubeflow and Spark, into ours.
//
// In: manifests from files, directories or standard input, or live objects through a kubeconfig. Out: our YAML on standard
// output, one row on standard error for each field that was not kept unchanged, and an exit code. What cannot be read gets a
// row with its line, and the rest is converted. It decides nothing about a field: the package ray-operator/convert does.
// It must never write to a cluster.
package convert

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/convert"
)

const long = `Converts objects of KubeRay (ray.io/v1) and jobs of Kubeflow into objects of Heliostat. Of Kubeflow these are PyTorchJob, TFJob,
JAXJob, XGBoostJob, MPIJob, PaddleJob, MXJob and TrainJob; an MLTrainingJob of any group is one, too. A SparkApplication and a
ScheduledSparkApplication become a job and a schedule, and an Experiment of Katib and an OptimizationJob a job with trials.

Our YAML goes to standard output. Standard error gets one row for each field that was not kept unchanged: where it
stands, its verdict, and what to do. An object with a refused field does not come out; all others do.

A job of Kubeflow becomes a ClusterJob with a gang, on a cluster of its own or, with --onto, on an existing one.

Exit code: 0 converted; 3 something will behave differently; 5 something was refused; 2 something could not be read.`

const examples = `  heliostat convert -f manifests/ > ours.yaml
  heliostat convert rayclusters,rayjobs,rayservices -A > ours.yaml
  heliostat convert rayclusters demo -n team-a
  heliostat convert -f job.yaml --image pytorch/pytorch:2.5.1=registry.example/torch-ray:1 > ours.yaml
  heliostat convert pytorchjobs,mpijobs -A --onto shared > ours.yaml
  heliostat convert sparkapplications,experiments -A > ours.yaml
  heliostat convert --explain workerGroupSpecs.numOfHosts
  heliostat convert --explain PyTorchJob.spec.elasticPolicy`

// request is what the user asks for.
type request struct {
	files         []string
	resources     []convert.Kind
	names         []string
	allNamespaces bool
	explain       string
	options       convert.Options
	choices       convert.Choices
}

// Command returns the command.
func Command(access *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	var wanted request
	command := &cobra.Command{
		Use:   "convert (-f FILE|DIR|- | KINDS [NAME...])",
		Short: "Convert objects of KubeRay and Kubeflow, and report the result for each field",
		Long:  long, Example: examples,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := wanted.read(args); err != nil {
				return &outcome.Error{Code: outcome.Usage, Err: err}
			}
			return wanted.run(cmd.Context(), access, streams)
		},
	}
	flags := command.Flags()
	flags.StringArrayVarP(&wanted.files, "filename", "f", nil, "file, directory (its .yaml, .yml and .json files) or "+
		"- for standard input; can be given more than once")
	flags.BoolVarP(&wanted.allNamespaces, "all-namespaces", "A", false, "take live objects of all namespaces")
	flags.BoolVar(&wanted.options.Aliases, "aliases", false, "add Services with KubeRay's names (NAME-head-svc, "+
		"NAME-serve-svc) for clients that must not notice")
	flags.BoolVar(&wanted.options.KeepOpen, "keep-open", false, "keep open clusters open: no token, no isolation")
	addChoices(&wanted.choices, flags)
	flags.StringVar(&wanted.explain, "explain", "",
		"explain how a field is converted, such as workerGroupSpecs.replicas or TFJob.spec.successPolicy, and exit")
	return command
}

// read takes the arguments, and says what is wrong with them.
func (r *request) read(args []string) error {
	var err error
	if r.options.Kubeflow, err = readChoices(&r.choices); err != nil {
		return err
	}
	switch {
	case r.explain != "" && len(args)+len(r.files) > 0:
		return errors.New("--explain converts nothing; leave files and kinds out")
	case r.explain != "":
		return nil
	case len(r.files) > 0 && (len(args) > 0 || r.allNamespaces):
		return errors.New("-f takes files, and live objects come from a cluster; give one of the two")
	case len(r.files) > 0:
		return nil
	case len(args) == 0:
		return errors.New("there is nothing to convert; give -f FILE, or kinds such as rayclusters,rayjobs,pytorchjobs")
	}
	if r.resources, err = readResources(args[0]); err != nil {
		return err
	}
	r.names = args[1:]
	switch {
	case len(r.names) > 0 && len(r.resources) > 1:
		return errors.New("a name belongs to one kind; give one kind")
	case len(r.names) > 0 && r.allNamespaces:
		return errors.New("a name belongs to one namespace; give -n NAMESPACE in place of -A")
	}
	return nil
}

func (r *request) run(ctx context.Context, access *genericclioptions.ConfigFlags,
	streams genericiooptions.IOStreams) error {
	if r.explain != "" {
		return explain(streams.Out, r.explain)
	}
	var inputs []input
	var err error
	if len(r.files) > 0 {
		inputs = readFiles(r.files, streams.In)
	} else if inputs, err = r.list(ctx, access); err != nil {
		return err
	}
	for i := range inputs {
		r.options.Kubeflow.AddRuntime(inputs[i].Object)
	}
	report := report{out: streams.Out, rows: streams.ErrOut}
	for i := range inputs {
		if err := report.convert(&inputs[i], r.options); err != nil {
			return fmt.Errorf("write what was converted: %w", err)
		}
	}
	return report.end(&r.options.Kubeflow)
}
