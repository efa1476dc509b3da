package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const cluster = "dev.heliostat.v1beta1.ComputeCluster"

type node = map[string]any

// at returns what is at a path of a document.
func at(t *testing.T, of node, path ...string) node {
	t.Helper()
	for _, name := range path {
		inner, is := of[name].(node)
		if !is {
			t.Fatalf("the document has no %s", strings.Join(path, "."))
		}
		of = inner
	}
	return of
}

// small returns the server's document with one kind alone, of which it has two fields: to compare all of them takes long.
func small(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../apiserver/rest/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	of := node{}
	if err := json.Unmarshal(text, &of); err != nil {
		t.Fatal(err)
	}
	schemas := at(t, of, "components", "schemas")
	for name := range schemas {
		if strings.HasPrefix(name, "dev.heliostat.") && name != cluster {
			delete(schemas, name)
		}
	}
	schemas["KubernetesObject"] = node{"anyOf": []any{node{"$ref": "#/components/schemas/" + cluster}}}
	spec := properties(t, of, cluster, "spec")
	spec["properties"] = node{"suspend": node{"type": "boolean"}, "rayVersion": node{"type": "string"}}
	delete(properties(t, of, cluster), "status")
	changed, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	return string(changed)
}

// properties returns those of a schema.
func properties(t *testing.T, of node, schema string, more ...string) node {
	t.Helper()
	return at(t, of, append([]string{"components", "schemas", schema, "properties"}, more...)...)
}

// changed returns files with the server's document and with a changed one.
func changed(t *testing.T, change func(of node)) (earlier, present string) {
	t.Helper()
	text := small(t)
	of := node{}
	if err := json.Unmarshal([]byte(text), &of); err != nil {
		t.Fatal(err)
	}
	change(of)
	other, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, text), write(t, string(other))
}

func TestCheck_PassesWhatIsAdded(t *testing.T) {
	text := node{"type": "string"}
	for name, change := range map[string]func(of node){
		"nothing":              func(node) {},
		"a field of an answer": func(of node) { properties(t, of, "heliostat.v1.Line")["more"] = text },
		"a field of a kind":    func(of node) { properties(t, of, cluster, "spec", "properties")["more"] = text },
		"a field of an error":  func(of node) { properties(t, of, "Problem")["more"] = text },
		"another description":  func(of node) { at(t, of, "info")["description"] = "another one" },
		"a route with its method": func(of node) {
			route := maps.Clone(at(t, of, "paths", "/v1/me", "get"))
			route["operationId"] = "Portal_More"
			at(t, of, "paths")["/v1/more"] = node{"get": route}
		},
	} {
		earlier, present := changed(t, change)
		if err := check(earlier, present, write(t, "# nothing\n\n")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCheck_FailsWhereClientsBreak unless the very line is accepted.
func TestCheck_FailsWhereClientsBreak(t *testing.T) {
	const objects = "/v1/namespaces/{namespace}/objects"
	for want, change := range map[string]func(of node){
		"GET /v1/objects: removed the optional property `lines/items/phase`": func(of node) { delete(properties(t, of, "heliostat.v1.Line"), "phase") },
		"GET /v1/objects: the `lines/items/gpus` response's property":        func(of node) { properties(t, of, "heliostat.v1.Line")["gpus"] = node{"type": "string"} },
		"POST " + objects + ": removed the request property `dryRun`": func(of node) {
			delete(at(t, of, "paths", objects, "post", "requestBody", "content", "application/json", "schema", "properties"), "dryRun")
		},
		"/spec/suspend`": func(of node) { delete(properties(t, of, cluster, "spec", "properties"), "suspend") },
		"GET /v1/objects: deleted the `query` request parameter": func(of node) {
			get := at(t, of, "paths", "/v1/objects", "get")
			get["parameters"] = get["parameters"].([]any)[1:]
		},
		"GET /v1/me: API path removed": func(of node) { delete(at(t, of, "paths"), "/v1/me") },
		"GET /v1/me: API operation id": func(of node) { at(t, of, "paths", "/v1/me", "get")["operationId"] = "Me" },
		"GET /v1/objects/watch: removed the media type": func(of node) {
			delete(at(t, of, "paths", "/v1/objects/watch", "get", "responses", "200", "content"), "text/event-stream")
		},
	} {
		earlier, present := changed(t, change)
		err := check(earlier, present, write(t, ""))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it is %v, want %q", err, want)
		} else if accepted := check(earlier, present, write(t, err.Error())); accepted != nil {
			t.Errorf("accepted, %q is %v", want, accepted)
		}
	}
}

func TestCheck_RefusesWhatIsAcceptedInVain(t *testing.T) {
	earlier := write(t, small(t))
	const line = "GET /v1/me: API path removed without deprecation [api-path-removed-without-deprecation]"
	if err := check(earlier, earlier, write(t, line)); err == nil || !strings.Contains(err.Error(), "remove the line") {
		t.Errorf("it is %v", err)
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
