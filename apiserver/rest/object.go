package rest

import (
	"encoding/json"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/apiserver/verbs"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// newObject returns an empty object of a kind of Kubernetes, or nil.
func newObject(kind string) verbs.Object {
	switch kind {
	case "ComputeCluster":
		return &v1beta1.ComputeCluster{}
	case "ClusterJob":
		return &v1beta1.ClusterJob{}
	case "ClusterJobSchedule":
		return &v1beta1.ClusterJobSchedule{}
	case "ClusterService":
		return &v1beta1.ClusterService{}
	}
	return nil
}

// typed returns an object of the API server in Go's form. Fields that this server does not know are left out of it.
func typed(fields map[string]any) (verbs.Object, error) {
	kind, _ := fields["kind"].(string)
	object := newObject(kind)
	if object == nil {
		return nil, fmt.Errorf("read an object: it is a %q", kind)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, object); err != nil {
		return nil, fmt.Errorf("read a %s: %w", kind, err)
	}
	return object, nil
}

// toFields returns an object as JSON has it, with its kind.
func toFields(object verbs.Object) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("write an object: %w", err)
	}
	fields["apiVersion"], fields["kind"] = v1beta1.GroupVersion.String(), nameOf(object)
	return fields, nil
}

// nameOf returns the kind of an object as manifests name it.
func nameOf(object verbs.Object) string {
	for _, name := range kubernetesKinds {
		if reflect.TypeOf(newObject(name)) == reflect.TypeOf(object) {
			return name
		}
	}
	return ""
}

// toStruct returns an object as the protocol has it. Who wrote which field is left out.
func toStruct(fields map[string]any) (*structpb.Struct, error) {
	if metadata, is := fields["metadata"].(map[string]any); is {
		delete(metadata, "managedFields")
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("write an object: %w", err)
	}
	answer := &structpb.Struct{}
	if err := answer.UnmarshalJSON(text); err != nil {
		return nil, fmt.Errorf("write an object: %w", err)
	}
	return answer, nil
}
