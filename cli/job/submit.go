package job

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heliostat-dev/heliostat/cli/away"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/logs"
	"github.com/heliostat-dev/heliostat/cli/object"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/cli/output"
	"github.com/heliostat-dev/heliostat/cli/preset"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// submission is what a user asks of submit.
type submission struct {
	console    *console.Console
	wish       wish
	preset     preset.Flags
	out        *output.Flags
	dryRun     output.DryRun
	isDetached bool
}

func submit(c *console.Console) *cobra.Command {
	s := &submission{console: c, out: output.NewFlags()}
	command := &cobra.Command{
		Use:   "submit [flags] [-- COMMAND…]",
		Short: "Create a job, follow its output, and exit with its outcome",
		Long: `Create a job, follow its output, and exit with its outcome. The job runs on an existing cluster
(--cluster), or on a cluster of its own that is deleted when the job ends and that the flags of heliostat up describe. A single
word after -- is a shell command line. Several words are a program with its arguments, which no shell interprets.

With --gang the command is a program that does not use Ray, such as one written for torchrun or mpirun. Its replicas are placed
all or none, and start, end and restart together. A cluster of the job's own gets one worker for each replica.

--working-dir packs a directory, without .git, .venv, venv, __pycache__ and the files that .gitignore and .rayignore exclude. For
a cluster of the job's own, up to 1 MiB is stored in a ConfigMap, which is deleted with the job. To an existing cluster, up to
100 MiB are uploaded, and renewed while this command runs.

The job is a Kubernetes object and continues when this command ends. Ctrl-C prints the commands to follow it again and to stop
it. Exit code: 0 succeeded; 1 failed; 3 stopped; 5 refused.`,
		Example: `  heliostat job submit --cluster dev -- python train.py --epochs 3
  heliostat job submit --workers 4 --gpu 1 --retries 2 --env EPOCHS=3 -- 'python train.py > /tmp/log'
  heliostat job submit --cluster dev --working-dir . -- python train.py
  heliostat job submit --cluster dev --gang pytorch --replicas 4 --gpus 1 --max-restarts 3 -- python train.py
  heliostat job submit --preset training --option script=train.py
  heliostat job submit -f nightly.yaml --name tonight --detach`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); dash != 0 && len(args) > 0 {
				return outcome.Errorf(outcome.Usage, "%q stands before --; write the command after it", args[0])
			}
			if err := errors.Join(s.dryRun.Check(), s.out.Check()); err != nil {
				return &outcome.Error{Code: outcome.Usage, Err: err}
			}
			return s.submit(cmd.Context(), cmd.Flags(), args)
		},
	}
	command.SetFlagErrorFunc(badFlag)
	flags := command.Flags()
	s.wish.add(flags)
	s.preset.Add(flags)
	s.out.AddFormat(flags)
	s.dryRun.Add(flags)
	c.AddServer(flags)
	flags.BoolVar(&s.isDetached, "detach", false, "create the job without following its output")
	return command
}

func (s *submission) submit(ctx context.Context, flags *pflag.FlagSet, command []string) error {
	if _, err := away.FindServer(s.console); err != nil { // before anything is created
		return err
	}
	objects, err := s.console.Connect()
	if err != nil {
		return err
	}
	manifest, err := s.manifest(ctx, objects)
	if err != nil {
		return err
	}
	job, err := s.wish.build(objects.Namespace, flags, manifest, command)
	if err != nil {
		return err
	}
	files, err := s.carry(job)
	if err != nil {
		return err
	}
	if s.dryRun.IsClient() {
		if _, isWithout := files.(nothing); !isWithout {
			s.console.Note("the files of %s go nowhere by a dry run, and the job would not find them", s.wish.workingDir)
		}
		return s.out.Done(s.console.Out, job, "job created"+s.dryRun.Suffix())
	}
	if err := s.checkCluster(ctx, objects, job); err != nil {
		return err
	}
	return s.create(ctx, objects, job, files)
}

// manifest returns what the job begins with: a file, a preset, or nothing.
func (s *submission) manifest(ctx context.Context, objects *kube.Objects) ([]byte, error) {
	switch err := s.preset.Check(); {
	case err != nil:
		return nil, err
	case s.preset.IsGiven() && s.wish.file != "":
		return nil, outcome.Errorf(outcome.Usage, "--preset is one manifest, and -f another; give one of the two")
	case s.preset.IsGiven():
		return s.preset.Manifest(ctx, objects, kube.Job, s.wish.name)
	}
	return readManifest(s.wish.file, s.console.In)
}

// create creates the job with its files, and follows it.
func (s *submission) create(ctx context.Context, objects *kube.Objects, job *v1beta1.ClusterJob, files carrier) error {
	if user := objects.UserName(ctx); user != "" {
		if job.Annotations == nil {
			job.Annotations = map[string]string{}
		}
		job.Annotations[v1beta1.AnnotationOwner] = user
	}
	if s.dryRun.IsServer() {
		files = nothing{} // they change what is there
	}
	if err := files.prepare(ctx, objects, job); err != nil {
		return err
	}
	if err := objects.CreateNew(ctx, job, s.dryRun.IsServer()); err != nil {
		return err
	}
	if err := files.settle(ctx, objects, job); err != nil {
		return err
	}
	said := fmt.Sprintf("%s created%s", kube.TargetOf(job), s.dryRun.Suffix())
	if s.isDetached || s.dryRun.IsServer() {
		return s.out.Done(s.console.Out, job, said)
	}
	s.console.Note("%s", said) // standard output is the program's
	held, release := context.WithCancel(ctx)
	var holding sync.WaitGroup
	holding.Go(func() { files.hold(held) })
	defer holding.Wait()
	defer release()
	return s.follow(ctx, objects, job)
}

// checkCluster says early that the cluster is not there, with the nearest name: the job would wait for one.
func (s *submission) checkCluster(ctx context.Context, objects *kube.Objects, job *v1beta1.ClusterJob) error {
	if s.wish.cluster == "" || job.Spec.ClusterRef == nil {
		return nil
	}
	_, err := objects.Read(ctx, kube.Target{Kind: kube.Cluster, Name: job.Spec.ClusterRef.Name})
	return err
}

// follow prints the output of the job as it comes, and ends as the job does.
func (s *submission) follow(ctx context.Context, objects *kube.Objects, job *v1beta1.ClusterJob) error {
	of := logs.Output{Clusters: away.Clusters{Console: s.console, Objects: objects}, IsFollowed: true}
	if err := of.Print(ctx, job); err != nil {
		return err
	}
	wait := object.Wait{Console: s.console, Objects: objects, Goal: object.ForReady}
	return wait.Until(ctx, job)
}

// badFlag names what there is in place of a flag of ray job submit that a job of Kubernetes cannot have.
func badFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if instead := insteadOf(unknown.GetSpecifiedName()); instead != "" {
			return outcome.Errorf(outcome.Usage, "--%s is a flag of ray job submit alone; %s", unknown.GetSpecifiedName(), instead)
		}
	}
	return cmd.Parent().FlagErrorFunc()(cmd, err)
}

// insteadOf returns what does here what a flag of ray job submit does there.
func insteadOf(name string) string {
	switch name {
	case "address", "headers", "verify":
		return "give --cluster NAME"
	case "no-wait":
		return "give --detach"
	case "submission-id", "job-id":
		return "give --name NAME"
	}
	return ""
}
