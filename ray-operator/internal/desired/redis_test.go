package desired_test

import (
	"reflect"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

func redis(t *testing.T, cluster *v1beta1.ComputeCluster) *corev1.Container {
	t.Helper()
	containers := desired.StoreSet(cluster).Spec.Template.Spec.Containers
	if len(containers) != 1 {
		t.Fatalf("%d containers", len(containers))
	}
	return &containers[0]
}

// TestSizeOfRedis: memory is request and limit, CPU a request, and Redis itself uses three
// quarters of the memory.
func TestSizeOfRedis(t *testing.T) {
	for name, test := range map[string]struct {
		size, requests, limits corev1.ResourceList
		most                   string
	}{
		"by default": {nil, testkit.Resources("cpu", "50m", "memory", "256Mi"), testkit.Resources("memory", "256Mi"), "201326592"},
		"cpu said":   {testkit.Resources("cpu", "2"), testkit.Resources("cpu", "2", "memory", "256Mi"), testkit.Resources("memory", "256Mi"), "201326592"},
		"a limit":    {testkit.Resources("limits.cpu", "1"), testkit.Resources("cpu", "50m", "memory", "256Mi"), testkit.Resources("cpu", "1", "memory", "256Mi"), "201326592"},
		"both said":  {testkit.Resources("cpu", "1", "memory", "4Gi"), testkit.Resources("cpu", "1", "memory", "4Gi"), testkit.Resources("memory", "4Gi"), "3221225472"},
	} {
		container := redis(t, managed(func(m *v1beta1.ManagedRedis) { m.Size = test.size }))
		if have := container.Resources; !reflect.DeepEqual(have.Requests, test.requests) || !reflect.DeepEqual(have.Limits, test.limits) {
			t.Errorf("%s: %+v", name, have)
		}
		if i := slices.Index(container.Args, "--maxmemory"); i < 0 || container.Args[i+1] != test.most {
			t.Errorf("%s: %q, want %s bytes", name, container.Args, test.most)
		}
	}
}

// TestStoreSet_HasTheSizesOfTheInstallation: in Redis and in what makes its certificate, which differ from what the cluster
// wants only in that it says nothing else.
func TestStoreSet_HasTheSizesOfTheInstallation(t *testing.T) {
	size := testkit.Resources("cpu", "250m", "limits.cpu", "500m", "memory", "128Mi")
	limits := testkit.Resources("cpu", "500m", "memory", "128Mi")
	with := desired.Site{Image: pod.OperatorImage{Image: "heliostat"}, Installed: pod.Installed{Sizes: pod.Sizes{ManagedRedis: size}}}
	plain := managed(func(*v1beta1.ManagedRedis) {})
	sets := map[string]*appsv1.StatefulSet{
		"of the installation": with.StoreSet(plain, true),
		"of the cluster":      desired.Site{}.StoreSet(managed(func(m *v1beta1.ManagedRedis) { m.Size = size }), true),
	}
	for name, set := range sets {
		spec := set.Spec.Template.Spec
		for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
			if !reflect.DeepEqual(container.Resources.Limits, limits) {
				t.Errorf("sizes %s: %s has the limits %v", name, container.Name, container.Resources.Limits)
			}
		}
		if len(spec.InitContainers) != 1 {
			t.Errorf("sizes %s: %d init containers", name, len(spec.InitContainers))
		}
	}
	if have, want := sets["of the installation"].Annotations[v1beta1.AnnotationIntent], desired.StoreSet(plain).Annotations[v1beta1.AnnotationIntent]; have != want {
		t.Error("what is wanted of a Redis is of the installation too")
	}
}

// TestImageOfRedis is the one that is said.
func TestImageOfRedis(t *testing.T) {
	for said, want := range map[string]string{"": "redis:7", "example.com/redis:8": "example.com/redis:8"} {
		if image := redis(t, managed(func(m *v1beta1.ManagedRedis) { m.Image = said })).Image; image != want {
			t.Errorf("the image %q became %s", said, image)
		}
	}
}

