// Package document reads manifests from a text, and knows where their fields stand in it.
//
// In: a text of YAML or JSON with one or more documents, and how large each may be. Out: one object for each document, or
// for each entry of a List, or why it could not be read; and rows about its fields with their lines.
//
// The command line and the server read manifests alike by it. It must never change what a manifest says.
package document

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/heliostat-dev/heliostat/ray-operator/yaml"
)

// Document is an object that was read, or why it could not be.
type Document struct {
	// Number and Line say where it stands: its number in the text and its first line, both from 1. They are 0 for an
	// object that comes from no text.
	Number, Line int
	// Object is nil where there is a Problem.
	Object  *unstructured.Unstructured
	Problem error

	text []byte
}

// Read returns the objects of a text in their order. Most is how many bytes a document may have, with its anchors written
// out.
func Read(text []byte, most int) []Document {
	var all []Document
	for _, one := range divide(text) {
		all = append(all, one.read(most)...)
	}
	return all
}

// Name returns the kind and the name of the object, or how the name begins that it will get, with its namespace.
func (d *Document) Name() string {
	name := d.Object.GetKind() + "/" + cmp.Or(d.Object.GetName(), d.Object.GetGenerateName())
	if namespace := d.Object.GetNamespace(); namespace != "" {
		name += " in " + namespace
	}
	return name
}

// divide finds the documents of a text: lines that begin with --- stand between them.
func divide(text []byte) []Document {
	all := []Document{{Number: 1, Line: 1}}
	began, at, number := 0, 0, 0
	for line := range bytes.Lines(text) {
		at += len(line)
		number++
		current := &all[len(all)-1]
		if isDivider(line) {
			all = append(all, Document{Number: current.Number + 1, Line: number + 1})
			began = at
			continue
		}
		current.text = text[began:at]
	}
	return slices.DeleteFunc(all, func(d Document) bool { return isBlank(d.text) })
}

func isDivider(line []byte) bool {
	rest, found := bytes.CutPrefix(line, []byte("---"))
	return found && (len(bytes.TrimSpace(rest)) == 0 || bytes.HasPrefix(bytes.TrimSpace(rest), []byte("#")))
}

// isBlank reports whether a document has nothing but comments.
func isBlank(text []byte) bool {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' && !bytes.HasPrefix(line, []byte("%")) {
			return false
		}
	}
	return true
}

// read reads the objects of a document: one, or those of a List.
func (d *Document) read(most int) []Document {
	if len(d.text) <= most {
		if text, isNumbered := d.withoutNumbers(most); isNumbered {
			return d.unread(numbered(text))
		}
	}
	content, err := d.toJSON(most)
	if err != nil {
		return d.unread(d.inText(err.Error()))
	}
	var object map[string]any
	if err := json.Unmarshal(content, &object); err != nil || object == nil {
		return d.unread("the document is no object; write the fields of one")
	}
	whole := &unstructured.Unstructured{Object: object}
	if whole.GetKind() == "" || whole.GetAPIVersion() == "" {
		return d.unread("the document is no object of Kubernetes; give apiVersion and kind")
	}
	entries, isList := object["items"].([]any)
	if !isList || !strings.HasSuffix(whole.GetKind(), "List") {
		d.Object = whole
		return []Document{*d}
	}
	return d.each(entries)
}

func (d *Document) unread(why string) []Document {
	d.Problem = errors.New(why)
	return []Document{*d}
}

// toJSON returns the document as JSON, unless it is too large for that.
func (d *Document) toJSON(most int) ([]byte, error) {
	if len(d.text) > most {
		return nil, fmt.Errorf("the document has more than %d MiB; divide it", most>>20)
	}
	return yaml.ToJSON(d.text, most)
}

// each are the entries of a list, whose lines are not known one by one.
func (d *Document) each(entries []any) []Document {
	var all []Document
	for i := range entries {
		entry := Document{Number: d.Number, Line: d.Line}
		object, is := entries[i].(map[string]any)
		entry.Object = &unstructured.Unstructured{Object: object}
		if !is || entry.Object.GetKind() == "" || entry.Object.GetAPIVersion() == "" {
			entry.Object = nil
			entry.Problem = fmt.Errorf("items[%d] is no object of Kubernetes; give apiVersion and kind", i)
		}
		all = append(all, entry)
	}
	return all
}

var lineNumber = regexp.MustCompile(`line ([0-9]+)`)

// inText counts the lines of an error from the beginning of the text.
func (d *Document) inText(said string) string {
	said = strings.TrimPrefix(strings.TrimPrefix(said, "error converting YAML to JSON: "), "yaml: ")
	said = strings.TrimSpace(strings.ReplaceAll(strings.TrimPrefix(said, "unmarshal errors:"), "\n", " "))
	return lineNumber.ReplaceAllStringFunc(said, func(found string) string {
		number, err := strconv.Atoi(found[len("line "):])
		if err != nil {
			return found
		}
		return fmt.Sprintf("line %d", number+d.Line-1)
	})
}
