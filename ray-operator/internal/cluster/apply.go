package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/sweep"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Outcome is what came of a plan.
type Outcome struct {
	// Created are the pods that the plan made, or found made already.
	Created []*corev1.Pod
	// Refused says of each group, or of the head under "", why pods of it could not be made.
	Refused map[string]error
	// Unresized says why workers could not get more while they run.
	Unresized error
	// Recorded reports whether the plan's record was written.
	Recorded bool
	// Noted tells that the note of the plan is there.
	Noted bool
	// Conflict names others' object in the place of one that the cluster can do without.
	Conflict *reason.Finding
	// Events are what to tell people: each of something that was done.
	Events []telemetry.Event
	// Err joins the errors of all items, nil if there were none.
	Err error
}

func (o *Outcome) tell(event *telemetry.Event) {
	if event != nil {
		o.Events = append(o.Events, *event)
	}
}

// apply carries a plan out. A failed record, token or policy ends it, because what
// follows depends on them; a failed pod does not keep the others from being made.
func (r *Reconciler) apply(ctx context.Context, cluster *v1alpha1.ComputeCluster, seen Seen, plan Plan) Outcome {
	outcome := Outcome{Refused: map[string]error{}}
	if plan.Empty() {
		return outcome
	}
	log.FromContext(ctx).Info("carrying out", "plan", plan.String())
	if plan.End != nil {
		if outcome.Err = r.Writer.DeleteSeen(ctx, cluster); outcome.Err == nil {
			outcome.tell(plan.End)
		}
		return outcome
	}
	if outcome.Err = r.confirm(ctx, cluster, seen, plan); outcome.Err != nil {
		return outcome
	}
	if outcome.Err = r.reclaim(ctx, cluster, plan); outcome.Err != nil {
		return outcome
	}
	token, err := r.prepare(ctx, cluster, plan, &outcome)
	if err != nil {
		outcome.Err = err
		return outcome
	}
	stamp(plan, cmp.Or(token, seen.Token.Hash))
	if err := r.makeHead(ctx, plan, &outcome); err != nil {
		outcome.Err = errors.Join(err, r.remove(ctx, plan, &outcome))
		return outcome
	}
	// Those that go are told before their successors are made, so that at no time a group
	// has more workers that stay than it must have.
	gone := errors.Join(r.leave(ctx, plan, &outcome), r.remove(ctx, plan, &outcome))
	if gone != nil {
		plan.Create = slices.DeleteFunc(slices.Clone(plan.Create), func(filling Filling) bool { return plan.takesFrom(filling.Group) })
	}
	r.fill(ctx, plan, &outcome)
	outcome.Err = errors.Join(outcome.Err, gone, r.noteHead(ctx, cluster, seen, plan), r.grow(ctx, plan, &outcome), r.Queue.Do(ctx, seen.Queue, plan.Queue))
	return outcome
}

// reclaim makes the cluster the owner of its pods that have lost theirs, before anything else is done to them.
func (r *Reconciler) reclaim(ctx context.Context, cluster *v1alpha1.ComputeCluster, plan Plan) error {
	return summed(kube.Batches(len(plan.Reclaim), func(i int) error {
		owner := metav1.NewControllerRef(cluster, v1alpha1.GroupVersion.WithKind("ComputeCluster"))
		return r.Writer.Own(ctx, plan.Reclaim[i].Pod, *owner)
	}))
}

// stamp notes on new pods which token they are started with.
func stamp(plan Plan, token string) {
	pods := []*corev1.Pod{}
	if plan.Head != nil {
		pods = append(pods, plan.Head)
	}
	for _, filling := range plan.Create {
		pods = append(pods, filling.Pods...)
	}
	for _, pod := range pods {
		if token != "" {
			pod.Annotations[v1alpha1.AnnotationToken] = token
		}
	}
}