// TestRedisMeetsItsService: the address that heads get leads through the Service to the
// container, which takes the digest of the Secret's password.
func TestRedisMeetsItsService(t *testing.T) {
	cluster := managed()
	service, container := desired.StoreService(cluster), redis(t, cluster)
	if want := "redis://" + service.Name + "." + service.Namespace + ".svc:6379"; pod.StoreAddress(cluster) != want || service.Spec.Ports[0].Port != 6379 {
		t.Errorf("heads ask %s, the Service is %s", pod.StoreAddress(cluster), want)
	}
	if target := service.Spec.Ports[0].TargetPort.IntVal; target != container.Ports[0].ContainerPort {
		t.Errorf("the Service leads to %d, Redis listens on %d", target, container.Ports[0].ContainerPort)
	}
	from, secret := container.Env[0].ValueFrom.SecretKeyRef, desired.StoreSecret(cluster, "pass", "other")
	digest := "d74ff0ee8da3b9806b18c877dbf29bbde50b5bd8e4dad7a3a725000feb82e8f1" // printf pass | sha256sum
	if from.Name != secret.Name || secret.StringData[from.Key] != digest || !slices.Contains(container.Args, "#$("+container.Env[0].Name+")") {
		t.Errorf("Redis takes %s of %s as %s", from.Key, from.Name, container.Env[0].Name)
	}
	if set := desired.StoreSet(cluster); set.Spec.ServiceName != service.Name || set.Spec.Template.Spec.Volumes[0].PersistentVolumeClaim.ClaimName != desired.StoreClaim(cluster).Name {
		t.Errorf("the StatefulSet uses %+v", set.Spec)
	}
}

// TestPlacementOfRedis: podDefaults say where it runs and how it gets there, and nothing else.
func TestPlacementOfRedis(t *testing.T) {
	cluster := managed()
	cluster.Spec.PodDefaults = &v1beta1.PodDefaults{
		ServiceAccountName: "powerful", Labels: map[string]string{"queue": "a"}, Annotations: map[string]string{"inject": "yes"},
		Env:              []corev1.EnvVar{{Name: "MINE", Value: "x"}},
		EnvFrom:          []corev1.EnvFromSource{{Prefix: "x"}},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}}, NodeSelector: map[string]string{"pool": "small"}, PriorityClassName: "high",
		Tolerations: []corev1.Toleration{{Key: "mine"}, {Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(5))}},
	}
	before := cluster.DeepCopy()
	set := desired.StoreSet(cluster)
	template := set.Spec.Template
	if !reflect.DeepEqual(template.Labels, naming.StoreLabels("demo")) || template.Annotations != nil || template.Spec.ServiceAccountName != "" {
		t.Errorf("it has more of Ray's pods: %+v, %s", template.ObjectMeta, template.Spec.ServiceAccountName)
	}
	if container := template.Spec.Containers[0]; len(container.Env) != 1 || container.EnvFrom != nil {
		t.Errorf("it has the user's variables: %+v", container.Env)
	}
	checkAway(t, template.Spec.Tolerations, 3, map[string]int64{corev1.TaintNodeUnreachable: 5, corev1.TaintNodeNotReady: 60})
	if spec := template.Spec; spec.NodeSelector["pool"] != "small" || spec.PriorityClassName != "high" || !slices.Equal(spec.ImagePullSecrets, cluster.Spec.PodDefaults.ImagePullSecrets) {
		t.Errorf("it runs elsewhere: %+v", spec)
	}
	template.Spec.NodeSelector["pool"], template.Spec.Tolerations[0].Key, template.Spec.ImagePullSecrets[0].Name = "x", "x", "x"
	*template.Spec.Tolerations[1].TolerationSeconds = 9
	if !reflect.DeepEqual(before, cluster) {
		t.Error("what is built shares memory with the spec")
	}
}

// checkAway asserts how many seconds a pod stays on a lost node, by the node's taint.
func checkAway(t *testing.T, tolerations []corev1.Toleration, count int, want map[string]int64) {
	t.Helper()
	away := map[string]int64{}
	for _, toleration := range tolerations {
		if toleration.TolerationSeconds != nil {
			away[toleration.Key] = *toleration.TolerationSeconds
		}
	}
	if len(tolerations) != count || !reflect.DeepEqual(away, want) {
		t.Errorf("it stays on a lost node for %v, want %v", away, want)
	}
}

