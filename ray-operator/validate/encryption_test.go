package validate_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/admission/corpus"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// withEncryption is the good cluster with encryption, and what the edit makes of it.
func withEncryption(edit func(*v1beta1.ComputeCluster)) *v1beta1.ComputeCluster {
	cluster := corpus.Good()
	cluster.Spec.Network = &v1beta1.Network{Encryption: v1beta1.Enabled}
	edit(cluster)
	return cluster
}

func TestEncryption_ClosesTheDashboardsPort(t *testing.T) {
	for number, want := range map[int32]string{
		naming.PortDashboard - 1: "", naming.PortDashboard: "spec.head.template.spec.containers[0].ports[0]",
		naming.PortDashboardTLS: "spec.head.template.spec.containers[0].ports[0]", naming.PortDashboardTLS + 1: "",
	} {
		ray := corev1.Container{Name: "ray", Ports: []corev1.ContainerPort{{ContainerPort: number}}}
		cluster := withEncryption(func(c *v1beta1.ComputeCluster) {
			c.Spec.Head.Template = testkit.Template(ray)
		})
		if have := places(t, cluster, "encryption-port"); have != want {
			t.Errorf("port %d is refused at %q, want %q", number, have, want)
		}
	}
}

func TestEncryption_ClosesTheAgentsPort(t *testing.T) {
	const refused = "spec.head.service.ports[0]"
	for name, test := range map[string]struct {
		port v1beta1.ServicePort
		want string
	}{
		"refuses its number alone":     {v1beta1.ServicePort{Port: naming.PortAgent}, refused},
		"refuses what leads there":     {v1beta1.ServicePort{Port: 80, TargetPort: naming.PortAgent}, refused},
		"takes its number for another": {v1beta1.ServicePort{Port: naming.PortAgent, TargetPort: 80}, ""},
		"takes another number alone":   {v1beta1.ServicePort{Port: 80}, ""},
		"takes other numbers for both": {v1beta1.ServicePort{Port: 80, TargetPort: 81}, ""},
	} {
		cluster := withEncryption(func(c *v1beta1.ComputeCluster) {
			c.Spec.Head.Service = &v1beta1.HeadServiceSpec{Ports: []v1beta1.ServicePort{test.port}}
		})
		if have := places(t, cluster, "encryption-service"); have != test.want {
			t.Errorf("%s: refused at %q, want %q", name, have, test.want)
		}
	}
}
