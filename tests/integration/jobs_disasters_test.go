package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// watched calls a function with each job as it is seen.
func watched(see func(*v1beta1.ClusterJob)) toolscache.ResourceEventHandlerFuncs {
	look := func(obj any) {
		if job, ok := obj.(*v1beta1.ClusterJob); ok {
			see(job)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, obj any) { look(obj) }}
}

// The disasters that count what has come of them.
const (
	wiped     = "status wiped"
	forgotten = "record removed"
	trapped   = "head's pod deleted between POST and reply"
)

// wipe takes away what the status tells, unless the record is away: what neither of them
// has, nobody can know.
func (s *storm) wipe(job *v1beta1.ClusterJob) error {
	var there v1beta1.ClusterJob
	if err := shared.Get(s.t.Context(), client.ObjectKeyFromObject(job), &there); err != nil {
		return fmt.Errorf("read %s: %w", job.Name, err)
	}
	if there.Annotations[v1beta1.AnnotationRecord] == "" {
		return nil
	}
	patch := fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"status":null}`, there.ResourceVersion)
	return s.lose(wiped, shared.Status().Patch(s.t.Context(), &there, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// lose counts that something was taken away, if nobody else has changed it meanwhile.
func (s *storm) lose(what string, err error) error {
	if err == nil {
		s.count(what)
	}
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// forget removes the record of a job, once the status tells of all that it has.
func (s *storm) forget(job *v1beta1.ClusterJob) error {
	var there v1beta1.ClusterJob
	if err := shared.Get(s.t.Context(), client.ObjectKeyFromObject(job), &there); err != nil {
		return fmt.Errorf("read %s: %w", job.Name, err)
	}
	if !mirrored(&there) {
		return nil
	}
	patch := fmt.Sprintf(`{"metadata":{"resourceVersion":%q,"annotations":{%q:null}}}`, there.ResourceVersion, v1beta1.AnnotationRecord)
	return s.lose(forgotten, shared.Patch(s.t.Context(), &there, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// mirrored reports whether a job's status has told of all that is in its record.
func mirrored(job *v1beta1.ClusterJob) bool {
	var record struct {
		Attempt int32
		Bound   struct{ Head, Session string }
		Past    []struct {
			N int32
		}
		Outcome struct{ Phase string }
	}
	if json.Unmarshal([]byte(job.Annotations[v1beta1.AnnotationRecord]), &record) != nil {
		return false
	}
	attempts := len(record.Past)
	if record.Bound.Head != "" {
		attempts++
	}
	if attempts == 0 || attempts != len(job.Status.Attempts) || record.Outcome.Phase != "" && record.Outcome.Phase != job.Status.Phase {
		return false
	}
	last := job.Status.Attempts[attempts-1]
	if record.Bound.Head == "" {
		return last.Number == record.Past[len(record.Past)-1].N && last.EndTime != nil
	}
	return last.Number == record.Attempt && string(last.HeadUID) == record.Bound.Head && last.Session == record.Bound.Session && last.EndTime == nil
}

// behead deletes the pod of a head, with notice or without.
func (s *storm) behead() error {
	one := s.one()
	if one == nil {
		return nil
	}
	return s.remove(s.t.Context(), one)
}

func (s *storm) remove(ctx context.Context, one *head) error {
	var options []client.DeleteOption
	if rand.IntN(2) == 0 {
		options = append(options, client.GracePeriodSeconds(0))
	}
	err := shared.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: one.name.Namespace, Name: one.name.Name}}, options...)
	if err != nil {
		return fmt.Errorf("delete the pod of a head: %w", err)
	}
	return nil
}

// trap lets a head be lost when it has taken the next submission and has not said so.
func (s *storm) trap() error {
	one := s.one()
	if one == nil {
		return nil
	}
	var once sync.Once
	one.proxy.AtReply(func(request *http.Request) {
		if request.Method != http.MethodPost {
			return
		}
		once.Do(func() {
			if err := client.IgnoreNotFound(s.remove(context.WithoutCancel(s.t.Context()), one)); err != nil {
				s.t.Errorf("%s: %v", trapped, err)
			}
			s.count(trapped)
		})
	})
	return nil
}

// restart is the end of Ray's container, and its begin in the same pod.
func (s *storm) restart() error {
	one := s.one()
	if one == nil {
		return nil
	}
	return shared.kubelet.restart(s.t.Context(), one)
}
