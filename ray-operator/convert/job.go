package convert

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// modeInteractive is the mode of a RayJob that has a person submit the job.
const modeInteractive = "InteractiveMode"

// jobPart is the spec of a job on its way.
type jobPart struct {
	*conversion
	spec *rayJobSpec
	made *v1beta1.ClusterJobSpec
}

// clusterJob converts a RayJob.
func (c *conversion) clusterJob(spec *rayJobSpec) runtime.Object {
	job := &v1beta1.ClusterJob{TypeMeta: typeMeta("ClusterJob"), ObjectMeta: c.meta, Spec: v1beta1.ClusterJobSpec{
		Entrypoint: spec.Entrypoint, Metadata: spec.Metadata, Suspend: c.suspended("spec.suspend", spec.Suspend), StartDeadlineSeconds: spec.PreRunningDeadlineSeconds,
		ManagedBy: c.manager("spec.managedBy", spec.ManagedBy, managerKubeRay), RuntimeEnv: c.object("spec.runtimeEnvYAML",
			spec.RuntimeEnvYAML),
	}}
	switch {
	case strings.TrimSpace(spec.Entrypoint) != "", spec.SubmissionMode == modeInteractive: // which is refused as a whole
	case spec.SubmitterPodTemplate != nil:
		c.refuse("spec.entrypoint", "no pod submits the job; set entrypoint to what the container of submitterPodTemplate submits")
	default:
		c.refuse("spec.entrypoint", "a job has something to run; set entrypoint")
	}
	j := &jobPart{conversion: c, spec: spec, made: &job.Spec}
	j.takeSubmission()
	j.takeHome()
	j.takeDriver()
	j.takeRetry()
	j.takeCleanup()
	return job
}

// takeSubmission is about who submits the job, which the operator does.
func (j *jobPart) takeSubmission() {
	switch j.spec.SubmissionMode {
	case "", "K8sJobMode", "HTTPMode", "SidecarMode":
	case modeInteractive:
		j.refuse("spec.submissionMode", "a ClusterJob runs what it names; make a ComputeCluster with idlePolicy {action: "+
			"Delete}, and submit to it with ray job submit")
	default:
		j.refuse("spec.submissionMode", "ray.io knows K8sJobMode, HTTPMode, SidecarMode and InteractiveMode; use one of them")
	}
}

// takeHome says on which cluster the job runs.
func (j *jobPart) takeHome() {
	name, named := j.spec.ClusterSelector[keyCluster]
	switch {
	case len(j.spec.ClusterSelector) > 1 || len(j.spec.ClusterSelector) == 1 && !named:
		j.refuse("spec.clusterSelector", "a job runs on the cluster that it names; select by "+keyCluster+" alone, with "+
			"the name of the cluster")
	case named && j.spec.RayClusterSpec != nil:
		j.refuse("spec.clusterSelector", "a job runs on one cluster; keep one of clusterSelector and rayClusterSpec")
	case named:
		j.made.ClusterRef = &v1beta1.ClusterReference{Name: name}
	case j.spec.RayClusterSpec == nil:
		j.refuse("spec.rayClusterSpec", "a job needs a cluster; give rayClusterSpec, or clusterSelector with "+keyCluster)
	default:
		j.made.ClusterTemplate = &v1beta1.ClusterTemplate{Spec: j.cluster(j.spec.RayClusterSpec)}
	}
}

// takeDriver is about what the job's driver takes of Ray's resources.
func (j *jobPart) takeDriver() {
	asked := map[string]resource.Quantity{}
	ask := func(path, name string, number float64) {
		quantity, err := resource.ParseQuantity(strconv.FormatFloat(number, 'f', -1, 64))
		if err != nil {
			j.refuse(path, fmt.Sprintf("%v is no amount; correct it", number))
			return
		}
		if _, twice := asked[name]; twice {
			j.refuse(path, name+" is said twice; keep one of them")
		}
		asked[name] = quantity
	}
	if j.spec.EntrypointNumCPUs != nil {
		ask("spec.entrypointNumCpus", "CPU", *j.spec.EntrypointNumCPUs)
	}
	if j.spec.EntrypointNumGPUs != nil {
		ask("spec.entrypointNumGpus", "GPU", *j.spec.EntrypointNumGPUs)
	}
	var custom map[string]float64
	if text := j.spec.EntrypointResources; text != "" && json.Unmarshal([]byte(text), &custom) != nil {
		j.refuse("spec.entrypointResources", `it is no object of numbers; write one such as {"Custom": 1}`)
	}
	for _, name := range slices.Sorted(maps.Keys(custom)) {
		ask("spec.entrypointResources", name, custom[name])
	}
	if len(asked) > 0 {
		j.made.EntrypointResources = asked
	}
}

// takeRetry converts retries, each on a new cluster, and the deadline of each.
func (j *jobPart) takeRetry() {
	if j.spec.BackoffLimit > 0 && j.made.ClusterTemplate == nil {
		j.refuse("spec.backoffLimit", "ray.io retries no job on a cluster that is there; leave backoffLimit out, or set "+
			"retry in the ClusterJob")
		return
	}
	if j.spec.BackoffLimit != 0 {
		j.made.Retry = &v1beta1.Retry{Limit: j.spec.BackoffLimit, Scope: v1beta1.RetryCluster,
			AttemptDeadlineSeconds: j.spec.ActiveDeadlineSeconds}
		return
	}
	j.made.ActiveDeadlineSeconds = j.spec.ActiveDeadlineSeconds
}
