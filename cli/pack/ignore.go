package pack

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// pattern is a line of an ignore file.
type pattern struct {
	expression *regexp.Regexp
	// isKept: the line begins with !, and keeps what it matches.
	isKept bool
}

// rules are the lines of an ignore file. The last one that matches a path decides.
type rules []pattern

// excludes reports whether the rules exclude a path, which is relative to the directory of their file.
func (r rules) excludes(path string) bool {
	for _, one := range slices.Backward(r) {
		if one.expression.MatchString(path) {
			return !one.isKept
		}
	}
	return false
}

// parseRules reads lines in the form of .gitignore.
func parseRules(lines []string) (rules, error) {
	var all rules
	for _, line := range lines {
		line = trimBlanks(line)
		if line == "" || line == "/" || line[0] == '#' {
			continue
		}
		text, isKept := strings.CutPrefix(line, "!")
		expression, err := regexp.Compile(expressionOf(segmentsOf(text)))
		if err != nil {
			return nil, fmt.Errorf("read the pattern %q: its brackets hold no set of characters", line)
		}
		all = append(all, pattern{expression, isKept})
	}
	return all, nil
}

// trimBlanks cuts blanks at the end of a line, but for one behind a backslash.
func trimBlanks(line string) string {
	trimmed := strings.TrimRight(line, " \t\r")
	if strings.HasSuffix(trimmed, `\`) && len(trimmed) < len(line) {
		return line[:len(trimmed)+1]
	}
	return trimmed
}

// segmentsOf returns the parts of a pattern between slashes. A pattern without a slash but at its end matches in each
// directory, and one with a slash at its end matches what is below a directory.
func segmentsOf(text string) []string {
	parts := strings.Split(text, "/")
	switch {
	case parts[0] == "":
		parts = parts[1:]
	case len(parts) == 1, len(parts) == 2 && parts[1] == "":
		parts = slices.Insert(parts, 0, "**")
	}
	if last := len(parts) - 1; last > 0 && parts[last] == "" {
		parts[last] = "**"
	}
	return slices.CompactFunc(parts, func(a, b string) bool { return a == "**" && b == "**" })
}

// expressionOf returns the regular expression of a pattern. Two stars stand for any number of directories.
func expressionOf(parts []string) string {
	var to strings.Builder
	to.WriteString(`^`)
	needsSlash := false
	for i, part := range parts {
		isLast := i == len(parts)-1
		switch {
		case part != "**":
			if needsSlash {
				to.WriteString(`/`)
			}
			to.WriteString(globOf(part))
			needsSlash = true
		case isLast && needsSlash:
			to.WriteString(`/.+`)
		case isLast:
			to.WriteString(`.+`)
		case needsSlash:
			to.WriteString(`(?:/.+)?`)
		default:
			to.WriteString(`(?:.+/)?`)
		}
	}
	return to.String() + `$`
}

// globOf returns the regular expression of one part: * and ? match no slash, and a backslash makes the next character
// an ordinary one.
func globOf(part string) string {
	var to strings.Builder
	for part != "" {
		char := part[:1]
		part = part[1:]
		switch char {
		case `*`:
			to.WriteString(`[^/]*`)
		case `?`:
			to.WriteString(`[^/]`)
		case `\`:
			if part != "" {
				to.WriteString(regexp.QuoteMeta(part[:1]))
				part = part[1:]
			}
		case `[`:
			set, rest, isSet := cutSet(part)
			if !isSet {
				set = `\[`
			}
			to.WriteString(set)
			part = rest
		default:
			to.WriteString(regexp.QuoteMeta(char))
		}
	}
	return to.String()
}

// cutSet cuts a set of characters from what follows after its opening bracket. Without a closing one it is no set.
func cutSet(text string) (set, rest string, isSet bool) {
	begin := 0
	if strings.HasPrefix(text, "!") || strings.HasPrefix(text, "^") {
		begin = 1
	}
	first := begin
	if strings.HasPrefix(text[begin:], "]") { // a bracket at the begin is one of the characters
		first++
	}
	end := strings.IndexByte(text[first:], ']')
	if end < 0 {
		return "", text, false
	}
	end += first
	negation := ""
	if begin == 1 {
		negation = "^"
	}
	members := strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `^`, `\^`).Replace(text[begin:end])
	return "[" + negation + members + "]", text[end+1:], true
}
