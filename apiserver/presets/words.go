package presets

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// longestWord is how much of a name of others' is shown.
const longestWord = 100

// shown is a text of others' as it is fit for a line: printable, and short.
func shown(text string) string {
	text = strings.Map(func(char rune) rune {
		if char == utf8.RuneError || !unicode.IsPrint(char) {
			return ' '
		}
		return char
	}, text[:min(len(text), 4*longestWord)])
	if runes := []rune(text); len(runes) > longestWord {
		text = string(runes[:longestWord-1]) + "…"
	}
	return text
}

// sentence begins a remedy with a capital.
func sentence(remedy string) string { return strings.ToUpper(remedy[:1]) + remedy[1:] }
