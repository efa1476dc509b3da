package cluster

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Plan is what a pass decided to do, as a value with its reasons. It is carried out
// in the order of its fields.
type Plan struct {
	// Stalled says why nothing can be done until a person acts. All else is empty then.
	Stalled *reason.Finding
	// Record is written before anything else, if not nil.
	Record *Record
	// Epoch is the epoch that the plan works for.
	Epoch int64
	// Token and Service say what to do about the Secret and the Service.
	Token   Act
	Service Act
	// Head is the head pod to create, if not nil.
	Head *corev1.Pod
	// NoteHead asks to record the head's UID once it is known.
	NoteHead bool
	// Create holds the workers to create, Delete the pods to delete.
	Create []*corev1.Pod
	Delete []Removal
	// Held says why wanted pods are not created now; the rest of the plan goes on.
	Held *reason.Finding
	// Events are what to tell people once the plan was carried out.
	Events []telemetry.Event
	// Wake is after how long to look again though nothing happened; 0 is never.
	Wake time.Duration
}

// Act is what to do about an object of a fixed name.
type Act int

const (
	// Keep leaves it as it is.
	Keep Act = iota
	// Make creates it.
	Make
	// Mend applies the fields that differ.
	Mend
)

// Removal is a pod to delete.
type Removal struct {
	Pod Pod
	// GraceSeconds overrides the pod's own grace period, if not nil.
	GraceSeconds *int64
	// Why, for the log.
	Why string
}

// Empty tells whether the plan writes nothing.
func (p Plan) Empty() bool {
	return p.Record == nil && p.Token == Keep && p.Service == Keep && p.Head == nil && !p.NoteHead &&
		len(p.Create) == 0 && len(p.Delete) == 0
}

// String is the plan in one line, for logs.
func (p Plan) String() string {
	if p.Stalled != nil {
		return "stalled: " + p.Stalled.Code
	}
	var parts []string
	if p.Record != nil {
		parts = append(parts, "record "+p.Record.String())
	}
	if p.Token == Make {
		parts = append(parts, "create Secret")
	}
	switch p.Service {
	case Make:
		parts = append(parts, "create Service")
	case Mend:
		parts = append(parts, "mend Service")
	case Keep:
	}
	if p.Head != nil {
		parts = append(parts, "create head "+p.Head.Name)
	}
	if p.NoteHead {
		parts = append(parts, "record the head's UID")
	}
	for _, pod := range p.Create {
		parts = append(parts, "create "+pod.Name)
	}
	for _, removal := range p.Delete {
		parts = append(parts, fmt.Sprintf("delete %s (%s)", removal.Pod.Name, removal.Why))
	}
	return strings.Join(parts, ", ")
}
