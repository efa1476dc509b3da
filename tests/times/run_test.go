package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// steps stands in for tests/steps.sh: steps that cost nothing, and print what tests print.
const steps = `
declare -A TITLE=([lint]=- [unit]=- [integration]=- [e2e-clusters]=- [e2e-services]=- [e2e-ipv6]=- [rights]=- [plan]=- [broken]=-
  [chart]=- [web]=- [localkube]=- [verify]=- [scan]=-)
needs_programs() { return 1; }
for name in lint integration rights chart web e2e_ipv6 localkube verify scan; do eval "step_$name() { :; }"; done
step_unit() { echo "--- PASS: TestA"; }
step_broken() { echo "--- FAIL: TestB"; return 1; }
step_plan() { [ -z "${PLAN:-}" ] || echo "$PLAN" >"$TIMES/plan.json"; [ "${PLAN:-}" != none ]; }
step_e2e_clusters() { echo "planned: $([ -n "${HELIOSTAT_PLAN:-}" ] && echo yes || echo no)" >.state/planned; echo "SUCCESS! -- 2 Passed | 0 Failed"; }
step_e2e_services() { echo "SUCCESS! -- 3 Passed | 0 Failed"; }
`

// checkout returns a directory with tests/run.sh in which no step and no program of Go does anything.
func checkout(t *testing.T) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "a path with spaces")
	for name, text := range map[string]string{
		"tests/steps.sh": steps,
		// It orders steps by name, and in place of the table it prints whether the specs had a plan.
		"path/go": "#!/bin/sh\ncase \"$*\" in *calibrate) echo 1;; *'order steps') sort $REVERSED;; *report*) cat .state/planned 2>/dev/null;; esac; true\n",
	} {
		write(t, filepath.Join(root, name), text)
	}
	for _, name := range []string{"run.sh", "stamps.sh"} {
		text, err := os.ReadFile("../" + name)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(root, "tests", name), string(text))
	}
	return root
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// runScript runs tests/run.sh in a checkout and returns what it prints, and whether it succeeds.
func runScript(t *testing.T, root string, variables []string, names ...string) (string, bool) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "tests/run.sh", names...)
	command.Dir = root
	command.Env = append([]string{"PATH=" + filepath.Join(root, "path") + ":" + os.Getenv("PATH"), "XDG_CACHE_HOME=" + filepath.Join(root, "cache")}, variables...)
	text, err := command.CombinedOutput()
	return string(text), err == nil
}

// TestRun_ClosesWithCounts: the last lines count, whatever steps run. The contract specs are in both steps of specs: they have
// a stamp once both passed, in either order, and none where specs were left out.
func TestRun_ClosesWithCounts(t *testing.T) {
	for name, c := range map[string]struct {
		variables []string
		steps     string
		succeeds  bool
		want      string
		stamps    int
	}{
		"a step by name":        {nil, "unit", true, "1 passed, 0 failed\nall passed in", 0},
		"nothing to count":      {nil, "lint", true, "0 passed, 0 failed\nall passed in", 0},
		"a step that fails":     {nil, "unit broken", false, "1 passed, 1 failed\n--- FAIL: TestB\nFAILED after", 0},
		"the specs":             {nil, "e2e", true, "planned: no\n5 passed, 0 failed\nall passed in", 1},
		"the whole":             {[]string{"REVERSED=-r"}, "", true, "planned: yes\n6 passed, 0 failed\nall passed in", 1},
		"the whole without all": {[]string{`PLAN= "leftOutSpecs": 4`}, "", true, "6 passed, 0 failed, 4 skipped\nall passed in", 0},
		"a slow machine":        {[]string{"PLAN=none"}, "", false, "to run this step alone: make test\nFAILED after", 0},
	} {
		root := checkout(t)
		text, succeeds := runScript(t, root, c.variables, strings.Fields(c.steps)...)
		if succeeds != c.succeeds || !strings.Contains(text, c.want) {
			t.Errorf("%s: succeeds: %v, and it prints no %q:\n%s", name, succeeds, c.want, text)
		}
		stamps, err := filepath.Glob(root + "/cache/heliostat/stamps/contract-*")
		if err != nil || len(stamps) != c.stamps {
			t.Errorf("%s: it left %d stamps of the contract, want %d: %v\n%s", name, len(stamps), c.stamps, err, text)
		}
	}
}
