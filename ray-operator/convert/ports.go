package convert

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// takePortNames gives ports of the Ray container other names where theirs are those of Ray's ports with other numbers.
func (n *nodePart) takePortNames(path string, ray *corev1.Container) {
	numbers := map[string]int32{}
	for i := range ray.Ports {
		port := &ray.Ports[i]
		if number, isRays := numberOf(port.Name); !isRays || number == port.ContainerPort {
			continue
		}
		other := portName(port.Name, port.ContainerPort)
		at := slices.IndexFunc(n.from.Template.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == port.Name })
		n.adjust(fmt.Sprintf("%s[%d].name", path, at), n.to+".template", fmt.Sprintf("%s is the name of Ray's own port, so that this one "+
			"becomes %s", port.Name, other))
		numbers[port.Name], port.Name = port.ContainerPort, other
	}
	if len(numbers) == 0 {
		return
	}
	for _, probe := range []*corev1.Probe{ray.LivenessProbe, ray.ReadinessProbe, ray.StartupProbe} {
		followPort(probe, numbers)
	}
}

// followPort has a probe of a renamed port use its number.
func followPort(probe *corev1.Probe, numbers map[string]int32) {
	if probe == nil {
		return
	}
	if get := probe.HTTPGet; get != nil && numbers[get.Port.StrVal] != 0 {
		get.Port = intstr.FromInt32(numbers[get.Port.StrVal])
	}
	if socket := probe.TCPSocket; socket != nil && numbers[socket.Port.StrVal] != 0 {
		socket.Port = intstr.FromInt32(numbers[socket.Port.StrVal])
	}
}

// numberOf is the number of Ray's port of a name.
func numberOf(name string) (int32, bool) {
	for number, its := range rayPortNames {
		if its == name {
			return number, true
		}
	}
	return 0, false
}
