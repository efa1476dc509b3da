package validate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// aboveTemplate is what stands before the path of a field of a cluster that a job or a service
// describes.
const aboveTemplate = "spec.clusterTemplate."

// home is where a job or a service runs.
type home struct {
	template *v1beta1.ClusterTemplate
	// cluster is the one of its own, nil where it has none, and nodes are its nodes.
	cluster *v1beta1.ComputeCluster
	nodes   []node
}

func homeOf(template *v1beta1.ClusterTemplate) home {
	h := home{template: template}
	if template != nil {
		// Its name is made by the operator, and is always good.
		h.cluster = &v1beta1.ComputeCluster{Spec: template.Spec}
		h.cluster.Name = "named-by-the-operator"
		h.nodes = nodesOf(h.cluster)
	}
	return h
}

// metadata are the labels and annotations that the template gives its cluster.
func (h *home) metadata() v1beta1.TemplateMetadata {
	if h.template == nil {
		return v1beta1.TemplateMetadata{}
	}
	return h.template.Metadata
}

var (
	templatePath = field.NewPath("spec", "clusterTemplate")
	templateMeta = templatePath.Child("metadata")
	templateSpec = templatePath.Child("spec")
)

// Expressions for the labels and annotations that a template gives its cluster.
const (
	ofTemplateLabels      = "object.spec.?clusterTemplate.?metadata.?labels.orValue({})"
	ofTemplateAnnotations = "object.spec.?clusterTemplate.?metadata.?annotations.orValue({})"
)

// homeRules are about where a job or a service runs, beside what holds for every cluster.
var homeRules = []Rule{
	{
		ID: "own-cluster-labels", Field: "spec.clusterTemplate.metadata.labels", By: Policy,
		Refused: labelGrammar, Remedy: "correct the key or the value", Holds: fmt.Sprintf(goodLabels, ofTemplateLabels),
		home: func(h *home, bad report) {
			labels := h.metadata().Labels
			keys(bad, templateMeta, "labels", labels, badLabels(labels))
		},
	},
	{
		ID: "own-cluster-annotations", Field: "spec.clusterTemplate.metadata.annotations", By: Policy,
		Refused: "a key of an annotation must have Kubernetes' syntax", Remedy: "use letters, digits, '-', '_' and '.', at most 63, with an optional DNS prefix and '/'",
		Holds: fmt.Sprintf(goodAnnotations, ofTemplateAnnotations),
		home: func(h *home, bad report) {
			keys(bad, templateMeta, "annotations", h.metadata().Annotations, badAnnotation)
		},
	},
}
