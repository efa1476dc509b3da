package kube

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// leavesOut reports whether an update of ours owns a field that is not wanted any more. An apply alone would not take it
// away. Where nothing goes, an object that changes for the first time costs one write and not two.
func leavesOut(managed []metav1.ManagedFieldsEntry, wanted map[string]any) bool {
	for i := range managed {
		entry := &managed[i]
		if entry.Manager != FieldOwner || entry.Operation != metav1.ManagedFieldsOperationUpdate || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		var owned map[string]any
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned) != nil || !holds(wanted, owned) {
			return true
		}
	}
	return false
}

// holds reports whether a value has all fields of a set, which is in the form of fieldsV1.
func holds(value any, fields map[string]any) bool {
	for key, below := range fields {
		if key == "." {
			continue
		}
		part, is := partOf(value, key)
		if !is {
			return false
		}
		if below, is := below.(map[string]any); is && !holds(part, below) {
			return false
		}
	}
	return true
}

// partOf finds a part by its key in fieldsV1: a field, or the item of a list by its own keys. Parts by value or number are
// not looked for: it is always right to take fields over.
func partOf(value any, key string) (any, bool) {
	form, name, _ := strings.Cut(key, ":")
	switch form {
	case "f":
		object, _ := value.(map[string]any)
		part, is := object[name]
		return part, is
	case "k":
		var keys map[string]any
		if json.Unmarshal([]byte(name), &keys) != nil {
			return nil, false
		}
		items, _ := value.([]any)
		for _, item := range items {
			if hasKeys(item, keys) {
				return item, true
			}
		}
	}
	return nil, false
}

func hasKeys(item any, keys map[string]any) bool {
	object, is := item.(map[string]any)
	for name, want := range keys {
		is = is && fmt.Sprint(object[name]) == fmt.Sprint(want) // numbers are of two types
	}
	return is
}
