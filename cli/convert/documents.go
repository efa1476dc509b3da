package convert

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// mostBytes is how large a file may be: 1,000 manifests are a tenth of it.
const mostBytes = 10 << 20

// input is a document that was read, or why it could not be.
type input struct {
	// file, number and line say where it stands: its number in the file and its first line, both from 1. They are empty
	// for live objects.
	file         string
	number, line int
	text         []byte
	object       *unstructured.Unstructured
	problem      error
}

// readFiles reads all documents of files, directories and standard input, in their order.
func readFiles(names []string, stdin io.Reader) []input {
	var all []input
	for _, name := range names {
		if name == "-" {
			all = append(all, readFrom("-", stdin)...)
			continue
		}
		paths, err := filesOf(name)
		if err != nil {
			all = append(all, input{file: name, problem: err})
		}
		for _, path := range paths {
			all = append(all, readFile(path)...)
		}
	}
	return all
}

// filesOf are the manifests of a directory, or the file itself.
func filesOf(name string) ([]string, error) {
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() {
		return []string{name}, nil // reading says what is wrong
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, fmt.Errorf("read the directory: %w", err)
	}
	var paths []string
	for _, entry := range entries {
		if !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) {
			paths = append(paths, filepath.Join(name, entry.Name()))
		}
	}
	if len(paths) == 0 {
		return nil, errors.New("no .yaml, .yml or .json file is in the directory; name one that has some")
	}
	return paths, nil
}

func readFile(path string) []input {
	file, err := os.Open(path) //nolint:gosec // the user names the file
	if err != nil {
		return []input{{file: path, problem: fmt.Errorf("read the file: %w", err)}}
	}
	defer func() { _ = file.Close() }() // it was only read
	return readFrom(path, file)
}

func readFrom(name string, from io.Reader) []input {
	content, err := io.ReadAll(io.LimitReader(from, mostBytes+1))
	switch {
	case err != nil:
		return []input{{file: name, problem: fmt.Errorf("read the file: %w", err)}}
	case len(content) > mostBytes:
		return []input{{file: name, problem: fmt.Errorf("the file has more than %d MiB; divide it", mostBytes>>20)}}
	}
	var all []input
	for _, document := range divide(content) {
		document.file = name
		all = append(all, document.read()...)
	}
	return all
}

// divide finds the documents of a file: lines that begin with --- stand between them.
func divide(content []byte) []input {
	all := []input{{number: 1, line: 1}}
	for i, line := range bytes.SplitAfter(content, []byte("\n")) {
		current := &all[len(all)-1]
		if isDivider(line) {
			all = append(all, input{number: current.number + 1, line: i + 2})
			continue
		}
		current.text = append(current.text, line...)
	}
	return slices.DeleteFunc(all, func(in input) bool { return isBlank(in.text) })
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
func (in *input) read() []input {
	content, err := yaml.YAMLToJSONStrict(in.text)
	if err != nil {
		in.problem = errors.New(in.inFile(err.Error()))
		return []input{*in}
	}
	var object map[string]any
	if err := json.Unmarshal(content, &object); err != nil || object == nil {
		in.problem = errors.New("the document is no object; write the fields of one")
		return []input{*in}
	}
	whole := &unstructured.Unstructured{Object: object}
	if whole.GetKind() == "" || whole.GetAPIVersion() == "" {
		in.problem = errors.New("the document is no object of Kubernetes; give apiVersion and kind")
		return []input{*in}
	}
	entries, isList := object["items"].([]any)
	if !isList || !strings.HasSuffix(whole.GetKind(), "List") {
		in.object = whole
		return []input{*in}
	}
	return in.each(entries)
}

// each are the entries of a list, whose lines are not known one by one.
func (in *input) each(entries []any) []input {
	var all []input
	for i := range entries {
		entry := input{file: in.file, number: in.number, line: in.line}
		object, is := entries[i].(map[string]any)
		entry.object = &unstructured.Unstructured{Object: object}
		if !is || entry.object.GetKind() == "" || entry.object.GetAPIVersion() == "" {
			entry.object, entry.problem = nil, fmt.Errorf("items[%d] is no object of Kubernetes; give apiVersion and kind", i)
		}
		all = append(all, entry)
	}
	return all
}

var lineNumber = regexp.MustCompile(`line ([0-9]+)`)

// inFile counts the lines of an error from the beginning of the file.
func (in *input) inFile(text string) string {
	text = strings.TrimPrefix(strings.TrimPrefix(text, "error converting YAML to JSON: "), "yaml: ")
	text = strings.TrimSpace(strings.ReplaceAll(strings.TrimPrefix(text, "unmarshal errors:"), "\n", " "))
	return lineNumber.ReplaceAllStringFunc(text, func(found string) string {
		number, err := strconv.Atoi(found[len("line "):])
		if err != nil {
			return found
		}
		return fmt.Sprintf("line %d", number+in.line-1)
	})
}
