package app_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// keeper answers as a server that keeps a history, and notes what it was asked.
type keeper struct {
	asked []string
	// answers are by method, path and query; one without a query is for each.
	answers map[string]string
}

// ServeHTTP implements http.Handler.
func (k *keeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := r.Method + " " + r.URL.EscapedPath()
	k.asked = append(k.asked, at+"?"+r.URL.RawQuery)
	answer, is := k.answers[at+"?"+r.URL.RawQuery]
	if !is {
		answer, is = k.answers[at]
	}
	switch {
	case r.Header.Get("Authorization") != "Bearer of-anna":
		http.Error(w, `{"reason":"Unauthorized","detail":"no such user"}`, http.StatusUnauthorized)
	case !is:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"reason":"NotFound","detail":"nothing is kept of it","remedy":"look at the list of what is kept"}`)
	case answer == "gone":
		w.WriteHeader(http.StatusGone)
		fmt.Fprint(w, `{"reason":"Gone","detail":"the history was deleted at 2026-11-26T08:00:00Z by ana"}`)
	case strings.HasPrefix(answer, "id: "):
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, answer)
	default:
		fmt.Fprint(w, answer)
		if strings.HasSuffix(answer, "cut off") {
			_ = http.NewResponseController(w).Flush() // a part of it arrives
			panic(http.ErrAbortHandler)
		}
	}
}

const (
	inTeamA = "/v1/namespaces/team-a/"
	records = `{"records": [
 {"kind": "jobs", "namespace": "team-a", "name": "gone", "uid": "u-1", "owner": "ana\u001b[31m", "phase": "Failed", "code": "EntrypointFailed",
  "created": "2026-11-27T09:00:00Z", "ended": "2026-11-27T09:30:00Z", "deleted": "2026-11-27T09:40:00Z"},
 {"kind": "clusters", "namespace": "team-a", "name": "old", "uid": "u-2", "phase": "Deleting", "created": "2026-11-20T09:00:00Z",
  "deleted": "2026-11-25T10:00:00Z", "archive": {"clusterUid": "u-2", "state": "Incomplete"}, "later": "unknown"}], "continue": "%s"}`
	kept = `{"files": [
 {"path": "worker-1.err", "pod": "old-head", "id": "f1", "size": "2048", "last": "2026-11-25T10:00:00Z",
  "missing": [{"offset": "10", "length": "5", "reason": "NodeLost"}, {"offset": "90", "reason": "Killed"}]},
 {"path": "a%%20%%1B.err", "pod": "old-cpu", "id": "f2", "size": "3"}], "continue": "%s"}`
	// lines is "one\n", a missing range, and "two\n"; an end follows.
	lines = "id: 4\nevent: data\ndata: {\"data\":\"b25lCg==\"}\n\n: beats\n\nid: 9\nevent: notice\ndata: {\"code\":\"NodeLost\"," +
		"\"message\":\"bytes 4 to 8 are missing: NodeLost\",\"missing\":{\"offset\":4,\"length\":5,\"reason\":\"NodeLost\"}}\n\n" +
		"id: 13\nevent: data\ndata: {\"data\":\"dHdvCg==\"}\n\nid: 13\nevent: end\ndata: "
)

func newKeeper() *keeper {
	last := fmt.Sprintf(kept, "")
	return &keeper{answers: map[string]string{
		"GET /v1/history": fmt.Sprintf(records, ""),
		"GET /v1/history?ended=true&failed=false&kinds=clusters&limit=2&namespaces=team-a": fmt.Sprintf(records, "more"),
		"GET /v1/history?ended=true&failed=true&limit=500&since=2026-11-20T10%3A00%3A00Z":  `{}`,
		"GET " + inTeamA + "clusters/old/files":                                            last,
		"GET " + inTeamA + "clusters/old/files?limit=500":                                  fmt.Sprintf(kept, "p2"),
		"GET " + inTeamA + "clusters/old/files?limit=500&paths=one":                        `{"files":[{"path":"one","pod":"p","id":"f1"}]}`,
		"GET " + inTeamA + "clusters/old/files?limit=500&paths=none":                       `{}`,
		"GET " + inTeamA + "clusters/old/files/worker-1.err":                               lines + `{"outcome":"Running"}` + "\n\n",
		"GET " + inTeamA + "clusters/old/files/a%20%1B.err":                                "\x1b[2J",
		"GET " + inTeamA + "clusters/old/files/one":                                        "1\n",
		"GET " + inTeamA + "clusters/old/history":                                          `{"record": {"uid": "u-2", "phase": "Ready", "deleted": "2026-11-25T10:00:00Z"}}`,
		"DELETE " + inTeamA + "clusters/old/history/u-2":                                   `{"uid": "u-2"}`,
		"GET " + inTeamA + "clusters/old/files:download":                                   "a tar",
		"GET " + inTeamA + "clusters/old/files:download?paths=bad":                         "half of a tar that is cut off",
		"GET " + inTeamA + "jobs/gone/history/u-1":                                         `{"record": {"uid": "u-1", "phase": "Failed"}}`,
		"DELETE " + inTeamA + "jobs/gone/history/u-1":                                      `{"uid": "u-1"}`,
		"GET " + inTeamA + "jobs/gone/log":                                                 lines + `{"outcome":"Failed","message":"the entrypoint failed"}` + "\n\n",
		"GET " + inTeamA + "jobs/live/log":                                                 lines + `{"outcome":"Succeeded"}` + "\n\n",
		"GET " + inTeamA + "jobs/lost/log":                                                 lines + `{"outcome":"Broken","message":"nobody knows how the job ended"}` + "\n\n",
		"GET " + inTeamA + "jobs/gang/rounds":                                              `{"rounds":[{"number":1},{"number":2}]}`,
		"GET " + inTeamA + "jobs/gang/log":                                                 "of the process\n",
		"GET " + inTeamA + "jobs/expired/log":                                              "gone",
	}}
}

// TestHistory_PrintsGolden runs commands on what a server keeps.
func TestHistory_PrintsGolden(t *testing.T) {
	t.Chdir(t.TempDir()) // of downloads
	if err := os.WriteFile("there.tar", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, line := range []string{
		"history", "history -A -o wide", "history clusters --limit 2", "history -A --since 7d --failed", "history jobs -o jsonpath={.items[*].uid}",
		"history --since x", "history --limit 0", "history schedules", "history jbs",
		"history files cluster/old", "history files cluster/old --file one -o wide", "history files cluster/none", "history files old",
		"history download cluster/old", "history download cluster/old", "history download cluster/old --file bad --output bad.tar",
		"history download cluster/old --output there.tar",
		"history delete cluster/old", "history delete cluster/old --yes", "history delete job/gone --uid u-1 --yes", "history delete job/none --yes",
		"logs job/gone", "logs job/gone -f --attempt 2", "logs job/gone --uid u-1", "job logs gone", "logs job/lost", "logs job/expired", "logs job/none",
		"logs job/gang --process worker/1", "logs cluster/none",
		"logs cluster/old --file one", "logs cluster/old --file *.err --pod old-head", "logs cluster/old --file *.err", "logs cluster/old --file none",
		"logs cluster/old --file x -f", "logs cluster/old --uid u-2", "logs cluster/old --file x --group gpu", "logs job/gone --file x --attempt 2",
	} {
		k := newKeeper()
		server := httptest.NewServer(k)
		b := newBed(t)
		b.environ = []string{"HELIOSTAT_SERVER=" + server.URL, "HELIOSTAT_TOKEN=of-anna"}
		printed := page(line, b.run(t.Context(), false, "", strings.Fields(line)...))
		server.Close()
		for _, one := range k.asked {
			printed += "? " + one + "\n"
		}
		text.WriteString(strings.ReplaceAll(printed, server.URL, "https://heliostat") + "\n")
	}
	left, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range left {
		text.WriteString("left: " + one.Name() + "\n")
	}
	t.Chdir(home)
	golden(t, "history", text.String())
}

// home is where the tests begin.
var home, _ = os.Getwd()

func TestHistory_NeedsAServer(t *testing.T) {
	for _, line := range []string{"history", "history files job/a", "history delete job/a", "history download job/a", "logs job/a --uid x"} {
		got := newBed(t).run(t.Context(), false, "", strings.Fields(line)...)
		if got.code != outcome.Usage || !strings.Contains(got.said, "set --server URL or HELIOSTAT_SERVER") {
			t.Errorf("%s ends with %d: %s", line, got.code, got.said)
		}
	}
}

func TestHistory_DeletesWhatTheUserConfirms(t *testing.T) {
	for answer, want := range map[string]int{"y\n": outcome.Done, "n\n": outcome.Stopped} {
		k := newKeeper()
		server := httptest.NewServer(k)
		b := newBed(t)
		b.environ = []string{"HELIOSTAT_SERVER=" + server.URL, "HELIOSTAT_TOKEN=of-anna"}
		got := b.run(t.Context(), true, answer, "history", "delete", "cluster/old")
		server.Close()
		isDeleted := strings.HasPrefix(k.asked[len(k.asked)-1], "DELETE ")
		if got.code != want || isDeleted != (want == outcome.Done) {
			t.Errorf("after %q it ends with %d: %s; it asked %v", answer, got.code, got.said, k.asked)
		}
	}
}

func TestLogs_EndWithTheOutputOfAJobThatIsDeletedMeanwhile(t *testing.T) {
	server := httptest.NewServer(newKeeper())
	defer server.Close()
	b := newBed(t)
	b.environ = []string{"HELIOSTAT_SERVER=" + server.URL, "HELIOSTAT_TOKEN=of-anna"}
	live := job("live", v1beta1.PhaseRunning, func(j *v1beta1.ClusterJob) {
		now := metav1.NewTime(began)
		j.Status.Attempts = []v1beta1.JobAttempt{{Number: 1, ClusterName: "gone", SubmissionID: "live-1", SubmitTime: &now, StartTime: &now}}
	})
	if err := b.objects.Create(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	b.script[2] = func(ctx context.Context, c client.Client) { // once its output was printed
		if err := c.Delete(ctx, live); err != nil {
			t.Error(err)
		}
	}
	got := b.run(t.Context(), false, "", "logs", "job/live", "-f")
	if got.code != outcome.Done || got.out != "one\ntwo\n" || !strings.Contains(got.said, "job/live ended: Succeeded") {
		t.Errorf("it ends with %d and prints %q: %s", got.code, got.out, got.said)
	}
}
