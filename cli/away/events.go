package away

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/heliostat-dev/heliostat/cli/outcome"
)

// eventStream is the type of answers that are server-sent events.
const eventStream = "text/event-stream"

// Event is a part of an output or a file, or what the server says of it. One of Data, Notice and End is set.
type Event struct {
	// Offset is where the output goes on after this event.
	Offset int64
	Data   []byte
	Notice *Notice
	End    *End
}

// Notice is something that the reader is to learn.
type Notice struct {
	Code, Message string
	Missing       *Missing
}

// Missing is a range that nobody has. A length of 0 is one without a known end.
type Missing struct {
	Offset, Length int64
	Reason         string
}

// End is why nothing more comes.
type End struct{ Outcome, Code, Message, Remedy string }

// isBroken reports whether the output was not read to its end.
func (e *End) isBroken() bool { return e.Outcome == "Broken" }

// BrokenError is that the server could not read an output to its end. The same read may have an answer later.
type BrokenError struct{ End End }

// Error returns what the server says of it.
func (b *BrokenError) Error() string {
	return (&refusal{Detail: b.End.Message, Remedy: b.End.Remedy}).Error()
}

// Sink takes events, one after the other. Its error ends the read.
type Sink func(Event) error

// readEvents reads something from an offset. An answer that is plain text is one of data alone.
func (s *Server) readEvents(ctx context.Context, what string, query url.Values, sink Sink, path ...string) error {
	answer, err := s.send(ctx, http.MethodGet, eventStream+", text/plain;q=0.5", query, path...)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // it was read, or the failure is another
	kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if err == nil && kind == eventStream {
		err = decodeEvents(answer.Body, sink)
	} else {
		from, _ := strconv.ParseInt(query.Get("offset"), 10, 64) // without one it begins at 0
		err = passOn(answer.Body, from, sink)
	}
	var coded *outcome.Error
	if err == nil || errors.As(err, &coded) {
		return err
	}
	return fmt.Errorf("read %s from the server %s: %w", what, s.url, err)
}

// passOn hands on a text as data.
func passOn(from io.Reader, offset int64, sink Sink) error {
	buffer := make([]byte, 32<<10)
	for {
		count, err := from.Read(buffer)
		if offset += int64(count); count > 0 {
			if err := sink(Event{Offset: offset, Data: buffer[:count]}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// decodeEvents reads server-sent events up to the end of the output. An answer that ends before it is broken off.
func decodeEvents(from io.Reader, sink Sink) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, largestAnswer)
	var name, text string
	var event Event
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case lines.Text() == "" && text != "":
			if err := event.take(name, text); err != nil {
				return err
			}
			if err := sink(event); err != nil {
				return err
			}
			if event.End != nil && event.End.isBroken() {
				return &BrokenError{*event.End}
			} else if event.End != nil {
				return nil
			}
			name, text = "", ""
		case field == "id":
			event.Offset, _ = strconv.ParseInt(value, 10, 64) // a number, as it is the server's
		case field == "event":
			name = value
		case field == "data":
			text = value
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF
}

// take fills in what the data of an event says.
func (e *Event) take(name, text string) error {
	e.Data, e.Notice, e.End = nil, nil, nil
	var into any
	var data struct{ Data []byte }
	switch name {
	case "data":
		into = &data
	case "notice":
		e.Notice = &Notice{}
		into = e.Notice
	case "end":
		e.End = &End{}
		into = e.End
	default: // one of a later server
		return nil
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("read an event %q: %w", name, err)
	}
	e.Data = data.Data
	return nil
}
