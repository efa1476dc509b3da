package validate

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

var encryptionContainers = []string{v1beta1.ContainerCertificates, v1beta1.ContainerEncryption}

// notEncrypted begins the expressions of rules that ask clusters with encryption.
const notEncrypted = "variables.cluster.?network.?encryption.orValue('') != '" + string(v1beta1.Enabled) + "' || "

// encrypted asks only nodes of clusters with encryption.
func encrypted(check func(n *node, bad report)) func(*node, report) {
	return func(n *node, bad report) {
		if naming.EncryptionRequired(n.cluster) {
			check(n, bad)
		}
	}
}

// encryptionRules are about encryption and what goes with it alone.
var encryptionRules = []Rule{
	{
		ID: "encryption-service", Field: "spec.head.service.ports", By: Policy,
		Refused: fmt.Sprintf("with network.encryption port %d of the head is closed, because Ray's agents take the token in clear text", naming.PortAgent),
		Remedy:  "leave the port out",
		Holds: notEncrypted + fmt.Sprintf("variables.cluster.?head.?service.?ports.orValue([]).all(p, p.?targetPort.orValue(p.?port.orValue(0)) != %d)",
			naming.PortAgent),
		cluster: func(c *v1beta1.ComputeCluster, bad report) {
			if naming.EncryptionRequired(c) && c.Spec.Head.Service != nil {
				each(bad, nil, "spec.head.service.ports", c.Spec.Head.Service.Ports, func(p *v1beta1.ServicePort) bool {
					return p.TargetPort == naming.PortAgent || p.TargetPort == 0 && p.Port == naming.PortAgent
				})
			}
		},
	},
	{
		ID: "encryption-mount", Field: "NODE.template.spec.containers[*].volumeMounts", By: Policy,
		Refused: "with network.encryption the volume " + naming.VolumeAuthority + " is the operator's alone, and " + naming.VolumeCertificates + " is read-only",
		Remedy:  "take the mount out, or set readOnly",
		Holds: notEncrypted + fmt.Sprintf("(n.containers + n.inits).all(c, c.?volumeMounts.orValue([]).all(m, m.name != '%s' && (m.name != '%s' || m.?readOnly.orValue(false))))",
			naming.VolumeAuthority, naming.VolumeCertificates),
		inner: encrypted(func(n *node, bad report) {
			n.containers(func(path *field.Path, c *corev1.Container) {
				each(bad, path, "volumeMounts", c.VolumeMounts, func(m *corev1.VolumeMount) bool {
					return m.Name == naming.VolumeAuthority || m.Name == naming.VolumeCertificates && !m.ReadOnly
				})
			})
		}),
	},
	{
		ID: "encryption-container", Field: "NODE.template.spec", By: Policy,
		Refused: "with network.encryption the operator runs containers named " + strings.Join(encryptionContainers, " and ") + " in the cluster's pods",
		Remedy:  "choose another name",
		Holds:   notEncrypted + "!(n.containers + n.inits).exists(c, c.name in " + list(encryptionContainers) + ")",
		inner: encrypted(func(n *node, bad report) {
			n.containers(func(path *field.Path, c *corev1.Container) {
				if slices.Contains(encryptionContainers, c.Name) {
					bad.at(path.Child("name"), c.Name)
				}
			})
		}),
	},
	{
		ID: "encryption-port", Field: "NODE.template.spec.containers[*].ports", By: Policy,
		Refused: fmt.Sprintf("with network.encryption the ports %d, of HTTPS for the dashboard, and %d, of the dashboard itself, are the operator's",
			naming.PortDashboardTLS, naming.PortDashboard),
		Remedy: "choose another port",
		Holds: notEncrypted + fmt.Sprintf("!n.head || n.running.all(c, c.?ports.orValue([]).all(p, p.?protocol.orValue('TCP') != 'TCP' || !(p.containerPort in [%d, %d])))",
			naming.PortDashboardTLS, naming.PortDashboard),
		inner: encrypted(func(n *node, bad report) {
			if n.group != nil {
				return
			}
			n.running(func(path *field.Path, c *corev1.Container) {
				each(bad, path, "ports", c.Ports, func(p *corev1.ContainerPort) bool {
					return protocol(p) == corev1.ProtocolTCP && slices.Contains([]int32{naming.PortDashboardTLS, naming.PortDashboard}, p.ContainerPort)
				})
			})
		}),
	},
}
