// Command crdtrim makes what controller-gen says of a kind fit to be installed.
//
// In, on standard input: a CustomResourceDefinition. Out, on standard output: the same
// one, in which a pod template takes little room and may leave out its containers. A field
// that it does not know is refused, or taken out, as one of a Deployment's template is.
//
// With the argument -schema it is what package crdcheck evaluates: the schema alone, on one line. With -chart DIRECTORY FILE...
// it reads files instead, and writes them as the chart has them: Helm keeps all of a chart, and what it makes of it, in one
// Secret, which may have 1 MiB, so what several definitions have stands there once.
//
// Outside of pod templates it must never change anything but two annotations, the length of
// quantities, which rules could not read within their cost if it had no bound, their exponents, and what
// cannot be changed of a template: of the changed one of a service or a schedule another object is made.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

func main() {
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "crdtrim:", err)
		os.Exit(1)
	}
}

func command(args []string) error {
	switch {
	case len(args) > 2 && args[0] == "-chart":
		return writeShared(args[1], args[2:])
	case slices.Contains(args, "-schema"):
		return run(os.Stdin, os.Stdout, printSchema)
	default:
		return run(os.Stdin, os.Stdout, printYAML)
	}
}

func run(in io.Reader, out io.Writer, print func(trimmed []byte) ([]byte, error)) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("read the definition: %w", err)
	}
	trimmed, err := Trim(text)
	if err != nil {
		return err
	}
	if trimmed, err = print(trimmed); err != nil {
		return err
	}
	if _, err := out.Write(trimmed); err != nil {
		return fmt.Errorf("write the definition: %w", err)
	}
	return nil
}

func printYAML(trimmed []byte) ([]byte, error) { return trimmed, nil }

// printSchema prints the schema of the definition's version, without descriptions and without the status, which nobody sends.
func printSchema(trimmed []byte) ([]byte, error) {
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(trimmed, &crd); err != nil {
		return nil, fmt.Errorf("parse the definition: %w", err)
	}
	if len(crd.Spec.Versions) != 1 {
		return nil, fmt.Errorf("find the one version: %w", errShape)
	}
	schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	properties, ok := descend(schema, "properties")
	if !ok {
		return nil, fmt.Errorf("find the fields: %w", errShape)
	}
	delete(properties, "status")
	walk(schema, bare)
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, fmt.Errorf("print the schema on one line: %w", err)
	}
	return append(text, '\n'), nil
}

// Trim gives the definition without the descriptions of pod templates, and with two annotations: one makes Helm keep it, and
// so every object of the kind, at uninstall, and one makes Argo CD apply it on the server's side.
func Trim(definition []byte) ([]byte, error) {
	var crd map[string]any
	if err := yaml.Unmarshal(definition, &crd); err != nil {
		return nil, fmt.Errorf("parse the definition: %w", err)
	}
	annotations, ok := descend(crd, "metadata", "annotations")
	if !ok {
		return nil, fmt.Errorf("find metadata.annotations: %w", errShape)
	}
	annotations["helm.sh/resource-policy"] = "keep"
	// Some kinds are larger than the annotation in which a client-side apply remembers what it applied.
	annotations["argocd.argoproj.io/sync-options"] = "ServerSideApply=true"
	spec, _ := descend(crd, "spec")
	versions, ok := spec["versions"].([]any)
	if !ok {
		return nil, fmt.Errorf("find spec.versions: %w", errShape)
	}
	for _, version := range versions {
		object, _ := version.(map[string]any)
		schema, ok := descend(object, "schema", "openAPIV3Schema")
		if !ok {
			return nil, fmt.Errorf("find the schema of a version: %w", errShape)
		}
		walk(schema, bound)
		walk(schema, shorten)
		walk(schema, templates)
		names, _ := descend(crd, "spec", "names")
		if path := madeAgain[fmt.Sprint(names["kind"])]; path != nil {
			template, ok := descend(schema, path...)
			if !ok {
				return nil, fmt.Errorf("find the template of a %s: %w", names["kind"], errShape)
			}
			walk(template, changeable)
		}
	}
	out, err := yaml.Marshal(crd)
	if err != nil {
		return nil, fmt.Errorf("print the definition: %w", err)
	}
	return out, nil
}

// madeAgain are, by kind, the templates of which another object is made where they change.
var madeAgain = map[string][]string{
	"ClusterService":     {"properties", "spec", "properties", "clusterTemplate", "properties", "spec"},
	"ClusterJobSchedule": {"properties", "spec", "properties", "jobTemplate"},
}

var errShape = fmt.Errorf("not what controller-gen writes")

func descend(object map[string]any, path ...string) (map[string]any, bool) {
	for _, key := range path {
		next, ok := object[key].(map[string]any)
		if !ok {
			return nil, false
		}
		object = next
	}
	return object, true
}

// walk visits a schema and all schemas below it, parents first. visit reports whether to
// go on below.
func walk(schema map[string]any, visit func(schema map[string]any) bool) {
	if !visit(schema) {
		return
	}
	if properties, ok := schema["properties"].(map[string]any); ok {
		for _, property := range properties {
			if below, ok := property.(map[string]any); ok {
				walk(below, visit)
			}
		}
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if below, ok := schema[key].(map[string]any); ok {
			walk(below, visit)
		}
	}
}

// maxQuantity in characters is far more than any quantity needs.
const maxQuantity = 40

// bound limits the length of quantities written as strings. It leaves pod templates
// alone, whose schema is Kubernetes' own.
func bound(schema map[string]any) bool {
	if schema["x-kubernetes-int-or-string"] == true {
		schema["maxLength"] = maxQuantity
	}
	return !isTemplate(schema)
}

// Forms of the exponent of a quantity: that of controller-gen, and one that has up to two digits. Who reads 1e-100000000 rounds
// it by a number of a hundred million digits, which takes most of a minute and hundreds of MiB.
const (
	anyExponent   = `[eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))`
	shortExponent = `[eE](\+|-)?[0-9]{1,2}`
)

// shorten bounds the exponents of quantities, those of pod templates too: the operator and the server read all of them.
func shorten(schema map[string]any) bool {
	if pattern, ok := schema["pattern"].(string); ok && schema["x-kubernetes-int-or-string"] == true {
		schema["pattern"] = strings.Replace(pattern, anyExponent, shortExponent, 1)
	}
	return true
}

// changeable takes off the rules about changes, which are those that ask for what was before.
func changeable(schema map[string]any) bool {
	rules, _ := schema["x-kubernetes-validations"].([]any)
	rules = slices.DeleteFunc(rules, func(rule any) bool {
		of, _ := rule.(map[string]any)
		text, _ := of["rule"].(string)
		return strings.Contains(text, "oldSelf")
	})
	if schema["x-kubernetes-validations"] = rules; len(rules) == 0 {
		delete(schema, "x-kubernetes-validations")
	}
	return !isTemplate(schema)
}

// isTemplate tells a pod template by its shape.
func isTemplate(schema map[string]any) bool {
	_, ok := descend(schema, "properties", "spec", "properties", "containers")
	return ok
}

// templates trims the pod templates.
func templates(schema map[string]any) bool {
	if !isTemplate(schema) {
		return true
	}
	spec, _ := descend(schema, "properties", "spec")
	delete(spec, "required") // a template that names no container is legal: the operator adds the Ray container
	description := schema["description"]
	walk(schema, bare)
	schema["description"] = description
	return false
}

// bare takes the description off.
func bare(schema map[string]any) bool {
	delete(schema, "description")
	return true
}
