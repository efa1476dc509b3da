package pod

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

func ports(d *draft) {
	wanted := naming.HeadPorts()
	if naming.EncryptionRequired(d.cluster) { // another container has the way to the dashboard
		wanted = slices.DeleteFunc(wanted, func(p corev1.ContainerPort) bool { return p.ContainerPort == naming.PortDashboard })
	}
	if !d.isHead() {
		wanted = slices.DeleteFunc(wanted, func(p corev1.ContainerPort) bool { return p.Name != "metrics" && p.Name != "serve" })
	}
	for _, port := range wanted {
		taken := slices.ContainsFunc(d.ray.Ports, func(p corev1.ContainerPort) bool {
			return p.Name == port.Name || p.ContainerPort == port.ContainerPort
		})
		if !taken {
			d.ray.Ports = append(d.ray.Ports, port)
		}
	}
}

// headAddress is where workers find the head: the Service of the cluster.
func headAddress(d *draft) string {
	return fmt.Sprintf("%s:%d", headHost(d.cluster), naming.PortGCS)
}

// headHost is the name of the head's Service, from every namespace.
func headHost(cluster *v1beta1.ComputeCluster) string {
	return naming.HeadService(cluster.Name) + "." + cluster.Namespace + ".svc"
}

// raiseFiles is the part of the script that lets Ray open more files, as far as the hard limit allows. A raylet, the control
// service and the dashboard keep a connection for each of their peers, and container runtimes start processes with 1024.
// RAY_START_ULIMIT_OPEN_FILES is the variable by which KubeRay is told the number.
const raiseFiles = "n=${RAY_START_ULIMIT_OPEN_FILES:-65536}; s=`ulimit -Sn`; " +
	`if [ "$s" != unlimited ] && [ "$s" -lt "$n" ]; then ulimit -Sn "$n" 2>/dev/null || ` + "ulimit -Sn `ulimit -Hn`; fi; "

// giveHome sets HOME where the user cannot write to the image's home directory, such as a user ID without an entry in /etc/passwd:
// Ray Train writes to ~/ray_results, pip and JupyterLab to their caches. A directory of somebody else is not taken: Python
// loads packages from its home.
const giveHome = `[ -w "$HOME" ] || { h=${TMPDIR:-/tmp}/home; mkdir -p -m 700 "$h" 2>/dev/null && [ -O "$h" ] && [ -w "$h" ] && export HOME="$h"; }; `

// giveName sets USER and LOGNAME where the user ID has no entry in /etc/passwd. Python's getpass.getuser fails without them.
const giveName = `id -un >/dev/null 2>&1 || export USER="${USER:-ray}" LOGNAME="${LOGNAME:-ray}"; `

// variableAddresses is the variable that has the addresses of a pod, with commas between them.
const variableAddresses = "HELIOSTAT_POD_IPS"

// startScript becomes "ray start" with the script's arguments. Where the pod's first address is one of IPv6, it has Ray use
// that one: probes, the operator and other nodes reach the pod there, while Ray itself prefers IPv4. Only the pod knows its
// addresses. Of an option that is given twice Ray takes the last one. There is no $( in the script, which a kubelet expands.
func startScript(d *draft) string {
	six := `--node-ip-address="$ip"`
	if d.isHead() && !naming.EncryptionRequired(d.cluster) {
		six += " --dashboard-host=::"
	}
	followAddress := "ip=${" + variableAddresses + `%%,*}; case "$ip" in *:*) set -- "$@" ` + six + ` ;; esac; `
	home := giveHome
	if hasVariable(d.ray, "HOME") { // the user's own
		home = ""
	}
	logs := ""
	if d.isCollected() {
		logs = keepLogs(d.sessionPath())
	}
	return raiseFiles + home + giveName + logs + followAddress + `exec ray start "$@"`
}

// IsIPv6 reports whether a pod is reached by IPv6: its first address counts.
func IsIPv6(made *corev1.Pod) bool { return strings.Contains(made.Status.PodIP, ":") }

// startCommand runs "ray start". The shell before it interprets nothing of the spec, which comes as arguments, and becomes
// Ray, so that a signal reaches Ray.
func startCommand(d *draft) {
	options := map[string]string{
		"block":                       "",
		"dashboard-agent-listen-port": fmt.Sprint(naming.PortAgent),
		"metrics-export-port":         fmt.Sprint(naming.PortMetrics),
	}
	if d.isHead() {
		options["head"] = ""
		options["port"] = fmt.Sprint(naming.PortGCS)
		options["dashboard-host"] = "0.0.0.0"
		if naming.EncryptionRequired(d.cluster) {
			options["dashboard-host"] = "127.0.0.1"
		}
		options["dashboard-port"] = fmt.Sprint(naming.PortDashboard)
		options["ray-client-server-port"] = fmt.Sprint(naming.PortClient)
		options["no-monitor"] = "" // Ray's own autoscaler has nothing to scale here
	} else {
		options["address"] = headAddress(d)
	}
	maps.Copy(options, resourceOptions(rayAmounts(d)))
	if labels := rayLabels(d); len(labels) > 0 {
		options["labels"] = labelList(labels)
	}
	for name, value := range d.node.RayStartParams {
		options[name] = value
	}
	arguments := map[string]string{}
	for name, value := range options {
		arguments[name] = literal(argument(name, value))
	}
	for name, value := range d.options {
		arguments[name] = argument(name, value)
	}
	d.ray.Command, d.ray.Args = []string{"/bin/sh", "-c", startScript(d), "ray"}, nil
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		d.ray.Args = append(d.ray.Args, arguments[name])
	}
}

// argument is an option of ray start with its value, if it has one.
func argument(name, value string) string {
	if value == "" {
		return "--" + name
	}
	return "--" + name + "=" + value
}

// labelList is the form in which ray start takes node labels: k=v,k=v.
func labelList(labels map[string]string) string {
	pairs := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+"="+labels[key])
	}
	return strings.Join(pairs, ",")
}

// literal keeps the kubelet from expanding $(VAR) in an argument.
func literal(argument string) string { return strings.ReplaceAll(argument, "$(", "$$(") }
