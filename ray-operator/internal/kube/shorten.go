package kube

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What a status keeps of texts and lists when the API server has refused it: less than any field of ours allows.
const (
	shortText = 256
	shortList = 32
)

// shortened returns an object of which the status has short texts and lists.
func shortened(obj client.Object) (client.Object, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("shorten a status: %w", err)
	}
	content["status"] = shorten(content["status"])
	shorter, is := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	if !is {
		return nil, fmt.Errorf("shorten a status: %T is no object", obj)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, shorter); err != nil {
		return nil, fmt.Errorf("shorten a status: %w", err)
	}
	return shorter, nil
}

// shorten returns a value of JSON with the beginnings of its texts and lists.
func shorten(value any) any {
	switch v := value.(type) {
	case string:
		return strings.ToValidUTF8(v[:min(len(v), shortText)], "")
	case []any:
		v = v[:min(len(v), shortList)]
		for i := range v {
			v[i] = shorten(v[i])
		}
		return v
	case map[string]any:
		for key := range v {
			v[key] = shorten(v[key])
		}
		return v
	default:
		return value
	}
}
