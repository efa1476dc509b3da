package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	// shareAtLeast in bytes is how long an object is that stands in a file of its own. Shorter ones gain nothing once compressed.
	shareAtLeast = 1000
	// reference stands where a shared object was. The chart's template, crds.yaml, puts it back.
	reference = `{"$shared":%d}`
)

// writeShared writes the trimmed definitions of some files into a directory as the chart has them: KIND.json for each, and
// shared.txt with one object a line that several places have.
func writeShared(directory string, files []string) error {
	var names, texts []string
	for _, file := range files {
		definition, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read a definition: %w", err)
		}
		trimmed, err := Trim(definition)
		if err != nil {
			return fmt.Errorf("trim %s: %w", file, err)
		}
		var crd map[string]any
		if err := yaml.Unmarshal(trimmed, &crd); err != nil {
			return fmt.Errorf("parse %s: %w", file, err)
		}
		_, plural, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".yaml"), "_")
		names, texts = append(names, plural+".json"), append(texts, visit(crd, func(string) {}))
	}
	texts, shared, err := Share(texts)
	if err != nil {
		return err
	}
	names, texts = append(names, "shared.txt"), append(texts, strings.Join(shared, "\n"))
	for i, name := range names {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(texts[i]+"\n"), 0o644); err != nil {
			return fmt.Errorf("write a definition: %w", err)
		}
	}
	return nil
}

// Share returns texts of JSON in which each long object that stands in several places is replaced by a reference, and these
// objects in the order of their references. An object holds references to later ones only, so that they are put back in this
// order.
func Share(texts []string) (short, shared []string, err error) {
	short = slices.Clone(texts)
	for {
		longest, err := longestTwice(slices.Concat(short, shared))
		if err != nil || longest == "" {
			return short, shared, err
		}
		refer := fmt.Sprintf(reference, len(shared))
		for _, all := range [][]string{short, shared} {
			for i := range all {
				all[i] = strings.ReplaceAll(all[i], longest, refer)
			}
		}
		shared = append(shared, longest)
	}
}

// longestTwice returns the longest object that stands in several places, and of equally long ones the first in the order of
// texts. It is empty where there is none that is long enough.
func longestTwice(texts []string) (string, error) {
	times := map[string]int{}
	for _, text := range texts {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			return "", fmt.Errorf("parse a definition: %w", err)
		}
		visit(value, func(object string) {
			if len(object) >= shareAtLeast {
				times[object]++
			}
		})
	}
	longest := ""
	for object, count := range times {
		if count > 1 && (len(object) > len(longest) || len(object) == len(longest) && object < longest) {
			longest = object
		}
	}
	return longest, nil
}

// visit visits the texts of all objects in a value of JSON, and returns that of the value, with sorted keys.
func visit(value any, each func(object string)) string {
	var out strings.Builder
	switch value := value.(type) {
	case map[string]any:
		out.WriteString("{")
		for i, key := range slices.Sorted(maps.Keys(value)) {
			if i > 0 {
				out.WriteString(",")
			}
			out.WriteString(plain(key) + ":" + visit(value[key], each))
		}
		out.WriteString("}")
		each(out.String())
	case []any:
		out.WriteString("[")
		for i, entry := range value {
			if i > 0 {
				out.WriteString(",")
			}
			out.WriteString(visit(entry, each))
		}
		out.WriteString("]")
	default:
		return plain(value)
	}
	return out.String()
}

// plain returns a text, number or switch as JSON. Rules are full of < and &, which need no escapes here.
func plain(value any) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(fmt.Sprintf("print %v: %v", value, err)) // it came as JSON
	}
	return strings.TrimSpace(out.String())
}
