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
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/queue"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/sweep"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Outcome is what came of a plan.
type Outcome struct {
	reconcile.Outcome
	// Created are the pods that the plan made, or found made already.
	Created []*corev1.Pod
	// Refused says of each group, or of the head under "", why pods of it could not be made.
	Refused map[string]error
	// Unresized says why workers could not get more while they run.
	Unresized error
	// Unmade says why claims of shared volumes could not be made. No pod is made then, and all else goes on: the error is not in Err.
	Unmade error
	// Unchanged says what the API server refuses to change of the claims of shared volumes.
	Unchanged *reason.Finding
	// Recorded reports whether the plan's record was written.
	Recorded bool
	// Noted tells that the note of the plan is there.
	Noted bool
	// Conflict names others' object in the place of one that the cluster can do without.
	Conflict *reason.Finding
}

// addEvent adds an event, if there is one.
func (o *Outcome) addEvent(event *telemetry.Event) {
	if event != nil {
		o.Events = append(o.Events, *event)
	}
}

// applier carries plans out. It reads past the cache, which may be as late as it was for the plan.
type applier struct {
	live           client.Reader
	writer, groups *kube.Writer
	queue          *queue.Keeper
	notes          Notes
	metrics        *telemetry.Metrics
	clock          clock.PassiveClock
}

// applier returns what carries out the plans of a reconciler.
func (r *Reconciler) applier() applier {
	return applier{live: r.Live, writer: r.Writer, groups: r.Groups, queue: r.Queue, notes: r.Notes, metrics: r.Metrics, clock: r.Clock}
}

// applyPlan carries a plan out. A failed record, token or policy ends it, because what
// follows depends on them; a failed pod does not keep the others from being made.
func (a applier) applyPlan(ctx context.Context, cluster *v1beta1.ComputeCluster, seen Seen, plan Plan) Outcome {
	outcome := Outcome{Outcome: reconcile.Outcome{IsTold: true}, Refused: map[string]error{}}
	if plan.Empty() {
		return outcome
	}
	log.FromContext(ctx).Info("Applying plan", "plan", plan.String())
	if plan.End != nil {
		if outcome.Err = a.writer.DeleteSeen(ctx, cluster); outcome.Err == nil {
			outcome.addEvent(plan.End)
		}
		return outcome
	}
	if outcome.Err = a.confirmPlan(ctx, cluster, seen, plan); outcome.Err != nil {
		return outcome
	}
	if outcome.Err = a.reclaimPods(ctx, cluster, plan); outcome.Err != nil {
		return outcome
	}
	token, err := a.prepareObjects(ctx, cluster, plan, &outcome)
	if err != nil {
		outcome.Err = err
		return outcome
	}
	a.makeClaims(ctx, cluster, &plan, &outcome)
	stampPods(plan, cmp.Or(token, seen.Token.Hash))
	if err := a.makeHead(ctx, plan, &outcome); err != nil {
		outcome.Err = errors.Join(err, a.deletePods(ctx, plan, &outcome))
		return outcome
	}
	// Those that go are told before their successors are made, so that at no time a group
	// has more workers that stay than it must have.
	gone := errors.Join(a.beginExits(ctx, plan, &outcome), a.deletePods(ctx, plan, &outcome))
	if gone != nil {
		plan.Create = slices.DeleteFunc(slices.Clone(plan.Create), func(filling GroupCreation) bool { return plan.isTakingFrom(filling.Group) })
	}
	a.makeWorkers(ctx, plan, &outcome)
	outcome.Err = errors.Join(outcome.Err, gone, a.noteHead(ctx, cluster, seen, plan), a.resizeWorkers(ctx, plan, &outcome), a.queue.Do(ctx, seen.Queue, plan.Queue))
	return outcome
}

// reclaimPods makes the cluster the owner of its pods that have lost theirs, before anything else is done to them.
func (a applier) reclaimPods(ctx context.Context, cluster *v1beta1.ComputeCluster, plan Plan) error {
	return sumErrors(kube.Batches(len(plan.Reclaim), func(i int) error {
		owner := metav1.NewControllerRef(cluster, v1beta1.GroupVersion.WithKind("ComputeCluster"))
		return a.writer.Own(ctx, plan.Reclaim[i].Pod, *owner)
	}))
}

// stampPods notes on new pods which token they are started with.
func stampPods(plan Plan, token string) {
	pods := []*corev1.Pod{}
	if plan.Head != nil {
		pods = append(pods, plan.Head)
	}
	for _, filling := range plan.Create {
		pods = append(pods, filling.Pods...)
	}
	for _, pod := range pods {
		if token != "" {
			pod.Annotations[v1beta1.AnnotationToken] = token
		}
	}
}

