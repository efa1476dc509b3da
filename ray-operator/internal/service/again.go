package service

import (
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// circumstances returns a hash of what bears on the fate of a version beside itself: the rest of the spec, but for how
// requests reach the service and for suspension, and the annotation that asks for another try.
func circumstances(service *v1alpha1.ClusterService) string {
	spec := service.Spec.DeepCopy()
	spec.Service, spec.Suspend = nil, false
	if spec.Upgrade != nil {
		spec.Upgrade.DrainSeconds, spec.Upgrade.RetireAfterSeconds = nil, nil // of versions that leave
	}
	hash, _ := naming.ObjectHash([]any{spec, service.Annotations[v1alpha1.AnnotationRetry]}) // it always marshals
	return hash
}

// forgive has what failed be tried again where the spec asks for something else by now, or for the same under other
// circumstances. What is still being taken back is waited for.
func (p *planner) forgive() {
	record := &p.record
	if record.Failed == "" {
		return
	}
	now := circumstances(p.service)
	if record.FailedAs == "" { // of an earlier operator, or restored from the status
		record.FailedAs = now
	}
	if record.Failed != p.target.ID || record.Candidate == nil && record.FailedAs != now {
		record.Failed, record.FailedAs, record.Fault = "", "", nil
	}
}

// condemn notes that a version is not tried again under these circumstances.
func (p *planner) condemn(revision string, fault *Fault) {
	p.record.Failed, p.record.FailedAs, p.record.Fault = revision, circumstances(p.service), fault
}
