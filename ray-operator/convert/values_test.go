package convert_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/heliostat-dev/heliostat/ray-operator/convert"
	"github.com/heliostat-dev/heliostat/tests/rayio"
)

type fields map[string]any

func containers(ray map[string]any, others ...any) map[string]any {
	if ray["image"] == nil {
		ray["image"] = "rayproject/ray:2.60.0"
	}
	return map[string]any{"spec": map[string]any{"containers": append([]any{ray}, others...)}}
}

// device is a container with one of a name.
func device(name string) map[string]any {
	return map[string]any{"name": "a", "resources": map[string]any{"limits": map[string]any{"cpu": "1", "memory": "2Gi", name: "1"}}}
}

const (
	cluster, job, service = "RayCluster", "RayJob", "RayService"
	store, network, head  = "spec.gcsFaultToleranceOptions", "spec.networkPolicy", "spec.headGroupSpec"
	group, rules          = "spec.workerGroupSpecs[0]", "spec.deletionStrategy.deletionRules"
)

func rule(policy, status string, after int64) any {
	return map[string]any{"policy": policy, "condition": map[string]any{"jobStatus": status, "ttlSeconds": after}}
}

// judged has values that make a difference, each with the row that says so.
var judged = map[string]struct {
	kind    string
	set     fields
	path    string
	verdict convert.Verdict
}{
	"a version in no tag is refused": {cluster, fields{"spec.rayVersion": "",
		head + ".template": containers(map[string]any{"name": "a",
			"image": "own:latest"})}, "spec.rayVersion", convert.Refused},
	"a registry's port is no tag": {cluster, fields{"spec.rayVersion": "",
		head + ".template": containers(map[string]any{"name": "a",
			"image": "host:5000/ray"})}, "spec.rayVersion", convert.Refused},
	"another manager is refused": {cluster, fields{"spec.managedBy": "own/one"}, "spec.managedBy",
		convert.Refused},
	"an unknown strategy is refused": {cluster, fields{"spec.upgradeStrategy.type": "Rolling"},
		"spec.upgradeStrategy.type", convert.Refused},
	"an unknown mode is refused": {cluster, fields{"spec.authOptions.mode": "basic"},
		"spec.authOptions.mode", convert.Refused},
	"a Secret without token is dropped": {cluster, fields{"spec.authOptions.secretName": "mine"},
		"spec.authOptions.secretName", convert.Dropped},
	"an unknown pace is refused": {cluster, fields{"spec.enableInTreeAutoscaling": true,
		"spec.autoscalerOptions.upscalingMode": "Fast"}, "spec.autoscalerOptions.upscalingMode", convert.Refused},
	"idle time without autoscaling": {cluster, fields{"spec.autoscalerOptions.idleTimeoutSeconds": int64(9)},
		"spec.autoscalerOptions.idleTimeoutSeconds", convert.Dropped},
	"idle time of 0 becomes 1": {cluster, fields{"spec.enableInTreeAutoscaling": true,
		"spec.autoscalerOptions.idleTimeoutSeconds": int64(0)}, "spec.autoscalerOptions.idleTimeoutSeconds", convert.Changed},
	"a type that is not the field's": {cluster, fields{"spec.suspend": "yes"}, "spec.suspend", convert.Refused},
	"an unknown field in a template": {cluster, fields{head + ".template.spec.nodeSelectr": "x"},
		head + ".template.spec.nodeSelectr", convert.Refused},
	"Kueue's suspension is dropped": {cluster, fields{"spec.suspend": true,
		"metadata.labels": map[string]any{"kueue.x-k8s.io/queue-name": "q"}}, "spec.suspend", convert.Dropped},
	"a gang of no scheduler": {cluster,
		fields{"metadata.labels": map[string]any{"ray.io/gang-scheduling-enabled": "true"}}, "metadata.labels[ray.io/gang-scheduling-enabled]", convert.Changed},
	"a Redis without address is refused": {cluster, fields{store: map[string]any{}}, store + ".redisAddress",
		convert.Refused},
	"a volume of a Redis is refused": {cluster, fields{store + ".redisAddress": "r",
		store + ".storage.size": "1Gi"}, store + ".storage", convert.Refused},
	"an unknown backend is refused": {cluster, fields{store + ".backend": "etcd"}, store + ".backend",
		convert.Refused},
	"a Redis of rocksdb is refused": {cluster, fields{store + ".backend": "rocksdb",
		store + ".redisAddress": "r"}, store + ".redisAddress", convert.Refused},
	"a directory of a claim is refused": {cluster, fields{store + ".backend": "rocksdb",
		store + ".storage": map[string]any{"claimName": "c", "subPath": "s"}}, store + ".storage.subPath", convert.Refused},
	"an unknown retention is refused": {cluster, fields{store + ".backend": "rocksdb",
		store + ".storage.deletionPolicy": "Keep"}, store + ".storage.deletionPolicy", convert.Refused},
	"a password of a ConfigMap is refused": {cluster, fields{store + ".redisAddress": "r",
		store + ".redisPassword.valueFrom.configMapKeyRef": map[string]any{"name": "a",
			"key": "b"}}, store + ".redisPassword.valueFrom", convert.Refused},
	"a former store without address": {cluster,
		fields{"metadata.annotations": map[string]any{"ray.io/ft-enabled": "true"}}, "metadata.annotations[ray.io/ft-enabled]", convert.Refused},
	"a namespace of a service's Redis": {service,
		fields{"spec.rayClusterConfig.gcsFaultToleranceOptions": map[string]any{"redisAddress": "r",
			"externalStorageNamespace": "n"}}, "spec.rayClusterConfig.gcsFaultToleranceOptions.externalStorageNamespace", convert.Changed},
	"a policy's unknown mode is refused": {cluster, fields{network + ".mode": "Deny"}, network + ".mode",
		convert.Refused},
	"a port that is not Ray's is refused": {cluster,
		fields{network + ".head.ingressRules": []any{map[string]any{"ports": []any{map[string]any{"port": int64(22)}}}}}, network + ".head.ingressRules", convert.Refused},
	"a range of ports is refused": {cluster,
		fields{network + ".head.ingressRules": []any{map[string]any{"ports": []any{map[string]any{"port": int64(8000),
			"endPort": int64(9000)}}}}}, network + ".head.ingressRules", convert.Refused},
	"egress of the head alone is refused": {cluster, fields{network + ".head.egressRules": []any{map[string]any{}}},
		network + ".head.egressRules", convert.Refused},
	"egress rules of no denial are refused": {cluster, fields{network + ".mode": "DenyAllIngress",
		network + ".worker.egressRules": []any{map[string]any{}}}, network + ".worker.egressRules", convert.Refused},
	"a command is refused": {cluster,
		fields{head + ".template": containers(map[string]any{"name": "a",
			"command": []any{"x"}})}, head + ".template.spec.containers[0].command", convert.Refused},
	"another container named ray": {cluster,
		fields{head + ".template": containers(map[string]any{"name": "a"},
			map[string]any{"name": "ray"})}, head + ".template.spec.containers[0].name", convert.Refused},
	"no container is refused": {cluster,
		fields{head + ".template": map[string]any{"spec": map[string]any{"containers": []any{}}}}, head + ".template.spec.containers", convert.Refused},
	"no resources become the default": {cluster,
		fields{group + ".template": containers(map[string]any{"name": "a"})}, group + ".template.spec.containers[0].resources", convert.Changed},
	"a device of an unknown name is left to Ray": {cluster,
		fields{group + ".template": containers(device("volcano.sh/vgpu-number"))}, group + ".template.spec.containers[0].resources", convert.Changed},
	"a device that KubeRay takes for a GPU": {cluster,
		fields{group + ".template": containers(device("example.com/gpu"))}, group + ".template.spec.containers[0].resources", convert.Changed},
	"a device of an unknown name on the head": {cluster,
		fields{head + ".template": containers(device("volcano.sh/vgpu-number"))}, head + ".template.spec.containers[0].resources", convert.Changed},
	"a head of no size takes no tasks": {cluster,
		fields{head + ".template": containers(map[string]any{"name": "a"})}, head + ".rayStartParams", convert.Changed},
	"a variable in an option is refused": {cluster,
		fields{head + ".rayStartParams": map[string]any{"num-cpus": "$N"}}, head + ".rayStartParams[num-cpus]", convert.Refused},
	"an amount said twice is refused": {cluster,
		fields{head + ".rayStartParams": map[string]any{"num-cpus": "1"},
			head + ".resources": map[string]any{"CPU": "1"}}, head + ".rayStartParams[num-cpus]", convert.Refused},
	"an amount that is none is refused": {cluster, fields{head + ".resources": map[string]any{"CPU": "many"}},
		head + ".resources[CPU]", convert.Refused},
	"another port of Ray's is changed": {cluster,
		fields{head + ".rayStartParams": map[string]any{"port": "6380"}}, head + ".rayStartParams[port]", convert.Changed},
	"labels among options are refused": {cluster,
		fields{head + ".rayStartParams": map[string]any{"labels": "a=b"}}, head + ".rayStartParams[labels]", convert.Refused},
	"custom resources that are none": {cluster,
		fields{head + ".rayStartParams": map[string]any{"resources": "a=b"}}, head + ".rayStartParams[resources]", convert.Refused},
	"a password without a store": {cluster,
		fields{head + ".rayStartParams": map[string]any{"redis-password": "x"}}, head + ".rayStartParams[redis-password]", convert.Dropped},
	"an Ingress without a host is refused": {cluster, fields{head + ".enableIngress": true},
		head + ".ingressOptions.host", convert.Refused},
	"options without an Ingress": {cluster, fields{head + ".ingressOptions.host": "a.example.com"},
		head + ".ingressOptions", convert.Dropped},
	"two certificates are refused": {cluster, fields{head + ".enableIngress": true,
		head + ".ingressOptions": map[string]any{"host": "a.example.com", "tls": []any{map[string]any{"secretName": "a"},
			map[string]any{"secretName": "b"}}}}, head + ".ingressOptions.tls", convert.Refused},
	"a named targetPort is refused": {cluster,
		fields{head + ".headService.spec.ports": []any{map[string]any{"name": "x", "port": int64(1),
			"targetPort": "y"}}}, head + ".headService.spec.ports", convert.Refused},
	"a port of the head's for UDP is refused": {cluster,
		fields{head + ".headService.spec.ports": []any{map[string]any{"name": "x", "port": int64(7), "protocol": "UDP"}}}, head + ".headService.spec.ports", convert.Refused},
	"a port of the head's with a name of 64 is refused": {cluster,
		fields{head + ".headService.spec.ports": []any{map[string]any{"name": strings.Repeat("a", 64), "port": int64(7)}}}, "spec.head.service.ports[0].name", convert.Refused},
	"a generated name that is too long": {cluster, fields{"metadata.name": "", "metadata.generateName": strings.Repeat("a", 58)},
		"metadata.generateName", convert.Refused},
	"a credential of what has no name": {cluster, fields{"metadata.name": "", "metadata.generateName": "a-",
		store: map[string]any{"redisAddress": "r", "redisPassword": map[string]any{"value": "x"}}}, "metadata.generateName", convert.Refused},
	"a switch of TLS that is no value is refused": {cluster, fields{head + ".template": containers(map[string]any{"name": "a", "env": []any{
		map[string]any{"name": "RAY_USE_TLS", "valueFrom": map[string]any{"configMapKeyRef": map[string]any{"name": "a", "key": "b"}}}}})},
		"spec.head.template.spec.containers[0].env[0]", convert.Refused},
	"shared memory without memory": {cluster, fields{group + ".template": map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "a", "image": "rayproject/ray:2.60.0", "resources": map[string]any{"limits": map[string]any{"cpu": "1"}},
			"volumeMounts": []any{map[string]any{"name": "s", "mountPath": "/dev/shm"}}}},
		"volumes": []any{map[string]any{"name": "s", "hostPath": map[string]any{"path": "/dev/shm"}}}}}},
		group + ".template.spec.containers[0].volumeMounts[0]", convert.Changed},
	"a fixed address of a Service": {cluster,
		fields{head + ".headService.spec.externalIPs": []any{"10.0.0.1"}}, head + ".headService.spec.externalIPs", convert.Dropped},
	"replicas above the maximum": {cluster, fields{group + ".replicas": int64(9)}, group + ".replicas",
		convert.Changed},
	"an unbounded group that scales": {cluster, fields{"spec.enableInTreeAutoscaling": true,
		group + ".maxReplicas": int64(2147483647)}, group + ".maxReplicas", convert.Changed},
	"an unbounded group that does not": {cluster, fields{group + ".maxReplicas": int64(2147483647)},
		group + ".maxReplicas", convert.Dropped},
	"a priority beyond ours": {cluster, fields{"spec.enableInTreeAutoscaling": true,
		group + ".priority": int64(-4000)}, group + ".priority", convert.Changed},
	"what our rules refuse is refused": {cluster, fields{group + ".groupName": "head"},
		"spec.workerGroups[0].name", convert.Refused},
	"nothing to run is refused": {job, fields{"spec.entrypoint": " "}, "spec.entrypoint", convert.Refused},
	"two homes are refused": {job,
		fields{"spec.clusterSelector": map[string]any{"ray.io/cluster": "a"}}, "spec.clusterSelector", convert.Refused},
	"an environment that is no object": {job, fields{"spec.runtimeEnvYAML": "text"}, "spec.runtimeEnvYAML",
		convert.Refused},
	"an environment that is no YAML": {job, fields{"spec.runtimeEnvYAML": "a: ["}, "spec.runtimeEnvYAML",
		convert.Refused},
	"an unknown submission is refused": {job, fields{"spec.submissionMode": "Mail"}, "spec.submissionMode",
		convert.Refused},
	"resources of a driver that are none": {job, fields{"spec.entrypointResources": "GPU"},
		"spec.entrypointResources", convert.Refused},
	"resources of a driver said twice": {job, fields{"spec.entrypointResources": `{"CPU": 1}`,
		"spec.entrypointNumCpus": int64(1)}, "spec.entrypointResources", convert.Refused},
	"an unknown policy is refused": {job, fields{rules: []any{rule("DeletePods", "FAILED", 0)}}, rules,
		convert.Refused},
	"an unknown condition is refused": {job, fields{rules: []any{rule("DeleteNone", "RUNNING", 0)}}, rules,
		convert.Refused},
	"rules beside a shutdown are refused": {job, fields{rules: []any{rule("DeleteNone", "FAILED", 0)},
		"spec.shutdownAfterJobFinishes": true}, rules, convert.Refused},
	"a policy for one outcome is refused": {job, fields{"spec.deletionStrategy.onSuccess.policy": "DeleteCluster"},
		"spec.deletionStrategy", convert.Refused},
	"rules beside policies are refused": {job, fields{rules: []any{rule("DeleteNone", "FAILED", 0)},
		"spec.deletionStrategy.onFailure.policy": "DeleteNone"}, rules, convert.Refused},
	"a shutdown beside policies": {job, fields{"spec.deletionStrategy": map[string]any{"onSuccess": map[string]any{"policy": "DeleteNone"},
		"onFailure": map[string]any{"policy": "DeleteCluster"}}, "spec.shutdownAfterJobFinishes": true},
		"spec.shutdownAfterJobFinishes", convert.Dropped},
	"two types of a Service": {cluster, fields{head + ".serviceType": "NodePort", head + ".headService.spec.type": "ClusterIP"},
		head + ".serviceType", convert.Dropped},
	"one outcome deletes the job": {job, fields{rules: []any{rule("DeleteSelf", "FAILED", 9)}},
		"spec.deletionStrategy", convert.Changed},
	"a time without a shutdown": {job, fields{"spec.ttlSecondsAfterFinished": int64(9)},
		"spec.ttlSecondsAfterFinished", convert.Dropped},
	"nothing to serve is refused": {service, fields{"spec.serveConfigV2": ""}, "spec.serveConfigV2",
		convert.Refused},
	"anchors that make a configuration too large are refused": {service, fields{"spec.serveConfigV2": "x: &x " +
		strings.Repeat("x", 1<<16) + "\napplications: [{name: a, import_path: 'a:b', args: {y: [" + strings.Repeat("*x,", 20) + "]}}]"},
		"spec.serveConfigV2", convert.Refused},
	"options of another upgrade": {service,
		fields{"spec.upgradeStrategy.clusterUpgradeOptions.stepSizePercent": int64(5)}, "spec.upgradeStrategy.clusterUpgradeOptions", convert.Dropped},
	"a delay beyond a day": {service, fields{"spec.rayClusterDeletionDelaySeconds": int64(90000)},
		"spec.rayClusterDeletionDelaySeconds", convert.Changed},
	"a time-out that is none is refused": {service,
		fields{"metadata.annotations": map[string]any{"ray.io/initializing-timeout": "soon"}}, "metadata.annotations[ray.io/initializing-timeout]", convert.Refused},
	"a head that must serve alone": {service, fields{"spec.excludeHeadPodFromServeSvc": true,
		"spec.rayClusterConfig.workerGroupSpecs": []any{}}, "spec.excludeHeadPodFromServeSvc", convert.Changed},
	"a port of the dashboard in front of a service": {service, servicePort("x", 8265, nil),
		"spec.serveService.spec.ports", convert.Changed},
	"a port that a name leads to Ray": {service, servicePort("x", 7, "metrics"), "spec.serveService.spec.ports", convert.Changed},
	"a port that another name leads on is refused": {service, servicePort("x", 7, "sidecar"),
		"spec.serveService.spec.ports", convert.Refused},
	"a port of another protocol is refused": {service, fields{"spec.serveService.spec.ports": []any{
		map[string]any{"name": "x", "port": int64(7), "protocol": "UDP"}}}, "spec.serveService.spec.ports", convert.Refused},
	"a port with a name of 64 is refused": {service, servicePort(strings.Repeat("a", 64), 7, nil), "spec.service.ports[0].name", convert.Refused},
	"a port without a name":               {service, servicePort("", 7, nil), "spec.serveService.spec.ports", convert.Changed},
}

