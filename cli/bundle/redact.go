package bundle

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// leftOut stands where something was that nobody else may read.
	leftOut = "(left out)"
	// shortest is how long a value is at least that is looked for in texts. A shorter one is in too many words.
	shortest = 6
)

// redactor knows what must not stand in a bundle: values of variables and tokens.
type redactor struct{ secrets []string }

// add adds what must not stand in any text.
func (r *redactor) add(secret string) {
	if secret = strings.TrimSpace(secret); len(secret) >= shortest && !slices.Contains(r.secrets, secret) {
		r.secrets = append(r.secrets, secret)
		// The longest first: one may be a part of another.
		slices.SortStableFunc(r.secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	}
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
	switch fields := fields.(type) {
	case []any:
		for _, one := range fields {
			r.learnFrom(one)
		}
	case map[string]any:
		for key, value := range fields {
			switch variables := value.(type) {
			case []any:
				if key == "env" {
					r.takeList(variables)
				}
			case map[string]any:
				if key == "env_vars" {
					r.takeMap(variables)
				}
			}
			r.learnFrom(value)
		}
	}
}

// takeList takes the values of variables as Kubernetes writes them.
func (r *redactor) takeList(variables []any) {
	for _, one := range variables {
		if variable, is := one.(map[string]any); is {
			r.take(variable, "value")
		}
	}
}

// takeMap takes the values of variables as Ray writes them.
func (r *redactor) takeMap(variables map[string]any) {
	for name := range variables {
		r.take(variables, name)
	}
}

func (r *redactor) take(of map[string]any, key string) {
	if value, is := of[key].(string); is && value != "" {
		r.add(value)
		of[key] = leftOut
	}
}

// clean returns a text without what must not stand in it.
func (r *redactor) clean(text string) string {
	for _, secret := range r.secrets {
		text = strings.ReplaceAll(text, secret, leftOut)
	}
	return text
}
