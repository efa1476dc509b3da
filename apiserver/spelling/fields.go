package spelling

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// UnknownField returns the path of a field of which a strict decoder says that it is unknown.
func UnknownField(err error) (path string, is bool) {
	path, is = strings.CutPrefix(err.Error(), `unknown field "`)
	return strings.TrimSuffix(path, `"`), is
}

// FieldRemedy returns what helps a caller who gave an object a field at a path that it does not have.
func FieldRemedy(object any, path string) string {
	return Remedy(path[strings.LastIndexByte(path, '.')+1:], fieldsBeside(object, path))
}

// fieldsBeside returns the names of the fields that an object has where a path's last name stands.
func fieldsBeside(object any, path string) []string {
	at := reflect.TypeOf(object)
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		name, _, isElement := strings.Cut(name, "[")
		fields := jsonFields(at)
		var is bool
		if at, is = fields[name]; !is {
			return nil
		}
		if isElement {
			at = elementOf(at)
		}
	}
	return slices.Sorted(maps.Keys(jsonFields(at)))
}

// elementOf returns the type below pointers, lists and maps.
func elementOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t
}

// jsonFields returns the types of a struct's fields by their names in JSON.
func jsonFields(t reflect.Type) map[string]reflect.Type {
	all := map[string]reflect.Type{}
	if t = elementOf(t); t.Kind() != reflect.Struct {
		return all
	}
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			all[name] = field.Type
		}
	}
	return all
}
