package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/heliostat-dev/heliostat/tests/bench/beside"
)

// caller is one user at one end.
type caller struct {
	http.Client

	url, token string
}

// ask sends a GET that must be answered by 200.
func (c *caller) ask(ctx context.Context, path string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+path, nil)
	if err != nil {
		return nil, fmt.Errorf("ask for %s: %w", path, err)
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask for %s: %w", path, err)
	}
	if answer.StatusCode == http.StatusServiceUnavailable {
		_ = answer.Body.Close() // it says to ask again
		return nil, fmt.Errorf("ask for %s: %w", path, errUnavailable)
	}
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body) // what came of it
		_ = answer.Body.Close()
		return nil, fmt.Errorf("ask for %s: %s: %s", path, answer.Status, text)
	}
	return answer.Body, nil
}

// errUnavailable is that an end says to ask again: a machine with too much to do.
var errUnavailable = errors.New("the end is not available")

// open begins a watch. On a machine with too much to do an end may say to ask again.
func (c *caller) open(ctx context.Context, path string) (body io.ReadCloser, err error) {
	limit, cancel := context.WithTimeout(ctx, beside.StartLimit)
	defer cancel()
	for {
		if body, err = c.ask(ctx, path); !errors.Is(err, errUnavailable) || limit.Err() != nil {
			return body, err
		}
		select {
		case <-limit.Done():
		case <-time.After(time.Second):
		}
	}
}

// get returns the whole answer.
func (c *caller) get(ctx context.Context, path string) ([]byte, error) {
	body, err := c.ask(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, fmt.Errorf("read the answer to %s: %w", path, err)
	}
	return text, nil
}

// arrival is when a caller saw a resourceVersion.
type arrival struct {
	version uint64
	at      time.Time
}

// reading is a watch of one caller.
type reading struct {
	// lines counts ends of lines.
	lines atomic.Int64
	// arrivals are those of a caller that looks into what comes, and broken is how often the other end broke the watch off. They
	// may be read once it is over.
	arrivals []arrival
	broken   int
	// last is the last whole line that came, and what came behind it.
	last []byte
}

var versions = regexp.MustCompile(`"resourceVersion":"(\d+)"`)

// watching is how a caller watches: since where, and whether they look into what comes. Most only count, as what they cost is
// not measured.
type watching struct {
	path, since string
	isLooking   bool
}

// watch watches until the context ends. A watch that is broken off goes on where it was, as those of Kubernetes' clients do.
func (r *reading) watch(ctx context.Context, c *caller, body io.ReadCloser, what watching) error {
	for {
		r.read(body, what.isLooking)
		_ = body.Close() // it was read
		if ctx.Err() != nil {
			return nil
		}
		r.broken++
		if found := versions.FindAllSubmatch(r.last, -1); len(found) > 0 {
			what.since = string(found[len(found)-1][1])
		}
		var err error
		if body, err = c.open(ctx, what.path+what.since); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// read reads one answer to its end.
func (r *reading) read(body io.Reader, isLooking bool) {
	r.last = r.last[:0]
	buffer, looked := make([]byte, 32<<10), 0
	for {
		n, err := body.Read(buffer)
		r.lines.Add(int64(bytes.Count(buffer[:n], []byte{'\n'})))
		r.last = append(r.last, buffer[:n]...)
		if end := bytes.LastIndexByte(r.last, '\n') + 1; end > looked {
			if isLooking {
				r.look(r.last[looked:end], time.Now())
			}
			begin := bytes.LastIndexByte(r.last[:end-1], '\n') + 1
			r.last = append(r.last[:0], r.last[begin:]...)
			looked = end - begin
		}
		if err != nil {
			return
		}
	}
}

// look notes the resourceVersions of whole lines.
func (r *reading) look(text []byte, now time.Time) {
	for _, found := range versions.FindAllSubmatch(text, -1) {
		version, err := strconv.ParseUint(string(found[1]), 10, 64)
		if err == nil { // the expression lets digits through only
			r.arrivals = append(r.arrivals, arrival{version, now})
		}
	}
}
