package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// TestStoreOutlivesItsHeads follows a cluster with its memory in a real Redis: through the
// loss of its head, and that of its memory, to its end. Another cluster, whose namespace of
// Ray's begins as this one's does, goes on beside it.
func TestStoreOutlivesItsHeads(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	s := storied{bed: b, operator: watching(t, b.namespace)}
	s.member, s.neighbour = s.make(t, "a"), s.make(t, "a:b")
	t.Run("a head takes few writes more, and a note without a secret", s.begins)
	t.Run("a lost head comes back to its workers", s.headLost)
	t.Run("a lost memory is a new session", s.memoryLost)
	t.Run("a deleted cluster leaves no key", s.deleted)
}

// storied is a cluster in a bed, with a neighbour.
type storied struct {
	*bed
	member
	neighbour member
	operator  *operator
}

// make makes a cluster with three workers, and checks what it takes.
func (s *storied) make(t *testing.T, ray string) member {
	t.Helper()
	s.operator.quiet()
	before := shared.audit.now(t)
	cluster := s.cluster(s.namespace, "c"+strings.ReplaceAll(ray, ":", "-"), ray, 3)
	must(t, shared.Create(t.Context(), cluster))
	one := member{client.ObjectKeyFromObject(cluster), cluster.UID, ray}
	s.settle(one)
	s.operator.quiet()
	// One status more than without a store, which tells that the store is asked.
	if made := writes(shared.audit.since(t, before, s.namespace)); len(made) > 16 {
		t.Errorf("a head with three workers and a Redis took %d writes, want at most 16: %s", len(made), tally(made))
	}
	for _, r := range writes(shared.audit.since(t, before, live.ReleaseNamespace)) {
		if r.ObjectRef.Name == noteOf(one).Name && r.what() != "create configmaps" {
			t.Errorf("of its note the operator did %s", r.what())
		}
	}
	return one
}

func (s *storied) begins(t *testing.T) {
	s.tells(t, "True StoreServes")
	for _, one := range []member{s.member, s.neighbour} {
		note := noted(t, one)
		if note.Data["state"] != "" || note.Data["address"] != s.Address() || note.Data["passwordSecret"] != "store/password" {
			t.Errorf("the note of a living cluster is %v", note.Data)
		}
	}
	keepsSecret(t, s.operator, s.namespace)
}

// tells waits until the condition ControlStoreReady says something.
func (s *storied) tells(t *testing.T, want string) {
	t.Helper()
	eventually(t, "ControlStoreReady to be "+want, func(ctx context.Context) error {
		cluster, err := shared.Find(ctx, s.NamespacedName)
		if err == nil && said(cluster) != want {
			err = fmt.Errorf("it is %q", said(cluster))
		}
		return err
	})
}

// said is what the condition ControlStoreReady says, in a line.
func said(cluster *v1beta1.ComputeCluster) string {
	condition := meta.FindStatusCondition(cluster.Status.Conditions, v1beta1.ConditionControlStoreReady)
	if condition == nil {
		return ""
	}
	return string(condition.Status) + " " + condition.Reason
}

func (s *storied) headLost(t *testing.T) {
	keys := s.written(s.ray)
	workers := uids(podsOf(t, s.NamespacedName, v1beta1.RoleWorker))
	t.Logf("another head was there after %v", rounded(anotherHead(t, s.NamespacedName)))
	s.isAt(t, 2, 1)
	if now := uids(podsOf(t, s.NamespacedName, v1beta1.RoleWorker)); !maps.Equal(now, workers) {
		t.Errorf("the workers are %v, they were %v", now, workers)
	}
	if now := s.written(s.ray); !slices.Equal(now, keys) {
		t.Errorf("the keys are %v, they were %v", now, keys)
	}
}

// isAt waits until the cluster is ready in an epoch and a session, and checks that record
// and marker say so too.
func (s *storied) isAt(t *testing.T, epoch, session int64) {
	t.Helper()
	var cluster *v1beta1.ComputeCluster
	eventually(t, fmt.Sprintf("epoch %d of session %d to be ready", epoch, session), func(context.Context) error {
		cluster = ready(t, s.NamespacedName)
		if at := cluster.Status.ControlStore; at == nil || cluster.Status.Epoch != epoch || at.Session != session || at.Namespace != s.ray {
			return fmt.Errorf("there is epoch %d of %+v", cluster.Status.Epoch, at)
		}
		return nil
	})
	record := struct{ Epoch, Session int64 }{}
	must(t, json.Unmarshal([]byte(cluster.Annotations[v1beta1.AnnotationRecord]), &record))
	if record.Epoch != epoch || record.Session != session && !(record.Session == 0 && session == epoch) {
		t.Errorf("the record is %+v, want epoch %d of session %d", record, epoch, session)
	}
	s.marks(s.member, int(session), int(epoch))
}

