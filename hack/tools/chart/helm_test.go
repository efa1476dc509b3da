package chart

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// TestMain has garbage collected seldom: renderings are small, many and short-lived.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// runHelm runs the program that the variable HELM names, and returns what it prints.
func runHelm(t *testing.T, args ...string) string {
	t.Helper()
	text, err := tryHelm(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// tryHelm is as runHelm, where the program may refuse what it is told.
func tryHelm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	helm := os.Getenv("HELM")
	if helm == "" {
		t.Fatal(`find helm: HELM is not set: run "make chart", or "make bin/helm" and export HELM=$PWD/bin/helm`)
	}
	var problems bytes.Buffer
	command := exec.CommandContext(t.Context(), helm, args...)
	command.Stderr = &problems
	out, err := command.Output()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatalf("run helm %q: %v", args, err)
	}
	if err != nil {
		return "", errors.New(problems.String())
	}
	return string(out), nil
}

// TestRender_IsThatOfHelm: what all other tests render in their own process is what the program prints, and both refuse
// the same values.
func TestRender_IsThatOfHelm(t *testing.T) {
	for name, options := range map[string][]string{
		"as it is": nil,
		"with everything on": slices.Concat(serving, withRoute, []string{
			"--set", "metrics.serviceMonitor.enabled=true,metrics.prometheusRule.enabled=true,metrics.dashboards.enabled=true,kueue.enabled=true",
			"--set", "server.ingress.enabled=true,server.identity.mode=Impersonate,server.identity.audience=a", "--set-string", "podAnnotations.a=1",
			"--set-json", `podDefaults={"env":[{"name":"A","value":"b"}]}`,
		}),
		"for an older Kubernetes":  append([]string{"--kube-version", "v1.34.1-gke.100", "--set", "server.identity.mode=Impersonate,server.identity.audience=a"}, serving...),
		"for one that is too old":  {"--kube-version", "1.33.9"},
		"a value that is misspelt": {"--set", "image.tagg=x"},
		"what templates refuse":    {"--set", "serviceAccount.create=false"},
	} {
		t.Run(name, func(t *testing.T) {
			options = append(slices.Clone(withoutCRDs), options...)
			if name == "as it is" {
				options = nil
			}
			want, refusal := tryHelm(t, append([]string{"template", releaseName, dir, "--namespace", releaseNamespace}, options...)...)
			have, err := Render(options...)
			if (err == nil) != (refusal == nil) {
				t.Fatalf("helm says %v, and in this process it is %v", refusal, err)
			}
			if want, have := made.ReplaceAllString(want, ""), made.ReplaceAllString(have, ""); want != have {
				t.Errorf("it differs: helm prints %d bytes, and in this process there are %d: %s", len(want), len(have), firstDifference(want, have))
			}
		})
	}
}

// firstDifference returns the first lines that differ.
func firstDifference(want, have string) string {
	lines := strings.Split(have, "\n")
	for i, line := range strings.Split(want, "\n") {
		if i >= len(lines) || lines[i] != line {
			return strings.Join([]string{line, strings.Join(lines[min(i, len(lines)):min(i+1, len(lines))], "")}, "\nand not ")
		}
	}
	return ""
}
