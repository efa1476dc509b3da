package reconcile

import (
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
)

// Outcome is what came of a plan.
type Outcome struct {
	// Events are what to tell people: each of something that was done.
	Events []telemetry.Event
	// Err joins the errors of all that could not be done, nil if there were none.
	Err error
	// IsTold: the status says what of the plan was done and what was not, whatever Err is.
	IsTold bool
}

// Ending is what the end of a pass needs.
type Ending struct {
	// Object is as it was before the plan was carried out. Events are about it.
	Object client.Object
	Events telemetry.Recorder
	// Wake is after how long to look again, 0 for never.
	Wake time.Duration
	// WriteStatus writes the status, or returns for how long it may wait.
	WriteStatus func() (time.Duration, error)
}

// End ends a pass, and returns when to look again. Where the plan was not carried out, the status stays as it was: the next
// pass comes soon. It is written where the status tells what was not done, or people must know.
func (e Ending) End(outcome Outcome) (ctrl.Result, error) {
	for _, event := range outcome.Events {
		e.Events.Record(e.Object, event)
	}
	if outcome.Err != nil && !outcome.IsTold && !Shown(outcome.Err) {
		return Result(e.Wake, outcome.Err)
	}
	wait, err := e.WriteStatus()
	if err != nil { // what was refused waits longer than a status that nobody has seen
		return Result(e.Wake, err)
	}
	return Result(Soonest(e.Wake, wait), outcome.Err)
}
