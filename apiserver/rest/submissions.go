package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/portal/problem"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// place is what calls about a cluster or a job of a fixed kind have in common.
type place interface {
	GetNamespace() string
	GetName() string
}

// submissions are the calls about submissions to a cluster's head.
type submissions struct{ *reviewer }

func referenceOf(on place) heads.Reference {
	return heads.Reference{Namespace: on.GetNamespace(), Name: on.GetName()}
}

// ListSubmissions implements the protocol.
func (s submissions) ListSubmissions(
	ctx context.Context, r *heliostatv1.ListSubmissionsRequest,
) (*heliostatv1.ListSubmissionsResponse, error) {
	if err := s.permitAt(ctx, "ListSubmissions", r, ""); err != nil {
		return nil, err
	}
	jobs, err := s.Heads.ListSubmissions(ctx, referenceOf(r))
	if err != nil {
		return nil, ofHead(err)
	}
	answer := &heliostatv1.ListSubmissionsResponse{}
	for _, job := range jobs {
		answer.Submissions = append(answer.Submissions, submissionOf(job))
	}
	return answer, nil
}

// GetSubmission implements the protocol.
func (s submissions) GetSubmission(
	ctx context.Context, r *heliostatv1.GetSubmissionRequest,
) (*heliostatv1.Submission, error) {
	if err := s.permitAt(ctx, "GetSubmission", r, r.GetId()); err != nil {
		return nil, err
	}
	job, err := s.Heads.FindSubmission(ctx, referenceOf(r), r.GetId())
	if err != nil {
		return nil, ofHead(err)
	}
	return submissionOf(job), nil
}

// CreateSubmission implements the protocol.
func (s submissions) CreateSubmission(
	ctx context.Context, r *heliostatv1.CreateSubmissionRequest,
) (*heliostatv1.Submission, error) {
	if err := s.permitAt(ctx, "CreateSubmission", r, r.GetId()); err != nil {
		return nil, err
	}
	if r.GetEntrypoint() == "" {
		return nil, problem.Bad("entrypoint", "is missing", "give the command to run")
	}
	submission := headclient.Submission{
		ID: r.GetId(), Entrypoint: r.GetEntrypoint(), Metadata: r.GetMetadata(), CPUs: r.GetEntrypointNumCpus(), GPUs: r.GetEntrypointNumGpus(),
		Memory: r.GetEntrypointMemory(), Resources: r.GetEntrypointResources(),
	}
	if r.GetRuntimeEnv() != nil {
		text, err := json.Marshal(r.GetRuntimeEnv().AsMap())
		if err != nil {
			return nil, fmt.Errorf("write the runtime environment: %w", err)
		}
		submission.RuntimeEnv = text
	}
	job, _, err := s.Heads.Submit(ctx, referenceOf(r), submission)
	if err != nil {
		return nil, ofHead(err)
	}
	return submissionOf(job), nil
}

// StopSubmission implements the protocol.
func (s submissions) StopSubmission(
	ctx context.Context, r *heliostatv1.StopSubmissionRequest,
) (*heliostatv1.Submission, error) {
	if err := s.permitAt(ctx, "StopSubmission", r, r.GetId()); err != nil {
		return nil, err
	}
	stopped, err := s.Heads.StopSubmission(ctx, referenceOf(r), r.GetId())
	if err != nil {
		return nil, ofHead(err)
	}
	answer := submissionOf(stopped.Job)
	answer.Note = stopped.Note
	return answer, nil
}

// submissionOf returns one of Ray's own jobs as the protocol has it. The entrypoint is the user's own.
func submissionOf(job headclient.Job) *heliostatv1.Submission {
	metadata := map[string]string{}
	for key, value := range job.Metadata {
		metadata[valid(key)] = valid(value)
	}
	return &heliostatv1.Submission{
		Id: job.ID, Entrypoint: valid(strings.TrimPrefix(job.Entrypoint, v1beta1.EntrypointPrefix)),
		Status: string(job.Status), Message: valid(job.Message), ErrorType: job.ErrorType,
		Started: stamp(job.Start), Ended: stamp(job.End), ExitCode: job.ExitCode, Metadata: metadata,
	}
}

// valid returns a text of a user as one that the protocol can have.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// ofHead returns why a head did not do what was asked of it as a problem. Other errors stay.
func ofHead(err error) error {
	var away *heads.Unavailable
	var refused *heads.Refusal
	switch {
	case errors.As(err, &away):
		code := http.StatusConflict
		switch {
		case away.Code == "ClusterMissing":
			code = http.StatusNotFound
		case away.Temporary:
			code = http.StatusServiceUnavailable
		}
		return problem.New(code, away.Code, away.Message, away.Remedy).Later(away.RetryAfter)
	case errors.As(err, &refused):
		code := map[heads.Sort]int{
			heads.NotFound: http.StatusNotFound, heads.Conflict: http.StatusConflict, heads.Invalid: http.StatusUnprocessableEntity,
		}[refused.Sort]
		return problem.New(code, refused.Code, refused.Message, refused.Remedy)
	}
	return err
}
