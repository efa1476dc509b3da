package e2e

import (
	"embed"
	"io/fs"
	"maps"
	"strings"
	texttemplate "text/template"
)

// What specs apply and run lies in testdata: manifests in clusters, jobs and services, what several of these share in
// fragments.yaml, and programs for Ray's pods.
//
//go:embed testdata/fragments.yaml testdata/mistakes.yaml testdata/clusters testdata/jobs testdata/services testdata/programs
var testdata embed.FS

// values are what a file of testdata is rendered with. Those that it asks for by if, with or or may be absent.
type values map[string]any

// and returns the values with more of them.
func (v values) and(more values) values {
	all := values{}
	maps.Copy(all, v)
	maps.Copy(all, more)
	return all
}

var templates = parseTemplates()

// parseTemplates reads testdata. A file can name another one, and take a fragment at a depth of spaces.
func parseTemplates() *texttemplate.Template {
	all := texttemplate.New("")
	all.Funcs(texttemplate.FuncMap{"fragment": func(name string, depth int, v any) (string, error) {
		var text strings.Builder
		err := all.ExecuteTemplate(&text, name, v)
		line := "\n" + strings.Repeat(" ", depth)
		if text := strings.TrimSpace(text.String()); text != "" {
			return line + strings.ReplaceAll(text, "\n", line), err
		}
		return "", err
	}})
	err := fs.WalkDir(testdata, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := testdata.ReadFile(file)
		if err == nil {
			_, err = all.New(strings.TrimPrefix(file, "testdata/")).Parse(string(text))
		}
		return err
	})
	if err != nil {
		panic(err)
	}
	return all
}

// rendered returns a file of testdata with values in it.
func rendered(file string, v values) string {
	var text strings.Builder
	if err := templates.ExecuteTemplate(&text, file, v.and(values{"Release": release})); err != nil {
		panic(err)
	}
	if strings.Contains(text.String(), "<no value>") {
		panic(file + " needs a value that it was not given")
	}
	return strings.TrimRight(text.String(), "\n")
}
