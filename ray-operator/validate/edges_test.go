package validate_test

import (
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/admission/corpus"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// places are the fields at which a cluster breaks a rule, joined by blanks.
func places(t *testing.T, cluster *v1beta1.ComputeCluster, id string) string {
	t.Helper()
	return placesOf(t, validate.Rules(), judge(t, "ComputeCluster", cluster), id)
}

// placesOf are the paths of the findings that are those of one of the rules, joined by blanks.
func placesOf(t *testing.T, rules []validate.Rule, found validate.Findings, id string) string {
	t.Helper()
	if !slices.ContainsFunc(rules, func(r validate.Rule) bool { return r.ID == id }) {
		t.Fatalf("there is no rule %s", id)
	}
	var all []string
	for _, finding := range found {
		if finding.Rule == id {
			all = append(all, finding.Path)
		}
	}
	return strings.Join(all, " ")
}

// TestOwnOptions: every option of ray start that the operator sets, with the rule that says so.
func TestOwnOptions(t *testing.T) {
	for rule, names := range map[string]string{
		"option-owned": "head block address port dashboard-host dashboard-port dashboard-agent-listen-port metrics-export-port " +
			"ray-client-server-port no-monitor include-dashboard node-ip-address redis-password redis-username autoscaling-config",
		"option-resources": "num-cpus num-gpus memory resources", "option-labels": "labels labels-file",
		"option-store": "object-store-memory", "option-usage": "disable-usage-stats",
	} {
		for _, name := range strings.Fields(names) {
			cluster := corpus.Good()
			cluster.Spec.Head.RayStartParams = map[string]string{name: "1"}
			if have, want := places(t, cluster, rule), "spec.head.rayStartParams"; have != want {
				t.Errorf("%s breaks %s at %q, want %q", name, rule, have, want)
			}
		}
	}
}

// inTemplate is the good cluster with a template in its first group that has containers
// ray and side, an init container init, and what the edit puts there.
func inTemplate(edit func(p *corev1.PodSpec)) *v1beta1.ComputeCluster {
	cluster := corpus.Good()
	template := testkit.Template(corev1.Container{Name: "ray"}, corev1.Container{Name: "side"})
	template.Spec.InitContainers = []corev1.Container{{Name: "init"}}
	edit(&template.Spec)
	cluster.Spec.WorkerGroups[0].Template = template
	return cluster
}

// twins are lists of a template by whose keys Kubernetes merges, with two entries alike.
var twins = map[string]func(p *corev1.PodSpec){
	"initContainers[1]": func(p *corev1.PodSpec) { p.InitContainers = []corev1.Container{{Name: "a"}, {Name: "a"}, {Name: "b"}} },
	"ephemeralContainers[1]": func(p *corev1.PodSpec) {
		for _, name := range []string{"a", "a", "b"} {
			p.EphemeralContainers = append(p.EphemeralContainers, corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name}})
		}
	},
	"imagePullSecrets[1]": func(p *corev1.PodSpec) {
		p.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "a"}, {Name: "a"}, {Name: "b"}}
	},
	"hostAliases[1]": func(p *corev1.PodSpec) { p.HostAliases = []corev1.HostAlias{{IP: "::1"}, {IP: "::1"}, {IP: "::2"}} },
	"resourceClaims[1]": func(p *corev1.PodSpec) {
		p.ResourceClaims = []corev1.PodResourceClaim{{Name: "a"}, {Name: "a"}, {Name: "b"}}
	},
	"schedulingGates[1]": func(p *corev1.PodSpec) {
		p.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a"}, {Name: "a"}, {Name: "b"}}
	},
	"containers[1].volumeMounts[1]": func(p *corev1.PodSpec) {
		p.Containers[1].VolumeMounts = []corev1.VolumeMount{{MountPath: "/a"}, {MountPath: "/a"}, {MountPath: "/b"}}
	},
	"containers[0].volumeDevices[1]": func(p *corev1.PodSpec) {
		p.Containers[0].VolumeDevices = []corev1.VolumeDevice{{DevicePath: "/a"}, {DevicePath: "/a"}, {DevicePath: "/b"}}
	},
	"initContainers[0].resources.claims[1]": func(p *corev1.PodSpec) {
		p.InitContainers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "a"}, {Name: "a"}, {Name: "b"}}
	},
}

