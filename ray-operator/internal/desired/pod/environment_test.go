package pod_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// offered are the variables that the user's own win over, with what a worker of a TPU
// slice has without any.
var offered = map[string]string{
	"RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "45",
	"RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE":   "1",
	"RAY_USAGE_STATS_ENABLED":               "0",
	"RAY_worker_niceness":                   "0",
	"RAY_NODE_ZONE":                         "metadata.labels['topology.kubernetes.io/zone']",
	"RAY_NODE_REGION":                       "metadata.labels['topology.kubernetes.io/region']",
	"HELIOSTAT_POD_IPS":                     "status.podIPs",
	"HELIOSTAT_REPLICA_INDEX":               "1",
	"HELIOSTAT_HOST_INDEX":                  "2",
	"HELIOSTAT_REPLICA_HOSTNAMES":           "",
	"TPU_WORKER_HOSTNAMES":                  "$(HELIOSTAT_REPLICA_HOSTNAMES)",
	"TPU_WORKER_ID":                         "2",
	"TPU_NAME":                              "",
}

// TestTheUsersVariablesWin where that is safe, from the template and from podDefaults;
// where it is not, package validate refuses them.
func TestTheUsersVariablesWin(t *testing.T) {
	without := variables(t, at(sliced(), 6))
	for name, want := range offered {
		if have, there := without[name]; !there || want != "" && have != want {
			t.Errorf("%s is %q, want %q", name, have, want)
		}
		if naming.OwnsVariable(name) {
			t.Errorf("%s is offered and owned", name)
		}
		given := []corev1.EnvVar{{Name: name, Value: "mine"}}
		cluster := sliced()
		cluster.Spec.WorkerGroups[0].Template = testkit.Template(corev1.Container{Name: "ray", Env: given})
		if have := variables(t, at(cluster, 6))[name]; have != "mine" {
			t.Errorf("%s is %q, not what the template says", name, have)
		}
		cluster = defaulted()
		cluster.Spec.PodDefaults.Env = given
		if have := variables(t, pod.Head(cluster, 1))[name]; have != "mine" {
			t.Errorf("%s is %q, not what podDefaults says", name, have)
		}
	}
}

// TestOwnedVariables: what every pod is told is either offered or refused to users.
func TestOwnedVariables(t *testing.T) {
	cluster := sliced()
	for _, built := range []*corev1.Pod{pod.Head(cluster, 1), at(cluster, 0)} {
		for name := range variables(t, built) {
			_, free := offered[name]
			if !free && !naming.OwnsVariable(name) && name != "RAY_enable_autoscaler_v2" {
				t.Errorf("%s: %s is neither offered nor owned", built.Name, name)
			}
		}
	}
	// Whether a pod is told of it or not.
	for _, name := range []string{
		"RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_ENABLE_K8S_TOKEN_AUTH",
		"RAY_CLOUD_INSTANCE_ID", "RAY_CLUSTER_NAME", "RAY_CLUSTER_NAMESPACE", "RAY_NODE_TYPE_NAME", "RAY_ENABLE_GCS_LEADER_ELECTION",
		"RAY_REDIS_ADDRESS", "RAY_external_storage_namespace", "RAY_gcs_storage", "RAY_gcs_storage_path",
		"RAY_REDIS_CA_CERT", "RAY_REDIS_CA_PATH", "RAY_REDIS_CLIENT_CERT", "RAY_REDIS_CLIENT_KEY", "RAY_REDIS_SERVER_NAME",
		"RAY_USE_TLS", "RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT",
	} {
		if !naming.OwnsVariable(name) {
			t.Errorf("%s is not owned", name)
		}
	}
}

