package away_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/cli/away"
	"github.com/heliostat-dev/heliostat/cli/outcome"
)

// archive is a package of a cluster.
var archive = away.Package{Namespace: "team-a", Cluster: "demo", Name: "_ray_pkg_0123456789abcdef.zip", Archive: []byte("files")}

// packages answers as a server with a dashboard of cluster demo does, whose head has what was put there.
type packages struct {
	has   map[string]string
	asked []string
	// refuses is the status of what the dashboard refuses, 0 for nothing.
	refuses int
}

// ServeHTTP implements http.Handler.
func (p *packages) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	p.asked = append(p.asked, in.Method+" "+in.URL.Path)
	name, isPackage := strings.CutPrefix(in.URL.Path, "/team-a/demo/api/packages/gcs/")
	switch {
	case in.Header.Get("Authorization") != "Bearer of-anna":
		http.Error(out, "who is it?", http.StatusUnauthorized)
	case in.URL.Path == "/v1/namespaces/team-a/clusters/demo":
		_, _ = fmt.Fprintf(out, `{"dashboard": "https://%s/team-a/demo/"}`, in.Host)
	case in.URL.Path == "/team-a/demo/api/version":
		_, _ = io.WriteString(out, `{"ray_version": "2.60.0"}`)
	case in.URL.Path == "/team-a/demo/api/v0/cluster_metadata":
		_, _ = io.WriteString(out, `{"data": {"pythonVersion": "3.11.2"}}`)
	case !isPackage:
		http.NotFound(out, in)
	case p.refuses != 0:
		http.Error(out, "heliostat: the cluster is suspended; run heliostat resume demo", p.refuses)
	case in.Method == http.MethodPut && in.Header.Get("Content-Type") != "application/octet-stream":
		http.Error(out, "it is no archive", http.StatusUnsupportedMediaType)
	case in.Method == http.MethodPut:
		text, _ := io.ReadAll(in.Body)
		p.has[name] = string(text)
	case p.has[name] == "":
		out.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprintf(out, "Package gcs://%s does not exist", name)
	}
}

func TestServer_KeepsAPackage(t *testing.T) {
	said := &packages{has: map[string]string{}}
	server, err := away.NewServer(ofToken(), serve(t, said.ServeHTTP))
	if err != nil {
		t.Fatal(err)
	}
	uploads := 0
	for range 2 {
		if err := server.KeepPackage(t.Context(), archive, func() { uploads++ }); err != nil {
			t.Fatal(err)
		}
	}
	if uploads != 1 || said.has[archive.Name] != "files" || len(said.asked) != 5 {
		t.Errorf("%d uploads, %v, after %v", uploads, said.has, said.asked)
	}
}

func TestServer_SaysWhyAPackageIsRefused(t *testing.T) {
	for status, code := range map[int]int{http.StatusForbidden: outcome.Refused, http.StatusServiceUnavailable: outcome.Failed} {
		said := &packages{refuses: status}
		server, err := away.NewServer(ofToken(), serve(t, said.ServeHTTP))
		if err != nil {
			t.Fatal(err)
		}
		err = server.KeepPackage(t.Context(), archive, func() { t.Error("it is uploaded") })
		if outcome.Code(err) != code || !strings.Contains(err.Error(), "run heliostat resume demo") {
			t.Errorf("%d: exit code %d, %v", status, outcome.Code(err), err)
		}
	}
}

func TestServer_FindsVersions(t *testing.T) {
	server, err := away.NewServer(ofToken(), serve(t, (&packages{}).ServeHTTP))
	if err != nil {
		t.Fatal(err)
	}
	if found, err := server.FindVersions(t.Context(), "team-a", "demo"); err != nil || found != (away.Versions{Ray: "2.60.0", Python: "3.11.2"}) {
		t.Errorf("it is %+v, %v", found, err)
	}
}
