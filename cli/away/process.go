package away

import (
	"context"
	"io"

	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// ReadFile writes what follows in a file after an offset, up to the end that it has now.
type ReadFile func(ctx context.Context, file headclient.Log, offset int64, out io.Writer) error

// ReadFiles implements Heads, in one conversation with the head.
func (c *Clusters) ReadFiles(
	ctx context.Context, attempt v1beta1.JobAttempt, glob string, visit func(found []headclient.Log, silent int, read ReadFile) error,
) error {
	head, err := c.Converse(ctx, attempt.ClusterName)
	if err != nil {
		return err
	}
	defer func() { _ = head.Close() }() // it was read, or the failure is another
	found, silent, err := head.FindLogs(ctx, glob)
	if err != nil {
		return head.Explain(err)
	}
	return visit(found, len(silent), func(ctx context.Context, file headclient.Log, offset int64, out io.Writer) error {
		_, err := head.LogFile(ctx, file, offset, out)
		return explainLog(head, err)
	})
}

// ReadFiles implements Heads. The server reads the output of drivers alone.
func (s *Server) ReadFiles(
	context.Context, v1beta1.JobAttempt, string, func([]headclient.Log, int, ReadFile) error,
) error {
	return outcome.Errorf(outcome.Refused, "the server has no logs of single processes; leave out --server, or --process")
}
