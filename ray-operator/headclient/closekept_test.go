package headclient

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCloseKept_IsOneShellWord: the job's shell would read on after a quote.
func TestCloseKept_IsOneShellWord(t *testing.T) {
	if strings.Contains(closeKept, "'") || !strings.Contains(closeKept, "import ray") {
		t.Errorf("the program does not fit between single quotes:\n%s", closeKept)
	}
}

func TestClosing_NamesWhoLeaves(t *testing.T) {
	closing := Closing{ID: "heliostat-close-1", Leaving: []string{"10.0.0.1", "10.0.0.2"}, Grace: 90 * time.Second}
	if command := closing.entrypoint(); !strings.HasSuffix(command, "' 90 10.0.0.1 10.0.0.2") {
		t.Errorf("the command ends with %q", command[len(command)-40:])
	}
}

// TestCloseKept_ForgetsItsJob once that is over, and is done with it whether the head forgets it or not.
func TestCloseKept_ForgetsItsJob(t *testing.T) {
	for name, forgets := range map[string]int{"it is forgotten": http.StatusOK, "the head cannot forget it": http.StatusInternalServerError} {
		var asked []string
		states := []string{"", "RUNNING", "SUCCEEDED"}
		server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, request *http.Request) {
			asked = append(asked, request.Method+" "+request.URL.Path)
			switch {
			case request.Method == http.MethodPost:
				_, _ = io.WriteString(out, `{"submission_id": "heliostat-close-1"}`)
			case request.Method == http.MethodDelete:
				out.WriteHeader(forgets)
				_, _ = io.WriteString(out, `{"deleted": true}`)
			case states[0] == "":
				states = states[1:]
				out.WriteHeader(http.StatusNotFound)
				_, _ = io.WriteString(out, "Job heliostat-close-1 does not exist")
			default:
				_, _ = io.WriteString(out, `{"submission_id": "heliostat-close-1", "status": "`+states[0]+`"}`)
				states = states[1:]
			}
		}))
		serve, err := DialServe(server.Listener.Addr().String(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for turn, want := range []bool{false, false, true} {
			if done, err := serve.CloseKept(t.Context(), Closing{ID: "heliostat-close-1"}); err != nil || done != want {
				t.Errorf("%s: turn %d: %t, %v", name, turn, done, err)
			}
		}
		const path = " /api/jobs/heliostat-close-1"
		if want := []string{"GET" + path, "POST /api/jobs/", "GET" + path, "GET" + path, "DELETE" + path}; !slices.Equal(asked, want) {
			t.Errorf("%s: it asked %q, want %q", name, asked, want)
		}
		if err := serve.Close(); err != nil {
			t.Error(err)
		}
		server.Close()
	}
}
