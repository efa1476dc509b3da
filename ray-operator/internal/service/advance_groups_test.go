package service

import (
	"slices"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// groups are groups of two workers each.
func groups(names ...string) []v1beta1.WorkerGroup {
	all := make([]v1beta1.WorkerGroup, 0, len(names))
	for _, name := range names {
		all = append(all, v1beta1.WorkerGroup{Name: name, Replicas: number(2)})
	}
	return all
}

// TestGroups_AreNoVersion: the cluster of the version that runs gets groups of workers, or gives them up, whatever the
// strategy. Whatever else changes with them needs another version.
func TestGroups_AreNoVersion(t *testing.T) {
	for name, c := range map[string]struct {
		runs, asks []string
		edit       specEdit
		same       bool
	}{
		"one more":                    {[]string{"cpu"}, []string{"cpu", "gpu"}, nil, true},
		"one more that is there":      {[]string{"cpu", "gpu"}, []string{"cpu", "gpu"}, nil, true},
		"one fewer, added before":     {[]string{"cpu", "gpu"}, []string{"cpu"}, nil, true},
		"one fewer, made with it":     {[]string{"cpu", "gpu"}, []string{"gpu"}, nil, true},
		"another name":                {[]string{"cpu"}, []string{"gpu"}, nil, false},
		"one more and one fewer":      {[]string{"cpu", "gpu"}, []string{"cpu", "tpu"}, nil, false},
		"the first one":               {nil, []string{"gpu"}, nil, false},
		"one more, and another image": {[]string{"cpu"}, []string{"cpu", "gpu"}, workerImage, false},
		"one more, and another head":  {[]string{"cpu"}, []string{"cpu", "gpu"}, headImage, false},
		"one more, and its options":   {[]string{"cpu"}, []string{"cpu", "gpu"}, withHTTP, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := serves(t)
			before := s.seen.Record.Active
			s.seen.Clusters[1].Spec.WorkerGroups, s.service.Spec.ClusterTemplate.Spec.WorkerGroups = groups(c.runs...), groups(c.asks...)
			if c.edit != nil {
				c.edit(&s.service.Spec)
			}
			plan := s.decide()
			began := plan.Record != nil && plan.Record.Candidate != nil
			if began == c.same || (plan.Make != nil) == c.same {
				t.Fatalf("the plan is %s", plan.String())
			}
			if !c.same {
				return
			}
			if plan.Record != nil && (plan.Record.Active.Revision != before.Revision || plan.Record.Active.Pods != before.Pods) {
				t.Errorf("the record is %s", plan.Record)
			}
			has := s.seen.Clusters[1].Spec
			if len(plan.Change) > 0 {
				has = plan.Change[0].Wanted.Spec
			}
			if !slices.EqualFunc(has.WorkerGroups, c.asks, func(g v1beta1.WorkerGroup, name string) bool { return g.Name == name }) {
				t.Errorf("the cluster has %+v, want %q", has.WorkerGroups, c.asks)
			}
		})
	}
}

// TestGroups_ComeBackWithTheCluster: one that somebody deleted is made with all groups, and one that goes back to a former
// version keeps those that it got since.
func TestGroups_ComeBackWithTheCluster(t *testing.T) {
	s := serves(t)
	s.service.Spec.ClusterTemplate.Spec.WorkerGroups = groups("cpu", "gpu")
	delete(s.seen.Clusters, 1)
	if plan := s.decide(); plan.Make == nil || len(plan.Make.Spec.WorkerGroups) != 2 {
		t.Errorf("a cluster that is gone: %s", plan.String())
	}

	s = serves(t)
	kept := s.seen.Record.Active
	s.seen.Clusters[1].Spec.WorkerGroups = groups("cpu", "gpu", "tpu")
	s.service.Spec.ClusterTemplate.Spec.WorkerGroups = groups("cpu", "gpu", "new")
	headImage(&s.service.Spec)
	target, err := revisionOf(s.service)
	if err != nil {
		t.Fatal(err)
	}
	v := s.read()
	v.target = target
	template := templateOf(s.service, v.revisions, v.stateOf(kept))
	if have := template.Spec; have.Image != "" || len(have.WorkerGroups) != 2 || have.WorkerGroups[1].Name != "gpu" {
		t.Errorf("the former version's cluster is built from %+v", have)
	}
}
