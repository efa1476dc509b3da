package pass

import (
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/drift"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// Marked notes on an object what it was made from.
func Marked(obj client.Object) client.Object {
	hash, _ := naming.ObjectHash(obj) // API types always marshal
	annotations := maps.Clone(obj.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.AnnotationApplied] = hash
	obj.SetAnnotations(annotations)
	return obj
}

// Holds reports whether an object was made from what is wanted, and still is so: nobody changed what we set, or added to a
// spec that is ours as a whole. What others add elsewhere stays.
func Holds(seen, wanted client.Object) bool {
	return seen.GetAnnotations()[v1alpha1.AnnotationApplied] == wanted.GetAnnotations()[v1alpha1.AnnotationApplied] &&
		covers(reflect.ValueOf(seen), reflect.ValueOf(wanted)) && !drift.Has(seen, wanted)
}

// covers reports whether a value has all that another value of its type says. What the other one leaves open, such as the
// number of a node port, is the API server's to choose; only a boolean always says something.
//
// Each pass asks this of each fixture: equality.Semantic.DeepDerivative takes ten times as long, and numbers are never
// open for it.
func covers(seen, wanted reflect.Value) bool {
	switch wanted.Kind() {
	case reflect.Bool:
		return wanted.Bool() == seen.Bool()
	case reflect.Pointer:
		return wanted.IsNil() || !seen.IsNil() && covers(seen.Elem(), wanted.Elem())
	case reflect.Struct:
		return coversStruct(seen, wanted)
	case reflect.Slice:
		for i := range wanted.Len() {
			if i >= seen.Len() || !covers(seen.Index(i), wanted.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		return coversMap(seen, wanted)
	default:
		return wanted.IsZero() || wanted.Equal(seen)
	}
}

// coversStruct is covers for structs. Two quantities, or times, may be equal in different forms.
func coversStruct(seen, wanted reflect.Value) bool {
	if kind := wanted.Type(); kind == reflect.TypeFor[resource.Quantity]() || kind == reflect.TypeFor[metav1.Time]() {
		return wanted.IsZero() || equality.Semantic.DeepEqual(wanted.Interface(), seen.Interface())
	}
	for i := range wanted.NumField() {
		if !covers(seen.Field(i), wanted.Field(i)) {
			return false
		}
	}
	return true
}

func coversMap(seen, wanted reflect.Value) bool {
	for entry := wanted.MapRange(); entry.Next(); {
		if there := seen.MapIndex(entry.Key()); !there.IsValid() || !covers(there, entry.Value()) {
			return false
		}
	}
	return true
}
