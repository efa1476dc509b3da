package crdcheck

import (
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// mostFindings is how many findings an answer has at most. Nobody reads more, and the evaluator compares each error with all
// others, once for each level above it: 20,000 took a minute.
const mostFindings = 100

// bounded asks a schema about one object until enough is found. It implements validation.SchemaCreateValidator.
type bounded struct {
	schema *spec.Schema
	// both is the object beside the one before it, nil for a new object.
	both  *common.CorrelatedObject
	found int
}

// isOver reports whether enough was found, so that something was left out.
func (b *bounded) isOver() bool { return b.found >= mostFindings }

// Validate implements validation.SchemaCreateValidator.
func (b *bounded) Validate(object any, _ ...validation.ValidationOption) *validate.Result {
	return b.at(b.both, b.schema, b.schema, "", strfmt.Default).Validate(object)
}

// at returns what asks the schema of a place.
func (b *bounded) at(both *common.CorrelatedObject, schema *spec.Schema, root any, path string, formats strfmt.Registry) validate.ValueValidator {
	if b.isOver() {
		return place{of: b}
	}
	below := func(options *validate.SchemaValidatorOptions) {
		options.NewValidatorForField = func(name string, schema *spec.Schema, root any, below string, formats strfmt.Registry, _ ...validate.Option) validate.ValueValidator {
			if path == "" && (name == "kind" || name == "apiVersion") {
				return b.at(nil, schema, root, below, formats) // the API server compares them not at all
			}
			return b.at(both.Key(name), schema, root, below, formats)
		}
		options.NewValidatorForIndex = func(i int, schema *spec.Schema, root any, below string, formats strfmt.Registry, _ ...validate.Option) validate.ValueValidator {
			return b.at(both.Index(i), schema, root, below, formats)
		}
	}
	return place{validate.NewSchemaValidator(schema, root, path, formats, below), both, b}
}

// place is the schema of a place, and without one what finds nothing.
type place struct {
	*validate.SchemaValidator
	both *common.CorrelatedObject
	of   *bounded
}

// Validate implements validate.ValueValidator.
func (p place) Validate(value any) *validate.Result {
	if p.of.isOver() {
		return &validate.Result{}
	}
	before := p.of.found
	result := p.SchemaValidator.Validate(value)
	if !result.IsValid() && p.both.CachedDeepEqual() { // it was so before
		p.of.found = before
		return &validate.Result{}
	}
	p.of.found = max(p.of.found, before+len(result.Errors)) // which has those of the places below it
	return result
}