// prepare writes what pods depend on: first the record, then all else at once. It gives
// the hash of a token that it made.
func (r *Reconciler) prepare(ctx context.Context, cluster *v1alpha1.ComputeCluster, plan Plan, outcome *Outcome) (string, error) {
	if err := r.foremost(ctx, cluster, plan, outcome); err != nil {
		return "", err
	}
	hash := ""
	acts := []func() error{}
	if plan.Token {
		acts = append(acts, func() (err error) {
			hash, err = r.makeToken(ctx, cluster)
			return err
		})
	}
	if plan.Authority {
		acts = append(acts, func() error { return r.makeAuthority(ctx, cluster) })
	}
	if plan.Volume != nil {
		acts = append(acts, func() error { return r.makeVolume(ctx, plan.Volume) })
	}
	if plan.Note {
		acts = append(acts, func() error {
			err := r.Notes.Keep(ctx, sweep.Of(cluster, cluster.Spec.ControlStore.Redis))
			outcome.Noted = err == nil
			return err
		})
	}
	for _, fixing := range plan.Fixtures {
		acts = append(acts, func() error { return r.fix(ctx, fixing) })
	}
	errs := kube.AtOnce(len(acts), func(i int) error { return acts[i]() })
	for i, fixing := range plan.Fixtures {
		at := len(acts) - len(plan.Fixtures) + i
		if conflict, ok := fault.Finding(errs[at]); ok && optional(fixing.Kind) {
			outcome.Conflict, errs[at] = &conflict, nil
		} else if errs[at] == nil {
			outcome.tell(fixing.Event)
		}
	}
	return hash, errors.Join(errs...)
}

// foremost writes the record, on which all depends, and the Secret of a managed store before
// what needs it: once that is there, nobody looks for the Secret.
func (r *Reconciler) foremost(ctx context.Context, cluster *v1alpha1.ComputeCluster, plan Plan, outcome *Outcome) error {
	if plan.Record != nil {
		if err := r.Writer.Annotate(ctx, cluster, v1alpha1.AnnotationRecord, plan.Record.about(cluster).String()); err != nil {
			return err
		}
		outcome.Recorded = true
		outcome.tell(plan.Began)
	}
	if plan.StoreSecret {
		return r.makeStoreSecret(ctx, cluster)
	}
	return nil
}

// makeToken makes the token's Secret, or finds it made, and gives the hash of the token.
func (r *Reconciler) makeToken(ctx context.Context, cluster *v1alpha1.ComputeCluster) (string, error) {
	token := newToken()
	made, err := r.Writer.Create(ctx, desired.TokenSecret(cluster, token))
	if err != nil || made {
		return naming.TokenHash(token), err
	}
	var there Seen
	err = r.seeToken(ctx, cluster, &there)
	return there.Token.Hash, err
}

func (r *Reconciler) fix(ctx context.Context, fixing Fixing) error {
	writer := r.Writer
	if fixing.Kind == gangKind {
		writer = r.Groups
	}
	switch fixing.Act {
	case Make:
		_, err := writer.Create(ctx, fixing.Wanted)
		return err
	case Mend:
		return writer.Mend(ctx, fixing.Seen, fixing.Wanted)
	default:
		return writer.Delete(ctx, fixing.Seen, nil)
	}
}

// newToken draws 256 bits.
func newToken() string {
	bits := make([]byte, 32)
	_, _ = rand.Read(bits) // never fails: the standard library says so
	return hex.EncodeToString(bits)
}

func (r *Reconciler) makeHead(ctx context.Context, plan Plan, outcome *Outcome) error {
	if plan.Head == nil {
		return nil
	}
	if _, err := r.Writer.Create(ctx, plan.Head); err != nil {
		outcome.Refused[""] = err
		return err
	}
	outcome.Created = append(outcome.Created, plan.Head)
	if plan.Epoch > 1 {
		outcome.tell(&telemetry.Event{Finding: reason.HeadReplaced.Of(plan.Head.Name, plan.Epoch), Action: "Recover"})
	}
	return nil
}

// fill creates the workers, the groups side by side: what refuses one group's pods does
// not keep others from being made.
func (r *Reconciler) fill(ctx context.Context, plan Plan, outcome *Outcome) {
	var mu sync.Mutex
	errs := kube.AtOnce(len(plan.Create), func(i int) error {
		filling := plan.Create[i]
		made, err := r.fillGroup(ctx, filling)
		mu.Lock()
		defer mu.Unlock()
		outcome.Created = append(outcome.Created, made...)
		if err != nil {
			outcome.Refused[filling.Group] = err
		}
		if len(made) > 0 {
			outcome.tell(filling.Event)
		}
		return err
	})
	outcome.Err = errors.Join(outcome.Err, errors.Join(errs...))
}

