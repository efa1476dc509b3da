// Package telemetry turns what a controller did into events and metrics.
//
// In: an object and a finding of the catalogue; a change of a status; a write and its
// outcome. Out: one event of events.k8s.io per change that happened, with the catalogue's
// code as its reason; counters, histograms and gauges, which docs/metrics.md explains.
// It is called after the change and never decides anything; an event that cannot be
// written is lost. No metric has a label whose values grow with the objects.
package telemetry

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Event is something that happened to an object and that a person gains by knowing.
type Event struct {
	Finding reason.Finding
	// Related is what else it is about, such as a pod, nil if nothing. Events of one object that are alike in reason,
	// action and related count as one.
	Related runtime.Object
	// Also is another object that gets the event as well, nil if none.
	Also runtime.Object
	// Action is what the operator did about it, such as Replace.
	Action string
	// Warning marks what a person should look at.
	Warning bool
}

// Recorder writes events.
type Recorder struct{ Events events.EventRecorder }

// Record writes an event about an object.
func (r Recorder) Record(about runtime.Object, event Event) {
	kind := corev1.EventTypeNormal
	if event.Warning {
		kind = corev1.EventTypeWarning
	}
	r.Events.Eventf(about, event.Related, kind, event.Finding.Code, event.Action, "%s", event.Finding.Text)
	if event.Also != nil {
		r.Events.Eventf(event.Also, event.Related, kind, event.Finding.Code, event.Action, "%s", event.Finding.Text)
	}
}
