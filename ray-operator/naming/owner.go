package naming

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Controller returns an object's controller where that is of our group, and nil otherwise.
//
// Admission lets only the operator add such a reference. It does not judge references to other groups, which may have any UID.
func Controller(obj metav1.Object) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(obj)
	if owner == nil || !strings.HasPrefix(owner.APIVersion, v1beta1.GroupVersion.Group+"/") {
		return nil
	}
	return owner
}

// IsOwned reports whether the object's controller is of our group and has the UID.
func IsOwned(obj metav1.Object, owner types.UID) bool {
	controller := Controller(obj)
	return controller != nil && controller.UID == owner
}