func TestTwinsInTemplates(t *testing.T) {
	for at, edit := range twins {
		if have, want := places(t, inTemplate(edit), "duplicate"), "spec.workerGroups[0].template.spec."+at; have != want {
			t.Errorf("two alike are found at %q, want %q", have, want)
		}
	}
}

func portsOf(container *corev1.Container, protocol corev1.Protocol, port, host int32) {
	container.Ports = append(container.Ports, corev1.ContainerPort{Protocol: protocol, ContainerPort: port, HostPort: host})
}

// alwaysOn makes a sidecar of an init container.
func alwaysOn(container *corev1.Container) {
	always := corev1.ContainerRestartPolicyAlways
	container.RestartPolicy = &always
}

// inTemplates are edits of a template, the rule that they are about, and the field below
// the template's spec at which they break it, none where they do not.
var inTemplates = map[string]struct {
	rule, want string
	edit       func(p *corev1.PodSpec)
}{
	"a container on a worker's port": {"container-ray-port", "containers[1].ports[0]", func(p *corev1.PodSpec) {
		portsOf(&p.Containers[1], "", 8080, 0)
	}},
	"a container on the port of serve": {"container-ray-port", "containers[1].ports[0]", func(p *corev1.PodSpec) {
		portsOf(&p.Containers[1], corev1.ProtocolTCP, 8000, 0)
	}},
	"a container on a port of the head in a worker": {"container-ray-port", "", func(p *corev1.PodSpec) { portsOf(&p.Containers[1], "", 6379, 0) }},
	"UDP on the number of a port of Ray":            {"container-ray-port", "", func(p *corev1.PodSpec) { portsOf(&p.Containers[1], corev1.ProtocolUDP, 8080, 0) }},
	"an init container on Ray's port":               {"container-ray-port", "", func(p *corev1.PodSpec) { portsOf(&p.InitContainers[0], "", 8080, 0) }},
	"a sidecar on Ray's port": {"container-ray-port", "initContainers[0].ports[0]", func(p *corev1.PodSpec) {
		alwaysOn(&p.InitContainers[0])
		portsOf(&p.InitContainers[0], "", 8080, 0)
	}},
	"the same number by two protocols": {"container-port-clash", "", func(p *corev1.PodSpec) {
		portsOf(&p.Containers[0], corev1.ProtocolUDP, 99, 0)
		portsOf(&p.Containers[1], corev1.ProtocolTCP, 99, 0)
	}},
	"other numbers without a host's": {"container-port-clash", "", func(p *corev1.PodSpec) {
		portsOf(&p.Containers[0], "", 98, 0)
		portsOf(&p.Containers[1], "", 99, 0)
	}},
	"other numbers of the host": {"container-port-clash", "", func(p *corev1.PodSpec) {
		portsOf(&p.Containers[0], "", 98, 1)
		portsOf(&p.Containers[1], "", 99, 2)
	}},
	"the same number of the host": {
		"container-port-clash", "containers[0].ports[0] spec.workerGroups[0].template.spec.containers[1].ports[0]", func(p *corev1.PodSpec) {
			portsOf(&p.Containers[0], "", 98, 1)
			portsOf(&p.Containers[1], "", 99, 1)
		},
	},
	"an init container named ray": {"template-init-name", "initContainers[0]", func(p *corev1.PodSpec) {
		p.InitContainers[0].Name = "ray"
		p.Containers = nil
	}},
	"a single container that is not ray": {"template-no-ray", "containers", func(p *corev1.PodSpec) { p.Containers = p.Containers[1:] }},
	"a port on the host's network": {"container-host-port", "", func(p *corev1.PodSpec) {
		p.HostNetwork = true
		portsOf(&p.Containers[1], "", 99, 0)
	}},
	"a ray container that restarts always": {"template-restart", "", func(p *corev1.PodSpec) { alwaysOn(&p.Containers[0]) }},
	"a host's name for a single host":      {"template-host-name", "", func(p *corev1.PodSpec) { p.Hostname = "a" }},
	"a request of nothing":                 {"container-negative", "", func(p *corev1.PodSpec) { p.Containers[0].Resources.Requests = testkit.Resources("cpu", "0") }},
	"a request of one nano below nothing": {"container-negative", "containers[0].resources", func(p *corev1.PodSpec) {
		p.Containers[0].Resources.Requests = testkit.Resources("cpu", "-1n")
	}},
	"a request at its limit": {"container-request", "", func(p *corev1.PodSpec) {
		p.Containers[0].Resources = corev1.ResourceRequirements{Requests: testkit.Resources("cpu", "1"), Limits: testkit.Resources("cpu", "1")}
	}},
	"a request without a limit": {"container-request", "", func(p *corev1.PodSpec) { p.Containers[0].Resources.Requests = testkit.Resources("cpu", "1") }},
	"a device with a request above its limit": {"container-device", "containers[0].resources", func(p *corev1.PodSpec) {
		p.Containers[0].Resources = corev1.ResourceRequirements{Requests: testkit.Resources("a.b/c", "2"), Limits: testkit.Resources("a.b/c", "1")}
	}},
	"a device with a request below its limit": {"container-device", "containers[0].resources", func(p *corev1.PodSpec) {
		p.Containers[0].Resources = corev1.ResourceRequirements{Requests: testkit.Resources("a.b/c", "1"), Limits: testkit.Resources("a.b/c", "2")}
	}},
	"as much text as variables may have": {"long-variables", "", func(p *corev1.PodSpec) {
		p.Containers[0].Env, p.InitContainers[0].Env = textOf(256<<10-1), textOf(1)
	}},
	"a device of none without a limit": {"container-device", "containers[0].resources", func(p *corev1.PodSpec) {
		p.Containers[0].Resources.Requests = testkit.Resources("a.b/c", "0")
	}},
}

