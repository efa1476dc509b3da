package presets

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/heliostat-dev/heliostat/apiserver/spelling"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/yaml"
)

// Bounds of a manifest, before and after options are in it.
const (
	deepestManifest = 64
	mostValues      = 20_000
	longestObject   = 1 << 20 // bytes of its texts and names
)

// kinds are those that a preset may make.
var kinds = []string{"ComputeCluster", "ClusterJob", "ClusterJobSchedule", "ClusterService"}

// border begins or ends a document of YAML. A line of a text that is in one is indented.
var border = regexp.MustCompile(`(?m)^(?:---|\.\.\.)(?:[ \t\r]|$)`)

// readManifest reads and checks the manifest. Each option of the schema is in it, and no other.
func (p *Preset) readManifest(text string) error {
	content, err := yaml.ToJSON([]byte(text), longestObject)
	if bound := (*yaml.BoundError)(nil); errors.As(err, &bound) {
		return bound
	}
	if err != nil {
		return fmt.Errorf("it is no YAML: %s; correct it", shown(err.Error()))
	}
	documents := slices.DeleteFunc(border.Split(text, -1), isEmpty)
	if len(documents) > 1 {
		return errors.New("it has several documents; a preset makes one object")
	}
	var manifest map[string]any
	if err := utiljson.Unmarshal(content, &manifest); err != nil {
		return fmt.Errorf("it is no object: %s; correct it", shown(err.Error()))
	}
	if err := checkObject(manifest); err != nil {
		return err
	}
	r := reader{preset: p, used: map[string]bool{}}
	if err := r.read(manifest, "", 0); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(p.properties())) {
		if !r.used[name] {
			return fmt.Errorf("option %s of %s is nowhere in it; write ${%[1]s} where it belongs, or leave the option out",
				name, KeySchema)
		}
	}
	p.manifest = manifest
	return nil
}

// isEmpty reports whether a part of YAML has only comments and directives.
func isEmpty(part string) bool {
	for line := range strings.Lines(part) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "%") {
			return false
		}
	}
	return true
}

// checkObject refuses what is no object that a user may create by a preset.
func checkObject(manifest map[string]any) error {
	kind, _ := manifest["kind"].(string)
	metadata, isObject := manifest["metadata"].(map[string]any)
	switch {
	case manifest["apiVersion"] != v1beta1.GroupVersion.String():
		return fmt.Errorf("its apiVersion is not %s; presets make objects of no other", v1beta1.GroupVersion)
	case !slices.Contains(kinds, kind):
		return fmt.Errorf("kind must be one of %s", strings.Join(kinds, ", "))
	case manifest["metadata"] != nil && !isObject:
		return errors.New("its metadata is no object; correct it")
	case metadata["namespace"] != nil:
		return errors.New("it has metadata.namespace; leave it out, because the user says where the object is created")
	}
	if err := onlyKeys(manifest, "", "apiVersion", "kind", "metadata", "spec"); err != nil {
		return err
	}
	return onlyKeys(metadata, "metadata.", "name", "generateName", "labels", "annotations")
}

func onlyKeys(object map[string]any, path string, known ...string) error {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(known, key) {
			return fmt.Errorf("it has %s%s, which no preset sets; %s", path, shown(key), spelling.Remedy(key, known))
		}
	}
	return nil
}

// part is a piece of a text: words, or the name of an option whose value goes there.
type part struct{ text, option string }

// parts takes a text apart at its options. "$${" stands for "${".
func parts(text string) ([]part, error) {
	const begin, escaped = "${", "$${"
	var all []part
	var plain strings.Builder
	for text != "" {
		switch {
		case strings.HasPrefix(text, escaped):
			plain.WriteString(begin)
			text = text[len(escaped):]
		case strings.HasPrefix(text, begin):
			name, rest, isClosed := strings.Cut(text[len(begin):], "}")
			if !isClosed || !optionName.MatchString(name) {
				return nil, errors.New(`"${" without the name of an option; write "$${" for "${"`)
			}
			if plain.Len() > 0 {
				all = append(all, part{text: plain.String()})
				plain.Reset()
			}
			all, text = append(all, part{option: name}), rest
		default:
			length := 1 + strings.Index(text[1:]+"$", "$")
			plain.WriteString(text[:length])
			text = text[length:]
		}
	}
	if plain.Len() > 0 || len(all) == 0 {
		all = append(all, part{text: plain.String()})
	}
	return all, nil
}

