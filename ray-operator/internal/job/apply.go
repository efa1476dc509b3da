package job

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kueue"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/jobs"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/nodes"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// applyPlan carries a plan out. What is written first decides what may follow: a failure ends
// it.
func (r *Reconciler) applyPlan(ctx context.Context, job *v1beta1.ClusterJob, seen kueue.Seen, plan *Plan, holders []types.UID) error {
	if plan.Empty() {
		return nil
	}
	if err := r.confirmLoss(ctx, job, plan.Lost); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Applying plan", "plan", plan.String())
	if err := r.writeRecord(ctx, job, *plan, holders); err != nil {
		return err
	}
	if plan.Make != nil {
		if err := r.makeClaims(ctx, job, plan); err != nil {
			return err
		}
		if _, err := r.Writer.Create(ctx, plan.Make); err != nil {
			return err
		}
	}
	if len(plan.Free)+len(plan.Discard) > 0 { // to a cache that is late, the cluster of a later attempt is a former one
		if _, err := r.renewPermit(ctx, job); err != nil {
			return err
		}
	}
	var errs []error
	for _, cluster := range plan.Free {
		errs = append(errs, r.suspendCluster(ctx, cluster))
	}
	for _, cluster := range plan.Discard {
		errs = append(errs, r.Writer.Delete(ctx, cluster, nil))
	}
	if plan.Shrink != nil {
		errs = append(errs, r.suspendWorkers(ctx, plan.Shrink))
	}
	if plan.Keep != nil {
		errs = append(errs, r.Writer.Note(ctx, plan.Keep.Cluster, v1beta1.AnnotationRetainedBy, plan.Keep.Note))
	}
	errs = append(errs, r.Queue.Do(ctx, seen, plan.Queue))
	if plan.End {
		errs = append(errs, r.Writer.Delete(ctx, job, nil))
	}
	return errors.Join(errs...)
}

// confirmLoss looks past the cache for a head that is taken for gone.
func (r *Reconciler) confirmLoss(ctx context.Context, job *v1beta1.ClusterJob, lost Bound) error {
	if lost.Pod == "" {
		return nil
	}
	var found corev1.Pod
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: job.Namespace, Name: lost.Pod}, &found)
	switch {
	case apierrors.IsNotFound(err) || err == nil && found.UID != lost.Head:
		return nil
	case err != nil:
		return fmt.Errorf("read Pod %s: %w", lost.Pod, err)
	case found.Status.Phase == corev1.PodFailed || found.Status.Phase == corev1.PodSucceeded:
		return nil
	}
	return &fault.Wait{For: "the cache to know of Pod " + lost.Pod}
}

// writeRecord writes the record and the finalizer. It takes the place on the cluster first.
func (r *Reconciler) writeRecord(ctx context.Context, job *v1beta1.ClusterJob, plan Plan, holders []types.UID) error {
	if plan.Record == nil {
		return nil
	}
	cluster := types.NamespacedName{Namespace: job.Namespace, Name: plan.Record.Bound.Cluster}
	if plan.Enter > 0 && !r.Places.Take(cluster, job.UID, plan.Enter, holders, r.Clock.Now()) {
		return &fault.Wait{For: "a place on ComputeCluster " + cluster.Name}
	}
	record := *plan.Record
	record.Of = job.UID
	began := r.Clock.Now()
	err := reconcile.WriteRecord(ctx, r.Writer, job, record.String(), func(wanted *v1beta1.ClusterJob) {
		if plan.Finalizer {
			controllerutil.AddFinalizer(wanted, v1beta1.FinalizerRun)
		} else {
			controllerutil.RemoveFinalizer(wanted, v1beta1.FinalizerRun)
		}
	})
	if err != nil {
		if plan.Enter > 0 {
			r.Places.Leave(cluster, job.UID)
		}
		return err
	}
	if plan.Record.Bound.Head == "" {
		r.Places.Leave(types.NamespacedName{Namespace: job.Namespace, Name: plan.Record.Last.Cluster}, job.UID)
	}
	r.permits.keepUntil(job.UID, began.Add(permitFor)) // what was just written is what there is
	return nil
}

// suspendCluster suspends a cluster of the job's own, and notes since when.
func (r *Reconciler) suspendCluster(ctx context.Context, cluster *v1beta1.ComputeCluster) error {
	wanted := cluster.DeepCopy()
	wanted.Spec.Suspend = new(true)
	if wanted.Annotations == nil {
		wanted.Annotations = map[string]string{}
	}
	wanted.Annotations[v1beta1.AnnotationReleasedAt] = reconcile.Stamp(r.Clock.Now())
	return r.Writer.Edit(ctx, cluster, wanted)
}