func TestInTemplates(t *testing.T) {
	for name, test := range inTemplates {
		cluster := inTemplate(test.edit)
		cluster.Spec.WorkerGroups[0].HostsPerReplica = 1
		want := test.want
		if want != "" {
			want = "spec.workerGroups[0].template.spec." + want
		}
		if have := places(t, cluster, test.rule); have != want {
			t.Errorf("%s breaks %s at %q, want %q", name, test.rule, have, want)
		}
	}
}

// textOf is a variable whose value has so many characters.
func textOf(characters int) []corev1.EnvVar {
	return []corev1.EnvVar{{Name: "TEXT", Value: strings.Repeat("ä", characters)}}
}

func claimed(edit func(c *corev1.PersistentVolumeClaim)) func(*v1beta1.ComputeCluster) {
	return func(c *v1beta1.ComputeCluster) {
		claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
		edit(&claim)
		c.Spec.WorkerGroups[0].VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim}
	}
}

func modes(modes ...corev1.PersistentVolumeAccessMode) func(*v1beta1.ComputeCluster) {
	return claimed(func(c *corev1.PersistentVolumeClaim) { c.Spec.AccessModes = modes })
}

func allowed(protocol corev1.Protocol, port intstr.IntOrString, end int32) func(*v1beta1.ComputeCluster) {
	return func(c *v1beta1.ComputeCluster) {
		rule := v1beta1.EgressRule{Ports: []networkingv1.NetworkPolicyPort{{Protocol: &protocol, Port: &port}}}
		if end != 0 {
			rule.Ports[0].EndPort = &end
		}
		c.Spec.Network = &v1beta1.Network{AllowTo: []v1beta1.EgressRule{rule}}
	}
}

