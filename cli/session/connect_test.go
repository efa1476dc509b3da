package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
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
		inside *v1alpha1.ConnectStatus
		ends   string
	}{
		"all":               {&v1alpha1.ConnectStatus{Token: "a", Certificate: "b", Jobs: "c", Client: "d"}, ":\n  a\n  b\n  c\n  d\n"},
		"no authentication": {&v1alpha1.ConnectStatus{Jobs: "c", Client: "d"}, ":\n  c\n  d\n"},
		"an older operator": {nil, "ray job list\n"},
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
		at := t.TempDir()
		if err := os.WriteFile(filepath.Join(at, "python3"), []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", at)
		if got := local(t.Context(), &console.Console{}); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if got := local(t.Context(), &console.Console{}); got != (versions{}) {
		t.Errorf("without python3: %+v", got)
	}
}
