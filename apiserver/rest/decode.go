package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/heliostat-dev/heliostat/apiserver/spelling"
	"github.com/heliostat-dev/heliostat/portal/problem"
)

// readBody reads a body, whose values were counted, into the message of a route. An empty one leaves the message as it is.
func readBody(route *Route, into proto.Message, contentType string, text []byte) error {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	media, _, err := mime.ParseMediaType(contentType)
	switch {
	case err == nil && isManifests(route, media):
		return readManifests(into.ProtoReflect(), text)
	case err != nil || media != "application/json":
		return problem.New(http.StatusUnsupportedMediaType, "UnsupportedMediaType",
			"the body of the request is not declared as JSON",
			"send it as Content-Type: application/json")
	}
	var whole json.RawMessage
	decoder := json.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&whole); err != nil {
		return brokenJSON(err)
	}
	if rest := text[decoder.InputOffset():]; len(bytes.Trim(rest, " \t\r\n")) > 0 {
		return problem.Bad("body", "has more than one JSON value", "send one JSON object")
	}
	if !utf8.Valid(whole) {
		return notUTF8()
	}
	if hasHalf(whole) {
		return problem.Bad("body", `has an escape such as \ud800 that is half of a letter`, "send both halves, or the letter itself")
	}
	r := jsonReader{json.NewDecoder(bytes.NewReader(whole))}
	r.tokens.UseNumber()
	first, err := r.next()
	if err == nil {
		err = r.message(first, into.ProtoReflect(), route.variables())
	}
	var found *misfit
	if errors.As(err, &found) {
		return found.problem()
	}
	return err
}

// isManifests reports whether a body of a media type is manifests for a route.
func isManifests(route *Route, media string) bool {
	return TakesManifests(*route) && media == "application/yaml"
}

// readManifests reads a body of manifests into the message that has them.
func readManifests(into protoreflect.Message, text []byte) error {
	if !utf8.Valid(text) {
		return notUTF8()
	}
	into.Set(into.Descriptor().Fields().ByName("manifests"), protoreflect.ValueOfString(string(text)))
	return nil
}

func notUTF8() error { return problem.Bad("body", "is no UTF-8", "send it as UTF-8") }

func brokenJSON(err error) error {
	return problem.Bad("body", "is broken JSON: "+err.Error(), "send one JSON object")
}

