package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	tree "go.yaml.in/yaml/v3"

	"github.com/heliostat-dev/heliostat/ray-operator/yaml"
)

// most is how many bytes a document may have: an export of all objects is one document.
const most = 256 << 20

// Versions of our API.
const (
	group  = "heliostat.dev/"
	former = group + "v1alpha1"
	now    = group + "v1beta1"
)

// Rewrite returns a text with our objects rewritten, and lines about what was left out. What is not ours keeps its bytes.
func Rewrite(text []byte) (rewritten []byte, notes []string, err error) {
	var out bytes.Buffer
	var problems []error
	for i, part := range divide(text) {
		d := document{number: i + 1}
		content, err := d.rewrite(part.text)
		problems = append(problems, err)
		notes = append(notes, d.notes...)
		out.Write(part.divider)
		out.Write(content)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, nil, err
	}
	return out.Bytes(), notes, nil
}

// part is a document with the line above it.
type part struct{ divider, text []byte }

// divide finds the documents of a text: lines that begin with --- stand between them.
func divide(text []byte) []part {
	all := []part{{}}
	for line := range bytes.Lines(text) {
		if isDivider(line) {
			if last := all[len(all)-1]; len(last.divider)+len(last.text) == 0 {
				all = nil // the text begins with a divider
			}
			all = append(all, part{divider: line})
			continue
		}
		last := &all[len(all)-1]
		last.text = append(last.text, line...)
	}
	return all
}

func isDivider(line []byte) bool {
	rest, found := bytes.CutPrefix(line, []byte("---"))
	rest = bytes.TrimSpace(rest)
	return found && (len(rest) == 0 || rest[0] == '#')
}

// document is one document of a text: an object, or a list of objects.
type document struct {
	number int
	// name is that of the object that is rewritten, once it is known.
	name  string
	notes []string
}

// at puts the document before an error.
func (d *document) at(err error) error {
	if err == nil {
		return nil
	}
	if d.name != "" {
		return fmt.Errorf("document %d, %s: %w", d.number, d.name, err)
	}
	return fmt.Errorf("document %d: %w", d.number, err)
}

// note says what was done with the object.
func (d *document) note(format string, args ...any) {
	d.notes = append(d.notes, fmt.Sprintf("document %d, %s: ", d.number, d.name)+fmt.Sprintf(format, args...))
}

// rewrite returns the text of the document, rewritten where it has objects of ours. It is empty where its object is left out.
func (d *document) rewrite(text []byte) ([]byte, error) {
	if !bytes.Contains(text, []byte(former)) {
		return text, nil
	}
	if err := isOne(text); err != nil {
		return nil, d.at(err)
	}
	above, content, below := comments(text)
	root, err := yaml.Tree(content, most)
	if err != nil {
		return nil, d.at(err)
	}
	if root == nil || root.Kind != tree.MappingNode {
		return text, nil
	}
	result, err := d.object(object{node: root})
	if err != nil {
		return nil, d.at(err)
	}
	switch result {
	case leftOut:
		return nil, nil
	case asItWas:
		d.name = "no object of ours"
		d.note("it names %s in a text; rewrite that by hand", former)
		return text, nil
	default:
		written, err := write(root)
		return bytes.Join([][]byte{above, written, below}, nil), d.at(err)
	}
}

// isOne refuses a text in which more documents begin or end than divide sees: the reader would read the first alone.
func isOne(text []byte) error {
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if bytes.HasPrefix(line, []byte("--- ")) || bytes.HasPrefix(line, []byte("...")) {
			return fmt.Errorf("line %d of it begins or ends a document; write --- alone into the line instead", number)
		}
	}
	return nil
}

// comments cuts the comments and empty lines above and below the content of a document. The tree of a text has none of them.
func comments(text []byte) (above, content, below []byte) {
	isComment := func(line []byte) bool {
		line = bytes.TrimRight(line, " \t\r\n")
		return len(line) == 0 || line[0] == '#'
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	first, end := 0, len(lines)
	for first < end && isComment(lines[first]) {
		first++
	}
	for end > first && isComment(lines[end-1]) {
		end--
	}
	return bytes.Join(lines[:first], nil), bytes.Join(lines[first:end], nil), bytes.Join(lines[end:], nil)
}

// write returns the text of a tree, and makes sure that it can be read.
func write(root *tree.Node) ([]byte, error) {
	var out bytes.Buffer
	encoder := tree.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := errors.Join(encoder.Encode(root), encoder.Close()); err != nil {
		return nil, fmt.Errorf("write it: %w", err)
	}
	if _, err := yaml.Tree(out.Bytes(), most); err != nil {
		return nil, fmt.Errorf("what was left out has an anchor that the rest uses; write the anchor out: %w", err)
	}
	return out.Bytes(), nil
}

// outcome is the result for one object.
type outcome int

const (
	asItWas outcome = iota
	isRewritten
	leftOut
)

// object rewrites one object or the objects of a list.
func (d *document) object(o object) (outcome, error) {
	version, err := o.text("apiVersion")
	if err != nil {
		return asItWas, err
	}
	kind, err := o.text("kind")
	if err != nil {
		return asItWas, err
	}
	if items, err := o.value("items"); err == nil && items != nil && strings.HasSuffix(kind, "List") {
		return d.list(o, items, version)
	}
	if version != former {
		return asItWas, nil
	}
	return d.ours(o, kind)
}

// list rewrites the objects of a list.
func (d *document) list(o object, items *tree.Node, version string) (outcome, error) {
	result := asItWas
	if version == former {
		result = isRewritten
		if err := o.replace("apiVersion", now); err != nil {
			return asItWas, err
		}
	}
	var kept []*tree.Node
	var problems []error
	for i, item := range items.Content {
		d.name = fmt.Sprintf("items[%d]", i)
		if item.Kind == tree.AliasNode {
			problems = append(problems, fmt.Errorf("items[%d] is an alias; write it out", i))
			continue
		}
		one, err := d.object(object{node: item})
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", d.name, err))
		}
		if one != leftOut {
			kept = append(kept, item)
		}
		if one != asItWas {
			result = isRewritten
		}
	}
	d.name = ""
	items.Content = kept
	return result, errors.Join(problems...)
}

// ours rewrites an object of ours, or says why it is left out.
func (d *document) ours(o object, kind string) (outcome, error) {
	change, known := kinds[kind]
	metadata, _, err := o.below("metadata")
	if err != nil {
		return asItWas, err
	}
	if d.name, err = nameOf(kind, metadata); err != nil {
		return asItWas, err
	}
	if !known {
		return asItWas, fmt.Errorf("kind: there is no %s; correct it", kind)
	}
	why, err := reasonToLeaveOut(kind, o, metadata)
	if err != nil {
		return asItWas, err
	}
	if why != "" {
		d.note("left out: %s", why)
		return leftOut, nil
	}
	o.remove("status")
	err = errors.Join(o.replace("apiVersion", now), clean(metadata), change(d, o))
	return isRewritten, err
}

// nameOf returns the kind and name of an object, with its namespace.
func nameOf(kind string, metadata object) (string, error) {
	name, err := metadata.text("name")
	if err != nil {
		return "", err
	}
	if name == "" {
		if name, err = metadata.text("generateName"); err != nil {
			return "", err
		}
	}
	namespace, err := metadata.text("namespace")
	if err != nil {
		return "", err
	}
	if namespace != "" {
		return fmt.Sprintf("%s/%s in %s", kind, name, namespace), nil
	}
	return kind + "/" + name, nil
}
