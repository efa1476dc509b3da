package kube

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestLeavesOut_SaysWhetherAFieldGoes(t *testing.T) {
	wanted := map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"a": "b"}, "ownerReferences": []any{map[string]any{"uid": "1", "name": "x"}}},
		"spec":     map[string]any{"ingress": []any{}, "ports": []any{map[string]any{"port": int64(8080), "protocol": "TCP", "name": "m"}}, "names": []any{"a"}},
	}
	for name, c := range map[string]struct {
		fields string
		goes   bool
	}{
		"nothing owned":             {`{}`, false},
		"all that is wanted":        {`{"f:metadata":{"f:labels":{".":{},"f:a":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"1\"}":{".":{},"f:name":{}}}},"f:spec":{"f:ingress":{}}}`, false},
		"an item by a number":       {`{"f:spec":{"f:ports":{"k:{\"port\":8080,\"protocol\":\"TCP\"}":{"f:name":{}}}}}`, false},
		"a field":                   {`{"f:spec":{"f:egress":{}}}`, true},
		"a label":                   {`{"f:metadata":{"f:labels":{"f:other":{}}}}`, true},
		"an item":                   {`{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"2\"}":{}}}}`, true},
		"a field of an item":        {`{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"1\"}":{"f:controller":{}}}}}`, true},
		"an item by another number": {`{"f:spec":{"f:ports":{"k:{\"port\":8081,\"protocol\":\"TCP\"}":{}}}}`, true},
		"by value, as nobody looks": {`{"f:spec":{"f:names":{"v:\"a\"":{}}}}`, true},
		"what does not parse":       {`{`, true},
	} {
		entry := metav1.ManagedFieldsEntry{Manager: FieldOwner, Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(c.fields)}
		if got := leavesOut([]metav1.ManagedFieldsEntry{entry}, wanted); got != c.goes {
			t.Errorf("%s: %t", name, got)
		}
		for other, change := range map[string]func(*metav1.ManagedFieldsEntry){
			"another's":   func(e *metav1.ManagedFieldsEntry) { e.Manager = "kubectl" },
			"the apply's": func(e *metav1.ManagedFieldsEntry) { e.Operation = metav1.ManagedFieldsOperationApply },
			"the status":  func(e *metav1.ManagedFieldsEntry) { e.Subresource = "status" },
		} {
			changed := entry
			if change(&changed); leavesOut([]metav1.ManagedFieldsEntry{changed}, wanted) {
				t.Errorf("%s of %s counts", name, other)
			}
		}
	}
}