// TestObject_JudgesValues has what the table does not say.
func TestObject_JudgesValues(t *testing.T) {
	for name, c := range judged {
		t.Run(name, func(t *testing.T) {
			object := rayio.Base(c.kind)
			for path, value := range c.set {
				rayio.Set(object.Object, path, value)
			}
			for _, row := range convert.Object(object, convert.Options{}).Rows {
				if row.Path == c.path && row.Verdict == c.verdict {
					return
				}
			}
			t.Errorf("%s is not %s: %v", c.path, c.verdict, convert.Object(object, convert.Options{}).Rows)
		})
	}
}

// TestObject_CountsGPUsByKubeRaysNames: KubeRay takes what ends in gpu for GPUs, and tells Ray.
func TestObject_CountsGPUsByKubeRaysNames(t *testing.T) {
	for name, want := range map[string]string{"example.com/gpu": "1", "nvidia.com/gpu": "", "volcano.sh/vgpu-number": ""} {
		object := rayio.Base(cluster)
		rayio.Set(object.Object, group+".template", containers(device(name)))
		groups, _, err := unstructured.NestedSlice(convert.Object(object, convert.Options{}).Objects[0].Object, "spec", "workerGroups")
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := unstructured.NestedString(groups[0].(map[string]any), "rayResources", "GPU")
		if err != nil || got != want {
			t.Errorf("of %s rayResources has %q GPUs, %v, want %q", name, got, err, want)
		}
	}
}

