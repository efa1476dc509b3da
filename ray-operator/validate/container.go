package validate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// agentPort is where the agent of every Ray node listens.
const agentPort = 52365

// memory is what the Ray container gets: its limit, or its request.
func (n *node) memory() (resource.Quantity, bool) {
	if n.ray == nil {
		return resource.Quantity{}, false
	}
	if limit, ok := n.ray.Resources.Limits[corev1.ResourceMemory]; ok {
		return limit, true
	}
	request, ok := n.ray.Resources.Requests[corev1.ResourceMemory]
	return request, ok
}

// inRay asks only templates that have a ray container.
func inRay(check func(n *node, bad report)) func(*node, report) {
	return func(n *node, bad report) {
		if n.ray != nil {
			check(n, bad)
		}
	}
}

// inAll reports the containers some of whose resources are wrong, with the names of those.
func inAll(wrong func(r *corev1.ResourceRequirements) []string) func(*node, report) {
	return func(n *node, bad report) {
		n.containers(func(path *field.Path, c *corev1.Container) {
			if names := wrong(&c.Resources); len(names) > 0 {
				bad.at(path.Child("resources"), strings.Join(names, ", "))
			}
		})
	}
}

// namesOf returns the names, in their order, of the quantities of a list that are wrong.
func namesOf(list corev1.ResourceList, wrong func(name string, quantity resource.Quantity) bool) []string {
	var names []string
	for name, quantity := range list {
		if wrong(string(name), quantity) {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return names
}

// noneOf is an expression that asks the resources of all containers of a node n: none, which r stands for, has one of the
// names that another expression lists.
func noneOf(names string) string { return fmt.Sprintf("n.needs.all(r, size(%s) == 0)", names) }

// firstOf is an expression for the first container of a node n that has some, with the names.
func firstOf(names string) string {
	return fmt.Sprintf("n.needs.filter(r, size(%[1]s) > 0).map(r, 'container ' + r.name + ': ' + (%[1]s).join(', '))[0]", names)
}

// Expressions for the names of the wrong resources of a container, which r stands for.
const (
	negativeNames = "r.limits.filter(k, sign(quantity(string(r.limits[k]))) < 0) + r.requests.filter(k, sign(quantity(string(r.requests[k]))) < 0)"
	aboveNames    = "r.requests.filter(k, !k.contains('/') && k in r.limits && quantity(string(r.requests[k])).isGreaterThan(quantity(string(r.limits[k]))))"
	splitNames    = "r.limits.filter(k, k.contains('/') && !quantity(string(r.limits[k])).isInteger()) + " +
		"r.requests.filter(k, k.contains('/') && !(k in r.limits && quantity(string(r.requests[k])).compareTo(quantity(string(r.limits[k]))) == 0))"
)

// mostValue is how many bytes the name and the value of a variable have at most: Linux takes 128 KiB with the '=' between
// them and the end, and starts no program with a longer one.
const mostValue = 128<<10 - 2

func isHuge(e *corev1.EnvVar) bool { return len(e.Name)+len(e.Value) > mostValue }

// hugeNames is an expression for the names of the variables of a list that are too long.
func hugeNames(list string) string {
	return fmt.Sprintf("%s.filter(e, size(bytes(e.name)) + size(bytes(e.?value.orValue(''))) > %d).map(e, e.name)", list, mostValue)
}

// mounts are where the operator mounts its volumes, however many slashes one writes.
var mounts = []*regexp.Regexp{
	regexp.MustCompile(`^/+dev/+shm/*$`), regexp.MustCompile(`^/+var/+run/+secrets/+heliostat[.]dev(/.*)?$`),
}

// textOf returns how many characters the values of variables have.
func textOf(variables []corev1.EnvVar) int {
	all := 0
	for i := range variables {
		all += utf8.RuneCountInString(variables[i].Value)
	}
	return all
}

// containerRules are about the containers of a template. In their expressions n.ray is the
// Ray container, empty where there is none, n.containers and n.inits are the lists,
// n.running those that run beside each other, and n.needs the resources of all.
var containerRules = []Rule{
	{
		ID: "ray-command", Field: "NODE.template.spec.containers[ray].command", By: Policy,
		Refused: "command and args of the ray container must not be set, because the operator starts Ray", Remedy: "pass options with rayStartParams, and use an init container for earlier steps",
		Holds: "size(n.ray.?command.orValue([])) + size(n.ray.?args.orValue([])) == 0",
		inner: inRay(func(n *node, bad report) {
			if len(n.ray.Command)+len(n.ray.Args) > 0 {
				bad.at(n.rayPath.Child("command"), nil)
			}
		}),
	},
	{
		ID: "ray-variable", Field: "NODE.template.spec.containers[ray].env", By: Policy,
		Refused: "the operator sets " + strings.Join(ownVariables, ", "), Remedy: "leave them out",
		Holds: "n.ray.?env.orValue([]).all(e, !(e.name in " + list(ownVariables) + "))",
		inner: inRay(func(n *node, bad report) { each(bad, n.rayPath, "env", n.ray.Env, isOwnVariable) }),
	},
	{
		ID: "many-variables", Field: "NODE.template.spec", By: Policy,
		Refused: fmt.Sprintf("a container must not have more than %d variables", mostContainerVariables), Remedy: "put them into a ConfigMap, and name it in envFrom",
		Holds: fmt.Sprintf("(n.containers + n.inits).all(c, size(c.?env.orValue([])) <= %d)", mostContainerVariables),
		inner: func(n *node, bad report) {
			n.containers(func(path *field.Path, c *corev1.Container) {
				count(bad, path, "env", len(c.Env), mostContainerVariables)
			})
		},
	},
	{
		ID: "long-variables", Field: "NODE.template.spec", By: Policy,
		Refused: fmt.Sprintf("the values of all variables must not have more than %d characters", mostVariableText), Remedy: "put them into a ConfigMap, and name it in envFrom",
		Holds: fmt.Sprintf("(n.containers + n.inits).map(c, c.?env.orValue([]).map(e, size(e.?value.orValue(''))).sum()).sum() <= %d", mostVariableText),
		inner: func(n *node, bad report) {
			all := 0
			n.containers(func(_ *field.Path, c *corev1.Container) { all += textOf(c.Env) })
			count(bad, n.path, "template.spec", all, mostVariableText)
		},
	},
	{
		ID: "huge-variable", Field: "NODE.template.spec.containers[*].env", By: Policy,
		Refused: "name and value of a variable must not have more than 131070 bytes, the limit of Linux", Remedy: "put the value into a ConfigMap, and mount it as a file",
		Holds: fmt.Sprintf("(n.containers + n.inits).all(c, size(%s) == 0)", hugeNames("c.?env.orValue([])")),
		Which: fmt.Sprintf("(n.containers + n.inits).filter(c, size(%[1]s) > 0).map(c, 'container ' + c.name + ': ' + (%[1]s).join(', '))[0]", hugeNames("c.?env.orValue([])")),
		inner: func(n *node, bad report) {
			n.containers(func(path *field.Path, c *corev1.Container) { each(bad, path, "env", c.Env, isHuge) })
		},
	},
	{
		ID: "huge-default", Field: "spec.podDefaults.env", By: Policy,
		Refused: "name and value of a variable must not have more than 131070 bytes, the limit of Linux", Remedy: "put the value into a ConfigMap, and mount it as a file",
		Holds: fmt.Sprintf("size(%s) == 0", hugeNames("variables.cluster.?podDefaults.?env.orValue([])")),
		cluster: func(c *v1beta1.ComputeCluster, bad report) {
			if d := c.Spec.PodDefaults; d != nil {
				each(bad, field.NewPath("spec", "podDefaults"), "env", d.Env, isHuge)
			}
		},
	},
	{
		ID: "long-defaults", Field: "spec.podDefaults.env", By: Policy,
		Refused: fmt.Sprintf("the values of all variables must not have more than %d characters", mostVariableText), Remedy: "put them into a ConfigMap, and name it in envFrom",
		Holds: fmt.Sprintf("variables.cluster.?podDefaults.?env.orValue([]).map(e, size(e.?value.orValue(''))).sum() <= %d", mostVariableText),
		cluster: func(c *v1beta1.ComputeCluster, bad report) {
			if d := c.Spec.PodDefaults; d != nil {
				count(bad, field.NewPath("spec", "podDefaults"), "env", textOf(d.Env), mostVariableText)
			}
		},
	},
	{
		ID: "ray-port-name", Field: "NODE.template.spec.containers[ray].ports", By: Policy,
		Refused: "the port names gcs, dashboard, client, metrics and serve must be used for Ray's ports 6379, 8265, 10001, 8080 and 8000 only", Remedy: "choose another name",
		Holds: "n.ray.?ports.orValue([]).all(p, !(p.?name.orValue('') in " + portMap() + ") || " + portMap() + "[p.name] == p.containerPort)",
		inner: inRay(func(n *node, bad report) {
			each(bad, n.rayPath, "ports", n.ray.Ports, func(p *corev1.ContainerPort) bool {
				ours, number := naming.PortNumber(p.Name)
				return ours && number != p.ContainerPort
			})
		}),
	},
	{
		ID: "ray-mount", Field: "NODE.template.spec.containers[ray].volumeMounts", By: Policy,
		Refused: "a mount must not be at /dev/shm or below /var/run/secrets/heliostat.dev, where the operator mounts its volumes", Remedy: "choose another path",
		Holds: fmt.Sprintf("n.ray.?volumeMounts.orValue([]).all(m, !m.mountPath.matches('%s') && !m.mountPath.matches('%s'))", mounts[0], mounts[1]),
		inner: inRay(func(n *node, bad report) {
			each(bad, n.rayPath, "volumeMounts", n.ray.VolumeMounts, func(m *corev1.VolumeMount) bool {
				return slices.ContainsFunc(mounts, func(own *regexp.Regexp) bool { return own.MatchString(m.MountPath) })
			})
		}),
	},
	{
		ID: "ray-size-twice", Field: "NODE.size", By: Policy,
		Refused: "size must not be set with resources of the template's ray container", Remedy: "keep one of the two",
		Holds: "size(n.spec.?size.orValue({})) == 0 || size(n.ray.?resources.?limits.orValue({})) + size(n.ray.?resources.?requests.orValue({})) == 0",
		inner: inRay(func(n *node, bad report) {
			if len(n.spec.Size) > 0 && len(n.ray.Resources.Limits)+len(n.ray.Resources.Requests) > 0 {
				bad.at(n.path.Child("size"), nil)
			}
		}),
	},
	{
		ID: "ray-memory", Field: "NODE.template.spec.containers[ray].resources", By: Policy,
		Refused: "memory must be at least 768Mi for a head and 512Mi for a worker, or Ray does not start", Remedy: "raise it",
		Holds: "[n.ray.?resources.?limits.?memory.or(n.ray.?resources.?requests.?memory)].all(m, !m.hasValue() || " +
			"!quantity(string(m.value())).isLessThan(quantity(n.head ? '768Mi' : '512Mi')))",
		inner: inRay(func(n *node, bad report) {
			if memory, given := n.memory(); given && memory.Cmp(n.leastMemory()) < 0 {
				bad.at(n.rayPath.Child("resources"), memory.String())
			}
		}),
	},
	{
		ID: "container-negative", Field: "NODE.template.spec.containers[*].resources", By: Policy,
		Refused: "requests and limits must not be negative", Remedy: "give 0 or more",
		Holds: noneOf(negativeNames), Which: firstOf(negativeNames),
		inner: inAll(func(r *corev1.ResourceRequirements) []string {
			negative := func(_ string, quantity resource.Quantity) bool { return quantity.Sign() < 0 }
			return append(namesOf(r.Limits, negative), namesOf(r.Requests, negative)...)
		}),
	},
	{
		ID: "container-request", Field: "NODE.template.spec.containers[*].resources", By: Policy,
		Refused: "a request must not be above its limit", Remedy: "raise the limit or lower the request",
		Holds: noneOf(aboveNames), Which: firstOf(aboveNames),
		inner: inAll(func(r *corev1.ResourceRequirements) []string {
			return namesOf(r.Requests, func(name string, quantity resource.Quantity) bool {
				limit, limited := r.Limits[corev1.ResourceName(name)]
				return !isDevice(name) && limited && quantity.Cmp(limit) > 0
			})
		}),
	},
	{
		ID: "container-device", Field: "NODE.template.spec.containers[*].resources", By: Policy,
		Refused: "a device must be a whole number, with the same request and limit", Remedy: "set a whole number as the limit and leave the request out",
		Holds: noneOf(splitNames), Which: firstOf(splitNames),
		inner: inAll(func(r *corev1.ResourceRequirements) []string {
			split := namesOf(r.Limits, func(name string, quantity resource.Quantity) bool { return isDevice(name) && !whole(quantity) })
			return append(split, namesOf(r.Requests, func(name string, quantity resource.Quantity) bool {
				limit, limited := r.Limits[corev1.ResourceName(name)]
				return isDevice(name) && (!limited || quantity.Cmp(limit) != 0)
			})...)
		}),
	},
	{
		ID: "container-ray-port", Field: "NODE.template.spec.containers[*].ports", By: Policy,
		Refused: "a container must not use this port of the pod, because Ray listens on it", Remedy: "choose another port for the container",
		Holds: "n.running.all(c, c.name == 'ray' || c.?ports.orValue([]).all(p, p.?protocol.orValue('TCP') != 'TCP' || !(p.containerPort in n.ports)))",
		inner: func(n *node, bad report) {
			ours, worker := RayPorts()
			if n.group != nil {
				ours = worker
			}
			n.running(func(path *field.Path, c *corev1.Container) {
				if c == n.ray {
					return
				}
				each(bad, path, "ports", c.Ports, func(p *corev1.ContainerPort) bool {
					return protocol(p) == corev1.ProtocolTCP && slices.Contains(ours, p.ContainerPort)
				})
			})
		},
	},
	{
		ID: "container-port-clash", Field: "NODE.template.spec.containers[*].ports", By: Policy,
		Refused: "ports of containers must be unique in the pod and on the host", Remedy: "choose another port for one of them",
		Holds: "n.running.all(c, n.running.all(d, c.name == d.name || c.?ports.orValue([]).all(p, !d.?ports.orValue([]).exists(q, " +
			"p.?protocol.orValue('TCP') == q.?protocol.orValue('TCP') && (p.containerPort == q.containerPort || " +
			"(p.?hostPort.orValue(0) != 0 && p.?hostPort.orValue(0) == q.?hostPort.orValue(0)))))))",
		inner: portClashes,
	},
	{
		ID: "container-host-port", Field: "NODE.template.spec.containers[*].ports", By: Policy,
		Refused: "a hostPort must be equal to the containerPort on the host's network", Remedy: "leave hostPort out",
		Holds: "!n.pod.?hostNetwork.orValue(false) || (n.containers + n.inits).all(c, c.?ports.orValue([]).all(p, p.?hostPort.orValue(0) == 0 || p.hostPort == p.containerPort))",
		inner: func(n *node, bad report) {
			n.containers(func(path *field.Path, c *corev1.Container) {
				each(bad, path, "ports", c.Ports, func(p *corev1.ContainerPort) bool {
					return n.pod.HostNetwork && p.HostPort != 0 && p.HostPort != p.ContainerPort
				})
			})
		},
	},
}

func protocol(p *corev1.ContainerPort) corev1.Protocol {
	if p.Protocol == "" {
		return corev1.ProtocolTCP
	}
	return p.Protocol
}

// portMap is an expression: the numbers of Ray's ports by their names.
func portMap() string {
	var entries []string
	for _, port := range naming.HeadPorts() {
		entries = append(entries, fmt.Sprintf("'%s': %d", port.Name, port.ContainerPort))
	}
	return "{" + strings.Join(entries, ", ") + "}"
}

// running visits the containers that run beside each other: all but the init containers
// that end before the others begin.
func (n *node) running(visit func(path *field.Path, container *corev1.Container)) {
	isInit := make(map[string]bool, len(n.pod.InitContainers))
	for i := range n.pod.InitContainers {
		isInit[n.pod.InitContainers[i].Name] = true
	}
	n.containers(func(path *field.Path, c *corev1.Container) {
		sidecar := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		if !isInit[c.Name] || sidecar {
			visit(path, c)
		}
	})
}

// portUse is a port of a pod, or of the host where isHost says so.
type portUse struct {
	protocol corev1.Protocol
	number   int32
	isHost   bool
}

func usesOf(p *corev1.ContainerPort) []portUse {
	uses := []portUse{{protocol(p), p.ContainerPort, false}}
	if p.HostPort != 0 {
		uses = append(uses, portUse{protocol(p), p.HostPort, true})
	}
	return uses
}

// portUsers is whose a port is: the first container's, and whether another one's too.
type portUsers struct {
	first    string
	isShared bool
}

func portClashes(n *node, bad report) {
	users := map[portUse]portUsers{}
	n.running(func(_ *field.Path, c *corev1.Container) {
		for i := range c.Ports {
			for _, use := range usesOf(&c.Ports[i]) {
				one, is := users[use]
				if !is {
					one.first = c.Name
				}
				one.isShared = one.isShared || one.first != c.Name
				users[use] = one
			}
		}
	})
	n.running(func(path *field.Path, c *corev1.Container) {
		each(bad, path, "ports", c.Ports, func(p *corev1.ContainerPort) bool {
			return slices.ContainsFunc(usesOf(p), func(use portUse) bool { return users[use].isShared })
		})
	})
}

// MayBeGPU reports whether a Kubernetes resource is a device of which nobody can say whether Ray counts it as a GPU.
func MayBeGPU(name corev1.ResourceName) bool { return naming.MayBeGPU(name) }

// RayPorts are the ports on which Ray listens in a head's and in a worker's pod.
func RayPorts() (head, worker []int32) {
	return append(headPortNumbers(), agentPort), []int32{naming.PortMetrics, naming.PortServe, agentPort}
}
