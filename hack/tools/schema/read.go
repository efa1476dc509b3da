package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Field is one field of a kind, or the kind itself at the path ".".
type Field struct {
	// Of is the kind and its version, such as ComputeCluster.v1beta1. Path leads to the field; entries of a list are at [], and
	// values of a map at {}.
	Of, Path string
	// Type is that of the schema, or one of the words below.
	Type string
	// Has are the rest of the schema that bounds the field or says how it is merged.
	Has map[string]any
	// Rules are its rules in CEL.
	Rules []string
}

// Types beside those of a schema.
const (
	typeKind     = "kind"
	typeAny      = "any"
	typeEither   = "int-or-string"
	typeTemplate = "pod-template" // Kubernetes' own type, whose fields are its to keep
)

// attributes of a field, by their names in a schema.
var attributes = map[string]string{
	"default": "default", "enum": "enum", "format": "format", "nullable": "nullable", "pattern": "pattern", "multipleOf": "multipleOf",
	"minimum": "min", "maximum": "max", "exclusiveMinimum": "aboveMin", "exclusiveMaximum": "belowMax",
	"minLength": "minLength", "maxLength": "maxLength", "minItems": "minItems", "maxItems": "maxItems", "uniqueItems": "uniqueItems",
	"minProperties": "minProperties", "maxProperties": "maxProperties",
	"x-kubernetes-list-type": "list", "x-kubernetes-list-map-keys": "keys", "x-kubernetes-map-type": "map",
	"x-kubernetes-preserve-unknown-fields": "keepsUnknown", "x-kubernetes-embedded-resource": "embedded",
}

// read elsewhere, or of no meaning for an object.
var others = []string{
	"description", "title", "type", "properties", "items", "additionalProperties", "required", "x-kubernetes-validations",
	"x-kubernetes-int-or-string", "anyOf",
}

type schema = map[string]any

var errShape = errors.New("not what controller-gen writes")

// Read returns the fields of a definition in their order.
func Read(text []byte) ([]Field, error) {
	var definition struct {
		Spec struct {
			Scope    string
			Names    schema
			Versions []struct {
				Name         string
				Served       bool
				Subresources schema
				Schema       struct{ OpenAPIV3Schema schema }
			}
		}
	}
	if err := yaml.Unmarshal(text, &definition); err != nil {
		return nil, fmt.Errorf("parse the definition: %w", err)
	}
	var all []Field
	for _, version := range definition.Spec.Versions {
		names := definition.Spec.Names
		r := reader{of: fmt.Sprintf("%v.%s", names["kind"], version.Name)}
		kind := Field{Of: r.of, Path: ".", Type: typeKind, Has: schema{
			"scope": definition.Spec.Scope, "plural": names["plural"], "singular": names["singular"], "list": names["listKind"],
			"served": version.Served, "subresources": anyOf(slices.Sorted(maps.Keys(version.Subresources))),
		}}
		for _, name := range []string{"shortNames", "categories"} {
			if names[name] != nil {
				kind.Has[name] = names[name]
			}
		}
		root := version.Schema.OpenAPIV3Schema
		kind.Rules = rulesOf(root)
		r.all = append(r.all, kind)
		if err := r.below("", root); err != nil {
			return nil, err
		}
		all = append(all, r.all...)
	}
	return all, nil
}

func anyOf(names []string) []any {
	all := []any{}
	for _, name := range names {
		all = append(all, name)
	}
	return all
}

// reader collects the fields of one version of a kind.
type reader struct {
	of  string
	all []Field
}

// below reads the fields of an object, entries of a list and values of a map.
func (r *reader) below(path string, of schema) error {
	properties, _ := of["properties"].(schema)
	required, _ := of["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if path == "" && (name == "apiVersion" || name == "kind" || name == "metadata") {
			continue // of every kind of Kubernetes
		}
		if err := r.field(strings.TrimPrefix(path+"."+name, "."), properties[name], slices.Contains(required, any(name))); err != nil {
			return err
		}
	}
	for key, mark := range map[string]string{"items": "[]", "additionalProperties": "{}"} {
		if of[key] == nil {
			continue
		}
		if err := r.field(path+mark, of[key], false); err != nil {
			return err
		}
	}
	return nil
}

// field reads one field, and all below it.
func (r *reader) field(path string, value any, isRequired bool) error {
	of, ok := value.(schema)
	if !ok {
		return fmt.Errorf("%s: %w", path, errShape)
	}
	field := Field{Of: r.of, Path: path, Type: typeOf(of), Has: schema{}, Rules: rulesOf(of)}
	if isRequired {
		field.Has["required"] = true
	}
	for name, value := range of {
		if attribute, known := attributes[name]; known {
			field.Has[attribute] = value
		} else if !slices.Contains(others, name) || name == "anyOf" && field.Type != typeEither {
			return fmt.Errorf("%s: its schema has %s, which nothing compares: add it to attributes and judges", path, name)
		}
	}
	r.all = append(r.all, field)
	if field.Type == typeTemplate {
		return nil
	}
	return r.below(path, of)
}

func typeOf(of schema) string {
	if properties, ok := of["properties"].(schema); ok {
		spec, _ := properties["spec"].(schema)
		inner, _ := spec["properties"].(schema)
		if inner["containers"] != nil {
			return typeTemplate
		}
	}
	if of["x-kubernetes-int-or-string"] == true {
		return typeEither
	}
	if name, ok := of["type"].(string); ok {
		return name
	}
	return typeAny
}

// rulesOf returns the rules of a schema. Their messages are words for people.
func rulesOf(of schema) []string {
	list, _ := of["x-kubernetes-validations"].([]any)
	var all []string
	for _, entry := range list {
		rule, _ := entry.(schema)
		if text, ok := rule["rule"].(string); ok {
			all = append(all, text)
		}
	}
	return all
}
