// Package record makes records: what is kept of an object of Kubernetes once it is gone.
//
// In: an object as the API server gives it. Out: its JSON without what may be secret, and without what repeats it.
//
// It must never keep a value of a variable or an argument of a Serve application, wherever a kind has them, also one that this program
// does not know. It is pure.
package record

import (
	"encoding/json"
	"fmt"
	"slices"
)

const (
	// MaxSize is how many bytes a record has at most.
	MaxSize = 256 << 10
	// maxDepth is how deep an object is read. The API server takes no deeper ones of our kinds.
	maxDepth = 100
)

// lastApplied has the whole object again, with its secrets.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// kept are the fields of an object that a record has.
var kept = []string{"apiVersion", "kind", "metadata", "spec", "status"}

// keptOfMetadata are those of its metadata.
var keptOfMetadata = []string{
	"annotations", "creationTimestamp", "deletionTimestamp", "generateName", "generation", "labels", "name", "namespace", "ownerReferences", "uid",
}

// Of returns the record of an object. What is too large for one loses its spec, and then its status; "cut" names them.
func Of(object map[string]any) (json.RawMessage, error) {
	record := only(object, kept)
	if metadata, is := record["metadata"].(map[string]any); is {
		metadata = only(metadata, keptOfMetadata)
		if annotations, is := metadata["annotations"].(map[string]any); is {
			annotations = only(annotations, nil)
			delete(annotations, lastApplied)
			metadata["annotations"] = annotations
		}
		record["metadata"] = metadata
	}
	clean := cleaned("", record, 0).(map[string]any)
	var cut []string
	for _, part := range []string{"spec", "status", "metadata"} {
		text, err := json.Marshal(clean)
		if err != nil {
			return nil, fmt.Errorf("write the record of an object: %w", err)
		}
		if len(text) <= MaxSize {
			return text, nil
		}
		cut = append(cut, part)
		clean["cut"] = cut
		if part == "metadata" { // labels and annotations alone can be as large
			clean[part] = only(clean[part].(map[string]any), []string{"name", "namespace", "uid"})
			continue
		}
		delete(clean, part)
	}
	text, err := json.Marshal(clean)
	if err != nil {
		return nil, fmt.Errorf("write the record of an object: %w", err)
	}
	return text, nil
}

// only returns a copy of a map with some of its keys, or with all where none are named.
func only(from map[string]any, keys []string) map[string]any {
	to := make(map[string]any, len(from))
	for key, value := range from {
		if keys == nil || slices.Contains(keys, key) {
			to[key] = value
		}
	}
	return to
}

// cleaned returns a copy of a value that stands under a key, without what may be secret.
func cleaned(key string, value any, depth int) any {
	if depth > maxDepth {
		return nil
	}
	switch value := value.(type) {
	case map[string]any:
		return cleanedMap(key, value, depth)
	case []any:
		all := make([]any, len(value))
		for i, one := range value {
			all[i] = cleaned(key, one, depth+1)
		}
		return all
	default:
		return value
	}
}

func cleanedMap(key string, value map[string]any, depth int) any {
	clean := make(map[string]any, len(value))
	for name, one := range value {
		_, isText := one.(string)
		switch {
		case key == "env_vars": // of a runtime environment: each key is a variable
			clean[name] = ""
		case key == "env" && name == "value" && isText: // of a container, a job or a role
		case key == "applications" && name == "args": // of Serve
		default:
			clean[name] = cleaned(name, one, depth+1)
		}
	}
	return clean
}
