package cluster_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// TestNoteIsKeptBeforeARedisIsAsked: as soon as a cluster has no head, for whatever reason
// none comes, and only of a Redis that is the user's.
func TestNoteIsKeptBeforeARedisIsAsked(t *testing.T) {
	headless := func(s *cluster.Seen) { s.Pods, s.Record.HeadUID = nil, "" }
	for name, test := range map[string]struct {
		store *v1beta1.ControlStore
		edits []func(*cluster.Seen)
		spec  func(*v1beta1.ComputeClusterSpec)
		want  bool
	}{
		"a new cluster":              {store: givenRedis(), edits: []func(*cluster.Seen){headless}, want: true},
		"one that waits for a token": {store: givenRedis(), edits: []func(*cluster.Seen){headless, noToken}, spec: tokenOfTheirs, want: true},
		"one whose head was lost":    {store: givenRedis(), edits: []func(*cluster.Seen){func(s *cluster.Seen) { s.Pods = s.Pods[1:] }}, want: true},
		"what is noted":              {store: givenRedis(), edits: []func(*cluster.Seen){headless, func(s *cluster.Seen) { s.Store.Noted = true }}},
		"one with a head":            {store: givenRedis()},
		"a suspended one":            {store: givenRedis(), edits: []func(*cluster.Seen){headless}, spec: func(s *v1beta1.ComputeClusterSpec) { s.Suspend = new(true) }},
		"a managed Redis":            {store: managedRedis(), edits: []func(*cluster.Seen){headless}},
		"an embedded store":          {store: embedded(), edits: []func(*cluster.Seen){headless}},
		"no store":                   {edits: []func(*cluster.Seen){headless}},
	} {
		of := demo()
		of.Spec.ControlStore = test.store
		if test.spec != nil {
			test.spec(&of.Spec)
		}
		if plan := decide(of, given(1, test.edits...)); plan.Note != test.want || plan.Note && plan.Empty() {
			t.Errorf("%s: noted %v, want %v: %s", name, plan.Note, test.want, plan)
		}
	}
}

// TestReconciler_AsksNoRedisBeforeItsNoteIsKept: the world's rules fail where a Redis is asked without a note.
func TestReconciler_AsksNoRedisBeforeItsNoteIsKept(t *testing.T) {
	w := testkit.NewWorld(t)
	w.Refuse(func(obj client.Object) error {
		if _, isNote := obj.(*corev1.ConfigMap); isNote {
			return apierrors.NewForbidden(corev1.Resource("configmaps"), obj.GetName(), errors.New("no quota"))
		}
		return nil
	})
	of := demo()
	of.Spec.ControlStore = givenRedis()
	w.Create(of)
	w.SettleRefused()
	w.Refuse(nil)
	w.After(time.Minute)
	w.Expect("demo", ready, serves)
}

func noToken(s *cluster.Seen) { s.Token = cluster.Token{Presence: reconcile.Absent} }

func tokenOfTheirs(s *v1beta1.ComputeClusterSpec) {
	s.Authentication = &v1beta1.Authentication{SecretName: "mine"}
}

// TestStoreSecret_IsMadeWithItsSet: also for a cluster that is suspended from its start.
func TestStoreSecret_IsMadeWithItsSet(t *testing.T) {
	of := demo()
	of.Spec.ControlStore = managedRedis()
	fresh := cluster.Seen{RecordMissing: true, Token: cluster.Token{Presence: reconcile.Absent}}
	for _, suspend := range []bool{false, true} {
		of.Spec.Suspend = new(suspend)
		if plan := decide(of, fresh); !plan.StoreSecret {
			t.Errorf("suspended %t: the Secret is not made: %s", suspend, plan)
		}
		seen := fresh
		seen.Fixtures = map[string]reconcile.Fixture{"StatefulSet of the store": {Presence: reconcile.Ours, Object: desired.StoreSet(of)}}
		if plan := decide(of, seen); plan.StoreSecret {
			t.Errorf("suspended %t: the Secret is made beside a set that is there: %s", suspend, plan)
		}
	}
}
