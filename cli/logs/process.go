package logs

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/heliostat-dev/heliostat/apiserver/spelling"
	"github.com/heliostat-dev/heliostat/apiserver/verbs"
	"github.com/heliostat-dev/heliostat/cli/away"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/cli/overview"
	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// process is the process of a gang whose log a user wants, or the trial whose lines. Its zero value means the output of the job.
type process struct {
	name  string
	round int32
	trial string
}

func (p *process) add(flags *pflag.FlagSet, of string) {
	flags.StringVar(&p.name, "process", "", of+"the log of this process, as ROLE/NUMBER such as worker/3")
	flags.Int32Var(&p.round, "round", 0, of+"number of the round; default: the newest one of the attempt, and with -f those that follow")
	flags.StringVar(&p.trial, "trial", "", "of a tuning job: only the lines of the trial with this number")
}

// print prints the log of the process, or where none is asked for, the output of the job.
func (p *process) print(ctx context.Context, o *Output, found verbs.Object) error {
	if p.name == "" {
		if p.round != 0 {
			return outcome.Errorf(outcome.Usage, "--round needs a process; give --process ROLE/NUMBER too")
		}
		if p.trial != "" {
			if err := checkTrial(found, p.trial); err != nil {
				return err
			}
			o.trial = p.trial
		}
		return o.Print(ctx, found)
	}
	job, is := found.(*v1beta1.ClusterJob)
	if !is {
		return outcome.Errorf(outcome.Usage, "%s has no processes of a gang; leave out --process", kube.TargetOf(found))
	}
	if err := p.check(job); err != nil {
		return err
	}
	of := processOutput{output: o, process: *p, job: job}
	return of.print(ctx)
}

// check refuses a process that the gang of a job does not have.
func (p *process) check(job *v1beta1.ClusterJob) error {
	role, number, is := heads.ParseProcess(p.name)
	switch {
	case !is:
		return outcome.Errorf(outcome.Usage, "--process %q names no process; write ROLE/NUMBER, such as worker/3", p.name)
	case p.round < 0:
		return outcome.Errorf(outcome.Usage, "--round must not be negative; give 1 or more")
	case job.Spec.Tune != nil:
		return outcome.Errorf(outcome.Usage, "job/%s has trials, whose lines are in its output with the number of their trial in front; give --trial NUMBER in place of --process, and for the lines of all processes "+
			"set gang.output to All in a new job", job.Name)
	case job.Spec.Gang == nil:
		return outcome.Errorf(outcome.Usage, "job/%s is not a gang and has one output; leave out --process", job.Name)
	}
	count, has := heads.CountProcesses(job.Spec.Gang, role)
	if !has {
		return outcome.Errorf(outcome.Usage, "the gang of job/%s has no role %q; %s", job.Name, role,
			spelling.Remedy(role, heads.RoleNames(job.Spec.Gang)))
	}
	if number >= count {
		return outcome.Errorf(outcome.Usage, "the gang of job/%s has %d processes of role %s; give %s/0 to %s/%d", job.Name, count, role, role, role, count-1)
	}
	return nil
}

// processOutput is the log of one process of a gang, round by round.
type processOutput struct {
	output  *Output
	process process
	job     *v1beta1.ClusterJob

	heads   away.Heads
	attempt v1beta1.JobAttempt
	// round is the one that is printed, 0 before there is one, and printed how much of its file was.
	round   int32
	printed int64
	// hasOlder is that the log of the round was rotated at the last look.
	hasOlder bool
	// missing is which Ray nodes did not answer at the last look.
	missing string
}

