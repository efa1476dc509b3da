package testkit

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Delete removes an object if it is the one meant. A pod gets its grace period first,
// which a second delete can only shorten; finalizers are waited for.
func (s *server) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	defer s.begin(ctx)()
	var options client.DeleteOptions
	options.ApplyOptions(opts)
	held := s.latest.find(keyOf(obj))
	if held == nil {
		return apierrors.NewNotFound(resourceOf(obj), obj.GetName())
	}
	found := copied(held)
	if err := met(options.Preconditions, found); err != nil {
		return err
	}
	return s.remove(found, options)
}

// DeleteAllOf removes the pods that are meant, one after the other.
func (s *server) DeleteAllOf(ctx context.Context, _ client.Object, opts ...client.DeleteAllOfOption) error {
	var options client.DeleteAllOfOptions
	options.ApplyOptions(opts)
	var pods corev1.PodList
	if err := s.latest.List(ctx, &pods, &options.ListOptions); err != nil {
		return err
	}
	defer s.begin(ctx)()
	for i := range pods.Items {
		if err := s.remove(&pods.Items[i], options.DeleteOptions); err != nil {
			return err
		}
	}
	return nil
}

// remove removes what is there, or has it terminate.
func (s *server) remove(found client.Object, options client.DeleteOptions) error {
	if pod, ok := found.(*corev1.Pod); ok {
		grace := *pod.Spec.TerminationGracePeriodSeconds
		if options.GracePeriodSeconds != nil {
			grace = *options.GracePeriodSeconds
		}
		if grace > 0 {
			return s.terminate(pod, grace)
		}
	}
	if len(found.GetFinalizers()) == 0 {
		s.publish(watch.Deleted, found)
	} else if grace := found.GetDeletionGracePeriodSeconds(); grace == nil || *grace > 0 {
		now, none := metav1.NewTime(s.clock.Now().Truncate(time.Second)), int64(0)
		found.SetDeletionTimestamp(&now)
		found.SetDeletionGracePeriodSeconds(&none)
		s.publish(watch.Modified, found)
	}
	return nil
}

func met(want *metav1.Preconditions, found client.Object) error {
	switch {
	case want == nil:
		return nil
	case want.UID != nil && *want.UID != found.GetUID():
		return conflict(found, "the UID in the precondition does not match")
	case want.ResourceVersion != nil && *want.ResourceVersion != found.GetResourceVersion():
		return conflict(found, "the resourceVersion in the precondition does not match")
	default:
		return nil
	}
}

func (s *server) terminate(pod *corev1.Pod, grace int64) error {
	begin := s.clock.Now().Truncate(time.Second)
	if pod.DeletionTimestamp != nil {
		begin = pod.DeletionTimestamp.Add(-time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
		if grace >= *pod.DeletionGracePeriodSeconds {
			return nil
		}
	}
	end := metav1.NewTime(begin.Add(time.Duration(grace) * time.Second))
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &end, &grace
	s.publish(watch.Modified, pod)
	return nil
}
