package document

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/yaml"
)

// lineWithNumber matches a line of a listing: its number, and what follows.
var lineWithNumber = regexp.MustCompile(`^([ \t]*)([0-9]+)([.:|]?)(.*)$`)

// fewestNumbered is how many lines a text must have to be taken for a listing.
const fewestNumbered = 3

// withoutNumbers returns a text without the numbers that stand in front of its lines, as copies of listings have them, and reports
// whether each line has one.
func (d *Document) withoutNumbers(most int) (text string, isNumbered bool) {
	lines := strings.Split(strings.TrimRight(string(d.text), "\n"), "\n")
	if len(lines) < fewestNumbered {
		return "", false
	}
	var after, atColumn []string
	first, column := 0, 0
	for i, line := range lines {
		found := lineWithNumber.FindStringSubmatch(strings.TrimRight(line, "\r"))
		if found == nil {
			return "", false
		}
		number, err := strconv.Atoi(found[2])
		if i == 0 {
			first = number
			column = len(line) - len(strings.TrimLeft(found[4], " \t"))
		}
		if err != nil || number != first+i {
			return "", false
		}
		after = append(after, strings.TrimPrefix(found[4], " "))
		atColumn = append(atColumn, line[min(column, len(line)):])
	}
	for _, candidate := range [][]string{after, atColumn} {
		text = dedented(candidate)
		other := &Document{text: []byte(text)}
		if content, err := yaml.ToJSON(other.text, most); err == nil && strings.Contains(string(content), `"apiVersion"`) {
			return text, true
		}
	}
	return "", true
}

// dedented joins lines without the spaces that all of them begin with.
func dedented(lines []string) string {
	common := -1
	for _, line := range lines {
		if spaces := len(line) - len(strings.TrimLeft(line, " ")); spaces < len(line) && (common < 0 || spaces < common) {
			common = spaces
		}
	}
	var out strings.Builder
	for _, line := range lines {
		out.WriteString(line[min(max(common, 0), len(line)):] + "\n")
	}
	return out.String()
}

// numbered says why a listing is not read: what stands in front of its lines is no YAML, and may be no number of a line.
func numbered(text string) string {
	if text == "" {
		return "each line begins with a number; take the numbers out"
	}
	return fmt.Sprintf("each line begins with a number; take the numbers out, so that it reads\n%s", strings.TrimSuffix(text, "\n"))
}
