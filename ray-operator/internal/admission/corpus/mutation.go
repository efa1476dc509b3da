package corpus

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// odd are the values that every field gets in turn.
var odd = []any{"", "UPPER case", long(300), "-1", "0", "1.5", int64(-1), int64(0), int64(1), int64(2147483648), 1.5, true, []any{}, map[string]any{}}

// mutation is the rich object with one field changed.
type mutation struct {
	name string
	make func() any
}

// mutations puts every odd value into every field of the rich object's spec.
func (k Kind[T]) mutations() []mutation {
	var all []mutation
	text := k.rich()
	walk(parsed(text), nil, func(path []string) {
		for i, value := range odd {
			all = append(all, mutation{
				name: fmt.Sprintf("%v = %.20v (%d)", path, value, i),
				make: func() any {
					object := parsed(text)
					put(object, path, value)
					return object
				},
			})
		}
	})
	return all
}

// tooMuch are good rows that leave no room for others in the rich object.
var tooMuch = []string{
	"a head alone", "64 groups", inJob + "a head alone", inJob + "64 groups", inService + "a head alone", inService + "64 groups",
	"64 applications", "256 deployments", "256 deployments of one application",
}

// enrich makes a good object in which as many fields as possible are set, as a user writes it.
func (k Kind[T]) enrich() []byte {
	object := k.Good()
	for _, row := range k.Rows {
		if row.Rule != "" || row.Before != nil || slices.Contains(tooMuch, row.Name) {
			continue
		}
		if edited, can := apply(row, object); can && len(create(k.kind, edited)) == 0 {
			object = edited
		}
	}
	text, err := json.Marshal(object)
	if err != nil {
		panic(fmt.Sprintf("write down the rich object: %v", err)) // API types always marshal
	}
	return text
}

func parsed(text []byte) any {
	var object any
	if err := json.Unmarshal(text, &object); err != nil {
		panic(fmt.Sprintf("read the rich object: %v", err)) // it was written by rich
	}
	return object
}

// walk visits the path of every field of the spec, objects and lists included.
func walk(value any, path []string, visit func(path []string)) {
	if len(path) > 1 {
		visit(slices.Clone(path))
	}
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if len(path) > 0 || key == "spec" {
				walk(value[key], append(path, key), visit)
			}
		}
	case []any:
		for i := range value {
			walk(value[i], append(path, strconv.Itoa(i)), visit)
		}
	}
}

func put(object any, path []string, value any) {
	for _, key := range path[:len(path)-1] {
		object = step(object, key)
	}
	last := path[len(path)-1]
	switch object := object.(type) {
	case map[string]any:
		object[last] = value
	case []any:
		i, _ := strconv.Atoi(last)
		object[i] = value
	}
}

func step(object any, key string) any {
	if list, ok := object.([]any); ok {
		i, _ := strconv.Atoi(key)
		return list[i]
	}
	fields, _ := object.(map[string]any)
	return fields[key]
}

// ofMutation is the mutation as a user would send it, with types that no typed client sends.
func (k Kind[T]) ofMutation(m mutation) (Input, error) { return k.input(m.name, m.make()) }
