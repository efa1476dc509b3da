package crdcheck

import (
	"maps"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// contained is the spec of another kind in the objects of a kind. Its schema is that kind's, so both share what is compiled of
// it: of all that a definition takes, the most is the cluster.
type contained struct {
	path []string
	of   *definition
	// isChangeable reports that rules about changes do not hold there: of a changed template another object is made.
	isChangeable bool
}

// specField is where the spec of an object lies.
const specField = "spec"

// forRules returns what rules are compiled against: the structure without pod templates, about which no rule of the CRD asks,
// and below a path without rules, as those are compiled once for all kinds.
func forRules(s structuralschema.Structural, path []string, isInside bool) structuralschema.Structural {
	if isTemplate(&s) {
		return structuralschema.Structural{
			Generic: structuralschema.Generic{Type: "object"}, Extensions: structuralschema.Extensions{XPreserveUnknownFields: true},
		}
	}
	if isInside {
		s.XValidations = nil
	}
	if s.Items != nil {
		items := forRules(*s.Items, nil, isInside)
		s.Items = &items
	}
	s.Properties = maps.Clone(s.Properties)
	for name, below := range s.Properties {
		var rest []string
		isPath := len(path) > 0 && path[0] == name
		if isPath {
			rest = path[1:]
		}
		s.Properties[name] = forRules(below, rest, isInside || isPath && len(rest) == 0)
	}
	return s
}

// isTemplate tells a pod template by its shape, as crdtrim does.
func isTemplate(s *structuralschema.Structural) bool {
	_, is := s.Properties["spec"].Properties["containers"]
	return is
}

// share puts what is compiled of the contained spec into a definition.
func (c *contained) share(d *definition) {
	graft(d.structural, c.path, c.of.structural.Properties[specField], func(s *structuralschema.Structural) *map[string]structuralschema.Structural {
		return &s.Properties
	})
	graft(d.openAPI, c.path, c.of.openAPI.Properties[specField], func(s *spec.Schema) *map[string]spec.Schema { return &s.Properties })
	graft(d.rules, c.path, c.of.rules.Properties[specField], func(v *cel.Validator) *map[string]cel.Validator { return &v.Properties })
}

// graft sets what lies at a path of a tree.
func graft[T any](tree *T, path []string, value T, below func(*T) *map[string]T) {
	if len(path) == 0 {
		*tree = value
		return
	}
	children := below(tree)
	child := (*children)[path[0]]
	graft(&child, path[1:], value, below)
	(*children)[path[0]] = child
}

// without returns an object without what lies at a path. The object stays as it is.
func without(object map[string]any, path []string) map[string]any {
	below, is := object[path[0]].(map[string]any)
	object = maps.Clone(object)
	switch {
	case len(path) == 1:
		delete(object, path[0])
	case is:
		object[path[0]] = without(below, path[1:])
	}
	return object
}
