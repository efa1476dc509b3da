package rest

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/heliostat-dev/heliostat/apiserver/logs"
	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/portal/problem"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
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
	of := heads.Process{Submission: attempt.SubmissionID, Name: r.GetProcess()}
	rounds, silent, err := p.Heads.ListRounds(ctx, clusterOf(r, attempt), of)
	if err != nil {
		return nil, ofHead(err)
	}
	answer := &heliostatv1.ListRoundsResponse{SilentNodes: int32(silent)}
	for _, one := range rounds {
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
	of := heads.Process{Submission: attempt.SubmissionID, Name: r.GetProcess()}
	rounds, silent, err := p.Heads.ListRounds(ctx, clusterOf(r, attempt), of)
	if err != nil {
		return ofHead(err)
	}
	at := slices.IndexFunc(rounds, func(one heads.Round) bool { return one.Number == r.GetRound() })
	if r.GetRound() == 0 {
		at = len(rounds) - 1
	}
	if at < 0 {
		why := "the process did not start in it, or its Ray node is gone with the log"
		if silent > 0 {
			why = fmt.Sprintf("%d Ray nodes do not answer", silent)
		}
		return problem.New(http.StatusNotFound, reason.OutputGone.Code, fmt.Sprintf("there is no log of %s of this round: %s", of.Name, why),
			"List the rounds of the process")
	}
	return p.Logs.ReadProcess(ctx, logs.ProcessReference{
		Job: logs.JobReference{Namespace: r.GetNamespace(), Name: r.GetName(), Attempt: attempt.Number},
		On:  clusterOf(r, attempt), Log: rounds[at].File(r.GetOlder()),
	}, options, sink)
}

// attemptOf returns the attempt of a gang that a request for one of its processes is about.
func attemptOf(p *portal, r processRequest) (*v1beta1.JobAttempt, error) {
	if !heads.IsProcessName(r.GetProcess()) {
		return nil, needsProcess()
	}
	object, _, _ := p.View.Find(view.Key{Kind: view.Jobs, Namespace: r.GetNamespace(), Name: r.GetName()})
	job, is := object.(*v1beta1.ClusterJob)
	if !is {
		return nil, whyNoLog(logs.ErrNotFound)
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

// clusterOf returns the cluster of an attempt.
func clusterOf(r place, attempt *v1beta1.JobAttempt) heads.Reference {
	return heads.Reference{Namespace: r.GetNamespace(), Name: attempt.ClusterName, UID: attempt.ClusterUID}
}

func needsProcess() error {
	return problem.Bad("query.process", "must be ROLE/NUMBER, a process of the job's gang", "correct it, such as worker/3")
}
