package validate

import "k8s.io/apimachinery/pkg/util/validation/field"

// Finding is one place of a spec that a rule refuses.
type Finding struct {
	// Rule is the ID of the rule.
	Rule string
	// Path is where the spec breaks it, such as spec.workerGroups[0].name.
	Path string
	// Value is what stands there, or nil where it would not help.
	Value any
	// Refused says what is wrong, and Remedy what helps.
	Refused, Remedy string
}

// Findings are all that is wrong with a spec, in the order of the rules.
type Findings []Finding

// ErrorList returns the findings in the words of the API server, which go before those of the rules.
func (all Findings) ErrorList() field.ErrorList {
	var errs field.ErrorList
	for _, f := range all {
		kind, value := field.ErrorTypeInvalid, f.Value
		if value == nil {
			kind, value = field.ErrorTypeForbidden, ""
		}
		errs = append(errs, &field.Error{Type: kind, Field: f.Path, BadValue: value, Detail: refusal(f.Refused, f.Remedy)})
	}
	return errs
}

// refusal is what the refusal of a rule says behind the path of the field.
func refusal(refused, remedy string) string { return refused + "; " + remedy }
