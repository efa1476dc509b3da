package pass

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/naming"
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

// Holds tells whether an object was made from what is wanted, and still is so: nobody
// changed what we set. What others added stays.
func Holds(seen, wanted client.Object) bool {
	return seen.GetAnnotations()[v1alpha1.AnnotationApplied] == wanted.GetAnnotations()[v1alpha1.AnnotationApplied] &&
		setBySomeone.DeepDerivative(wanted, seen)
}

// setBySomeone compares what we say; a number or time that we leave open, such as a node
// port, is the API server's to choose.
var setBySomeone = func() conversion.Equalities {
	compare := equality.Semantic.Copy()
	err := compare.AddFuncs(
		func(wanted, seen int32) bool { return wanted == 0 || wanted == seen },
		func(wanted, seen int64) bool { return wanted == 0 || wanted == seen },
		func(wanted, seen metav1.Time) bool { return wanted.IsZero() || wanted.Equal(&seen) },
	)
	if err != nil {
		panic(err) // the functions have the form that is asked for
	}
	return compare
}()
