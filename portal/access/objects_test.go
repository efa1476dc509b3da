package access_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/access/accesstest"
)

// TestCreateObject_IsSentOnce although the API server says when to come again: the object may have been created.
func TestCreateObject_IsSentOnce(t *testing.T) {
	upstream := accesstest.Start(t, "alice-token", "alice", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	kubernetes := upstream.Kubernetes(t, clock.RealClock{})
	caller, err := kubernetes.Identify(t.Context(), &http.Request{Header: http.Header{"Authorization": {"Bearer alice-token"}}})
	if err != nil {
		t.Fatal(err)
	}
	of := access.ObjectName{Resource: "clusterjobs", Namespace: "n", Name: "j"}
	object := map[string]any{"apiVersion": "heliostat.dev/v1beta1", "kind": "ClusterJob"}
	if _, _, err := kubernetes.CreateObject(t.Context(), caller, of, object, false); err == nil {
		t.Error("a create that was not answered is no error")
	}
	if sent := len(upstream.Seen()); sent != 1 {
		t.Errorf("it was sent %d times", sent)
	}
}

// TestLists_AreReadUpToABound: an editor of a namespace may write a thousand ConfigMaps of 1 MiB, or large events, which anybody reads
// by a request for the presets there, or for an object.
func TestLists_AreReadUpToABound(t *testing.T) {
	for size, want := range map[int]error{1 << 20: nil, 3 << 20: access.ErrManyPresets, 64 << 20: access.ErrManyPresets} {
		upstream := accesstest.Start(t, "alice-token", "alice", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"kind":"ConfigMapList","apiVersion":"v1","items":[{"metadata":{"name":"p"},"data":{"a":"`)
			for sent := 0; sent < size; sent += 1 << 20 {
				if _, err := io.WriteString(w, strings.Repeat("x", 1<<20)); err != nil {
					return
				}
			}
			_, _ = io.WriteString(w, `"}}]}`)
		})
		kubernetes := upstream.Kubernetes(t, clock.RealClock{})
		caller, err := kubernetes.Identify(t.Context(), &http.Request{Header: http.Header{"Authorization": {"Bearer alice-token"}}})
		if err != nil {
			t.Fatal(err)
		}
		found, err := kubernetes.Presets(t.Context(), caller, "team")
		if !errors.Is(err, want) || want == nil && len(found) != 1 {
			t.Errorf("of %d MiB %d are read, and the error is %v", size>>20, len(found), err)
		}
		if _, err := kubernetes.Events(t.Context(), caller, "team", "u"); !errors.Is(err, access.ErrManyEvents) {
			t.Errorf("of events of %d MiB the error is %v", size>>20, err)
		}
	}
}
