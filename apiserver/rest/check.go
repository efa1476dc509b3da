package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/heliostat-dev/heliostat/apiserver/problem"
	"github.com/heliostat-dev/heliostat/apiserver/spelling"
	"github.com/heliostat-dev/heliostat/apiserver/view"
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

// checkQuery returns what is wrong with the query of a request for a route.
func checkQuery(route *Route, raw string) error {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return problem.Bad("query", "cannot be parsed", "escape it as URLs are")
	}
	known := map[string]protoreflect.FieldDescriptor{}
	if route.Method == http.MethodGet {
		inPath := route.variables()
		for i := range route.input.Fields().Len() {
			field := route.input.Fields().Get(i)
			if !slices.Contains(inPath, string(field.Name())) {
				known[field.JSONName()] = field
			}
		}
	}
	for name, values := range query {
		field, is := known[name]
		if !is {
			return problem.Bad("query."+name, "is no parameter of this path", spelling.Remedy(name, slices.Sorted(maps.Keys(known))))
		}
		if len(values) > 1 && !field.IsList() {
			return problem.Bad("query."+name, "is given more than once", "give it once")
		}
		for _, value := range values {
			if err := checkText(field, value); err != nil {
				return problem.Bad("query."+name, err.Error(), "correct it")
			}
		}
	}
	return nil
}

// checkText returns why a text is no value of a field.
func checkText(field protoreflect.FieldDescriptor, value string) error {
	var err error
	switch field.Kind() {
	case protoreflect.BoolKind:
		if value != "true" && value != "false" {
			err = fmt.Errorf("must be true or false, and is %.80q", value)
		}
	case protoreflect.Int32Kind:
		_, err = strconv.ParseInt(value, 10, 32)
	case protoreflect.Int64Kind:
		_, err = strconv.ParseInt(value, 10, 64)
	}
	var number *strconv.NumError
	if errors.As(err, &number) {
		err = fmt.Errorf("must be a whole number, and is %.80q", value)
	}
	return err
}

// readBody returns the text of a body as JSON for a route, checked: "{}" where there is none.
func readBody(route *Route, contentType string, text []byte) ([]byte, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return []byte("{}"), nil
	}
	media, _, err := mime.ParseMediaType(contentType)
	switch {
	case err == nil && isManifests(route, media):
		return readManifests(text)
	case err != nil || media != "application/json":
		return nil, problem.New(http.StatusUnsupportedMediaType, "UnsupportedMediaType",
			"the body of the request is not declared as JSON",
			"send it as Content-Type: application/json")
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, problem.Bad("body", "is broken JSON: "+err.Error(), "send one JSON object")
	}
	if decoder.More() {
		return nil, problem.Bad("body", "has more than one JSON value", "send one JSON object")
	}
	return text, checkMessage(route.input, "", value, route.variables())
}

// isManifests reports whether a body of a media type is manifests for a route.
func isManifests(route *Route, media string) bool {
	return TakesManifests(*route) && media == "application/yaml"
}

// readManifests returns a body of manifests as the message that has them.
func readManifests(text []byte) ([]byte, error) {
	if !utf8.Valid(text) {
		return nil, problem.Bad("body", "is no UTF-8", "send it as UTF-8")
	}
	return json.Marshal(map[string]string{"manifests": string(text)})
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

// checkMessage returns where a JSON value is no message of the protocol, with its path.
func checkMessage(message protoreflect.MessageDescriptor, path string, value any, inPath []string) error {
	object, is := value.(map[string]any)
	if !is {
		return problem.Bad(at(path, ""), "must be an object", "send a JSON object")
	}
	if message.FullName() == "google.protobuf.Struct" {
		return checkNumbers(path, object)
	}
	for name, inner := range object {
		field := message.Fields().ByJSONName(name)
		if field == nil || slices.Contains(inPath, string(field.Name())) {
			return problem.Bad(at(path, name), "is no field here", spelling.Remedy(name, namesOf(message, inPath)))
		}
		if err := checkField(field, at(path, name), inner); err != nil {
			return err
		}
	}
	return nil
}

// checkNumbers returns where a number of an object is none that the protocol can have: it has numbers as doubles, and one that
// was rounded would be another one.
func checkNumbers(path string, value any) error {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if err := checkNumbers(at(path, name), inner); err != nil {
				return err
			}
		}
	case []any:
		for i, inner := range value {
			if err := checkNumbers(fmt.Sprintf("%s[%d]", path, i), inner); err != nil {
				return err
			}
		}
	case json.Number:
		number, err := value.Float64()
		if err != nil {
			return problem.Bad(path, "is a number that is too large", "give a smaller one")
		}
		if whole, err := value.Int64(); err == nil && (number >= 1<<63 || int64(number) != whole) {
			return problem.Bad(path, "is a whole number that cannot be kept exactly here",
				"use the path of Kubernetes' own API, or a number up to 9007199254740992")
		}
	}
	return nil
}

func at(path, name string) string {
	switch {
	case path == "" && name == "":
		return "body"
	case path == "":
		return name
	case name == "":
		return path
	}
	return path + "." + name
}

func checkField(field protoreflect.FieldDescriptor, path string, value any) error {
	switch {
	case value == nil:
		return nil
	case field.IsMap():
		object, is := value.(map[string]any)
		if !is {
			return problem.Bad(path, "must be an object", "send a JSON object")
		}
		for name, inner := range object {
			if err := checkValue(field.MapValue(), at(path, name), inner); err != nil {
				return err
			}
		}
		return nil
	case field.IsList():
		list, is := value.([]any)
		if !is {
			return problem.Bad(path, "must be a list", "send a JSON array")
		}
		for i, inner := range list {
			if err := checkValue(field, fmt.Sprintf("%s[%d]", path, i), inner); err != nil {
				return err
			}
		}
		return nil
	}
	return checkValue(field, path, value)
}

func checkValue(field protoreflect.FieldDescriptor, path string, value any) error {
	number, isNumber := value.(json.Number)
	_, isText := value.(string)
	_, isBool := value.(bool)
	switch field.Kind() {
	case protoreflect.MessageKind:
		return checkMessage(field.Message(), path, value, nil)
	case protoreflect.StringKind:
		if !isText {
			return problem.Bad(path, "must be a text", "put it into quotes")
		}
	case protoreflect.BoolKind:
		if !isBool {
			return problem.Bad(path, "must be true or false", "give one of them, without quotes")
		}
	case protoreflect.DoubleKind:
		if !isNumber {
			return problem.Bad(path, "must be a number", "give one, without quotes")
		}
	case protoreflect.Int32Kind, protoreflect.Int64Kind:
		whole, err := strconv.ParseInt(number.String(), 10, 64)
		if !isNumber || err != nil || field.Kind() == protoreflect.Int32Kind && (whole > math.MaxInt32 || whole < math.MinInt32) {
			return problem.Bad(path, "must be a whole number", "give one, without quotes")
		}
	}
	return nil
}

// namesOf are the JSON names of a message's fields but those that are in the path.
func namesOf(message protoreflect.MessageDescriptor, inPath []string) []string {
	var names []string
	for i := range message.Fields().Len() {
		if field := message.Fields().Get(i); !slices.Contains(inPath, string(field.Name())) {
			names = append(names, field.JSONName())
		}
	}
	return names
}
