package pod

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// NodeShape is what is known of the Ray nodes of a group, or of the head, before there is a machine.
type NodeShape struct {
	amounts map[string]float64
	labels  map[string]string
	// isOpen: Ray is told of resources in a way that is not read here, isRelabelled: of labels.
	isOpen, isRelabelled bool
}

// The variables by which Ray takes other resources and labels than those that it is told.
const (
	variableOverride = "RAY_OVERRIDE_RESOURCES"
	variableLabels   = "RAY_OVERRIDE_LABELS"
)

// ShapeOf returns what is known of the nodes of a group, or of the head where that is nil.
func ShapeOf(cluster *v1beta1.ComputeCluster, group *v1beta1.WorkerGroup) NodeShape {
	d := workerOutline(cluster, group)
	shape := NodeShape{amounts: rayAmounts(d), isOpen: hasVariable(d.ray, variableOverride), isRelabelled: hasVariable(d.ray, variableLabels)}
	if group != nil {
		_, shape.labels = GroupShape(cluster, group)
		return shape
	}
	shape.labels = merged(map[string]string{LabelGroup: naming.HeadGroup}, d.node.Labels)
	return shape
}

// Most returns how much of a resource a node has at most: infinitely much where only the machine tells.
func (s NodeShape) Most(resource string) float64 {
	amount, isTold := s.amounts[resource]
	if s.isOpen || !isTold && isFoundByRay(resource) {
		return math.Inf(1)
	}
	return amount
}

// Known returns how much a node surely has of each resource.
func (s NodeShape) Known() map[string]float64 {
	if s.isOpen {
		return map[string]float64{}
	}
	return maps.Clone(s.amounts)
}

// foundByRay are resources that Ray finds out of a machine by itself where it is not told of them.
var foundByRay = []string{amountCPU, amountMemory, naming.ResourceGPU, naming.ResourceTPU, "neuron_cores", "HPU", "NPU", "RBLN", "FURIOSA", "MetaX"}

// isFoundByRay reports whether Ray may count a resource of a node without being told.
func isFoundByRay(resource string) bool {
	return slices.Contains(foundByRay, resource) || strings.Contains(resource, ":") || strings.HasPrefix(resource, naming.ResourceTPU+"-")
}

// labelPrefix begins labels of which Ray finds some out of the machine.
const labelPrefix = "ray.io/"

// CanMatch reports whether a node may have the labels that a selector asks for.
func (s NodeShape) CanMatch(selector map[string]string) bool { return s.matches(selector, true) }

// Matches reports whether a node surely has the labels that a selector asks for.
func (s NodeShape) Matches(selector map[string]string) bool { return s.matches(selector, false) }

// matches judges a selector, where labels that only the machine tells are right or wrong.
func (s NodeShape) matches(selector map[string]string, unknown bool) bool {
	for label, wanted := range selector {
		value, isKnown := s.labels[label]
		if s.isRelabelled || !isKnown && strings.HasPrefix(label, labelPrefix) {
			if !unknown {
				return false
			}
			continue
		}
		if !matchesLabel(value, isKnown, wanted) {
			return false
		}
	}
	return true
}

// matchesLabel reports whether a label of a node is what a selector of Ray's asks for: a value, one of several, or neither.
func matchesLabel(value string, isThere bool, wanted string) bool {
	rest, isNot := strings.CutPrefix(wanted, "!")
	values := []string{rest}
	if list, isList := strings.CutPrefix(rest, "in("); isList {
		values = strings.Split(strings.TrimSuffix(list, ")"), ",")
	}
	is := isThere && slices.ContainsFunc(values, func(one string) bool { return strings.TrimSpace(one) == value })
	return is != isNot
}
