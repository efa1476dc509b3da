package access_test

import (
	"net/http"
	"testing"

	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/apiserver/access"
	"github.com/heliostat-dev/heliostat/apiserver/access/accesstest"
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
	object := map[string]any{"apiVersion": "heliostat.dev/v1alpha1", "kind": "ClusterJob"}
	if _, _, err := kubernetes.CreateObject(t.Context(), caller, of, object, false); err == nil {
		t.Error("a create that was not answered is no error")
	}
	if sent := len(upstream.Seen()); sent != 1 {
		t.Errorf("it was sent %d times", sent)
	}
}