// print prints the log, and where it is followed, what comes until the attempt has ended.
func (o *processOutput) print(ctx context.Context) error {
	c := o.output.Clusters.Console
	if o.output.Attempt < 0 {
		return outcome.Errorf(outcome.Usage, "--attempt must not be negative; give 1 or more")
	}
	var err error
	if o.heads, err = o.output.Clusters.Find(); err != nil {
		return err
	}
	target := kube.TargetOf(o.job)
	head := patience{console: c, who: "the head", what: target.String(), again: console.Again(o.job.Namespace, "logs %s -f --process %s", target, o.process.name)}
	for {
		isLast, err := o.refresh(ctx)
		if err == nil {
			err = o.look(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return detached(o.job, "--process", o.process.name)
		case err == nil && (isLast || !o.output.IsFollowed):
			return o.end()
		case err == nil:
			head.silence.Broken()
			err = pause(ctx, c, max(console.Look, headclient.Reread(o.printed)))
		case o.output.IsFollowed && !isLast && away.IsPassing(err):
			err = head.rest(ctx, err)
		}
		if err != nil && ctx.Err() == nil {
			return kube.Because(err)
		}
	}
}

// refresh reads the job and its attempt again, and reports whether nothing follows in its log.
func (o *processOutput) refresh(ctx context.Context) (isLast bool, err error) {
	job, err := o.output.read(ctx, o.job)
	if err != nil {
		return false, err
	}
	if o.attempt.SubmissionID != "" {
		found := find(job, o.attempt.Number)
		if found == nil || found.SubmissionID != o.attempt.SubmissionID {
			return true, nil
		}
		o.attempt = *found
		return found.EndTime != nil, nil
	}
	step := next(job, 0, o.output.Attempt)
	switch {
	case step.attempt != nil:
		o.attempt = *step.attempt
		return o.attempt.EndTime != nil, o.checkClear(ctx)
	case step.isEnd || !o.output.IsFollowed:
		return true, outcome.Errorf(outcome.Failed, "job/%s has no log of %s: it is %s", job.Name, o.process.name, overview.Phase(job))
	}
	return false, nil
}

// checkClear refuses a cluster whose Ray nodes nobody can ask for files.
func (o *processOutput) checkClear(ctx context.Context) error {
	found, err := o.output.Clusters.Objects.Read(ctx, kube.Target{Kind: kube.Cluster, Name: o.attempt.ClusterName})
	if err != nil {
		return err
	}
	cluster, is := found.(*v1beta1.ComputeCluster)
	if is && cluster.Spec.Network != nil && cluster.Spec.Network.Encryption == v1beta1.Enabled {
		return outcome.Errorf(outcome.Refused, "ComputeCluster %s encrypts its traffic, and there is no way to the logs of single processes then; "+
			"read what the driver streamed with %s, and set gang.output to All in a new job to have all processes there",
			cluster.Name, console.Again(o.job.Namespace, "logs %s", kube.TargetOf(o.job)))
	}
	return nil
}

// look prints what is new in the rounds of the process.
func (o *processOutput) look(ctx context.Context) error {
	if o.attempt.SubmissionID == "" {
		return nil
	}
	of := away.Process{Job: o.job, Attempt: o.attempt, Name: o.process.name}
	return o.heads.ReadRounds(ctx, of, func(found heads.Rounds, read away.ReadRound) error {
		o.missing = found.Missing()
		for i, one := range found.All {
			if !o.isWanted(one.Number, i == len(found.All)-1) {
				continue
			}
			if err := o.printRound(ctx, one, read); err != nil {
				return err
			}
		}
		return nil
	})
}

// isWanted reports whether to print a round, the newest or an older one.
func (o *processOutput) isWanted(number int32, isNewest bool) bool {
	switch {
	case o.process.round > 0:
		return number == o.process.round
	case o.round == 0:
		return isNewest
	default:
		return number >= o.round
	}
}

// printRound prints what is new in the log of a round. Its older part comes first, where there is one.
func (o *processOutput) printRound(ctx context.Context, of heads.Round, read away.ReadRound) error {
	copyPart := func(isOlder bool) error {
		return o.copy(func(offset int64, out io.Writer) error { return read(ctx, of, isOlder, offset, out) })
	}
	isNew := of.Number != o.round
	if isNew && o.round > 0 {
		o.output.Clusters.Console.Note("round %d of %s", of.Number, o.process.name)
	}
	if isNew && o.process.round == 0 && o.missing != "" {
		o.output.Clusters.Console.Note("%s; a newer round than %d may be there", o.missing, of.Number)
	}
	if isNew {
		o.round, o.printed, o.hasOlder = of.Number, 0, false
	}
	var err error
	switch {
	case isNew && of.HasOlder:
		err = o.printParts(copyPart)
	case of.HasOlder && !o.hasOlder:
		err = o.printRotated(copyPart)
	default:
		if err = copyPart(false); errors.Is(err, away.ErrLogShorter) { // it was rotated since the last look
			err = o.printRotated(copyPart)
		}
	}
	if errors.Is(err, away.ErrLogGone) && o.output.IsFollowed { // with its node, and another round may follow
		return nil
	}
	return err
}

// printParts prints what follows in the older part of a log, and then the part that is written.
func (o *processOutput) printParts(copyPart func(isOlder bool) error) error {
	if err := copyPart(true); err != nil {
		return err
	}
	o.printed, o.hasOlder = 0, true
	return copyPart(false)
}

// printRotated prints a log that was rotated since the last look. Where that happened once, its older part is the file that was
// printed until then. It may have happened more often, and the files between are gone.
func (o *processOutput) printRotated(copyPart func(isOlder bool) error) error {
	o.output.Clusters.Console.Note("the log of %s was rotated; lines may be missing where it grows by more than 128 MiB between two looks",
		o.process.name)
	err := o.printParts(copyPart)
	if errors.Is(err, away.ErrLogShorter) { // another file
		o.printed = 0
		err = o.printParts(copyPart)
	}
	return err
}

// copy prints what follows in a part of a log after what was printed of it.
func (o *processOutput) copy(read func(offset int64, out io.Writer) error) error {
	out := &counter{out: o.output.Clusters.Console.Out}
	err := read(o.printed, out)
	o.printed += out.count
	if out.err != nil {
		return outcome.Errorf(outcome.Failed, "print the log: %w", out.err)
	}
	return err
}

// end says why there was no log, where there was none.
func (o *processOutput) end() error {
	if o.round > 0 {
		return nil
	}
	what := o.process.name
	if o.process.round > 0 {
		what = fmt.Sprintf("round %d of %s", o.process.round, what)
	}
	why := "it did not start, or its Ray node is gone with the log"
	if o.missing != "" {
		why = o.missing
	}
	return outcome.Errorf(outcome.Failed, "ComputeCluster %s has no log of %s of attempt %d: %s; see %s", o.attempt.ClusterName, what, o.attempt.Number, why,
		console.Again(o.job.Namespace, "why job/%s", o.job.Name))
}