// prepareObjects writes what pods depend on: first the record, then all else at once. It gives
// the hash of a token that it made.
func (a applier) prepareObjects(ctx context.Context, cluster *v1beta1.ComputeCluster, plan Plan, outcome *Outcome) (string, error) {
	if err := a.writeRecord(ctx, cluster, plan, outcome); err != nil {
		return "", err
	}
	hash := ""
	acts := []func() error{}
	if plan.Token {
		acts = append(acts, func() (err error) {
			hash, err = a.makeToken(ctx, cluster)
			return err
		})
	}
	if plan.Authority {
		acts = append(acts, func() error { return a.makeAuthority(ctx, cluster) })
	}
	if plan.Volume != nil {
		acts = append(acts, func() error { return a.makeVolume(ctx, plan.Volume) })
	}
	if len(plan.VolumeChanges) > 0 {
		acts = append(acts, func() error { return a.changeClaims(ctx, plan, outcome) })
	}
	if plan.Note {
		acts = append(acts, func() error {
			err := a.notes.Keep(ctx, sweep.Of(cluster, cluster.Spec.ControlStore.Redis))
			outcome.Noted = err == nil
			return err
		})
	}
	for _, fixing := range plan.Fixtures {
		writer := a.writer
		if fixing.Kind == gangKind {
			writer = a.groups
		}
		acts = append(acts, func() error { return fixing.Write(ctx, writer) })
	}
	errs := kube.AtOnce(len(acts), func(i int) error { return acts[i]() })
	for i, fixing := range plan.Fixtures {
		at := len(acts) - len(plan.Fixtures) + i
		if conflict, ok := fault.Finding(errs[at]); ok && isOptional(fixing.Kind) {
			outcome.Conflict, errs[at] = &conflict, nil
		} else if errs[at] == nil {
			outcome.addEvent(fixing.Event)
		}
	}
	return hash, errors.Join(errs...)
}

// writeRecord writes the record, on which all depends, and the Secret of a managed store before
// what needs it: once that is there, nobody looks for the Secret.
func (a applier) writeRecord(ctx context.Context, cluster *v1beta1.ComputeCluster, plan Plan, outcome *Outcome) error {
	if plan.Record != nil {
		if err := a.writer.Annotate(ctx, cluster, v1beta1.AnnotationRecord, plan.Record.boundTo(cluster).String()); err != nil {
			return err
		}
		outcome.Recorded = true
		outcome.addEvent(plan.Began)
	}
	if plan.StoreSecret {
		return a.makeStoreSecret(ctx, cluster)
	}
	return nil
}

// makeToken makes the token's Secret, or finds it made, and gives the hash of the token.
func (a applier) makeToken(ctx context.Context, cluster *v1beta1.ComputeCluster) (string, error) {
	token := newToken()
	made, err := a.writer.Create(ctx, desired.TokenSecret(cluster, token))
	if err != nil || made {
		return naming.TokenHash(token), err
	}
	there, err := readToken(ctx, a.live, cluster, Token{})
	return there.Hash, err
}

// newToken draws 256 bits.
func newToken() string {
	bits := make([]byte, 32)
	_, _ = rand.Read(bits) // never fails: the standard library says so
	return hex.EncodeToString(bits)
}

// makeHead creates the head.
func (a applier) makeHead(ctx context.Context, plan Plan, outcome *Outcome) error {
	if plan.Head == nil {
		return nil
	}
	if _, err := a.writer.Create(ctx, plan.Head); err != nil {
		err = diagnose.OfPod(plan.Head, err)
		outcome.Refused[""] = err
		return err
	}
	outcome.Created = append(outcome.Created, plan.Head)
	if plan.Epoch > 1 {
		outcome.addEvent(&telemetry.Event{Finding: reason.HeadReplaced.Of(plan.Head.Name, plan.Epoch), Action: "Recover"})
	}
	return nil
}

// makeWorkers creates the workers, the groups side by side: what refuses one group's pods does
// not keep others from being made.
func (a applier) makeWorkers(ctx context.Context, plan Plan, outcome *Outcome) {
	var mu sync.Mutex
	errs := kube.AtOnce(len(plan.Create), func(i int) error {
		filling := plan.Create[i]
		made, err := a.fillGroup(ctx, filling)
		mu.Lock()
		defer mu.Unlock()
		outcome.Created = append(outcome.Created, made...)
		if err != nil {
			outcome.Refused[filling.Group] = err
		}
		if len(made) > 0 {
			outcome.addEvent(filling.Event)
		}
		return err
	})
	outcome.Err = errors.Join(outcome.Err, errors.Join(errs...))
}

