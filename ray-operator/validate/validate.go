// Package validate says what is wrong with a spec, field by field, with the remedy.
//
// In: an object of one of the kinds, or two states of one. Out: findings, none for a good one.
// Every finding is that of a rule, and the rules are one list: what is refused, what helps,
// and who refuses it in the API server (the schema, a rule of the schema, or the chart's
// admission policy). The policy and the documentation are generated from that list. What the CRD refuses stands in it alone, and its
// rules are listed here from there: package crdcheck evaluates them. Asked here too are those about what no CRD sees.
//
// It is pure, never changes what it looks at, and never asks whether an object that
// the spec names exists. What Kubernetes itself refuses of a pod, other than numbers and
// names that people get wrong, it leaves to Kubernetes.
package validate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

var all = slices.Concat(withChecks(schemaRules), withChecks(clusterExpressions), accessRules, groupRules, autoscalingRules, schedulerRules,
	encryptionRules, controlStoreRules, claimRules, sharedVolumeRules, historyRules, nodeRules, objectStoreRules, templateRules, containerRules)

// Rules are all rules about a cluster, in the order of the fields that they are about.
func Rules() []Rule { return slices.Clone(all) }

// Cluster returns all that is wrong with a cluster, in the order of the rules, but for what the CRD alone refuses.
func Cluster(cluster *v1beta1.ComputeCluster) Findings {
	var found Findings
	nodes := nodesOf(cluster)
	for i := range all {
		all[i].askCluster(cluster, nodes, report{rule: &all[i], found: &found})
	}
	return found
}

// Update returns all that is wrong with a change of a cluster: what is wrong with its
// new state, and what cannot be changed.
func Update(before, after *v1beta1.ComputeCluster) Findings {
	found := Cluster(after)
	for i := range all {
		if all[i].change != nil {
			all[i].change(before, after, report{rule: &all[i], found: &found})
		}
	}
	return found
}

// node is the head or a group, with what most rules ask of it at hand.
type node struct {
	cluster *v1beta1.ComputeCluster
	path    *field.Path
	spec    *v1beta1.NodeSpec
	// group is nil for the head.
	group *v1beta1.WorkerGroup
	// template and pod are never nil; ray is nil where the template has no such container.
	template *corev1.PodTemplateSpec
	pod      *corev1.PodSpec
	ray      *corev1.Container
	rayPath  *field.Path
}

// noTemplate stands for one that is not given; nothing changes it.
var noTemplate corev1.PodTemplateSpec

// nodesOf gives the head first, then the groups in their order.
func nodesOf(cluster *v1beta1.ComputeCluster) []node {
	spec := field.NewPath("spec")
	nodes := []node{{cluster: cluster, path: spec.Child("head"), spec: &cluster.Spec.Head.NodeSpec}}
	for i := range cluster.Spec.WorkerGroups {
		group := &cluster.Spec.WorkerGroups[i]
		nodes = append(nodes, node{cluster: cluster, path: spec.Child("workerGroups").Index(i), spec: &group.NodeSpec, group: group})
	}
	for i := range nodes {
		n := &nodes[i]
		n.template = n.spec.Template
		if n.template == nil {
			n.template = &noTemplate
		}
		n.pod = &n.template.Spec
		for j := range n.pod.Containers {
			if n.pod.Containers[j].Name == v1beta1.ContainerRay {
				n.ray, n.rayPath = &n.pod.Containers[j], n.podPath().Child("containers").Index(j)
			}
		}
	}
	return nodes
}

// autoscaled reports whether the node's cluster has autoscaling.
func (n *node) autoscaled() bool { return n.cluster.Spec.Autoscaling != nil }

func (n *node) podPath() *field.Path { return n.path.Child("template", "spec") }

func (n *node) metaPath() *field.Path { return n.path.Child("template", "metadata") }

// containers visits all containers of the template with their paths, init containers last.
func (n *node) containers(visit func(path *field.Path, container *corev1.Container)) {
	for i := range n.pod.Containers {
		visit(n.podPath().Child("containers").Index(i), &n.pod.Containers[i])
	}
	for i := range n.pod.InitContainers {
		visit(n.podPath().Child("initContainers").Index(i), &n.pod.InitContainers[i])
	}
}
