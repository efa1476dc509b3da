package problem_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/problem"
)

func TestOf_HidesWhatTheServerWasAnswered(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "demo-token", errors.New("system:serviceaccount:heliostat"))
	for name, c := range map[string]struct {
		cause error
		code  int
	}{
		"a refusal": {refused, 500}, "a bad token of its own": {apierrors.NewUnauthorized("no"), 500},
		"nobody there": {fmt.Errorf("dial: %w", access.ErrUnreached), 503}, "no time": {context.DeadlineExceeded, 504},
	} {
		p := problem.Of(fmt.Errorf("read: %w", access.OfServer(c.cause)))
		if p.Code != c.code || strings.Contains(p.Error(), "serviceaccount") {
			t.Errorf("%s is %d, %s", name, p.Code, p)
		}
	}
	if access.OfServer(nil) != nil {
		t.Error("nothing is an error")
	}
}
