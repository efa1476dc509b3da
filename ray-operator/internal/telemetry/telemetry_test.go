package telemetry_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// sink gets the events that are written.
type sink chan *eventsv1.Event

func (s sink) Create(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	s <- event
	return event, nil
}

func (s sink) Update(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return event, nil
}

func (s sink) Patch(_ context.Context, event *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	return event, nil
}

// TestRecord_KeepsEventsOfOnePassApart: what happened to two pods at once is two events, and not one with a count.
func TestRecord_KeepsEventsOfOnePassApart(t *testing.T) {
	written := make(sink, 9)
	broadcaster := events.NewBroadcaster(written)
	defer broadcaster.Shutdown()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		t.Fatal(err)
	}
	recorder := telemetry.Recorder{Events: broadcaster.NewRecorder(scheme.Scheme, "heliostat")}
	pod := func(name string) runtime.Object {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}
	}
	for _, name := range []string{"a", "b"} {
		recorder.Record(pod("about"), telemetry.Event{
			Finding: reason.WorkerFailed.Of(name, "Evicted"), Related: pod(name), Action: "Replace", Warning: true,
		})
	}
	for range 2 {
		select {
		case event := <-written:
			if event.Related == nil || event.Series != nil {
				t.Errorf("an event relates to %+v and counts %+v", event.Related, event.Series)
			}
		case <-ctx.Done():
			t.Fatal("two pods failed, and one event tells of it")
		}
	}
}
