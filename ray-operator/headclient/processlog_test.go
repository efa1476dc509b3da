package headclient_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

func TestFindLogs_GoesPastNodesThatDoNotAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
		kind   headclient.Kind
	}{
		"a file of it":           {files("a.log", "../b", "c.log.1"), "a.log c.log.1 of 0 silent", ""},
		"none of it":             {text(200, `{"result": true, "msg": "", "data": {"result": {}}}`), "of 0 silent", ""},
		"its agent is gone":      {text(500, "Agent for node id: "+node+" doesn't exist."), "of 1 silent", ""},
		"it does not answer":     {text(500, "Failed to query the data source. It is either there's a network issue, or the source is down."), "of 1 silent", ""},
		"its answer is no JSON":  {text(200, "x"), "of 1 silent", ""},
		"Ray 2.52 with a token":  {text(500, "status = StatusCode.UNAUTHENTICATED"), "of 0 silent", headclient.Unsupported},
		"the head is too busy":   {text(429, "Max number of in-progress requests=100 reached."), "of 0 silent", headclient.Unavailable},
		"the token is not right": {text(403, "Forbidden"), "of 0 silent", headclient.Unauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			routes := http.NewServeMux()
			routes.HandleFunc("GET /api/v0/nodes", text(200, `{"data": {"result": {"result": [{"node_id": "`+node+`"}]}}}`))
			routes.HandleFunc("GET /api/v0/logs", c.answer)
			server := httptest.NewServer(routes)
			t.Cleanup(server.Close)
			found, err := converse(t, server.Listener.Addr().String(), headclient.Options{}).FindLogs(t.Context(), "*")
			var names []string
			for _, one := range found.Logs {
				if one.Node != node {
					t.Errorf("it is on %s", one.Node)
				}
				names = append(names, one.File)
			}
			said := strings.TrimSpace(fmt.Sprintf("%s of %d silent", strings.Join(names, " "), found.Silent))
			if said != c.want || headclient.KindOf(err) != c.kind {
				t.Errorf("it finds %s: %v", said, err)
			}
		})
	}
}

// TestFindLogs_WaitsForFewNodes: Ray gives an agent 30 s, and the client gives Ray 5 s.
func TestFindLogs_WaitsForFewNodes(t *testing.T) {
	silent := "Failed to query the data source. It is either there's a network issue, or the source is down."
	for name, c := range map[string]struct {
		// answers are those of the nodes: . is a log, s silence, and g an agent that is gone.
		answers, timeouts, want string
	}{
		"one is silent":                        {"s.", "3 1", "1 found, 1 silent, 0 unasked"},
		"others are gone, which takes no time": {"gggggggggggg.", "3 3 3 3 3 3 3 3 3 3 3 3 3", "1 found, 12 silent, 0 unasked"},
		"many are silent":                      {".sssssssssss..", "3 3 1 1 1 1 1 1 1 1 1", "1 found, 10 silent, 3 unasked"},
		"the last one is the tenth":            {"ssssssssss", "3 1 1 1 1 1 1 1 1 1", "0 found, 10 silent, 0 unasked"},
	} {
		t.Run(name, func(t *testing.T) {
			var nodes, timeouts []string
			answers := map[string]rune{}
			for i, answer := range c.answers {
				id := fmt.Sprintf("%056x", i+1)
				nodes, answers[id] = append(nodes, `{"node_id": "`+id+`"}`), answer
			}
			routes := http.NewServeMux()
			routes.HandleFunc("GET /api/v0/nodes", text(200, `{"data": {"result": {"result": [`+strings.Join(nodes, ",")+`]}}}`))
			routes.HandleFunc("GET /api/v0/logs", func(w http.ResponseWriter, r *http.Request) {
				timeouts = append(timeouts, r.FormValue("timeout"))
				switch answers[r.FormValue("node_id")] {
				case 's':
					text(500, silent)(w, r)
				case 'g':
					text(500, "Agent for node id: x doesn't exist.")(w, r)
				default:
					files("a.log")(w, r)
				}
			})
			server := httptest.NewServer(routes)
			t.Cleanup(server.Close)
			found, err := converse(t, server.Listener.Addr().String(), headclient.Options{}).FindLogs(t.Context(), "*")
			said := fmt.Sprintf("%d found, %d silent, %d unasked", len(found.Logs), found.Silent, found.Unasked)
			if err != nil || said != c.want || strings.Join(timeouts, " ") != c.timeouts {
				t.Errorf("%s, with timeouts of %v: %v", said, timeouts, err)
			}
		})
	}
}

func TestFindLogs_TakesNoListThatIsNone(t *testing.T) {
	for _, answer := range []string{"", "{}", `{"data": {"result": {"result": [{"node_id": "x"}]}}}`} {
		server := httptest.NewServer(text(200, answer))
		t.Cleanup(server.Close)
		if _, err := converse(t, server.Listener.Addr().String(), headclient.Options{}).FindLogs(t.Context(), "*"); headclient.KindOf(err) != headclient.Protocol {
			t.Errorf("%q: %v", answer, err)
		}
	}
}
