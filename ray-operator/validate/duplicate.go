package validate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// duplicates finds entries of the same name in the lists outside of templates whose
// entries have one.
func duplicates(c *v1beta1.ComputeCluster, bad report) {
	spec := field.NewPath("spec")
	twice(bad, spec, "workerGroups", c.Spec.WorkerGroups, func(g *v1beta1.WorkerGroup) string { return g.Name })
	if d := c.Spec.PodDefaults; d != nil {
		twice(bad, spec, "podDefaults.env", d.Env, func(e *corev1.EnvVar) string { return e.Name })
	}
	if s := c.Spec.Head.Service; s != nil {
		twice(bad, spec, "head.service.ports", s.Ports, func(p *v1beta1.ServicePort) string { return p.Name })
	}
	if r, has := ofHead(c); has {
		twiceInReach(&r, bad)
	}
	if g := c.Spec.Head.Ingress; g != nil {
		twice(bad, spec, "head.ingress.additionalHosts", g.AdditionalHosts, func(host *string) string { return *host })
	}
	if a := c.Spec.Autoscaling; a != nil {
		twice(bad, spec, "autoscaling.env", a.Env, func(e *corev1.EnvVar) string { return e.Name })
	}
	if e := storeOf(c).Embedded; e != nil {
		twice(bad, storePath, "embedded.accessModes", e.AccessModes, func(m *corev1.PersistentVolumeAccessMode) string { return string(*m) })
	}
	if n := c.Spec.Network; n != nil {
		for i := range n.AllowFrom {
			twice(bad, spec.Child("network", "allowFrom").Index(i), "ports", n.AllowFrom[i].Ports,
				func(p *v1beta1.Port) string { return string(*p) })
		}
	}
}

// templateDuplicates does the same in a pod template, for the lists by which Kubernetes
// merges: the CRD's schema takes their keys over.
func templateDuplicates(n *node, bad report) {
	p, at := n.pod, n.podPath()
	named := func(c *corev1.Container) string { return c.Name }
	twice(bad, at, "containers", p.Containers, named)
	twice(bad, at, "initContainers", p.InitContainers, named)
	twice(bad, at, "ephemeralContainers", p.EphemeralContainers, func(c *corev1.EphemeralContainer) string { return c.Name })
	twice(bad, at, "volumes", p.Volumes, func(v *corev1.Volume) string { return v.Name })
	twice(bad, at, "imagePullSecrets", p.ImagePullSecrets, func(s *corev1.LocalObjectReference) string { return s.Name })
	twice(bad, at, "hostAliases", p.HostAliases, func(h *corev1.HostAlias) string { return h.IP })
	twice(bad, at, "resourceClaims", p.ResourceClaims, func(c *corev1.PodResourceClaim) string { return c.Name })
	twice(bad, at, "schedulingGates", p.SchedulingGates, func(g *corev1.PodSchedulingGate) string { return g.Name })
	twice(bad, at, "topologySpreadConstraints", p.TopologySpreadConstraints, func(c *corev1.TopologySpreadConstraint) string {
		return c.TopologyKey + " " + string(c.WhenUnsatisfiable)
	})
	n.containers(func(path *field.Path, c *corev1.Container) {
		twice(bad, path, "env", c.Env, func(e *corev1.EnvVar) string { return e.Name })
		twice(bad, path, "ports", c.Ports, func(p *corev1.ContainerPort) string { return fmt.Sprint(p.ContainerPort, protocol(p)) })
		twice(bad, path, "volumeMounts", c.VolumeMounts, func(m *corev1.VolumeMount) string { return m.MountPath })
		twice(bad, path, "volumeDevices", c.VolumeDevices, func(d *corev1.VolumeDevice) string { return d.DevicePath })
		twice(bad, path, "resources.claims", c.Resources.Claims, func(r *corev1.ResourceClaim) string { return r.Name })
	})
}
