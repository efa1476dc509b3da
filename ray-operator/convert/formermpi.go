package convert

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Defaults of the operator of v1alpha1, as its deployment set them.
const (
	formerGPUs     = 8
	formerResource = "nvidia.com/gpu"
)

// formerMPIRules are about fields of v1alpha1.
var formerMPIRules = []Rule{
	{
		Kind: kindMPI, Path: "spec.gpus", To: "gang.roles[].replicas", Verdict: Changed,
		Text: "N GPUs become N/8 replicas of 8, as that operator was deployed; gpusPerNode says another number. Up to 8 are one replica. " +
			"A number that does not divide is refused.",
	},
	{Kind: kindMPI, Path: "spec.GPUs", To: "gang.roles[].replicas", Verdict: Changed, Text: "Articles write gpus so. It is read as that."},
	{Kind: kindMPI, Path: "spec.gpusPerNode", To: "gang.roles[].resources", Verdict: Kept},
	{Kind: kindMPI, Path: "spec.processingUnits", To: "gang.roles[].replicas", Verdict: Changed, Text: "As gpus, of processingResourceType."},
	{Kind: kindMPI, Path: "spec.processingUnitsPerNode", To: "gang.roles[].resources", Verdict: Kept},
	{
		Kind: kindMPI, Path: "spec.processingResourceType", To: "clusterTemplate.spec.workerGroups[].template", Verdict: Kept,
		Text: "nvidia.com/gpu is the default.",
	},
	{Kind: kindMPI, Path: "spec.launcherOnMaster", Verdict: Dropped, Differs: true, Text: "The command runs beside the ranks of worker 0."},
	{Kind: kindMPI, Path: "spec.replicas", To: "gang.roles[].replicas", Verdict: Kept},
	{
		Kind: kindMPI, Path: "spec.template", To: "clusterTemplate.spec.workerGroups[].template", Verdict: Kept, Whole: true,
		Text: "It is that of the workers, and its command the job's.",
	},
}

// formerMPISources are the workers of a job of v1alpha1, whose template is the launcher's too.
func (m mpiPart) formerMPISources(spec *mpiJobSpec) []roleSource {
	replicas, units := m.divide(spec)
	template := *spec.Template.DeepCopy()
	if len(template.Spec.Containers) > 0 && units > 0 {
		of := &template.Spec.Containers[0]
		if of.Resources.Limits == nil {
			of.Resources.Limits = corev1.ResourceList{}
		}
		of.Resources.Limits[formerResourceOf(spec)] = *resource.NewQuantity(int64(units), resource.DecimalSI)
	}
	processes := max(units, 1)
	if spec.SlotsPerWorker != nil {
		processes = *spec.SlotsPerWorker
	}
	return []roleSource{{
		name: "worker", alias: "worker", at: "spec", templateAt: "spec.template", template: template,
		replicas: replicas, processes: processes, restart: formerRestart(&template), restartAt: "spec.template.spec.restartPolicy",
	}}
}

// formerRestart is how the launcher of v1alpha1 restarts: as its pod says, and else as a Job's.
func formerRestart(template *corev1.PodTemplateSpec) string {
	if template.Spec.RestartPolicy == corev1.RestartPolicyNever {
		return restartNever
	}
	return restartOnFailure
}

func formerResourceOf(spec *mpiJobSpec) corev1.ResourceName {
	if spec.ProcessingResourceType != "" {
		return corev1.ResourceName(spec.ProcessingResourceType)
	}
	return formerResource
}

// divide says how many replicas there are, and how many devices each has.
func (m mpiPart) divide(spec *mpiJobSpec) (replicas, units int32) {
	total, path, each, eachPath := spec.GPUs, "spec.gpus", spec.GPUsPerNode, "gpusPerNode"
	if spec.GPUsInCapitals != nil {
		if total != nil {
			m.refuse("spec.GPUs", "gpus says it too; keep that, and take this out")
		}
		total, path = spec.GPUsInCapitals, "spec.GPUs"
	}
	if spec.ProcessingUnits != nil {
		if total != nil {
			m.refuse("spec.processingUnits", "gpus says it too; keep one of them")
		}
		total, path, each, eachPath = spec.ProcessingUnits, "spec.processingUnits", spec.ProcessingUnitsPerNode, "processingUnitsPerNode"
	}
	if total == nil {
		return m.formerReplicas(spec)
	}
	if spec.Replicas != nil {
		m.refuse("spec.replicas", "the number of devices says how many replicas there are; keep one of the two")
	}
	size, from := int32(formerGPUs), "as that operator was deployed"
	if each != nil {
		size, from = *each, "as "+eachPath+" says"
	}
	switch {
	case *total < 1 || size < 1:
		m.refuse(path, "a job needs at least one device; raise it")
		return 1, 1
	case *total < size:
		m.adjust(path, "gang.roles[]", fmt.Sprintf("it becomes one replica of %d", *total))
		return 1, *total
	case *total%size != 0:
		m.refuse(path, fmt.Sprintf("%d does not divide into replicas of %d, %s; write a multiple, or set %s", *total, size, from, eachPath))
		return 1, size
	}
	m.adjust(path, "gang.roles[]", fmt.Sprintf("it becomes %d replicas of %d, %s; set %s for another "+
		"number", *total/size, size, from, eachPath))
	return *total / size, size
}

// formerReplicas is a job that names its replicas, whose template has the devices.
func (m mpiPart) formerReplicas(spec *mpiJobSpec) (replicas, units int32) {
	if spec.Replicas == nil {
		m.refuse("spec.replicas", "neither replicas nor gpus says how many workers there are; give one of them")
		return 1, 0
	}
	if len(spec.Template.Spec.Containers) > 0 {
		of := spec.Template.Spec.Containers[0].Resources.Limits[formerResourceOf(spec)]
		units = int32(of.Value())
	}
	return *spec.Replicas, units
}
