package headclient

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxTail is how many lines may be asked for: no more would fit.
const maxTail = 1000

// Tail asks for the last lines of a job's output, up to 1,000: each of at most 1 KiB, all
// together of at most 8 KiB, without colours, progress that was overwritten, and the token.
// Before the driver began there are none. Where a log has to be read from its beginning no
// more than 64 MiB of it are; the conversation is then used up.
func (j *Jobs) Tail(ctx context.Context, id string, lines int) (Tail, error) {
	act := "read the last lines of job " + text([]byte(id))
	if lines < 1 || lines > maxTail {
		return Tail{}, j.fail(Invalid, act, fmt.Errorf("%d lines are not from 1 to %d", lines, maxTail))
	}
	job, node, err := j.job(ctx, id)
	if err != nil || node == (NodeID{}) {
		return Tail{}, err
	}
	banner := announced(job)
	want := lines + len(banner)
	end := &tailing{want: want}
	answer, err := j.ask(ctx, question{
		act: act, method: http.MethodGet, path: "/api/v0/logs/file", into: end, limit: maxLog,
		// By the file's name, because Ray would list all jobs to find the node of one.
		query: url.Values{
			"node_id": {node.String()}, "filename": {"job-driver-" + id + ".log"}, "lines": {strconv.Itoa(want)},
		},
	})
	if kind := KindOf(err); kind == Protocol || kind == Unavailable {
		// The part of the dashboard that knows files says no in many words, when it has too
		// much to do among others. The other one only gives all of a log.
		end = &tailing{want: want}
		answer, err = j.ask(ctx, question{
			act: act, method: http.MethodGet, path: "/api/jobs/" + id + "/logs", into: &quoted{into: end}, limit: maxLog,
		})
	}
	if err != nil {
		return Tail{}, err
	}
	tail := end.tail(lines, banner, answer.token)
	tail.Truncated = tail.Truncated || answer.cut
	return tail, nil
}

// announced are the lines in which Ray repeats the entrypoint. They stand anywhere in the
// output: Ray writes them when the process has begun.
func announced(job Job) [][]byte {
	var lines tailing
	lines.want = maxTail
	_, _ = lines.Write([]byte("Running entrypoint for job " + job.ID + ": " + job.Entrypoint + "\n"))
	if lines.seen > len(lines.lines) {
		return nil // a novel: it is left in
	}
	return lines.lines
}

// quoted takes the JSON object {"logs": "…"} in parts, and passes on what the text says.
// What is no such object gives nothing or nonsense, and never an error: it is for people.
type quoted struct {
	into io.Writer
	// isExact: nothing is made fit to be shown.
	isExact bool
	// quotes is how many were seen: the text is behind the third.
	quotes int
	// escape is what was read of an escape sequence, with its backslash; high is the first
	// half of a character that takes two.
	escape []byte
	high   rune
}

// Write takes the next part; it never fails.
func (q *quoted) Write(part []byte) (int, error) {
	text := make([]byte, 0, len(part))
	for _, b := range part {
		switch {
		case len(q.escape) > 0:
			q.escape = append(q.escape, b)
			text = q.unescape(text)
		case b == '\\':
			q.escape = append(q.escape, b)
		case b == '"':
			q.quotes++
		case q.quotes == 3:
			if q.high != 0 { // the second half does not come
				q.high, text = 0, utf8.AppendRune(text, utf8.RuneError)
			}
			text = append(text, b)
		}
	}
	if _, err := q.into.Write(text); err != nil {
		return 0, fmt.Errorf("keep the end of a log: %w", err)
	}
	return len(part), nil
}

// unescape adds what an escape sequence means, once it is whole.
func (q *quoted) unescape(text []byte) []byte {
	char := rune(q.escape[1])
	switch char {
	case 'n':
		char = '\n'
	case 'r':
		char = '\r'
	case 't':
		char = '\t'
	case 'b', 'f':
		if char = map[rune]rune{'b': '\b', 'f': '\f'}[char]; !q.isExact {
			char = ' '
		}
	case 'u':
		if len(q.escape) < len(`\u0000`) {
			return text
		}
		code, err := strconv.ParseUint(string(q.escape[2:]), 16, 16)
		if err != nil {
			code = utf8.RuneError
		}
		char = rune(code)
	}
	q.escape = q.escape[:0]
	if q.quotes != 3 {
		return text
	}
	switch high := q.high; {
	case high != 0:
		q.high = 0
		char = utf16.DecodeRune(high, char)
	case utf16.IsSurrogate(char):
		q.high = char
		return text
	}
	return utf8.AppendRune(text, char)
}
