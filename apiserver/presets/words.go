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

// useInstead is the remedy for an unknown name: the nearest known one, or all of them where none is near.
func useInstead(name string, known []string) string {
	if best, ok := nearest(name, known); ok {
		return "use " + best + ", or leave it out"
	}
	const most = 20
	if len(known) == 0 {
		return "leave it out"
	}
	list := strings.Join(known[:min(len(known), most)], ", ")
	if len(known) > most {
		list += ", …"
	}
	return "use one of " + list + ", or leave it out"
}

// sentence begins a remedy with a capital.
func sentence(remedy string) string { return strings.ToUpper(remedy[:1]) + remedy[1:] }

// nearest is the known name that is most alike, where one is alike enough to be meant.
func nearest(name string, known []string) (string, bool) {
	if len(name) > longestWord {
		return "", false
	}
	best, least := "", 1+max(1, len(name)/3)
	for _, other := range known {
		if distance := distanceOf(strings.ToLower(name), strings.ToLower(other)); distance < least {
			best, least = other, distance
		}
	}
	return best, best != ""
}

// distanceOf is how many letters have to be added, left out or replaced to make one name another.
func distanceOf(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
