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
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

// clusterJob converts a RayJob.
func (c *conversion) clusterJob(spec *rayJobSpec) runtime.Object {
	job := &v1alpha1.ClusterJob{TypeMeta: typeMeta("ClusterJob"), ObjectMeta: c.meta, Spec: v1alpha1.ClusterJobSpec{
		Entrypoint: spec.Entrypoint, Metadata: spec.Metadata, Suspend: c.suspended(spec.Suspend), StartDeadlineSeconds: spec.PreRunningDeadlineSeconds,
		ManagedBy: c.manager("spec.managedBy", spec.ManagedBy), RuntimeEnv: c.object("spec.runtimeEnvYAML",
			spec.RuntimeEnvYAML),
	}}
	if strings.TrimSpace(spec.Entrypoint) == "" {
		c.refuse("spec.entrypoint", "a job has something to run; set entrypoint")
	}
	c.takeSubmission(spec)
	c.takeHome(spec, &job.Spec)
	c.takeDriver(spec, &job.Spec)
	c.takeRetry(spec, &job.Spec)
	c.takeCleanup(spec, &job.Spec)
	return job
}

// object reads a text that ray.io has in place of an object.
func (c *conversion) object(path, text string) *runtime.RawExtension {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	raw, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		c.refuse(path, "the text is no YAML: "+firstLine(err.Error()))
		return nil
	}
	var object map[string]any
	if json.Unmarshal(raw, &object) != nil || object == nil {
		c.refuse(path, "the text is no object in YAML; write its fields, each with a colon")
		return nil
	}
	if raw, err = json.Marshal(object); err != nil {
		c.refuse(path, "the text cannot be written as JSON: "+err.Error())
		return nil
	}
	return &runtime.RawExtension{Raw: raw}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// takeSubmission is about who submits the job, which the operator does.
func (c *conversion) takeSubmission(spec *rayJobSpec) {
	switch spec.SubmissionMode {
	case "", "K8sJobMode", "HTTPMode", "SidecarMode":
	case "InteractiveMode":
		c.refuse("spec.submissionMode", "a ClusterJob runs what it names; make a ComputeCluster with idlePolicy {action: "+
			"Delete}, and submit to it with ray job submit")
	default:
		c.refuse("spec.submissionMode", "ray.io knows K8sJobMode, HTTPMode, SidecarMode and InteractiveMode; use one of them")
	}
}

// takeHome says on which cluster the job runs.
func (c *conversion) takeHome(spec *rayJobSpec, made *v1alpha1.ClusterJobSpec) {
	name, named := spec.ClusterSelector[keyCluster]
	switch {
	case len(spec.ClusterSelector) > 1 || len(spec.ClusterSelector) == 1 && !named:
		c.refuse("spec.clusterSelector", "a job runs on the cluster that it names; select by "+keyCluster+" alone, with "+
			"the name of the cluster")
	case named && spec.RayClusterSpec != nil:
		c.refuse("spec.clusterSelector", "a job runs on one cluster; keep one of clusterSelector and rayClusterSpec")
	case named:
		made.ClusterRef = &v1alpha1.ClusterReference{Name: name}
	case spec.RayClusterSpec == nil:
		c.refuse("spec.rayClusterSpec", "a job needs a cluster; give rayClusterSpec, or clusterSelector with "+keyCluster)
	default:
		made.ClusterTemplate = &v1alpha1.ClusterTemplate{Spec: c.cluster(spec.RayClusterSpec)}
	}
}

// takeDriver is about what the job's driver takes of Ray's resources.
func (c *conversion) takeDriver(spec *rayJobSpec, made *v1alpha1.ClusterJobSpec) {
	asked := map[string]resource.Quantity{}
	ask := func(path, name string, number float64) {
		quantity, err := resource.ParseQuantity(strconv.FormatFloat(number, 'f', -1, 64))
		if err != nil {
			c.refuse(path, fmt.Sprintf("%v is no amount; correct it", number))
			return
		}
		if _, twice := asked[name]; twice {
			c.refuse(path, name+" is said twice; keep one of them")
		}
		asked[name] = quantity
	}
	if spec.EntrypointNumCPUs != nil {
		ask("spec.entrypointNumCpus", "CPU", *spec.EntrypointNumCPUs)
	}
	if spec.EntrypointNumGPUs != nil {
		ask("spec.entrypointNumGpus", "GPU", *spec.EntrypointNumGPUs)
	}
	var custom map[string]float64
	if text := spec.EntrypointResources; text != "" && json.Unmarshal([]byte(text), &custom) != nil {
		c.refuse("spec.entrypointResources", `it is no object of numbers; write one such as {"Custom": 1}`)
	}
	for _, name := range slices.Sorted(maps.Keys(custom)) {
		ask("spec.entrypointResources", name, custom[name])
	}
	if len(asked) > 0 {
		made.EntrypointResources = asked
	}
}

// takeRetry converts retries, each on a new cluster, and the deadline of each.
func (c *conversion) takeRetry(spec *rayJobSpec, made *v1alpha1.ClusterJobSpec) {
	if spec.BackoffLimit > 0 && made.ClusterTemplate == nil {
		c.refuse("spec.backoffLimit", "ray.io retries no job on a cluster that is there; leave backoffLimit out, or set "+
			"retry in the ClusterJob")
		return
	}
	if spec.BackoffLimit != 0 {
		made.Retry = &v1alpha1.Retry{Limit: spec.BackoffLimit, Scope: v1alpha1.RetryCluster,
			AttemptDeadlineSeconds: spec.ActiveDeadlineSeconds}
		return
	}
	made.ActiveDeadlineSeconds = spec.ActiveDeadlineSeconds
}
