package app

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// brokenMapper fails as one whose API server does not answer.
type brokenMapper struct{ meta.RESTMapper }

func (brokenMapper) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, errors.New("connection refused")
}

// TestAssignsUsers_IsOfOpenShift: where its constraints are an API, and not where nobody can tell.
func TestAssignsUsers_IsOfOpenShift(t *testing.T) {
	t.Parallel()
	plain, openshift := meta.NewDefaultRESTMapper(nil), meta.NewDefaultRESTMapper(nil)
	openshift.Add(schema.GroupVersionKind{Group: "security.openshift.io", Version: "v1", Kind: "SecurityContextConstraints"}, meta.RESTScopeRoot)
	for name, c := range map[string]struct {
		mapper meta.RESTMapper
		is     bool
		fails  bool
	}{
		"plain Kubernetes":              {plain, false, false},
		"OpenShift":                     {openshift, true, false},
		"an API server without answers": {brokenMapper{}, false, true},
	} {
		is, err := assignsUsers(c.mapper)
		if is != c.is || (err != nil) != c.fails {
			t.Errorf("%s: %t, %v", name, is, err)
		}
	}
}
