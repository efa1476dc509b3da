package desired_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// firstID and countIDs are the users and groups that OpenShift gives a namespace.
const firstID, countIDs = 1000680000, 10000

// refusals are why OpenShift's restricted-v2 refuses a pod, by the rules that its documentation lists.
type refusals []string

func (r *refusals) add(is bool, format string, args ...any) {
	if is {
		*r = append(*r, fmt.Sprintf(format, args...))
	}
}

// constrained returns why a pod is refused.
func constrained(spec *corev1.PodSpec) refusals {
	var all refusals
	security := spec.SecurityContext
	all.add(spec.HostNetwork || spec.HostPID || spec.HostIPC, "namespaces of the host")
	all.add(isOutside(security.RunAsUser), "user of the pod")
	all.add(isOutside(security.FSGroup), "group of volumes")
	all.add(security.SELinuxOptions != nil, "SELinux options")
	all.add(!isRuntimeDefault(security.SeccompProfile), "seccomp profile of the pod")
	for _, volume := range spec.Volumes {
		has := volume.VolumeSource
		allowed := has.ConfigMap != nil || has.CSI != nil || has.DownwardAPI != nil || has.EmptyDir != nil || has.Ephemeral != nil ||
			has.PersistentVolumeClaim != nil || has.Projected != nil || has.Secret != nil
		all.add(!allowed, "volume %s", volume.Name)
	}
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		all.constrain(&container)
	}
	return all
}

// constrain adds why a container is refused.
func (r *refusals) constrain(container *corev1.Container) {
	name, own := container.Name, container.SecurityContext
	r.add(isOutside(own.RunAsUser), "user of %s", name)
	r.add(own.Privileged != nil && *own.Privileged, "privileges of %s", name)
	r.add(own.AllowPrivilegeEscalation == nil || *own.AllowPrivilegeEscalation, "escalation of %s", name)
	r.add(own.Capabilities == nil || !slices.Contains(own.Capabilities.Drop, "ALL"), "capabilities of %s", name)
	r.add(own.Capabilities != nil && slices.ContainsFunc(own.Capabilities.Add, func(c corev1.Capability) bool { return c != "NET_BIND_SERVICE" }), "added capabilities of %s", name)
	r.add(own.SELinuxOptions != nil, "SELinux options of %s", name)
	r.add(own.SeccompProfile != nil && !isRuntimeDefault(own.SeccompProfile), "seccomp profile of %s", name)
	r.add(slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.HostPort != 0 }), "ports of the host of %s", name)
}

func isOutside(id *int64) bool { return id != nil && (*id < firstID || *id >= firstID+countIDs) }

func isRuntimeDefault(profile *corev1.SeccompProfile) bool {
	return profile != nil && profile.Type == corev1.SeccompProfileTypeRuntimeDefault
}

// podsOf returns each sort of pod that a site makes, with every container that the operator adds.
func podsOf(site desired.Site) map[string]*corev1.PodSpec {
	embedded, stored := testkit.Cluster("embedded"), testkit.Cluster("redis", testkit.Group("cpu", 1))
	embedded.Spec.ControlStore = &v1beta1.ControlStore{Embedded: &v1beta1.EmbeddedStore{}}
	embedded.Spec.Autoscaling = &v1beta1.Autoscaling{}
	stored.Spec.ControlStore = &v1beta1.ControlStore{ManagedRedis: &v1beta1.ManagedRedis{}}
	stored.Spec.Network = &v1beta1.Network{Encryption: v1beta1.Enabled}
	set := site.StoreSet(stored, true)
	return map[string]*corev1.PodSpec{
		"head with an embedded store and an autoscaler": &site.HeadPod(embedded, 1).Spec,
		"head with encryption":                          &site.HeadPod(stored, 1).Spec,
		"worker with encryption":                        &site.WorkerPod(stored, &stored.Spec.WorkerGroups[0], 0, 1).Spec,
		"managed Redis":                                 &set.Spec.Template.Spec,
	}
}

// TestSite_LeavesUsersToOpenShift: its constraints refuse no pod there. Elsewhere nobody fills in users and groups, and those
// that have to write to a volume have fixed ones, which OpenShift would refuse.
func TestSite_LeavesUsersToOpenShift(t *testing.T) {
	image := pod.OperatorImage{Image: "heliostat"}
	containers := map[string]bool{}
	for name, spec := range podsOf(desired.Site{Image: image, AssignsUsers: true}) {
		for _, refusal := range constrained(spec) {
			t.Errorf("%s: restricted-v2 refuses %s", name, refusal)
		}
		for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
			containers[container.Name] = true
		}
	}
	for _, name := range []string{"ray", v1beta1.ContainerAutoscaler, v1beta1.ContainerCertificates, v1beta1.ContainerEncryption, "redis"} {
		if !containers[name] {
			t.Errorf("no pod has a container %s", name)
		}
	}
	elsewhere := podsOf(desired.Site{Image: image})
	for name, fixed := range map[string]int{
		"head with an embedded store and an autoscaler": 1, "head with encryption": 0, "worker with encryption": 0, "managed Redis": 2,
	} {
		if refusals := constrained(elsewhere[name]); len(refusals) != fixed {
			t.Errorf("%s: elsewhere it has %v, want %d", name, refusals, fixed)
		}
	}
}
