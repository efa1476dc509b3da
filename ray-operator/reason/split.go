package reason

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// seam is between the message and the remedy of a text.
const seam = ". "

// Split separates the text of a status into its message, with what it is about in front, and its remedy.
//
// It knows only texts that Of made. Any other is all message: one that was cut, of a code that is not in the
// catalogue, or of an operator with other words.
func Split(code, text string) (message, remedy string) {
	if form := forms[code]; form.begins(text) > 0 {
		if parts := form.pattern().FindStringSubmatch(text); parts != nil {
			return parts[1], parts[2]
		}
	}
	return text, ""
}

// form is what the texts of a reason look like that have a remedy.
type form struct {
	// openings are the seam with what a remedy begins with, up to its first value.
	openings []string
	// pattern matches a text, its message and its remedy in groups. It is compiled for the first text.
	pattern func() *regexp.Regexp
}

// forms are those of the catalogue, by code.
var forms = formsOf(catalogue)

func formsOf(reasons []Reason) map[string]form {
	all := map[string]form{}
	for _, r := range reasons {
		all[r.Code] = r.form()
	}
	return all
}

func (r Reason) form() form {
	var openings, remedies []string
	for _, c := range slices.Concat(r.Cases, []Case{{Remedy: r.Remedy}}) {
		if c.Remedy != "" {
			opening, _, _ := strings.Cut(c.Remedy, "%")
			openings, remedies = append(openings, seam+opening), append(remedies, expression(c.Remedy))
		}
	}
	return form{openings, sync.OnceValue(func() *regexp.Regexp {
		message, remedy := `(?:.*: )?`+expression(r.Message), strings.Join(remedies, "|")
		return regexp.MustCompile(`(?s)^(` + message + `)` + expression(seam) + `(` + remedy + `)$`)
	})}
}

// begins counts the openings of remedies in a text.
func (f form) begins(text string) int {
	count := 0
	for _, opening := range f.openings {
		count += strings.Count(text, opening)
	}
	return count
}

// expression matches what a format makes.
func expression(format string) string {
	return strings.NewReplacer("%s", ".*", "%d", "-?[0-9]+").Replace(regexp.QuoteMeta(format))
}

// runOn takes the ends of sentences out of values, so that none of them holds or makes a seam. Their length stays.
func runOn(values []any) {
	for i, value := range values {
		if text, ok := value.(string); ok {
			values[i] = strings.TrimSuffix(strings.ReplaceAll(text+" ", seam, ", "), " ")
		}
	}
}
