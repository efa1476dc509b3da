package pod

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// Ray's labels of a machine, which a node selector may tell beforehand.
const (
	labelAccelerator = "ray.io/accelerator-type"
	labelMarket      = "ray.io/market-type"
	labelZone        = "ray.io/availability-zone"
	labelRegion      = "ray.io/availability-region"
	labelPodType     = "ray.io/tpu-pod-type"
	labelTopology    = "ray.io/tpu-topology"
)

// Variables of which Ray makes labels and resources of a TPU's host.
const (
	variablePodType  = "TPU_ACCELERATOR_TYPE"
	variableTopology = "TPU_TOPOLOGY"
)

// accelerated begins the name of the resource by which Ray's tasks ask for a type of accelerator.
const accelerated = "accelerator_type:"

// gpuSelectors are node labels whose values name a model of GPU: of GKE, of EKS, of Karpenter on AWS and on Azure, of
// NVIDIA's GPU feature discovery. AKS names the model in the type of the machine alone.
var gpuSelectors = []string{
	"cloud.google.com/gke-accelerator", "k8s.amazonaws.com/accelerator", "karpenter.k8s.aws/instance-gpu-name",
	"karpenter.azure.com/sku-gpu-name", "nvidia.com/gpu.product",
}

// azurePrefix begins the types of Azure's machines.
const azurePrefix = "Standard_"

// gpuModels are the models that Ray names by one word: what it finds out of the driver's name for the device.
var gpuModels = []string{
	"K80", "M60", "P4", "P40", "P100", "V100", "T4", "T4G", "A2", "A10", "A10G", "A16", "A30", "A40", "A100", "L4", "L40", "L40S",
	"H20", "H100", "H200", "B200", "B300", "GB200", "GB300",
}

// gpuModel is Ray's name for the model in a label's value, such as A100 for nvidia-tesla-a100, or empty.
func gpuModel(text string) string {
	words := strings.FieldsFunc(strings.ToUpper(text), func(r rune) bool { return r == '-' || r == '_' || r == ' ' })
	for _, word := range words {
		if slices.Contains(gpuModels, word) {
			return word
		}
	}
	if strings.Contains(strings.Join(words, "-"), "RTX-PRO-6000") {
		return "RTX-PRO-6000"
	}
	return ""
}

// gpuOf is the model of GPU that a node selector asks for, or empty.
func gpuOf(selector map[string]string) string {
	for _, name := range gpuSelectors {
		if model := gpuModel(selector[name]); model != "" {
			return model
		}
	}
	if machine := selector[corev1.LabelInstanceTypeStable]; strings.HasPrefix(machine, azurePrefix) {
		return gpuModel(machine)
	}
	return ""
}

// Node labels of GKE for TPUs.
const (
	selectorTPU         = "cloud.google.com/gke-tpu-accelerator"
	selectorTPUTopology = "cloud.google.com/gke-tpu-topology"
)

// tpus are GKE's kinds of TPUs with Ray's word for the generation, and how many cores Ray counts of a chip.
var tpus = map[string]struct {
	generation string
	cores      int
}{
	"tpu-v4-podslice": {"v4", 2}, "tpu-v5-lite-device": {"v5litepod", 1}, "tpu-v5-lite-podslice": {"v5litepod", 1},
	"tpu-v5p-slice": {"v5p", 2}, "tpu-v6e-slice": {"v6e", 1}, "tpu7x": {"v7x", 2},
}

// podTypeOf is Ray's word for the slice that a node selector asks for, such as v4-16 for 2x2x2 chips, or empty.
func podTypeOf(selector map[string]string) string {
	kind, known := tpus[selector[selectorTPU]]
	if !known {
		return ""
	}
	cores := kind.cores
	for dimension := range strings.SplitSeq(topologyOf(selector[selectorTPUTopology]), "x") {
		chips, err := strconv.Atoi(dimension)
		if err != nil || chips < 1 || chips > mostChips {
			return ""
		}
		cores *= chips
	}
	return fmt.Sprintf("%s-%d", kind.generation, cores)
}

// mostChips is more than a slice has in one dimension.
const mostChips = 1 << 10

// topologyOf is a topology as Ray writes it.
func topologyOf(text string) string { return strings.ToLower(strings.TrimSpace(text)) }

// markets are node labels with their values that say how machines are paid for, by Ray's word for that.
var markets = []struct{ label, value, market string }{
	{"cloud.google.com/gke-spot", "true", "spot"}, {"cloud.google.com/gke-provisioning", "spot", "spot"},
	{"cloud.google.com/gke-provisioning", "standard", "on-demand"},
	{"eks.amazonaws.com/capacityType", "SPOT", "spot"}, {"eks.amazonaws.com/capacityType", "ON_DEMAND", "on-demand"},
	{"karpenter.sh/capacity-type", "spot", "spot"}, {"karpenter.sh/capacity-type", "on-demand", "on-demand"},
	{"kubernetes.azure.com/scalesetpriority", "spot", "spot"},
}

// foretold are the labels of Ray's that a pod's node selector tells before there is a machine. A variable of the
// template from which Ray makes the same label wins.
func (d *draft) foretold() map[string]string {
	selector, labels := d.pod.Spec.NodeSelector, map[string]string{}
	found := map[string]string{labelZone: selector[corev1.LabelTopologyZone], labelRegion: selector[corev1.LabelTopologyRegion]}
	for _, one := range markets {
		if selector[one.label] == one.value {
			found[labelMarket] = one.market
		}
	}
	switch counts := devices(d.ray); {
	case counts[naming.ResourceTPU] > 0:
		found[labelPodType], found[labelTopology] = d.podType(), d.topology()
		if generation, _, sliced := strings.Cut(found[labelPodType], "-"); sliced {
			found[labelAccelerator] = "TPU-" + strings.ToUpper(generation)
		}
	case counts[naming.ResourceGPU] > 0 || d.mayHaveGPUs():
		found[labelAccelerator] = gpuOf(selector)
	}
	for label, value := range found {
		if value != "" && d.variable(variableOf(label)) == "" {
			labels[label] = value
		}
	}
	return labels
}

// variableOf is the variable from which Ray makes a label, or empty.
func variableOf(label string) string {
	for variable, made := range labelsOfVariables {
		if made == label {
			return variable
		}
	}
	return ""
}

// podType is the kind of TPU slice that Ray is told of: the template's own, that of the field labels, or what the
// node selector says.
func (d *draft) podType() string {
	return strings.ToLower(cmp.Or(d.variable(variablePodType), d.node.Labels[labelPodType], podTypeOf(d.pod.Spec.NodeSelector)))
}

func (d *draft) topology() string {
	return topologyOf(cmp.Or(d.variable(variableTopology), d.node.Labels[labelTopology], d.pod.Spec.NodeSelector[selectorTPUTopology]))
}
