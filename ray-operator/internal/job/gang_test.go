package job

import (
	"reflect"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/launcher"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// TestDescribeGang_WritesDefaultsOut: the launcher has no defaults of its own.
func TestDescribeGang_WritesDefaultsOut(t *testing.T) {
	job := train(gang, func(j *v1beta1.ClusterJob) {
		j.Spec.Env = []corev1.EnvVar{{Name: "A", Value: "b"}, {Name: "SECRET", ValueFrom: &corev1.EnvVarSource{}}}
	})
	want := launcher.Description{
		Job: "train", UID: "job-uid", Attempt: 1, Submission: naming.Submission("train", "job-uid", 1),
		Framework: "PyTorch", Placement: "Pack", Output: "First", GraceSeconds: 30, GatherSeconds: 600, MinReplicasAfterSeconds: 300,
		Env: []launcher.EnvVar{{Name: "A", Value: "b"}},
		Roles: []launcher.Role{{
			Name: "worker", Replicas: 2, MinReplicas: 2, Processes: 1, Start: "PerProcess", Resources: map[string]float64{"CPU": 0.5},
			Entrypoint: "python train.py", Success: "All",
		}},
	}
	if diff := gocmp.Diff(want, describeGang(job, newRecord())); diff != "" {
		t.Errorf("the description (- wanted, + made):\n%s", diff)
	}
	job.Spec.Retry = &v1beta1.Retry{Limit: 1, InfrastructureLimit: number(5), OnExitCodes: &v1beta1.ExitCodes{NotIn: []int32{3}}}
	later := describeGang(job, bound(func(r *Record) { r.Attempt, r.Losses, r.Ran = 2, 2, ago(100) }))
	if later.FirstGatherSeconds != 600 || later.LossesLeft != 3 || !reflect.DeepEqual(later.RetryOnExitCodes.NotIn, []int32{3}) {
		t.Errorf("that of a later attempt: %+v", later)
	}
	if resumed := describeGang(job, bound(func(r *Record) { r.Attempt = 3 })); resumed.FirstGatherSeconds != 0 {
		t.Errorf("after a resumption, the first wait is bounded by %d s", resumed.FirstGatherSeconds)
	}
}

// TestLossesLeft: what the record has is taken away, and nothing is left without a retry.
func TestLossesLeft(t *testing.T) {
	record := bound(func(r *Record) { r.Failures, r.Losses = 2, 3 })
	for name, test := range map[string]struct {
		retry *v1beta1.Retry
		want  int32
	}{
		"no retry":                   {nil, 0},
		"one limit, both count":      {&v1beta1.Retry{Limit: 6}, 1},
		"one limit, used up":         {&v1beta1.Retry{Limit: 4}, 0},
		"a limit of losses":          {&v1beta1.Retry{Limit: 0, InfrastructureLimit: number(20)}, 17},
		"a limit of losses, used up": {&v1beta1.Retry{InfrastructureLimit: number(2)}, 0},
	} {
		if have := lossesLeft(test.retry, record); have != test.want {
			t.Errorf("%s: %d are left, want %d", name, have, test.want)
		}
	}
}

// TestSuccessOf_FollowsTheFramework: what a role does not say, its framework does.
func TestSuccessOf_FollowsTheFramework(t *testing.T) {
	for roles, want := range map[string]string{
		"Spark driver executor":              "All Ignore",
		"PyTorch master worker":              "All All",
		"TensorFlow worker ps evaluator":     "First Ignore All",
		"TensorFlow chief worker ps":         "All Ignore Ignore",
		"XGBoost master worker":              "All Ignore",
		"XGBoost worker":                     "All",
		"JAX worker":                         "All",
		"Generic scheduler server worker ps": "All All All Ignore",
	} {
		words := strings.Fields(roles)
		of := &v1beta1.Gang{Framework: v1beta1.GangFramework(words[0])}
		for _, name := range words[1:] {
			of.Roles = append(of.Roles, v1beta1.GangRole{Name: name})
		}
		var have []string
		for i := range of.Roles {
			have = append(have, string(successOf(of, &of.Roles[i])))
		}
		if strings.Join(have, " ") != want {
			t.Errorf("%s: %q, want %s", roles, have, want)
		}
	}
}
