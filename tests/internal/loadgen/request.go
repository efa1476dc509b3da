package loadgen

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"
)

// answer is what the service says of itself, and of what it was asked.
type answer struct {
	Version string `json:"version"`
	PID     int    `json:"pid"`
	Node    string `json:"node"`
	// Said is what it was told.
	Said string `json:"said"`
	// Chunk of Of, in streams, counted from 0.
	Chunk int `json:"chunk"`
	Of    int `json:"of"`
}

// replica names the process, empty where nothing came.
func (a answer) replica() string {
	if a == (answer{}) {
		return ""
	}
	return fmt.Sprintf("%s/%d", a.Node, a.PID)
}

// most is how many bytes of an answer are read.
const most = 1 << 20

// plain sends requests that are answered at once.
type plain struct {
	plan       *Plan
	transports []*http.Transport
}

func (p plain) ask(ctx context.Context, number int, due time.Time) reply {
	said := fmt.Sprintf("fresh %d", number)
	return p.whole(ctx, question{method: http.MethodGet, path: "/?said=" + url.QueryEscape(said), said: said, number: number, due: due})
}

// kept sends requests over connections that are kept, each in its turn.
type kept struct{ plain }

func (k kept) ask(ctx context.Context, number int, due time.Time) reply {
	said := fmt.Sprintf("kept %d", number)
	return k.whole(ctx, question{method: http.MethodPost, path: "/", body: said, said: said, number: number, due: due})
}

// slow sends requests that ask the server to take its time.
type slow struct{ plain }

// steps are as many lengths as long requests have.
const steps = 15

func (s slow) ask(ctx context.Context, number int, due time.Time) reply {
	// 7 and 15 have no divisor in common, so that every length comes up.
	lasts := s.plan.Longest/3 + s.plan.Longest*2/3*time.Duration(7*number%steps)/(steps-1)
	said := fmt.Sprintf("long %d", number)
	path := fmt.Sprintf("/slow?s=%g&said=%s", lasts.Seconds(), url.QueryEscape(said))
	return s.whole(ctx, question{method: http.MethodGet, path: path, said: said, lasts: lasts, number: number, due: due})
}

// question is one request.
type question struct {
	method, path, body string
	// said is what the answer must repeat, lasts what the server is asked to take.
	said   string
	lasts  time.Duration
	number int
	due    time.Time
}

// whole sends a request and reads its answer as one.
func (p plain) whole(ctx context.Context, q question) reply {
	var said reply
	said.err = p.exchange(ctx, q, &said, func(response *http.Response) error {
		text, err := io.ReadAll(io.LimitReader(response.Body, most))
		if err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		if err := json.Unmarshal(text, &said.from); err != nil {
			return garbled("%v: %q", err, cut(text))
		}
		if said.from.Said != q.said {
			return garbled("asked %q, it answers to %q", q.said, said.from.Said)
		}
		return nil
	})
	if said.err == nil {
		said.parts = []part{since(q.due.Add(q.lasts))}
	}
	return said
}

// exchange sends a request once, and has what comes back read if it is a success.
func (p plain) exchange(ctx context.Context, q question, said *reply, read func(*http.Response) error) error {
	ctx, stop := context.WithTimeout(ctx, p.plan.Timeout+q.lasts)
	defer stop()
	said.opened = true
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { said.opened = !c.Reused }})
	request, err := http.NewRequestWithContext(ctx, q.method, p.plan.URL+q.path, nil)
	if err != nil {
		return fmt.Errorf("make a request: %w", err)
	}
	request.Host = p.plan.Host
	p.plan.authorize(request.Header)
	if q.body != "" {
		// Without GetBody it is known to nobody how the body could be had again.
		request.Body, request.ContentLength = io.NopCloser(strings.NewReader(q.body)), int64(len(q.body))
	}
	response, err := p.transports[q.number%len(p.transports)].RoundTrip(request)
	if err != nil {
		return fmt.Errorf("ask %s: %w", q.path, err)
	}
	defer func() { _ = response.Body.Close() }() // all that is wanted of it was read
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, most)) // the status is failure enough
		return statusError{response.StatusCode, cut(text)}
	}
	return read(response)
}

// cut is the beginning of a text, to be shown.
func cut(text []byte) []byte { return text[:min(len(text), 200)] }
