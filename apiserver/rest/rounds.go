package rest

import (
	"context"
	"fmt"
	"slices"

	"github.com/heliostat-dev/heliostat/apiserver/logs"
	"github.com/heliostat-dev/heliostat/apiserver/spelling"
	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/portal/problem"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// processRequest is what the calls for a process of a gang have in common.
type processRequest interface {
	place
	GetAttempt() int32
	GetProcess() string
}

// ListRounds implements the protocol.
func (p *portal) ListRounds(ctx context.Context, r *heliostatv1.ListRoundsRequest) (*heliostatv1.ListRoundsResponse, error) {
	if err := p.permitAt(ctx, "ListRounds", r, ""); err != nil {
		return nil, err
	}
	attempt, err := attemptOf(p, r)
	if err != nil {
		return nil, err
	}
	caller, err := callerOf(ctx)
	if err != nil {
		return nil, err
	}
	of := heads.Process{Submission: attempt.SubmissionID, Name: r.GetProcess()}
	found, err := p.Logs.ListRounds(ctx, clusterOf(r, attempt), of, caller.Holder())
	if err != nil {
		return nil, ofHead(err)
	}
	answer := &heliostatv1.ListRoundsResponse{SilentNodes: int32(found.Silent), UnaskedNodes: int32(found.Unasked)}
	for _, one := range found.All {
		answer.Rounds = append(answer.Rounds, &heliostatv1.Round{Number: one.Number, HasOlder: one.HasOlder})
	}
	return answer, nil
}

// readProcess reads the log of a process of a gang in one round.
func readProcess(
	ctx context.Context, p *portal, r *heliostatv1.ReadLogRequest, options logs.Options, sink logs.Sink,
) error {
	if r.GetRound() == 0 && r.GetOffset() > 0 {
		return problem.Bad("query.round", "must be given with an offset, which counts in the log of one round", "give the round")
	}
	attempt, err := attemptOf(p, r)
	if err != nil {
		return err
	}
	return p.Logs.ReadProcess(ctx, logs.ProcessReference{
		Job:     logs.JobReference{Namespace: r.GetNamespace(), Name: r.GetName(), Attempt: attempt.Number},
		On:      clusterOf(r, attempt),
		Process: heads.Process{Submission: attempt.SubmissionID, Name: r.GetProcess()}, Round: r.GetRound(), IsOlder: r.GetOlder(),
	}, options, sink)
}

// attemptOf returns the attempt of a gang that a request for one of its processes is about.
func attemptOf(p *portal, r processRequest) (*v1beta1.JobAttempt, error) {
	role, number, is := heads.ParseProcess(r.GetProcess())
	if !is {
		return nil, needsProcess()
	}
	object, _, _ := p.View.Find(view.Key{Kind: view.Jobs, Namespace: r.GetNamespace(), Name: r.GetName()})
	job, isThere := object.(*v1beta1.ClusterJob)
	if !isThere {
		return nil, whyNoLog(logs.ErrNotFound)
	}
	if err := checkProcess(job, role, number); err != nil {
		return nil, err
	}
	all := job.Status.Attempts
	at := slices.IndexFunc(all, func(one v1beta1.JobAttempt) bool { return one.Number == r.GetAttempt() })
	if r.GetAttempt() == 0 {
		at = len(all) - 1
	}
	if at < 0 {
		return nil, whyNoLog(logs.ErrNotFound)
	}
	return &all[at], nil
}

// checkProcess refuses a process that the gang of a job does not have: no Ray node has its log.
func checkProcess(job *v1beta1.ClusterJob, role string, number int) error {
	const field = "query.process"
	if job.Spec.Tune != nil {
		return problem.Bad(field, fmt.Sprintf("names a process, and job %s has trials, whose lines are in its output", job.Name), "leave it out")
	}
	if job.Spec.Gang == nil {
		return problem.Bad(field, fmt.Sprintf("names a process of a gang, and job %s is not a gang", job.Name), "leave it out")
	}
	count, has := heads.CountProcesses(job.Spec.Gang, role)
	switch {
	case !has:
		return problem.Bad(field, fmt.Sprintf("names the role %q, which the gang does not have", role),
			spelling.Remedy(role, heads.RoleNames(job.Spec.Gang)))
	case number >= count:
		return problem.Bad(field, fmt.Sprintf("must be one of the %d processes of role %s", count, role),
			fmt.Sprintf("give %s/0 to %s/%d", role, role, count-1))
	}
	return nil
}

// needsRound refuses server-sent events of a process without a round.
func needsRound() error {
	return problem.Bad("query.round", "must be given with server-sent events, whose IDs are offsets in the log of one round",
		"list the rounds of the process and give one")
}

// clusterOf returns the cluster of an attempt.
func clusterOf(r place, attempt *v1beta1.JobAttempt) heads.Reference {
	return heads.Reference{Namespace: r.GetNamespace(), Name: attempt.ClusterName, UID: attempt.ClusterUID}
}

func needsProcess() error {
	return problem.Bad("query.process", "must be ROLE/NUMBER, a process of the job's gang", "correct it, such as worker/3")
}
