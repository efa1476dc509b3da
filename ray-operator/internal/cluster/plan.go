package cluster

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster/store"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kueue"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/volume"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Plan is what a pass decided to do, as a value with its reasons. It is carried out
// in the order of its fields.
type Plan struct {
	// Stalled says why nothing can be done until a person acts. All else is empty then.
	Stalled *reason.Finding
	// Refused says what this operator refuses of a spec that an earlier one accepted, Accepted by which rules, in order.
	Refused  *reason.Finding
	Accepted []string
	// Policy is the idle policy that the record must have.
	Policy SeenPolicy
	// Record is written before anything else, if not nil.
	Record *Record
	// Began is told once the record is written, if not nil.
	Began *telemetry.Event
	// Incarnation is what the plan works for.
	Incarnation
	// Token asks for the token's Secret to be made, Authority for that of the certificate
	// authority, StoreSecret for that of a managed control store, Volume for a store's claim, and Note for the note about a cluster's keys in
	// a Redis. Fixtures are what to do about the other objects of fixed names.
	Token       bool
	Authority   bool
	StoreSecret bool
	Volume      *corev1.PersistentVolumeClaim
	Note        bool
	Fixtures    []reconcile.FixtureChange
	// VolumeClaims are the claims of shared volumes to create, VolumeChanges what to change of those that are there.
	VolumeClaims  []*corev1.PersistentVolumeClaim
	VolumeChanges []volume.Change
	// Unmounted says why pods cannot mount a shared volume.
	Unmounted *reason.Finding
	// Head is the head pod to create, if not nil.
	Head *corev1.Pod
	// Failures counts the heads before that of the plan that ended soon after they were made.
	Failures int
	// NoteHead asks to record the head's UID once it is known.
	NoteHead bool
	// Store is what is known of the control store, nil without one. ForgetStore reports that
	// the operator must not ask it now, EncryptsStore that it is a managed Redis with TLS.
	Store         *store.State
	ForgetStore   bool
	EncryptsStore bool
	// Create holds the workers to create, by group, and Claims what they claim.
	Create []GroupCreation
	// Exits holds the workers whose planned exit begins, Delete the pods to delete, and
	// Release the claims that no slot needs any more.
	Exits   []Leave
	Delete  []Removal
	Release []*corev1.PersistentVolumeClaim
	// Unstarted holds those that go only because they never started, which must be true still when they do.
	Unstarted []Pod
	// End asks to delete the cluster itself; the event is told then.
	End *telemetry.Event
	// Queue is what the cluster's place in a queue means for it, and the write to its Workload.
	Queue kueue.Answer
	// Resize holds workers that get more while they run, Adopt those that thereby have
	// become what the spec wants.
	Resize []Resizing
	Adopt  []Adopting
	// Reclaim holds pods of the cluster that have lost their owner reference and get it back.
	Reclaim []Pod
	// Held says why wanted pods are not created now; the rest of the plan goes on.
	Held *reason.Finding
	// Conflict names an object of others' in the place of one that the cluster can do
	// without.
	Conflict *reason.Finding
	// Rolling says what a rolling replacement does or waits for, if there is one.
	Rolling *reason.Finding
	// Given are the operator's containers and their sizes as the installation gives them, which the status counts.
	Given pod.Installed
	// History is whether the archive keeps what it is to keep, nil where nobody asks or knows.
	History *verdict
	// GangFixed says that the scheduler goes by another size of the gang, which nobody can change.
	GangFixed *reason.Finding
	// Sizes are how large the groups must be, Scaled what the record is to keep of that.
	Sizes  map[string]Size
	Scaled map[string]RecordedSize
	// Roll is the autoscaled group that is being rolled, as the record is to keep it.
	Roll Roll
	// Suspended tells that the cluster must have no pods.
	Suspended bool
	// IdleSince is since when nobody uses the cluster, where an idle policy asks, and
	// IdleAt when it will act. IdleKept reports that it acts so late because it was asked to.
	IdleSince, IdleAt time.Time
	IdleKept          bool
	// Snapshot is what the autoscaler beside the head must know, nil where there is none.
	Snapshot *protocol.Snapshot
	// Ask is what must be asked of the head meanwhile.
	Ask Ask
	// Wake is after how long to look again though nothing happened; 0 is never.
	Wake time.Duration
}