// TestBuildingAStoreIsAFunction of the spec, which it shares nothing with.
func TestBuildingAStoreIsAFunction(t *testing.T) {
	build := func() *v1beta1.ComputeCluster {
		return managed(func(m *v1beta1.ManagedRedis) {
			m.Size, m.Storage, m.StorageClassName = testkit.Resources("cpu", "1", "memory", "1Gi"), storageOf("2Gi"), new("fast")
		})
	}
	cluster, before := build(), build()
	if !reflect.DeepEqual(desired.StoreSet(cluster), desired.StoreSet(cluster)) {
		t.Error("two builds differ")
	}
	container, claim := redis(t, cluster), desired.StoreClaim(cluster)
	delete(container.Resources.Requests, "cpu")
	delete(container.Resources.Limits, "memory")
	delete(claim.Spec.Resources.Requests, "storage")
	*claim.Spec.StorageClassName = "x"
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	embedded := stored(v1beta1.ControlStore{Embedded: &v1beta1.EmbeddedStore{AccessModes: modes}})
	desired.StoreClaim(embedded).Spec.AccessModes[0] = "x"
	if !reflect.DeepEqual(before, cluster) || modes[0] != corev1.ReadWriteMany {
		t.Error("what is built shares memory with the spec")
	}
}

// keptRedisIntent is of version 1: if it changed, a new operator would call every Redis out
// of date.
const keptRedisIntent = "v1-kbuqzazv7afb2"

// TestIntentOfRedis: the user's words about its pod are in it, and no default of ours.
func TestIntentOfRedis(t *testing.T) {
	intent := func(cluster *v1beta1.ComputeCluster) string {
		return desired.StoreSet(cluster).Annotations[v1beta1.AnnotationIntent]
	}
	was := intent(managed())
	for name, test := range map[string]struct {
		edit    func(*v1beta1.ComputeCluster)
		changes bool
	}{
		"image": {func(c *v1beta1.ComputeCluster) { c.Spec.ControlStore.ManagedRedis.Image = "redis:8" }, true},
		"size": {func(c *v1beta1.ComputeCluster) {
			c.Spec.ControlStore.ManagedRedis.Size = testkit.Resources("cpu", "1")
		}, true},
		"place": {func(c *v1beta1.ComputeCluster) {
			c.Spec.PodDefaults = &v1beta1.PodDefaults{NodeSelector: map[string]string{"a": "b"}}
		}, true},
		"labels": {func(c *v1beta1.ComputeCluster) {
			c.Spec.PodDefaults = &v1beta1.PodDefaults{Labels: map[string]string{"a": "b"}, Tolerations: []corev1.Toleration{}}
		}, false},
		"volume": {func(c *v1beta1.ComputeCluster) {
			c.Spec.ControlStore.ManagedRedis.Retain, c.Spec.ControlStore.ManagedRedis.Storage = new(true), storageOf("2Gi")
		}, false},
	} {
		cluster := managed()
		test.edit(cluster)
		if changed := intent(cluster) != was; changed != test.changes {
			t.Errorf("%s changes the intent: %v, want %v", name, changed, test.changes)
		}
	}
	if was != keptRedisIntent {
		t.Errorf("intent %s, want %s: give a changed form a new version", was, keptRedisIntent)
	}
}

// TestRedisNeedsNoReadyPod: its address is published while it reads its data, and a broken
// pod is replaced though it never was ready.
func TestRedisNeedsNoReadyPod(t *testing.T) {
	set, service := desired.StoreSet(managed()), desired.StoreService(managed())
	if !service.Spec.PublishNotReadyAddresses || service.Spec.ClusterIP == corev1.ClusterIPNone || set.Spec.PodManagementPolicy != "Parallel" || *set.Spec.Replicas != 1 {
		t.Errorf("%+v, %s", service.Spec, set.Spec.PodManagementPolicy)
	}
	if !metav1.IsControlledBy(set, managed()) {
		t.Error("the StatefulSet is not owned")
	}
}
