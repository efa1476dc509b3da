package presets

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/heliostat-dev/heliostat/apiserver/spelling"
)

// Bounds of a schema and of options.
const (
	mostOptions    = 64
	mostSchema     = 2000 // values in it
	deepestSchema  = 16
	longestOption  = 16 << 10
	longestOptions = 64 << 10
	mostEntries    = 256
)

// schemaURL names the schema where the library needs a name. Nothing is loaded from it.
const schemaURL = "preset:///schema.json"

// optionName is what an option may be called: what stands between "${" and "}".
var optionName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,62}$`)

// drafts are the versions of JSON Schema that a schema may ask for.
var drafts = map[string]bool{
	"": true, "https://json-schema.org/draft/2020-12/schema": true,
	"http://json-schema.org/draft-07/schema": true, "http://json-schema.org/draft-07/schema#": true,
}

// references are keywords that lead elsewhere. Options are scalars, whose schemas need none, and without them nothing
// can be loaded and nothing goes in circles.
var references = []string{
	"$ref", "$dynamicRef", "$recursiveRef", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary",
}

// readSchema reads, checks and compiles the schema, and the defaults that it gives.
func (p *Preset) readSchema(text string) error {
	var schema map[string]any
	if err := utiljson.Unmarshal([]byte(text), &schema); err != nil {
		return fmt.Errorf("it is no JSON object: %w; correct it", err)
	}
	if err := checkSchema(schema); err != nil {
		return err
	}
	compiled, err := compile(schema)
	if err != nil {
		return err
	}
	p.Schema, p.compiled, p.defaults = schema, compiled, map[string]any{}
	properties := p.properties()
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property, _ := properties[name].(map[string]any) // checkSchema has seen that it is one
		standard, hasDefault := property["default"]
		if !hasDefault {
			if !slices.Contains(required(schema), name) {
				return fmt.Errorf("option %s has no default and is not required; give it a default, or list it in required", name)
			}
			continue
		}
		value, ok := scalars(standard)
		if !ok {
			return fmt.Errorf("the default of option %s is no scalar and no list of scalars; options are nothing else", name)
		}
		p.defaults[name] = value
		if broken := validate(compiled.Properties[name], value); len(broken) > 0 {
			return fmt.Errorf("the default of option %s breaks its own schema; correct one of the two", name)
		}
	}
	return nil
}

// checkSchema refuses what a schema of options does not need.
func checkSchema(schema map[string]any) error {
	draft, _ := schema["$schema"].(string)
	properties, isObject := schema["properties"].(map[string]any)
	switch {
	case schema["$schema"] != nil && draft == "", !drafts[draft]:
		return errors.New("$schema is of another version; leave it out, or use draft 2020-12 or draft-07")
	case schema["type"] != "object":
		return errors.New(`its type is not "object"; options are the properties of an object`)
	case schema["properties"] != nil && !isObject:
		return errors.New("properties is no object; it has one schema for each option")
	case len(properties) > mostOptions:
		return fmt.Errorf("it has more than %d options; leave some out", mostOptions)
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !optionName.MatchString(name) {
			return fmt.Errorf("option %q has a name that ${} does not take; use letters, digits, '_' and '-', a letter first",
				shown(name))
		}
		if _, ok := properties[name].(map[string]any); !ok {
			return fmt.Errorf("the schema of option %s is no object; give it a type", name)
		}
	}
	for _, name := range required(schema) {
		if _, ok := properties[name]; !ok {
			return fmt.Errorf("required names the option %q, which is not in properties; %s",
				shown(name), spelling.Remedy(name, slices.Sorted(maps.Keys(properties))))
		}
	}
	count := 0
	return checkKeywords(schema, 0, &count)
}

// checkKeywords bounds a schema, and refuses keywords that lead elsewhere.
func checkKeywords(value any, depth int, count *int) error {
	*count++
	if depth > deepestSchema || *count > mostSchema {
		return errors.New("it is too large or too deep for a schema of options; simplify it")
	}
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if slices.Contains(references, key) {
				return fmt.Errorf("it has the keyword %s; write out what it stands for", key)
			}
			if err := checkKeywords(value[key], depth+1, count); err != nil {
				return err
			}
		}
	case []any:
		for _, entry := range value {
			if err := checkKeywords(entry, depth+1, count); err != nil {
				return err
			}
		}
	}
	return nil
}

func required(schema map[string]any) []string {
	list, _ := schema["required"].([]any)
	var names []string
	for _, entry := range list {
		if name, ok := entry.(string); ok {
			names = append(names, name)
		}
	}
	return names
}

// noLoader refuses to load anything.
type noLoader struct{}

// Load implements jsonschema.URLLoader.
func (noLoader) Load(string) (any, error) {
	return nil, errors.New("a schema of options loads nothing")
}

func compile(schema map[string]any) (compiled *jsonschema.Schema, err error) {
	defer func() {
		if recover() != nil { // a schema comes from any author of a ConfigMap
			compiled, err = nil, errors.New("it cannot be read as a JSON Schema; simplify it")
		}
	}()
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource(schemaURL, schema); err != nil {
		return nil, fmt.Errorf("it is no JSON Schema: %w; correct it", err)
	}
	if compiled, err = compiler.Compile(schemaURL); err != nil {
		return nil, fmt.Errorf("it is no JSON Schema: %s; correct it", details(err))
	}
	return compiled, nil
}

// details are the lines of an error that say where something is wrong. The first line says only that something is.
func details(err error) string {
	first, rest, hasMore := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	if !hasMore {
		return shown(first)
	}
	var all []string
	for line := range strings.Lines(rest) {
		if line = strings.Trim(line, " -\n"); !strings.HasSuffix(line, " failed") { // those have causes
			all = append(all, shown(line))
		}
	}
	return strings.Join(all[:min(len(all), 3)], ", ")
}

func (p *Preset) properties() map[string]any {
	properties, _ := p.Schema["properties"].(map[string]any)
	return properties
}

// choose returns a value for each option, or findings.
func (p *Preset) choose(options map[string]any) (values map[string]any, findings []Finding) {
	values = maps.Clone(p.defaults)
	names := slices.Sorted(maps.Keys(p.properties()))
	size, unknown := 0, 0
	for _, name := range slices.Sorted(maps.Keys(options)) {
		field := "options." + shown(name)
		if !slices.Contains(names, name) {
			if unknown++; unknown <= mostOptions {
				message := fmt.Sprintf("%s is no option of preset %s", shown(name), p.Name)
				findings = append(findings, Finding{field, "option-unknown", message, sentence(spelling.Remedy(name, names))})
			}
			continue
		}
		value, ok := scalars(options[name])
		length := lengthOf(value)
		size += length
		switch {
		case !ok:
			remedy := "Give a text, a number, true or false, or a list of those"
			findings = append(findings, Finding{field, "option-type", name + " is no scalar and no list of scalars", remedy})
		case length > longestOption:
			message := fmt.Sprintf("%s has more than %d bytes", name, longestOption)
			findings = append(findings, Finding{field, "option-length", message, "Shorten it"})
		default:
			values[name] = value
		}
	}
	if size > longestOptions {
		message := fmt.Sprintf("all options together have more than %d bytes", longestOptions)
		return nil, append(findings, Finding{"options", "option-length", message, "Shorten them"})
	}
	findings = append(findings, withoutRefused(validate(p.compiled, values), findings)...)
	slices.SortStableFunc(findings, func(a, b Finding) int { return strings.Compare(a.Field, b.Field) })
	return values, findings
}

// withoutRefused leaves findings out about options that were refused before: they seem to be missing.
func withoutRefused(findings, before []Finding) []Finding {
	return slices.DeleteFunc(findings, func(f Finding) bool {
		return slices.ContainsFunc(before, func(b Finding) bool { return b.Field == f.Field })
	})
}

// scalars is a value in the forms that Kubernetes has: a scalar, or a list of scalars. Anything else is refused.
func scalars(value any) (any, bool) {
	list, isList := value.([]any)
	if !isList {
		return scalar(value)
	}
	if len(list) > mostEntries {
		return nil, false
	}
	all := make([]any, len(list))
	for i, entry := range list {
		var ok bool
		if all[i], ok = scalar(entry); !ok {
			return nil, false
		}
	}
	return all, true
}

// scalar makes a number an int64 where it is one. JSON of a google.protobuf.Struct has no integers.
func scalar(value any) (any, bool) {
	switch v := value.(type) {
	case nil, bool:
		return v, true
	case string:
		return strings.ToValidUTF8(v, "�"), true
	case int:
		return int64(v), true
	case int64:
		return v, true
	case json.Number:
		if whole, err := v.Int64(); err == nil {
			return whole, true
		}
		part, err := v.Float64()
		if err != nil {
			return nil, false
		}
		return scalar(part)
	case float64:
		const exact = 1 << 53
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0):
			return nil, false
		case v == math.Trunc(v) && math.Abs(v) <= exact:
			return int64(v), true
		}
		return v, true
	default:
		return nil, false
	}
}

// lengthOf is about how many bytes a value has.
func lengthOf(value any) int {
	switch v := value.(type) {
	case string:
		return len(v)
	case []any:
		sum := 0
		for _, entry := range v {
			sum += lengthOf(entry) + 1
		}
		return sum
	default:
		return 1
	}
}
