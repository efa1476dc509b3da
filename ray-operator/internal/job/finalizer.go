package job

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// finalizers are the names that keep a job, the one that is added first.
var finalizers = []string{v1beta1.FinalizerRun, v1beta1.FinalizerFormerRun}

// isKept reports whether a job has a finalizer of ours.
func isKept(job *v1beta1.ClusterJob) bool {
	return slices.ContainsFunc(finalizers, func(name string) bool { return controllerutil.ContainsFinalizer(job, name) })
}

// setFinalizer gives a job the finalizer, or takes it away under both of its names. A job that has it
// under the former name keeps that: nothing may be added to one that is being deleted.
func setFinalizer(job *v1beta1.ClusterJob, is bool) {
	switch {
	case is && !isKept(job):
		controllerutil.AddFinalizer(job, v1beta1.FinalizerRun)
	case !is:
		for _, name := range finalizers {
			controllerutil.RemoveFinalizer(job, name)
		}
	}
}