// hasHalf reports whether a JSON text that is whole has one surrogate without the other, for which Go would read another letter.
func hasHalf(text []byte) bool {
	for {
		_, escape, is := bytes.Cut(text, []byte(`\`))
		if !is {
			return false
		}
		first := surrogate(escape)
		if text = escape[1:]; first == 0 {
			continue
		}
		second, is := bytes.CutPrefix(escape[len("ud800"):], []byte(`\`))
		if !is || utf16.DecodeRune(first, surrogate(second)) == utf8.RuneError {
			return true
		}
		text = second[len("udc00"):]
	}
}

// surrogate returns the surrogate of an escape of a JSON text, which is given without its backslash, or 0 for another letter.
func surrogate(escape []byte) rune {
	if escape[0] != 'u' {
		return 0
	}
	unit, _ := strconv.ParseUint(string(escape[1:len("ud800")]), 16, 16) // the text is whole
	if !utf16.IsSurrogate(rune(unit)) {
		return 0
	}
	return rune(unit)
}

// misfit is a value that the protocol does not have at its place. Its path is put together only where a reading fails.
type misfit struct{ path, fact, remedy string }

// Error implements error.
func (m *misfit) Error() string { return m.path + ": " + m.fact }

func (m *misfit) problem() error {
	if m.path == "" {
		return problem.Bad("body", m.fact, m.remedy)
	}
	return problem.Bad(m.path, m.fact, m.remedy)
}

// at returns an error of reading a value with the value's name, or its place in a list, in the path.
func at(name string, err error) error {
	var found *misfit
	if !errors.As(err, &found) {
		return err
	}
	if name = shown(name); found.path != "" && !strings.HasPrefix(found.path, "[") {
		name += "."
	}
	return &misfit{name + found.path, found.fact, found.remedy}
}

// maxShown is how many bytes of a name are repeated: the path of a value below many has all of theirs.
const maxShown = 253

// shown returns a name as far as it is repeated.
func shown(name string) string {
	if len(name) <= maxShown {
		return name
	}
	return strings.ToValidUTF8(name[:maxShown], "") + "…"
}

// jsonReader reads a JSON text that is whole, value by value, into messages. Its methods are given the first token of a value.
type jsonReader struct{ tokens *json.Decoder }

func (r jsonReader) next() (json.Token, error) {
	token, err := r.tokens.Token()
	if err != nil {
		return nil, brokenJSON(err)
	}
	return token, nil
}

// members reads the values of an object by their names, each of which may be there once.
func members[T any](r jsonReader, read func(name string, first json.Token) (T, error)) (map[string]T, error) {
	all := map[string]T{}
	for r.tokens.More() {
		token, err := r.next()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string) // JSON has nothing else there
		if _, is := all[name]; is {
			return nil, at(name, &misfit{"", "is given more than once", "give it once"})
		}
		first, err := r.next()
		if err != nil {
			return nil, err
		}
		if all[name], err = read(name, first); err != nil {
			return nil, at(name, err)
		}
	}
	_, err := r.next() // the end of the object
	return all, err
}

// elements reads the values of a list.
func (r jsonReader) elements(read func(first json.Token) error) error {
	for i := 0; r.tokens.More(); i++ {
		first, err := r.next()
		if err == nil {
			err = read(first)
		}
		if err != nil {
			return at("["+strconv.Itoa(i)+"]", err)
		}
	}
	_, err := r.next() // the end of the list
	return err
}

// message reads an object into a message. Fields that are in the path of the request are none of it.
func (r jsonReader) message(first json.Token, into protoreflect.Message, inPath []string) error {
	if first != json.Delim('{') {
		return &misfit{"", "must be an object", "send a JSON object"}
	}
	if object, is := into.Interface().(*structpb.Struct); is {
		var err error
		object.Fields, err = members(r, func(_ string, first json.Token) (*structpb.Value, error) { return r.any(first) })
		return err
	}
	fields := into.Descriptor().Fields()
	_, err := members(r, func(name string, first json.Token) (struct{}, error) {
		field := fields.ByJSONName(name)
		if field == nil || slices.Contains(inPath, string(field.Name())) {
			return struct{}{}, &misfit{"", "is no field here", spelling.Remedy(name, namesOf(into.Descriptor(), inPath))}
		}
		return struct{}{}, r.field(first, into, field)
	})
	return err
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

// field reads a value into a field. null leaves it as it is.
func (r jsonReader) field(first json.Token, into protoreflect.Message, field protoreflect.FieldDescriptor) error {
	switch {
	case first == nil:
		return nil
	case field.IsMap():
		if first != json.Delim('{') {
			return &misfit{"", "must be an object", "send a JSON object"}
		}
		all := into.Mutable(field).Map()
		_, err := members(r, func(name string, first json.Token) (struct{}, error) {
			value, err := scalar(first, field.MapValue())
			if err == nil {
				all.Set(protoreflect.ValueOfString(name).MapKey(), value)
			}
			return struct{}{}, err
		})
		return err
	case field.IsList():
		if first != json.Delim('[') {
			return &misfit{"", "must be a list", "send a JSON array"}
		}
		all := into.Mutable(field).List()
		return r.elements(func(first json.Token) error {
			value, err := scalar(first, field)
			if err == nil {
				all.Append(value)
			}
			return err
		})
	case field.Message() != nil:
		return r.message(first, into.Mutable(field).Message(), nil)
	}
	value, err := scalar(first, field)
	if err == nil {
		into.Set(field, value)
	}
	return err
}

// scalar returns a value of a field, of a map or of a list that is no message. No body has lists or maps of messages.
func scalar(token json.Token, of protoreflect.FieldDescriptor) (protoreflect.Value, error) {
	number, isNumber := token.(json.Number)
	switch of.Kind() {
	case protoreflect.StringKind:
		if text, is := token.(string); is {
			return protoreflect.ValueOfString(text), nil
		}
		return protoreflect.Value{}, &misfit{"", "must be a text", "put it into quotes"}
	case protoreflect.BoolKind:
		if is, isBool := token.(bool); isBool {
			return protoreflect.ValueOfBool(is), nil
		}
		return protoreflect.Value{}, &misfit{"", "must be true or false", "give one of them, without quotes"}
	case protoreflect.DoubleKind:
		if !isNumber {
			return protoreflect.Value{}, &misfit{"", "must be a number", "give one, without quotes"}
		}
		value, err := number.Float64()
		if err != nil {
			return protoreflect.Value{}, tooLarge()
		}
		return protoreflect.ValueOfFloat64(value), nil
	}
	whole, err := strconv.ParseInt(number.String(), 10, 64)
	switch {
	case !isNumber || err != nil:
	case of.Kind() == protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(whole), nil
	case whole >= math.MinInt32 && whole <= math.MaxInt32:
		return protoreflect.ValueOfInt32(int32(whole)), nil
	}
	return protoreflect.Value{}, &misfit{"", "must be a whole number", "give one, without quotes"}
}

func tooLarge() error { return &misfit{"", "is a number that is too large", "give a smaller one"} }

// any returns any value.
func (r jsonReader) any(first json.Token) (*structpb.Value, error) {
	switch first := first.(type) {
	case bool:
		return structpb.NewBoolValue(first), nil
	case string:
		return structpb.NewStringValue(first), nil
	case json.Number:
		number, err := exactNumber(first)
		return structpb.NewNumberValue(number), err
	case json.Delim:
		if first == '{' {
			fields, err := members(r, func(_ string, first json.Token) (*structpb.Value, error) { return r.any(first) })
			return structpb.NewStructValue(&structpb.Struct{Fields: fields}), err
		}
		list := &structpb.ListValue{}
		err := r.elements(func(first json.Token) error {
			value, err := r.any(first)
			list.Values = append(list.Values, value)
			return err
		})
		return structpb.NewListValue(list), err
	}
	return structpb.NewNullValue(), nil
}

// exactNumber returns a number that the protocol can have: it has numbers as doubles, and one that was rounded would be another one.
func exactNumber(text json.Number) (float64, error) {
	number, err := text.Float64()
	if err != nil {
		return 0, tooLarge()
	}
	if whole, err := text.Int64(); err == nil && (number >= 1<<63 || int64(number) != whole) {
		return 0, &misfit{"", "is a whole number that cannot be kept exactly here",
			"use the path of Kubernetes' own API, or a number up to 9007199254740992"}
	}
	return number, nil
}

// readQuery reads the query of a request for a route into its message.
func readQuery(route *Route, into protoreflect.Message, values map[string][]string) error {
	inPath := route.variables()
	for name, given := range values {
		field := into.Descriptor().Fields().ByJSONName(name)
		if route.Method != http.MethodGet || field == nil || slices.Contains(inPath, string(field.Name())) {
			return problem.Bad("query."+name, "is no parameter of this path", spelling.Remedy(name, parametersOf(route)))
		}
		if len(given) > 1 && !field.IsList() {
			return problem.Bad("query."+name, "is given more than once", "give it once")
		}
		for _, text := range given {
			value, err := parseText(field, text)
			if err != nil {
				return problem.Bad("query."+name, err.Error(), "correct it")
			}
			if field.IsList() {
				into.Mutable(field).List().Append(value)
			} else {
				into.Set(field, value)
			}
		}
	}
	return nil
}

// parametersOf returns the names that the query of a route may have, in order.
func parametersOf(route *Route) []string {
	if route.Method != http.MethodGet {
		return nil
	}
	names := namesOf(route.message.Descriptor(), route.variables())
	slices.Sort(names)
	return names
}

// parseText returns the value of a field from a text of the query, or an error that says what the text must be.
func parseText(field protoreflect.FieldDescriptor, text string) (protoreflect.Value, error) {
	switch field.Kind() {
	case protoreflect.BoolKind:
		if text != "true" && text != "false" {
			return protoreflect.Value{}, fmt.Errorf("must be true or false, and is %.80q", text)
		}
		return protoreflect.ValueOfBool(text == "true"), nil
	case protoreflect.Int32Kind:
		if number, err := strconv.ParseInt(text, 10, 32); err == nil {
			return protoreflect.ValueOfInt32(int32(number)), nil
		}
	case protoreflect.Int64Kind:
		if number, err := strconv.ParseInt(text, 10, 64); err == nil {
			return protoreflect.ValueOfInt64(number), nil
		}
	default:
		return protoreflect.ValueOfString(text), nil
	}
	return protoreflect.Value{}, fmt.Errorf("must be a whole number, and is %.80q", text)
}
