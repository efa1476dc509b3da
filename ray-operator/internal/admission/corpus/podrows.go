package corpus

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

var nodeRows = []row{
	{Name: "a size", Edit: size("cpu", "500m", "memory", "512Mi", "ephemeral-storage", "1Gi", "hugepages-2Mi", "2Mi", "nvidia.com/gpu", "0", "limits.cpu", "500m")},
	{Name: "a limit of cpu alone", Edit: size("limits.cpu", "100m")},
	{Name: "a limit of cpu below cpu", Rule: "size-limit", Edit: size("cpu", "2", "limits.cpu", "1")},
	{Name: "a limit of memory", Rule: "size-name", Edit: size("limits.memory", "1Gi")},
	{Name: "no limit of cpu", Rule: "size-positive", Edit: size("limits.cpu", "0")},
	{Name: "a size that Kubernetes does not know", Rule: "size-name", Edit: size("gpu", "1")},
	{Name: "a device's name", Rule: "size-name", Edit: size("a b/gpu", "1")},
	{Name: "no cpu", Rule: "size-positive", Edit: size("cpu", "0")},
	{Name: "a negative device", Rule: "size-positive", Edit: size("nvidia.com/gpu", "-1")},
	{Name: "half a device", Rule: "size-device", Edit: size("nvidia.com/gpu", "500m")},
	{Name: "a worker with little memory", Rule: "size-memory", Edit: size("memory", "511Mi")},
	{Name: "a head's least memory", Edit: headSize("memory", "768Mi")},
	{Name: "a head with little memory", Rule: "size-memory", Edit: headSize("memory", "767Mi")},
	{Name: "logical resources", Edit: logical("CPU", "0", "memory", "1536Mi", "accelerator_type:A100", "1", "reader", "100T")},
	{Name: "a negative resource", Rule: "resource-positive", Edit: logical("CPU", "-1")},
	{Name: "half a CPU", Rule: "resource-whole", Edit: logical("CPU", "500m")},
	{Name: "half a resource", Rule: "resource-whole", Edit: logical("reader", "500m")},
	{Name: "too much of a resource", Rule: "resource-whole", Edit: logical("reader", "101T")},
	{Name: "the object store as a resource", Rule: "resource-store", Edit: logical("object_store_memory", "1Gi")},
	{Name: "a node as a resource", Rule: "resource-node", Edit: logical("node:10.0.0.1", "1")},
	{Name: "a resource without a name", Rule: "resource-node", Edit: logical("", "1")},
	{Name: "an option", Edit: option("min-worker-port", "11000")},
	{Name: "a bare option", Edit: option("enable-resource-isolation", "")},
	{Name: "an option with dashes", Rule: "option-name", Edit: option("--verbose", "")},
	{Name: "an option in capitals", Rule: "option-name", Edit: option("Port", "")},
	{Name: "an option of the operator's", Rule: "option-owned", Edit: option("block", "")},
	{Name: "a head without its dashboard", Rule: "option-owned", Edit: func(c *cluster) { c.Spec.Head.RayStartParams = map[string]string{"include-dashboard": "false"} }},
	{Name: "an option for CPUs", Rule: "option-resources", Edit: option("num-cpus", "1")},
	{Name: "an option for labels", Rule: "option-labels", Edit: option("labels", "a=b")},
	{Name: "an option for the store", Rule: "option-store", Edit: option("object-store-memory", "1")},
	{Name: "an option for usage", Rule: "option-usage", Edit: option("disable-usage-stats", "")},
	{Name: "a setting of Ray's own", Edit: option("system-config", `{"raylet_heartbeat_period_milliseconds":1000}`)},
	{Name: "authentication by a setting", Rule: "option-system-config", Edit: option("system-config", `{"AUTH_MODE":"disabled"}`)},
	{Name: "authentication by an escaped setting", Rule: "option-system-config", Edit: option("system-config", `{"\u0041UTH_MODE":"disabled"}`)},
	{Name: "another store by a setting", Rule: "option-system-config", Edit: option("system-config", `{"a":1, "gcs_storage" : "redis"}`)},
	{Name: "a bare option with a value", Rule: "option-bare", Edit: option("enable-resource-isolation", "1")},
	{Name: "a label for Ray", Edit: rayLabel("example.com/zone", "a_b.c-1")},
	{Name: "a label for Ray without a value", Edit: rayLabel("zone", "")},
	{Name: "a label of Ray's", Rule: "ray-label-own", Edit: rayLabel("ray.io/zone", "a")},
	{Name: "a label of Ray's for the node", Rule: "ray-label-own", Edit: rayLabel("ray.io/node-group", "a")},
	{Name: "a label of Ray's for an accelerator", Edit: rayLabel("ray.io/accelerator-type", "A100")},
	{Name: "a label of Ray's for a market", Edit: rayLabel("ray.io/market-type", "spot")},
	{Name: "a label of Ray's for a domain", Edit: rayLabel("ray.io/gpu-domain", "a")},
	{Name: "a label of Ray's for a zone", Edit: rayLabel("ray.io/availability-zone", "a")},
	{Name: "a label of Ray's for a slice", Edit: rayLabel("ray.io/tpu-pod-type", "v4-16")},
	{Name: "a label for Ray with a bad key", Rule: "ray-label-grammar", Edit: rayLabel("a,b/c", "a")},
	{Name: "a label for Ray with a bad value", Rule: "ray-label-grammar", Edit: rayLabel("zone", "a=b")},
	{Name: "a label for Ray with a long value", Rule: "ray-label-grammar", Edit: rayLabel("zone", long(64))},
}