// TestWhoAPodIs: what Ray is told of a pod's place.
func TestWhoAPodIs(t *testing.T) {
	cluster := testkit.Cluster("demo", testkit.Group("cpu", 1))
	for name, test := range map[string]struct {
		built *corev1.Pod
		want  map[string]string
	}{
		"head": {pod.Head(cluster, 1), map[string]string{
			"RAY_ADDRESS": "127.0.0.1:6379", "RAY_NODE_TYPE_NAME": "headgroup", "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0", "RAY_enable_autoscaler_v2": "1",
		}},
		"worker": {worker(cluster), map[string]string{
			"RAY_ADDRESS": "demo-head.default.svc:6379", "RAY_NODE_TYPE_NAME": "cpu", "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "45", "RAY_enable_autoscaler_v2": "",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			have := variables(t, test.built)
			test.want["RAY_CLUSTER_NAME"], test.want["RAY_CLUSTER_NAMESPACE"], test.want["RAY_CLOUD_INSTANCE_ID"] = "demo", "default", "metadata.uid"
			for variable, value := range test.want {
				if have[variable] != value {
					t.Errorf("%s is %q, want %q", variable, have[variable], value)
				}
			}
		})
	}
}

// TestHostNetwork: the head's Service is found from there too.
func TestHostNetwork(t *testing.T) {
	for name, test := range map[string]struct {
		given corev1.PodSpec
		want  corev1.DNSPolicy
	}{
		"own network":   {corev1.PodSpec{}, ""},
		"host's":        {corev1.PodSpec{HostNetwork: true}, corev1.DNSClusterFirstWithHostNet},
		"the user's":    {corev1.PodSpec{HostNetwork: true, DNSPolicy: corev1.DNSDefault}, corev1.DNSDefault},
		"own, the user": {corev1.PodSpec{DNSPolicy: corev1.DNSNone}, corev1.DNSNone},
	} {
		t.Run(name, func(t *testing.T) {
			group := testkit.Group("g", 1)
			group.Template = testkit.Template()
			group.Template.Spec = test.given
			if have := worker(testkit.Cluster("demo", group)).Spec.DNSPolicy; have != test.want {
				t.Errorf("dnsPolicy %q, want %q", have, test.want)
			}
		})
	}
}

// TestPorts: Ray's ports have their names, and one that the user names stays as it is.
func TestPorts(t *testing.T) {
	for name, number := range map[string]int32{"gcs": 6379, "dashboard": 8265, "client": 10001, "metrics": 8080, "serve": 8000} {
		if known, have := naming.PortNumber(name); !known || have != number {
			t.Errorf("%s is %v, %d", name, known, have)
		}
	}
	if known, number := naming.PortNumber("http"); known || number != 0 {
		t.Errorf("http is %v, %d", known, number)
	}
	group := testkit.Group("g", 1)
	group.Template = testkit.Template(corev1.Container{Name: "ray", Ports: []corev1.ContainerPort{{Name: "mine", ContainerPort: 8000}}})
	var have []int32
	for _, port := range ray(t, worker(testkit.Cluster("demo", group))).Ports {
		have = append(have, port.ContainerPort)
	}
	if !slices.Equal(have, []int32{8000, 8080}) {
		t.Errorf("a worker has the ports %v", have)
	}
}

// TestShield_KeepsOurVariablesFromEnvFrom: nobody sees what a Secret or a ConfigMap brings before the pod starts.
func TestShield_KeepsOurVariablesFromEnvFrom(t *testing.T) {
	cluster := testkit.Cluster("demo")
	values := func() map[string]string {
		values := map[string]string{}
		for _, variable := range pod.Head(cluster, 1).Spec.Containers[0].Env {
			values[variable.Name] = variable.Value
		}
		return values
	}
	if _, is := values()["RAY_gcs_storage"]; is {
		t.Error("a pod without envFrom says more than it must")
	}
	from := corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "mine"}}}
	cluster.Spec.PodDefaults = &v1beta1.PodDefaults{EnvFrom: []corev1.EnvFromSource{from}}
	have := values()
	for name, want := range map[string]string{
		"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "", "RAY_ENABLE_K8S_TOKEN_AUTH": "0", "RAY_gcs_storage": "memory",
	} {
		if value, is := have[name]; !is || value != want {
			t.Errorf("%s is %q, %v, want %q", name, value, is, want)
		}
	}
}
