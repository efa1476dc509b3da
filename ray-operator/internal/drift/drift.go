// Package drift finds what somebody added to an object of ours whose spec is ours as a whole:
// a rule of a NetworkPolicy, a port of a Service, a backend of an Ingress.
//
// In: an object as it was seen and as it is wanted. Out: whether its spec has more than is wanted,
// and the change that takes that away.
//
// It must never count what the API server or a controller of Kubernetes fills in, never look at
// metadata, where others may add what they like, and never write.
package drift

import (
	"cmp"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// isWhole reports whether the spec of an object of this kind is ours as a whole.
func isWhole(obj client.Object) bool {
	switch obj.(type) {
	case *networkingv1.NetworkPolicy, *networkingv1.Ingress, *corev1.Service, *policyv1.PodDisruptionBudget:
		return true
	default:
		return false
	}
}

// isFilled reports whether Kubernetes fills a field in where it is left out.
func isFilled(field string) bool {
	switch strings.ToLower(field) {
	case "protocol", "targetport", "nodeport", // of ports
		"type", "clusterip", "clusterips", "ipfamilies", "ipfamilypolicy", "internaltrafficpolicy", "externaltrafficpolicy",
		"sessionaffinity", "sessionaffinityconfig", "allocateloadbalancernodeports", "healthchecknodeport", "loadbalancerclass",
		"ingressclassname", "pathtype", "policytypes", "unhealthypodevictionpolicy":
		return true
	default:
		return false
	}
}

// Complete adds the second IP family that the API server gave a Service to what is wanted of it. Where the policy is
// dual-stack, the API server refuses to have the first one alone again.
func Complete(seen, wanted client.Object) {
	there, isService := seen.(*corev1.Service)
	if !isService {
		return
	}
	has, wants := &there.Spec, &wanted.(*corev1.Service).Spec //nolint:forcetypeassert // one kind stands for the other
	policy := cmp.Or(wants.IPFamilyPolicy, has.IPFamilyPolicy)
	if policy == nil || *policy == corev1.IPFamilyPolicySingleStack || len(wants.IPFamilies) != 1 || len(has.IPFamilies) != 2 {
		return
	}
	second := has.IPFamilies[1]
	if second == wants.IPFamilies[0] { // of a headless Service, whose first family can change
		second = has.IPFamilies[0]
	}
	wants.IPFamilies = append(wants.IPFamilies, second)
}

// Has reports whether the spec of an object has more than is wanted.
func Has(seen, wanted client.Object) bool {
	if !isWhole(wanted) {
		return false
	}
	spec := func(obj client.Object) reflect.Value { return reflect.ValueOf(obj).Elem().FieldByName("Spec") }
	return exceeds(spec(seen), spec(wanted))
}

// exceeds reports whether a value has something that another value of its type leaves out.
func exceeds(seen, wanted reflect.Value) bool {
	switch seen.Kind() {
	case reflect.Pointer:
		return !seen.IsNil() && (wanted.IsNil() || exceeds(seen.Elem(), wanted.Elem()))
	case reflect.Struct:
		return structExceeds(seen, wanted)
	case reflect.Slice:
		if seen.Len() > wanted.Len() {
			return true
		}
		for i := range seen.Len() {
			if exceeds(seen.Index(i), wanted.Index(i)) {
				return true
			}
		}
		return false
	case reflect.Map:
		return seen.Len() > wanted.Len()
	default:
		return wanted.IsZero() && !seen.IsZero()
	}
}

func structExceeds(seen, wanted reflect.Value) bool {
	if kind := seen.Type(); kind == reflect.TypeFor[resource.Quantity]() || kind == reflect.TypeFor[metav1.Time]() {
		return false
	}
	for i := range seen.NumField() {
		if wanted.Field(i).IsZero() && isFilled(seen.Type().Field(i).Name) {
			continue
		}
		if exceeds(seen.Field(i), wanted.Field(i)) {
			return true
		}
	}
	return false
}

// Excess returns what a merge patch of the spec must say to take away what is not wanted there, nil where there is
// nothing. It is for what a server-side apply leaves in place: fields that we never set, and entries in lists that
// others may add to. The fields are in the form of JSON.
func Excess(obj client.Object, seen, wanted map[string]any) map[string]any {
	if !isWhole(obj) {
		return nil
	}
	there, _ := seen["spec"].(map[string]any)
	ours, _ := wanted["spec"].(map[string]any)
	var change map[string]any
	set := func(field string, value any) {
		if change == nil {
			change = map[string]any{}
		}
		change[field] = value
	}
	for field, value := range there {
		want, given := ours[field]
		items, isList := value.([]any)
		fewer, _ := want.([]any)
		switch {
		case !given && !isFilled(field):
			set(field, nil)
		case field == "ports" && isList && len(items) > len(fewer): // of a Service; an apply replaces other lists as a whole
			set(field, want)
		}
	}
	return change
}
