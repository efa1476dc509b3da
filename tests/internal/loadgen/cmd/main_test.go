package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/heliostat-dev/heliostat/tests/internal/loadgen"
)

// answers is a service that is well.
func answers(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"version": "1", "node": "pod", "pid": 7, "said": r.FormValue("said")}) // the report tells
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// last is the last line of what was printed.
func last(t *testing.T, out string) loadgen.Report {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var report loadgen.Report
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &report); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return report
}

func TestTheReportComesWhenTheTimeIsOver(t *testing.T) {
	var out bytes.Buffer
	if err := run([]string{"-url", answers(t), "-fresh", "100", "-for", "100ms"}, strings.NewReader(""), &out); err != nil {
		t.Fatal(err)
	}
	report := last(t, out.String())
	if sent, answered, _ := report.Total(); sent == 0 || sent != answered {
		t.Errorf("%d of %d answered", answered, sent)
	}
}

func TestTheReportComesAtTheEndOfTheInputAndOnSIGTERM(t *testing.T) {
	for name, end := range map[string]func(*io.PipeWriter) error{
		"end of input": (*io.PipeWriter).Close,
		"SIGTERM":      func(*io.PipeWriter) error { return syscall.Kill(syscall.Getpid(), syscall.SIGTERM) },
	} {
		lines, input := io.Pipe()
		printed, out := io.Pipe()
		done := make(chan error, 1)
		go func() {
			done <- run([]string{"-url", answers(t), "-fresh", "100"}, lines, out)
			_ = out.Close() // it always gives nil
		}()
		if _, err := io.WriteString(input, "phase calm\n"); err != nil {
			t.Fatal(err)
		}
		decoder := json.NewDecoder(printed)
		var began loadgen.Began
		var report loadgen.Report
		if err := decoder.Decode(&began); err != nil || began.Phase != "calm" {
			t.Fatalf("%s: %+v, %v", name, began, err)
		}
		if err := end(input); err != nil {
			t.Fatal(err)
		}
		if err := decoder.Decode(&report); err != nil || len(report.Phases) != 2 {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_ = input.Close() // it always gives nil
	}
}

func TestWhatCannotBeCarriedOutIsRefused(t *testing.T) {
	for _, args := range [][]string{{}, {"-fresh", "1"}, {"-url", "http://127.0.0.1:1", "-fresh", "many"}, {"-url", "http://127.0.0.1:1", "more"}} {
		if err := run(args, strings.NewReader(""), io.Discard); err == nil {
			t.Errorf("%q was not refused", args)
		}
	}
}

func TestAServiceBehindTLSIsAskedWithTheToken(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sesame" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"version": "1", "node": "pod", "pid": 7, "said": r.FormValue("said")}) // the report tells
	}))
	t.Cleanup(server.Close)
	authority, token := filepath.Join(t.TempDir(), "ca.crt"), filepath.Join(t.TempDir(), "token")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for file, text := range map[string]string{authority: string(certificate), token: "sesame\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	args := []string{"-url", server.URL, "-host", "example.com", "-authority", authority, "-token-file", token, "-fresh", "100", "-for", "100ms"}
	if err := run(args, strings.NewReader(""), &out); err != nil {
		t.Fatal(err)
	}
	report := last(t, out.String())
	if sent, answered, _ := report.Total(); sent == 0 || sent != answered {
		t.Errorf("%d of %d answered: %s", answered, sent, out.String())
	}
	for _, flag := range []string{"-authority", "-token-file"} {
		if err := run([]string{"-url", server.URL, flag, filepath.Join(t.TempDir(), "none")}, strings.NewReader(""), &out); err == nil {
			t.Errorf("a file that is not there is taken for %s", flag)
		}
	}
}
