package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/heliostat-dev/heliostat/apiserver/rest"
	"github.com/heliostat-dev/heliostat/portal/problem"
	"github.com/heliostat-dev/heliostat/ray-operator/yaml"
)

// node is a part of an OpenAPI document.
type node = map[string]any

const (
	schemas     = "#/components/schemas/"
	problemName = "Problem"
	objectName  = "KubernetesObject"
)

// openAPI returns the document of the API: what a plugin of protoc makes of the protocol, with what that cannot know:
// errors, routes whose answers go on, and the schemas of the kinds, from the CRDs of a directory.
func openAPI(made, crds string) (string, error) {
	document := node{}
	plain, err := os.ReadFile(made)
	if err != nil {
		return "", fmt.Errorf("read what protoc made: %w", err)
	}
	if err := json.Unmarshal(plain, &document); err != nil {
		return "", fmt.Errorf("read what protoc made: %w", err)
	}
	document["info"] = node{
		"title": "Heliostat's server for portals", "version": "v1",
		"description": "Verbs, lines and streams for ComputeClusters, ClusterJobs, ClusterJobSchedules and ClusterServices. docs/portals.md says how to use it.",
	}
	document["security"] = []any{node{"bearer": []any{}}}
	components := child(document, "components")
	components["securitySchemes"] = node{"bearer": node{"type": "http", "scheme": "bearer"}}
	all := child(components, "schemas")
	delete(all, "google.rpc.Status")
	all[problemName] = problemSchema()
	kinds, err := addKinds(all, crds)
	if err != nil {
		return "", err
	}
	all[objectName] = node{"description": "An object of Kubernetes, as JSON.", "anyOf": kinds}
	paths := child(document, "paths")
	for _, route := range rest.Routes() {
		operation := child(child(paths, route.Path), strings.ToLower(route.Method))
		if route.IsStream {
			maps.Copy(operation, streamOperation(route))
		}
		finish(operation, route)
	}
	named(document)
	text, err := json.MarshalIndent(document, "", " ")
	if err != nil {
		return "", fmt.Errorf("write the document: %w", err)
	}
	return string(text) + "\n", nil
}

// child returns an object in another one, and makes it where it is not there.
func child(of node, name string) node {
	found, is := of[name].(node)
	if !is {
		found = node{}
		of[name] = found
	}
	return found
}

func problemSchema() node {
	text := node{"type": "string"}
	return node{
		"type": "object", "description": "Why a call failed, as RFC 9457 has it.", "required": []any{"type", "title", "status", "reason", "detail"},
		"properties": node{
			"type": text, "title": text, "status": node{"type": "integer"}, "detail": text, "requestId": text,
			"reason": node{"type": "string", "description": "A code of the catalogue, or Kubernetes' word for the sort of failure."},
			"remedy": node{"type": "string", "description": "What helps, in the imperative."},
			"errors": node{"type": "array", "items": node{
				"type": "object", "required": []any{"field", "message"}, "properties": node{"field": text, "rule": text, "message": text, "remedy": text},
			}},
		},
	}
}

// addKinds adds the schema of each version of the CRDs in a directory, and returns references to them.
func addKinds(all node, crds string) ([]any, error) {
	var kinds []any
	files, err := filepath.Glob(crds + "/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("find the CRDs: %w", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read a CRD: %w", err)
		}
		var crd struct {
			Spec struct {
				Group    string
				Names    struct{ Kind string }
				Versions []struct {
					Name   string
					Schema struct{ OpenAPIV3Schema node }
				}
			}
		}
		written, err := yaml.ToJSON(text, len(text))
		if err != nil {
			return nil, fmt.Errorf("read CRD %s: %w", file, err)
		}
		if err := json.Unmarshal(written, &crd); err != nil {
			return nil, fmt.Errorf("read CRD %s: %w", file, err)
		}
		for _, version := range crd.Spec.Versions {
			name := "dev.heliostat." + version.Name + "." + crd.Spec.Names.Kind
			all[name] = onlyOf(version.Schema.OpenAPIV3Schema, crd.Spec.Group+"/"+version.Name, crd.Spec.Names.Kind)
			kinds = append(kinds, node{"$ref": schemas + name})
		}
	}
	return kinds, nil
}

// onlyOf returns a CRD's schema as one that objects of other kinds do not match.
//
// A CRD takes any text as a kind and needs no field. A generated client takes the first schema that matches, so it would
// read each object as one of the first kind.
func onlyOf(schema node, version, kind string) node {
	properties := child(schema, "properties")
	child(properties, "apiVersion")["const"] = version
	child(properties, "kind")["const"] = kind
	return schema
}

// words describe parameters of routes whose answer goes on, for which the protocol has none here.
var words = map[string]string{
	"process": "A process of a gang, such as worker/3, whose own log is read. By default it is the output of the driver.",
	"round": "The round of the process, 1 or more. By default it is the newest one that has a log. " +
		"It is needed with an offset, and for server-sent events.",
	"older": "Read the older part of the log of the process, which one of more than 128 MiB has. Both parts have its last 128 to 256 MiB.",
}

// streamOperation returns the operation of a route whose answer goes on.
func streamOperation(route rest.Route) node {
	var parameters []any
	for _, one := range rest.Parameters(route) {
		schema := node{"type": one.Type}
		if one.IsList {
			schema = node{"type": "array", "items": schema}
		}
		parameter := node{"name": one.Name, "in": "query", "schema": schema}
		if one.IsInPath {
			parameter["in"], parameter["required"] = "path", true
		}
		if text := words[one.Name]; text != "" {
			parameter["description"] = text
		}
		parameters = append(parameters, parameter)
	}
	content := node{"text/event-stream": node{"schema": node{"type": "string"}}}
	if strings.HasSuffix(route.Path, "/log") || route.Call == "ReadFile" {
		content["text/plain"] = node{"schema": node{"type": "string"}}
	}
	if route.Call == "DownloadFiles" {
		content = node{"application/x-tar": node{"schema": node{"type": "string", "format": "binary"}}}
	}
	answer := node{"description": "The answer goes on until its last event.", "content": content}
	if route.Call == "ReadLog" {
		answer["headers"] = node{"Heliostat-Round": node{
			"description": "The round that the log of a process is of, where the answer is text.", "schema": node{"type": "integer"},
		}}
	}
	return node{
		"tags": []any{"Portal"}, "operationId": "Portal_" + route.Call, "parameters": parameters,
		"responses": node{"200": answer},
	}
}

// finish gives an operation its errors, and what else the protocol does not say.
func finish(operation node, route rest.Route) {
	responses := child(operation, "responses")
	responses["default"] = node{
		"description": "Why the call failed.",
		"content":     node{problem.ContentType: node{"schema": node{"$ref": schemas + problemName}}},
	}
	for _, code := range rest.Codes(route) {
		if code == 201 {
			responses["201"] = responses["200"]
		}
	}
	if body, is := operation["requestBody"].(node); is && !rest.NeedsBody(route) {
		body["required"] = false
	}
	if rest.TakesManifests(route) {
		text := node{"type": "string", "description": "Manifests, with lines of --- between them."}
		child(child(operation, "requestBody"), "content")["application/yaml"] = node{"schema": text}
	}
}

// named gives a name to what the protocol has as any object.
func named(document node) {
	all := child(child(document, "components"), "schemas")
	for _, name := range []string{"heliostat.v1.ActionResponse", "heliostat.v1.CreateObjectResponse", "heliostat.v1.GetObjectResponse"} {
		child(child(all, name), "properties")["object"] = node{"$ref": schemas + objectName}
	}
}
