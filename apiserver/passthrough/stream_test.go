package passthrough_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/portal/limits"
)

// watched is a stand-in's watch: it writes what it is told, and ends with the request.
type watched struct {
	form  string
	lines chan string
	ended chan struct{}
}

func newWatched(form string) *watched {
	return &watched{form: form, lines: make(chan string), ended: make(chan struct{}, limits.MaxStreamsEach+10)}
}

func (o *watched) serve(w http.ResponseWriter, r *http.Request) {
	defer func() { o.ended <- struct{}{} }()
	w.Header().Set("Content-Type", o.form)
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case line := <-o.lines:
			if line == "" {
				return
			}
			_, _ = io.WriteString(w, line)
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// wait waits for something that must happen in a moment.
func wait(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); {
		if time.Now().After(end) {
			t.Fatalf("no %s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

const event = `{"type":"ADDED","object":{}}` + "\n"

// opened opens a watch that has had one event.
func opened(t *testing.T, b *bed, o *watched) (*reply, *bufio.Reader) {
	t.Helper()
	answer := b.send(t, http.MethodGet, clusters+"?watch=true", nil)
	reader := bufio.NewReader(answer.Body)
	o.lines <- event // and no more: what arrives was not kept back
	if line, err := reader.ReadString('\n'); err != nil || line != event {
		t.Fatalf("the first event is %q, %v", line, err)
	}
	wait(t, "ticker", b.clock.HasWaiters)
	return answer, reader
}

// round lets the time of one round pass, and waits until it is over.
func round(t *testing.T, b *bed) {
	t.Helper()
	before := b.upstream.Reviews()
	b.clock.Step(8 * time.Second)
	wait(t, "review", func() bool { return b.upstream.Reviews() > before })
}

func TestWatch_EndsWithItsRight(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*bed)
		rounds int
		code   int32
	}{
		"right taken away": {func(b *bed) { b.upstream.Deny("alice-token") }, 1, http.StatusForbidden},
		"token withdrawn":  {func(b *bed) { b.upstream.Withdraw("alice-token") }, 1, http.StatusUnauthorized},
		"nobody answers":   {func(b *bed) { b.upstream.Break(true) }, 3, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			o := newWatched("application/json")
			b := newBed(t, o.serve)
			_, reader := opened(t, b, o)
			round(t, b) // the right is there
			o.lines <- event
			if line, err := reader.ReadString('\n'); line != event {
				t.Fatalf("after a round: %q, %v", line, err)
			}
			c.change(b)
			for range c.rounds {
				round(t, b)
			}
			rest, err := io.ReadAll(reader)
			var last struct {
				Type   string
				Object struct {
					Kind, Reason, Message string
					Code                  int32
				}
			}
			if err != nil || json.Unmarshal(rest, &last) != nil || last.Type != "ERROR" || last.Object.Kind != "Status" || last.Object.Code != c.code ||
				!strings.Contains(last.Object.Message, "the watch ends") || last.Object.Reason == "" {
				t.Errorf("it ends with %q, %v", rest, err)
			}
			<-o.ended
			wait(t, "free place", func() bool { return b.streams.Count() == 0 })
		})
	}
}

// TestWatch_GoesOnAfterUnansweredRounds: two are no reason, and one that is answered makes them forgotten.
func TestWatch_GoesOnAfterUnansweredRounds(t *testing.T) {
	o := newWatched("application/json")
	b := newBed(t, o.serve)
	_, reader := opened(t, b, o)
	for range 3 {
		b.upstream.Break(true)
		round(t, b)
		round(t, b)
		b.upstream.Break(false)
		round(t, b)
	}
	o.lines <- event
	if line, err := reader.ReadString('\n'); line != event {
		t.Errorf("the watch is %q, %v", line, err)
	}
}

// TestWatch_EndsWithoutAWord where its form has no place for one, in the middle of an event, and when the server ends.
func TestWatch_EndsWithoutAWord(t *testing.T) {
	deny := func(b *bed) { b.upstream.Deny("alice-token") }
	for name, c := range map[string]struct {
		form, more string
		end        func(*bed)
	}{
		"another form":        {"application/vnd.kubernetes.protobuf;stream=watch", "", deny},
		"within an event":     {"application/json", `{"type":"AD`, deny},
		"the server ends":     {"application/json", "", func(b *bed) { b.end() }},
		"the API server ends": {"application/json", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := newWatched(c.form)
			b := newBed(t, o.serve)
			_, reader := opened(t, b, o)
			if c.more != "" {
				o.lines <- c.more
				if part, err := reader.Peek(len(c.more)); err != nil || string(part) != c.more {
					t.Fatalf("the part is %q, %v", part, err)
				}
			}
			if c.end == nil {
				o.lines <- ""
			} else {
				c.end(b)
				b.clock.Step(8 * time.Second)
			}
			if rest, err := io.ReadAll(reader); err != nil || string(rest) != c.more {
				t.Errorf("it ends with %q, %v", rest, err)
			}
			<-o.ended
		})
	}
}

func TestWatch_IsOneOfSoManyOfACaller(t *testing.T) {
	o := newWatched("application/json")
	b := newBed(t, o.serve)
	b.upstream.Know("another-of-alice", "alice")
	b.upstream.Know("bob-token", "bob")
	for _, token := range []string{"alice-token", "another-of-alice", "bob-token"} { // so that none is late
		if _, err := b.access.Identify(t.Context(), &http.Request{Header: http.Header{"Authorization": {"Bearer " + token}}}); err != nil {
			t.Fatal(err)
		}
	}
	first := b.send(t, http.MethodGet, clusters+"?watch=true", nil)
	for range limits.MaxStreamsEach - 1 {
		b.send(t, http.MethodGet, clusters+"?watch=true", nil, "Authorization", "Bearer another-of-alice")
	}
	answer := b.send(t, http.MethodGet, clusters+"?watch=true", nil)
	if status := refusalIn(t, answer); status.Code != http.StatusTooManyRequests || answer.Header.Get("Retry-After") != "5" || status.Details.RetryAfterSeconds != 5 {
		t.Errorf("one more: %+v %v", status, answer.Header)
	}
	if other := b.send(t, http.MethodGet, clusters+"?watch=true", nil, "Authorization", "Bearer bob-token"); other.StatusCode != http.StatusOK {
		t.Errorf("another caller is answered %s", fmt.Sprint(other.StatusCode))
	}
	_ = first.Body.Close() // the caller leaves
	<-o.ended
	wait(t, "free place", func() bool { return b.streams.Count() == limits.MaxStreamsEach })
	if again := b.send(t, http.MethodGet, clusters+"?watch=true", nil); again.StatusCode != http.StatusOK {
		t.Errorf("after one has ended: %s", fmt.Sprint(again.StatusCode))
	}
}

// TestWatch_EndsForACallerThatDoesNotRead: what it holds is freed, though its own connection takes nothing more.
func TestWatch_EndsForACallerThatDoesNotRead(t *testing.T) {
	many := strings.Repeat(event, 40000)
	o := newWatched("application/json")
	b := newBed(t, o.serve)
	b.clock.SetTime(time.Now().Add(-8 * time.Second)) // after a round it is the time of connections
	opened(t, b, o)
	for blocked := false; !blocked; { // until all buffers on the way are full
		select {
		case o.lines <- many:
		case <-time.After(500 * time.Millisecond):
			blocked = true
		}
	}
	b.upstream.Deny("alice-token")
	round(t, b)
	<-o.ended
	wait(t, "free place", func() bool { return b.streams.Count() == 0 })
}
