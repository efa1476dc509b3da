package validate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/admission/corpus"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

func rulesOfJobs() []validate.Rule { return slices.Concat(validate.Rules(), validate.JobRules()) }

func inEnvironment(text string) func(*v1beta1.ClusterJob) {
	return func(j *v1beta1.ClusterJob) { j.Spec.RuntimeEnv = &runtime.RawExtension{Raw: []byte(text)} }
}

func retried(backoff, most *int32) func(*v1beta1.ClusterJob) {
	return func(j *v1beta1.ClusterJob) {
		j.Spec.Retry = &v1beta1.Retry{BackoffSeconds: backoff, MaxBackoffSeconds: most}
	}
}

func takes(name, quantity string) func(*v1beta1.ClusterJob) {
	return func(j *v1beta1.ClusterJob) {
		j.Spec.EntrypointResources = map[string]resource.Quantity{name: resource.MustParse(quantity)}
	}
}

// nested are so many lists, one in the other, with a number in the last.
func nested(lists int) string { return strings.Repeat("[", lists) + "1" + strings.Repeat("]", lists) }

// ofJobs are edits of a job, the rule that they are about, and where they break it.
var ofJobs = map[string]struct {
	rule, want string
	edit       func(*v1beta1.ClusterJob)
}{
	"a command without a program": {"command-program", "spec.command", func(j *v1beta1.ClusterJob) {
		j.Spec.Command = []string{""}
	}},
	"as many lists as may be": {"runtime-env-size", "", inEnvironment(`{"a":` + nested(7) + `}`)},
	"one list more":           {"runtime-env-size", "spec.runtimeEnv", inEnvironment(`{"a":` + nested(8) + `}`)},
	"backoff by default":      {"retry-backoff", "", retried(nil, new(int32(10)))},
	"backoff above the most":  {"retry-backoff", "spec.retry.backoffSeconds", retried(nil, new(int32(9)))},
	"most by default":         {"retry-backoff", "", retried(new(int32(360)), nil)},
	"backoff above that":      {"retry-backoff", "spec.retry.backoffSeconds", retried(new(int32(361)), nil)},
	"a step":                  {"driver-resource-step", "", takes("a", "100u")},
	"near enough to none":     {"driver-resource-step", "", takes("a", "999n")},
	"not near enough to none": {"driver-resource-step", "spec.entrypointResources", takes("a", "1u")},
	"no memory":               {"driver-resource-step", "", takes("memory", "0")},
	"no selector with an old Ray": {"selector-version", "", func(j *v1beta1.ClusterJob) {
		old := corpus.Good()
		old.Spec.RayVersion = "2.52.0"
		j.Spec.ClusterRef, j.Spec.ClusterTemplate = nil, &v1beta1.ClusterTemplate{Spec: old.Spec}
	}},
	"three rules alike": {"cleanup-twice", "spec.cleanup", func(j *v1beta1.ClusterJob) {
		rule := v1beta1.CleanupRule{Outcome: v1beta1.OutcomeSuccess, Action: v1beta1.CleanupDeleteCluster}
		j.Spec.Cleanup = []v1beta1.CleanupRule{rule, rule, rule}
	}},
}

func TestJob_AtTheEdgesOfRules(t *testing.T) {
	for name, test := range ofJobs {
		job := corpus.GoodJob()
		test.edit(job)
		if have := placesOf(t, rulesOfJobs(), judge(t, "ClusterJob", job), test.rule); have != test.want {
			t.Errorf("%s breaks %s at %q, want %q", name, test.rule, have, test.want)
		}
	}
}

func TestJobUpdate_ChangesNothing(t *testing.T) {
	before, after := withTemplate(corpus.Good()), withTemplate(corpus.Good())
	before.Spec.Suspend, after.Spec.Suspend = nil, nil
	judgeChange(t, "ClusterJob", before, after)
	want := withTemplate(corpus.Good())
	want.Spec.Suspend = nil
	if diff := cmp.Diff(want, before) + cmp.Diff(want, after); diff != "" {
		t.Errorf("what is compared was changed:\n%s", diff)
	}
}

func TestJobUpdate_NoticesTwoHosts(t *testing.T) {
	one, two := withTemplate(corpus.Good()), withTemplate(corpus.Good())
	one.Spec.Suspend, two.Spec.Suspend = nil, nil
	two.Spec.ClusterTemplate.Spec.WorkerGroups[0].HostsPerReplica = 2
	if have := placesOf(t, rulesOfJobs(), judgeChange(t, "ClusterJob", one, two), "job-fixed"); have != "spec.clusterTemplate" {
		t.Errorf("a change is refused at %q, want spec.clusterTemplate", have)
	}
}
