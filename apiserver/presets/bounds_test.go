package presets_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/apiserver/presets"
)

const bare = `{"type": "object"}`

// options is a schema of so many options, and a manifest that has them all.
func options(count int, option string) map[string]string {
	var properties, values []string
	for i := range count {
		properties = append(properties, fmt.Sprintf(`"o%d": %s`, i, option))
		values = append(values, fmt.Sprintf(`"${o%d}"`, i))
	}
	return map[string]string{
		presets.KeySchema:   `{"type": "object", "properties": {` + strings.Join(properties, ", ") + `}}`,
		presets.KeyManifest: head + "spec: {x: [" + strings.Join(values, ", ") + "]}\n",
	}
}

// sized is a text with others around it that has so many bytes.
func sized(before, after string, length int) string {
	return before + strings.Repeat("x", length-len(before)-len(after)) + after
}

// nested is a value so many levels deep.
func nested(open, inner, end string, depth int) string {
	return strings.Repeat(open, depth) + inner + strings.Repeat(end, depth)
}

// bound is how large a part of a preset may be, and what a larger one is answered with.
type bound struct {
	of   func(size int) map[string]string
	most int
	want string
}

func bounds() map[string]bound {
	with := func(key, text string) map[string]string {
		return map[string]string{presets.KeySchema: bare, presets.KeyManifest: head, key: text}
	}
	return map[string]bound{
		"a title":       {func(n int) map[string]string { return with(presets.KeyTitle, sized("", "", n)) }, 256, "title has more than 256 bytes; shorten it"},
		"a description": {func(n int) map[string]string { return with(presets.KeyDescription, sized("", "", n)) }, 4096, "description has more than 4096 bytes; shorten it"},
		"a schema": {
			func(n int) map[string]string {
				return with(presets.KeySchema, sized(`{"type": "object", "title": "`, `"}`, n))
			}, 32768, "schema.json has more than 32768 bytes; shorten it",
		},
		"a manifest": {
			func(n int) map[string]string { return with(presets.KeyManifest, sized(head+"# ", "\n", n)) }, 131072, "manifest.yaml has more than 131072 bytes; shorten it",
		},
		"options": {func(n int) map[string]string { return options(n, `{"default": ""}`) }, 64, "schema.json: it has more than 64 options; leave some out"},
		"levels of a schema": {
			func(n int) map[string]string {
				return with(presets.KeySchema, `{"type": "object", "not": `+nested(`{"not": `, "{}", "}", n-1)+"}")
			}, 16, "schema.json: it is too large or too deep for a schema of options; simplify it",
		},
		"levels of a schema's lists": {
			func(n int) map[string]string {
				return with(presets.KeySchema, `{"type": "object", "examples": `+nested("[", "", "]", n)+"}")
			}, 16, "schema.json: it is too large or too deep for a schema of options; simplify it",
		},
		"values of a schema": {
			func(n int) map[string]string {
				return with(presets.KeySchema, `{"type": "object", "examples": [`+strings.TrimSuffix(strings.Repeat("1,", n-3), ",")+"]}")
			}, 2000, "schema.json: it is too large or too deep for a schema of options; simplify it",
		},
		"values of a manifest": {
			func(n int) map[string]string {
				return with(presets.KeyManifest, head+"spec: {a: ["+strings.TrimSuffix(strings.Repeat("1,", n-5), ",")+"]}\n")
			}, 20000, "manifest.yaml: it has more than 20000 values; simplify it",
		},
		"levels of a manifest": {
			func(n int) map[string]string {
				return with(presets.KeyManifest, head+"spec: "+nested("{a: ", "x", "}", n-1))
			}, 64,
			"manifest.yaml: it is too deep; simplify it",
		},
		"levels of a manifest's lists": {
			func(n int) map[string]string {
				return with(presets.KeyManifest, head+"spec: "+nested("[", "x", "]", n-1))
			}, 64,
			"manifest.yaml: it is too deep; simplify it",
		},
	}
}

