package spelling

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Misfit is a value that does not fit its field.
type Misfit struct {
	// Path is the field's; without the numbers of lists where a decoder says it.
	Path string
	// Fact says what the value is, and Remedy what helps.
	Fact, Remedy string
}

// FindMisfit returns the value because of which a decoder could not read fields into an object, nil where there is none.
func FindMisfit(object, fields any, err error) *Misfit {
	if found := findBadQuantity("", reflect.TypeOf(object), fields); found != nil {
		return found
	}
	said := wrongType.FindStringSubmatch(err.Error())
	if said == nil {
		return nil
	}
	wanted := cmp.Or(kindOf(said[3]), "another type")
	remedy := "write " + wanted
	if isScalar := said[1] == "number" || said[1] == "bool"; isScalar && said[3] == "string" {
		remedy = "write it in quotes"
	}
	return &Misfit{Path: said[2], Fact: fmt.Sprintf("is %s, and must be %s", cmp.Or(kindOf(said[1]), said[1]), wanted), Remedy: remedy}
}

// wrongType is how a decoder of JSON says what it found, at which path, and which type belongs there.
var wrongType = regexp.MustCompile(`cannot unmarshal (\w+)(?: \S+)? into Go struct field \w+\.(\S+) of type (\S+)$`)

// kindOf returns what people call a kind of values of JSON or a type of Go.
func kindOf(name string) string {
	switch {
	case name == "string":
		return "a text"
	case name == "number", strings.HasPrefix(name, "float"):
		return "a number"
	case strings.HasPrefix(name, "int"), strings.HasPrefix(name, "uint"):
		return "a whole number"
	case name == "bool":
		return "true or false"
	case name == "array", strings.HasPrefix(name, "[]"):
		return "a list"
	case name == "object", strings.HasPrefix(name, "map["), strings.Contains(name, "."):
		return "an object"
	}
	return ""
}

var quantity = reflect.TypeFor[resource.Quantity]()

// findBadQuantity returns the first value among fields that is no quantity and stands where a type has one.
func findBadQuantity(path string, t reflect.Type, fields any) *Misfit {
	if t == nil {
		return nil
	}
	if t = pointedAt(t); t == quantity {
		return judgeQuantity(path, fields)
	}
	switch fields := fields.(type) {
	case []any:
		for i, one := range fields {
			if found := findBadQuantity(fmt.Sprintf("%s[%d]", path, i), elementOf(t), one); found != nil {
				return found
			}
		}
	case map[string]any:
		below := func(string) reflect.Type { return t.Elem() }
		if t.Kind() != reflect.Map {
			known := jsonFields(t)
			below = func(name string) reflect.Type { return known[name] }
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if found := findBadQuantity(strings.TrimPrefix(path+"."+name, "."), below(name), fields[name]); found != nil {
				return found
			}
		}
	}
	return nil
}

// judgeQuantity returns what is wrong with a text that should be a quantity.
func judgeQuantity(path string, value any) *Misfit {
	text, isText := value.(string)
	if _, err := resource.ParseQuantity(text); !isText || err == nil {
		return nil
	}
	return &Misfit{Path: path, Fact: fmt.Sprintf("is %.80q, which is no quantity", text), Remedy: "write one such as 4, 500m or 16Gi"}
}

// pointedAt returns the type behind pointers.
func pointedAt(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}
