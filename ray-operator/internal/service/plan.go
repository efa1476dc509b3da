package service

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/services"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Plan is what a pass decided to do and to say, as a value with its reasons. It is carried out
// in the order of its fields.
type Plan struct {
	// Keep is a revision to keep, Drop are those that nobody needs any more.
	Keep *appsv1.ControllerRevision
	Drop []*appsv1.ControllerRevision
	// Record is written before what follows, if not nil, in one write with the finalizer as it
	// must be.
	Record    *Record
	Finalizer bool
	// Fixtures are objects of fixed names to make, mend or remove.
	Fixtures []reconcile.FixtureChange
	// Make is a cluster to create, Change those to bring to another spec, Discard those to
	// delete.
	Make    *v1beta1.ComputeCluster
	Change  []Change
	Discard []*v1beta1.ComputeCluster
	// Open are pods that get requests from now on, Close those that do not any more.
	Open, Close []*corev1.Pod
	// Lead are pods that a gateway may lead requests to from now on, Strand those that it may
	// not any more.
	Lead, Strand []*corev1.Pod
	// Wants are what is wanted of heads, all there is.
	Wants []Want

	// Phase and Finding are what the service is at; Stalled, that nothing will change until a
	// person acts; Serving, that all of the version that has the requests is well.
	Phase   string
	Finding reason.Finding
	Stalled bool
	Serving bool
	// Upgrading and RolledBack are findings of those conditions, Conflict and Suspended of
	// theirs; nil where they do not hold.
	Upgrading, RolledBack, Conflict, Suspended *reason.Finding
	// Gateway is what became of the route, nil where no gateway is asked for; Programmed, that
	// the gateway has taken it as it is.
	Gateway    *reason.Finding
	Programmed bool
	// Active and Candidate are the versions as the status tells of them.
	Active, Candidate *v1beta1.ServiceVersion
	// Events are told once all is done.
	Events []telemetry.Event
	// Wake is after how long to look again though nothing happened; 0 is never.
	Wake time.Duration
}

// Change is a cluster of the service's own as it was seen and as it must be.
type Change struct{ Seen, Wanted *v1beta1.ComputeCluster }

// Want is what is wanted of the head of a cluster.
type Want struct {
	Cluster *Cluster
	services.Want
}

// Empty reports whether the plan writes nothing.
func (p *Plan) Empty() bool {
	return p.Keep == nil && p.Record == nil && p.Make == nil &&
		len(p.Drop)+len(p.Fixtures)+len(p.Change)+len(p.Discard)+len(p.Open)+len(p.Close)+len(p.Lead)+len(p.Strand) == 0
}

// String returns the plan in one line, for logs.
func (p *Plan) String() string {
	var parts []string
	add := func(format string, values ...any) { parts = append(parts, fmt.Sprintf(format, values...)) }
	if p.Keep != nil {
		add("keep revision %d", p.Keep.Revision)
	}
	if len(p.Drop) > 0 {
		add("drop %d revisions", len(p.Drop))
	}
	if p.Record != nil {
		add("record %s", p.Record)
	}
	for _, fixing := range p.Fixtures {
		add("%s", fixing)
	}
	if p.Make != nil {
		add("create ComputeCluster %s", p.Make.Name)
	}
	for _, change := range p.Change {
		add("change ComputeCluster %s", change.Seen.Name)
	}
	for _, cluster := range p.Discard {
		add("delete ComputeCluster %s", cluster.Name)
	}
	for _, change := range []struct {
		format string
		pods   []*corev1.Pod
	}{{"open Pod %s", p.Open}, {"close Pod %s", p.Close}, {"lead to Pod %s", p.Lead}, {"lead no more to Pod %s", p.Strand}} {
		for _, pod := range change.pods {
			add(change.format, pod.Name)
		}
	}
	return strings.Join(parts, ", ")
}

// eventOf returns the event that tells of a finding.
func eventOf(finding reason.Finding, action string) telemetry.Event {
	return telemetry.Event{Finding: finding, Action: action, Warning: finding.Severity() == reason.Warning}
}
