package reconcile

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Statuses writes the statuses of a kind's objects, and remembers which of them wait: one that only shows progress may
// wait for more to show. That is lost with the process, which then writes later by one wait at most. The zero value is
// ready.
type Statuses struct {
	mu    sync.Mutex
	since map[types.NamespacedName]time.Time
}

// StatusWriter replaces the status of an object; kube.Writer does.
type StatusWriter interface {
	Status(ctx context.Context, seen, wanted client.Object) error
}

// StatusChange is a status as it is and as it must be, of two objects that differ in nothing else.
type StatusChange struct {
	Seen, Wanted client.Object
	// Patience returns for how long it may wait, 0 where it is urgent. It is asked only where the two differ; nil is
	// always urgent.
	Patience func() time.Duration
}

// Write writes a status that differs in meaning from the one there is, and reports whether it did. Where it may wait, it
// is left for now, and Write returns for how long.
func (s *Statuses) Write(ctx context.Context, writer StatusWriter, change StatusChange, now time.Time) (bool, time.Duration, error) {
	name := client.ObjectKeyFromObject(change.Seen)
	if equality.Semantic.DeepEqual(change.Seen, change.Wanted) {
		s.Forget(name)
		return false, 0, nil
	}
	if change.Patience != nil {
		if left := s.untilDue(name, change.Patience(), now); left > 0 {
			return false, left, nil
		}
	}
	if err := writer.Status(ctx, change.Seen, change.Wanted); err != nil {
		return false, 0, err
	}
	s.Forget(name)
	return true, 0, nil
}

// untilDue returns how much longer a status waits that may wait for so long in all.
func (s *Statuses) untilDue(object types.NamespacedName, patience time.Duration, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since == nil {
		s.since = map[types.NamespacedName]time.Time{}
	}
	since, waits := s.since[object]
	if !waits {
		s.since[object], since = now, now
	}
	return since.Add(patience).Sub(now)
}

// Forget ends the waiting: the status was written, or must not be.
func (s *Statuses) Forget(object types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.since, object)
}

// StatusMeta returns what a write of a status needs of an object: its name, and the resourceVersion that was read. An
// object with nothing but that and a status takes no time to compare.
func StatusMeta(of client.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: of.GetNamespace(), Name: of.GetName(), ResourceVersion: of.GetResourceVersion()}
}
