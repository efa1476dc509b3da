package job

import (
	"slices"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// TestKeep_KnowsBothNames: the finalizer is added under its new name, honoured and removed under both.
func TestKeep_KnowsBothNames(t *testing.T) {
	const theirs = "example.com/mine"
	for name, test := range map[string]struct {
		has  []string
		is   bool
		want []string
	}{
		"added":             {[]string{theirs}, true, []string{theirs, v1beta1.FinalizerRun}},
		"kept":              {[]string{v1beta1.FinalizerRun}, true, []string{v1beta1.FinalizerRun}},
		"former, kept":      {[]string{v1beta1.FinalizerFormerRun}, true, []string{v1beta1.FinalizerFormerRun}},
		"removed":           {[]string{v1beta1.FinalizerRun, theirs}, false, []string{theirs}},
		"former, removed":   {[]string{theirs, v1beta1.FinalizerFormerRun}, false, []string{theirs}},
		"both, removed":     {[]string{v1beta1.FinalizerFormerRun, v1beta1.FinalizerRun}, false, nil},
		"nothing to remove": {nil, false, nil},
	} {
		job := train()
		job.Finalizers = test.has
		if setFinalizer(job, test.is); !slices.Equal(job.Finalizers, test.want) {
			t.Errorf("%s: %v, want %v", name, job.Finalizers, test.want)
		}
	}
	job := train(deleted(10))
	job.Finalizers = []string{v1beta1.FinalizerFormerRun}
	if have := gist(decide(job, seen(bound(), says(headclient.JobRunning)))); have != " Stopping finalizer ask stop" {
		t.Errorf("a deletion that the former name keeps: %s", have)
	}
}
