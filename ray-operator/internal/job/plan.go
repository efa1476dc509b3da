package job

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kueue"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Plan is what a pass decided to do and to say, as a value with its reasons. It is carried
// out in the order of its fields.
type Plan struct {
	// Lost is the head pod that the plan takes for gone: it is looked for once more, past
	// the cache, before anything is done about it.
	Lost Bound
	// Enter asks for a place on the cluster, of which there are so many; 0 is no bound.
	Enter int
	// Record is written first, if not nil, in one write with the finalizer as it must be.
	Record    *Record
	Finalizer bool
	// Claims are those of the shared volumes of the job's own clusters. They are made before a cluster is. Where none is made, they are
	// brought to what the spec says after all else, which never waits for that. Remake reports that missing ones are made then, and
	// IsRetry that the spec has not changed since it was tried last.
	Claims          []*corev1.PersistentVolumeClaim
	Remake, IsRetry bool
	// Unchanged says what the API server refuses to make or change of the claims, nil for nothing. Unmade is the name of the one for
	// which no cluster could be made.
	Unchanged *reason.Finding
	Unmade    string
	// Make is the job's own cluster to create. Free are clusters of its own to suspend before
	// they go, Discard those to delete.
	Make    *v1beta1.ComputeCluster
	Free    []*v1beta1.ComputeCluster
	Discard []*v1beta1.ComputeCluster
	// Shrink is the own cluster whose workers are to go; Keep is what to note on it about
	// why it is still there.
	Shrink *v1beta1.ComputeCluster
	Keep   *Keeping
	// Queue is what the job's place in a queue means for it, and the write to its Workload.
	Queue kueue.Answer
	// End asks to delete the job itself.
	End bool
	// Ask is what is wanted of a head meanwhile, nil for nothing.
	Ask *Ask

	// Phase and Finding are what the job is at; Stalled, that nothing will change until a
	// person acts.
	Phase   string
	Finding reason.Finding
	Stalled bool
	// Done is the bound attempt as it ended in this pass, or the last one with the lines
	// that were still to be read.
	Done *v1beta1.JobAttempt
	// Events are told once all is done.
	Events []telemetry.Event
	// Wake is after how long to look again though nothing happened; 0 is never.
	Wake time.Duration
}

// Ask is what is wanted of a head.
type Ask struct {
	Head *corev1.Pod
	// ID is empty where only the session must be known.
	ID, Session string
	// Submit asks for the submission, Stop for its end.
	Submit, Stop bool
}

// Keeping is a note on a cluster that is kept on purpose.
type Keeping struct {
	Cluster *v1beta1.ComputeCluster
	Note    string
}

// Empty reports whether the plan writes nothing.
func (p *Plan) Empty() bool {
	return p.Record == nil && p.Make == nil && len(p.Free)+len(p.Discard) == 0 && p.Shrink == nil && p.Keep == nil && !p.End && p.Queue.Step == kueue.Rest
}

// String is the plan in one line, for logs.
func (p *Plan) String() string {
	var parts []string
	add := func(holds bool, format string, values ...any) {
		if holds {
			parts = append(parts, fmt.Sprintf(format, values...))
		}
	}
	if p.Record != nil {
		add(true, "record %s", p.Record)
	}
	if p.Make != nil {
		for _, claim := range p.Claims {
			add(true, "create claim %s", claim.Name)
		}
		add(true, "create ComputeCluster %s", p.Make.Name)
	}
	for _, cluster := range p.Free {
		add(true, "suspend ComputeCluster %s, to let it go", cluster.Name)
	}
	for _, cluster := range p.Discard {
		add(true, "delete ComputeCluster %s", cluster.Name)
	}
	if p.Shrink != nil {
		add(true, "suspend the workers of ComputeCluster %s", p.Shrink.Name)
	}
	if p.Keep != nil {
		add(true, "note on ComputeCluster %s that it is kept", p.Keep.Cluster.Name)
	}
	add(p.End, "delete the job")
	return strings.Join(parts, ", ")
}

// wakeIn has the job looked at again after a wait, or sooner.
func (p *Plan) wakeIn(wait time.Duration) { p.Wake = reconcile.Soonest(p.Wake, wait) }

// setPhase sets the phase of the job.
func (p *Plan) setPhase(phase string, finding reason.Finding) { p.Phase, p.Finding = phase, finding }

// addEvent adds an event of a finding.
func (p *Plan) addEvent(finding reason.Finding, action string) {
	p.Events = append(p.Events, eventOf(finding, action))
}

// eventOf returns the event that tells of a finding.
func eventOf(finding reason.Finding, action string) telemetry.Event {
	return telemetry.Event{Finding: finding, Action: action, Warning: finding.Severity() == reason.Warning}
}
