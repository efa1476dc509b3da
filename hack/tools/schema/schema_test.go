package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write golden.txt")

// definitions returns the files of our kinds.
func definitions(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../../ray-operator/config/crd/*.yaml")
	if err != nil || len(files) != 4 {
		t.Fatalf("find the definitions: %v, %v", files, err)
	}
	return files
}

// TestGolden_IsWhatTheDefinitionsSay: -update writes it. Whether a change of it breaks users, hack/tools/schema.sh judges.
func TestGolden_IsWhatTheDefinitionsSay(t *testing.T) {
	var out bytes.Buffer
	if err := run(append([]string{"print"}, definitions(t)...), &out); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("golden.txt", out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile("golden.txt")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(golden, out.Bytes()) {
		t.Error("golden.txt is not what the definitions say: run go test -C hack/tools ./schema -update, and read the diff")
	}
	if fields, err := parse(string(golden)); err != nil || len(fields) < 1000 {
		t.Errorf("it has %d fields, %v", len(fields), err)
	}
}

const earlier = `K.v1 . kind plural="ks" scope="Namespaced" served shortNames=["k"] subresources=["status"]
K.v1 spec object required
K.v1 spec rule="has(self.a)"
K.v1 spec.a string enum=["A","B"] maxLength=5 pattern="^a b=c$"
K.v1 spec.b integer default=3 format="int32" max=9 min=1
K.v1 spec.c array list="map" keys=["name"] maxItems=3
K.v1 spec.c[] object
K.v1 spec.c[].name string required
K.v1 spec.d object nullable
K.v1 spec.d{} string
K.v1 spec.e boolean default
`

// edit returns the earlier lines with a text in place of another, which may have more than one line.
func edit(t *testing.T, from, to string) string {
	t.Helper()
	if !strings.Contains(earlier, from) {
		t.Fatalf("the lines have no %q", from)
	}
	return strings.Replace(earlier, from, to, 1)
}

func breaks(t *testing.T, present string) []string {
	t.Helper()
	before, err := parse(earlier)
	if err != nil {
		t.Fatal(err)
	}
	after, err := parse(present)
	if err != nil {
		t.Fatal(err)
	}
	return Breaks(before, after)
}

func TestBreaks_LetsPassWhatIsAdded(t *testing.T) {
	for name, c := range map[string][2]string{
		"nothing":           {"", ""},
		"an optional field": {"K.v1 spec.e", "K.v1 spec.aa string default=\"x\" maxLength=3\nK.v1 spec.e"},
		"an object with a required field": {"K.v1 spec.e", "K.v1 spec.aa object\nK.v1 spec.aa rule=\"self.x\"\n" +
			"K.v1 spec.aa.x string required\nK.v1 spec.e"},
		"a value":                    {`["A","B"]`, `["A","B","C"]`},
		"any value":                  {` enum=["A","B"]`, ""},
		"a wider bound":              {"max=9 min=1", "max=10 min=0"},
		"no bound":                   {" max=9 min=1", ""},
		"no pattern":                 {` pattern="^a b=c$"`, ""},
		"a field that may be absent": {"object required", "object"},
		"a rule less":                {"K.v1 spec rule=\"has(self.a)\"\n", ""},
		"a rule about a new field": {
			"K.v1 spec.a ", "K.v1 spec rule=\"!has(self.aa) || has(self.a) && self.?b[?0].orValue(1) == 1\"\n" +
				"K.v1 spec.aa string\nK.v1 spec.a ",
		},
		"a short name": {`["k"]`, `["k","kk"]`},
		"a version":    {"K.v1 . ", "K.v2 . kind served\nK.v2 spec object required\nK.v1 . "},
	} {
		t.Run(name, func(t *testing.T) {
			if found := breaks(t, edit(t, c[0], c[1])); len(found) > 0 {
				t.Errorf("%q are found", found)
			}
		})
	}
}

// breaking are changes of the earlier lines, and what is said of each.
var breaking = map[string]struct{ from, to, want string }{
	"a field":              {"K.v1 spec.e boolean default\n", "", "K.v1 spec.e: removed"},
	"a field with more":    {"K.v1 spec.d object nullable\nK.v1 spec.d{} string\n", "", "K.v1 spec.d: removed"},
	"another name":         {"spec.e ", "spec.f ", "K.v1 spec.e: removed"},
	"another type":         {"spec.d{} string", "spec.d{} integer", "K.v1 spec.d{}: type was string and is integer"},
	"a required field":     {"K.v1 spec.e", "K.v1 spec.aa string required\nK.v1 spec.e", "K.v1 spec.aa: new and required"},
	"it becomes required":  {"spec.a string ", "spec.a string required ", "K.v1 spec.a: required was not so before"},
	"a value":              {`["A","B"]`, `["A"]`, `K.v1 spec.a: enum lost "B"`},
	"values":               {"spec.d{} string", `spec.d{} string enum=["A"]`, `K.v1 spec.d{}: enum was nothing and is ["A"]`},
	"a lower maximum":      {"max=9", "max=8", "K.v1 spec.b: max was 9 and is 8"},
	"a higher minimum":     {"min=1", "min=2", "K.v1 spec.b: min was 1 and is 2"},
	"a bound":              {"spec.d{} string", "spec.d{} string maxLength=9", "K.v1 spec.d{}: maxLength was nothing and is 9"},
	"another pattern":      {"^a b=c$", "^a$", `K.v1 spec.a: pattern was "^a b=c$" and is "^a$"`},
	"another default":      {"default=3", "default=4", "K.v1 spec.b: default was 3 and is 4"},
	"no default":           {" default=3", "", "K.v1 spec.b: default was 3 and is nothing"},
	"a default":            {"spec.d{} string", "spec.d{} string default=\"\"", `K.v1 spec.d{}: default was nothing and is ""`},
	"another merge":        {`list="map"`, `list="atomic"`, `K.v1 spec.c: list was "map" and is "atomic"`},
	"no null":              {" nullable", "", "K.v1 spec.d: nullable is so no more"},
	"a rule":               {"K.v1 spec.a ", "K.v1 spec rule=\"self.b > 2\"\nK.v1 spec.a ", `K.v1 spec: new rule "self.b > 2"`},
	"another rule":         {"has(self.a)", "has(self.b)", `K.v1 spec: new rule "has(self.b)"`},
	"a rule about one":     {"has(self.a)", "!has(self.b) || self.b > 2", `K.v1 spec: new rule "!has(self.b) || self.b > 2"`},
	"a short name":         {`["k"]`, "[]", `K.v1 .: shortNames lost "k"`},
	"a subresource":        {` subresources=["status"]`, "", `K.v1 .: subresources lost "status"`},
	"another scope":        {`"Namespaced"`, `"Cluster"`, `K.v1 .: scope was "Namespaced" and is "Cluster"`},
	"it is served no more": {" served", "", "K.v1 .: served is so no more"},
	"a rule about new and old": {
		"K.v1 spec.a ", "K.v1 spec rule=\"!has(self.aa) || self.aa ? true : self.b > 2\"\nK.v1 spec.aa boolean\nK.v1 spec.a ",
		`K.v1 spec: new rule "!has(self.aa) || self.aa ? true : self.b > 2"`,
	},
	"a rule about a new field that is filled in": {
		"K.v1 spec.a ", "K.v1 spec rule=\"!has(self.aa) || self.b > 2\"\nK.v1 spec.aa boolean default=false\nK.v1 spec.a ",
		`K.v1 spec: new rule "!has(self.aa) || self.b > 2"`,
	},
}

func TestBreaks_FindsWhatUsersRelyOn(t *testing.T) {
	for name, c := range breaking {
		t.Run(name, func(t *testing.T) {
			if found := breaks(t, edit(t, c.from, c.to)); len(found) != 1 || found[0] != c.want {
				t.Errorf("%q are found, and not %q", found, c.want)
			}
		})
	}
	if found := breaks(t, ""); len(found) != 1 || found[0] != "K.v1 .: removed" {
		t.Errorf("without the kind, %q are found", found)
	}
}

func TestCheck_AcceptsRowsUntilTheRelease(t *testing.T) {
	const row = "K.v1 spec.e: removed\n"
	present := edit(t, "K.v1 spec.e boolean default\n", "")
	for name, c := range map[string]struct {
		present, accepted string
		released          bool
		want              string
	}{
		"nothing changed":         {earlier, "# nothing\n\n", true, ""},
		"a change without a row":  {present, "", false, "K.v1 spec.e: removed"},
		"a change with its row":   {present, "# nobody used it\n" + row, false, ""},
		"a row without a change":  {earlier, row, false, "is accepted in"},
		"a row after the release": {present, row, true, "nothing is accepted any more"},
		"no row after it":         {present, "", true, "K.v1 spec.e: removed"},
		"no lines":                {"K.v1\n", "", false, "no line of"},
		"a rule of another field": {"K.v1 a string\nK.v1 b rule=\"x\"\n", "", false, "does not follow its field"},
		"no JSON":                 {"K.v1 a string max=x\n", "", false, "read max"},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"check", write(t, earlier), write(t, c.present), write(t, c.accepted)}
			if c.released {
				args = append(args, "released")
			}
			err := run(args, nil)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("it is %v, and not %q", err, c.want)
			}
		})
	}
	if err := run([]string{"check"}, nil); err == nil {
		t.Error("it takes no arguments")
	}
}

// TestRead_PassesOverNothing: of a schema with a part that nothing compares, a change would go unseen.
func TestRead_PassesOverNothing(t *testing.T) {
	const head = "spec: {names: {kind: K}, versions: [{name: v1, schema: {openAPIV3Schema: {properties: {spec: "
	for text, want := range map[string]string{
		"{type: object, oneOf: [{required: [a]}]}": "oneOf, which nothing compares",
		"{type: string, anyOf: [{type: string}]}":  "anyOf, which nothing compares",
		"true": "not what controller-gen writes",
	} {
		if _, err := Read([]byte(head + text + "}}}}]}")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is %v", text, err)
		}
	}
}

// write writes a file.
func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
