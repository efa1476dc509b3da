package app_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/cli/app"
	"github.com/heliostat-dev/heliostat/cli/outcome"
)

func TestRun_EndsWithACode(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"help":                     {[]string{}, outcome.Done, "convert"},
		"a command":                {[]string{"convert", "--explain", "suspend"}, outcome.Done, "suspend"},
		"a misspelt one":           {[]string{"convrt"}, outcome.Usage, `write "convert"`},
		"a misspelt flag":          {[]string{"convert", "--aliasses"}, outcome.Usage, `write "--aliases"`},
		"completion of bash":       {[]string{"completion", "bash"}, outcome.Done, "complete -o default"},
		"completion of zsh":        {[]string{"completion", "zsh"}, outcome.Done, "#compdef heliostat"},
		"completion of fish":       {[]string{"completion", "fish"}, outcome.Done, "complete -c heliostat"},
		"completion of PowerShell": {[]string{"completion", "powershell"}, outcome.Done, "Register-ArgumentCompleter"},
		"words of a completion":    {[]string{"__complete", "service", "rollout", ""}, outcome.Done, "undo"},
		"a flag of kubectl":        {[]string{"convert", "--token", "x"}, outcome.Usage, "no such flag"},
		"a server that must not have the token": {[]string{"job", "submit", "--server", "http://example.com", "--", "ls"}, outcome.Refused,
			"is not encrypted"},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			code := app.Run(t.Context(), c.args, app.Settings{Clock: clock.RealClock{}, Environ: []string{"HELIOSTAT_TOKEN=x"},
				IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &said, ErrOut: &said}})
			if code != c.code || !strings.Contains(said.String(), c.says) {
				t.Errorf("exit code %d, want %d and %q:\n%s", code, c.code, c.says, said.String())
			}
		})
	}
}

// TestRun_SaysWhatHelps runs wrong commands with a kubeconfig whose API server is away, and with bad ones.
func TestRun_SaysWhatHelps(t *testing.T) {
	const away = `{"kind": "Config", "apiVersion": "v1", "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
		"users": [{"name": "anna", "user": {"token": "x"}}], "contexts": [{"name": "here", "context": {"cluster": "c", "user": "anna"}}],
		"current-context": "%s"}`
	good, lost, bad := kubeconfigOf(t, fmt.Sprintf(away, "here")), kubeconfigOf(t, fmt.Sprintf(away, "her")), kubeconfigOf(t, "{")
	none := filepath.Join(t.TempDir(), "none")
	for name, c := range map[string]struct {
		kubeconfig, line string
		code             int
		says             string
	}{
		"an API server that is away": {good, "top", outcome.Failed, "the API server https://127.0.0.1:1 cannot be reached: connect: connection refused; check the network and the kubeconfig"},
		"the same of KubeRay's":      {good, "convert rayclusters", outcome.Failed, "cannot be reached"},
		"no kubeconfig":              {none, "top", outcome.Usage, "none: no such file or directory; check KUBECONFIG or --kubeconfig"},
		"one that is no YAML":        {bad, "top", outcome.Usage, "; check KUBECONFIG or --kubeconfig"},
		"a context of its own":       {lost, "top", outcome.Usage, `the kubeconfig has no context "her"; write "here"`},
		"a context":                  {good, "top --context hera", outcome.Usage, `the kubeconfig has no context "hera"; write "here"`},
		"a user":                     {good, "top --user ann", outcome.Usage, `the kubeconfig has no user "ann"; write "anna"`},
		"a format":                   {good, "top -o yml", outcome.Usage, `-o "yml" is no format; write "yaml"`},
		"a template":                 {good, "top -o jsonpath={.a", outcome.Usage, "-o has a template that cannot be read: "},
		"a duration":                 {good, "wait job/x --timeout 5", outcome.Usage, `--timeout "5" is no duration; write one such as 30s, 10m or 8h`},
		"a negative duration":        {good, "keep x --for -1h", outcome.Usage, `--for "-1h" is no duration; write one such as 30s`},
		"a number":                   {good, "logs job/x --attempt one", outcome.Usage, `--attempt "one" is no whole number; write one such as 4`},
		"a part of a GPU":            {good, "job submit --entrypoint-num-gpus x -- ls", outcome.Usage, `"x" is no number; write one such as 0.5`},
		"yes or no":                  {good, "up x --detach=maybe", outcome.Usage, `--detach "maybe" is no truth value; write true or false`},
		"no value":                   {good, "logs job/x --attempt", outcome.Usage, "--attempt lacks its value; see heliostat logs --help"},
		"a negative size":            {good, "scale x -1", outcome.Usage, "no number is negative here; give 0 or more"},
		"an empty name":              {good, "connect  ", outcome.Usage, `"" is no name of an object; write NAME`},
		"an empty object":            {good, "why  ", outcome.Usage, `"" is no name of an object; write KIND/NAME`},
		"a shell":                    {good, "completion fsh", outcome.Usage, `write "fish"`},
		"help about nothing":         {good, "help job sumbit", outcome.Usage, `heliostat job has no such command; write "submit"`},
		"help about a command":       {good, "help job submit", outcome.Done, "heliostat job submit"},
		"help about an argument":     {good, "help top pods", outcome.Done, "heliostat top"},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			args := append([]string{"--kubeconfig", c.kubeconfig}, strings.Split(strings.TrimSuffix(c.line, " "), " ")...)
			code := app.Run(t.Context(), args, app.Settings{Clock: clock.RealClock{},
				IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &said, ErrOut: &said}})
			if code != c.code || !strings.Contains(said.String(), c.says) {
				t.Errorf("exit code %d, want %d and %q:\n%s", code, c.code, c.says, said.String())
			}
		})
	}
}

// kubeconfigOf returns a file with a text.
func kubeconfigOf(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
