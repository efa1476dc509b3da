package reason

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// How long a finding's text and its values are, in bytes. Conditions take 32 KiB, events 1 KiB.
const (
	longestText    = 1 << 10
	longestValue   = 512
	shortestValue  = 64
	longestCommand = 600
)

// Command is a value that people paste into a shell. It is cut later than words, as half of it does nothing.
type Command string

// shorten returns the values with words made printable and at most so many bytes long. Numbers stay.
func shorten(values []any, limit int) []any {
	short := make([]any, len(values))
	for i, value := range values {
		switch value := value.(type) {
		case Command:
			short[i] = clean(string(value), min(longestCommand, 3*limit))
		case error:
			short[i] = clean(value.Error(), limit)
		case fmt.Stringer:
			short[i] = clean(value.String(), limit)
		default:
			short[i] = value
			if text := reflect.ValueOf(value); text.Kind() == reflect.String {
				short[i] = clean(text.String(), limit)
			}
		}
	}
	return short
}

// clean returns a text without what a terminal would obey, cut to a number of bytes.
func clean(text string, limit int) string {
	const ellipsis = "…"
	whole := len(text) <= limit
	if !whole {
		text = text[:limit-len(ellipsis)] // of a character that is cut in two blanks remain, which are trimmed
	}
	text = strings.Map(func(char rune) rune {
		if !unicode.IsPrint(char) || char == utf8.RuneError {
			return ' '
		}
		return char
	}, text)
	if !whole {
		text = strings.TrimSpace(text) + ellipsis
	}
	return text
}
