package reconcile

import (
	"context"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/drift"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// Presence is what is known of an object of a fixed name.
type Presence int

const (
	// Absent: nothing has the name.
	Absent Presence = iota
	// Ours: it is there and belongs to its owner.
	Ours
	// Terminating: it belongs to its owner, or to a former one of that name, and goes.
	Terminating
	// Foreign: it is there and belongs to someone else.
	Foreign
)

// PresenceOf returns what a read of an object says of it, where it must belong to an owner.
func PresenceOf(err error, obj client.Object, owner *metav1.OwnerReference) (Presence, error) {
	switch {
	case apierrors.IsNotFound(err):
		return Absent, nil
	case err != nil:
		return Absent, err
	case kube.IsPredecessors(obj, *owner):
		return Terminating, nil
	case !naming.IsOwned(obj, owner.UID):
		return Foreign, nil
	case obj.GetDeletionTimestamp() != nil:
		return Terminating, nil
	default:
		return Ours, nil
	}
}

// Fixture is what stands under the name of a fixture.
type Fixture struct {
	Presence Presence
	// Object is the cache's own, not to be changed; nil where there is none.
	Object client.Object
}

// Act is what to do about an object of a fixed name.
type Act int

const (
	// Make creates it.
	Make Act = iota
	// Mend applies what is wanted of it.
	Mend
	// Remove deletes it.
	Remove
)

// String returns the verb.
func (a Act) String() string { return [...]string{"create", "mend", "delete"}[a] }

// FixtureChange is what to do about one object of a fixed name.
type FixtureChange struct {
	Act  Act
	Kind string
	// Wanted is nil where it is removed, Seen where it is made.
	Wanted, Seen client.Object
	// Event is told once it was done, if not nil.
	Event *telemetry.Event
}

// String returns what is done in words.
func (f FixtureChange) String() string { return f.Act.String() + " " + f.Kind }

// Write does what must be done.
func (f FixtureChange) Write(ctx context.Context, writer *kube.Writer) error {
	switch f.Act {
	case Make:
		_, err := writer.Create(ctx, f.Wanted)
		return err
	case Mend:
		return writer.Mend(ctx, f.Seen, f.Wanted)
	default:
		return writer.Delete(ctx, f.Seen, nil)
	}
}

// Fix returns what to do about what stands where something is wanted, or nothing where wanted is nil. It is none where
// it holds already, and where another's object has the name, or one that is yet to go.
func Fix(kind string, standing Fixture, wanted client.Object, holds func(seen, wanted client.Object) bool) []FixtureChange {
	switch {
	case wanted == nil && standing.Presence == Ours:
		return []FixtureChange{{Act: Remove, Kind: kind, Seen: standing.Object}}
	case wanted == nil:
	case standing.Presence == Absent:
		return []FixtureChange{{Act: Make, Kind: kind, Wanted: Marked(wanted)}}
	case standing.Presence == Ours:
		marked := Marked(wanted)
		drift.Complete(standing.Object, marked)
		if !holds(standing.Object, marked) {
			return []FixtureChange{{Act: Mend, Kind: kind, Wanted: marked, Seen: standing.Object}}
		}
	}
	return nil
}

// Marked notes on an object what it was made from.
func Marked(obj client.Object) client.Object {
	hash, _ := naming.ObjectHash(obj) // API types always marshal
	annotations := maps.Clone(obj.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1beta1.AnnotationApplied] = hash
	obj.SetAnnotations(annotations)
	return obj
}

// Holds reports whether an object was made from what is wanted, and still is so: nobody changed what we set, or added to a
// spec that is ours as a whole. What others add elsewhere stays.
func Holds(seen, wanted client.Object) bool {
	return seen.GetAnnotations()[v1beta1.AnnotationApplied] == wanted.GetAnnotations()[v1beta1.AnnotationApplied] &&
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
