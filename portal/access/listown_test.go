package access_test

import (
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/access/accesstest"
)

func TestReleasePresets_RefusedToTheServerAreNoRefusalOfACaller(t *testing.T) {
	upstream := accesstest.Start(t, "alice-token", "alice", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`))
	})
	kubernetes := upstream.Kubernetes(t, clock.RealClock{})
	_, err := kubernetes.ReleasePresets(t.Context(), "release")
	var answered apierrors.APIStatus
	if err == nil || errors.As(err, &answered) || errors.Is(err, access.ErrUnauthorized) {
		t.Errorf("it is %v", err)
	}
}
