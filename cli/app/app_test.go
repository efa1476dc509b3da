package app_test

import (
	"bytes"
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
