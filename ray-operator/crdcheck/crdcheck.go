// Package crdcheck says what the API server would refuse of an object of our kinds.
//
// In: an object, and for a change the one before it. Out: findings, as package validate returns them: of the CRD's schema and
// its CEL rules, which are evaluated as the API server does, and of the rules of the admission policy, which package
// validate holds. A kind's CRD is compiled when the first object of it is checked.
//
// The operator must never link it: who only reads objects that the API server accepted needs no evaluator. It never
// changes what it is given, and never asks whether an object that the spec names exists.
package crdcheck

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	kjson "sigs.k8s.io/json"

	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// Answer is what is wrong with an object.
type Answer struct {
	// Findings are at most 100.
	validate.Findings
	// WithoutChanges reports that rules about changes were not asked, as nothing was there to compare with. They may still
	// refuse the object where one of its name exists.
	WithoutChanges bool
	// WithoutRules reports that the CRD's CEL rules were not asked, as in the API server: the schema refused the form of the
	// object, on which they rely. Nor are they where the schema refused so much that not all of it was asked.
	WithoutRules bool
}

var errKind = errors.New("there is no such kind")

// Create returns what is refused of a new object. The object is anything that is written as the JSON of one.
func Create(kind string, object any) (Answer, error) {
	return check(kind, nil, object)
}

// Update returns what is refused of a change. As in the API server, what was refused of the object before and is not changed
// is not refused again, unless the admission policy does.
func Update(kind string, before, after any) (Answer, error) {
	return check(kind, before, after)
}

// check returns what is refused of an object. Without a former one it is created.
func check(kind string, before, after any) (Answer, error) {
	compiled, is := kinds[kind]
	if !is {
		return Answer{}, fmt.Errorf("check a %.80q: %w", kind, errKind)
	}
	d, err := compiled()
	if err != nil {
		return Answer{}, fmt.Errorf("compile the CRD of %s: %w", kind, err)
	}
	object, err := d.read(after)
	if err != nil {
		return Answer{}, fmt.Errorf("read a %s: %w", kind, err)
	}
	delete(object, "status") // nobody sends it
	var former map[string]any
	if before != nil {
		if former, err = d.read(before); err != nil {
			return Answer{}, fmt.Errorf("read the %s before the change: %w", kind, err)
		}
	}
	errs, withoutRules := d.evaluate(former, object)
	findings := d.findings(object, errs)
	refused, err := d.askPolicies(former, object)
	if err != nil && len(findings) == 0 {
		return Answer{}, fmt.Errorf("read a %s that the schema accepts: %w", kind, err)
	}
	findings = append(findings, refused...)
	d.sort(findings)
	findings = findings[:min(len(findings), mostFindings)]
	return Answer{Findings: findings, WithoutChanges: former == nil, WithoutRules: withoutRules}, nil
}

// read returns a copy of an object as the API server holds one: what the schema does not have is left out, and what has a
// default is filled in. The status, which the embedded schemas do not have, stays as it is.
func (d *definition) read(object any) (map[string]any, error) {
	text, err := marshal(object)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &fields); err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	status, hasStatus := fields["status"]
	pruning.Prune(fields, d.structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(fields, d.structural)
	defaulting.Default(fields, d.structural)
	if hasStatus {
		fields["status"] = status
	}
	return fields, nil
}

// evaluate asks schema and rules, in the order in which the API server does. It reports whether the rules were left out.
func (d *definition) evaluate(former, object map[string]any) (errs field.ErrorList, withoutRules bool) {
	var ofRules []cel.Option
	var before any // never a map without a value
	schema := &bounded{schema: d.openAPI}
	if former != nil {
		before = former
		if d.contained != nil && d.contained.isChangeable {
			before = without(former, d.contained.path)
		}
		// What is equal to what it was before is found once, and both remember it.
		schema.both = common.NewCorrelatedObject(object, former, &model.Structural{Structural: d.structural})
		ofRules = append(ofRules, cel.WithRatcheting(schema.both))
	}
	if errs = validation.ValidateCustomResource(nil, object, schema); schema.isOver() {
		return errs, true
	}
	ctx := context.Background()
	errs = append(errs, objectmeta.Validate(ctx, nil, object, d.structural, false)...)
	if former == nil || len(listtype.ValidateListSetsAndMaps(nil, d.structural, former)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, d.structural, object)...)
	}
	if hasWrongForm(errs) {
		return errs, true
	}
	broken, _ := d.rules.Validate(ctx, nil, d.structural, object, before, celconfig.RuntimeCELCostBudget, ofRules...)
	return append(errs, broken...), false
}

// hasWrongForm reports whether the schema refused something on which rules rely: the API server asks none of them then.
func hasWrongForm(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}
