package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/yaml"
)

// report says what becomes of each field of an object.
type report struct {
	rows []Row
	// noted are the paths about which the conversion itself has said what became of them, whatever the table says.
	noted map[string]bool
}

// note says what became of a field, and keeps the table from saying it.
func (r *report) note(row Row) {
	r.noted[row.Path] = true
	if row.Verdict != Kept {
		r.rows = append(r.rows, row)
	}
}

func (r *report) refuse(path, text string) { r.note(Row{Path: path, Verdict: Refused, Text: text}) }

// keep has the table say nothing about a field, because this value of it stays as it is.
func (r *report) keep(path string) { r.note(Row{Path: path, Verdict: Kept}) }

// drop says that the operator does what a field asks for.
func (r *report) drop(path, text string) { r.note(Row{Path: path, Verdict: Dropped, Text: text}) }

// change says that a field has another value, with another effect.
func (r *report) change(path, to, text string) {
	r.note(Row{Path: path, To: to, Verdict: Changed, Differs: true, Text: text})
}

// adjust says that a field has another value, with the same effect.
func (r *report) adjust(path, to, text string) {
	r.note(Row{Path: path, To: to, Verdict: Changed, Text: text})
}

// refuseType refuses a value that is not what its field takes.
func (r *report) refuseType(err error) {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		r.refuse("spec."+wrong.Field, fmt.Sprintf("a %s has no place here; give a %s", wrong.Value, wrong.Type.Kind()))
		return
	}
	r.refuse("spec", "a value has not the form that its field takes: "+err.Error())
}

// refuseUnknown refuses a field that an API does not have, by the error of a strict reader.
func (r *report) refuseUnknown(apiVersion string, err error) {
	path := "spec"
	if at, is := err.(interface{ FieldPath() string }); is {
		path += "." + at.FieldPath()
	}
	remedy := "correct its name, or take it out"
	if path == "spec.podTemplateOverrides" && isOf(apiVersion, trainerGroup) {
		remedy = "write runtimePatches, as Trainer has it since 2.2"
	}
	r.refuse(path, apiVersion+" has no such field; "+remedy)
}

// tell adds the rows of the table for the fields that the object has.
func (r *report) tell(kind string, spec any) { r.walk(books[kind], "spec", "spec", spec) }

// walk adds the rows about a value and what is below it. Its form is its path as rules have it.
func (r *report) walk(rules *book, path, form string, value any) {
	if rule, has := rules.rules[form]; has {
		if rule.Verdict != Kept && !r.noted[path] && !isEmpty(value) {
			r.rows = append(r.rows, Row{Path: path, To: rule.To, Verdict: rule.Verdict, Differs: rule.Differs, Text: rule.Text})
		}
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			inner := join(form, key)
			if rules.maps[form] {
				inner = form + "{}"
			}
			r.walk(rules, join(path, key), inner, value[key])
		}
	case []any:
		for i := range value {
			r.walk(rules, fmt.Sprintf("%s[%d]", path, i), form+"[]", value[i])
		}
	case nil:
	default:
		r.refuse(path, "no rule says what becomes of this field; take it out, and tell the makers of Heliostat")
	}
}

// isEmpty reports whether a value says nothing.
func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case bool:
		return !value
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	default:
		return false
	}
}

// manager is who manages an object, empty for the default, which has a name of its own there.
func (r *report) manager(path, managedBy, usual string) string {
	switch managedBy {
	case "", usual:
		return ""
	case managerMultiKueue:
		return managedBy
	default:
		r.refuse(path, "managers are "+usual+" and "+managerMultiKueue+"; use one of them")
		return ""
	}
}

// atLeastOne is a number of seconds of which ours has no 0.
func (r *report) atLeastOne(path, to string, seconds *int32) *int32 {
	if seconds == nil || *seconds != 0 {
		return seconds
	}
	r.change(path, to, "0 becomes 1, the least that there is")
	return new(int32(1))
}

// atMost is a number of seconds up to a day.
func (r *report) atMost(path, to string, seconds *int32) *int32 {
	if seconds == nil || *seconds <= longestStep {
		return seconds
	}
	r.change(path, to, fmt.Sprintf("it becomes %d, the most that there is", longestStep))
	return new(int32(longestStep))
}

// longestText is how many bytes a text in place of an object may have with its anchors written out. Kubernetes keeps no
// larger object.
const longestText = 1 << 20

// object reads a text that ray.io has in place of an object.
func (r *report) object(path, text string) *runtime.RawExtension {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	raw, err := yaml.ToJSON([]byte(text), longestText)
	if err != nil {
		if bound := (*yaml.BoundError)(nil); errors.As(err, &bound) {
			r.refuse(path, bound.Error())
			return nil
		}
		r.refuse(path, "the text is no YAML: "+firstLine(err.Error()))
		return nil
	}
	var object map[string]any
	if json.Unmarshal(raw, &object) != nil || object == nil {
		r.refuse(path, "the text is no object in YAML; write its fields, each with a colon")
		return nil
	}
	if raw, err = json.Marshal(object); err != nil {
		r.refuse(path, "the text cannot be written as JSON: "+err.Error())
		return nil
	}
	return &runtime.RawExtension{Raw: raw}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
