package job

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/volume"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// makeClaims makes the claims of a cluster that is about to be made, or finds them made.
func (r *Reconciler) makeClaims(ctx context.Context, job *v1beta1.ClusterJob, plan *Plan) error {
	var errs []error
	plan.Unchanged = nil
	for _, claim := range plan.Claims {
		refused, err := volume.Make(ctx, r.Writer, claim, ownerOf(job))
		plan.Unchanged, errs = volume.Both(plan.Unchanged, refused), append(errs, err)
		if err != nil {
			plan.Unmade = claim.Name
		}
	}
	return errors.Join(errs...)
}

// mendClaims makes the claims that a cluster of the job lacks, and brings the others to what the spec says. What cannot be done is told
// in the plan: the job goes on with the claims as they are, and can be suspended, stopped and deleted.
func (r *Reconciler) mendClaims(ctx context.Context, job *v1beta1.ClusterJob, plan *Plan) error {
	now := r.Clock.Now()
	if plan.Make != nil || len(plan.Claims) == 0 || plan.IsRetry && now.Before(r.claimRests.lastUntil(job.UID)) {
		return nil
	}
	var refused *reason.Finding
	var errs []error
	for _, claim := range plan.Claims {
		found, err := r.mendClaim(ctx, job, claim, plan.Remake)
		finding, isTaken := fault.Finding(err)
		switch {
		case isTaken:
			found = &finding
		case fault.Refused(err):
			found = new(diagnose.Refusal("claim "+claim.Name, err))
		case !fault.IsWait(err): // one that is being deleted is waited for
			errs = append(errs, err)
		}
		refused = volume.Both(refused, found)
	}
	err := errors.Join(errs...)
	if err == nil {
		plan.Unchanged = refused
		r.claimRests.keepUntil(job.UID, now.Add(reconcile.Recheck))
	}
	return err
}

func (r *Reconciler) mendClaim(ctx context.Context, job *v1beta1.ClusterJob, claim *corev1.PersistentVolumeClaim, makes bool) (*reason.Finding, error) {
	if makes {
		return volume.Make(ctx, r.Writer, claim, ownerOf(job))
	}
	return volume.Mend(ctx, r.Writer, claim, ownerOf(job))
}

func ownerOf(job *v1beta1.ClusterJob) metav1.OwnerReference {
	return *metav1.NewControllerRef(job, v1beta1.GroupVersion.WithKind(kindName))
}
