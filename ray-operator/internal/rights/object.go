package rights

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/metadata"
)

// object is one of the kinds, as the needs look at it.
type object struct {
	site Site
	// at is where its spec lies, or that of a schedule's jobs.
	at string
	// path is where the spec of the cluster lies, and cluster that spec, empty where there is none.
	path    string
	cluster *v1beta1.ComputeClusterSpec
	ref     *v1beta1.ClusterReference
	// env is a job's. service is nil for other kinds.
	env     []corev1.EnvVar
	service *v1beta1.ClusterServiceSpec
	// ranks are the labels that may name a priority: its own and those of what is made of its templates.
	ranks []keys
}

// node is the head or a worker group.
type node struct {
	path  string
	meta  *metav1.ObjectMeta
	pod   *corev1.PodSpec
	group *v1beta1.WorkerGroup
}

// template returns the path of the pod's specification.
func (n *node) template(child string) string { return n.path + ".template.spec." + child }

func (o *object) nodes() []node {
	all := []node{nodeOf(o.path+".head", o.cluster.Head.Template, nil)}
	for i := range o.cluster.WorkerGroups {
		group := &o.cluster.WorkerGroups[i]
		all = append(all, nodeOf(fmt.Sprintf("%s.workerGroups[%d]", o.path, i), group.Template, group))
	}
	return all
}

func nodeOf(path string, template *corev1.PodTemplateSpec, group *v1beta1.WorkerGroup) node {
	if template == nil {
		template = &corev1.PodTemplateSpec{}
	}
	return node{path: path, meta: &template.ObjectMeta, pod: &template.Spec, group: group}
}

func (o *object) defaults() *v1beta1.PodDefaults {
	if o.cluster.PodDefaults == nil {
		return &v1beta1.PodDefaults{}
	}
	return o.cluster.PodDefaults
}

func (n *node) containers() []corev1.Container {
	return slices.Concat(n.pod.Containers, n.pod.InitContainers)
}

func is(value *bool) bool { return value != nil && *value }

// account returns the service account of a node's pods.
func (o *object) account(n *node) string {
	for _, name := range []string{n.pod.ServiceAccountName, n.pod.DeprecatedServiceAccount, o.defaults().ServiceAccountName} {
		if name != "" {
			return name
		}
	}
	return o.site.Account
}

const defaultAccount = "default"

// environment visits what variables of pods name: as Secrets, or as ConfigMaps.
func (o *object) environment(named func(env *corev1.EnvVarSource, from *corev1.EnvFromSource) string, found func(field, name string)) {
	visit := func(path string, env []corev1.EnvVar, from []corev1.EnvFromSource) {
		for i := range env {
			if env[i].ValueFrom != nil {
				found(path+".env", named(env[i].ValueFrom, nil))
			}
		}
		for i := range from {
			found(path+".envFrom", named(nil, &from[i]))
		}
	}
	visit(o.at, o.env, nil)
	visit(o.path+".podDefaults", o.defaults().Env, o.defaults().EnvFrom)
	for _, n := range o.nodes() {
		for _, container := range n.containers() {
			visit(n.template("containers[*]"), container.Env, container.EnvFrom)
		}
	}
}

// volumes visits the volumes of all pods.
func (o *object) volumes(visit func(path string, volume *corev1.Volume)) {
	for _, n := range o.nodes() {
		for i := range n.pod.Volumes {
			visit(n.template("volumes"), &n.pod.Volumes[i])
		}
	}
}

func secretOf(env *corev1.EnvVarSource, from *corev1.EnvFromSource) string {
	switch {
	case env != nil && env.SecretKeyRef != nil:
		return env.SecretKeyRef.Name
	case from != nil && from.SecretRef != nil:
		return from.SecretRef.Name
	}
	return ""
}

func configMapOf(env *corev1.EnvVarSource, from *corev1.EnvFromSource) string {
	switch {
	case env != nil && env.ConfigMapKeyRef != nil:
		return env.ConfigMapKeyRef.Name
	case from != nil && from.ConfigMapRef != nil:
		return from.ConfigMapRef.Name
	}
	return ""
}

// plainVolumes are the volumes that give a pod nothing but what it names or makes. Others are drivers, which may mount
// anything, and the node's own paths.
var plainVolumes = []string{"name", "configMap", "secret", "projected", "downwardAPI", "emptyDir", "persistentVolumeClaim", "ephemeral", "image"}

// isPlain reports whether a volume has no source but those. One of a driver beside them counts, as in the expression.
func isPlain(v *corev1.VolumeSource) bool {
	other := *v
	other.ConfigMap, other.Secret, other.Projected, other.DownwardAPI = nil, nil, nil, nil
	other.EmptyDir, other.PersistentVolumeClaim, other.Ephemeral, other.Image = nil, nil, nil, nil
	return other == (corev1.VolumeSource{})
}

// takesOver reports whether a claim that is made is of a volume or of data that is there already, or may be by an annotation.
func (s *Site) takesOver(claim *corev1.PersistentVolumeClaimSpec, meta *metav1.ObjectMeta) bool {
	for key := range meta.Annotations {
		if s.isObeyed(key) {
			return true
		}
	}
	return claim.VolumeName != "" || claim.DataSource != nil || claim.DataSourceRef != nil
}

// isPrivileged reports what of a container's settings the operator's defaults do not allow.
func isPrivileged(container *corev1.Container) bool {
	if slices.ContainsFunc(container.Ports, func(port corev1.ContainerPort) bool { return port.HostPort != 0 }) {
		return true
	}
	s := container.SecurityContext
	if s == nil {
		return false
	}
	return is(s.Privileged) || is(s.AllowPrivilegeEscalation) || s.Capabilities != nil && len(s.Capabilities.Add) > 0 || s.ProcMount != nil ||
		isWeak(s.RunAsUser, s.RunAsNonRoot, s.SeccompProfile, s.AppArmorProfile) || s.SELinuxOptions != nil || s.WindowsOptions != nil
}