func logical(name, quantity string) func(*v1beta1.ComputeCluster) {
	return func(c *v1beta1.ComputeCluster) {
		c.Spec.Head.RayResources = map[string]resource.Quantity{name: resource.MustParse(quantity)}
	}
}

const (
	firstClaim = "spec.workerGroups[0].volumeClaimTemplates[0]"
	firstHosts = "spec.workerGroups[0].hostsPerReplica"
	firstPort  = "spec.network.allowTo[0].ports[0]"
)

// outside are edits outside of templates, the rule that they are about, and where they break it.
var outside = map[string]struct {
	rule, want string
	edit       func(c *v1beta1.ComputeCluster)
}{
	"a TLS Secret that cannot be": {"object-name", "spec.head.ingress.tlsSecretName", func(c *v1beta1.ComputeCluster) {
		c.Spec.Head.Ingress = &v1beta1.IngressSpec{Host: "a.b", TLSSecretName: "A"}
	}},
	"a rule without isolation": {"network-unused", "spec.network", func(c *v1beta1.ComputeCluster) {
		c.Spec.Network = &v1beta1.Network{Isolation: v1beta1.Disabled, AllowTo: []v1beta1.EgressRule{{To: []networkingv1.NetworkPolicyPeer{}}}}
	}},
	"a path that ends above": {"ingress-path", "spec.head.ingress.path", func(c *v1beta1.ComputeCluster) {
		c.Spec.Head.Ingress = &v1beta1.IngressSpec{Host: "a.b", Path: "/a/.."}
	}},
	"a path with an escape": {"ingress-path", "spec.head.ingress.path", func(c *v1beta1.ComputeCluster) {
		c.Spec.Head.Ingress = &v1beta1.IngressSpec{Host: "a.b", Path: "/a%2fb"}
	}},
	"TCP":                     {"network-port", "", allowed("TCP", intstr.FromInt32(65535), 0)},
	"UDP":                     {"network-port", "", allowed("UDP", intstr.FromInt32(1), 0)},
	"SCTP":                    {"network-port", "", allowed("SCTP", intstr.FromInt32(1), 0)},
	"port beyond all":         {"network-port", firstPort, allowed("TCP", intstr.FromInt32(65536), 0)},
	"endPort at the port":     {"network-port", "", allowed("TCP", intstr.FromInt32(5), 5)},
	"endPort below the port":  {"network-port", firstPort, allowed("TCP", intstr.FromInt32(5), 4)},
	"endPort at the end":      {"network-port", "", allowed("TCP", intstr.FromInt32(5), 65535)},
	"endPort beyond all":      {"network-port", firstPort, allowed("TCP", intstr.FromInt32(5), 65536)},
	"one mode":                {"claim-modes", "", modes(corev1.ReadOnlyMany)},
	"a pod's own mode":        {"claim-modes", "", modes(corev1.ReadWriteOncePod)},
	"two modes":               {"claim-modes", "", modes(corev1.ReadWriteOnce, corev1.ReadWriteMany)},
	"a pod's own and another": {"claim-modes", firstClaim, modes(corev1.ReadWriteOncePod, corev1.ReadWriteOnce)},
	"a finalizer of a claim":  {"claim-extra", firstClaim, claimed(func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{"a"} })},
	"an owner and a finalizer": {"claim-extra", firstClaim, claimed(func(c *corev1.PersistentVolumeClaim) {
		c.Finalizers, c.OwnerReferences = []string{"a"}, []metav1.OwnerReference{{}}
	})},
	"a template's finalizer": {"template-metadata", "spec.head.template.metadata", func(c *v1beta1.ComputeCluster) {
		c.Spec.Head.Template = &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{"a"}}}
	}},
	"a template's owner and finalizer": {"template-metadata", "spec.head.template.metadata", func(c *v1beta1.ComputeCluster) {
		c.Spec.Head.Template = &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{"a"}, OwnerReferences: []metav1.OwnerReference{{}}}}
	}},
	"as many pods as may be, of one replica": {"too-many-hosts", "", one(10000)},
	"one pod more, of one replica":           {"too-many-hosts", firstHosts, one(10001)},
	"as many workers as may be":              {"too-many-workers", "", workers(9999)},
	"one worker more":                        {"too-many-workers", "spec.workerGroups", workers(10000)},
	"as many pods as may be":                 {"too-many-hosts", "", many(5000, 2)},
	"two pods more":                          {"too-many-hosts", firstHosts, many(5001, 2)},
	"one pod more":                           {"too-many-hosts", firstHosts, many(137, 73)},
	"half a byte for Ray":                    {"resource-whole", "", logical("memory", "500m")},
	"half of something":                      {"resource-whole", "spec.head.rayResources", logical("half", "500m")},
	"none of something":                      {"resource-whole", "", logical("none", "0")},
	"less than none":                         {"resource-whole", "", logical("less", "-500m")},
	"nothing of memory":                      {"size-memory", "", func(c *v1beta1.ComputeCluster) { c.Spec.Head.Size = testkit.Resources("memory", "0") }},
	"a byte less than is least": {"size-memory", "spec.head.size", func(c *v1beta1.ComputeCluster) {
		c.Spec.Head.Size = testkit.Resources("memory", "805306367")
	}},
	"a character too much": {"long-variables", "spec.workerGroups[0].template.spec", func(c *v1beta1.ComputeCluster) {
		c.Spec.WorkerGroups[0].Template = testkit.Template(corev1.Container{Name: "ray", Env: textOf(256<<10 + 1)})
	}},
	"as much text as defaults may have": {"long-defaults", "", func(c *v1beta1.ComputeCluster) {
		c.Spec.PodDefaults = &v1beta1.PodDefaults{Env: textOf(256 << 10)}
	}},
	"a character more than defaults may have": {"long-defaults", "spec.podDefaults.env", func(c *v1beta1.ComputeCluster) {
		c.Spec.PodDefaults = &v1beta1.PodDefaults{Env: textOf(256<<10 + 1)}
	}},
	"a name that ends as one of the operator's":   {"option-system-config", "", systemConfig("my_gcs_storage")},
	"a name that begins as one of the operator's": {"option-system-config", "", systemConfig("gcs_storage_size")},
	"a Service of the cluster's own": {"open-public", "", open(func(c *v1beta1.ComputeCluster) {
		c.Spec.Head.Service = &v1beta1.HeadServiceSpec{Type: corev1.ServiceTypeClusterIP}
	})},
	"the widest block that is no Internet": {"open-public", "", open(letIn("10.0.0.0/8"))},
	"a wider block":                        {"open-public", "spec.authentication.mode", open(letIn("10.0.0.0/7"))},
	"neither missing nor beyond": {"rolling-none", "spec.upgradeStrategy.rollingWorkers", func(c *v1beta1.ComputeCluster) {
		c.Spec.UpgradeStrategy = &v1beta1.ClusterUpgradeStrategy{Type: v1beta1.ClusterUpgradeRollingWorkers, RollingWorkers: &v1beta1.RollingWorkers{MaxUnavailable: new(intstr.FromInt32(0))}}
	}},
	"one missing": {"rolling-none", "", func(c *v1beta1.ComputeCluster) {
		c.Spec.UpgradeStrategy = &v1beta1.ClusterUpgradeStrategy{Type: v1beta1.ClusterUpgradeRollingWorkers, RollingWorkers: &v1beta1.RollingWorkers{MaxUnavailable: new(intstr.FromInt32(1))}}
	}},
	"one beyond": {"rolling-none", "", func(c *v1beta1.ComputeCluster) {
		c.Spec.UpgradeStrategy = &v1beta1.ClusterUpgradeStrategy{Type: v1beta1.ClusterUpgradeRollingWorkers, RollingWorkers: &v1beta1.RollingWorkers{MaxUnavailable: new(intstr.FromInt32(0)), MaxSurge: new(intstr.FromInt32(1))}}
	}},
}

