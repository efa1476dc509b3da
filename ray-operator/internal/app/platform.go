package app

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// constraintsKind is the kind by which OpenShift says which users and groups pods may have.
var constraintsKind = schema.GroupVersionKind{Group: "security.openshift.io", Version: "v1", Kind: "SecurityContextConstraints"}

// assignsUsers reports whether the platform gives pods users and groups of a range of their namespace, as OpenShift does.
func assignsUsers(mapper meta.RESTMapper) (bool, error) {
	_, err := mapper.RESTMapping(constraintsKind.GroupKind(), constraintsKind.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find out whether this is OpenShift: %w", err)
	}
	return true, nil
}