// isWeak reports what containers and pods may say alike that the operator's defaults do not allow.
func isWeak(user *int64, nonRoot *bool, seccomp *corev1.SeccompProfile, appArmor *corev1.AppArmorProfile) bool {
	return user != nil && *user == 0 || nonRoot != nil && !*nonRoot || seccomp != nil && seccomp.Type == corev1.SeccompProfileTypeUnconfined ||
		appArmor != nil && appArmor.Type == corev1.AppArmorProfileTypeUnconfined
}

// isHosted reports what of a pod's settings the operator's defaults do not allow.
func isHosted(pod *corev1.PodSpec) bool {
	if pod.HostNetwork || pod.HostPID || pod.HostIPC {
		return true
	}
	s := pod.SecurityContext
	if s == nil {
		return false
	}
	return len(s.Sysctls) > 0 || isWeak(s.RunAsUser, s.RunAsNonRoot, s.SeccompProfile, s.AppArmorProfile) || s.SELinuxOptions != nil || s.WindowsOptions != nil
}

// asksElsewhere reports whether a probe or a hook of a container makes the kubelet ask another host.
func asksElsewhere(container *corev1.Container) bool {
	handlers := []*corev1.ProbeHandler{}
	for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe, container.StartupProbe} {
		if probe != nil {
			handlers = append(handlers, &probe.ProbeHandler)
		}
	}
	if slices.ContainsFunc(handlers, func(h *corev1.ProbeHandler) bool {
		return h.HTTPGet != nil && h.HTTPGet.Host != "" || h.TCPSocket != nil && h.TCPSocket.Host != ""
	}) {
		return true
	}
	if container.Lifecycle == nil {
		return false
	}
	return slices.ContainsFunc([]*corev1.LifecycleHandler{container.Lifecycle.PostStart, container.Lifecycle.PreStop}, func(h *corev1.LifecycleHandler) bool {
		return h != nil && (h.HTTPGet != nil && h.HTTPGet.Host != "" || h.TCPSocket != nil && h.TCPSocket.Host != "")
	})
}

// controlPlane begins the keys of the labels and taints of nodes that run Kubernetes itself. specialNodes are other keys of
// such nodes, of which some are kOps' and MicroK8s', and the key of a node's own name.
const controlPlane = "node-role.kubernetes.io/"

var specialNodes = []string{
	corev1.LabelHostname, "kubernetes.io/role", corev1.LabelNodeExcludeBalancers, "node.kubernetes.io/microk8s-controlplane", "kops.k8s.io/kops-controller-pki",
}

func isSpecialNode(key string) bool {
	return slices.Contains(specialNodes, key) || strings.HasPrefix(key, controlPlane)
}

func hasSpecialKey(labels map[string]string) bool {
	for key := range labels {
		if isSpecialNode(key) {
			return true
		}
	}
	return false
}

// isReserved reports whether a toleration is of nodes that a taint keeps for others, or that run Kubernetes itself.
func (s *Site) isReserved(t corev1.Toleration) bool {
	return isSpecialNode(t.Key) || !isListed(s.Tolerations, t.Key)
}

// choosesNode reports whether terms of an affinity name nodes, or those that run Kubernetes itself.
func choosesNode(affinity *corev1.Affinity) bool {
	if affinity == nil || affinity.NodeAffinity == nil {
		return false
	}
	var terms []corev1.NodeSelectorTerm
	if required := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		terms = required.NodeSelectorTerms
	}
	for i := range affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
		terms = append(slices.Clone(terms), affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution[i].Preference)
	}
	return slices.ContainsFunc(terms, func(term corev1.NodeSelectorTerm) bool {
		return len(term.MatchFields) > 0 || slices.ContainsFunc(term.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool { return isSpecialNode(e.Key) })
	})
}

// crossesNamespaces reports whether an affinity names namespaces of the pods that it is about. With an anti-affinity a pod keeps
// pods of others from whole zones. Quotas call that scope CrossNamespacePodAffinity.
func crossesNamespaces(affinity *corev1.Affinity) bool {
	if affinity == nil {
		return false
	}
	var terms []corev1.PodAffinityTerm
	add := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		terms = append(terms, required...)
		for i := range preferred {
			terms = append(terms, preferred[i].PodAffinityTerm)
		}
	}
	if a := affinity.PodAffinity; a != nil {
		add(a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := affinity.PodAntiAffinity; a != nil {
		add(a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool { return len(t.Namespaces) > 0 || t.NamespaceSelector != nil })
}

// hasMetadata reports whether a peer is a block that holds addresses of the cloud's metadata and does not except them. Of
// the closed blocks, pods may have EKS Pod Identity. Selectors hold none: they are about pods.
func hasMetadata(peer networkingv1.NetworkPolicyPeer) bool {
	if peer.IPBlock == nil {
		return false
	}
	block, err := netip.ParsePrefix(peer.IPBlock.CIDR)
	if err != nil || block.Addr().Is4In6() {
		return true
	}
	if slices.ContainsFunc(metadata.PodIdentity(), func(own netip.Prefix) bool { return metadata.Covers(own, block) }) {
		return false
	}
	return slices.ContainsFunc(metadata.Closed(), func(closed netip.Prefix) bool {
		return closed.Overlaps(block) && !slices.ContainsFunc(peer.IPBlock.Except, func(text string) bool {
			except, err := netip.ParsePrefix(text)
			return err == nil && metadata.Covers(except, closed)
		})
	})
}