// servicePort has one port of the Service in front of a RayService's proxies.
func servicePort(name string, number int64, target any) fields {
	port := map[string]any{"name": name, "port": number}
	if target != nil {
		port["targetPort"] = target
	}
	return fields{"spec.serveService.spec.ports": []any{port}}
}

// TestObject_KeepsPortsOfAService: those of the proxies by their names here, and the additional ones.
func TestObject_KeepsPortsOfAService(t *testing.T) {
	object := rayio.Base(service)
	rayio.Set(object.Object, "spec.serveService.spec", map[string]any{"type": "NodePort", "ports": []any{
		map[string]any{"name": "serve", "port": int64(80), "targetPort": int64(8000), "nodePort": int64(30080)},
		map[string]any{"name": "sidecar", "port": int64(81), "targetPort": int64(9100), "nodePort": int64(30081)},
		map[string]any{"name": "alias", "port": int64(82), "targetPort": int64(8000)},
		map[string]any{"name": "more", "port": int64(7)},
	}})
	spec, _, err := unstructured.NestedMap(convert.Object(object, convert.Options{}).Objects[0].Object, "spec", "service")
	if err != nil {
		t.Fatal(err)
	}
	delete(spec, "headEndpoints")
	want := map[string]any{"type": "NodePort", "ports": []any{
		map[string]any{"name": "http", "port": int64(80), "nodePort": int64(30080)},
		map[string]any{"name": "sidecar", "port": int64(81), "targetPort": int64(9100), "nodePort": int64(30081)},
		map[string]any{"name": "alias", "port": int64(82), "targetPort": int64(8000)},
		map[string]any{"name": "more", "port": int64(7)},
	}}
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Errorf("(- wanted, + made):\n%s", diff)
	}
}