func uids(pods []corev1.Pod) map[types.UID]bool {
	all := map[types.UID]bool{}
	for i := range pods {
		all[pods[i].UID] = true
	}
	return all
}

func (s *storied) memoryLost(t *testing.T) {
	workers := uids(podsOf(t, s.NamespacedName, v1beta1.RoleWorker))
	heard := s.listen(t)
	begin := time.Now()
	s.Do("FLUSHALL")
	s.addOthers()
	s.isAt(t, 3, 3)
	t.Logf("Ready with another memory %v after the loss", rounded(time.Since(begin)))
	for uid := range uids(podsOf(t, s.NamespacedName, v1beta1.RoleWorker)) {
		if workers[uid] {
			t.Errorf("the worker %s is of the session that is over", uid)
		}
	}
	s.tells(t, "True StoreServes")
	if now := heard(); !slices.Contains(now, "False StoreDataLost") || now[len(now)-1] != "True StoreServes" {
		t.Errorf("ControlStoreReady was %v, want False in between", now)
	}
	eventually(t, "the event", func(ctx context.Context) error {
		var list eventsv1.EventList
		err := shared.List(ctx, &list, client.InNamespace(s.namespace))
		if err == nil && !slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Reason == "StoreDataLost" && e.Type == corev1.EventTypeWarning && e.Regarding.Name == s.Name
		}) {
			err = fmt.Errorf("there are %d others", len(list.Items))
		}
		return err
	})
	s.settleAgain(t)
}

// settleAgain writes what heads of new sessions would write.
func (s *storied) settleAgain(t *testing.T) {
	t.Helper()
	// The neighbour's session is over too, and with it goes what is written before the operator saw that.
	eventually(t, "the neighbour to be ready in another session", func(context.Context) error {
		if cluster := ready(t, s.neighbour.NamespacedName); cluster.Status.Epoch < 2 {
			return fmt.Errorf("it is in epoch %d", cluster.Status.Epoch)
		}
		return nil
	})
	s.write(s.ray)
	s.write(s.neighbour.ray)
}

// listen begins to hear what ControlStoreReady says, and gives what it has said.
func (s *storied) listen(t *testing.T) func() []string {
	t.Helper()
	changes, err := shared.Watch(t.Context(), &v1beta1.ComputeClusterList{}, client.InNamespace(s.namespace), client.MatchingFields{"metadata.name": s.Name})
	must(t, err)
	t.Cleanup(changes.Stop)
	var mu sync.Mutex
	var heard []string
	go func() {
		for change := range changes.ResultChan() {
			cluster, ok := change.Object.(*v1beta1.ComputeCluster)
			if !ok || change.Type == watch.Deleted {
				continue
			}
			mu.Lock()
			if now := said(cluster); len(heard) == 0 || heard[len(heard)-1] != now {
				heard = append(heard, now)
			}
			mu.Unlock()
		}
	}()
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(heard)
	}
}

func (s *storied) deleted(t *testing.T) {
	beside := s.written(s.neighbour.ray)
	t.Logf("deleted, and nothing left after %v", rounded(s.drop(t, s.member)))
	if now := s.written(s.neighbour.ray); !slices.Equal(now, beside) {
		t.Errorf("the neighbour's keys are %v, they were %v", now, beside)
	}
	noted(t, s.neighbour)
	s.drop(t, s.neighbour)
	if lost := s.othersLost(); lost > 0 || len(s.left()) > 0 {
		t.Errorf("%d keys of others are lost, and of the clusters are left %v", lost, s.left())
	}
	keepsSecret(t, s.operator, s.namespace)
}

// drop deletes a cluster and waits until nothing of it is left: not itself, no key, no note.
func (b *bed) drop(t *testing.T, one member) time.Duration {
	t.Helper()
	begin := time.Now()
	must(t, shared.Delete(t.Context(), &v1beta1.ComputeCluster{ObjectMeta: at(one.NamespacedName)}))
	must(t, shared.UntilGone(t.Context(), one.NamespacedName, limit))
	eventually(t, "the keys to be gone", func(context.Context) error {
		if keys := b.written(one.ray); len(keys) > 0 {
			return fmt.Errorf("there are %v", keys)
		}
		return nil
	})
	took := time.Since(begin)
	gone(t, &corev1.ConfigMap{ObjectMeta: at(noteOf(one))})
	return took
}
