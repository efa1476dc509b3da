package validate

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// leastAutoscaler is what the autoscaler cannot do with less of: it keeps about 20 MiB, and
// more while a large cluster's state comes in.
var leastAutoscaler = resource.MustParse("32Mi")

var autoscalingPath = field.NewPath("spec", "autoscaling")

// scaled asks only groups of clusters with autoscaling.
func scaled(check func(n *node, bad report)) func(*node, report) {
	return func(n *node, bad report) {
		if n.autoscaled() {
			check(n, bad)
		}
	}
}

// headVariables visits the variables of the head's Ray container, each with its path.
func headVariables(c *v1beta1.ComputeCluster, visit func(path *field.Path, variable *corev1.EnvVar)) {
	if d := c.Spec.PodDefaults; d != nil {
		for i := range d.Env {
			visit(field.NewPath("spec", "podDefaults", "env").Index(i), &d.Env[i])
		}
	}
	if head := &nodesOf(c)[0]; head.ray != nil {
		for i := range head.ray.Env {
			visit(head.rayPath.Child("env").Index(i), &head.ray.Env[i])
		}
	}
}

// notScaled begins the expressions of rules that ask heads of clusters with autoscaling.
const notScaled = "!n.head || !has(variables.cluster.autoscaling) || "

// autoscalingRules are about autoscaling and what goes with it alone.
var autoscalingRules = []Rule{
	{
		ID: "autoscaling-max", Field: "GROUP.maxReplicas", By: Policy,
		Refused: "maxReplicas must be set with autoscaling, so that the cost of a cluster has a limit", Remedy: "set the maximum number of replicas",
		Holds: "n.head || !has(variables.cluster.autoscaling) || has(n.spec.maxReplicas)",
		group: scaled(func(n *node, bad report) {
			if n.group.MaxReplicas == nil {
				bad.at(n.path.Child("maxReplicas"), nil)
			}
		}),
	},
	{
		ID: "autoscaling-hosts", Field: "GROUP.maxReplicas", By: Policy,
		Refused: "maxReplicas times hostsPerReplica must not be above 10000 pods with autoscaling", Remedy: "lower one of the two or create two clusters",
		Holds: "n.head || !has(variables.cluster.autoscaling) || n.spec.?maxReplicas.orValue(0) * n.hosts <= 10000",
		group: scaled(func(n *node, bad report) {
			if pods := int64(given(n.group.MaxReplicas, 0)) * hosts(n.group); pods > maxReplicas {
				bad.at(n.path.Child("maxReplicas"), pods)
			}
		}),
	},
	{
		ID: "autoscaling-unused", Field: "GROUP", By: Policy,
		Refused: "idleTimeoutSeconds, priority and capacityTimeoutSeconds must not be set without autoscaling", Remedy: "add autoscaling: {} to the spec, or leave them out",
		Holds: "n.head || has(variables.cluster.autoscaling) || !['idleTimeoutSeconds', 'priority', 'capacityTimeoutSeconds'].exists(f, f in n.spec)",
		group: func(n *node, bad report) {
			g := n.group
			if !n.autoscaled() && (g.IdleTimeoutSeconds != nil || g.Priority != nil || g.CapacityTimeoutSeconds != nil) {
				bad.at(n.path, nil)
			}
		},
	},
	{
		ID: "autoscaling-container", Field: "NODE.template.spec", By: Policy,
		Refused: "a container of the head must not be named autoscaler with autoscaling, because the operator adds one with this name", Remedy: "choose another name",
		Holds: notScaled + "!(n.containers + n.inits).exists(c, c.name == '" + v1beta1.ContainerAutoscaler + "')",
		inner: scaled(func(n *node, bad report) {
			n.containers(func(path *field.Path, c *corev1.Container) {
				if n.group == nil && c.Name == v1beta1.ContainerAutoscaler {
					bad.at(path.Child("name"), c.Name)
				}
			})
		}),
	},
	{
		ID: "autoscaling-port", Field: "NODE.template.spec.containers[*].ports", By: Policy,
		Refused: fmt.Sprintf("with autoscaling the ports %d, named %s, and %d of the head pod must be free for the autoscaler", naming.PortScale, naming.PortScaleName, naming.PortScaleMetrics),
		Remedy:  "choose another port and another name",
		Holds: notScaled + fmt.Sprintf("n.running.all(c, c.?ports.orValue([]).all(p, p.?name.orValue('') != '%s' && "+
			"(p.?protocol.orValue('TCP') != 'TCP' || !(p.containerPort in [%d, %d]))))", naming.PortScaleName, naming.PortScale, naming.PortScaleMetrics),
		inner: scaled(func(n *node, bad report) {
			if n.group != nil {
				return
			}
			n.running(func(path *field.Path, c *corev1.Container) { each(bad, path, "ports", c.Ports, isAutoscalersPort) })
		}),
	},
	{
		ID: "autoscaling-service", Field: "spec.head.service.ports", By: Policy,
		Refused: fmt.Sprintf("with autoscaling port %d of the head must be free for the operator", naming.PortScale), Remedy: "choose another targetPort",
		Holds: fmt.Sprintf("!has(variables.cluster.autoscaling) || variables.cluster.?head.?service.?ports.orValue([]).all(p, p.?targetPort.orValue(p.?port.orValue(0)) != %d)", naming.PortScale),
		cluster: func(c *v1beta1.ComputeCluster, bad report) {
			if c.Spec.Autoscaling != nil && c.Spec.Head.Service != nil {
				each(bad, nil, "spec.head.service.ports", c.Spec.Head.Service.Ports, func(p *v1beta1.ServicePort) bool {
					return p.TargetPort == naming.PortScale || p.TargetPort == 0 && p.Port == naming.PortScale
				})
			}
		},
	},
	{
		ID: "autoscaling-variable", Field: "spec.podDefaults.env, spec.head.template.spec.containers[ray].env", By: Policy,
		Refused: "with autoscaling the operator sets " + naming.VariableAutoscaler, Remedy: "leave it out",
		Holds: "!has(variables.cluster.autoscaling) || (variables.cluster.?podDefaults.?env.orValue([]) + " +
			"variables.nodes[0].ray.?env.orValue([])).all(e, e.name != '" + naming.VariableAutoscaler + "')",
		cluster: func(c *v1beta1.ComputeCluster, bad report) {
			if c.Spec.Autoscaling == nil {
				return
			}
			headVariables(c, func(path *field.Path, variable *corev1.EnvVar) {
				if variable.Name == naming.VariableAutoscaler {
					bad.at(path, variable.Name)
				}
			})
		},
	},
}

func isAutoscalersPort(p *corev1.ContainerPort) bool {
	taken := slices.Contains([]int32{naming.PortScale, naming.PortScaleMetrics}, p.ContainerPort)
	return p.Name == naming.PortScaleName || protocol(p) == corev1.ProtocolTCP && taken
}
