package reconcile_test

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
)

// failingWriter writes statuses, or fails.
type failingWriter struct{ err error }

func (w failingWriter) Status(context.Context, client.Object, client.Object) error { return w.err }

// TestStatuses_WaitUnlessTheyAreUrgent: each step is a pass over the same object, so many seconds after the first.
func TestStatuses_WaitUnlessTheyAreUrgent(t *testing.T) {
	began, refused := time.Unix(1_000_000, 0), errors.New("refused")
	withPhase := func(phase string) *v1beta1.ClusterJob {
		whole := &v1beta1.ClusterJob{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", ResourceVersion: "7", UID: "u"}}
		return &v1beta1.ClusterJob{ObjectMeta: reconcile.StatusMeta(whole), Status: v1beta1.ClusterJobStatus{Phase: phase}}
	}
	var statuses reconcile.Statuses
	for _, step := range []struct {
		name     string
		at       int
		phase    string
		patience time.Duration
		err      error
		written  bool
		wait     time.Duration
	}{
		{name: "one that may wait waits", at: 0, phase: "New", patience: 2 * time.Second, wait: 2 * time.Second},
		{name: "it goes on waiting", at: 1, phase: "New", patience: 2 * time.Second, wait: time.Second},
		{name: "its time is over", at: 2, phase: "New", patience: 2 * time.Second, written: true},
		{name: "the next one waits as long", at: 3, phase: "Newer", patience: 2 * time.Second, wait: 2 * time.Second},
		{name: "one that says the same writes nothing", at: 4, phase: ""},
		{name: "and ends the waiting", at: 5, phase: "Newer", patience: 2 * time.Second, wait: 2 * time.Second},
		{name: "an urgent one is written at once", at: 6, phase: "Newest", written: true},
		{name: "a refused one", at: 7, phase: "Newest", err: refused},
	} {
		change := reconcile.StatusChange{Seen: withPhase(""), Wanted: withPhase(step.phase), Patience: func() time.Duration { return step.patience }}
		now := began.Add(time.Duration(step.at) * time.Second)
		written, wait, err := statuses.Write(t.Context(), failingWriter{step.err}, change, now)
		if written != step.written || wait != step.wait || !errors.Is(err, step.err) {
			t.Errorf("%s: written %v, wait %s, %v", step.name, written, wait, err)
		}
	}
}
