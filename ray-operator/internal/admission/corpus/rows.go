package corpus

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

func long(n int) string { return strings.Repeat("a", n) }

func named(name string) edit { return func(c *cluster) { c.Name = name } }

func version(text string) edit {
	return spec(func(s *v1beta1.ComputeClusterSpec) { s.RayVersion = text })
}

func managed(by string) edit { return spec(func(s *v1beta1.ComputeClusterSpec) { s.ManagedBy = by }) }

func idle(after int32, action v1beta1.IdleAction) edit {
	return spec(func(s *v1beta1.ComputeClusterSpec) {
		s.IdlePolicy = &v1beta1.IdlePolicy{AfterSeconds: after, Action: action}
	})
}

func jobsAtOnce(n int32) edit {
	return spec(func(s *v1beta1.ComputeClusterSpec) { s.MaxConcurrentJobs = &n })
}

func groups(n int) edit {
	return func(c *cluster) {
		c.Spec.WorkerGroups = nil
		for i := range n {
			c.Spec.WorkerGroups = append(c.Spec.WorkerGroups, group{Name: fmt.Sprintf("g%d", i)})
		}
	}
}

var clusterRows = []row{
	{Name: "a good cluster", Edit: func(*cluster) {}},
	{Name: "a head alone", Edit: groups(0)},
	{Name: "a name of 50", Edit: named(long(50))},
	{Name: "a name of 51", Rule: "cluster-name", Edit: named(long(51))},
	{Name: "a name with a digit first", Rule: "cluster-name", Edit: named("1a")},
	{Name: "a name with a dot", Rule: "cluster-name", Edit: named("a.b")},
	{Name: "the oldest version", Edit: version("2.52.0")},
	{Name: "a version too old", Rule: "ray-version", Edit: version("2.51.0")},
	{Name: "a version to come", Edit: version("2.61.0")},
	{Name: "a version far to come", Edit: version("2.100.0")},
	{Name: "a pre-release", Edit: version("2.61.0rc1")},
	{Name: "a nightly", Edit: version("nightly-py311")},
	{Name: "a build of one's own", Edit: both(version("2.60.0+acme"), spec(func(s *v1beta1.ComputeClusterSpec) { s.Image = "acme/ray:1" }))},
	{Name: "a build without an image", Rule: "ray-version-image", Edit: version("2.60.0+acme")},
	{Name: "a version much too old", Rule: "ray-version", Edit: version("2.9.0")},
	{Name: "a version without a patch", Rule: "ray-version", Edit: version("2.60")},
	{Name: "a version with a suffix", Rule: "ray-version", Edit: version("2.60.0-py311")},
	{Name: "no version", Rule: "required", Edit: version("")},
	{Name: "an image of 1024", Edit: spec(func(s *v1beta1.ComputeClusterSpec) { s.Image = long(1024) })},
	{Name: "an image of 1025", Rule: "long-text", Edit: spec(func(s *v1beta1.ComputeClusterSpec) { s.Image = long(1025) })},
	{Name: "64 groups", Edit: groups(64)},
	{Name: "65 groups", Rule: "long-list", Edit: groups(65)},
	{Name: "a pull policy", Edit: spec(func(s *v1beta1.ComputeClusterSpec) { s.ImagePullPolicy = corev1.PullNever })},
	{Name: "an unknown pull policy", Rule: "unknown-word", Edit: spec(func(s *v1beta1.ComputeClusterSpec) { s.ImagePullPolicy = "Often" })},
	{Name: "jobs one after the other", Edit: jobsAtOnce(1)},
	{Name: "as many jobs at once as may be", Edit: jobsAtOnce(10000)},
	{Name: "no jobs at all", Rule: "out-of-bounds", Edit: jobsAtOnce(0)},
	{Name: "too many jobs at once", Rule: "out-of-bounds", Edit: jobsAtOnce(10001)},
	{Name: "an idle policy", Edit: idle(10, v1beta1.IdleSuspend)},
	{Name: "an idle policy too quick", Rule: "out-of-bounds", Edit: idle(9, v1beta1.IdleSuspend)},
	{Name: "an unknown action when idle", Rule: "unknown-word", Edit: idle(60, "Sleep")},
	{Name: "another manager", Edit: managed("kueue.x-k8s.io/multikueue")},
	{Name: "a manager without a domain", Rule: "managed-by", Edit: managed("kueue")},
	{Name: "the manager kept", Before: managed("a.b/c"), Edit: managed("a.b/c")},
	{Name: "the default manager said", Before: managed(""), Edit: managed(v1beta1.ManagedByOperator)},
	{Name: "the manager changed", Rule: "managed-by-fixed", Before: managed("a.b/c"), Edit: managed("a.b/d")},
	{Name: "the manager taken away", Rule: "managed-by-fixed", Before: managed("a.b/c"), Edit: managed("")},
	{Name: "the manager set", Rule: "managed-by-fixed", Before: managed(""), Edit: managed("a.b/c")},
	{Name: "rolling", Edit: upgrade(v1beta1.ClusterUpgradeRollingWorkers, &v1beta1.RollingWorkers{MaxUnavailable: workers(0), MaxSurge: workers(1)})},
	{Name: "rolling with another type", Rule: "rolling-type", Edit: upgrade(v1beta1.ClusterUpgradeRecreate, &v1beta1.RollingWorkers{MaxSurge: workers(1)})},
	{Name: "rolling without a type", Rule: "rolling-type", Edit: upgrade("", &v1beta1.RollingWorkers{MaxSurge: workers(1)})},
	{Name: "rolling that cannot move", Rule: "rolling-none", Edit: upgrade(v1beta1.ClusterUpgradeRollingWorkers, &v1beta1.RollingWorkers{MaxUnavailable: workers(0), MaxSurge: workers(0)})},
	{Name: "fewer than none unavailable", Rule: "rolling-amount", Edit: upgrade(v1beta1.ClusterUpgradeRollingWorkers, &v1beta1.RollingWorkers{MaxUnavailable: workers(-1), MaxSurge: workers(1)})},
	{Name: "rolling by percentages", Edit: upgrade(v1beta1.ClusterUpgradeRollingWorkers, &v1beta1.RollingWorkers{MaxUnavailable: percent("0%"), MaxSurge: percent("25%")})},
	{Name: "rolling by percentages that cannot move", Rule: "rolling-none", Edit: upgrade(v1beta1.ClusterUpgradeRollingWorkers, &v1beta1.RollingWorkers{MaxUnavailable: percent("0%")})},
	{Name: "rolling by more than all", Rule: "rolling-amount", Edit: upgrade(v1beta1.ClusterUpgradeRollingWorkers, &v1beta1.RollingWorkers{MaxSurge: percent("101%")})},
	{Name: "rolling by a word", Rule: "rolling-amount", Edit: upgrade(v1beta1.ClusterUpgradeRollingWorkers, &v1beta1.RollingWorkers{MaxUnavailable: percent("half")})},
	{Name: "an unknown strategy", Rule: "unknown-word", Edit: upgrade("Rolling", nil)},
}

