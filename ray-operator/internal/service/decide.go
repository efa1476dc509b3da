package service

import (
	"slices"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// followed is what a pass knows once the record follows the spec, and what heads say they took.
type followed struct {
	view
	decision
}

// assessed is that with the health of each version.
type assessed struct {
	followed
	assessment
}

// advanced is that with the record as it will be written, the versions that it names, and which of their pods may take
// requests.
type advanced struct {
	view
	decision
	assessment
	states  versionStates
	proxies proxies
}

// routed is that with the pods that get requests.
type routed struct {
	advanced
	routing
}

// provisioned is that with what must be done to clusters, heads and objects.
type provisioned struct {
	routed
	provision
}

// Decide chooses what to do about a service: a pure, total function of what was seen. Each stage takes what the former one
// returns, so that none can come before its turn.
func Decide(service *v1beta1.ClusterService, seen Seen, site desired.Site, now time.Time) Plan {
	if seen.RecordError != nil {
		return planUnreadable(service, seen.RecordError)
	}
	after := advance(assess(follow(view{
		service: service, seen: &seen, site: site, now: now, record: seen.Record, revisions: revisions{known: seen.Revisions},
	})))
	plan := report(provide(route(after)))
	if after.record.String() != recorded(service, &seen) || plan.Finalizer != hasFinalizer(service) {
		plan.Record = &after.record
	}
	return plan
}

// hasFinalizer reports whether a service has our finalizer.
func hasFinalizer(service *v1beta1.ClusterService) bool {
	return slices.Contains(service.Finalizers, v1beta1.FinalizerServe)
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
	had := hasFinalizer(service)
	plan := Plan{
		Phase: service.Status.Phase, Finding: reason.RecordDamaged.Of(err), Stalled: true,
		Active: service.Status.Active, Candidate: service.Status.Candidate,
		Finalizer: had && service.DeletionTimestamp == nil, // a deletion is never kept from its end
	}
	if had != plan.Finalizer {
		plan.Record = &Record{}
	}
	return plan
}
