package convert

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// podName is a pod by its name.
type podName struct {
	role   *gangRole
	number int
	// length is how many bytes follow the name of the role in that of the pod, 0 where it is not certain that it is one.
	length int
}

// podOf reads the name of a pod, where rest follows the name of its role.
func (t textPart) podOf(alias, rest string) podName {
	role := t.roleOf(alias)
	found := hostRest.FindStringSubmatch(rest)
	if found == nil {
		return podName{}
	}
	number, err := strconv.Atoi(found[1])
	after := strings.TrimPrefix(rest, found[0])
	if err != nil || number >= int(role.replicas) || !t.isDomain(found[2]) || after != "" && isWithinWord(after[:1]) {
		return podName{}
	}
	return podName{role, number, len(found[0])}
}

// mayMiss reports whether a round may start without the pod's process.
func (p podName) mayMiss() bool { return p.role.least > 0 && p.number >= int(p.role.least) }

// reference writes a field of the pod's first process.
func (p podName) reference(field string) string {
	number := p.number
	if p.role.start != v1beta1.StartPerReplica {
		number *= int(max(p.role.processes, 1))
	}
	return fmt.Sprintf("$(%s.%d.%s)", p.role.name, number, field)
}

// portAfter matches the port of an address.
var portAfter = regexp.MustCompile(`^:([0-9]{1,5})\b`)

// usualPorts are those of Kubeflow's kinds on which processes listen.
var usualPorts = map[string]string{
	kindPyTorch: "23456", kindTF: "2222", kindXGBoost: "9999", kindJAX: "6666", kindMX: "9091", kindPaddle: "36543", kindTrain: "29500",
}

// portOf returns the port that follows the name of a pod, and how long it is in the text. That of TensorFlow is another one each round,
// as TF_CONFIG has it.
func (t textPart) portOf(at string, pod podName, rest string) (port string, length int) {
	found := portAfter.FindStringSubmatch(rest)
	switch {
	case found == nil || t.gang.Framework == v1beta1.FrameworkMPI: // there it is a number of slots
		return "", 0
	case found[1] != usualPorts[t.kind]:
		t.once(at, false, fmt.Sprintf("port %s stays; the program must listen on it", found[1]))
	case t.kind == kindTF:
		t.once(at, false, "the port is that of TF_CONFIG, which is another one each round")
		return ":" + pod.reference("port"), len(found[0])
	default:
		t.once(at, true, fmt.Sprintf("port %s stays, and MASTER_PORT is another one each round; for a program that listens there, "+
			"write $MASTER_ADDR:$MASTER_PORT in a line for a shell", found[1]))
	}
	return found[0], len(found[0])
}

// isDomain reports whether a text follows the name of a pod in its address.
func (t textPart) isDomain(text string) bool {
	labels := strings.Split(strings.TrimPrefix(text, "."), ".")
	if text == "" {
		return true
	}
	if name := t.meta.Name; labels[0] == name || strings.HasPrefix(labels[0], name+"-") {
		labels = labels[1:] // a headless Service
	}
	switch len(labels) {
	case 0:
		return true
	case 1:
		return labels[0] == t.meta.Namespace || labels[0] == "svc"
	default:
		return labels[0] == "svc" || labels[1] == "svc"
	}
}
