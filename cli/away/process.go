package away

import (
	"context"
	"io"
	"net/url"
	"strconv"

	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Process is a process of a gang in an attempt.
type Process struct {
	Job     *v1beta1.ClusterJob
	Attempt v1beta1.JobAttempt
	// Name is that of the process, such as worker/3.
	Name string
}

// ReadRound writes what follows in a part of the log of a round after an offset, up to the end that it has now.
type ReadRound func(ctx context.Context, of heads.Round, isOlder bool, offset int64, out io.Writer) error

// ReadRounds implements Heads, in one conversation with the head.
func (c *Clusters) ReadRounds(
	ctx context.Context, of Process, visit func(found heads.Rounds, read ReadRound) error,
) error {
	head, err := c.Converse(ctx, of.Attempt.ClusterName)
	if err != nil {
		return err
	}
	defer func() { _ = head.Close() }() // it was read, or the failure is another
	found, err := head.ListRounds(ctx, heads.Process{Submission: of.Attempt.SubmissionID, Name: of.Name})
	if err != nil {
		return head.Explain(err)
	}
	return visit(found, func(ctx context.Context, of heads.Round, isOlder bool, offset int64, out io.Writer) error {
		_, err := head.LogFile(ctx, of.File(isOlder), offset, out)
		return explainLog(head, err)
	})
}

// ReadRounds implements Heads. The server reads each part of a log by itself, from an offset.
func (s *Server) ReadRounds(
	ctx context.Context, of Process, visit func(found heads.Rounds, read ReadRound) error,
) error {
	path := []string{"namespaces", of.Job.Namespace, "jobs", of.Job.Name}
	query := url.Values{"attempt": {strconv.Itoa(int(of.Attempt.Number))}, "process": {of.Name}}
	var list struct {
		Rounds                    []heads.Round
		SilentNodes, UnaskedNodes int
	}
	if err := s.decodeWith(ctx, &list, query, append(path, "rounds")...); err != nil {
		return err
	}
	found := heads.Rounds{All: list.Rounds, Silent: list.SilentNodes, Unasked: list.UnaskedNodes}
	return visit(found, func(ctx context.Context, round heads.Round, isOlder bool, offset int64, out io.Writer) error {
		query := url.Values{
			"attempt": query["attempt"], "process": query["process"], "round": {strconv.Itoa(int(round.Number))},
			"older": {strconv.FormatBool(isOlder)}, "offset": {strconv.FormatInt(offset, 10)},
		}
		return s.copy(ctx, out, query, append(path, "log")...)
	})
}