// GroupCreation is the pods to create in a group, with the claims that they need.
type GroupCreation struct {
	Group  string
	Claims []*corev1.PersistentVolumeClaim
	Pods   []*corev1.Pod
	// Event is told once one of them was made, if not nil.
	Event *telemetry.Event
}

// Leave begins a worker's planned exit.
type Leave struct {
	Pod  Pod
	Exit Exit
	// Event is told once it has begun, if not nil.
	Event *telemetry.Event
}

// Removal is a pod to delete.
type Removal struct {
	Pod Pod
	// GraceSeconds overrides the pod's own grace period, if not nil.
	GraceSeconds *int64
	// Why, for the log.
	Why string
	// Event is told once it was deleted, if not nil.
	Event *telemetry.Event
	// Drain is the drain that ends with the deletion, nil where there was none.
	Drain *Drain
}

// Drain is how long a worker was drained, and whether its time ran out.
type Drain struct {
	Took     time.Duration
	TimedOut bool
}

// Empty reports whether the plan writes nothing.
func (p Plan) Empty() bool {
	return p.Record == nil && !p.Token && !p.Authority && !p.StoreSecret && p.Volume == nil && !p.Note && len(p.Fixtures)+len(p.VolumeClaims)+len(p.VolumeChanges) == 0 && p.Head == nil && !p.NoteHead && p.End == nil && p.Queue.Step == kueue.Rest &&
		len(p.Create)+len(p.Exits)+len(p.Delete)+len(p.Release)+len(p.Resize)+len(p.Adopt)+len(p.Reclaim) == 0
}

// Makes reports whether the plan creates a pod.
func (p Plan) Makes() bool { return p.Head != nil || len(p.Create) > 0 }

// String returns the plan in one line, for logs.
func (p Plan) String() string {
	if p.Stalled != nil {
		return "stalled: " + p.Stalled.Code
	}
	var parts []string
	say := func(holds bool, text string) {
		if holds {
			parts = append(parts, text)
		}
	}
	if p.Record != nil {
		parts = append(parts, "record "+p.Record.String())
	}
	say(p.Token, "create Secret")
	say(p.Authority, "create the authority's Secret")
	say(p.StoreSecret, "create the store's Secret")
	say(p.Volume != nil, "create the store's claim")
	say(p.Note, "note the store's keys")
	for _, fixing := range p.Fixtures {
		parts = append(parts, fixing.String())
	}
	for _, change := range p.VolumeChanges {
		parts = append(parts, change.String())
	}
	for _, claim := range p.VolumeClaims {
		parts = append(parts, "create claim "+claim.Name)
	}
	if p.Head != nil {
		parts = append(parts, "create head "+p.Head.Name)
	}
	say(p.NoteHead, "record the head's UID")
	say(p.Queue.Step != kueue.Rest, p.Queue.Step.String()+" Workload")
	parts = append(parts, p.describeWorkers()...)
	say(p.End != nil, "delete the cluster")
	return strings.Join(parts, ", ")
}

// describeWorkers returns what the plan does about workers, one by one.
func (p Plan) describeWorkers() []string {
	var parts []string
	add := func(format string, values ...any) { parts = append(parts, fmt.Sprintf(format, values...)) }
	for _, stray := range p.Reclaim {
		add("own %s again", stray.Name)
	}
	for _, filling := range p.Create {
		for _, pod := range filling.Pods {
			add("create %s", pod.Name)
		}
	}
	for _, leave := range p.Exits {
		add("drain %s (%s)", leave.Pod.Name, leave.Exit.Why)
	}
	for _, removal := range p.Delete {
		add("delete %s (%s)", removal.Pod.Name, removal.Why)
	}
	for _, resizing := range p.Resize {
		add("resize %s", resizing.Pod.Name)
	}
	for _, adopting := range p.Adopt {
		add("count %s as up to date", adopting.Pod.Name)
	}
	for _, claim := range p.Release {
		add("delete claim %s", claim.Name)
	}
	return parts
}

// wakeIn has the cluster looked at again after a wait, or sooner.
func (p *Plan) wakeIn(wait time.Duration) { p.Wake = reconcile.Soonest(p.Wake, wait) }