// TestObject_KeepsIPFamilies: those of the head's Service and those of the Service in front of the proxies.
func TestObject_KeepsIPFamilies(t *testing.T) {
	of := map[string]any{"ipFamilies": []any{"IPv6", "IPv4"}, "ipFamilyPolicy": "RequireDualStack"}
	for kind, at := range map[string]struct{ from, to string }{
		cluster: {head + ".headService.spec", "spec.head.service"},
		service: {"spec.serveService.spec", "spec.service"},
	} {
		object := rayio.Base(kind)
		rayio.Set(object.Object, at.from, of)
		result := convert.Object(object, convert.Options{})
		if rows := rowsAbout(result.Rows, at.from); len(rows) > 0 || result.Refused() {
			t.Fatalf("%s: %v", kind, result.Rows)
		}
		made, _, err := unstructured.NestedMap(result.Objects[0].Object, strings.Split(at.to, ".")...)
		if err != nil || !cmp.Equal(made["ipFamilies"], of["ipFamilies"]) || made["ipFamilyPolicy"] != of["ipFamilyPolicy"] {
			t.Errorf("%s: %v %v", kind, made, err)
		}
	}
}

// TestObject_GivesARedisItsPort: Redis' own, where an address names none. Colons between brackets are those of IPv6.
func TestObject_GivesARedisItsPort(t *testing.T) {
	for given, want := range map[string]string{
		"redis": "redis://redis:6379", "rediss://redis:1/": "rediss://redis:1",
		"redis://[fd00::7]": "redis://[fd00::7]:6379", "[fd00::7]:1": "redis://[fd00::7]:1",
	} {
		object := rayio.Base(cluster)
		rayio.Set(object.Object, store+".redisAddress", given)
		result := convert.Object(object, convert.Options{})
		have, _, err := unstructured.NestedString(result.Objects[0].Object, "spec", "controlStore", "redis", "address")
		if err != nil || have != want {
			t.Errorf("%s becomes %q, want %q (%v)", given, have, want, err)
		}
	}
}

// TestObject_TellsWhatIsNotOfRay: other kinds pass, other versions and groups do not.
func TestObject_TellsWhatIsNotOfRay(t *testing.T) {
	for name, c := range map[string]struct {
		version, kind string
		says          string
		passes        bool
	}{
		"an older version":       {"ray.io/v1alpha1", "RayCluster", "only ray.io/v1", false},
		"an unknown kind":        {"ray.io/v1", "RayPool", "has no kind", false},
		"a kind of others":       {"example.com/v1", "RayCluster", "correct apiVersion", false},
		"one of ours":            {"heliostat.dev/v1beta1", "ComputeCluster", "", true},
		"one of Kubernetes' own": {"v1", "ConfigMap", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			object := rayio.Base("RayCluster")
			object.SetAPIVersion(c.version)
			object.SetKind(c.kind)
			result := convert.Object(object, convert.Options{})
			said := ""
			for _, row := range result.Rows {
				said += row.Text
			}
			if len(result.Objects) == 1 != c.passes || result.Refused() == c.passes || !strings.Contains(said, c.says) {
				t.Errorf("%d objects, and %v", len(result.Objects), result.Rows)
			}
		})
	}
}
