package view_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

func TestLine_SaysWhatTheStatusSays(t *testing.T) {
	idle := cluster("a", "idle", 7)
	idle.Labels, idle.Annotations = map[string]string{"team": "a"}, map[string]string{"heliostat.dev/owner": "ana@example.com"}
	idle.Status.Conditions = append(conditions(metav1.ConditionFalse, reason.HeadStarting.Of("h"), began.Add(time.Hour)), metav1.Condition{
		Type: v1beta1.ConditionSuspended, Status: metav1.ConditionFalse, Reason: reason.IdleSoon.Code,
		Message: reason.IdleSoon.Of("2026-11-26T11:00:00Z", "suspended", "2026-11-26T13:00:00Z").Text,
	})
	shared := job("a", "shared", 8)
	shared.Spec.ClusterRef = &v1beta1.ClusterReference{Name: "idle"}
	shared.Status.Attempt = 2
	served := service("a", "served", 9)
	served.Status.Active = &v1beta1.ServiceVersion{ClusterName: "served-1", Revision: 1, TrafficPercent: 60}
	served.Status.Candidate = &v1beta1.ServiceVersion{ClusterName: "served-2", Revision: 2, TrafficPercent: 40}
	v := filled(t, idle, shared, served)

	_, line, _ := v.Find(key(view.Clusters, "idle"))
	message, remedy := reason.Split(reason.HeadStarting.Code, reason.HeadStarting.Of("h").Text)
	want := &view.Line{
		Key: key(view.Clusters, "idle"), UID: "uid-idle", ResourceVersion: "7", Labels: idle.Labels, Phase: "Ready", Ready: "False",
		Code: reason.HeadStarting.Code, Message: message, Remedy: remedy, Since: began.Add(time.Hour), Created: began.Add(4 * time.Minute),
		Owner: "ana@example.com", IdleSince: began.Add(-time.Hour),
	}
	if diff := cmp.Diff(want, line); diff != "" {
		t.Errorf("- want, + have:\n%s", diff)
	}
	if _, line, _ := v.Find(key(view.Jobs, "shared")); line.Cluster != "idle" || line.Attempt != 2 || line.Phase != "Running" {
		t.Errorf("the line of a job is %+v", line)
	}
	_, line, _ = v.Find(key(view.Services, "served"))
	if diff := cmp.Diff([]view.Traffic{{Version: "1", Percent: 60}, {Version: "2", Percent: 40}}, line.Traffic); diff != "" || line.Version != "1" || line.Cluster != "served-1" {
		t.Errorf("the line of a service is %+v", line)
	}
	if _, _, is := v.Find(key(view.Services, "gone")); is {
		t.Error("an object is found that is not there")
	}
}

func TestLine_Proto(t *testing.T) {
	line := view.Line{Key: key(view.Services, "s"), UID: "u", Labels: map[string]string{"a": "b"}, Created: began, GPUs: 3, Traffic: []view.Traffic{{Version: "1", Percent: 7}}}
	message := line.Proto()
	if message.Name != "s" || message.Kind != view.Services || message.Gpus != 3 || message.Labels["a"] != "b" || message.Traffic[0].Percent != 7 {
		t.Errorf("the message is %v", message)
	}
	if !message.Created.AsTime().Equal(began) || message.Since != nil || message.IdleSince != nil {
		t.Errorf("times are %v, %v and %v", message.Created, message.Since, message.IdleSince)
	}
}

// TestGPUs_AreThoseOfPods: of the object's own clusters, while they have not ended.
func TestGPUs_AreThoseOfPods(t *testing.T) {
	gpus := func(v *view.View, kind, name string) int64 {
		_, line, _ := v.Find(key(kind, name))
		return line.GPUs
	}
	user, guest := job("a", "user", 1), job("a", "guest", 2)
	guest.Spec.ClusterRef = &v1beta1.ClusterReference{Name: "own"}
	own := ownedBy(cluster("a", "own", 3), "ClusterJob", user)
	v := filled(t, user, guest, own, pod(own, "p1", 4, 2))
	check := func(when string, want int64) {
		t.Helper()
		if have := [3]int64{gpus(v, view.Clusters, "own"), gpus(v, view.Jobs, "user"), gpus(v, view.Jobs, "guest")}; have != [3]int64{want, want, 0} {
			t.Errorf("%s: cluster, job and guest have %v GPUs, want %d, %d and 0", when, have, want, want)
		}
	}
	check("a pod", 2)
	update(t, v, pod(own, "p2", 101, 3))
	check("two pods", 5)
	ended := pod(own, "p1", 102, 2)
	ended.Status.Phase = corev1.PodSucceeded
	update(t, v, ended)
	check("one of them has ended", 3)
	remove(t, v, pod(own, "p2", 103, 3))
	check("the other one is gone", 0)
}

