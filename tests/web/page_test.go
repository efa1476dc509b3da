package web

import (
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

var (
	judging = flag.Bool("judge", false, "hold durations against what is promised, on a machine that does nothing else")
	webDir  = flag.String("web-dir", "", "serve the page from this directory, which can be built again meanwhile")
	files   = flag.String("files", "*.test.mjs", "which files of tests to run, as a pattern")
)

// TestPage runs what is in tests/web/*.test.mjs in a browser.
func TestPage(t *testing.T) {
	b := makeBed(t, front{page: pageURL, dashboards: dashboardsURL, settings: []string{"--set", "server.dashboards.enabled=true"}})
	b.control()
	editor := b.account("anna", "edit", b.namespace, b.empty)
	t.Run("rights", func(t *testing.T) { b.holdRights(t, editor) })
	settings, err := json.Marshal(map[string]any{
		"url": pageURL, "control": controlURL, "dashboards": dashboardsURL,
		"namespace": b.namespace, "empty": b.empty, "judge": *judging,
		"editor": editor, "viewer": b.account("victor", "view", b.namespace),
		"nobody": b.account("nina", ""),
	})
	must(t, err)
	found, err := filepath.Glob(*files)
	must(t, err)
	if len(found) == 0 {
		t.Fatalf("no file is like %s", *files)
	}
	for _, file := range found {
		t.Run(file, func(t *testing.T) { b.play(t, file, settings) })
	}
	b.holdMetrics(t, editor)
}

// holdMetrics looks for a caller's token, and for that of heads, in the metrics of a server that both passed through.
func (b *bed) holdMetrics(t *testing.T, caller string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+metricsAddress+"/metrics", http.NoBody)
	must(t, err)
	answer, err := b.inside().Do(request)
	must(t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	if !strings.Contains(string(text), `heliostat_server_requests_total{code="200",route="ProxyCluster"}`) {
		t.Errorf("no answer of a head is counted:\n%s", text)
	}
	for _, token := range []string{caller, headToken} {
		if strings.Contains(string(text), token) {
			t.Errorf("a token is in the metrics:\n%s", text)
		}
	}
}

// play runs a file of tests in a browser of the island.
func (b *bed) play(t *testing.T, file string, settings []byte) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "node", "--test", "--test-reporter=spec", file)
	command.Env = append(os.Environ(), "HELIOSTAT_BED="+string(settings))
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	must(t, b.island.Do(command.Start))
	if err := command.Wait(); err != nil {
		t.Errorf("the tests of %s: %v", file, err)
	}
}
