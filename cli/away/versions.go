package away

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/heliostat-dev/heliostat/cli/console"
)

// Versions are those of Ray and Python of a head; "" is not known.
type Versions struct{ Ray, Python string }

// FindVersions implements Heads.
func (c *Clusters) FindVersions(ctx context.Context, _, cluster string) (Versions, error) {
	head, err := c.Converse(ctx, cluster)
	if err != nil {
		return Versions{}, err
	}
	defer func() { _ = head.Close() }() // it was read, or the failure is another
	said, err := head.Session(ctx)
	if err != nil {
		return Versions{}, head.Explain(err)
	}
	python, err := head.Python(ctx)
	if err != nil {
		c.Console.Note("warning: the cluster's Python is not known: %v", head.Explain(err))
	}
	return Versions{said.Version, python}, nil
}

// FindVersions implements Heads.
func (s *Server) FindVersions(ctx context.Context, namespace, cluster string) (Versions, error) {
	at, err := s.Dashboard(ctx, namespace, "clusters", cluster)
	if err != nil {
		return Versions{}, err
	}
	var session struct {
		Version string `json:"ray_version"`
	}
	var metadata struct {
		Data struct {
			Python string `json:"pythonVersion"`
		} `json:"data"`
	}
	for _, one := range []struct {
		path string
		into any
	}{{"/api/version", &session}, {"/api/v0/cluster_metadata", &metadata}} {
		said, err := s.askDashboard(ctx, http.MethodGet, strings.TrimRight(at, "/")+one.path, nil)
		if err != nil {
			return Versions{}, err
		}
		if err := json.Unmarshal(said, one.into); err != nil {
			return Versions{}, fmt.Errorf("read what the server %s says of %s: %w", s.url, one.path, err)
		}
	}
	return Versions{console.Printable(session.Version), console.Printable(metadata.Data.Python)}, nil
}
