package presets

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// validate asks a schema about a value. A value is never in a finding: it may be a secret.
func validate(schema *jsonschema.Schema, value any) (findings []Finding) {
	defer func() {
		if recover() != nil { // a schema comes from any author of a ConfigMap
			findings = []Finding{unasked()}
		}
	}()
	if schema == nil {
		return nil
	}
	var failure *jsonschema.ValidationError
	if err := schema.Validate(value); err != nil && !errors.As(err, &failure) {
		return []Finding{unasked()}
	}
	if failure != nil {
		findings = collect(failure, nil)
	}
	return findings
}

// unasked is that nobody knows whether the options are good.
func unasked() Finding {
	return Finding{"options", ruleSchema, "the schema of the options cannot be asked", "Correct " + KeySchema + " of the preset"}
}

// ruleSchema is the ID of schema violations without a rule of their own.
const ruleSchema = "option-schema"

// collect are the findings of a failure and its causes. Of alternatives none is named: nobody knows which was meant.
func collect(failure *jsonschema.ValidationError, findings []Finding) []Finding {
	if len(findings) >= mostOptions {
		return findings
	}
	switch failed := failure.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range failed.Missing {
			field := fieldOf(slices.Concat(failure.InstanceLocation, []string{name}))
			findings = add(findings, Finding{field, "option-required", shown(name) + " is required", "Give it"})
		}
		return findings
	case *kind.AnyOf, *kind.OneOf, *kind.Not:
	default:
		if len(failure.Causes) > 0 {
			for _, cause := range failure.Causes {
				findings = collect(cause, findings)
			}
			return findings
		}
	}
	name := "the set of options"
	if at := failure.InstanceLocation; len(at) > 0 {
		name = strings.TrimPrefix(fieldOf(at), "options.")
	}
	rule, refused, remedy := words(failure.ErrorKind)
	return add(findings, Finding{fieldOf(failure.InstanceLocation), rule, name + " " + refused, remedy})
}

// add adds a finding that is not there yet: several parts of a schema may say the same.
func add(all []Finding, finding Finding) []Finding {
	for _, other := range all {
		if other == finding {
			return all
		}
	}
	return append(all, finding)
}

// fieldOf is a place as a path: options.args[1].
func fieldOf(location []string) string {
	path := "options"
	for i, part := range location {
		if _, err := strconv.Atoi(part); err == nil && i > 0 {
			path += "[" + part + "]"
		} else {
			path += "." + shown(part)
		}
	}
	return path
}

// words say what rule was broken, how, and what helps.
func words(broken jsonschema.ErrorKind) (rule, refused, remedy string) {
	switch k := broken.(type) {
	case *kind.Type:
		want := strings.Join(k.Want, " or ")
		return "option-type", fmt.Sprintf("has the type %s, and must have %s", k.Got, want), "Give a value of type " + want
	case *kind.Enum:
		return "option-enum", "has none of its values", "Give one of " + listed(k.Want)
	case *kind.Const:
		return "option-enum", "has another value than it may", "Give " + listed([]any{k.Want})
	case *kind.Pattern:
		return "option-pattern", "does not match " + shown(k.Want), "Give a text that matches it"
	case *kind.Format:
		return "option-format", "does not have the format " + shown(k.Want), "Give a text that has it"
	case *kind.UniqueItems:
		return "option-items", "has an entry twice", "Give each entry once"
	case *kind.Minimum, *kind.Maximum, *kind.ExclusiveMinimum, *kind.ExclusiveMaximum, *kind.MultipleOf:
		return bound(k)
	case *kind.MinLength, *kind.MaxLength, *kind.MinItems, *kind.MaxItems:
		return length(k)
	default:
		refused = "breaks a rule of the preset"
		if keyword := broken.KeywordPath(); len(keyword) > 0 {
			refused += ": " + shown(strings.Join(keyword, "."))
		}
		return ruleSchema, refused, "See the schema of the preset"
	}
}

// bound is words for a number.
func bound(broken any) (rule, refused, remedy string) {
	switch k := broken.(type) {
	case *kind.Minimum:
		return "option-minimum", "is below " + number(k.Want), "Give " + number(k.Want) + " or more"
	case *kind.Maximum:
		return "option-maximum", "is above " + number(k.Want), "Give " + number(k.Want) + " or less"
	case *kind.ExclusiveMinimum:
		return "option-minimum", "is not above " + number(k.Want), "Give more than " + number(k.Want)
	case *kind.ExclusiveMaximum:
		return "option-maximum", "is not below " + number(k.Want), "Give less than " + number(k.Want)
	case *kind.MultipleOf:
		return "option-multiple", "is no multiple of " + number(k.Want), "Give a multiple of it"
	}
	return ruleSchema, "is out of bounds", "See the schema of the preset"
}

// length is words for a text or a list.
func length(broken any) (rule, refused, remedy string) {
	few := func(want int, of string) (string, string) {
		return fmt.Sprintf("has fewer than %d %s", want, of), fmt.Sprintf("Give %d or more", want)
	}
	many := func(want int, of string) (string, string) {
		return fmt.Sprintf("has more than %d %s", want, of), fmt.Sprintf("Give %d or fewer", want)
	}
	switch k := broken.(type) {
	case *kind.MinLength:
		rule = "option-length"
		refused, remedy = few(k.Want, "characters")
	case *kind.MaxLength:
		rule = "option-length"
		refused, remedy = many(k.Want, "characters")
	case *kind.MinItems:
		rule = "option-items"
		refused, remedy = few(k.Want, "entries")
	case *kind.MaxItems:
		rule = "option-items"
		refused, remedy = many(k.Want, "entries")
	}
	return rule, refused, remedy
}

func number(rational *big.Rat) string {
	if rational.IsInt() {
		return shown(rational.Num().String())
	}
	part, _ := rational.Float64()
	return strconv.FormatFloat(part, 'g', -1, 64)
}

// listed are values of a schema as a person reads them, as many as help.
func listed(values []any) string {
	const most = 20
	var parts []string
	for _, value := range values[:min(len(values), most)] {
		parts = append(parts, shown(fmt.Sprint(value)))
	}
	if more := len(values) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, ", ")
}
