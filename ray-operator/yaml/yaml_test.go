package yaml_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/ray-operator/yaml"
)

const largest = 1 << 20

// grown is a text whose anchors make it nine times as large with each line.
func grown(lines int) string {
	text := "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < lines; i++ {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), ", "))
	}
	return text
}

// nested is so many lists in each other.
func nested(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

// ladder is a text whose anchors make it so many lists deep, though each line has one or two.
func ladder(depth int) string {
	text := "- &a1 []\n"
	for i := 2; i < depth; i++ {
		text += fmt.Sprintf("- &a%d [*a%d]\n", i, i-1)
	}
	return text
}

func TestToJSON_RefusesWhatExceedsABound(t *testing.T) {
	t.Parallel()
	const written, tooDeep = "the text has more than 1 MiB when its anchors are written out; write out what it needs",
		"the values of the text lie more than 100 deep; simplify it"
	for name, c := range map[string]struct{ text, want string }{
		"lists that grow":            {grown(30), written},
		"a long text, often":         {"a: &a " + strings.Repeat("x", 64<<10) + "\nb: [" + strings.Repeat("*a,", 20_000) + "*a]\n", written},
		"nothing, often":             {"a: &a [" + strings.Repeat("[],", 1000) + "]\nb: [" + strings.Repeat("*a,", 200) + "*a]\n", written},
		"itself":                     {"a: &a [*a]\n", written},
		"merged fields":              {"a: &a {x: " + strings.Repeat("x", 1<<18) + "}\nb: [{<<: *a},{<<: *a},{<<: *a},{<<: *a}]\n", written},
		"too many bytes":             {"a: " + strings.Repeat("x", largest), "the text has more than 1 MiB; divide it"},
		"lists too deep":             {nested(yaml.MaxDepth + 1), tooDeep},
		"lists too deep, and a star": {"a: '*'\nb: " + nested(yaml.MaxDepth), tooDeep},
		"lists too deep by anchors":  {ladder(yaml.MaxDepth + 1), tooDeep},
		"lists as deep as they may":  {nested(yaml.MaxDepth), ""},
		"as deep by anchors":         {ladder(yaml.MaxDepth), ""},
		"brackets in a text":         {"a: '" + nested(yaml.MaxDepth) + "\"*'", ""},
		"an anchor that is used":     {"a: &a {b: 1}\nc: *a\nd: {<<: *a}\n", ""},
		"an anchor that is unknown":  {"a: *a\n", "unknown anchor 'a' referenced"},
		"a key twice":                {"a: 1\na: 2\n", `key "a" already set in map`},
		"a quantity that is rounded": {"cpu: '1e-100000000'\n", `the exponent of "1e-100000000" is too long; write the number out`},
		"one that is multiplied":     {"cpu: \" +0.E2000000000 \"\n", `the exponent of " +0.E2000000000 " is too long; write the number out`},
		"one of many digits":         {"cpu: ' -" + strings.Repeat("9", 1001) + "Gi'\n", "the number " + strings.Repeat("9", 40) + "… has more than 1000 digits; write a shorter one"},
		"one that an anchor names":   {"a: &a '.5e-999'\nb: *a\n", `the exponent of ".5e-999" is too long; write the number out`},
		"quantities":                 {"a: ['1e-3', 1E99, '500m', '1e12345', 'x1e-1000', '12e4-5678']\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := yaml.ToJSON([]byte(c.text), largest)
			bound := (*yaml.BoundError)(nil)
			switch isBound := errors.As(err, &bound); {
			case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want %q", err, c.want)
			case isBound != strings.HasPrefix(c.want, "the "):
				t.Errorf("%v is of a bound: %v", err, isBound)
			}
			var into any
			if other := yaml.Unmarshal([]byte(c.text), largest, &into); (other == nil) != (err == nil) {
				t.Errorf("Unmarshal says %v, and ToJSON %v", other, err)
			}
		})
	}
}

// TestToJSON_TakesLittleMemoryForBombs measures what a text takes that would take gigabytes.
func TestToJSON_TakesLittleMemoryForBombs(t *testing.T) {
	text := []byte("a: &a " + strings.Repeat("x", 64<<10) + "\nb: [" + strings.Repeat("*a,", 20_000) + "*a]\n")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := yaml.ToJSON(text, largest); err == nil {
		t.Error("it is read")
	}
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 32 {
		t.Errorf("%d KiB take %d MiB", len(text)>>10, took)
	}
}

func TestUnmarshal_RefusesUnknownFields(t *testing.T) {
	t.Parallel()
	var into struct {
		A string `json:"a"`
	}
	if err := yaml.Unmarshal([]byte("a: 1\n"), largest, &into); err != nil || into.A != "1" {
		t.Errorf("%v, %+v", err, into)
	}
	if err := yaml.Unmarshal([]byte("b: 1\n"), largest, &into); err == nil || !strings.Contains(err.Error(), `unknown field "b"`) {
		t.Errorf("%v", err)
	}
}

func TestScalars_AreThoseWritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"": nil, "alone": nil, "# nothing\n": nil,
		"a: b\nc: [d, 0123, 1.50, true, null]\n": {"b", "d", "0123", "1.50"},
		"a: &a {b: c}\nd: [*a, *a]\n":            {"c"},
		"a: 1\na: 2\n":                           {"1", "2"},
		"a: &a [*a, x]\n":                        {"x"},
		"a: !!binary aGVsbG8=\n":                 {"aGVsbG8=", "hello"},
	} {
		have, err := yaml.Scalars([]byte(text), largest)
		if diff := cmp.Diff(want, have); diff != "" || err != nil {
			t.Errorf("%q: %v %s", text, err, diff)
		}
	}
	if have, err := yaml.Scalars([]byte(grown(30)), largest); err != nil || len(have) != 9 {
		t.Errorf("of a text that would grow there are %d: %v", len(have), err)
	}
}