var (
	some     = map[string]string{"team": "a", "example.com/owner": "a_b.c"}
	ours     = map[string]string{"heliostat.dev/slot": "1"}
	leads    = map[string]string{"serve.heliostat.dev/echo": "true"}
	theirs   = map[string]string{"app.kubernetes.io/name": "ray"}
	badKey   = map[string]string{"a b": "a"}
	badValue = map[string]string{"a": "a b"}
)

var anyone = networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{}}

func policyPort(port intstr.IntOrString, end *int32) networkingv1.NetworkPolicyPort {
	return networkingv1.NetworkPolicyPort{Port: &port, EndPort: end}
}

var accessRows = []row{
	{Name: "labels of pods", Edit: defaults(func(d *v1beta1.PodDefaults) { d.Labels, d.Annotations, d.NodeSelector = some, some, some })},
	{Name: "a label of ours", Rule: "own-label", Edit: defaults(func(d *v1beta1.PodDefaults) { d.Labels = ours })},
	{Name: "a label by which requests are led", Rule: "own-label", Edit: defaults(func(d *v1beta1.PodDefaults) { d.Labels = leads })},
	{Name: "a label that we set", Rule: "own-label", Edit: defaults(func(d *v1beta1.PodDefaults) { d.Labels = theirs })},
	{Name: "a label of ours on the Service", Rule: "own-label", Edit: service(func(s *v1beta1.HeadServiceSpec) { s.Labels = ours })},
	{Name: "an annotation of ours", Rule: "own-annotation", Edit: defaults(func(d *v1beta1.PodDefaults) { d.Annotations = ours })},
	{Name: "an annotation below our domain", Rule: "own-annotation", Edit: defaults(func(d *v1beta1.PodDefaults) { d.Annotations = leads })},
	{Name: "an annotation of ours on the Service", Rule: "own-annotation", Edit: service(func(s *v1beta1.HeadServiceSpec) { s.Annotations = ours })},
	{Name: "an annotation with any text", Edit: defaults(func(d *v1beta1.PodDefaults) { d.Annotations = map[string]string{"Example.com/A": "a b\n"} })},
	{Name: "a label's key", Rule: "label-grammar", Edit: defaults(func(d *v1beta1.PodDefaults) { d.Labels = badKey })},
	{Name: "a label's value", Rule: "label-grammar", Edit: service(func(s *v1beta1.HeadServiceSpec) { s.Labels = badValue })},
	{Name: "a selector's value", Rule: "label-grammar", Edit: defaults(func(d *v1beta1.PodDefaults) { d.NodeSelector = badValue })},
	{Name: "an annotation's key", Rule: "annotation-grammar", Edit: defaults(func(d *v1beta1.PodDefaults) { d.Annotations = badKey })},
	{Name: "a service account", Edit: defaults(func(d *v1beta1.PodDefaults) { d.ServiceAccountName = "default" })},
	{Name: "no service account's name", Rule: "object-name", Edit: defaults(func(d *v1beta1.PodDefaults) { d.ServiceAccountName = "A" })},
	{Name: "no priority class's name", Rule: "object-name", Edit: defaults(func(d *v1beta1.PodDefaults) { d.PriorityClassName = "-" })},
	{Name: "a pull secret", Edit: defaults(func(d *v1beta1.PodDefaults) { d.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "r"}} })},
	{Name: "a pull secret without a name", Rule: "pull-secret", Edit: defaults(func(d *v1beta1.PodDefaults) { d.ImagePullSecrets = []corev1.LocalObjectReference{{}} })},
	{Name: "a variable", Edit: defaults(func(d *v1beta1.PodDefaults) {
		d.Env = []corev1.EnvVar{{Name: "RAY_BACKEND_LOG_LEVEL", Value: "debug"}}
	})},
	{Name: "a variable of ours", Rule: "own-variable", Edit: defaults(func(d *v1beta1.PodDefaults) { d.Env = []corev1.EnvVar{{Name: "RAY_ADDRESS"}} })},
	{Name: "a variable twice", Rule: "duplicate", Edit: defaults(func(d *v1beta1.PodDefaults) { d.Env = []corev1.EnvVar{{Name: "A"}, {Name: "A"}} })},
	{Name: "ports", Edit: servicePorts(v1beta1.ServicePort{Name: "a-1", Port: 1}, v1beta1.ServicePort{Name: "b", Port: 65535, TargetPort: 1})},
	{Name: "a port's name", Rule: "port-name", Edit: servicePorts(v1beta1.ServicePort{Name: "A", Port: 1})},
	{Name: "a port's name too long", Rule: "long-text", Edit: servicePorts(v1beta1.ServicePort{Name: long(64), Port: 1})},
	{Name: "a port's name of Ray's", Rule: "port-name-ray", Edit: servicePorts(v1beta1.ServicePort{Name: "serve", Port: 1})},
	{Name: "a port's number of Ray's", Rule: "port-number-ray", Edit: servicePorts(v1beta1.ServicePort{Name: "a", Port: 8000})},
	{Name: "a port's number twice", Rule: "port-number-twice", Edit: servicePorts(v1beta1.ServicePort{Name: "a", Port: 1}, v1beta1.ServicePort{Name: "b", Port: 1})},
	{Name: "a port's name twice", Rule: "duplicate", Edit: servicePorts(v1beta1.ServicePort{Name: "a", Port: 1}, v1beta1.ServicePort{Name: "a", Port: 2})},
	{Name: "no port's number", Rule: "out-of-bounds", Edit: servicePorts(v1beta1.ServicePort{Name: "a", Port: 65536})},
	{Name: "an unknown type of Service", Rule: "unknown-word", Edit: service(func(s *v1beta1.HeadServiceSpec) { s.Type = corev1.ServiceTypeExternalName })},
	{Name: "an ingress", Edit: ingress(func(g *v1beta1.IngressSpec) {
		g.Host, g.Path, g.ClassName, g.TLSSecretName = "*.example.com", "/ray", "nginx", "tls"
	})},
	{Name: "no authentication for some of the Kubernetes cluster", Edit: both(authentication(v1beta1.AuthenticationDisabled, ""), allowFrom([]v1beta1.Port{v1beta1.PortDashboard}, block("10.0.0.0/8"), anyone))},
	{Name: "no authentication and a load balancer", Rule: "open-public", Edit: both(authentication(v1beta1.AuthenticationDisabled, ""),
		service(func(s *v1beta1.HeadServiceSpec) { s.Type = corev1.ServiceTypeLoadBalancer }))},
	{Name: "no authentication and everybody", Rule: "open-public", Edit: both(authentication(v1beta1.AuthenticationDisabled, ""), allowFrom([]v1beta1.Port{v1beta1.PortGCS}))},
	{Name: "no authentication and a wide block", Rule: "open-public", Edit: both(authentication(v1beta1.AuthenticationDisabled, ""),
		allowFrom([]v1beta1.Port{v1beta1.PortDashboard}, block("0.0.0.0/0")))},
	{Name: "an ingress at an address", Rule: "ingress-host", Edit: ingress(func(g *v1beta1.IngressSpec) { g.Host = "10.0.0.1" })},
	{Name: "an ingress without a host", Rule: "required", Edit: ingress(func(g *v1beta1.IngressSpec) { g.Host = "" })},
	{Name: "an ingress in capitals", Rule: "ingress-host", Edit: ingress(func(g *v1beta1.IngressSpec) { g.Host = "Ray.example.com" })},
	{Name: "an ingress at a relative path", Rule: "ingress-path", Edit: ingress(func(g *v1beta1.IngressSpec) { g.Path = "ray" })},
	{Name: "an ingress at a path upwards", Rule: "ingress-path", Edit: ingress(func(g *v1beta1.IngressSpec) { g.Path = "/ray/.." })},
	{Name: "no class's name", Rule: "object-name", Edit: ingress(func(g *v1beta1.IngressSpec) { g.ClassName = "a_b" })},
	{Name: "an open ingress", Rule: "ingress-open", Edit: both(ingress(func(*v1beta1.IngressSpec) {}), authentication(v1beta1.AuthenticationDisabled, ""))},
	{Name: "a Secret of the user's", Edit: authentication(v1beta1.AuthenticationToken, "mine")},
	{Name: "no authentication", Edit: authentication(v1beta1.AuthenticationDisabled, "")},
	{Name: "no Secret's name", Rule: "object-name", Edit: authentication(v1beta1.AuthenticationToken, "a..b")},
	{Name: "a Secret for nothing", Rule: "secret-unused", Edit: authentication(v1beta1.AuthenticationDisabled, "mine")},
	{Name: "peers", Edit: allowFrom([]v1beta1.Port{v1beta1.PortServe}, anyone, block("10.0.0.0/8", "10.1.0.0/16"), block("2001:db8::/32"))},
	{Name: "everybody", Edit: allowFrom([]v1beta1.Port{v1beta1.PortDashboard})},
	{Name: "peers for nothing", Rule: "network-unused", Edit: both(allowFrom([]v1beta1.Port{v1beta1.PortServe}, anyone), func(c *cluster) { c.Spec.Network.Isolation = v1beta1.Disabled })},
	{Name: "metadata for nothing", Rule: "network-unused", Edit: both(cloudMetadata, func(c *cluster) {
		c.Spec.Network.Isolation = v1beta1.Disabled
	})},
	{Name: "neither metadata nor isolation", Edit: func(c *cluster) {
		c.Spec.Network = &v1beta1.Network{Isolation: v1beta1.Disabled}
		c.Spec.Network.CloudMetadata = v1beta1.Disabled
	}},
	{Name: "metadata", Edit: cloudMetadata},
	{Name: "an unknown port", Rule: "unknown-word", Edit: allowFrom([]v1beta1.Port{"Agent"}, anyone)},
	{Name: "no port", Rule: "required", Edit: allowFrom([]v1beta1.Port{}, anyone)},
	{Name: "a port twice", Rule: "duplicate", Edit: allowFrom([]v1beta1.Port{v1beta1.PortServe, v1beta1.PortServe}, anyone)},
	{Name: "nobody is let in", Rule: "network-nobody", Edit: func(c *cluster) {
		c.Spec.Network = &v1beta1.Network{AllowFrom: []v1beta1.IngressRule{{Ports: []v1beta1.Port{v1beta1.PortServe}}}}
	}},
	{Name: "nobody to be reached", Rule: "network-nobody", Edit: func(c *cluster) { c.Spec.Network = &v1beta1.Network{AllowTo: []v1beta1.EgressRule{{}}} }},
	{Name: "an empty peer", Rule: "network-peer", Edit: allowFrom([]v1beta1.Port{v1beta1.PortServe}, networkingv1.NetworkPolicyPeer{})},
	{Name: "a peer of both sorts", Rule: "network-peer", Edit: allowTo([]networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}, IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.0/8"}}})},
	{Name: "a block that is none", Rule: "network-block", Edit: allowFrom([]v1beta1.Port{v1beta1.PortServe}, block("10.0.0.0"))},
	{Name: "a block with bits behind", Rule: "network-block", Edit: allowTo([]networkingv1.NetworkPolicyPeer{block("10.0.0.1/8")})},
	{Name: "an exception that is no block", Rule: "network-block", Edit: allowTo([]networkingv1.NetworkPolicyPeer{block("10.0.0.0/8", "x")})},
	{Name: "ports to reach", Edit: allowTo(nil, policyPort(intstr.FromInt32(1), ptr(int32(65535))), policyPort(intstr.FromString("https"), nil), networkingv1.NetworkPolicyPort{})},
	{Name: "a range upside down", Rule: "network-port", Edit: allowTo(nil, policyPort(intstr.FromInt32(10), ptr(int32(9))))},
	{Name: "a range from a name", Rule: "network-port", Edit: allowTo(nil, policyPort(intstr.FromString("https"), ptr(int32(9))))},
	{Name: "no port's number to reach", Rule: "network-port", Edit: allowTo(nil, policyPort(intstr.FromInt32(0), nil))},
	{Name: "no port's name to reach", Rule: "network-port", Edit: allowTo(nil, policyPort(intstr.FromString("a--b"), nil))},
	{Name: "an unknown protocol", Rule: "network-port", Edit: allowTo(nil, networkingv1.NetworkPolicyPort{Protocol: ptr(corev1.Protocol("ICMP"))})},
}