// fillGroup creates the claims and pods of a group, and returns the pods.
func (a applier) fillGroup(ctx context.Context, filling GroupCreation) ([]*corev1.Pod, error) {
	err := sumErrors(kube.Batches(len(filling.Claims), func(i int) error {
		_, err := a.writer.Create(ctx, filling.Claims[i])
		return err
	}))
	if err != nil {
		return nil, err
	}
	made := make([]*corev1.Pod, len(filling.Pods))
	errs := kube.Batches(len(filling.Pods), func(i int) error {
		_, err := a.writer.Create(ctx, filling.Pods[i])
		if err == nil {
			made[i] = filling.Pods[i]
		}
		return diagnose.OfPod(filling.Pods[i], err)
	})
	return slices.DeleteFunc(made, func(pod *corev1.Pod) bool { return pod == nil }), sumErrors(errs)
}

// noteHead puts the head's UID into the record, before anything can count on it.
func (a applier) noteHead(ctx context.Context, cluster *v1beta1.ComputeCluster, seen Seen, plan Plan) error {
	if !plan.NoteHead {
		return nil
	}
	record := Record{
		Version: recordVersion, Scaled: plan.Scaled, Roll: plan.Roll, Accepted: plan.Accepted, Policy: plan.Policy, Failures: plan.Failures, Volume: seen.Store.MemoryOn(),
	}.withIncarnation(plan.Incarnation)
	if plan.Head != nil {
		record.HeadUID = plan.Head.UID
	} else if head := headOf(seen.Pods, plan.Epoch); head != nil {
		record.HeadUID = head.UID
	}
	return a.writer.Annotate(ctx, cluster, v1beta1.AnnotationRecord, record.boundTo(cluster).String())
}

// beginExits notes on workers that their planned exit begins.
func (a applier) beginExits(ctx context.Context, plan Plan, outcome *Outcome) error {
	begun := make([]bool, len(plan.Exits))
	errs := kube.Batches(len(plan.Exits), func(i int) error {
		err := a.writer.Note(ctx, plan.Exits[i].Pod.Pod, v1beta1.AnnotationDrain, plan.Exits[i].Exit.String())
		begun[i] = err == nil
		return err
	})
	for i := range begun {
		if begun[i] {
			outcome.addEvent(plan.Exits[i].Event)
		}
	}
	return sumErrors(errs)
}

// resizeWorkers gives workers more while they run, and notes that they have it.
func (a applier) resizeWorkers(ctx context.Context, plan Plan, outcome *Outcome) error {
	resized := kube.Batches(len(plan.Resize), func(i int) error {
		return a.writer.Resize(ctx, plan.Resize[i].Pod.Pod, v1beta1.ContainerRay, plan.Resize[i].Resources)
	})
	adopted := kube.Batches(len(plan.Adopt), func(i int) error {
		return a.writer.Note(ctx, plan.Adopt[i].Pod.Pod, v1beta1.AnnotationIntent, plan.Adopt[i].Intent)
	})
	err := sumErrors(resized)
	if fault.Refused(err) { // they go on as they are
		outcome.Unresized, err = err, nil
	}
	return errors.Join(err, sumErrors(adopted))
}

func (a applier) deletePods(ctx context.Context, plan Plan, outcome *Outcome) error {
	done := make([]bool, len(plan.Delete))
	errs := kube.Batches(len(plan.Delete), func(i int) error {
		err := a.writer.Delete(ctx, plan.Delete[i].Pod.Pod, plan.Delete[i].GraceSeconds)
		done[i] = err == nil
		return err
	})
	for i := range done {
		if !done[i] {
			continue
		}
		outcome.addEvent(plan.Delete[i].Event)
		if drain := plan.Delete[i].Drain; drain != nil {
			a.metrics.Drained(drain.Took, drain.TimedOut)
		}
	}
	released := kube.Batches(len(plan.Release), func(i int) error { return a.writer.Delete(ctx, plan.Release[i], nil) })
	return errors.Join(sumErrors(errs), sumErrors(released))
}

// sumErrors keeps the first error and the number of others: a thousand refused pods are
// refused for one reason.
func sumErrors(errs []error) error {
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

// placeOf reads a created pod's place; it was made from one.
func placeOf(pod *corev1.Pod) naming.Place {
	at, _ := naming.ParsePlace(pod.Labels)
	return at
}