func many(replicas, hosts int32) func(*v1beta1.ComputeCluster) {
	return func(c *v1beta1.ComputeCluster) {
		c.Spec.WorkerGroups[0].Replicas, c.Spec.WorkerGroups[0].HostsPerReplica = &replicas, hosts
	}
}

// one is a group whose replicas are not said, and so one, of many hosts.
func one(hosts int32) func(*v1beta1.ComputeCluster) {
	return func(c *v1beta1.ComputeCluster) {
		c.Spec.WorkerGroups[0].Replicas, c.Spec.WorkerGroups[0].HostsPerReplica = nil, hosts
	}
}

// workers are so many replicas beside a group whose replicas are not said.
func workers(replicas int32) func(*v1beta1.ComputeCluster) {
	return func(c *v1beta1.ComputeCluster) {
		c.Spec.WorkerGroups[0].Replicas, c.Spec.WorkerGroups[1].Replicas = &replicas, nil
	}
}

func systemConfig(name string) func(*v1beta1.ComputeCluster) {
	return func(c *v1beta1.ComputeCluster) {
		c.Spec.Head.RayStartParams = map[string]string{"system-config": `{"` + name + `":1}`}
	}
}

// open is the edit on a cluster without authentication.
func open(edit func(*v1beta1.ComputeCluster)) func(*v1beta1.ComputeCluster) {
	return func(c *v1beta1.ComputeCluster) {
		c.Spec.Authentication = &v1beta1.Authentication{Mode: v1beta1.AuthenticationDisabled}
		edit(c)
	}
}

