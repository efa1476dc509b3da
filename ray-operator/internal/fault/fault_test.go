package fault_test

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
)

func TestSorts(t *testing.T) {
	plain, wait, conflict := errors.New("plain"), error(&fault.Wait{For: "a pod"}), fault.Conflict("Service a")
	wrapped := func(err error) error { return fault.Wrap(err, "create %s", "b") }
	pods := schema.GroupResource{Resource: "pods"}
	for name, test := range map[string]struct {
		err                     error
		wait, terminal, refused bool
	}{
		"nil":                        {},
		"plain":                      {err: plain},
		"wait":                       {err: wait, wait: true},
		"wait, wrapped":              {err: wrapped(wait), wait: true},
		"two waits":                  {err: errors.Join(wait, wrapped(wait)), wait: true},
		"wait and plain":             {err: errors.Join(wait, plain)},
		"two waits, joined, wrapped": {err: wrapped(errors.Join(wait, wait)), wait: true},
		"wait and plain, wrapped":    {err: wrapped(errors.Join(wait, plain))},
		"terminal":                   {err: conflict, terminal: true},
		"terminal among others":      {err: errors.Join(plain, wrapped(conflict)), terminal: true},
		"forbidden":                  {err: wrapped(apierrors.NewForbidden(pods, "a", plain)), refused: true},
		"too large":                  {err: apierrors.NewRequestEntityTooLargeError("big"), refused: true},
		"bad request":                {err: apierrors.NewBadRequest("bad"), refused: true},
		"invalid":                    {err: apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", nil), refused: true},
		"internal":                   {err: apierrors.NewInternalError(plain)},
		"webhook is down": {
			err:     apierrors.NewInternalError(errors.New(`failed calling webhook "a.example.com": connection refused`)),
			refused: true,
		},
		"conflict of versions": {err: apierrors.NewConflict(pods, "a", plain)},
	} {
		t.Run(name, func(t *testing.T) {
			if have := test.err != nil && fault.IsWait(test.err); have != test.wait {
				t.Errorf("IsWait %v, want %v", have, test.wait)
			}
			if _, have := fault.Finding(test.err); have != test.terminal {
				t.Errorf("terminal %v, want %v", have, test.terminal)
			}
			if have := fault.Refused(test.err); have != test.refused {
				t.Errorf("Refused %v, want %v", have, test.refused)
			}
		})
	}
}

func TestWrapNothing(t *testing.T) {
	if err := fault.Wrap(nil, "create %s", "a"); err != nil {
		t.Errorf("nothing became %v", err)
	}
	if err := fault.Wrap(errors.New("no"), "create %s", "a"); err.Error() != "create a: no" {
		t.Errorf("%q", err)
	}
}
