package validate_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/admission/corpus"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// withTemplate is the good job with a cluster of its own, which is this one.
func withTemplate(cluster *v1beta1.ComputeCluster) *v1beta1.ClusterJob {
	job := corpus.GoodJob()
	job.Spec.ClusterRef, job.Spec.ClusterTemplate = nil, &v1beta1.ClusterTemplate{Spec: cluster.Spec}
	job.Spec.Suspend = new(true) // so that it may change
	return job
}

// TestATemplateIsRefusedAsTheClusterWouldBe: every row about a cluster gives a job the same
// refusals below clusterTemplate, but for the name, and for what no job's cluster may say.
func TestATemplateIsRefusedAsTheClusterWouldBe(t *testing.T) {
	kind, ofJobs, moved := corpus.Clusters(), only(validate.JobRules(), validate.Rules()), 0
	for _, row := range kind.Rows {
		before, after := kind.Good(), kind.Good()
		if row.Before != nil {
			row.Before(before)
			row.Before(after)
		}
		row.Edit(after)
		if len(after.OwnerReferences) > 0 {
			continue // a template has no owner
		}
		have := judge(t, "ClusterJob", withTemplate(after))
		if row.Before != nil {
			have = judgeChange(t, "ClusterJob", withTemplate(before), withTemplate(after))
		}
		have = slices.DeleteFunc(have, func(f validate.Finding) bool { return ofJobs[f.Rule] })
		want := belowTemplate(kind.Judge(row))
		if moved += len(want); !slices.Equal(have, want) {
			t.Errorf("%s gives a job %v, want %v", row.Name, have, want)
		}
	}
	if moved < 100 {
		t.Errorf("only %d refusals were found in templates", moved)
	}
}

// belowTemplate are the findings of a cluster as they are of one in a template, whose name is made by the operator.
func belowTemplate(found validate.Findings) validate.Findings {
	found = slices.DeleteFunc(found, func(f validate.Finding) bool { return f.Path == "metadata.name" })
	for i := range found {
		found[i].Path = "spec.clusterTemplate." + found[i].Path
	}
	return found
}

// TestWhatARunIsMadeOf: each field of a job's spec either stays as it is while the job runs,
// or is named here.
func TestWhatARunIsMadeOf(t *testing.T) {
	free := []string{"retry", "startDeadlineSeconds", "activeDeadlineSeconds", "cleanup", "ttlSecondsAfterFinished", "suspend", "managedBy"}
	at := slices.IndexFunc(validate.JobRules(), func(r validate.Rule) bool { return r.ID == "job-fixed" })
	fixed := strings.Split(validate.JobRules()[at].Field, ", ")
	for i := range fixed {
		below, ok := strings.CutPrefix(fixed[i], "spec.")
		if fixed[i] = below; !ok {
			t.Errorf("%s is no field of the spec", below)
		}
	}
	have := slices.Sorted(slices.Values(append(fixed, free...)))
	var want []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[v1beta1.ClusterJobSpec]()) {
		want = append(want, strings.Split(f.Tag.Get("json"), ",")[0])
	}
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("the fields are %v, fixed or free are %v", want, have)
	}
}

// TestWhatTheAPIServerFillsInIsNoChange: a job that says a default of the schema is the one
// that leaves it out.
func TestWhatTheAPIServerFillsInIsNoChange(t *testing.T) {
	spec := specOf(t, "clusterjobs")
	found := 0
	for _, d := range defaults(&spec, []string{"spec"}) {
		if d.path[1] != "clusterTemplate" || slices.Contains(zeroIsWritten, d.path[len(d.path)-1]) {
			continue
		}
		found++
		var without, with v1beta1.ClusterJob
		job := withTemplate(corpus.Good())
		job.Spec.Suspend = new(false)
		parent := bound{path: d.path[:len(d.path)-1], value: map[string]any{}}
		if parent.path[len(parent.path)-1] == "0" {
			parent.value = map[string]any{"name": "cpu"}
		} else if parent.path[len(parent.path)-1] == "spec" {
			parent.value = map[string]any{"rayVersion": "2.60.0"}
		}
		read(t, parent.with(t, job), &without)
		read(t, d.with(t, &without), &with)
		for _, pair := range [][2]*v1beta1.ClusterJob{{&without, &with}, {&with, &without}} {
			for _, finding := range judgeChange(t, "ClusterJob", pair[0], pair[1]) {
				if finding.Path == "spec.clusterTemplate" {
					t.Errorf("%v = %v is a change: %v", d.path, d.value, finding)
				}
			}
		}
	}
	if found < 6 {
		t.Errorf("only %d defaults were found", found)
	}
}

// zeroIsWritten are fields that have a default and are never left out by a typed client.
var zeroIsWritten = []string{"maxSurge", "maxUnavailable"}

func read(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// defaults are the values that a schema gives to fields that are left out.
func defaults(s *schema, path []string) []bound {
	var all []bound
	if s.Default != nil {
		all = append(all, bound{path: slices.Clone(path), value: s.Default})
	}
	if slices.Contains(ofKubernetes, path[len(path)-1]) {
		return all
	}
	for _, child := range slices.Sorted(maps.Keys(s.Properties)) {
		below := s.Properties[child]
		all = append(all, defaults(&below, append(path, child))...)
	}
	if s.Items != nil {
		all = append(all, defaults(s.Items, append(path, "0"))...)
	}
	return all
}
