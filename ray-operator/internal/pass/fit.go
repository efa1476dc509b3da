package pass

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Fit returns a record as JSON in at most so many bytes: while it has more, shorten takes away what is needed least, and
// reports whether there was anything to take. The characters of HTML stay as they are, which takes a sixth of the room.
func Fit(record any, most int, shorten func() bool) string {
	for {
		var text strings.Builder
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(record) // what is written by it always marshals
		if said := strings.TrimSuffix(text.String(), "\n"); len(said) <= most || !shorten() {
			return said
		}
	}
}

// Shorten drops the first half of a text, as its end says most.
func Shorten(text string) string {
	text = text[(len(text)+1)/2:]
	for text != "" && !utf8.RuneStart(text[0]) {
		text = text[1:] // the rest of a character
	}
	return text
}
