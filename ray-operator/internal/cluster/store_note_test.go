package cluster_test

import (
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
)

// TestNoteIsKeptBeforeARedisIsAsked: as soon as a cluster has no head, for whatever reason
// none comes, and only of a Redis that is the user's.
func TestNoteIsKeptBeforeARedisIsAsked(t *testing.T) {
	headless := func(s *cluster.Seen) { s.Pods, s.Record.HeadUID = nil, "" }
	for name, test := range map[string]struct {
		store *v1alpha1.ControlStore
		edits []func(*cluster.Seen)
		spec  func(*v1alpha1.ComputeClusterSpec)
		want  bool
	}{
		"a new cluster":              {store: givenRedis(), edits: []func(*cluster.Seen){headless}, want: true},
		"one that waits for a token": {store: givenRedis(), edits: []func(*cluster.Seen){headless, noToken}, spec: tokenOfTheirs, want: true},
		"one whose head was lost":    {store: givenRedis(), edits: []func(*cluster.Seen){func(s *cluster.Seen) { s.Pods = s.Pods[1:] }}, want: true},
		"what is noted":              {store: givenRedis(), edits: []func(*cluster.Seen){headless, func(s *cluster.Seen) { s.Store.Noted = true }}},
		"one with a head":            {store: givenRedis()},
		"a suspended one":            {store: givenRedis(), edits: []func(*cluster.Seen){headless}, spec: func(s *v1alpha1.ComputeClusterSpec) { s.Suspend = true }},
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

func noToken(s *cluster.Seen) { s.Token = cluster.Token{Presence: cluster.Absent} }

func tokenOfTheirs(s *v1alpha1.ComputeClusterSpec) {
	s.Authentication = &v1alpha1.Authentication{SecretName: "mine"}
}
