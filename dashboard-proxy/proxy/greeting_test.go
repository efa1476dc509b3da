package proxy_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestServe_TellsRaysClientByTheStatusLine(t *testing.T) {
	ask := func(b *bed, path, header string) (line, answer string) {
		answer = b.raw(t, "GET "+path+" HTTP/1.1\r\nHost: "+b.front.Listener.Addr().String()+"\r\n"+header+"Connection: close\r\n\r\n")
		line, _, _ = strings.Cut(answer, "\r\n")
		return line, answer
	}
	const alice = "Authorization: Bearer alice-token\r\n"
	b := newBed(t, fine, nil)
	b.stopped(t, "SuspendedBySpec")

	line, answer := ask(b, "/team/demo/api/version", alice)
	head, body, _ := strings.Cut(answer, "\r\n\r\n")
	if want := "HTTP/1.1 503 " + strings.TrimSpace(body); line != want || !strings.HasPrefix(body, "Heliostat dashboard proxy: ComputeCluster demo") {
		t.Errorf("the first request of Ray's client gets %q", answer)
	}
	for _, want := range []string{"Retry-After: 30", "Content-Type: text/plain", "X-Content-Type-Options: nosniff", "Connection: close"} {
		if !strings.Contains(head, want) {
			t.Errorf("its headers have no %q: %s", want, head)
		}
	}
	if known := <-b.known; known.Code != http.StatusServiceUnavailable {
		t.Errorf("it is counted as %d", known.Code)
	}
	for path, header := range map[string]string{
		"/team/demo/api/jobs/":   alice,
		"/team/none/api/version": alice,
		"/team/demo/api/version": "Authorization: Bearer nobody\r\n",
	} {
		if line, _ := ask(b, path, header); strings.Contains(line, "Heliostat") {
			t.Errorf("%s is told by the status line, although Ray prints the body: %s", path, line)
		}
		<-b.known
	}
}
