package pod

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// probes ask Ray's own health endpoints, which need no token. Until a pod has started
// it is asked every second, because readiness is what users wait for. A head has
// started when its own raylet has joined, and is ready while the control service
// answers. Liveness is lenient: the endpoints give the control service 100 ms, which a
// busy head misses now and then.
func probes(d *draft) {
	raylet := probe("/api/local_raylet_healthz", naming.PortAgent)
	answer := raylet
	switch {
	case d.isHead() && naming.EncryptionRequired(d.cluster):
		answer = probe("/api/gcs_healthz", naming.PortDashboardTLS)
		answer.HTTPGet.Scheme = corev1.URISchemeHTTPS
	case d.isHead():
		answer = probe("/api/gcs_healthz", naming.PortDashboard)
	}
	// An hour: a worker may wait for its head as long as that is being scheduled.
	fillPointer(&d.ray.StartupProbe, timed(raylet, 1, 3600))
	living := answer
	if naming.EncryptionRequired(d.cluster) { // connections that fill the port for HTTPS must not end the head
		living = raylet
	}
	fillPointer(&d.ray.ReadinessProbe, timed(answer, 5, 3))
	fillPointer(&d.ray.LivenessProbe, timed(living, 10, 12))
}

func probe(path string, port int) corev1.ProbeHandler {
	return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(int32(port))}}
}

func timed(handler corev1.ProbeHandler, periodSeconds, failures int32) corev1.Probe {
	return corev1.Probe{ProbeHandler: handler, PeriodSeconds: periodSeconds, TimeoutSeconds: 5, FailureThreshold: failures}
}