func (r *Reconciler) suspendWorkers(ctx context.Context, cluster *v1beta1.ComputeCluster) error {
	wanted := cluster.DeepCopy()
	for i := range wanted.Spec.WorkerGroups {
		wanted.Spec.WorkerGroups[i].Suspend = new(true)
	}
	return r.Writer.Edit(ctx, cluster, wanted)
}

// refusalOf says what the API server would not have.
func refusalOf(plan Plan, err error) reason.Finding {
	switch {
	case plan.Unmade != "":
		return diagnose.Refusal("claim "+plan.Unmade, err)
	case plan.Make != nil:
		return diagnose.Refusal("ComputeCluster "+plan.Make.Name, err)
	}
	return diagnose.Refusal("a part of the job", err)
}

// permitFor is how long a permit to submit holds: a third of the time after which another
// operator may lead.
const permitFor = 5 * time.Second

// askHead says what is wanted of the head from now on. A submission is permitted only by what
// was just written, or read past the cache.
func (r *Reconciler) askHead(ctx context.Context, job *v1beta1.ClusterJob, seen Seen, plan Plan) error {
	name := client.ObjectKeyFromObject(job)
	if plan.Ask == nil || plan.Ask.Head.Status.PodIP == "" {
		r.Runs.Forget(name)
		return nil
	}
	ask, head := plan.Ask, plan.Ask.Head
	cluster := types.NamespacedName{Namespace: job.Namespace, Name: head.Labels[v1beta1.LabelCluster]}
	want := jobs.Want{
		At: jobs.Place{
			Cluster: cluster, Head: head.UID,
			Jobs: net.JoinHostPort(head.Status.PodIP, strconv.Itoa(int(pod.DashboardPort(head)))),
			GCS:  net.JoinHostPort(head.Status.PodIP, strconv.Itoa(naming.PortGCS)),
		},
		ID: ask.ID, Session: ask.Session, Stop: ask.Stop, Lines: LastLines,
		Report: gangOf(&job.Spec) != nil && ask.ID != "",
	}
	want.At.Token, want.At.Trust = r.tokenOf(head, seen.Cluster), nodes.TrustOf(r.Live, head)
	if ask.Submit {
		until, err := r.renewPermit(ctx, job)
		if err != nil {
			return err
		}
		to := target{cluster: seen.Cluster, ray: seen.Answer.Session.Version}
		if want.Submission, want.Package, err = submission(job, seen.Record, to); err != nil {
			return err
		}
		want.Until = until
	}
	r.Runs.Want(name, want)
	return nil
}

// tokenOf returns what reads the token of a head's cluster. Its Secret is never found by a name that somebody else
// could have written: either the cluster is there and is the head's owner, or the Secret has the same owner as the
// head.
func (r *Reconciler) tokenOf(head *corev1.Pod, cluster *v1beta1.ComputeCluster) headclient.Token {
	if cluster != nil && naming.IsOwned(head, cluster.UID) {
		secret := pod.TokenSecret(cluster)
		if secret == "" {
			return nil
		}
		return nodes.TokenFrom(r.Live, types.NamespacedName{Namespace: head.Namespace, Name: secret})
	}
	owner := naming.Controller(head) // one that is gone, while its head still goes
	if owner == nil {
		return nil
	}
	return nodes.TokenOwnedBy(r.Live, types.NamespacedName{Namespace: head.Namespace, Name: naming.TokenSecret(owner.Name)}, owner.UID)
}

// renewPermit gives the time up to which the job's attempt may be submitted, and its clusters may go. Where the one
// given last is nearly over, the job is read past the cache: if it is not as it was seen, this pass is none to go by.
func (r *Reconciler) renewPermit(ctx context.Context, job *v1beta1.ClusterJob) (time.Time, error) {
	now := r.Clock.Now()
	if until := r.permits.lastUntil(job.UID); until.Sub(now) > permitFor/2 {
		return until, nil
	}
	var there v1beta1.ClusterJob
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(job), &there); err != nil {
		return time.Time{}, fmt.Errorf("read ClusterJob %s past the cache: %w", job.Name, err)
	}
	same := there.UID == job.UID && there.Annotations[v1beta1.AnnotationRecord] == job.Annotations[v1beta1.AnnotationRecord] &&
		ptr.Deref(there.Spec.Suspend, false) == ptr.Deref(job.Spec.Suspend, false) && isStopAsked(&there) == isStopAsked(job) && there.DeletionTimestamp.IsZero() == job.DeletionTimestamp.IsZero()
	if !same {
		return time.Time{}, &fault.Wait{For: "the cache to know what became of ClusterJob " + job.Name}
	}
	r.permits.keepUntil(job.UID, now.Add(permitFor))
	return now.Add(permitFor), nil
}
