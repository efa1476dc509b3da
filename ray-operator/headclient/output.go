package headclient

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Limits on texts of many lines, in bytes.
const (
	maxMessage = 4 << 10
	maxLine    = 1 << 10
	maxLines   = 8 << 10
	// maxRaw is how much of a line is kept before its colours are taken out, and maxKept
	// of all of them.
	maxRaw  = 8 << 10
	maxKept = 32 * maxRaw
)

// escapes are what terminals obey: sequences that begin with CSI, strings that begin with
// OSC, DCS, SOS, PM or APC, and all the others. They end with their line at the latest.
var escapes = regexp.MustCompile("(?:\x1b\\[|\u009b)[0-?]*[ -/]*[@-~]?" +
	"|(?:\x1b[]PX^_]|[\u0090\u0098\u009d-\u009f])[^\x07\x1b\u009c]*(?:\x07|\x1b\\\\|\u009c)?" +
	"|\x1b[ -/]*[0-~]?")

// clean is a line that is fit to be shown: valid UTF-8, and nothing in it that a terminal
// or a reader could take for something else.
func clean(line string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsGraphic(r):
			return r
		default:
			return -1
		}
	}, escapes.ReplaceAllString(strings.ToValidUTF8(line, "\uFFFD"), ""))
}

// hide takes the token out of what a head said: jobs are known to print their environment.
func hide(said, token string) string {
	if token == "" {
		return said
	}
	return strings.ReplaceAll(said, token, "[token]")
}

// cut shortens a text without breaking a character.
func cut(said string, limit int) (string, bool) {
	if len(said) <= limit {
		return said, false
	}
	return strings.ToValidUTF8(said[:limit], ""), true
}

// ending is a text of many lines, from its first whole line on that fits.
func ending(said, token string) string {
	var lines []string
	room := maxMessage
	all := strings.Split(strings.TrimRight(said, "\r\n"), "\n")
	for i := len(all) - 1; i >= 0; i-- {
		line, _ := cut(hide(clean(overwritten(all[i])), token), maxLine)
		if room -= len(line) + 1; room < -1 {
			break
		}
		lines = append(lines, line)
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n")
}

// frame matches the line of a Python traceback that names a place in a program.
var frame = regexp.MustCompile(`(?m)^[ \t]+File ".*", line \d+.*$`)

// withoutFrames returns what a text says before a Python traceback, and the exception that the traceback ends with. A
// text without both is returned as it is.
func withoutFrames(said string) string {
	before, traceback, isTraceback := strings.Cut(said, "Traceback (most recent call last):")
	places := frame.FindAllStringIndex(traceback, -1)
	if !isTraceback || len(places) == 0 {
		return said
	}
	lines := strings.Split(traceback[places[len(places)-1][1]:], "\n")
	exception := slices.IndexFunc(lines, func(line string) bool { return strings.TrimLeft(line, " \t\r") == line && line != "" })
	if exception < 0 {
		return said
	}
	return before + strings.Join(lines[exception:], "\n")
}

// overwritten is what is left of a line in which something returned to its beginning, as
// progress bars do.
func overwritten(line string) string {
	line = strings.TrimRight(line, "\r")
	return line[strings.LastIndexByte(line, '\r')+1:]
}

// tailing takes a text in parts and keeps its end, in bounded memory.
type tailing struct {
	want int
	// lines are the last of all that were seen, kept the sum of their bytes.
	lines      [][]byte
	kept, seen int
	// line is the one that has not ended; returned tells that the next character but a line
	// feed overwrites it.
	line     []byte
	returned bool
}

// Write takes the next part; it never fails.
func (t *tailing) Write(part []byte) (int, error) {
	n := len(part)
	for len(part) > 0 {
		at := bytes.IndexAny(part, "\r\n")
		if at < 0 {
			at = len(part)
		}
		t.add(part[:at])
		if at == len(part) {
			break
		}
		if t.returned = part[at] == '\r'; !t.returned {
			t.end()
		}
		part = part[at+1:]
	}
	return n, nil
}

func (t *tailing) add(part []byte) {
	if len(part) == 0 {
		return
	}
	if t.returned {
		t.line, t.returned = t.line[:0], false
	}
	t.line = append(t.line, part[:min(len(part), maxRaw+1-len(t.line))]...)
}

// end ends the line.
func (t *tailing) end() {
	t.lines = append(t.lines, bytes.Clone(t.line))
	t.kept += len(t.line)
	t.seen++
	t.line, t.returned = t.line[:0], false
	for len(t.lines) > t.want || t.kept > maxKept {
		t.kept -= len(t.lines[0])
		t.lines = t.lines[1:]
	}
}

// tail is the last of what was kept, without the token and without a run of lines that is
// no part of the text.
func (t *tailing) tail(want int, without [][]byte, token string) Tail {
	if len(t.line) > 0 {
		t.end()
	}
	missing := len(t.lines) < min(t.want, t.seen)
	kept := drop(t.lines, without)
	tail := Tail{Truncated: missing && len(kept) < want}
	room := maxLines
	for i := len(kept) - 1; i >= max(0, len(kept)-want); i-- {
		line, short := cut(hide(clean(string(kept[i])), token), maxLine)
		if room -= len(line); room < 0 {
			tail.Truncated = true
			break
		}
		tail.Lines = append(tail.Lines, line)
		tail.Truncated = tail.Truncated || short || len(kept[i]) > maxRaw
	}
	slices.Reverse(tail.Lines)
	return tail
}

// drop takes a run of lines out of others, where it is first found.
func drop(lines, run [][]byte) [][]byte {
	for i := 0; len(run) > 0 && i+len(run) <= len(lines); i++ {
		if slices.EqualFunc(lines[i:i+len(run)], run, bytes.Equal) {
			return slices.Delete(lines, i, i+len(run))
		}
	}
	return lines
}
