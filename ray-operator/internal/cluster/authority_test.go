package cluster_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster/store"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// site is an operator's that has programs for pods.
var site = desired.Site{Image: pod.OperatorImage{Image: "heliostat"}}

// TestAuthority_StaysWhileItsCertificatesAreInUse: pods with certificates of one that is gone, and a Redis that runs, could
// not speak with those of another.
func TestAuthority_StaysWhileItsCertificatesAreInUse(t *testing.T) {
	of := demo()
	of.Spec.Network = &v1beta1.Network{Encryption: v1beta1.Enabled}
	of.Spec.ControlStore = managedRedis()
	redis := func(ready int32) func(*cluster.Seen) {
		return func(seen *cluster.Seen) {
			set := desired.StoreSet(of)
			desired.EncryptStore(set, of, site)
			set.Status.ReadyReplicas = ready
			seen.Fixtures["StatefulSet of the store"] = reconcile.Fixture{Presence: reconcile.Ours, Object: set}
		}
	}
	alone := func(seen *cluster.Seen) { seen.Pods = nil }
	encrypted := func(seen *cluster.Seen) {
		for i := range seen.Pods {
			seen.Pods[i].Annotations[v1beta1.AnnotationEncryption] = string(v1beta1.Enabled)
		}
	}
	for name, c := range map[string]struct {
		edits []func(*cluster.Seen)
		made  bool
	}{
		"pods without certificates live": {[]func(*cluster.Seen){redis(0)}, true},
		"head and workers live":          {[]func(*cluster.Seen){redis(0), encrypted}, false},
		"workers live":                   {[]func(*cluster.Seen){redis(0), encrypted, func(seen *cluster.Seen) { seen.Pods = seen.Pods[1:] }}, false},
		"a Redis runs":                   {[]func(*cluster.Seen){redis(1), alone}, false},
		"a Redis waits, nobody lives":    {[]func(*cluster.Seen){redis(0), alone}, true},
	} {
		plan := decide(of, given(1, append(c.edits, func(seen *cluster.Seen) { seen.Authority = reconcile.Absent })...))
		missing := plan.Held != nil && plan.Held.Code == reason.CAMissing.Code
		if plan.Authority != c.made || missing == c.made {
			t.Errorf("%s: an authority is made: %t, missing: %t", name, plan.Authority, missing)
		}
	}
}

// TestEncryptsStore_LeavesARedisAsItRuns: a managed Redis has TLS from its first start. One that was made while the operator
// had no image for pods gets it where nobody speaks with it.
func TestEncryptsStore_LeavesARedisAsItRuns(t *testing.T) {
	of := demo()
	of.Spec.ControlStore = managedRedis()
	redis := func(encrypted bool, replicas int32) func(*cluster.Seen) {
		return func(seen *cluster.Seen) {
			set := desired.StoreSet(of)
			if encrypted {
				desired.EncryptStore(set, of, site)
			}
			set.Spec.Replicas = &replicas
			seen.Fixtures["StatefulSet of the store"] = reconcile.Fixture{Presence: reconcile.Ours, Object: set}
		}
	}
	head := func(made *corev1.Pod) func(*cluster.Seen) {
		return pods(0, func(p *corev1.Pod) { p.Spec = made.Spec })
	}
	alone := func(seen *cluster.Seen) { seen.Pods, seen.Record.HeadUID = nil, "" }
	heads := 0
	plain, secure := pod.Head(of, 1), pod.EncryptStore(pod.Head(of, 1), of)
	for name, c := range map[string]struct {
		edits []func(*cluster.Seen)
		want  bool
	}{
		"nothing was made":                       {[]func(*cluster.Seen){alone}, true},
		"one in clear text runs":                 {[]func(*cluster.Seen){redis(false, 1), head(plain)}, false},
		"one in clear text runs without a head":  {[]func(*cluster.Seen){redis(false, 1), alone}, false},
		"one in clear text is suspended":         {[]func(*cluster.Seen){redis(false, 0), alone}, true},
		"one in clear text goes, its head stays": {[]func(*cluster.Seen){redis(false, 0), head(plain)}, false},
		"one with TLS runs":                      {[]func(*cluster.Seen){redis(true, 1), head(secure)}, true},
		"one with TLS is suspended":              {[]func(*cluster.Seen){redis(true, 0), alone}, true},
		"one in clear text was deleted alone":    {[]func(*cluster.Seen){head(plain)}, false},
		"one with TLS was deleted under a head":  {[]func(*cluster.Seen){head(secure)}, true},
		"a head is being made beside one of TLS": {[]func(*cluster.Seen){redis(true, 1), alone}, true},
	} {
		seen := given(1, c.edits...)
		seen.Store = serving()
		seen.Store.Volume = store.Volume{Name: "demo-store", Presence: reconcile.Ours, Phase: corev1.ClaimBound}
		plan := decide(of, seen)
		if plan.EncryptsStore != c.want {
			t.Errorf("%s: TLS %t, want %t", name, plan.EncryptsStore, c.want)
		}
		if plan.Head != nil {
			heads++
			if pod.EncryptsStore(plan.Head) != c.want {
				t.Errorf("%s: the head speaks TLS with it: %t, want %t", name, !c.want, c.want)
			}
		}
		for _, fixing := range plan.Fixtures {
			if set, is := fixing.Wanted.(*appsv1.StatefulSet); is && desired.EncryptsStore(set) != c.want {
				t.Errorf("%s: the set has TLS: %t, want %t", name, !c.want, c.want)
			}
		}
	}
	if heads < 4 {
		t.Errorf("%d heads were made", heads)
	}
}

// TestEncryptsStore_TakesAnImageOfTheOperator: without one there is no program to make certificates.
func TestEncryptsStore_TakesAnImageOfTheOperator(t *testing.T) {
	of := demo()
	of.Spec.ControlStore = managedRedis()
	alone := func(seen *cluster.Seen) { seen.Pods, seen.Record.HeadUID = nil, "" }
	runs := func(seen *cluster.Seen) {
		set := desired.StoreSet(of)
		desired.EncryptStore(set, of, site)
		seen.Fixtures["StatefulSet of the store"] = reconcile.Fixture{Presence: reconcile.Ours, Object: set}
	}
	if cluster.Decide(of, given(1, alone), desired.Site{}, now).EncryptsStore {
		t.Error("an operator without an image makes certificates")
	}
	if plan := cluster.Decide(of, given(1, runs), desired.Site{}, now); plan.Stalled == nil || plan.Stalled.Code != reason.InvalidSpec.Code {
		t.Errorf("an operator without an image works with a Redis with TLS: %s", plan)
	}
	of.Spec.ControlStore = givenRedis()
	if decide(of, given(1, alone)).EncryptsStore {
		t.Error("a Redis of the user's counts as a managed one")
	}
}