// reader checks the options that a manifest has.
type reader struct {
	preset *Preset
	used   map[string]bool
	values int
}

func (r *reader) read(value any, path string, depth int) error {
	if depth > deepestManifest {
		return errors.New("it is too deep; simplify it")
	}
	if r.values++; r.values > mostValues {
		return fmt.Errorf("it has more than %d values; simplify it", mostValues)
	}
	r.preset.size += perValue
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			r.preset.size += len(key)
			if strings.Contains(key, "${") {
				return fmt.Errorf("%s%q has an option in a key; options are values", path, shown(key))
			}
			if err := r.read(value[key], join(path, key), depth+1); err != nil {
				return err
			}
		}
	case []any:
		for i, entry := range value {
			if err := r.read(entry, fmt.Sprintf("%s[%d]", path, i), depth+1); err != nil {
				return err
			}
		}
	case string:
		r.preset.size += len(value)
		return r.readText(value, path)
	}
	return nil
}

func join(path, key string) string {
	if path == "" {
		return shown(key)
	}
	return path + "." + shown(key)
}

func (r *reader) readText(text, path string) error {
	all, err := parts(text)
	if err != nil {
		return fmt.Errorf("%s has %w", path, err)
	}
	properties := r.preset.properties()
	for _, p := range all {
		if p.option == "" {
			continue
		}
		property, ok := properties[p.option].(map[string]any)
		if !ok {
			return fmt.Errorf("%s has ${%s}, and %s has no such option; %s",
				path, p.option, KeySchema, spelling.Remedy(p.option, slices.Sorted(maps.Keys(properties))))
		}
		if len(all) > 1 && property["type"] == "array" {
			return fmt.Errorf("%s has the list ${%s} inside a text; a list stands alone", path, p.option)
		}
		r.used[p.option] = true
	}
	return nil
}

// expansion puts values into a manifest.
type expansion struct {
	values   map[string]any
	length   int
	findings []Finding
}

// expand returns a copy with the values in it. Texts are not looked at again, so a value that looks like an option is
// none.
func (x *expansion) expand(node any) any {
	if len(x.findings) > 0 {
		return nil
	}
	switch node := node.(type) {
	case map[string]any:
		all := make(map[string]any, len(node))
		for _, key := range slices.Sorted(maps.Keys(node)) {
			x.count(len(key))
			all[key] = x.expand(node[key])
		}
		return all
	case []any:
		all := make([]any, len(node))
		for i, entry := range node {
			all[i] = x.expand(entry)
		}
		return all
	case string:
		return x.expandText(node)
	default:
		x.count(1)
		return node
	}
}

// expandText is the typed value where a text is one option, and a text elsewhere.
func (x *expansion) expandText(text string) any {
	all, _ := parts(text) // readText has seen that they come apart
	if len(all) == 1 && all[0].option != "" {
		value := x.values[all[0].option]
		x.count(lengthOf(value))
		if list, ok := value.([]any); ok {
			return slices.Clone(list)
		}
		return value
	}
	var whole strings.Builder
	for _, p := range all {
		words := p.text
		if p.option != "" {
			var ok bool
			if words, ok = textOf(x.values[p.option]); !ok {
				message := p.option + " is a list, and the preset has it inside a text"
				x.findings = append(x.findings, Finding{
					"options." + p.option, "option-type", message, "Give a text, a number, true or false",
				})
				return nil
			}
		}
		if x.count(len(words)); len(x.findings) > 0 {
			return nil
		}
		whole.WriteString(words)
	}
	return whole.String()
}

// count adds to the length of the object, which is bounded: an option may stand in many places.
func (x *expansion) count(length int) {
	if x.length += length; x.length > longestObject && len(x.findings) == 0 {
		message := fmt.Sprintf("the object would have more than %d bytes with these options", longestObject)
		x.findings = append(x.findings, Finding{"options", "option-length", message, "Shorten them"})
	}
}

// textOf is a scalar as it stands in a text.
func textOf(value any) (string, bool) {
	switch v := value.(type) {
	case nil:
		return "", true
	case bool:
		return strconv.FormatBool(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case string:
		return v, true
	default:
		return "", false
	}
}
