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

const (
	// MaxBody is how many bytes the body of a request may have that brings an object, a job or manifests, and smallBody those of
	// all others. No spec that the rules accept needs more.
	MaxBody   = 1 << 20
	smallBody = 64 << 10
	// MaxDepth is how deep the values of a body may lie, and MaxValues how many there may be: each becomes hundreds of bytes.
	MaxDepth  = 64
	MaxValues = 50_000
)

// maxBodyOf returns how many bytes the body of a call may have, or its message.
func maxBodyOf(call string) int64 {
	switch call {
	case callCreate, callConvert, "CreateSubmission":
		return MaxBody
	}
	return smallBody
}

// Forms of what stands in a path.
var (
	namespaceForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	nameForm      = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)
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
		"id":        {idForm, "give up to 253 letters, digits, '.', '_' and '-'"},
	}
	for _, name := range []string{"namespace", "name", "id"} {
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

// countJSON returns how many values a JSON text has at most, or why it is not read: it has too many, or they lie too deep. It
// recurses not at all, whatever the text.
func countJSON(text []byte) (values int, err error) {
	depth, inString, escaped := 0, false, false
	for _, b := range text {
		switch {
		case escaped:
			escaped = false
		case inString && b == '\\':
			escaped = true
		case b == '"':
			inString = !inString
		case inString:
		case b == '{' || b == '[':
			values++
			if depth++; depth > MaxDepth {
				return 0, tooDeep()
			}
		case b == ',':
			values++
		case b == '}' || b == ']':
			depth--
		}
		if values > MaxValues {
			return 0, tooMany()
		}
	}
	return values, nil
}

// tooDeep returns that what was sent is deeper than it may be.
func tooDeep() error {
	return problem.Bad("body", fmt.Sprintf("has values deeper than %d", MaxDepth), "send a flatter one")
}
