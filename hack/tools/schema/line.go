package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// lines are the text of a field: one line for it, and one for each of its rules.
func (f Field) lines() []string {
	line := f.Of + " " + f.Path + " " + f.Type
	for _, name := range slices.Sorted(maps.Keys(f.Has)) {
		if line += " " + name; f.Has[name] != true {
			line += "=" + text(f.Has[name])
		}
	}
	all := []string{line}
	for _, rule := range f.Rules {
		all = append(all, f.Of+" "+f.Path+" rule="+text(rule))
	}
	return all
}

// text returns a value as JSON on one line.
func text(value any) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Sprint(value) // what was read from JSON can be written
	}
	return strings.TrimSpace(out.String())
}

// parse returns the fields of lines.
func parse(lines string) ([]Field, error) {
	var all []Field
	for line := range strings.Lines(lines) {
		of, rest, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		path, rest, found := strings.Cut(rest, " ")
		if !found {
			return nil, fmt.Errorf("%q: %w", line, errLine)
		}
		if rule, is := strings.CutPrefix(rest, "rule="); is {
			last := len(all) - 1
			if last < 0 || all[last].Of != of || all[last].Path != path {
				return nil, fmt.Errorf("%q: it does not follow its field: %w", line, errLine)
			}
			var text string
			if err := json.Unmarshal([]byte(rule), &text); err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
			all[last].Rules = append(all[last].Rules, text)
			continue
		}
		field := Field{Of: of, Path: path, Has: schema{}}
		field.Type, rest, _ = strings.Cut(rest, " ")
		if err := field.parse(rest); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		all = append(all, field)
	}
	return all, nil
}

var errLine = errors.New(`no line of "schema print"`)

// parse reads attributes: a name, and a value of JSON behind "=" unless it is true.
func (f *Field) parse(rest string) error {
	for rest != "" {
		end := strings.IndexAny(rest, " =")
		if end < 0 {
			end = len(rest)
		}
		name := rest[:end]
		if rest = rest[end:]; !strings.HasPrefix(rest, "=") {
			f.Has[name], rest = true, strings.TrimPrefix(rest, " ")
			continue
		}
		decoder := json.NewDecoder(strings.NewReader(rest[1:]))
		var value any
		if err := decoder.Decode(&value); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		f.Has[name] = value
		rest = strings.TrimPrefix(rest[1+decoder.InputOffset():], " ")
	}
	return nil
}
