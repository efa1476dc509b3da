package pod_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// encrypted has the pods of a cluster speak TLS.
func encrypted(c *v1beta1.ComputeCluster) {
	c.Spec.Network = &v1beta1.Network{Encryption: v1beta1.Enabled}
}

func onManagedRedis(c *v1beta1.ComputeCluster) {
	c.Spec.ControlStore = &v1beta1.ControlStore{ManagedRedis: &v1beta1.ManagedRedis{}}
}

func TestEncryption_Golden(t *testing.T) {
	cluster := autoscaled(encrypted, onManagedRedis)
	testkit.Golden(t, "head-encrypted", operatorImage.Complete(pod.Head(cluster, 1), cluster))
	testkit.Golden(t, "worker-encrypted", operatorImage.Complete(pod.Worker(cluster, &cluster.Spec.WorkerGroups[0], 0, 1), cluster))
}

// TestEncryptStore_IsOfTheRedisAlone: a head without encryption speaks TLS with its Redis, and has no key.
func TestEncryptStore_IsOfTheRedisAlone(t *testing.T) {
	cluster := autoscaled(onManagedRedis)
	plain := pod.Head(cluster, 1)
	if pod.EncryptsStore(plain) || pod.EncryptsStore(pod.Head(autoscaled(), 1)) {
		t.Error("a head as Head builds it speaks TLS with its Redis")
	}
	head := pod.EncryptStore(operatorImage.Complete(plain, cluster), cluster)
	testkit.Golden(t, "head-store-encrypted", head)
	if !pod.EncryptsStore(head) || pod.IsEncrypted(head) {
		t.Error("the head speaks no TLS with its Redis, or more than that")
	}
	whole := autoscaled(encrypted, onManagedRedis)
	if want := pod.Head(whole, 1); !equality.Semantic.DeepEqual(pod.EncryptStore(pod.Head(whole, 1), whole), want) || !pod.EncryptsStore(want) {
		t.Error("a head with encryption is changed")
	}
}

// TestEncryption_KeepsTheKeyFromJobCode: the authority's key is for the init container alone.
func TestEncryption_KeepsTheKeyFromJobCode(t *testing.T) {
	cluster := autoscaled(encrypted)
	for name, made := range map[string]*corev1.Pod{
		"head": pod.Head(cluster, 1), "worker": pod.Worker(cluster, &cluster.Spec.WorkerGroups[0], 0, 1),
	} {
		made = operatorImage.Complete(made, cluster)
		for _, container := range slices.Concat(made.Spec.InitContainers, made.Spec.Containers) {
			for _, mount := range container.VolumeMounts {
				if mount.Name == naming.VolumeAuthority && container.Name != v1beta1.ContainerCertificates {
					t.Errorf("%s: container %s has the authority", name, container.Name)
				}
				if mount.Name == naming.VolumeCertificates && mount.ReadOnly == (container.Name == v1beta1.ContainerCertificates) {
					t.Errorf("%s: container %s has its certificate read-only: %t", name, container.Name, mount.ReadOnly)
				}
			}
		}
		if !pod.IsEncrypted(made) || pod.DashboardPort(made) != naming.PortDashboardTLS {
			t.Errorf("%s: the pod does not look encrypted", name)
		}
	}
}

func TestEncryption_IsOffByDefault(t *testing.T) {
	cluster := autoscaled()
	head := operatorImage.Complete(pod.Head(cluster, 1), cluster)
	if pod.IsEncrypted(head) || pod.DashboardPort(head) != naming.PortDashboard {
		t.Error("a head without encryption looks encrypted")
	}
	for _, variable := range pod.Ray(head).Env {
		if strings.HasPrefix(variable.Name, "RAY_USE_TLS") || strings.HasPrefix(variable.Name, "RAY_TLS") {
			t.Errorf("%s is set", variable.Name)
		}
	}
}

func TestDashboardURL_FollowsEncryption(t *testing.T) {
	for want, cluster := range map[string]*v1beta1.ComputeCluster{
		"http://demo-head.default.svc:8265": autoscaled(), "https://demo-head.default.svc:8265": autoscaled(encrypted),
	} {
		if have := pod.DashboardURL(cluster); have != want {
			t.Errorf("the dashboard answers at %s, want %s", have, want)
		}
	}
}

func TestCertificates_AreForTheNames(t *testing.T) {
	for want, names := range map[string][]string{"": nil, "--names=a": {"a"}, "--names=a,b": {"a", "b"}} {
		others := func(arg string) bool { return !strings.HasPrefix(arg, "--names") }
		args := operatorImage.Certificates(nil, nil, names...).Args
		if have := strings.Join(slices.DeleteFunc(args, others), " "); have != want {
			t.Errorf("of the names %q the arguments have %q, want %q", names, have, want)
		}
	}
}

func TestEncryption_KnowsTheServicesHead(t *testing.T) {
	own := "demo-head,demo-head.default,demo-head.default.svc"
	for want, cluster := range map[string]*v1beta1.ComputeCluster{
		own: autoscaled(encrypted),
		own + ",text-head,text-head.default,text-head.default.svc": autoscaled(encrypted, func(c *v1beta1.ComputeCluster) {
			c.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "ClusterService", Name: "text", Controller: new(true)}}
		}),
	} {
		head := operatorImage.Complete(pod.Head(cluster, 1), cluster)
		if !slices.ContainsFunc(head.Spec.InitContainers, func(c corev1.Container) bool { return slices.Contains(c.Args, "--names="+want) }) {
			t.Errorf("no certificate is for the names %s", want)
		}
	}
}

func TestEncryption_IsPartOfTheIntent(t *testing.T) {
	plain, cluster := autoscaled(), autoscaled(encrypted)
	disabled := autoscaled(func(c *v1beta1.ComputeCluster) {
		c.Spec.Network = &v1beta1.Network{Encryption: v1beta1.Disabled}
	})
	for _, group := range []string{"", "cpu"} {
		if pod.Intent(plain, group) == pod.Intent(cluster, group) || pod.Intent(plain, group) != pod.Intent(disabled, group) {
			t.Errorf("group %q: the intent does not follow encryption", group)
		}
	}
}

func TestStoreAddress_IsOfTLSWithEncryption(t *testing.T) {
	for want, cluster := range map[string]*v1beta1.ComputeCluster{
		"redis://demo-redis.default.svc:6379":  autoscaled(onManagedRedis),
		"rediss://demo-redis.default.svc:6379": autoscaled(encrypted, onManagedRedis),
	} {
		if have := pod.StoreAddress(cluster); have != want {
			t.Errorf("the address is %s, want %s", have, want)
		}
	}
}
