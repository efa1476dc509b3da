package logs

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxFrame is how many bytes a line of a frame may have that is decoded.
const maxFrame = 1 << 20

// The names of events on the wire.
const (
	frameData   = "data"
	frameNotice = "notice"
	frameEnd    = "end"
)

// bytesFrame holds bytes, which JSON has in base64: a line could not hold an end of a line, nor what is no UTF-8.
type bytesFrame struct {
	Data []byte `json:"data"`
}

// EncodeSSE returns an event as server-sent events have it. Its ID is the offset where the output goes on, so that who
// connects again with Last-Event-ID misses nothing.
func EncodeSSE(e Event) []byte {
	name, content := frameData, any(bytesFrame{e.Data})
	switch {
	case e.Notice != nil:
		name, content = frameNotice, e.Notice
	case e.End != nil:
		name, content = frameEnd, e.End
	}
	encoded, err := json.Marshal(content)
	if err != nil {
		panic(err) // it is made of texts, numbers and bytes
	}
	return fmt.Appendf(nil, "id: %d\nevent: %s\ndata: %s\n\n", e.Offset, name, encoded)
}

// DecodeSSE reads the next event of a stream that EncodeSSE made. Comments are passed over. At the end of the stream it
// is io.EOF, and in the middle of an event io.ErrUnexpectedEOF.
func DecodeSSE(from *bufio.Reader) (Event, error) {
	fields := map[string]string{}
	for {
		line, err := readLine(from)
		if errors.Is(err, io.EOF) && (line != "" || len(fields) > 0) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return Event{}, err
		}
		switch name, value, _ := strings.Cut(line, ":"); {
		case line != "" && name == "": // a comment
		case line != "":
			if _, twice := fields[name]; twice {
				return Event{}, fmt.Errorf("read an event: it has two fields %q", name)
			}
			fields[name] = strings.TrimPrefix(value, " ")
		case len(fields) > 0:
			return decode(fields)
		}
	}
}

// readLine reads a line without its end.
func readLine(from *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := from.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxFrame {
			return "", fmt.Errorf("read an event: a line has more than %d bytes", maxFrame)
		}
		if err == nil {
			return string(line[:len(line)-1]), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return string(line), err
		}
	}
}

func decode(fields map[string]string) (Event, error) {
	offset, err := strconv.ParseInt(fields["id"], 10, 64)
	if err != nil || offset < 0 {
		return Event{}, fmt.Errorf("read an event: its ID %q is no offset", fields["id"])
	}
	e := Event{Offset: offset}
	var content any
	var data bytesFrame
	switch fields["event"] {
	case frameData:
		content = &data
	case frameNotice:
		e.Notice = &Notice{}
		content = e.Notice
	case frameEnd:
		e.End = &End{}
		content = e.End
	default:
		return Event{}, fmt.Errorf("read an event: %q is no event of an output", fields["event"])
	}
	if err := json.Unmarshal([]byte(fields["data"]), content); err != nil {
		return Event{}, fmt.Errorf("read an event: %w", err)
	}
	e.Data = data.Data
	return e, nil
}
