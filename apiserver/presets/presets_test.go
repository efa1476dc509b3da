package presets_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/apiserver/presets"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

const (
	schema = `{
  "type": "object",
  "required": ["name"],
  "properties": {
    "name": {"type": "string", "minLength": 2, "maxLength": 20, "pattern": "^[a-z]"},
    "workers": {"type": "integer", "minimum": 1, "maximum": 8, "default": 2},
    "gpu": {"type": "string", "enum": ["a100", "h100"], "default": "a100"},
    "spot": {"type": "boolean", "default": false},
    "share": {"type": "number", "exclusiveMinimum": 0, "default": 0.5},
    "args": {"type": "array", "items": {"type": "string"}, "maxItems": 2, "uniqueItems": true, "default": []}
  }
}`
	manifest = `# a job
apiVersion: heliostat.dev/v1beta1
kind: ClusterJob
metadata:
  name: ${name}
  labels: {gpu: "${gpu}"}
  annotations:
    example.com/spot: is-${spot}-${share}
spec:
  entrypoint: python train.py --home $${HOME} --gpu ${gpu} --workers ${workers}
  command: ${args}
  clusterTemplate:
    spec:
      rayVersion: 2.60.0
      suspend: ${spot}
      workerGroups:
      - {name: cpu, replicas: "${workers}", priority: 3}
`
)

// sourceOf is a ConfigMap with the label, of these data and others' that are good.
func sourceOf(namespace, name string, data map[string]string) *corev1.ConfigMap {
	source := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{v1beta1.LabelPreset: ""},
	}}
	source.Data = map[string]string{presets.KeyTitle: "Training", presets.KeySchema: schema, presets.KeyManifest: manifest}
	maps.Copy(source.Data, data)
	return source
}

func parse(t *testing.T, source *corev1.ConfigMap) *presets.Preset {
	t.Helper()
	preset, err := presets.Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	return preset
}

// object is what the manifest makes with name demo and defaults, but for some changes.
func object(change func(all, spec map[string]any)) map[string]any {
	group := map[string]any{"name": "cpu", "replicas": int64(2), "priority": int64(3)}
	cluster := map[string]any{"rayVersion": "2.60.0", "suspend": false, "workerGroups": []any{group}}
	spec := map[string]any{
		"entrypoint": "python train.py --home ${HOME} --gpu a100 --workers 2", "command": []any{},
		"clusterTemplate": map[string]any{"spec": cluster},
	}
	all := map[string]any{
		"apiVersion": "heliostat.dev/v1beta1", "kind": "ClusterJob", "spec": spec,
		"metadata": map[string]any{
			"name": "demo", "labels": map[string]any{"gpu": "a100"}, "annotations": map[string]any{"example.com/spot": "is-false-0.5"},
		},
	}
	change(all, spec)
	return all
}