func letIn(block string) func(*v1beta1.ComputeCluster) {
	return func(c *v1beta1.ComputeCluster) {
		peer := networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: block}}
		rule := v1beta1.IngressRule{From: []networkingv1.NetworkPolicyPeer{peer}}
		c.Spec.Network = &v1beta1.Network{AllowFrom: []v1beta1.IngressRule{rule}}
	}
}

func TestOutsideOfTemplates(t *testing.T) {
	for name, test := range outside {
		cluster := corpus.Good()
		test.edit(cluster)
		if have := places(t, cluster, test.rule); have != test.want {
			t.Errorf("%s breaks %s at %q, want %q", name, test.rule, have, test.want)
		}
	}
}

// TestANewGroupHasAnyHosts: only a group that was there keeps the number of its hosts.
func TestANewGroupHasAnyHosts(t *testing.T) {
	before, after := corpus.Good(), corpus.Good()
	after.Spec.WorkerGroups = append([]v1beta1.WorkerGroup{{Name: "new", HostsPerReplica: 4}}, after.Spec.WorkerGroups...)
	if errs := judgeChange(t, "ComputeCluster", before, after); len(errs) > 0 {
		t.Errorf("a new group of 4 hosts is refused: %v", errs)
	}
	after.Spec.WorkerGroups[2].HostsPerReplica = 4
	if errs := judgeChange(t, "ComputeCluster", before, after); len(errs) != 1 || errs[0].Path != "spec.workerGroups[2].hostsPerReplica" {
		t.Errorf("other hosts for a group that was there: %v", errs)
	}
}

// TestContainers_AreNotComparedWithEachOther: 24,000 that are named alike took minutes, and 100 GiB.
func TestContainers_AreNotComparedWithEachOther(t *testing.T) {
	cluster := inTemplate(func(p *corev1.PodSpec) {
		for i := range 4000 {
			p.Containers = append(p.Containers, corev1.Container{Name: "c" + strconv.Itoa(i)})
			p.InitContainers = append(p.InitContainers, corev1.Container{Name: "i" + strconv.Itoa(i)})
		}
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	validate.Cluster(cluster)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 128<<20 {
		t.Errorf("it takes %d MiB", took>>20)
	}
}