func labelled(labels map[string]string) edit {
	return template(func(t *tmpl, _ *container) { t.Labels = labels })
}

func restarts(t *tmpl, _ *container) {
	t.Annotations = map[string]string{v1beta1.AnnotationRestart: "a"}
}

func annotated(annotations map[string]string) edit {
	return template(func(t *tmpl, _ *container) { t.Annotations = annotations })
}

func open(c *cluster) { c.Spec.Network = &v1beta1.Network{Isolation: v1beta1.Disabled} }

func hostNetwork(policy corev1.DNSPolicy) edit {
	return inPod(func(p *corev1.PodSpec) { p.HostNetwork, p.DNSPolicy = true, policy })
}

var templateRows = []row{
	{Name: "a template", Edit: template(func(*tmpl, *container) {})},
	{Name: "a template without containers", Edit: inGroup(func(g *group) { g.Template = &tmpl{} })},
	{Name: "a rich template", Edit: both(labelled(some), annotated(some), inPod(func(p *corev1.PodSpec) {
		p.NodeSelector, p.Volumes, p.Hostname = some, []corev1.Volume{{Name: "a"}}, "h"
		p.ShareProcessNamespace, p.TerminationGracePeriodSeconds, p.RestartPolicy = ptr(false), ptr(int64(0)), corev1.RestartPolicyAlways
		p.InitContainers = []container{{Name: "init", Image: "init"}, {Name: "native", Image: "native", RestartPolicy: ptr(corev1.ContainerRestartPolicyAlways), Ports: []corev1.ContainerPort{port(9000)}}}
	}))},
	{Name: "a template with a name", Rule: "template-metadata", Edit: template(func(t *tmpl, _ *container) { t.Name = "a" })},
	{Name: "a template with a finalizer", Rule: "template-metadata", Edit: template(func(t *tmpl, _ *container) { t.Finalizers = []string{"a/b"} })},
	{Name: "a template with a label of ours", Rule: "template-own-label", Edit: labelled(ours)},
	{Name: "a template with a label that we set", Rule: "template-own-label", Edit: labelled(theirs)},
	{Name: "a head's template with a label of ours", Rule: "template-own-label", Edit: headTemplate(func(t *tmpl, _ *container) { t.Labels = ours })},
	{Name: "a template with an annotation of ours", Rule: "template-own-annotation", Edit: annotated(ours)},
	{Name: "a head's template with an annotation below our domain", Rule: "template-own-annotation", Edit: headTemplate(restarts)},
	{Name: "a head's template that the operator restarts", Edit: both(headTemplate(restarts), func(c *cluster) {
		service := &v1beta1.ClusterService{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u"}}
		c.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(service, v1beta1.GroupVersion.WithKind("ClusterService"))}
	})},
	{Name: "a template with a bad label", Rule: "template-label-grammar", Edit: labelled(badKey)},
	{Name: "a template with a bad selector", Rule: "template-label-grammar", Edit: inPod(func(p *corev1.PodSpec) { p.NodeSelector = badValue })},
	{Name: "a template with a bad annotation", Rule: "template-annotation-grammar", Edit: annotated(badKey)},
	{Name: "a template without ray", Rule: "template-no-ray", Edit: inRay(func(c *container) { c.Name = "worker" })},
	{Name: "a template with ray twice", Rule: "duplicate", Edit: inSide(func(c *container) { c.Name = "ray" })},
	{Name: "ray as an init container", Rule: "template-init-name", Edit: inPod(func(p *corev1.PodSpec) { p.InitContainers = []container{{Name: "ray"}} })},
	{Name: "an init container with a container's name", Rule: "template-init-name", Edit: inPod(func(p *corev1.PodSpec) { p.InitContainers = []container{{Name: "side"}} })},
	{Name: "a volume of ours", Rule: "template-volume", Edit: inPod(func(p *corev1.PodSpec) { p.Volumes = []corev1.Volume{{Name: "a"}, {Name: "ray-token"}} })},
	{Name: "a volume twice", Rule: "duplicate", Edit: inPod(func(p *corev1.PodSpec) { p.Volumes = []corev1.Volume{{Name: "a"}, {Name: "a"}} })},
	{Name: "a constraint twice", Rule: "duplicate", Edit: inPod(func(p *corev1.PodSpec) {
		c := corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: "a", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{}}
		p.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{c, c}
	})},
	{Name: "a shared process namespace", Rule: "template-processes", Edit: inPod(func(p *corev1.PodSpec) { p.ShareProcessNamespace = ptr(true) })},
	{Name: "the host's process namespace", Rule: "template-host-processes", Edit: inPod(func(p *corev1.PodSpec) { p.HostPID = true })},
	{Name: "the host's network", Edit: both(open, hostNetwork(corev1.DNSClusterFirstWithHostNet))},
	{Name: "the host's network without isolation", Rule: "template-host-network", Edit: hostNetwork(corev1.DNSClusterFirstWithHostNet)},
	{Name: "the host's network without its DNS", Rule: "template-host-dns", Edit: both(open, hostNetwork(""))},
	{Name: "a restart policy", Rule: "template-restart", Edit: inPod(func(p *corev1.PodSpec) { p.RestartPolicy = corev1.RestartPolicyNever })},
	{Name: "a restart policy of ray", Rule: "template-restart", Edit: inRay(func(c *container) { c.RestartPolicy = ptr(corev1.ContainerRestartPolicyNever) })},
	{Name: "a deadline", Rule: "template-deadline", Edit: inPod(func(p *corev1.PodSpec) { p.ActiveDeadlineSeconds = ptr(int64(60)) })},
	{Name: "a negative grace", Rule: "template-grace", Edit: inPod(func(p *corev1.PodSpec) { p.TerminationGracePeriodSeconds = ptr(int64(-1)) })},
	{Name: "a node's name", Rule: "template-node-name", Edit: inPod(func(p *corev1.PodSpec) { p.NodeName = "n1" })},
	{Name: "a host's name", Rule: "template-host-name", Edit: both(hosts(2), inPod(func(p *corev1.PodSpec) { p.Hostname = "h" }))},
	{Name: "a subdomain", Rule: "template-host-name", Edit: both(hosts(2), inPod(func(p *corev1.PodSpec) { p.Subdomain = "h" }))},
	{Name: "an ephemeral container", Rule: "template-ephemeral", Edit: inPod(func(p *corev1.PodSpec) {
		p.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "e"}}}
	})},
	{Name: "resources of the pod", Rule: "template-pod-resources", Edit: inPod(func(p *corev1.PodSpec) {
		p.Resources = &corev1.ResourceRequirements{Limits: resources("memory", "1Gi")}
	})},
}

