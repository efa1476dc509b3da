package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/naming"
)

// Outcome is what came of a plan.
type Outcome struct {
	// Created are the pods that the plan made, or found made already.
	Created []*corev1.Pod
	// Err joins the errors of all items, nil if there were none.
	Err error
}

// apply carries a plan out. A failed record, token or Service ends it, because what
// follows depends on them; a failed pod does not keep the others from being made.
func (r *Reconciler) apply(ctx context.Context, cluster *v1alpha1.ComputeCluster, seen Seen, plan Plan) Outcome {
	var outcome Outcome
	if plan.Empty() {
		return outcome
	}
	log.FromContext(ctx).Info("carrying out", "plan", plan.String())
	if outcome.Err = r.prepare(ctx, cluster, seen, plan); outcome.Err != nil {
		return outcome
	}
	if plan.Head != nil {
		if _, err := r.Writer.Create(ctx, plan.Head); err != nil {
			outcome.Err = errors.Join(err, r.remove(ctx, plan.Delete))
			return outcome
		}
		outcome.Created = append(outcome.Created, plan.Head)
	}
	outcome.Err = r.fill(ctx, plan, &outcome)
	outcome.Err = errors.Join(outcome.Err, r.noteHead(ctx, cluster, seen, plan), r.remove(ctx, plan.Delete))
	return outcome
}

// prepare writes what pods depend on.
func (r *Reconciler) prepare(ctx context.Context, cluster *v1alpha1.ComputeCluster, seen Seen, plan Plan) error {
	if plan.Record != nil {
		if err := r.Writer.Annotate(ctx, cluster, v1alpha1.AnnotationRecord, plan.Record.String()); err != nil {
			return err
		}
	}
	if plan.Token == Make {
		secret := desired.TokenSecret(cluster, newToken())
		if _, err := r.Writer.Create(ctx, secret, client.DisableReadYourWritesConsistency); err != nil {
			return err
		}
	}
	service := desired.HeadService(cluster, plan.Epoch)
	switch plan.Service {
	case Make:
		_, err := r.Writer.Create(ctx, service)
		return err
	case Mend:
		return r.Writer.Apply(ctx, mended(seen.Service, service), "Service "+service.Name)
	case Keep:
	}
	return nil
}

// newToken draws 256 bits.
func newToken() string {
	bits := make([]byte, 32)
	_, _ = rand.Read(bits) // never fails: the standard library says so
	return hex.EncodeToString(bits)
}

// mended is what is wanted of the Service that was seen, bound to its UID.
func mended(seen, wanted *corev1.Service) *applycore.ServiceApplyConfiguration {
	spec := applycore.ServiceSpec().WithSelector(wanted.Spec.Selector).WithType(wanted.Spec.Type).
		WithPublishNotReadyAddresses(wanted.Spec.PublishNotReadyAddresses)
	for _, port := range wanted.Spec.Ports {
		spec.WithPorts(applycore.ServicePort().WithName(port.Name).WithPort(port.Port).
			WithTargetPort(port.TargetPort).WithProtocol(port.Protocol))
	}
	owner := wanted.OwnerReferences[0]
	return applycore.Service(wanted.Name, wanted.Namespace).WithUID(seen.UID).WithLabels(wanted.Labels).
		WithOwnerReferences(applymeta.OwnerReference().WithAPIVersion(owner.APIVersion).WithKind(owner.Kind).
			WithName(owner.Name).WithUID(owner.UID).WithController(true).WithBlockOwnerDeletion(true)).
		WithSpec(spec)
}

// fill creates the workers.
func (r *Reconciler) fill(ctx context.Context, plan Plan, outcome *Outcome) error {
	made := make([]bool, len(plan.Create))
	errs := kube.Batches(len(plan.Create), func(i int) error {
		_, err := r.Writer.Create(ctx, plan.Create[i])
		made[i] = err == nil
		return err
	})
	for i, pod := range plan.Create {
		if made[i] {
			outcome.Created = append(outcome.Created, pod)
		}
	}
	return summed(errs)
}

// noteHead puts the head's UID into the record, before anything can count on it.
func (r *Reconciler) noteHead(ctx context.Context, cluster *v1alpha1.ComputeCluster, seen Seen, plan Plan) error {
	if !plan.NoteHead {
		return nil
	}
	record := Record{Version: recordVersion, Epoch: plan.Epoch}
	if plan.Head != nil {
		record.HeadUID = plan.Head.UID
	} else if head := headOf(seen.Pods, plan.Epoch); head != nil {
		record.HeadUID = head.UID
	}
	return r.Writer.Annotate(ctx, cluster, v1alpha1.AnnotationRecord, record.String())
}

func (r *Reconciler) remove(ctx context.Context, removals []Removal) error {
	return summed(kube.Batches(len(removals), func(i int) error {
		return r.Writer.Delete(ctx, removals[i].Pod.Pod, removals[i].GraceSeconds)
	}))
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