func TestPodsOf_AreThoseOfItsClusters(t *testing.T) {
	user, guest := job("a", "user", 1), job("a", "guest", 2)
	guest.Spec.ClusterRef = &v1beta1.ClusterReference{Name: "own"}
	own, other := ownedBy(cluster("a", "own", 3), "ClusterJob", user), cluster("a", "other", 3)
	former := cluster("a", "own", 3)
	former.UID = "former"
	v := filled(t, user, guest, own, other, pod(own, "p2", 4, 0), pod(own, "p1", 4, 0), pod(former, "p0", 4, 0))
	for of, want := range map[view.Key][]string{
		key(view.Clusters, "own"): {"p1", "p2"}, key(view.Jobs, "user"): {"p1", "p2"}, key(view.Jobs, "guest"): {"p1", "p2"},
		key(view.Clusters, "other"): nil, key(view.Services, "none"): nil,
	} {
		var have []string
		for _, one := range v.PodsOf(of) {
			have = append(have, one.Name)
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("pods of %s: %s", of, diff)
		}
	}
}

func TestStore_RefusesWhatItCannotOrder(t *testing.T) {
	v := view.New("a")
	if v.Store(view.Jobs, "b") != nil || v.Store(view.Jobs, "") != nil {
		t.Error("there is a store of a namespace that is not read")
	}
	store := v.Store(view.Clusters, "a")
	if _, is := any(store).(cache.ReflectorBookmarkStore); !is {
		t.Error("a reflector gives the store no bookmarks")
	}
	if _, is := any(store).(cache.TransformingStore); !is {
		t.Error("a reflector keeps whole objects until its first list is over")
	}
	for name, err := range map[string]error{
		"another kind":              store.Add(job("a", "j", 1)),
		"no object":                 store.Add("x"),
		"a resourceVersion of none": store.Add(&v1beta1.ComputeCluster{}),
		"a list without one":        store.Replace(nil, ""),
		"a bookmark without one":    store.Bookmark("x"),
	} {
		if err == nil {
			t.Errorf("%s is taken in", name)
		}
	}
}

func TestReplace_ForgetsWhatIsNotListed(t *testing.T) {
	own := cluster("a", "c1", 1)
	v := filled(t, own, cluster("a", "c2", 2), pod(own, "p", 3, 4), job("a", "j", 4))
	v.Take()
	if err := v.Store(view.Clusters, "").Replace([]any{cluster("a", "c1", 1), cluster("a", "c3", 150)}, "200"); err != nil {
		t.Fatal(err)
	}
	lines, _ := v.Take()
	_, isThere := lines[key(view.Clusters, "c1")]
	if gone, is := lines[key(view.Clusters, "c2")]; isThere || !is || gone != nil || lines[key(view.Clusters, "c3")] == nil || len(lines) != 2 {
		t.Errorf("a list changes %v", lines)
	}
	if err := v.Store(view.Pods, "").Replace(nil, "200"); err != nil {
		t.Fatal(err)
	}
	if _, line, _ := v.Find(key(view.Clusters, "c1")); line.GPUs != 0 {
		t.Errorf("pods that are gone take %d GPUs", line.GPUs)
	}
}

// reader is an API server with one cluster.
type reader struct {
	client.WithWatch
	isAway  atomic.Bool
	watches chan *watch.FakeWatcher
}

func (r *reader) err() error {
	if r.isAway.Load() {
		return errors.New("connection refused")
	}
	return nil
}

func (r *reader) IsWatchListSemanticsUnSupported() bool { return true }

func (r *reader) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	into.SetResourceVersion("10")
	if clusters, is := into.(*v1beta1.ComputeClusterList); is {
		clusters.Items = []v1beta1.ComputeCluster{*cluster("a", "c", 5)}
	}
	return r.err()
}

func (r *reader) Watch(_ context.Context, of client.ObjectList, _ ...client.ListOption) (watch.Interface, error) {
	events := watch.NewFake()
	if _, is := of.(*v1beta1.ComputeClusterList); is && r.err() == nil {
		r.watches <- events
	}
	return events, r.err()
}

// TestRun_ReadsAndNotesWhatIsLost: an API server that is away, and one that is back.
func TestRun_ReadsAndNotesWhatIsLost(t *testing.T) {
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil // they count on the time outside of the bubble
	t.Cleanup(func() { utilruntime.ErrorHandlers = handlers })
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		v, server := view.New(), &reader{watches: make(chan *watch.FakeWatcher, 10)}
		done := make(chan error)
		go func() { done <- v.Run(ctx, server) }()
		synctest.Wait()
		if !v.IsSynced() || v.Lost() != nil {
			t.Fatalf("the view is synced: %v, and lost: %v", v.IsSynced(), v.Lost())
		}
		events := <-server.watches
		events.Modify(cluster("a", "c", 11))
		synctest.Wait()
		if _, line, _ := v.Find(key(view.Clusters, "c")); line.ResourceVersion != "11" {
			t.Errorf("after a change the line is of %s", line.ResourceVersion)
		}
		server.isAway.Store(true)
		events.Stop()
		<-time.After(2 * time.Minute)
		synctest.Wait()
		if v.Lost() == nil {
			t.Error("an API server that is away is not lost")
		}
		server.isAway.Store(false)
		<-time.After(2 * time.Minute)
		synctest.Wait()
		if v.Lost() != nil {
			t.Errorf("an API server that is back is lost: %v", v.Lost())
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the end of the context is an error: %v", err)
		}
	})
}