func mounted(path string) edit {
	return template(func(t *tmpl, c *container) {
		t.Spec.Volumes = []corev1.Volume{{Name: "a"}}
		c.VolumeMounts = []corev1.VolumeMount{{Name: "a", MountPath: path}}
	})
}

func needs(requests, limits corev1.ResourceList) edit {
	return inRay(func(c *container) { c.Resources.Requests, c.Resources.Limits = requests, limits })
}

func listens(ports ...corev1.ContainerPort) edit {
	return inSide(func(c *container) { c.Ports = ports })
}

var containerRows = []row{
	{Name: "a sidecar's command", Edit: inSide(func(c *container) { c.Command, c.Args = []string{"a"}, []string{"b"} })},
	{Name: "a command", Rule: "ray-command", Edit: inRay(func(c *container) { c.Command = []string{"bash"} })},
	{Name: "arguments", Rule: "ray-command", Edit: inRay(func(c *container) { c.Args = []string{"-c"} })},
	{Name: "a variable of ray's container", Edit: inRay(func(c *container) { c.Env = []corev1.EnvVar{{Name: "RAY_USAGE_STATS_ENABLED", Value: "1"}} })},
	{Name: "a sidecar's RAY_ADDRESS", Edit: inSide(func(c *container) { c.Env = []corev1.EnvVar{{Name: "RAY_ADDRESS"}} })},
	{Name: "many variables", Edit: inRay(func(c *container) { c.Env = longVariables(512, 10) })},
	{Name: "too many variables", Rule: "many-variables", Edit: inRay(func(c *container) { c.Env = longVariables(513, 0) })},
	{Name: "long variables", Edit: inRay(func(c *container) { c.Env = longVariables(4, 64<<10) })},
	{Name: "too long variables", Rule: "long-variables", Edit: inRay(func(c *container) { c.Env = longVariables(4, 64<<10+1) })},
	{Name: "long default variables", Edit: defaults(func(d *v1beta1.PodDefaults) { d.Env = longVariables(4, 64<<10) })},
	{Name: "a variable as long as Linux takes", Edit: inRay(func(c *container) { c.Env = longVariables(1, 131070-len("V0")) })},
	{Name: "a variable too long for Linux", Rule: "huge-variable", Edit: inRay(func(c *container) { c.Env = longVariables(1, 131071-len("V0")) })},
	{Name: "a default variable too long for Linux", Rule: "huge-default", Edit: defaults(func(d *v1beta1.PodDefaults) { d.Env = longVariables(1, 131071-len("V0")) })},
	{Name: "too long default variables", Rule: "long-defaults", Edit: defaults(func(d *v1beta1.PodDefaults) { d.Env = longVariables(4, 64<<10+1) })},
	{Name: "a variable of ours in ray", Rule: "ray-variable", Edit: inRay(func(c *container) { c.Env = []corev1.EnvVar{{Name: "A"}, {Name: "RAY_ADDRESS"}} })},
	{Name: "a variable of ray twice", Rule: "duplicate", Edit: inRay(func(c *container) { c.Env = []corev1.EnvVar{{Name: "A"}, {Name: "A"}} })},
	{Name: "ray's ports", Edit: inRay(func(c *container) {
		c.Ports = []corev1.ContainerPort{{Name: "metrics", ContainerPort: 8080}, {Name: "mine", ContainerPort: 8000}}
	})},
	{Name: "ray's port of another number", Rule: "ray-port-name", Edit: inRay(func(c *container) { c.Ports = []corev1.ContainerPort{{Name: "metrics", ContainerPort: 9090}} })},
	{Name: "a port twice in a container", Rule: "duplicate", Edit: inRay(func(c *container) { c.Ports = []corev1.ContainerPort{port(9090), port(9090)} })},
	{Name: "a mount", Edit: mounted("/dev/shmem")},
	{Name: "a mount at /dev/shm", Rule: "ray-mount", Edit: mounted("/dev//shm/")},
	{Name: "a mount at the token", Rule: "ray-mount", Edit: mounted("/var/run/secrets/heliostat.dev/token")},
	{Name: "a size beside resources", Rule: "ray-size-twice", Edit: both(size("cpu", "1"), needs(resources("cpu", "1"), nil))},
	{Name: "a size beside a sidecar's resources", Edit: both(size("cpu", "1"), inSide(func(c *container) { c.Resources.Limits = resources("cpu", "1") }))},
	{Name: "resources", Edit: needs(resources("cpu", "1", "memory", "512Mi"), resources("memory", "512Mi", "nvidia.com/gpu", "1"))},
	{Name: "a worker's template with little memory", Rule: "ray-memory", Edit: needs(nil, resources("memory", "511Mi"))},
	{Name: "a head's template with little memory", Rule: "ray-memory", Edit: headTemplate(func(_ *tmpl, c *container) { c.Resources.Requests = resources("memory", "767Mi") })},
	{Name: "a sidecar with little memory", Edit: inSide(func(c *container) { c.Resources.Limits = resources("memory", "1Mi") })},
	{Name: "a negative request", Rule: "container-negative", Edit: inSide(func(c *container) { c.Resources.Requests = resources("cpu", "-1") })},
	{Name: "a negative limit", Rule: "container-negative", Edit: inSide(func(c *container) { c.Resources.Limits = resources("cpu", "-1") })},
	{Name: "a request above its limit", Rule: "container-request", Edit: inSide(func(c *container) {
		c.Resources.Requests, c.Resources.Limits = resources("cpu", "2"), resources("cpu", "1")
	})},
	{Name: "half a device in a template", Rule: "container-device", Edit: needs(nil, resources("nvidia.com/gpu", "500m"))},
	{Name: "a device without a limit", Rule: "container-device", Edit: needs(resources("nvidia.com/gpu", "1"), nil)},
	{Name: "a device of two numbers", Rule: "container-device", Edit: needs(resources("nvidia.com/gpu", "1"), resources("nvidia.com/gpu", "2"))},
	{Name: "a sidecar's port", Edit: listens(port(9090), corev1.ContainerPort{ContainerPort: 8080, Protocol: corev1.ProtocolUDP})},
	{Name: "a sidecar on ray's port", Rule: "container-ray-port", Edit: listens(port(52365))},
	{Name: "a worker's sidecar on the head's port", Edit: listens(port(8265))},
	{Name: "a head's sidecar on ray's port", Rule: "container-ray-port", Edit: headTemplate(func(t *tmpl, _ *container) { t.Spec.Containers[0].Ports = []corev1.ContainerPort{port(8265)} })},
	{Name: "two containers on a port", Rule: "container-port-clash", Edit: both(listens(port(9090)), inRay(func(c *container) { c.Ports = []corev1.ContainerPort{port(9090)} }))},
	{Name: "two containers on a host's port", Rule: "container-port-clash", Edit: both(listens(corev1.ContainerPort{ContainerPort: 1, HostPort: 7000}),
		inRay(func(c *container) { c.Ports = []corev1.ContainerPort{{ContainerPort: 2, HostPort: 7000}} }))},
	{Name: "a host's port", Edit: both(open, hostNetwork(corev1.DNSClusterFirstWithHostNet), listens(corev1.ContainerPort{ContainerPort: 9090, HostPort: 9090}))},
	{Name: "another port of the host", Rule: "container-host-port", Edit: both(open, hostNetwork(corev1.DNSClusterFirstWithHostNet), listens(corev1.ContainerPort{ContainerPort: 9090, HostPort: 9091}))},
}
