package diagnose

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of what is quoted, in characters.
const (
	nameLength = 100 // names of objects that came in a text
	wordLength = 200 // what a component says of a failure
	listLength = 300 // enumerations of what a policy forbids
	logLength  = 400 // last lines of a log
)

// longest is as many bytes of a text as are read at all: more than anyone says in earnest.
const longest = 16 << 10

// escape is a control sequence of terminals, with which Ray colours its log.
var escape = regexp.MustCompile(`\x1b\[[0-9;?]*[ -/]*[@-~]`)

// clean makes a text from outside fit for one line: printable characters, single
// spaces, at most length characters, no dot at its end.
func clean(text string, length int) string {
	// Nothing beyond a few times the length can be seen; the rest costs no work.
	if most := 8 * length * utf8.UTFMax; len(text) > most {
		text = text[:most]
	}
	text = escape.ReplaceAllString(text, "")
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return -1
		}
		return r
	}, text)
	text = strings.TrimRight(strings.Join(strings.Fields(text), " "), ". ")
	if utf8.RuneCountInString(text) > length {
		text = strings.TrimRight(string([]rune(text)[:length-1]), " ") + "…"
	}
	return text
}

// lastLines is as many of the last lines of a log as fit, separated by " | ".
func lastLines(log string) string {
	var kept []string
	length := 0
	lines := strings.Split(strings.TrimSpace(log), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		line := clean(lines[i], logLength)
		if line == "" {
			continue
		}
		length += utf8.RuneCountInString(line) + len(" | ")
		if len(kept) > 0 && length > logLength {
			break
		}
		kept = append([]string{line}, kept...)
	}
	return strings.Join(kept, " | ")
}

// after gives the text with a separator in front, or nothing.
func after(separator, text string) string {
	if text == "" {
		return ""
	}
	return separator + text
}
