package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/heliostat-dev/heliostat/apiserver/kept"
	"github.com/heliostat-dev/heliostat/apiserver/logs"
	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/portal/problem"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// jobLogs are the outputs of jobs, while their heads are there and afterwards.
type jobLogs struct{ *portal }

// keptLog is a request for the output of a job, as calls about what is kept are.
type keptLog struct{ *heliostatv1.ReadLogRequest }

// GetKind implements target.
func (keptLog) GetKind() string { return view.Jobs }

// reachLog finds whose output a request is for: that of the job that is there, for which it returns nil, or what is kept of one.
func (p jobLogs) reachLog(ctx context.Context, r *heliostatv1.ReadLogRequest) (*found, error) {
	if err := checkKept(keptLog{r}); err != nil {
		return nil, err
	}
	err := p.permitAt(ctx, "ReadLog", r, "")
	var refused *problem.Problem
	isMissing := errors.As(err, &refused) && (refused.Code == http.StatusNotFound || refused.Code == http.StatusForbidden)
	switch {
	case err == nil && (r.GetUid() == "" || r.GetUid() == string(p.jobOf(r).UID)):
		return nil, nil //nolint:nilnil // the job is there
	case err != nil && !isMissing:
		return nil, err
	case p.History == nil && err != nil:
		return nil, err
	}
	return p.find(ctx, "ReadLog", keptLog{r})
}

// jobOf returns the job of a request as the view has it, and an empty one where it has none.
func (p jobLogs) jobOf(r place) *v1beta1.ClusterJob {
	object, _, _ := p.View.Find(view.Key{Kind: view.Jobs, Namespace: r.GetNamespace(), Name: r.GetName()})
	if job, is := object.(*v1beta1.ClusterJob); is {
		return job
	}
	return &v1beta1.ClusterJob{}
}

// relay hands on what a job says while it is there. From where its output is gone, what comes is held: the archive may have the rest.
type relay struct {
	sink logs.Sink
	// at is where the output goes on.
	at                      int64
	hasSent, hasData, isOut bool
	round                   int32
	held                    []logs.Event
}

// maxHeld is how many events are held: a notice, the last lines of a status, and an end.
const maxHeld = 16

// stays are the codes of ends by which no output is lost.
var stays = []string{reason.ReaderBehind.Code, reason.OutputShorter.Code, reason.OutputNotKept.Code, reason.OutputUnreadable.Code}

// isLoss reports whether an event says that the output is gone.
func isLoss(event logs.Event) bool {
	isNotice := event.Notice != nil && event.Notice.Code == reason.OutputGone.Code
	return isNotice || event.End != nil && event.End.Outcome == logs.Broken && !slices.Contains(stays, event.End.Code)
}

func (r *relay) take(event logs.Event) error {
	if event.Notice != nil && event.Notice.Round > 0 {
		r.round = event.Notice.Round
	}
	if r.isOut = r.isOut || isLoss(event); !r.isOut {
		r.at, r.hasSent, r.hasData = event.Offset, true, r.hasData || event.Data != nil
		return r.sink(event)
	}
	if len(r.held) < maxHeld {
		event.Data = bytes.Clone(event.Data)
		r.held = append(r.held, event)
	}
	return nil
}

// end returns how the job has ended, where an event that is held says so.
func (r *relay) end() *logs.End {
	for _, event := range r.held {
		if event.End != nil && event.End.Outcome != logs.Broken {
			return event.End
		}
	}
	return nil
}

// readJob reads the output of a job that is there, and goes on with what is kept of it where its head is gone.
func (p jobLogs) readJob(ctx context.Context, r *heliostatv1.ReadLogRequest, options logs.Options, sink logs.Sink) error {
	job := p.jobOf(r)
	if p.History == nil || job.UID == "" {
		return p.readLive(ctx, r, options, sink)
	}
	out := &relay{sink: sink, at: options.Offset}
	asked := keptLog{&heliostatv1.ReadLogRequest{Namespace: r.GetNamespace(), Name: r.GetName(), Attempt: r.GetAttempt(), Uid: string(job.UID),
		Process: r.GetProcess(), Round: r.GetRound(), Older: r.GetOlder()}}
	if all := job.Status.Attempts; asked.Attempt == 0 && len(all) > 0 {
		asked.Attempt = all[len(all)-1].Number
	}
	err := p.readLive(ctx, r, options, out.take)
	if ctx.Err() != nil || err == nil && !out.isOut || err != nil && (out.hasSent || !isAbsent(err)) {
		return err
	}
	if asked.Round == 0 {
		asked.Round = out.round
	}
	if options.Offset = out.at; out.hasData {
		options.Tail = 0
	}
	object, failure := p.find(ctx, "ReadLog", asked)
	if failure == nil {
		failure = p.readKept(ctx, object, asked.ReadLogRequest, options, out.end(), func(event logs.Event) error {
			out.hasSent = true
			return sink(event)
		})
	}
	if failure == nil || out.hasSent && !errors.Is(failure, kept.ErrNothing) && !isProblem(failure) {
		return failure
	}
	for _, event := range out.held { // nothing is kept of it, so what is known is said
		if err := sink(event); err != nil {
			return err
		}
	}
	return err
}

