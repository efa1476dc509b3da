package naming

import (
	corev1 "k8s.io/api/core/v1"
)

// Ports of a Ray node, as Ray itself sets them by default. The metrics port is random
// unless fixed; 8080 is what monitoring of Ray on Kubernetes expects.
const (
	PortGCS       = 6379
	PortDashboard = 8265
	PortClient    = 10001
	PortMetrics   = 8080
	PortServe     = 8000
	PortAgent     = 52365
)

// HeadPorts are the named ports of a head, in the order in which its Service lists them.
func HeadPorts() []corev1.ContainerPort {
	return []corev1.ContainerPort{
		{Name: "gcs", ContainerPort: PortGCS, Protocol: corev1.ProtocolTCP},
		{Name: "dashboard", ContainerPort: PortDashboard, Protocol: corev1.ProtocolTCP},
		{Name: "client", ContainerPort: PortClient, Protocol: corev1.ProtocolTCP},
		{Name: "metrics", ContainerPort: PortMetrics, Protocol: corev1.ProtocolTCP},
		{Name: "serve", ContainerPort: PortServe, Protocol: corev1.ProtocolTCP},
	}
}

// PortNumber reports whether a port's name stands for one of Ray's, and for which number.
func PortNumber(name string) (bool, int32) {
	for _, port := range HeadPorts() {
		if port.Name == name {
			return true, port.ContainerPort
		}
	}
	return false, 0
}

// Ports of the autoscaler beside a head. The operator speaks to it on PortScale; its
// metrics are where Ray's dashboard looks for those of Ray's own autoscaler.
const (
	PortScale        = 6380
	PortScaleName    = "scale"
	PortScaleMetrics = 44217
)

// PortDashboardTLS is where a head with encryption takes HTTPS for its dashboard.
const PortDashboardTLS = 8266

// PortArchive is where the archiver takes what collectors send, and answers reads.
const PortArchive = 8444

// PortStore is that of a managed Redis.
const PortStore = 6379