func groupNamed(name string) edit { return inGroup(func(g *group) { g.Name = name }) }

func hosts(n int32) edit { return inGroup(func(g *group) { g.HostsPerReplica = n }) }

var groupRows = []row{
	{Name: "a group of 40", Edit: groupNamed(long(40))},
	{Name: "a group of 41", Rule: "long-text", Edit: groupNamed(long(41))},
	{Name: "a group with a capital", Rule: "group-name", Edit: groupNamed("Cpu")},
	{Name: "a group that ends in a dash", Rule: "group-name", Edit: groupNamed("cpu-")},
	{Name: "a group called head", Rule: "group-name-head", Edit: groupNamed("head")},
	{Name: "a group called headgroup", Rule: "group-name-head", Edit: groupNamed("headgroup")},
	{Name: "two groups of a name", Rule: "duplicate", Edit: groupNamed("gpu")},
	{Name: "no workers", Edit: replicas(ptr(int32(0)), ptr(int32(0)), ptr(int32(0)))},
	{Name: "replicas within their bounds", Edit: replicas(ptr(int32(1)), ptr(int32(2)), ptr(int32(3)))},
	{Name: "fewer than none", Rule: "out-of-bounds", Edit: replicas(nil, ptr(int32(-1)), nil)},
	{Name: "the most workers", Edit: replicas(nil, ptr(int32(9999)), nil)},
	{Name: "too many workers", Rule: "out-of-bounds", Edit: replicas(nil, ptr(int32(2147483647)), nil)},
	{Name: "bounds upside down", Rule: "min-above-max", Edit: replicas(ptr(int32(3)), ptr(int32(3)), ptr(int32(2)))},
	{Name: "below the least", Rule: "replicas-below-min", Edit: replicas(ptr(int32(2)), ptr(int32(1)), nil)},
	{Name: "above the most", Rule: "replicas-above-max", Edit: replicas(nil, ptr(int32(3)), ptr(int32(2)))},
	{Name: "hosts", Edit: hosts(1024)},
	{Name: "too many hosts", Rule: "out-of-bounds", Edit: hosts(1025)},
	{Name: "too many hosts in all", Rule: "too-many-hosts", Edit: both(hosts(2), replicas(nil, ptr(int32(5001)), nil))},
	{Name: "too many workers in all", Rule: "too-many-workers", Edit: replicas(nil, ptr(int32(10000)), nil)},
	{Name: "hosts kept", Before: hosts(1), Edit: hosts(0)},
	{Name: "hosts changed", Rule: "hosts-fixed", Before: hosts(2), Edit: hosts(4)},
	{Name: "hosts taken away", Rule: "hosts-fixed", Before: hosts(2), Edit: hosts(0)},
	{Name: "hosts of another group", Before: hosts(2), Edit: func(c *cluster) { c.Spec.WorkerGroups = c.Spec.WorkerGroups[1:] }},
	{Name: "a long drain", Edit: inGroup(func(g *group) { g.DrainSeconds = ptr(int32(86400)) })},
	{Name: "a negative drain", Rule: "out-of-bounds", Edit: inGroup(func(g *group) { g.DrainSeconds = ptr(int32(-1)) })},
}

