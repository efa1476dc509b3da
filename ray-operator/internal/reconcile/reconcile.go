// Package reconcile holds what a pass of every controller does alike: what came of a plan and how the pass ends, how a
// condition is set, how a status and a record are written, what must be done about an object of a fixed name, and which
// terminating pods nothing may wait for any more.
//
// In: findings, errors, times, records and objects; of such a pod the node. Out: a ctrl.Result, a condition, the text of a
// record; events, statuses and objects through the writers that are given.
//
// It must never know a kind, read anything but those nodes, take a pod for stranded whose kubelet answers, or decide what a
// status says.
package reconcile

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
)

const (
	// conflictRetry is how soon to look again after something changed under a pass.
	conflictRetry = 200 * time.Millisecond
	// waitRetry is how soon to look again for what is under way, if nothing told before.
	waitRetry = time.Second
	// Recheck is how soon to look again at what no watch tells of, such as a foreign
	// object that goes or a quota that is raised.
	Recheck = 15 * time.Second
)

// Soonest returns the shorter of two waits. One that is not above zero is none.
func Soonest(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return max(b, 0)
	}
	return a
}

// Result turns a pass into when to look again: after wake, 0 is never, or as the errors
// that the pass met have it.
func Result(wake time.Duration, err error) (ctrl.Result, error) {
	_, terminal := fault.Finding(err)
	switch {
	case err == nil:
		return ctrl.Result{RequeueAfter: wake}, nil
	case terminal, fault.Refused(err): // in the status by now; trying faster would not help
		return ctrl.Result{RequeueAfter: Recheck}, nil
	case fault.IsWait(err):
		return ctrl.Result{RequeueAfter: waitRetry}, nil
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: conflictRetry}, nil
	default:
		return ctrl.Result{}, err
	}
}

// IsOurs reports whether an object with that value of spec.managedBy is this operator's to reconcile.
func IsOurs(managedBy string) bool { return managedBy == "" || managedBy == v1beta1.ManagedByOperator }

// Shown reports whether an error is for people: something was refused, or is in the way.
func Shown(err error) bool {
	_, terminal := fault.Finding(err)
	return terminal || fault.Refused(err)
}

// Stamp is a time as people read it, in UTC.
func Stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// Moment is a time of a record, in Unix seconds, as a status has it; nil for 0, which is none.
func Moment(seconds int64) *metav1.Time {
	if seconds == 0 {
		return nil
	}
	at := metav1.Unix(seconds, 0)
	return &at
}
