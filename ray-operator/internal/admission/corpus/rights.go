package corpus

import (
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/rights"
)

// RightsInput is a good object of some kind, with the rights that it needs.
type RightsInput struct {
	Name     string          `json:"name"`
	Resource string          `json:"resource"`
	Object   json.RawMessage `json:"object"`
	Demands  []RightsDemand  `json:"demands,omitempty"`
}

// RightsDemand is one right that an object needs, with what the API server must answer where it lacks.
type RightsDemand struct {
	Need        string `json:"need"`
	Verb        string `json:"verb"`
	Group       string `json:"group"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	ClusterWide bool   `json:"clusterWide,omitempty"`
	OrPods      bool   `json:"orPods,omitempty"`
	Most        int    `json:"most,omitempty"`
	Name        string `json:"name,omitempty"`
	Says        string `json:"says"`
}

// RightsRow is an edit that makes an object need a right; without a need it makes it need none.
type RightsRow struct {
	Name, Need string
	// Cluster edits the cluster, of whichever kind it is; Job and Service edit those kinds alone.
	Cluster edit
	Job     jobEdit
	Service change
}

// volume adds a volume to the first group's pods.
func volume(source corev1.VolumeSource) edit {
	return inPod(func(p *corev1.PodSpec) {
		p.Volumes = append(p.Volumes, corev1.Volume{Name: fmt.Sprint("v", len(p.Volumes)), VolumeSource: source})
	})
}

func projected(source corev1.VolumeProjection) edit {
	return volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{source}}})
}

func refTo(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }

func secured(change func(*corev1.SecurityContext)) edit {
	return inSide(func(c *container) {
		c.SecurityContext = &corev1.SecurityContext{}
		change(c.SecurityContext)
	})
}

func nodeTerm(required bool, term corev1.NodeSelectorTerm) edit {
	return inPod(func(p *corev1.PodSpec) {
		affinity := &corev1.NodeAffinity{}
		if required {
			affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}
		} else {
			affinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: term}}
		}
		p.Affinity = &corev1.Affinity{NodeAffinity: affinity}
	})
}

// beside keeps pods of selected namespaces, or of the own one, from the nodes of a pod.
func beside(namespaces *metav1.LabelSelector) edit {
	return inPod(func(p *corev1.PodSpec) {
		term := corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{}, NamespaceSelector: namespaces}
		p.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
	})
}

func onNode(key string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}}}
}

func dataOf(spec corev1.PersistentVolumeClaimSpec) corev1.PersistentVolumeClaimSpec {
	spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	spec.Resources.Requests = resources("storage", "1Gi")
	return spec
}

// RightsRows are one or more for each field that needs a right, and for their neighbours that need none.
func RightsRows() []RightsRow { return slices.Concat(podRightsRows, objectRightsRows, doorRightsRows) }

// podRightsRows are about what a pod runs as, and what of its node it gets.
var podRightsRows = []RightsRow{
	{Name: "nothing"},
	{Name: "the default account", Cluster: defaults(func(d *v1beta1.PodDefaults) { d.ServiceAccountName = "default" })},
	{Name: "an account of all pods", Need: "account", Cluster: defaults(func(d *v1beta1.PodDefaults) { d.ServiceAccountName = "reader" })},
	{Name: "an account", Need: "account", Cluster: inPod(func(p *corev1.PodSpec) { p.ServiceAccountName = "reader" })},
	{Name: "an account by its former field", Need: "account", Cluster: inPod(func(p *corev1.PodSpec) { p.DeprecatedServiceAccount = "reader" })},
	{Name: "a token", Need: "account", Cluster: inPod(func(p *corev1.PodSpec) { p.AutomountServiceAccountToken = ptr(true) })},
	{Name: "a projected token", Need: "account", Cluster: projected(corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}})},
	{Name: "a priority of all pods", Need: "priority-class", Cluster: defaults(func(d *v1beta1.PodDefaults) { d.PriorityClassName = "high" })},
	{Name: "a priority", Need: "priority-class", Cluster: inPod(func(p *corev1.PodSpec) { p.PriorityClassName = "system-node-critical" })},
	{Name: "a runtime", Need: "runtime-class", Cluster: inPod(func(p *corev1.PodSpec) { p.RuntimeClassName = ptr("gvisor") })},
	{Name: "a path of the node", Need: "host", Cluster: volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}})},
	{Name: "a volume of a driver", Need: "host", Cluster: volume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "csi.example.com"}})},
	{Name: "an NFS", Need: "host", Cluster: volume(corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "a", Path: "/"}})},
	{Name: "an empty directory", Cluster: volume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})},
	{Name: "privileges", Need: "host", Cluster: secured(func(s *corev1.SecurityContext) { s.Privileged = ptr(true) })},
	{Name: "more privileges by and by", Need: "host", Cluster: secured(func(s *corev1.SecurityContext) { s.AllowPrivilegeEscalation = ptr(true) })},
	{Name: "a capability", Need: "host", Cluster: secured(func(s *corev1.SecurityContext) {
		s.Capabilities = &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}}
	})},
	{Name: "no capability", Cluster: secured(func(s *corev1.SecurityContext) {
		s.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	})},
	{Name: "root", Need: "host", Cluster: secured(func(s *corev1.SecurityContext) { s.RunAsUser = ptr(int64(0)) })},
	{Name: "a user", Cluster: secured(func(s *corev1.SecurityContext) { s.RunAsUser = ptr(int64(1000)) })},
	{Name: "no profile", Need: "host", Cluster: inPod(func(p *corev1.PodSpec) {
		p.SecurityContext = &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}}
	})},
	{Name: "a sysctl", Need: "host", Cluster: inPod(func(p *corev1.PodSpec) {
		p.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "net.core.somaxconn", Value: "1"}}}
	})},
	{Name: "a probe of another host", Need: "host", Cluster: inSide(func(c *container) {
		c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Host: "10.0.0.1", Port: intstr.FromInt32(80)}}}
	})},
	{Name: "a hook of another host", Need: "host", Cluster: inSide(func(c *container) {
		c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Host: "10.0.0.1", Port: intstr.FromInt32(80)}}}
	})},
	{Name: "a probe", Cluster: inSide(func(c *container) {
		c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}}}
	})},
	{Name: "a node by its name", Need: "node", Cluster: defaults(func(d *v1beta1.PodDefaults) { d.NodeSelector = map[string]string{corev1.LabelHostname: "n1"} })},
	{Name: "nodes by a label", Cluster: defaults(func(d *v1beta1.PodDefaults) { d.NodeSelector = some })},
	{Name: "a node of a control plane", Need: "node", Cluster: inPod(func(p *corev1.PodSpec) {
		p.NodeSelector = map[string]string{"node-role.kubernetes.io/control-plane": ""}
	})},
	{Name: "a field of a node", Need: "node", Cluster: nodeTerm(true, corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}}})},
	{Name: "a node by an affinity", Need: "node", Cluster: nodeTerm(true, onNode(corev1.LabelHostname))},
	{Name: "a node that is preferred", Need: "node", Cluster: nodeTerm(false, onNode("node-role.kubernetes.io/control-plane"))},
	{Name: "nodes by an affinity", Cluster: nodeTerm(true, onNode("gpu"))},
	{Name: "no pods of any namespace beside", Need: "node", Cluster: beside(&metav1.LabelSelector{})},
	{Name: "no pods of the own namespace beside", Cluster: beside(nil)},
	{Name: "nodes of another label of control planes", Need: "node", Cluster: defaults(func(d *v1beta1.PodDefaults) { d.NodeSelector = map[string]string{"kubernetes.io/role": "master"} })},
	{Name: "a toleration of control planes", Need: "toleration", Cluster: defaults(func(d *v1beta1.PodDefaults) {
		d.Tolerations = []corev1.Toleration{{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists}}
	})},
	{Name: "a toleration of everything", Need: "toleration", Cluster: inPod(func(p *corev1.PodSpec) { p.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} })},
	{Name: "a toleration", Cluster: inPod(func(p *corev1.PodSpec) {
		p.Tolerations = []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}}
	})},
	{Name: "a toleration by a listed prefix", Cluster: defaults(func(d *v1beta1.PodDefaults) {
		d.Tolerations = []corev1.Toleration{{Key: "gpu.intel.com/i915", Operator: corev1.TolerationOpExists}}
	})},
	{Name: "a toleration of a team's nodes", Need: "toleration", Cluster: inPod(func(p *corev1.PodSpec) {
		p.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "finance"}}
	})},
	{Name: "annotations of the list", Cluster: both(annotated(map[string]string{"note": "a", "prometheus.io/scrape": "true"}),
		defaults(func(d *v1beta1.PodDefaults) {
			d.Annotations = map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
		}))},
	{Name: "an annotation that a program obeys", Need: "pod-metadata", Cluster: annotated(map[string]string{"k8s.v1.cni.cncf.io/networks": "kube-system/storage", "note": "a"})},
	{Name: "an annotation of all pods that a program obeys", Need: "pod-metadata", Cluster: defaults(func(d *v1beta1.PodDefaults) {
		d.Annotations = map[string]string{"iam.amazonaws.com/role": "admin"}
	})},
	{Name: "AppArmor switched off", Need: "host", Cluster: annotated(map[string]string{"container.apparmor.security.beta.kubernetes.io/ray": "unconfined"})},
	{Name: "AppArmor switched off in all pods", Need: "host", Cluster: defaults(func(d *v1beta1.PodDefaults) {
		d.Annotations = map[string]string{"container.apparmor.security.beta.kubernetes.io/ray": "unconfined"}
	})},
	{Name: "a label of the list", Cluster: headTemplate(func(t *tmpl, _ *container) { t.Labels = map[string]string{"app.kubernetes.io/component": "training"} })},
	{Name: "a label that joins a Service", Need: "pod-metadata", Cluster: headTemplate(func(t *tmpl, _ *container) { t.Labels = map[string]string{"app": "shop"} })},
	{Name: "a label of all pods that a webhook selects by", Need: "pod-metadata", Cluster: defaults(func(d *v1beta1.PodDefaults) {
		d.Labels = map[string]string{"azure.workload.identity/use": "true"}
	})},
}

// ranked gives an object the label of a priority. A service has it in its template.
func ranked(labels map[string]string) RightsRow {
	return RightsRow{
		Cluster: func(c *cluster) { c.Labels = labels },
		Job:     both(ownCluster, func(j *job) { j.Labels = labels }),
		Service: servedMeta(labels, nil),
	}
}

func (r RightsRow) named(name, need string) RightsRow {
	r.Name, r.Need = name, need
	return r
}

// objectRightsRows are about what a pod reads of its namespace.
var objectRightsRows = []RightsRow{
	{Name: "a Secret in a variable", Need: "secret", Cluster: inSide(func(c *container) { c.Env = []corev1.EnvVar{fromSecret("A")} })},
	{Name: "a Secret in a variable of all pods", Need: "secret", Cluster: defaults(func(d *v1beta1.PodDefaults) { d.Env = []corev1.EnvVar{fromSecret("A")} })},
	{Name: "a Secret's variables", Need: "secret", Cluster: inSide(func(c *container) {
		c.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: refTo("s")}}}
	})},
	{Name: "a Secret's variables in all pods", Need: "secret", Cluster: defaults(func(d *v1beta1.PodDefaults) {
		d.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: refTo("s")}}}
	})},
	{Name: "a volume of a Secret", Need: "secret", Cluster: volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}})},
	{Name: "a projected Secret", Need: "secret", Cluster: projected(corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: refTo("s")}})},
	{Name: "a pull secret", Need: "secret", Cluster: inPod(func(p *corev1.PodSpec) { p.ImagePullSecrets = []corev1.LocalObjectReference{refTo("s")} })},
	{Name: "a pull secret of all pods", Need: "secret", Cluster: defaults(func(d *v1beta1.PodDefaults) { d.ImagePullSecrets = []corev1.LocalObjectReference{refTo("s")} })},
	{Name: "the most Secrets", Need: "secret", Cluster: secretVolumes(9)},
	{Name: "too many Secrets", Need: "secret", Cluster: secretVolumes(12)},
	{Name: "a Secret in a variable of a job", Need: "secret", Job: both(ownCluster, env(fromSecret("A")))},
	{Name: "a ConfigMap in a variable", Need: "config-map", Cluster: inSide(func(c *container) {
		c.Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: refTo("m"), Key: "k"}}}}
	})},
	{Name: "a ConfigMap's variables in all pods", Need: "config-map", Cluster: defaults(func(d *v1beta1.PodDefaults) {
		d.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: refTo("m")}}}
	})},
	{Name: "a volume of a ConfigMap", Need: "config-map", Cluster: volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: refTo("m")}})},
	{Name: "a projected ConfigMap", Need: "config-map", Cluster: projected(corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: refTo("m")}})},
	{Name: "a claim", Need: "claim", Cluster: volume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}})},
	{Name: "a claim of the store", Need: "claim", Cluster: existing("c")},
	{Name: "a claim of a shared volume", Need: "claim", Cluster: sharing(asGiven)},
	{Name: "a claim that is made for a shared volume", Need: "shared-claim", Cluster: sharing(claimed(ptr("1Gi"), nil))},
	{Name: "a resource claim", Need: "resource-claim", Cluster: inPod(func(p *corev1.PodSpec) {
		p.ResourceClaims = []corev1.PodResourceClaim{{Name: "a", ResourceClaimName: ptr("gpus")}}
	})},
	{Name: "a resource claim of a template", Need: "resource-claim-template", Cluster: inPod(func(p *corev1.PodSpec) {
		p.ResourceClaims = []corev1.PodResourceClaim{{Name: "a", ResourceClaimTemplateName: ptr("gpus")}}
	})},
	{Name: "a claim of a volume", Need: "data", Cluster: inGroup(func(g *group) {
		g.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: dataOf(corev1.PersistentVolumeClaimSpec{VolumeName: "pv"})}}
	})},
	{Name: "a claim with an annotation that its driver obeys", Need: "data", Cluster: claim(func(c *corev1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{"cdi.kubevirt.io/storage.import.endpoint": "https://example.com/disk"}
	})},
	{Name: "a claim with a note", Cluster: claim(func(c *corev1.PersistentVolumeClaim) { c.Annotations = map[string]string{"note": "a"} })},
	{Name: "a claim with data", Need: "data", Cluster: volume(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
		VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: dataOf(corev1.PersistentVolumeClaimSpec{
			DataSource: &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "other"},
		})},
	}})},
}

// doorRightsRows are about what the operator reads or opens for somebody.
var doorRightsRows = []RightsRow{
	{Name: "Secrets of a Redis", Need: "own-secret", Cluster: onTLS()},
	{Name: "a Secret with the token", Need: "own-secret", Cluster: authentication(v1beta1.AuthenticationToken, "token")},
	{Name: "an Ingress with TLS", Need: "ingress", Cluster: ingress(func(g *v1beta1.IngressSpec) { g.TLSSecretName = "tls" })},
	{Name: "an Ingress without TLS", Need: "open", Cluster: ingress(func(*v1beta1.IngressSpec) {})},
	{Name: "a load balancer", Need: "service", Cluster: service(func(s *v1beta1.HeadServiceSpec) { s.Type = corev1.ServiceTypeLoadBalancer })},
	{Name: "ports of nodes", Need: "open", Cluster: service(func(s *v1beta1.HeadServiceSpec) { s.Type = corev1.ServiceTypeNodePort })},
	{Name: "an Ingress with a certificate of cert-manager", Need: "ingress", Cluster: ingress(func(g *v1beta1.IngressSpec) {
		g.TLSSecretName, g.Annotations = "tls", map[string]string{"cert-manager.io/issuer": "public"}
	})},
	{Name: "an Ingress that may take TLS away", Need: "open", Cluster: ingress(func(g *v1beta1.IngressSpec) {
		g.TLSSecretName, g.Annotations = "tls", map[string]string{"nginx.ingress.kubernetes.io/ssl-redirect": "false"}
	})},
	{Name: "an annotated Service", Need: "service", Cluster: service(func(s *v1beta1.HeadServiceSpec) {
		s.Annotations = map[string]string{"tailscale.com/expose": "true"}
	})},
	{Name: "a Service", Cluster: service(func(s *v1beta1.HeadServiceSpec) { s.Type = corev1.ServiceTypeClusterIP })},
	{Name: "no authentication", Need: "open", Cluster: authentication(v1beta1.AuthenticationDisabled, "")},
	{Name: "no isolation", Need: "open", Cluster: func(c *cluster) { c.Spec.Network = &v1beta1.Network{Isolation: v1beta1.Disabled} }},
	{Name: "everybody", Need: "open", Cluster: allowFrom([]v1beta1.Port{v1beta1.PortDashboard})},
	{Name: "every namespace", Need: "open", Cluster: allowFrom([]v1beta1.Port{v1beta1.PortDashboard}, networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{}})},
	{Name: "a wide block", Need: "open", Cluster: allowFrom([]v1beta1.Port{v1beta1.PortDashboard}, block("0.0.0.0/0"))},
	{Name: "a block", Cluster: allowFrom([]v1beta1.Port{v1beta1.PortDashboard}, block("10.0.0.0/8"))},
	{Name: "every namespace by its key", Need: "open", Cluster: allowFromNamespaces(metav1.LabelSelectorRequirement{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpExists})},
	{Name: "every namespace but one", Need: "open", Cluster: allowFromNamespaces(metav1.LabelSelectorRequirement{Key: "team", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"a"}})},
	{Name: "every namespace without a label", Need: "open", Cluster: allowFromNamespaces(metav1.LabelSelectorRequirement{Key: "none", Operator: metav1.LabelSelectorOpDoesNotExist})},
	{Name: "namespaces of a list", Cluster: allowFromNamespaces(metav1.LabelSelectorRequirement{Key: "team", Operator: metav1.LabelSelectorOpIn, Values: []string{"a", "b"}})},
	{Name: "two blocks", Need: "open", Cluster: allowFrom([]v1beta1.Port{v1beta1.PortDashboard}, block("10.0.0.0/8"), block("11.0.0.0/8"))},
	{Name: "four smaller blocks of IPv6", Need: "open", Cluster: allowFrom([]v1beta1.Port{v1beta1.PortDashboard},
		block("2000::/9"), block("2080::/9"), block("2100::/9"), block("2180::/9"))},
	{Name: "the private blocks", Cluster: allowFrom([]v1beta1.Port{v1beta1.PortDashboard},
		block("10.0.0.0/8"), block("172.16.0.0/12"), block("192.168.0.0/16"), block("fd00::/8"))},
	{Name: "pods of the namespace", Cluster: allowFrom([]v1beta1.Port{v1beta1.PortDashboard}, anyone)},
	{Name: "the cloud's metadata", Need: "metadata", Cluster: cloudMetadata},
	{Name: "no metadata", Cluster: func(c *cluster) {
		c.Spec.Network = &v1beta1.Network{CloudMetadata: v1beta1.Disabled}
	}},
	{Name: "everything to be reached", Need: "metadata", Cluster: allowTo(nil)},
	{Name: "all addresses", Need: "metadata", Cluster: allowTo(peersOf(block("0.0.0.0/0")))},
	{Name: "all addresses but one of metadata", Need: "metadata",
		Cluster: allowTo(peersOf(anyone, block("0.0.0.0/0", "10.0.0.0/8", "169.254.169.254/32")))},
	{Name: "all addresses but metadata",
		Cluster: allowTo(peersOf(block("0.0.0.0/0", "169.254.0.0/16", "168.63.129.16/32", "100.100.100.200/32", "192.0.0.192/32")))},
	{Name: "the address of metadata", Need: "metadata", Cluster: allowTo(peersOf(block("169.254.169.254/32")))},
	{Name: "a half of all addresses", Need: "metadata",
		Cluster: allowTo(peersOf(block("10.0.0.0/8"), block("128.0.0.0/1")))},
	{Name: "another cloud's address", Need: "metadata", Cluster: allowTo(peersOf(block("100.64.0.0/10")))},
	{Name: "all addresses of IPv6", Need: "metadata", Cluster: allowTo(peersOf(block("::/0", "fd00:ec2::254/128")))},
	{Name: "the address of metadata by NAT64", Need: "metadata", Cluster: allowTo(peersOf(block("64:ff9b::a9fe:a9fe/128")))},
	{Name: "all of IPv6 but metadata", Cluster: allowTo(peersOf(block("::/0", "fd00::/8", "fe80::/10", "64:ff9b::/96")))},
	{Name: "the address of Azure's host", Need: "metadata", Cluster: allowTo(peersOf(block("168.63.129.16/32")))},
	{Name: "a link-local address", Need: "metadata", Cluster: allowTo(peersOf(block("169.254.0.23/32")))},
	{Name: "the address of EKS Pod Identity", Cluster: allowTo(peersOf(block("169.254.170.23/32")))},
	{Name: "a block to be reached", Cluster: allowTo(peersOf(block("10.0.0.0/8"), block("2001:db8::/32")))},
	{Name: "all pods to be reached",
		Cluster: allowTo(peersOf(networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{}}))},
	{Name: "somebody's cluster", Need: "cluster", Job: onCluster("theirs"), Service: serviceSpec(func(s *offers) {
		s.ClusterRef, s.ClusterTemplate = &v1beta1.ClusterReference{Name: "theirs"}, nil
	})},
	{Name: "a gateway", Need: "route", Service: serviceSpec(func(s *offers) {
		s.UpgradeStrategy = &v1beta1.ServiceUpgradeStrategy{Gateway: &v1beta1.ServiceGateway{ParentRef: v1beta1.GatewayReference{Name: "public"}, Hostnames: []string{"www.example.com"}}}
	})},
	{Name: "a service's load balancer", Need: "open", Service: serviceSpec(func(s *offers) {
		s.Service = &v1beta1.ServeService{Type: corev1.ServiceTypeLoadBalancer}
	})},
	{Name: "an annotated Service of a service", Need: "service", Service: serviceSpec(func(s *offers) {
		s.Service = &v1beta1.ServeService{Annotations: map[string]string{"tailscale.com/expose": "true"}}
	})},
	{Name: "a service for everybody", Need: "open", Service: frontPeers(block("0.0.0.0/0"))},
	{Name: "a service for every namespace", Need: "open",
		Service: frontPeers(networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{}})},
	{Name: "a service for every namespace by its key", Need: "open", Service: frontPeers(namespaces(
		metav1.LabelSelectorRequirement{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpExists}))},
	{Name: "a service for a block", Service: frontPeers(block("10.1.0.0/16"), block("2001:db8:1::/48"), anyone)},
	{Name: "a service for a network of pods", Need: "open", Service: frontPeers(block("10.0.0.0/15"))},
	{Name: "a service for two blocks", Need: "open", Service: frontPeers(block("10.1.0.0/16"), anyone, block("10.2.0.0/16"))},
	{Name: "a service for a wider block of IPv6", Need: "open", Service: frontPeers(block("2001:db8::/32"))},
	{Name: "a service for the server", Service: frontServer(networkingv1.NetworkPolicyPeer{})},
	ranked(map[string]string{rights.PriorityLabel: "urgent"}).named("a priority in queues", "workload-priority"),
	ranked(map[string]string{"kueue.x-k8s.io/queue-name": "team"}).named("a queue of the namespace", ""),
	{Name: "a queue of Volcano", Need: "queue-volcano", Cluster: placedBy(v1beta1.SchedulerVolcano, inQueue("research"))},
	{Name: "a queue of KAI", Need: "queue-kai", Cluster: placedBy(v1beta1.SchedulerKAI, inQueue("research"))},
	{Name: "a queue of YuniKorn", Need: "queue-yunikorn", Cluster: placedBy(v1beta1.SchedulerYuniKorn, inQueue("root.research"))},
	{Name: "a scheduler's own queue", Cluster: placedBy(v1beta1.SchedulerVolcano)},
}

func namespaces(requirement metav1.LabelSelectorRequirement) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{requirement}}}
}

func allowFromNamespaces(requirement metav1.LabelSelectorRequirement) edit {
	return allowFrom([]v1beta1.Port{v1beta1.PortDashboard}, namespaces(requirement))
}

func peersOf(peers ...networkingv1.NetworkPolicyPeer) []networkingv1.NetworkPolicyPeer { return peers }

func secretVolumes(n int) edit {
	all := make([]edit, n)
	for i := range all {
		all[i] = volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: fmt.Sprint("s", i)}})
	}
	return both(all...)
}

// Rights gives an input for each row and kind, and mixtures of rows.
func Rights(options Options) iter.Seq2[RightsInput, error] {
	return func(yield func(RightsInput, error) bool) {
		rows := RightsRows()
		for i := range rows {
			for _, resource := range resourcesOf {
				if input, is, err := rightsInput(resource, rows[i:i+1]); is && !yield(input, err) {
					return
				}
			}
		}
		source := rand.New(rand.NewPCG(options.Seed, 0))
		for made := 0; made < options.Random; {
			var mixed []RightsRow
			for range 1 + source.IntN(4) {
				mixed = append(mixed, rows[source.IntN(len(rows))])
			}
			input, is, err := rightsInput(resourcesOf[source.IntN(len(resourcesOf))], mixed)
			if !is {
				continue
			}
			if made++; !yield(input, err) {
				return
			}
		}
	}
}

var resourcesOf = []string{"computeclusters", "clusterjobs", "clusterservices", "clusterjobschedules"}

// rightsInput lays rows over each other. It is not an input where a row is not of the kind, or the object is not good.
func rightsInput(resource string, rows []RightsRow) (input RightsInput, is bool, err error) {
	var object any
	var demands []rights.Demand
	switch resource {
	case "clusterjobs", "clusterjobschedules":
		run := GoodJob()
		ownCluster(run)
		for _, row := range rows {
			if is = editBy(run, row.Job, ofCluster, row.Cluster, row.Need == ""); !is {
				return input, false, nil
			}
		}
		is, object, demands = len(create("ClusterJob", run)) == 0, run, rights.OfJob(run, rights.ChartSite())
		if resource == "clusterjobschedules" {
			daily := GoodSchedule()
			daily.Spec.JobTemplate.Spec, daily.Spec.JobTemplate.Metadata.Labels = run.Spec, run.Labels
			object, demands = daily, rights.OfSchedule(daily, rights.ChartSite())
		}
	case "clusterservices":
		served := GoodService()
		onOwn(served)
		for _, row := range rows {
			if is = editBy(served, row.Service, func(e edit) change { return inServed(e) }, row.Cluster, row.Need == ""); !is {
				return input, false, nil
			}
		}
		is, object, demands = len(create("ClusterService", served)) == 0, served, rights.OfService(served, rights.ChartSite())
	default:
		alone := Good()
		for _, row := range rows {
			if is = editBy(alone, nil, func(e edit) edit { return e }, row.Cluster, row.Need == ""); !is {
				return input, false, nil
			}
		}
		is, object, demands = len(create("ComputeCluster", alone)) == 0, alone, rights.OfCluster(alone, rights.ChartSite())
	}
	if !is {
		return input, false, nil
	}
	input.Resource = resource
	for _, row := range rows {
		input.Name += row.Name + "; "
	}
	for _, d := range demands {
		input.Demands = append(input.Demands, RightsDemand{
			Need: d.Need.ID, Verb: d.Need.Verb, Group: d.Need.Group, Resource: d.Need.Resource, Subresource: d.Need.Subresource,
			ClusterWide: d.Need.IsClusterWide, OrPods: d.Need.OrPods, Most: d.Need.Most, Name: d.Name, Says: d.Text(),
		})
	}
	input.Object, err = json.Marshal(object)
	return input, true, err
}

// editBy edits an object by what a row has for its kind, and reports whether it has something.
func editBy[T any](object T, own func(T), of func(edit) func(T), cluster edit, plain bool) bool {
	switch {
	case own != nil:
		own(object)
	case cluster != nil:
		of(cluster)(object)
	default:
		return plain
	}
	return true
}
