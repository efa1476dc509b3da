package v1beta1

import (
	"regexp"

	corev1 "k8s.io/api/core/v1"
)

// gpus are the names that vendors' device plugins give GPUs. A part of one counts as one: a MIG slice, a time share, a
// partition.
var gpus = regexp.MustCompile(`^(nvidia\.com/(gpu(\.shared)?|mig-.+)|amd\.com/(gpu|[a-z]+_nps[0-9]+)|gpu\.intel\.com/(i915|xe)|metax-tech\.com/gpu)$`)

// IsGPU reports whether a Kubernetes resource is one that Ray counts as GPU, and so the key of status.resources that
// status.summary.gpus counts.
func IsGPU(name corev1.ResourceName) bool { return gpus.MatchString(string(name)) }