type pvc = corev1.PersistentVolumeClaim

var claimRows = []row{
	{Name: "a claim", Edit: claim(func(c *pvc) { c.Labels, c.Annotations = some, some })},
	{Name: "a claim's name", Rule: "claim-name", Edit: claim(func(c *pvc) { c.Name = "a.b" })},
	{Name: "a claim without a name", Rule: "claim-name", Edit: claim(func(c *pvc) { c.Name = "" })},
	{Name: "a claim twice", Rule: "claim-twice", Edit: both(claim(), claim())},
	{Name: "a claim of our volume's name", Rule: "claim-volume", Edit: claim(func(c *pvc) { c.Name = "ray-shm" })},
	{Name: "a claim of a volume's name", Rule: "claim-volume", Edit: both(claim(), inPod(func(p *corev1.PodSpec) { p.Volumes = []corev1.Volume{{Name: "data"}} }))},
	{Name: "a claim without modes", Rule: "claim-modes", Edit: claim(func(c *pvc) { c.Spec.AccessModes = nil })},
	{Name: "a claim with an unknown mode", Rule: "claim-modes", Edit: claim(func(c *pvc) { c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{"RWO"} })},
	{Name: "a claim for one pod and more", Rule: "claim-modes", Edit: claim(func(c *pvc) { c.Spec.AccessModes = append(c.Spec.AccessModes, corev1.ReadWriteOncePod) })},
	{Name: "a claim without storage", Rule: "claim-storage", Edit: claim(func(c *pvc) { c.Spec.Resources.Requests = nil })},
	{Name: "a claim for nothing", Rule: "claim-storage", Edit: claim(func(c *pvc) { c.Spec.Resources.Requests = resources("storage", "0") })},
	{Name: "a claim in a namespace", Rule: "claim-extra", Edit: claim(func(c *pvc) { c.Namespace = "other" })},
	{Name: "a claim with a status", Rule: "claim-extra", Edit: claim(func(c *pvc) { c.Status.Phase = corev1.ClaimBound })},
	{Name: "a claim of a source elsewhere", Rule: "claim-extra", Edit: claim(func(c *pvc) {
		c.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "a", Namespace: ptr("other")}
	})},
	{Name: "a claim with a label of ours", Rule: "claim-labels", Edit: claim(func(c *pvc) { c.Labels = ours })},
	{Name: "a claim with a bad label", Rule: "claim-labels", Edit: claim(func(c *pvc) { c.Labels = badValue })},
	{Name: "a claim with an annotation of ours", Rule: "claim-labels", Edit: claim(func(c *pvc) { c.Annotations = ours })},
	{Name: "a claim with a bad annotation", Rule: "claim-labels", Edit: claim(func(c *pvc) { c.Annotations = badKey })},
}
