package testkit

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// done and failed are phases that tools by kstatus, such as Flux, Helm and kpt, must take for Current and Failed.
var (
	done   = []string{v1beta1.PhaseReady, v1beta1.PhaseSuspended, v1beta1.PhaseSucceeded}
	failed = []string{v1beta1.PhaseStopped}
)

// checkTools asserts of each revision what tools take it for: for Current what is done, and nothing else.
func (w *World) checkTools() {
	w.Helper()
	for _, revision := range w.revisions {
		switch revision.Object.(type) {
		case *v1beta1.ComputeCluster, *v1beta1.ClusterJob, *v1beta1.ClusterService:
		default:
			continue
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(revision.Object)
		if err != nil {
			w.Fatalf("convert %s: %v", revision.Object.GetName(), err)
		}
		object := &unstructured.Unstructured{Object: content}
		result, err := status.Compute(object)
		if err != nil {
			w.Fatalf("compute the status of %s: %v", object.GetName(), err)
		}
		if phase, problem := judge(object, result.Status); problem != "" {
			w.Fatalf("tools take %T %s in the phase %s for %s: %s", revision.Object, object.GetName(), phase, result.Status, problem)
		}
	}
}

// judge returns the phase of an object, and what is wrong with what tools take it for, empty if nothing is. Until the
// operator has seen a spec, nothing is said about it.
func judge(object *unstructured.Unstructured, is status.Status) (phase, problem string) {
	phase, _, _ = unstructured.NestedString(object.Object, "status", "phase")
	observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	_, isJob := object.Object["spec"].(map[string]any)["entrypoint"]
	isOver := slices.Contains(failed, phase) || isJob && phase == v1beta1.PhaseFailed
	switch {
	case observed != object.GetGeneration() || object.GetDeletionTimestamp() != nil:
		return phase, ""
	case is == status.CurrentStatus && !slices.Contains(done, phase):
		return phase, "it is not done"
	case isOver && is != status.FailedStatus:
		return phase, "it has failed"
	case (phase == v1beta1.PhaseSuspended || phase == v1beta1.PhaseSucceeded) && is == status.InProgressStatus:
		return phase, "it is done"
	default:
		return phase, ""
	}
}
