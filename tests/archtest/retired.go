package archtest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strings"
)

// Retired is a row of the glossary's table "Retired words".
type Retired struct {
	// Words are no longer written. One with a capital is a code, and only its own spelling counts.
	Words []string
	// Instead is what to write.
	Instead string

	pattern *regexp.Regexp
}

const retiredHeading = "## Retired words\n"

// RetiredWords returns the rows of the glossary's table.
func RetiredWords(glossary string) ([]Retired, error) {
	_, section, _ := strings.Cut(glossary, retiredHeading)
	section, _, _ = strings.Cut(section, "\n## ")
	var rows []Retired
	for line := range strings.SplitSeq(section, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 4 || strings.HasPrefix(line, "|---") {
			continue
		}
		row := Retired{Instead: strings.TrimSpace(cells[2])}
		for word := range strings.SplitSeq(cells[1], ",") {
			row.Words = append(row.Words, strings.Trim(word, " `"))
		}
		row.pattern = anyOf(row.Words)
		rows = append(rows, row)
	}
	if len(rows) < 2 {
		return nil, errors.New("find the table of retired words: the glossary has no rows below its heading")
	}
	return rows[1:], nil // without the head of the table
}

// anyOf matches any of the words. Blanks, line ends and the marks of comments may part those of a phrase.
func anyOf(words []string) *regexp.Regexp {
	all := make([]string, len(words))
	for i, word := range words {
		all[i] = strings.ReplaceAll(regexp.QuoteMeta(word), " ", `[\s/*#]+`)
		if word == strings.ToLower(word) {
			all[i] = "(?i:" + all[i] + ")"
		}
	}
	return regexp.MustCompile(`\b(?:` + strings.Join(all, "|") + `)\b`)
}

// RetiredIn returns the retired words of one file: in what users read, and in comments of Go.
func RetiredIn(name, text string, rows []Retired) ([]Violation, error) {
	parts, err := readable(name, text)
	if err != nil {
		return nil, err
	}
	var all []Violation
	for _, part := range parts {
		for _, row := range rows {
			for _, at := range row.pattern.FindAllStringIndex(part.text, -1) {
				all = append(all, Violation{
					Rule:    "no-retired-word",
					Place:   fmt.Sprintf("%s:%d", name, part.line+strings.Count(part.text[:at[0]], "\n")),
					Message: fmt.Sprintf("%q is retired: say %s", part.text[at[0]:at[1]], row.Instead),
				})
			}
		}
	}
	return all, nil
}

// passage is a part of a file with the line where it begins.
type passage struct {
	text string
	line int
}

// readable returns what people read of a file: all of a page, and comments and the product's texts of Go.
func readable(name, text string) ([]passage, error) {
	switch {
	case isPage(name):
		return []passage{{outsideTable(text), 1}}, nil
	case strings.HasSuffix(name, ".go"):
		file, err := Parse(name, text)
		if file == nil {
			return nil, err
		}
		return file.prose(), nil
	default:
		return nil, nil
	}
}

// isPage reports whether people read the whole file: a page for users, or what the chart shows them.
func isPage(name string) bool {
	switch path.Dir(name) {
	case ".", "docs", "docs/reference", "helm-chart/heliostat":
		return path.Ext(name) == ".md" || path.Base(name) == "values.yaml"
	default:
		return path.Base(name) == "NOTES.txt"
	}
}

// outsideTable returns a text with the rows of the table of retired words emptied, so that lines keep their numbers.
func outsideTable(text string) string {
	before, rest, ok := strings.Cut(text, retiredHeading)
	if !ok {
		return text
	}
	section, after, _ := strings.Cut(rest, "\n## ")
	return before + strings.Repeat("\n", strings.Count(section, "\n")+2) + after
}

// prose is the comments of a file, and where it is part of the product, its texts.
func (f *File) prose() []passage {
	var all []passage
	for _, group := range f.AST.Comments {
		all = append(all, f.passage(group))
	}
	if !f.Product() {
		return all
	}
	ast.Inspect(f.AST, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			all = append(all, f.passage(literal))
		}
		return true
	})
	return all
}

func (f *File) passage(node ast.Node) passage {
	begin, end := f.positions.Position(node.Pos()), f.positions.Position(node.End())
	return passage{f.Text[begin.Offset:end.Offset], begin.Line}
}