// TestParse_Bounds: what is just as large as it may be is taken, and one more is refused.
func TestParse_Bounds(t *testing.T) {
	for name, test := range bounds() {
		t.Run(name, func(t *testing.T) {
			if _, err := presets.Parse(sourceOf("team", "p", test.of(test.most))); err != nil {
				t.Errorf("refused: %v", err)
			}
			if _, err := presets.Parse(sourceOf("team", "p", test.of(test.most+1))); err == nil || err.Error() != test.want {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
}

// given are as many options, each of so many bytes, the last one of more.
func given(count, length, more int) map[string]any {
	values := map[string]any{}
	for i := range count {
		values[fmt.Sprintf("o%d", i)] = strings.Repeat("x", length)
	}
	values[fmt.Sprintf("o%d", count-1)] = strings.Repeat("x", length+more)
	return values
}

// TestApply_Bounds: options and the object that they make are as large as they may be, and no larger.
func TestApply_Bounds(t *testing.T) {
	const kilo = 1 << 10
	const anything = `{"default": ""}`
	list := func(count int, entry string) map[string]any { return map[string]any{"o1": entries(count, entry)} }
	text := func(length int) string { return strings.Repeat("x", length) }
	// 1 MiB less the names and scalars of the manifest itself.
	const rest = 1<<20 - len("apiVersionheliostat.dev/v1beta1kindComputeClusterspecimage")
	for name, test := range map[string]struct {
		data     map[string]string
		fit, not map[string]any
		want     string
	}{
		"one option": {
			options(1, anything), given(1, 16*kilo, 0), given(1, 16*kilo, 1),
			"options.o0 option-length: o0 has more than 16384 bytes. Shorten it",
		},
		"all options": {
			options(5, anything), given(4, 16*kilo, 0), but(given(4, 16*kilo, 0), "o4", "x"),
			"options option-length: all options together have more than 65536 bytes. Shorten them",
		},
		"entries of a list": {
			options(2, anything), list(256, "x"), list(257, "x"),
			"options.o1 option-type: o1 is no scalar and no list of scalars. Give a text, a number, true or false, or a list of those",
		},
		"the length of a list": {
			options(2, anything), list(256, text(63)), list(256, text(64)),
			"options.o1 option-length: o1 has more than 16384 bytes. Shorten it",
		},
		"the object": {
			simple(anything, strings.Repeat("${a}", 100)), map[string]any{"a": text(rest / 100)},
			map[string]any{"a": text(rest/100 + 1)},
			"options option-length: the object would have more than 1048576 bytes with these options. Shorten them",
		},
		"the object of lists and scalars": {
			map[string]string{
				presets.KeySchema:   `{"type": "object", "properties": {"a": {"default": ""}}}`,
				presets.KeyManifest: head + "spec: [" + strings.Repeat(`"${a}", 1, `, 100) + "]\n",
			}, map[string]any{"a": []any{text(10000)}}, map[string]any{"a": []any{text(10500)}},
			"options option-length: the object would have more than 1048576 bytes with these options. Shorten them",
		},
	} {
		t.Run(name, func(t *testing.T) {
			preset := parse(t, sourceOf("team", "p", test.data))
			if have, findings, err := preset.Apply(test.fit); have == nil || err != nil {
				t.Errorf("refused: %v, %v", findings, err)
			}
			have, findings, err := preset.Apply(test.not)
			if diff := cmp.Diff([]string{test.want}, texts(findings)); have != nil || err != nil || diff != "" {
				t.Errorf("%v, %s", err, diff)
			}
		})
	}
}

// but are options with another one.
func but(options map[string]any, name string, value any) map[string]any {
	options[name] = value
	return options
}

func entries(count int, entry string) []any {
	var all []any
	for range count {
		all = append(all, entry)
	}
	return all
}

// TestApply_UnknownOptions: of many not all are told.
func TestApply_UnknownOptions(t *testing.T) {
	preset := parse(t, sourceOf("team", "p", map[string]string{presets.KeySchema: bare, presets.KeyManifest: head}))
	values := map[string]any{}
	for i := range 99 {
		values[fmt.Sprintf("o%d", i)] = i
	}
	_, findings, _ := preset.Apply(values)
	if len(findings) != 64 || findings[0].Remedy != "Leave it out" {
		t.Errorf("%d findings, the first %+v", len(findings), findings[0])
	}
}

// TestApply_Numbers: an integer is one in whatever form it comes.
func TestApply_Numbers(t *testing.T) {
	preset := parse(t, sourceOf("team", "p", simple(`{"default": ""}`, "${a}")))
	const exact = 1 << 53
	for name, test := range map[string]struct{ value, want any }{
		"an int":                         {3, int64(3)},
		"an int64":                       {int64(3), int64(3)},
		"a number of JSON":               {json.Number("3"), int64(3)},
		"a part of JSON":                 {json.Number("1.5"), 1.5},
		"a whole number of a Struct":     {-3.0, int64(-3)},
		"the largest that is exact":      {float64(exact), int64(exact)},
		"the least that is exact":        {float64(-exact), int64(-exact)},
		"one that may not be exact":      {float64(exact + 2), float64(exact + 2)},
		"half":                           {0.5, 0.5},
		"what no encoding takes":         {"a\xffb", "a�b"},
		"a number of JSON without end":   {json.Number("1e999"), nil},
		"what is no number but a string": {json.Number("x"), nil},
		"a type of another kind":         {struct{}{}, nil},
	} {
		have, findings, err := preset.Apply(map[string]any{"a": test.value})
		if err != nil || (test.want == nil) != (len(findings) == 1) {
			t.Errorf("%s: %v, %v", name, texts(findings), err)
		} else if test.want != nil && have["spec"].(map[string]any)["image"] != test.want {
			t.Errorf("%s: %v", name, have)
		}
	}
}

// TestApply_RulesOfSchemas: each rule in words.
func TestApply_RulesOfSchemas(t *testing.T) {
	many := make([]string, 25)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	for name, test := range map[string]struct {
		option string
		value  any
		want   string
	}{
		"const":            {`{"const": "x", "default": "x"}`, "y", "options.a option-enum: a has another value than it may. Give x"},
		"several types":    {`{"type": ["integer", "null"], "default": 1}`, "y", "options.a option-type: a has the type string, and must have null or integer. Give a value of type null or integer"},
		"format":           {`{"format": "ipv4", "default": "10.0.0.1"}`, "y", "options.a option-format: a does not have the format ipv4. Give a text that has it"},
		"exclusiveMaximum": {`{"exclusiveMaximum": 2.5, "default": 1}`, 3, "options.a option-maximum: a is not below 2.5. Give less than 2.5"},
		"multipleOf":       {`{"multipleOf": 4, "default": 4}`, 3, "options.a option-multiple: a is no multiple of 4. Give a multiple of it"},
		"minItems":         {`{"minItems": 1, "default": ["x"]}`, []any{}, "options.a option-items: a has fewer than 1 entries. Give 1 or more"},
		"not":              {`{"not": {"type": "integer"}, "default": ""}`, 1, "options.a option-schema: a breaks a rule of the preset. See the schema of the preset"},
		"oneOf":            {`{"oneOf": [{"type": "integer"}], "default": 1}`, "y", "options.a option-schema: a breaks a rule of the preset: oneOf. See the schema of the preset"},
		"allOf":            {`{"allOf": [{"maximum": 2}, {"maximum": 2}], "default": 1}`, 3, "options.a option-maximum: a is above 2. Give 2 or less"},
		"contains":         {`{"contains": {"const": "x"}, "default": ["x"]}`, []any{"y"}, "options.a[0] option-enum: a[0] has another value than it may. Give x"},
		"a long enum": {
			`{"enum": [` + strings.Join(many, ",") + `], "default": 1}`, "y",
			"options.a option-enum: a has none of its values. Give one of " + strings.Join(many[:20], ", ") + ", 5 more",
		},
		"a long pattern": {
			`{"pattern": "^` + strings.Repeat("x", 200) + `$", "default": "` + strings.Repeat("x", 200) + `"}`, "y",
			"options.a option-pattern: a does not match ^" + strings.Repeat("x", 98) + "…. Give a text that matches it",
		},
		"a pattern that does not print": {
			`{"pattern": "\u001b[0]", "default": "\u001b0"}`, "y",
			"options.a option-pattern: a does not match  [0]. Give a text that matches it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			preset := parse(t, sourceOf("team", "p", simple(test.option, "${a}")))
			_, findings, _ := preset.Apply(map[string]any{"a": test.value})
			if diff := cmp.Diff([]string{test.want}, texts(findings)); diff != "" {
				t.Error(diff)
			}
		})
	}
	both := map[string]string{
		presets.KeySchema: `{"type": "object", "maxProperties": 1, "required": ["a"], "properties": {"a": {}, "b": {"default": 1}},
			"dependentRequired": {"a": ["b"]}}`,
		presets.KeyManifest: head + "spec: {x: \"${a}${b}\"}\n",
	}
	_, findings, _ := parse(t, sourceOf("team", "p", both)).Apply(map[string]any{"a": 1})
	want := []string{"options option-schema: the set of options breaks a rule of the preset: maxProperties. See the schema of the preset"}
	if diff := cmp.Diff(want, texts(findings)); diff != "" {
		t.Error(diff)
	}
}
