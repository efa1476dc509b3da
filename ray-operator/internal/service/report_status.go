package service

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Status computes the status from what was seen, planned and done. It is pure. Of the former
// status it keeps the times of conditions that did not change.
func Status(service *v1beta1.ClusterService, seen Seen, plan Plan, refused error, now time.Time) v1beta1.ClusterServiceStatus {
	record := seen.Record
	if plan.Record != nil && refused == nil {
		record = *plan.Record
	}
	status := v1beta1.ClusterServiceStatus{
		ObservedGeneration: service.Generation, Phase: plan.Phase, Active: plan.Active, Candidate: plan.Candidate,
		Summary: summaryOf(plan.Active, plan.Candidate), Conditions: slices.Clone(service.Status.Conditions), LastUpgrade: outcomeOf(record.Last),
	}
	if seen.TargetError == nil {
		status.URL = desired.ServeURL(service, seen.Target.Config.HTTPS)
	}
	for _, retired := range record.Retiring {
		if seen.Clusters[retired.Cluster] != nil {
			status.Retiring = append(status.Retiring, naming.ServiceCluster(service.Name, service.UID, retired.Cluster))
		}
	}
	setConditions(service, &status, plan, refused, now)
	return status
}

func outcomeOf(last *Last) *v1beta1.UpgradeOutcome {
	if last == nil {
		return nil
	}
	told := &v1beta1.UpgradeOutcome{
		From: last.From, To: last.To, Result: last.Result, StartTime: reconcile.Moment(last.Began), EndTime: reconcile.Moment(last.Ended),
	}
	if last.Fault != nil {
		told.Reason, told.Message = last.Fault.Reason, last.Fault.Text
	}
	return told
}

// setConditions follow from the plan, or from what the API server refused of it.
func setConditions(service *v1beta1.ClusterService, status *v1beta1.ClusterServiceStatus, plan Plan, refused error, now time.Time) {
	finding, stalled := chooseFinding(&plan, refused)
	say := reconcile.Conditions{All: &status.Conditions, Generation: service.Generation, Now: now}
	suspended := status.Phase == v1beta1.PhaseSuspended
	settled := plan.Serving && plan.Upgrading == nil && len(status.Retiring) == 0 && refused == nil
	if suspended && !stalled { // it is as its spec says, so that nobody waits for it to be ready
		say.SetWhile(v1beta1.ConditionReady, nil)
	} else {
		say.Set(v1beta1.ConditionReady, plan.Serving, finding)
	}
	say.SetOr(v1beta1.ConditionReconciling, !settled && !suspended && !stalled, finding)
	say.SetStalled(stalled, finding)
	say.SetWhile(v1beta1.ConditionRolledBack, plan.RolledBack)
	say.SetWhile(v1beta1.ConditionNameConflict, plan.Conflict)
	if plan.Gateway != nil {
		say.Set(v1beta1.ConditionGatewayProgrammed, plan.Programmed, *plan.Gateway)
	} else {
		say.SetWhile(v1beta1.ConditionGatewayProgrammed, nil)
	}
	if plan.Upgrading != nil {
		say.Set(v1beta1.ConditionUpgrading, true, *plan.Upgrading)
	} else {
		say.SetOr(v1beta1.ConditionUpgrading, false, reason.Finding{})
	}
	if plan.Suspended != nil {
		say.Set(v1beta1.ConditionSuspended, suspended, *plan.Suspended)
	} else if meta.FindStatusCondition(status.Conditions, v1beta1.ConditionSuspended) != nil {
		say.SetOr(v1beta1.ConditionSuspended, false, reason.Finding{})
	}
}

// chooseFinding returns what to tell, and whether nothing will change until a person acts.
func chooseFinding(plan *Plan, refused error) (reason.Finding, bool) {
	obstacle, terminal := fault.Finding(refused)
	switch {
	case terminal:
		return obstacle, true
	case refused == nil || !fault.Refused(refused):
		return plan.Finding, plan.Stalled
	}
	finding := explainRefusal(*plan, refused)
	if plan.Candidate != nil {
		plan.Upgrading = &finding
	}
	return finding, plan.Stalled
}

// explainRefusal says what the API server would not have.
func explainRefusal(plan Plan, err error) reason.Finding {
	if plan.Make != nil {
		return diagnose.Refusal("ComputeCluster "+plan.Make.Name, err)
	}
	return diagnose.Refusal("a part of the service", err)
}

// summaryOf holds the strings for columns.
func summaryOf(active, candidate *v1beta1.ServiceVersion) v1beta1.ServiceSummary {
	var s v1beta1.ServiceSummary
	if active == nil {
		return s
	}
	s.Version, s.Traffic = strconv.FormatInt(active.Revision, 10), fmt.Sprintf("%d%%", active.TrafficPercent)
	shown := active
	if candidate != nil {
		s.Version += " → " + strconv.FormatInt(candidate.Revision, 10)
		s.Traffic += fmt.Sprintf(" → %d%%", candidate.TrafficPercent)
		if candidate.TrafficPercent == 100 {
			shown = candidate
		}
	}
	if len(shown.Applications) > 0 {
		up := slices.DeleteFunc(slices.Clone(shown.Applications), func(a v1beta1.ApplicationStatus) bool { return a.State != "RUNNING" })
		s.Applications = fmt.Sprintf("%d/%d", len(up), len(shown.Applications))
	}
	return s
}

// takeRouteRefusal takes what the API server would not have of the route for what is told of the gateway,
// and gives what else there was: neither is a failure of the service.
func (p *Plan) takeRouteRefusal(err error) error {
	if !reconcile.Shown(err) || p.Gateway == nil {
		return err
	}
	finding, terminal := fault.Finding(err)
	if !terminal {
		finding = diagnose.Refusal(kindRoute, err)
	}
	p.Gateway, p.Programmed = &finding, false
	return nil
}
