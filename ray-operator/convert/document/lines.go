package document

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	tree "go.yaml.in/yaml/v3"

	"github.com/heliostat-dev/heliostat/ray-operator/convert"
	"github.com/heliostat-dev/heliostat/ray-operator/yaml"
)

// Placed is a row with the line of its field.
type Placed struct {
	Line int
	Row  convert.Row
}

// Place puts rows about the object in the order of their lines, as far as these are known.
func (d *Document) Place(rows []convert.Row) []Placed {
	if len(rows) == 0 {
		return nil // most documents are not read once more
	}
	at := linesOf(d)
	var all []Placed
	for _, row := range rows {
		all = append(all, Placed{Line: at.of(row.Path), Row: row})
	}
	slices.SortStableFunc(all, func(a, b Placed) int { return cmp.Compare(a.Line, b.Line) })
	return all
}

// lines finds the lines of fields in a document, which is read once more for that.
type lines struct {
	root  *tree.Node
	first int
}

// linesOf reads where the fields of a document stand. What YAML 1.1 and 1.2 read in two ways does not move a line.
func linesOf(d *Document) lines {
	root, err := yaml.Tree(d.text, len(d.text))
	if err != nil {
		return lines{first: d.Line}
	}
	return lines{root: root, first: d.Line}
}

// of returns the line of a field, or of the nearest one above it.
func (l lines) of(path string) int {
	if l.root == nil {
		return l.first
	}
	node, line := l.root, l.root.Line
	for _, name := range steps(path) {
		next, at := below(node, name)
		if next == nil {
			break
		}
		node, line = next, at
	}
	return line + l.first - 1
}

// below returns the value of a key or an entry, and its line.
func below(node *tree.Node, name string) (*tree.Node, int) {
	if node.Kind == tree.AliasNode {
		node = node.Alias
	}
	switch node.Kind {
	case tree.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == name {
				return node.Content[i+1], node.Content[i].Line
			}
		}
	case tree.SequenceNode:
		if number, err := strconv.Atoi(name); err == nil && number < len(node.Content) {
			return node.Content[number], node.Content[number].Line
		}
	}
	return nil, 0
}

// steps are the names and numbers of a path, such as a.b[0].c and a[key.with/dots].
func steps(path string) []string {
	var all []string
	for path != "" {
		if inside, is := strings.CutPrefix(path, "["); is {
			key, rest, _ := strings.Cut(inside, "]")
			all, path = append(all, key), strings.TrimPrefix(rest, ".")
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			return append(all, path)
		}
		all, path = append(all, path[:end]), strings.TrimPrefix(path[end:], ".")
	}
	return all
}