// isProblem reports whether an error says why something is not answered.
func isProblem(err error) bool {
	var known *problem.Problem
	return errors.As(err, &known)
}

// isAbsent reports whether an error of a read that has not begun is that the output is not to be had where it was.
func isAbsent(err error) bool {
	var away *heads.Unavailable
	var refused *heads.Refusal
	return errors.As(err, &away) && away.Code != reason.OutputsCrowded.Code || errors.As(err, &refused) && refused.Sort == heads.NotFound
}

// readLive reads the output of a job from its head.
func (p jobLogs) readLive(ctx context.Context, r *heliostatv1.ReadLogRequest, options logs.Options, sink logs.Sink) error {
	if r.GetProcess() != "" {
		return readProcess(ctx, p.portal, r, options, sink)
	}
	return p.Logs.ReadJob(ctx, logs.JobReference{Namespace: r.GetNamespace(), Name: r.GetName(), Attempt: r.GetAttempt()}, options, sink)
}

// readKept reads what is kept of the output of a job. How the job has ended may be known.
func (p jobLogs) readKept(
	ctx context.Context, object *found, r *heliostatv1.ReadLogRequest, options logs.Options, end *logs.End, sink logs.Sink,
) error {
	archivers, err := p.kept()
	if err != nil {
		return err
	}
	attempt := object.AttemptOf(r.GetAttempt())
	if attempt == nil {
		return whyNoLog(logs.ErrNotFound)
	}
	of := kept.Output{ClusterUID: string(attempt.ClusterUID), Path: kept.DriverFile(attempt.SubmissionID)}
	if r.GetProcess() != "" {
		if of.Path, sink, err = p.keptProcess(ctx, archivers, object, attempt, r, sink); err != nil {
			return err
		}
	}
	isIts := func(one kept.Place) bool { return one.ClusterUID == of.ClusterUID && one.Has(of.Path) }
	if !slices.ContainsFunc(object.Places, isIts) {
		return p.whyNoOutput(ctx, archivers, object)
	}
	at, err := archivers.ReadOn(ctx, object.Object, of, options, sink)
	switch {
	case errors.Is(err, kept.ErrNothing):
		return p.whyNoOutput(ctx, archivers, object)
	case err != nil:
		return ofArchivers(err)
	}
	if end == nil {
		said, err := archivers.EndOf(ctx, object.Object, attempt.Number, options.Follow)
		if err != nil {
			return err
		}
		end = &said
	}
	return sink(logs.Event{Offset: at, End: end})
}

// whyNoOutput returns why nothing is kept of the output of a job.
func (p jobLogs) whyNoOutput(ctx context.Context, archivers *kept.Kept, object *found) error {
	if err := p.whyNoFiles(ctx, archivers, object); err != nil {
		return err
	}
	return problem.New(http.StatusNotFound, "NotFound", fmt.Sprintf("nothing is kept of the output of job %s", object.Record.GetName()),
		"look at the list of files that are kept")
}

// keptProcess returns the file with the log of a process of a gang, and a sink that says which round it is of where the caller gave none.
func (p jobLogs) keptProcess(
	ctx context.Context, archivers *kept.Kept, object *found, attempt *v1beta1.JobAttempt, r *heliostatv1.ReadLogRequest, sink logs.Sink,
) (string, logs.Sink, error) {
	if _, _, is := heads.ParseProcess(r.GetProcess()); !is {
		return "", nil, needsProcess()
	}
	rounds, err := archivers.Rounds(ctx, object.Object, attempt, r.GetProcess())
	if err != nil {
		return "", nil, ofArchivers(err)
	}
	if r.GetRound() != 0 {
		return kept.ProcessFile(attempt.SubmissionID, kept.Log{Process: r.GetProcess(), Round: r.GetRound(), IsOlder: r.GetOlder()}), sink, nil
	}
	if len(rounds) == 0 {
		return "", nil, p.whyNoOutput(ctx, archivers, object)
	}
	newest := rounds[len(rounds)-1].Number
	said := reason.NewestRound.Of(newest, r.GetProcess(), "it is the newest one that is kept")
	isTold := false
	announcing := func(event logs.Event) error {
		if !isTold {
			isTold = true
			if err := sink(logs.Event{Notice: &logs.Notice{Code: said.Code, Message: said.Text, Round: newest}}); err != nil {
				return err
			}
		}
		return sink(event)
	}
	return kept.ProcessFile(attempt.SubmissionID, kept.Log{Process: r.GetProcess(), Round: newest, IsOlder: r.GetOlder()}), announcing, nil
}
