package rest

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"

	"github.com/heliostat-dev/heliostat/apiserver/spelling"
	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/portal/problem"
)

// Forms of what stands in a path.
var (
	namespaceForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	nameForm      = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)
	uidForm       = regexp.MustCompile(`^[0-9a-z][-0-9a-z]{0,62}$`)
	idForm        = regexp.MustCompile(`^[A-Za-z0-9][-A-Za-z0-9._]{0,252}$`)
)

// checkPath returns what is wrong with the values of a path.
func checkPath(values map[string]string) error {
	forms := map[string]struct {
		form   *regexp.Regexp
		remedy string
	}{
		"namespace": {namespaceForm, "give up to 63 lower-case letters, digits and '-'"},
		"name":      {nameForm, "give up to 253 lower-case letters, digits, '-' and '.'"},
		"uid":       {uidForm, "give a UID as Kubernetes writes it"},
		"id":        {idForm, "give up to 253 letters, digits, '.', '_' and '-'"},
	}
	for _, name := range []string{"namespace", "name", "id", "uid"} {
		value, is := values[name]
		if is && !forms[name].form.MatchString(value) {
			return problem.Bad(name, fmt.Sprintf("%.80q cannot be one", value), forms[name].remedy)
		}
	}
	if kind, is := values["kind"]; is && !slices.Contains(view.Kinds(), kind) {
		return problem.New(http.StatusNotFound, "NotFound", fmt.Sprintf("the kind %.80q is not served", kind),
			spelling.Remedy(kind, view.Kinds()))
	}
	return nil
}
