package proxy

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/route"
)

// greeting is the path of the first request of Ray's client.
const greeting = "/api/version"

// maxPhrase is how many bytes of a text go into a status line.
const maxPhrase = 1 << 10

// isGreeting reports whether a refusal is of the first request of Ray's client, which prints the status line of the answer
// and none of its body. Of 401 and 403 it prints the body.
func isGreeting(r *http.Request, code int) bool {
	x := exchangeOf(r.Context())
	return x != nil && x.target.Kind == route.Cluster && x.target.Path == greeting && r.Method == http.MethodGet && r.ProtoMajor == 1 &&
		code != http.StatusUnauthorized && code != http.StatusForbidden
}

// writePhrase writes an answer whose text is also its reason phrase, over the connection itself, and ends that. It reports
// whether it could.
func (f *refuser) writePhrase(w http.ResponseWriter, x *exchange, code int, text string) bool {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return false
	}
	defer func() { _ = connection.Close() }() // all was said
	x.known.Code = code
	header := w.Header().Clone()
	header.Set("Connection", "close")
	header.Set("Content-Length", strconv.Itoa(len(text)))
	header.Set("Date", f.Clock.Now().UTC().Format(http.TimeFormat))
	var answer bytes.Buffer
	fmt.Fprintf(&answer, "HTTP/1.1 %d %s\r\n", code, phrase(text))
	_ = header.Write(&answer) // a buffer takes all
	answer.WriteString("\r\n" + text)
	_ = connection.SetDeadline(time.Time{})
	_ = connection.SetWriteDeadline(f.Clock.Now().Add(leaveWithin))
	_, _ = connection.Write(answer.Bytes()) // who asks and goes needs no answer
	return true
}

// phrase returns a text as a status line can hold it.
func phrase(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, strings.TrimSpace(text))
	return text[:min(len(text), maxPhrase)]
}