// TestApply: values get into the manifest with their types, and never change its structure.
func TestApply(t *testing.T) {
	preset := parse(t, sourceOf("team", "train", nil))
	evil := "a: b\n- c\n\"'}${gpu}"
	for name, test := range map[string]struct {
		options map[string]any
		change  func(all, spec map[string]any)
	}{
		"defaults": {map[string]any{"name": "demo"}, func(map[string]any, map[string]any) {}},
		"a whole number of a Struct": {
			map[string]any{"name": "demo", "workers": 3.0}, func(_, spec map[string]any) {
				spec["entrypoint"] = "python train.py --home ${HOME} --gpu a100 --workers 3"
				group := spec["clusterTemplate"].(map[string]any)["spec"].(map[string]any)["workerGroups"].([]any)[0]
				group.(map[string]any)["replicas"] = int64(3)
			},
		},
		"a list": {
			map[string]any{"name": "demo", "args": []any{"a", evil}}, func(_, spec map[string]any) { spec["command"] = []any{"a", evil} },
		},
		"a text that looks like YAML and like an option": {
			map[string]any{"name": evil}, func(all, _ map[string]any) { all["metadata"].(map[string]any)["name"] = evil },
		},
		"true in a text and alone": {
			map[string]any{"name": "demo", "spot": true, "share": 1.0}, func(all, spec map[string]any) {
				all["metadata"].(map[string]any)["annotations"] = map[string]any{"example.com/spot": "is-true-1"}
				spec["clusterTemplate"].(map[string]any)["spec"].(map[string]any)["suspend"] = true
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			have, findings, err := preset.Apply(test.options)
			if err != nil || len(findings) > 0 {
				t.Fatalf("%v, %v", findings, err)
			}
			if diff := cmp.Diff(object(test.change), have); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestApply_LeavesThePresetAlone: what is done to an object is not in the next one.
func TestApply_LeavesThePresetAlone(t *testing.T) {
	preset := parse(t, sourceOf("team", "train", map[string]string{
		presets.KeySchema: strings.Replace(schema, `"default": []`, `"default": ["x"]`, 1),
	}))
	options := map[string]any{"name": "demo"}
	want, _, _ := preset.Apply(options)
	have, _, _ := preset.Apply(options)
	spec := have["spec"].(map[string]any)
	spec["command"].([]any)[0] = "y"
	spec["clusterTemplate"].(map[string]any)["spec"] = nil
	if again, _, _ := preset.Apply(options); !cmp.Equal(want, again) || len(options) != 1 {
		t.Error(cmp.Diff(want, again))
	}
}

// secret is what no finding may hold, but the name of an option that somebody made up.
const secret = "s3cr3t"

// refused are options with what is wrong with them.
var refused = map[string]struct {
	options map[string]any
	want    []string
}{
	"a missing option": {nil, []string{"options.name option-required: name is required. Give it"}},
	"an unknown option with the nearest known name": {
		map[string]any{"name": "demo", "worker": 3},
		[]string{"options.worker option-unknown: worker is no option of preset train. Write \"workers\""},
	},
	"an unknown option like none": {
		map[string]any{"name": "demo", secret: secret},
		[]string{"options.s3cr3t option-unknown: s3cr3t is no option of preset train. Give one of args, gpu, name, share, spot, workers"},
	},
	"another type": {
		map[string]any{"name": 3, "workers": secret}, []string{
			"options.name option-type: name has the type number, and must have string. Give a value of type string",
			"options.workers option-type: workers has the type string, and must have integer. Give a value of type integer",
		},
	},
	"a part where a whole is asked for": {
		map[string]any{"name": "demo", "workers": 1.5},
		[]string{"options.workers option-type: workers has the type number, and must have integer. Give a value of type integer"},
	},
	"null": {
		map[string]any{"name": nil}, []string{"options.name option-type: name has the type null, and must have string. Give a value of type string"},
	},
	"too little": {map[string]any{"name": "demo", "workers": 0}, []string{"options.workers option-minimum: workers is below 1. Give 1 or more"}},
	"too much":   {map[string]any{"name": "demo", "workers": 9}, []string{"options.workers option-maximum: workers is above 8. Give 8 or less"}},
	"not above":  {map[string]any{"name": "demo", "share": 0}, []string{"options.share option-minimum: share is not above 0. Give more than 0"}},
	"none of its values": {
		map[string]any{"name": "demo", "gpu": secret}, []string{"options.gpu option-enum: gpu has none of its values. Give one of a100, h100"},
	},
	"too short and of another form": {
		map[string]any{"name": "X"}, []string{
			"options.name option-length: name has fewer than 2 characters. Give 2 or more",
			"options.name option-pattern: name does not match ^[a-z]. Give a text that matches it",
		},
	},
	"too long": {
		map[string]any{"name": strings.Repeat("s3cr3t", 9)}, []string{"options.name option-length: name has more than 20 characters. Give 20 or fewer"},
	},
	"too many entries": {
		map[string]any{"name": "demo", "args": []any{"a", "b", "c"}}, []string{"options.args option-items: args has more than 2 entries. Give 2 or fewer"},
	},
	"entries that are alike": {
		map[string]any{"name": "demo", "args": []any{secret, secret}}, []string{"options.args option-items: args has an entry twice. Give each entry once"},
	},
	"an entry of another type": {
		map[string]any{"name": "demo", "args": []any{"a", true}},
		[]string{"options.args[1] option-type: args[1] has the type boolean, and must have string. Give a value of type string"},
	},
	"an object": {
		map[string]any{"name": map[string]any{"a": secret}},
		[]string{"options.name option-type: name is no scalar and no list of scalars. Give a text, a number, true or false, or a list of those"},
	},
	"a list of lists": {
		map[string]any{"name": "demo", "args": []any{[]any{secret}}},
		[]string{"options.args option-type: args is no scalar and no list of scalars. Give a text, a number, true or false, or a list of those"},
	},
	"what is no number": {
		map[string]any{"name": "demo", "share": math.NaN(), "workers": math.Inf(1)}, []string{
			"options.share option-type: share is no scalar and no list of scalars. Give a text, a number, true or false, or a list of those",
			"options.workers option-type: workers is no scalar and no list of scalars. Give a text, a number, true or false, or a list of those",
		},
	},
	"a value without end": {
		map[string]any{"name": strings.Repeat("s3cr3t", 9000)},
		[]string{"options.name option-length: name has more than 16384 bytes. Shorten it"},
	},
}

// TestApply_Refuses: each option that is wrong, with what helps, and never with its value.
func TestApply_Refuses(t *testing.T) {
	preset := parse(t, sourceOf("team", "train", nil))
	for name, test := range refused {
		t.Run(name, func(t *testing.T) {
			have, findings, err := preset.Apply(test.options)
			if err != nil || have != nil {
				t.Fatalf("made %v, %v", have, err)
			}
			if diff := cmp.Diff(test.want, texts(findings)); diff != "" {
				t.Error(diff)
			}
			for _, finding := range findings {
				if strings.Contains(finding.Message+finding.Remedy, secret) && finding.Field != "options."+secret {
					t.Errorf("a value is told: %v", finding)
				}
			}
		})
	}
}

func texts(findings []presets.Finding) []string {
	var all []string
	for _, f := range findings {
		all = append(all, fmt.Sprintf("%s %s: %s. %s", f.Field, f.Rule, f.Message, f.Remedy))
	}
	return all
}

// simple is a schema with one option a, of this schema, and a manifest with it, in this place.
func simple(option, place string) map[string]string {
	return map[string]string{
		presets.KeySchema:   `{"type": "object", "properties": {"a": ` + option + `}}`,
		presets.KeyManifest: "apiVersion: heliostat.dev/v1beta1\nkind: ComputeCluster\nspec:\n  image: " + place + "\n",
	}
}

func TestApply_Places(t *testing.T) {
	for name, test := range map[string]struct {
		option, place string
		value         any
		want          any
	}{
		"a text that is a number stays one":  {`{"type": "string", "default": ""}`, "${a}", "3", "3"},
		"a number alone":                     {`{"type": "number", "default": 1}`, "${a}", 1.25, 1.25},
		"a number in quotes is typed":        {`{"type": "integer", "default": 1}`, `"${a}"`, 3.0, int64(3)},
		"a number in a text":                 {`{"type": "number", "default": 1}`, "v${a}", 1e21, "v1000000000000000000000"},
		"null alone":                         {`{"type": ["string", "null"], "default": null}`, "${a}", nil, nil},
		"null in a text":                     {`{"type": ["string", "null"], "default": null}`, "v${a}", nil, "v"},
		"twice":                              {`{"default": ""}`, "${a}/${a}", "x", "x/x"},
		"escaped":                            {`{"default": ""}`, "$${a}-${a}", "x", "${a}-x"},
		"escaped twice":                      {`{"default": ""}`, "$$${a}-${a}", "x", "$${a}-x"},
		"a dollar":                           {`{"default": ""}`, "$a$-${a}$", "x", "$a$-x$"},
		"a value that is an option":          {`{"default": ""}`, "-${a}", "${a}", "-${a}"},
		"what one of several schemas allows": {`{"anyOf": [{"type": "integer"}, {"enum": ["max"]}], "default": 1}`, "${a}", "max", "max"},
	} {
		t.Run(name, func(t *testing.T) {
			have, findings, err := parse(t, sourceOf("team", "p", simple(test.option, test.place))).Apply(map[string]any{"a": test.value})
			if err != nil || len(findings) > 0 {
				t.Fatalf("%v, %v", findings, err)
			}
			if diff := cmp.Diff(test.want, have["spec"].(map[string]any)["image"]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestApply_WhatOnlyShowsWithValues: a schema may leave open what a manifest does not.
func TestApply_WhatOnlyShowsWithValues(t *testing.T) {
	for name, test := range map[string]struct {
		option, place string
		value         any
		want          string
	}{
		"a list in a text": {
			`{"default": ""}`, "-${a}", []any{"x"},
			"options.a option-type: a is a list, and the preset has it inside a text. Give a text, a number, true or false",
		},
		"none of several schemas": {
			`{"anyOf": [{"type": "integer"}, {"enum": ["max"]}], "default": 1}`, "${a}", "s3cr3t",
			"options.a option-schema: a breaks a rule of the preset: anyOf. See the schema of the preset",
		},
		"an object without end": {
			`{"default": ""}`, strings.Repeat("${a}", 1000), strings.Repeat("x", 10000),
			"options option-length: the object would have more than 1048576 bytes with these options. Shorten them",
		},
	} {
		t.Run(name, func(t *testing.T) {
			have, findings, err := parse(t, sourceOf("team", "p", simple(test.option, test.place))).Apply(map[string]any{"a": test.value})
			if diff := cmp.Diff([]string{test.want}, texts(findings)); have != nil || err != nil || diff != "" {
				t.Errorf("%v, %v, %s", have, err, diff)
			}
		})
	}
}

// head begins a manifest.
const head = "apiVersion: heliostat.dev/v1beta1\nkind: ComputeCluster\n"

// withSchema is a good preset with another schema, withManifest one with another manifest.
func withSchema(text string) map[string]string {
	data := simple(`{"default": ""}`, "${a}")
	data[presets.KeySchema] = text
	return data
}

func withManifest(text string) map[string]string {
	data := simple(`{"default": ""}`, "${a}")
	data[presets.KeyManifest] = text
	return data
}

// broken are presets that cannot be used, with the beginning of why.
var broken = map[string]struct {
	data map[string]string
	want string
}{
	"another key": {
		map[string]string{"manifest.yml": ""}, `key "manifest.yml" is unknown; write "manifest.yaml"`,
	},
	"no schema":         {map[string]string{presets.KeySchema: " "}, "schema.json is missing; add the key"},
	"no manifest":       {map[string]string{presets.KeyManifest: ""}, "manifest.yaml is missing; add the key"},
	"a title too long":  {map[string]string{presets.KeyTitle: strings.Repeat("x", 257)}, "title has more than 256 bytes; shorten it"},
	"no JSON":           {withSchema("{"), "schema.json: it is no JSON object: "},
	"a list":            {withSchema("[]"), "schema.json: it is no JSON object: "},
	"null":              {withSchema("null"), `schema.json: its type is not "object"; options are the properties of an object`},
	"no object":         {withSchema(`{"type": "string"}`), `schema.json: its type is not "object"`},
	"no JSON Schema":    {withSchema(`{"type": "object", "properties": {"a": {"type": "text", "default": ""}}}`), "schema.json: it is no JSON Schema: at '/properties/a/type'"},
	"another version":   {withSchema(`{"$schema": "https://example.com/mine", "type": "object"}`), "schema.json: $schema is of another version; leave it out"},
	"an anchor":         {withSchema(`{"type": "object", "not": {"not": [{"$anchor": "x"}]}}`), "schema.json: it has the keyword $anchor; write out"},
	"another reference": {withSchema(`{"type": "object", "$dynamicRef": "#x"}`), "schema.json: it has the keyword $dynamicRef; write out"},
	"a former reference": {
		withSchema(`{"type": "object", "$recursiveRef": "#"}`), "schema.json: it has the keyword $recursiveRef; write out",
	},
	"another anchor":         {withSchema(`{"type": "object", "$dynamicAnchor": "x"}`), "schema.json: it has the keyword $dynamicAnchor; write out"},
	"a former anchor":        {withSchema(`{"type": "object", "$recursiveAnchor": true}`), "schema.json: it has the keyword $recursiveAnchor; write out"},
	"a vocabulary":           {withSchema(`{"type": "object", "$vocabulary": {}}`), "schema.json: it has the keyword $vocabulary; write out"},
	"a version that is none": {withSchema(`{"$schema": 7, "type": "object"}`), "schema.json: $schema is of another version"},
	"a reference":            {withSchema(`{"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}`), "schema.json: it has the keyword $ref; write out"},
	"an identity":            {withSchema(`{"$id": "https://example.com/", "type": "object"}`), "schema.json: it has the keyword $id; write out"},
	"no properties":          {withSchema(`{"type": "object", "properties": []}`), "schema.json: properties is no object"},
	"no schema of one":       {withSchema(`{"type": "object", "properties": {"a": true}}`), "schema.json: the schema of option a is no object; give it a type"},
	"a name for no ${}":      {withSchema(`{"type": "object", "properties": {"a b": {}}}`), `schema.json: option "a b" has a name that ${} does not take`},
	"neither default nor required": {
		withSchema(`{"type": "object", "properties": {"a": {}}}`),
		"schema.json: option a has no default and is not required; give it a default, or list it in required",
	},
	"required and unknown": {
		withSchema(`{"type": "object", "required": ["aa"], "properties": {"a": {}}}`),
		`schema.json: required names the option "aa", which is not in properties; write "a"`,
	},
	"a default that breaks its schema": {
		withSchema(`{"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}}`),
		"schema.json: the default of option a breaks its own schema; correct one of the two",
	},
	"a default that is an object": {
		withSchema(`{"type": "object", "properties": {"a": {"default": {}}}}`), "schema.json: the default of option a is no scalar",
	},
	"a schema that is deep":  {withSchema(`{"type": "object", "not": ` + strings.Repeat(`{"not":`, 30) + "{}" + strings.Repeat("}", 31)), "schema.json: it is too large or too deep"},
	"a pattern that is none": {withSchema(`{"type": "object", "properties": {"a": {"pattern": "(", "default": ""}}}`), "schema.json: it is no JSON Schema: "},
	"an option that is no one's": {
		withSchema(`{"type": "object", "properties": {"a": {"default": ""}, "b": {"default": ""}}}`),
		"manifest.yaml: option b of schema.json is nowhere in it; write ${b} where it belongs, or leave the option out",
	},
	"no YAML":           {withManifest("a: ["), "manifest.yaml: it is no YAML: "},
	"a key twice":       {withManifest(head + "kind: ClusterJob\n"), "manifest.yaml: it is no YAML: "},
	"a text":            {withManifest("a"), "manifest.yaml: it is no object: "},
	"nothing but null":  {withManifest("null"), "manifest.yaml: its apiVersion is not heliostat.dev/v1beta1; presets make objects of no other"},
	"two documents":     {withManifest(head + "---\n" + head), "manifest.yaml: it has several documents; a preset makes one object"},
	"a third document":  {withManifest("---\n" + head + "---\n# none\n---\n" + head), "manifest.yaml: it has several documents"},
	"an ended document": {withManifest(head + "...\n" + head), "manifest.yaml: it has several documents"},
	"a pod":             {withManifest("apiVersion: v1\nkind: Pod\n"), "manifest.yaml: its apiVersion is not heliostat.dev/v1beta1"},
	"another kind": {
		withManifest("apiVersion: heliostat.dev/v1beta1\nkind: RayCluster\n"),
		"manifest.yaml: kind must be one of ComputeCluster, ClusterJob, ClusterJobSchedule, ClusterService",
	},
	"a kind that is an option": {withManifest("apiVersion: heliostat.dev/v1beta1\nkind: ${a}\n"), "manifest.yaml: kind must be one of"},
	"a namespace":              {withManifest(head + "metadata: {namespace: x}\n"), "manifest.yaml: it has metadata.namespace; leave it out"},
	"metadata of no object":    {withManifest(head + "metadata: x\n"), "manifest.yaml: its metadata is no object"},
	"a finalizer":              {withManifest(head + "metadata: {finalizers: [x]}\n"), "manifest.yaml: it has metadata.finalizers, which no preset sets; "},
	"a status":                 {withManifest(head + "status: {}\n"), "manifest.yaml: it has status, which no preset sets; "},
	"an unknown option": {
		withManifest(head + "spec: {x: {z: [\"${aa}\"]}}\n"),
		`manifest.yaml: spec.x.z[0] has ${aa}, and schema.json has no such option; write "a"`,
	},
	"a variable of a shell": {
		withManifest(head + "spec: {x: \"${a} ${HOME:-x}\"}\n"),
		`manifest.yaml: spec.x has "${" without the name of an option; write "$${" for "${"`,
	},
	"an option that is not closed": {withManifest(head + "spec: {x: \"${a\"}\n"), `manifest.yaml: spec.x has "${" without the name of an option`},
	"an option in a key":           {withManifest(head + "spec: {\"${a}\": x}\n"), `manifest.yaml: spec"${a}" has an option in a key; options are values`},
	"a list in a text": {
		simple(`{"type": "array", "default": []}`, "x${a}"), "manifest.yaml: spec.image has the list ${a} inside a text; a list stands alone",
	},
}

// TestParse_Broken: a preset that cannot be used says to its administrator where and why.
func TestParse_Broken(t *testing.T) {
	for name, test := range broken {
		t.Run(name, func(t *testing.T) {
			preset, err := presets.Parse(sourceOf("team", "p", test.data))
			if err == nil || !strings.HasPrefix(err.Error(), test.want) || preset.Error != err.Error() {
				t.Fatalf("%v, want %s", err, test.want)
			}
			if preset.Name != "p" || preset.Title == "" {
				t.Errorf("its name and title are gone: %+v", preset)
			}
			if object, findings, err := preset.Apply(nil); object != nil || findings != nil || !errors.Is(err, presets.ErrBroken) {
				t.Errorf("it was applied: %v, %v, %v", object, findings, err)
			}
		})
	}
}

func TestParse_Takes(t *testing.T) {
	none := `{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}`
	for name, data := range map[string]map[string]string{
		"the latest draft":           {presets.KeySchema: `{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}`, presets.KeyManifest: head},
		"a former draft":             {presets.KeySchema: `{"$schema": "http://json-schema.org/draft-07/schema", "type": "object"}`, presets.KeyManifest: head},
		"a name to be made":          {presets.KeySchema: bare, presets.KeyManifest: head + "metadata: {generateName: x-}"},
		"a document with a border":   {presets.KeySchema: none, presets.KeyManifest: "%YAML 1.1\n# x\n---\n" + head + "...\n# y\n"},
		"a preset without options":   {presets.KeySchema: none, presets.KeyManifest: head},
		"an option that is named id": {presets.KeySchema: `{"type": "object", "required": ["id"], "properties": {"id": {}}}`, presets.KeyManifest: head + "metadata: {name: \"${id}\"}"},
		"a border inside a text":     {presets.KeySchema: none, presets.KeyManifest: head + "spec:\n  image: |\n    a\n    ---\n    b\n"},
		"no title":                   {presets.KeyTitle: "", presets.KeySchema: none, presets.KeyManifest: head},
	} {
		if preset, err := presets.Parse(sourceOf("team", "p", data)); err != nil || preset.Error != "" || preset.Title == "" || preset.Schema == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if preset, err := presets.Parse(nil); !errors.Is(err, presets.ErrBroken) || preset.Error != err.Error() || preset.Error == "" {
		t.Errorf("nothing was taken: %v", err)
	}
	binary := sourceOf("team", "p", nil)
	binary.BinaryData = map[string][]byte{presets.KeyTitle: {0}}
	if _, err := presets.Parse(binary); err == nil || err.Error() != "title is in binaryData; put it into data" {
		t.Errorf("binary data: %v", err)
	}
	told := sourceOf("team", "p", map[string]string{presets.KeyDescription: " words\n"})
	if preset := parse(t, told); preset.Description != "words" || preset.Title != "Training" {
		t.Errorf("its words are gone: %+v", preset)
	}
}
