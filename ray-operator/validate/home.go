package validate

import (
	"fmt"

	"k8s.io/utils/ptr"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// aboveTemplate is what stands before the path of a field of a cluster that a job or a service
// describes.
const aboveTemplate = "spec.clusterTemplate."

// home is where a job or a service runs.
type home struct {
	ref      *v1beta1.ClusterReference
	template *v1beta1.ClusterTemplate
	// cluster is the one of its own, nil where it has none, and nodes are its nodes.
	cluster *v1beta1.ComputeCluster
	nodes   []node
}

func homeOf(ref *v1beta1.ClusterReference, template *v1beta1.ClusterTemplate) home {
	h := home{ref: ref, template: template}
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

// inTemplateSpec reports a field of a cluster that is wrong for one that is made from a template.
func inTemplateSpec(child string, wrong func(spec *v1beta1.ComputeClusterSpec) bool) func(*home, report) {
	return func(h *home, bad report) {
		if h.cluster != nil && wrong(&h.cluster.Spec) {
			bad.at(below(templateSpec, child), nil)
		}
	}
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

// Bounds of the schema, which are the same for jobs and services.

func longHomeTexts(h *home, bad report) {
	if h.ref != nil {
		text(bad, specPath, "clusterRef.name", h.ref.Name, 50)
	}
}

func longHomeLists(h *home, bad report) {
	count(bad, templateMeta, "labels", len(h.metadata().Labels), 64)
	count(bad, templateMeta, "annotations", len(h.metadata().Annotations), 64)
}

func homeOutOfBounds(h *home, bad report) {
	if h.ref != nil && h.ref.Name == "" {
		bad.at(specPath.Child("clusterRef", "name"), 0)
	}
}

// homeRules are about where a job or a service runs, beside what holds for every cluster.
var homeRules = []Rule{
	{
		ID: "home-cluster-name", Field: "spec.clusterRef.name", By: Expression,
		Refused: "the name must be valid for a ComputeCluster", Remedy: "give the name of one in the same namespace",
		home: func(h *home, bad report) {
			if h.ref != nil && h.ref.Name != "" && !label.MatchString(h.ref.Name) {
				bad.at(specPath.Child("clusterRef", "name"), h.ref.Name)
			}
		},
	},
	{
		ID: "own-cluster-metadata", Field: "spec.clusterTemplate.metadata.labels, spec.clusterTemplate.metadata.annotations", By: Expression,
		Refused: "a key must not have the prefix heliostat.dev, which is reserved for the operator", Remedy: chooseOther,
		home: func(h *home, bad report) {
			keys(bad, templateMeta, "labels", h.metadata().Labels, isOwnKey)
			keys(bad, templateMeta, "annotations", h.metadata().Annotations, isOwnKey)
		},
	},
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
	{
		ID: "own-cluster-suspend", Field: "spec.clusterTemplate.spec.suspend", By: Expression,
		Refused: "suspend must not be set in a clusterTemplate", Remedy: "suspend the job or the service with its own spec.suspend",
		home: inTemplateSpec("suspend", func(s *v1beta1.ComputeClusterSpec) bool { return ptr.Deref(s.Suspend, false) }),
	},
	{
		ID: "own-cluster-managed-by", Field: "spec.clusterTemplate.spec.managedBy", By: Expression,
		Refused: "managedBy must not name another controller in a clusterTemplate", Remedy: "set spec.managedBy of the job or the service",
		home: inTemplateSpec("managedBy", func(s *v1beta1.ComputeClusterSpec) bool {
			return s.ManagedBy != "" && s.ManagedBy != v1beta1.ManagedByOperator
		}),
	},
	{
		ID: "own-cluster-idle", Field: "spec.clusterTemplate.spec.idlePolicy", By: Expression,
		Refused: "idlePolicy must have action None in a clusterTemplate, because jobs use cleanup and services are never idle", Remedy: "leave idlePolicy out, or use action None",
		home: inTemplateSpec("idlePolicy", func(s *v1beta1.ComputeClusterSpec) bool {
			return s.IdlePolicy != nil && s.IdlePolicy.Action != "" && s.IdlePolicy.Action != v1beta1.IdleNone
		}),
	},
}
