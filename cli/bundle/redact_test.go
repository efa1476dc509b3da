package bundle

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestRedactor_LeavesNoCanary has canaries wherever an object holds values of variables.
func TestRedactor_LeavesNoCanary(t *testing.T) {
	const text = `{"kind": "ClusterJob",
		"metadata": {"name": "train", "managedFields": [{"manager": "x"}], "annotations": {"note": "stays",
			"kubectl.kubernetes.io/last-applied-configuration": "canary-0"}},
		"spec": {"env": [{"name": "A", "value": "canary-1"}, {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
			"runtimeEnv": {"env_vars": {"C": "canary-2", "D": "canary-2-longer"}, "pip": ["x"]},
			"clusterTemplate": {"spec": {"head": {"template": {"spec": {"containers": [{"name": "ray", "env": [{"name": "E", "value": "canary-3"}]}]}}},
				"workerGroups": [{"template": {"spec": {"initContainers": [{"env": [{"name": "F", "value": "short"}]}]}}}]}}},
		"status": {"attempts": [{"lastLines": ["it says canary-1 and canary-2-longer and short"]}]}}`
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	r := &redactor{}
	r.learn(object)
	r.add(" canary-4\n")
	written, err := json.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	clean := r.clean(string(written) + " a log with canary-4 and canary-3")
	for number := range 5 {
		if canary := fmt.Sprintf("canary-%d", number); strings.Contains(clean, canary) {
			t.Errorf("%s is in the bundle: %s", canary, clean)
		}
	}
	for _, stays := range []string{`"note":"stays"`, `"key":"k"`, `"pip":["x"]`, `"C":"(left out)"`} {
		if !strings.Contains(clean, stays) {
			t.Errorf("%s is not in the bundle: %s", stays, clean)
		}
	}
	if strings.Contains(clean, "-longer") || strings.Contains(clean, "managedFields") {
		t.Errorf("a part of a value stays: %s", clean)
	}
}

// TestRedactor_FindsValuesAsProgramsWriteThem looks for values in objects, which become YAML, and in logs.
func TestRedactor_FindsValuesAsProgramsWriteThem(t *testing.T) {
	const pem = "-----BEGIN KEY-----\ncanary1+aaaaaaaaaaaaaaaa/=\ncanary2+bbbbbbbbbbbbbbbb/=\n-----END KEY-----\n"
	values := map[string]string{
		"quotes": `canary "one" and 'two'`, "backslash": `canary\of\a\path`, "lines": pem, "spaces": "  canary with an end \n",
		"signs": "canary&of<an>address?#/%", "umlaut": "canary-für-alle", "ends in a quote": `canary and "`, "tab": "canary\tand\ta tab",
		"yaml": "canary: {of: yaml} # " + strings.Repeat("and a long line that YAML folds ", 8),
	}
	written := map[string]func(string) string{
		"as it is": func(text string) string { return text },
		"trimmed":  strings.TrimSpace,
		"JSON":     func(text string) string { return encode(t, text) },
		"JSON for no page": func(text string) string {
			return strings.NewReplacer(`\u0026`, "&", `\u003c`, "<", `\u003e`, ">").Replace(encode(t, text))
		},
		"ASCII": strconv.QuoteToASCII,
		"Python": func(text string) string {
			return "'" + strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\t", `\t`, `'`, `\'`).Replace(text) + "'"
		},
		"shell":      func(text string) string { return "'" + strings.ReplaceAll(text, `'`, `'\''`) + "'" },
		"base64":     func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) },
		"base64 URL": func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) },
		"query":      url.QueryEscape,
		"path":       url.PathEscape,
		"lines":      func(text string) string { return "12:00 " + strings.ReplaceAll(text, "\n", "\n12:00 ") },
		"cut":        func(text string) string { return text[strings.Index(text, "\n")+1:] }, // a log that begins within a value
	}
	for what, value := range values {
		for how, write := range written {
			r := &redactor{}
			r.add(value)
			text := "before " + write(value) + " after"
			if how == "cut" && what != "lines" {
				continue
			}
			inYAML, err := yaml.Marshal(r.cleanAll(map[string]any{"message": text, "list": []any{text, 1.0, nil}}))
			if err != nil {
				t.Fatal(err)
			}
			for where, clean := range map[string]string{"a log": r.clean(text), "YAML": string(inYAML)} {
				if strings.Contains(clean, "canary") || !strings.Contains(clean, leftOut) || !strings.Contains(clean, "before ") {
					t.Errorf("%s as %s in %s: %s", what, how, where, clean)
				}
				if strings.HasPrefix(how, "base64") && strings.Contains(clean, write(value)[:12]) {
					t.Errorf("%s as %s in %s: %s", what, how, where, clean)
				}
			}
		}
	}
}

func encode(t *testing.T, text string) string {
	t.Helper()
	written, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(written)
}

func TestSecretsOf_FindsThoseThatObjectsName(t *testing.T) {
	const text = `[{"kind": "ComputeCluster", "metadata": {"name": "demo"}, "spec": {"imagePullSecrets": [{"name": "pull"}],
			"authentication": {"secretName": "given"}, "controlStore": {"redis": {"passwordSecret": {"name": "redis", "key": "p"}}},
			"head": {"template": {"spec": {"volumes": [{"secret": {"secretName": "mounted"}}, {"projected": {"sources": [{"secret": {"name": "part"}}]}}],
				"containers": [{"envFrom": [{"secretRef": {"name": "all"}}]}]}}}}},
		{"kind": "ClusterJob", "metadata": {"name": "train"}, "spec": {"clusterRef": {"name": "shared"}, "secret": "no name",
			"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "one", "key": "k"}}}]},
			"status": {"attempts": [{"clusterName": "train-1"}, {"clusterName": "named", "tokenSecretName": "named-token"}]}}, "you may not list events"]`
	var objects []any
	if err := json.Unmarshal([]byte(text), &objects); err != nil {
		t.Fatal(err)
	}
	want := []reference{{"all", ""}, {"demo-token", "demo"}, {"given", ""}, {"mounted", ""}, {"named-token", ""}, {"one", ""}, {"part", ""},
		{"pull", ""}, {"redis", ""}, {"shared-token", "shared"}, {"train-1-token", "train-1"}}
	if found := secretsOf(objects); !slices.Equal(found, want) {
		t.Errorf("they name %q, not %q", found, want)
	}
}
