package service

import (
	"slices"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Decide chooses what to do about a service: a pure, total function of what was seen.
func Decide(service *v1beta1.ClusterService, seen Seen, site desired.Site, now time.Time) Plan {
	if seen.RecordError != nil {
		return planUnreadable(service, seen.RecordError)
	}
	s := &state{service: service, seen: &seen, site: site, now: now, record: seen.Record.clone()}
	had := slices.Contains(service.Finalizers, v1beta1.FinalizerServe)
	next := &draft{state: s, decision: decision{finalizer: had}}
	next.follow()
	var versions assessment
	if next.course == courseServe {
		versions = assess(s)
	}
	versions = next.advance(versions)
	routing := route(s, next.course, versions)
	provision := provide(s, next.decision, versions, routing)
	plan := report(s, next.decision, versions, routing, provision)
	if s.record.String() != recorded(service, &seen) || plan.Finalizer != had {
		plan.Record = &s.record
	}
	return plan
}

// recorded returns what stands written.
func recorded(service *v1beta1.ClusterService, seen *Seen) string {
	if there, _ := written(service); there == nil {
		return Record{Version: recordVersion}.String() // what was restored is written again
	}
	return seen.Record.String()
}

// planUnreadable leaves all as it is, because nobody knows what the record says.
func planUnreadable(service *v1beta1.ClusterService, err error) Plan {
	finalizer := slices.Contains(service.Finalizers, v1beta1.FinalizerServe)
	plan := Plan{
		Phase: service.Status.Phase, Finding: reason.RecordDamaged.Of(err), Stalled: true,
		Active: service.Status.Active, Candidate: service.Status.Candidate,
		Finalizer: finalizer && service.DeletionTimestamp == nil, // a deletion is never kept from its end
	}
	if finalizer != plan.Finalizer {
		plan.Record = &Record{}
	}
	return plan
}
