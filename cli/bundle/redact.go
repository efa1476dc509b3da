package bundle

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// leftOut stands where something was that nobody else may read.
	leftOut = "(left out)"
	// shortest is how long a value is at least that is looked for in texts. A shorter one is in too many words.
	shortest = 6
	// keyVariables is where Ray's runtime environments have variables.
	keyVariables = "env_vars"
)

// redactor knows what must not stand in a bundle: values of variables, tokens and Secrets.
type redactor struct {
	// forms are all that values look like in texts.
	forms    map[string]bool
	replacer *strings.Replacer
}

// add adds what must not stand in any text: a value, and each of its lines, as programs write them.
func (r *redactor) add(value string) {
	if r.forms == nil {
		r.forms = map[string]bool{}
	}
	r.replacer = nil
	for _, part := range append(strings.Split(value, "\n"), value) {
		trimmed := strings.TrimSpace(part)
		if len(trimmed) < shortest {
			continue
		}
		for _, form := range append(formsOf(trimmed), formsOf(part)...) {
			r.forms[form] = true
		}
	}
}

// addSecret adds the value of a Secret, and the values that stand in it.
func (r *redactor) addSecret(value string) {
	for _, one := range append(partsOf(value), value) {
		r.add(one)
	}
}

// formsOf returns how programs write a value: as it is, in quotes of several languages, in base64, and in an address.
func formsOf(value string) []string {
	text := []byte(value)
	escaped := strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`) // as Python does where it needs no quotes
	shell := strings.NewReplacer(`'`, `'\''`)
	return []string{value, inJSON(value, true), inJSON(value, false), unquote(strconv.QuoteToASCII(value)),
		escaped.Replace(value), strings.ReplaceAll(escaped.Replace(value), `'`, `\'`), shell.Replace(value), base64.StdEncoding.EncodeToString(text),
		base64.RawStdEncoding.EncodeToString(text), base64.URLEncoding.EncodeToString(text),
		base64.RawURLEncoding.EncodeToString(text), url.QueryEscape(value), url.PathEscape(value)}
}

// inJSON returns a value as JSON has it, without the quotes around it.
func inJSON(value string, escapesHTML bool) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(escapesHTML)
	if err := encoder.Encode(value); err != nil {
		return value // a string has no part that JSON lacks
	}
	return unquote(strings.TrimSuffix(out.String(), "\n"))
}

func unquote(quoted string) string { return quoted[1 : len(quoted)-1] }

// clean returns a text without what must not stand in it. Of values that begin alike the longest is left out.
func (r *redactor) clean(text string) string {
	if r.replacer == nil {
		longestFirst := func(a, b string) int { return cmp.Compare(len(b), len(a)) }
		var pairs []string
		for _, form := range slices.SortedFunc(maps.Keys(r.forms), longestFirst) {
			pairs = append(pairs, form, leftOut)
		}
		r.replacer = strings.NewReplacer(pairs...)
	}
	return r.replacer.Replace(text)
}

// cleanAll returns fields of an object with each text in them cleaned. YAML would write a text otherwise than it is, so this
// comes before.
func (r *redactor) cleanAll(fields any) any {
	switch fields := fields.(type) {
	case string:
		return r.clean(fields)
	case []any:
		for i, one := range fields {
			fields[i] = r.cleanAll(one)
		}
	case map[string]any:
		for key, value := range fields {
			fields[key] = r.cleanAll(value)
		}
	}
	return fields
}

// learn takes the values of variables out of an object, with what says the same twice.
func (r *redactor) learn(object *unstructured.Unstructured) {
	object.SetManagedFields(nil)
	annotations := object.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	object.SetAnnotations(annotations)
	r.learnFrom(object.Object)
}

func (r *redactor) learnFrom(fields any) {
	walk(fields, func(key string, value any) {
		switch variables := value.(type) {
		case []any: // as Kubernetes writes variables
			for _, one := range variables {
				if variable, is := one.(map[string]any); is && key == "env" {
					r.take(variable, "value")
				}
			}
		case map[string]any: // as Ray does
			for name := range variables {
				if key == keyVariables {
					r.take(variables, name)
				}
			}
		}
	})
}

func (r *redactor) take(of map[string]any, key string) {
	if value := of[key]; value != nil && value != "" {
		r.add(fmt.Sprint(value))
		of[key] = leftOut
	}
}

// walk visits each field of an object, at any depth.
func walk(fields any, visit func(key string, value any)) {
	switch fields := fields.(type) {
	case []any:
		for _, one := range fields {
			walk(one, visit)
		}
	case map[string]any:
		for key, value := range fields {
			visit(key, value)
			walk(value, visit)
		}
	}
}
