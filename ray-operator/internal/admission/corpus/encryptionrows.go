package corpus

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// encryption sets whether the pods of a cluster encrypt what they say.
func encryption(word v1beta1.Switch) edit {
	return func(c *cluster) {
		if c.Spec.Network == nil {
			c.Spec.Network = &v1beta1.Network{}
		}
		c.Spec.Network.Encryption = word
	}
}

// headInit and workerInit give a node an init container of a name.
func headInit(name string) edit {
	return headTemplate(func(t *tmpl, _ *container) { t.Spec.InitContainers = []corev1.Container{{Name: name, Image: "i"}} })
}

func workerInit(name string) edit {
	return template(func(t *tmpl, _ *container) { t.Spec.InitContainers = []corev1.Container{{Name: name, Image: "i"}} })
}

// mounting has an init container of a worker mount a volume of the operator's.
func mounting(volume string, readOnly bool) edit {
	return template(func(t *tmpl, _ *container) {
		mount := corev1.VolumeMount{Name: volume, MountPath: "/mine", ReadOnly: readOnly}
		t.Spec.InitContainers = []corev1.Container{{Name: "mine", Image: "i", VolumeMounts: []corev1.VolumeMount{mount}}}
	})
}

var (
	encrypted = encryption(v1beta1.Enabled)
	plain     = encryption(v1beta1.Disabled)
)

// encryptionSize has the pods encrypt, in containers of a size.
func encryptionSize(pairs ...string) edit {
	return both(encrypted, func(c *cluster) { c.Spec.Network.EncryptionSize = resources(pairs...) })
}

var encryptionRows = []row{
	{Name: "encryption", Before: encrypted, Edit: encrypted},
	{Name: "no encryption", Before: plain, Edit: plain},
	{Name: "no encryption, not said before", Edit: plain},
	{Name: "another word for encryption", Rule: "unknown-word", Edit: encryption("Preferred")},
	{Name: "encryption switched on", Rule: "encryption-fixed", Before: plain, Edit: encrypted},
	{Name: "encryption switched off", Rule: "encryption-fixed", Before: encrypted, Edit: plain},
	{Name: "encryption left out", Rule: "encryption-fixed", Before: encrypted, Edit: func(c *cluster) { c.Spec.Network = nil }},
	{Name: "encryption with a Redis in clear text", Rule: "encryption-store", Before: both(encrypted, onTLS()), Edit: both(encrypted, onRedis())},
	{Name: "encryption with a Redis with TLS", Before: both(encrypted, onTLS()), Edit: both(encrypted, onTLS())},
	{Name: "no encryption with a Redis in clear text", Before: both(plain, onRedis()), Edit: both(plain, onRedis())},
	{Name: "encryption with all that its size takes", Before: encrypted, Edit: encryptionSize("cpu", "1", "limits.cpu", "1", "memory", "32Mi", "ephemeral-storage", "1Gi")},
	{Name: "encryption of five", Rule: "long-list", Before: encrypted, Edit: encryptionSize("cpu", "1", "limits.cpu", "1", "memory", "1Gi", "ephemeral-storage", "1Gi", "other", "1")},
	{Name: "encryption with a GPU", Rule: "encryption-size-name", Before: encrypted, Edit: encryptionSize("nvidia.com/gpu", "1")},
	{Name: "encryption with little memory", Rule: "encryption-size", Before: encrypted, Edit: encryptionSize("memory", "31Mi")},
	{Name: "encryption with no CPU", Rule: "encryption-size", Before: encrypted, Edit: encryptionSize("cpu", "0")},
	{Name: "encryption with a limit below cpu", Rule: "encryption-size-limit", Before: encrypted, Edit: encryptionSize("cpu", "2", "limits.cpu", "1")},
	{Name: "no encryption and its size", Rule: "encryption-size-unused", Before: plain, Edit: both(encryptionSize("cpu", "1"), func(c *cluster) {
		c.Spec.Network.Encryption = v1beta1.Disabled
	})},
	{Name: "encryption and its init container", Rule: "encryption-container", Before: encrypted, Edit: both(encrypted, workerInit(v1beta1.ContainerCertificates))},
	{Name: "encryption and its init container in the head", Rule: "encryption-container", Before: encrypted, Edit: both(encrypted, headInit(v1beta1.ContainerEncryption))},
	{Name: "no encryption and a container of that name", Edit: workerInit(v1beta1.ContainerCertificates)},
	{Name: "encryption and its port", Rule: "encryption-port", Before: encrypted, Edit: both(encrypted, headListens(corev1.ContainerPort{ContainerPort: naming.PortDashboardTLS}))},
	{Name: "encryption and that number of UDP", Before: encrypted, Edit: both(encrypted, headListens(corev1.ContainerPort{ContainerPort: naming.PortDashboardTLS, Protocol: corev1.ProtocolUDP}))},
	{Name: "no encryption and that port", Edit: headListens(corev1.ContainerPort{ContainerPort: naming.PortDashboardTLS})},
	{Name: "encryption without isolation", Rule: "encryption-isolation", Before: encrypted, Edit: both(encrypted, func(c *cluster) { c.Spec.Network.Isolation = v1beta1.Disabled })},
	{Name: "encryption and a Service for agents", Rule: "encryption-service", Before: encrypted, Edit: both(encrypted, headService(7000, naming.PortAgent))},
	{Name: "encryption and a Service of the agents' number", Rule: "encryption-service", Before: encrypted, Edit: both(encrypted, headService(naming.PortAgent, 0))},
	{Name: "no encryption and a Service for agents", Edit: headService(7000, naming.PortAgent)},
	{Name: "encryption and a mount of the authority", Rule: "encryption-mount", Before: encrypted, Edit: both(encrypted, mounting(naming.VolumeAuthority, true))},
	{Name: "encryption and a mount of the certificate", Before: encrypted, Edit: both(encrypted, mounting(naming.VolumeCertificates, true))},
	{Name: "encryption and a certificate to be written", Rule: "encryption-mount", Before: encrypted, Edit: both(encrypted, mounting(naming.VolumeCertificates, false))},
	{Name: "variables of encryption", Rule: "ray-variable", Edit: inRay(func(c *container) { c.Env = []corev1.EnvVar{{Name: "RAY_USE_TLS", Value: "1"}} })},
}
