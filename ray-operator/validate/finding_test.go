package validate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/admission/corpus"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// TestFindings_SayEachPartApart: the rule, the place, the value where it helps, what is wrong, and what helps.
func TestFindings_SayEachPartApart(t *testing.T) {
	cluster := corpus.Good()
	cluster.Spec.RayVersion = "1.0"
	cluster.Spec.WorkerGroups[0].RayStartParams = map[string]string{"num-cpus": "1"}
	want := validate.Findings{{
		Rule: "option-resources", Path: "spec.workerGroups[0].rayStartParams",
		Refused: "num-cpus, num-gpus, memory and resources must not be set, because they follow the pod", Remedy: "use rayResources to override them",
	}, {
		Rule: "ray-version", Path: "spec.rayVersion", Value: "1.0",
		Refused: "rayVersion must be nightly or a Ray version from 2.52.0 on, such as 2.60.0, 2.61.0rc1 or 2.60.0+own",
		Remedy:  "give one, and put other parts of a tag into image",
	}}
	if diff := cmp.Diff(want, judge(t, "ComputeCluster", cluster)); diff != "" {
		t.Errorf("- want, + have:\n%s", diff)
	}
	if found := judge(t, "ComputeCluster", corpus.Good()); found != nil || found.ErrorList() != nil {
		t.Errorf("a good cluster gives %v", found)
	}
}

// TestErrorList: an error has the path, the words and the value of its finding. What has no value is forbidden.
func TestErrorList(t *testing.T) {
	have := validate.Findings{
		{Rule: "one", Path: "spec.a", Value: int32(0), Refused: "a is 0", Remedy: "raise it"},
		{Rule: "two", Path: "spec.b", Refused: "b is for others", Remedy: "leave it out"},
	}.ErrorList()
	want := field.ErrorList{
		field.Invalid(field.NewPath("spec", "a"), int32(0), "a is 0; raise it"),
		field.Forbidden(field.NewPath("spec", "b"), "b is for others; leave it out"),
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("- want, + have:\n%s", diff)
	}
}
