package away

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// bytesPerCall is how much of a package goes up in the time of a call, at the least.
const bytesPerCall = 4 << 20

// Package is an archive that the jobs of a cluster can run in, as gcs://NAME.
type Package struct {
	Namespace, Cluster, Name string
	Archive                  []byte
}

// KeepPackage implements Heads, in one conversation with the head.
func (c *Clusters) KeepPackage(ctx context.Context, of Package, upload func()) error {
	head, err := c.Converse(ctx, of.Cluster)
	if err != nil {
		return err
	}
	defer func() { _ = head.Close() }() // it has answered, or the failure is another
	isThere, err := head.HasPackage(ctx, of.Name)
	if err != nil || isThere {
		return head.Explain(err)
	}
	upload()
	return head.Explain(head.Upload(ctx, of.Name, of.Archive))
}

// KeepPackage implements Heads. The server hands what is sent to the dashboard on to the head.
func (s *Server) KeepPackage(ctx context.Context, of Package, upload func()) error {
	at, err := s.Dashboard(ctx, of.Namespace, "clusters", of.Cluster)
	if err != nil {
		return err
	}
	at = strings.TrimRight(at, "/") + "/api/packages/gcs/" + of.Name
	if _, err := s.askDashboard(ctx, http.MethodGet, at, nil); !errors.Is(err, errNoPackage) {
		return err
	}
	upload()
	_, err = s.askDashboard(ctx, http.MethodPut, at, of.Archive)
	return err
}

// errNoPackage is that the head does not have a package.
var errNoPackage = errors.New("the head does not have the package")

// askDashboard sends a request to a dashboard, and returns its answer, or why there is none.
func (s *Server) askDashboard(ctx context.Context, method, at string, archive []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(1+len(archive)/bytesPerCall)*callWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(archive))
	if err != nil {
		return nil, outcome.Errorf(outcome.Usage, "%s is no address: %w", at, err)
	}
	if method == http.MethodPut {
		request.Header.Set("Content-Type", "application/octet-stream")
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return nil, s.because(err)
	}
	defer func() { _ = answer.Body.Close() }() // it was read
	said, err := io.ReadAll(io.LimitReader(answer.Body, largestAnswer))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read what the server %s answers: %w", s.url, err)
	case answer.StatusCode == http.StatusOK:
		return said, nil
	case headclient.IsPackageMissing(answer.StatusCode, string(said)):
		return nil, errNoPackage
	}
	answer.Body = io.NopCloser(bytes.NewReader(said))
	return nil, s.refused(answer)
}