func (r *Reconciler) fillGroup(ctx context.Context, filling Filling) ([]*corev1.Pod, error) {
	err := summed(kube.Batches(len(filling.Claims), func(i int) error {
		_, err := r.Writer.Create(ctx, filling.Claims[i])
		return err
	}))
	if err != nil {
		return nil, err
	}
	made := make([]*corev1.Pod, len(filling.Pods))
	errs := kube.Batches(len(filling.Pods), func(i int) error {
		_, err := r.Writer.Create(ctx, filling.Pods[i])
		if err == nil {
			made[i] = filling.Pods[i]
		}
		return err
	})
	return slices.DeleteFunc(made, func(pod *corev1.Pod) bool { return pod == nil }), summed(errs)
}

// noteHead puts the head's UID into the record, before anything can count on it.
func (r *Reconciler) noteHead(ctx context.Context, cluster *v1alpha1.ComputeCluster, seen Seen, plan Plan) error {
	if !plan.NoteHead {
		return nil
	}
	record := Record{
		Version: recordVersion, Scaled: plan.Scaled, Roll: plan.Roll, Accepted: plan.Accepted, Failures: plan.Failures, Volume: seen.Store.memoryOn(),
	}.taking(plan.Turn)
	if plan.Head != nil {
		record.HeadUID = plan.Head.UID
	} else if head := headOf(seen.Pods, plan.Epoch); head != nil {
		record.HeadUID = head.UID
	}
	return r.Writer.Annotate(ctx, cluster, v1alpha1.AnnotationRecord, record.about(cluster).String())
}

// leave notes on workers that their planned exit begins.
func (r *Reconciler) leave(ctx context.Context, plan Plan, outcome *Outcome) error {
	begun := make([]bool, len(plan.Exits))
	errs := kube.Batches(len(plan.Exits), func(i int) error {
		err := r.Writer.Note(ctx, plan.Exits[i].Pod.Pod, v1alpha1.AnnotationDrain, plan.Exits[i].Exit.String())
		begun[i] = err == nil
		return err
	})
	for i := range begun {
		if begun[i] {
			outcome.tell(plan.Exits[i].Event)
		}
	}
	return summed(errs)
}

// grow gives workers more while they run, and notes that they have it.
func (r *Reconciler) grow(ctx context.Context, plan Plan, outcome *Outcome) error {
	resized := kube.Batches(len(plan.Resize), func(i int) error {
		return r.Writer.Resize(ctx, plan.Resize[i].Pod.Pod, v1alpha1.ContainerRay, plan.Resize[i].Resources)
	})
	adopted := kube.Batches(len(plan.Adopt), func(i int) error {
		return r.Writer.Note(ctx, plan.Adopt[i].Pod.Pod, v1alpha1.AnnotationIntent, plan.Adopt[i].Intent)
	})
	err := summed(resized)
	if fault.Refused(err) { // they go on as they are
		outcome.Unresized, err = err, nil
	}
	return errors.Join(err, summed(adopted))
}

func (r *Reconciler) remove(ctx context.Context, plan Plan, outcome *Outcome) error {
	done := make([]bool, len(plan.Delete))
	errs := kube.Batches(len(plan.Delete), func(i int) error {
		err := r.Writer.Delete(ctx, plan.Delete[i].Pod.Pod, plan.Delete[i].GraceSeconds)
		done[i] = err == nil
		return err
	})
	for i := range done {
		if done[i] {
			outcome.tell(plan.Delete[i].Event)
		}
	}
	released := kube.Batches(len(plan.Release), func(i int) error { return r.Writer.Delete(ctx, plan.Release[i], nil) })
	return errors.Join(summed(errs), summed(released))
}

// summed keeps the first error and the number of others: a thousand refused pods are
// refused for one reason.
func summed(errs []error) error {
	var first error
	count := 0
	for _, err := range errs {
		if err != nil {
			count++
			if first == nil {
				first = err
			}
		}
	}
	if count > 1 {
		return fmt.Errorf("%d failed, the first: %w", count, first)
	}
	return first
}

// place reads a created pod's place; it was made from one.
func place(pod *corev1.Pod) naming.Place {
	at, _ := naming.ParsePlace(pod.Labels)
	return at
}
