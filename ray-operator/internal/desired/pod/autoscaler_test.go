package pod_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

var operatorImage = pod.OperatorImage{Image: "example.com/heliostat:1", PullPolicy: corev1.PullIfNotPresent}

// autoscaled is a cluster with autoscaling, and what the edits make of it.
func autoscaled(edits ...func(*v1beta1.ComputeCluster)) *v1beta1.ComputeCluster {
	cluster := testkit.Cluster("demo", testkit.Group("cpu", 1))
	cluster.Spec.Autoscaling = &v1beta1.Autoscaling{}
	for _, edit := range edits {
		edit(cluster)
	}
	return cluster
}

// scaledHead is the head's pod of a cluster with autoscaling, and the autoscaler in it.
func scaledHead(t *testing.T, cluster *v1beta1.ComputeCluster) (*corev1.Pod, *corev1.Container) {
	t.Helper()
	head := operatorImage.Complete(pod.Head(cluster, 1), cluster)
	if !pod.HasAutoscaler(head) || head.Spec.InitContainers[0].Name != v1beta1.ContainerAutoscaler {
		t.Fatalf("the first of %d init containers is not the autoscaler", len(head.Spec.InitContainers))
	}
	return head, &head.Spec.InitContainers[0]
}

func TestGoldenOfAutoscaling(t *testing.T) {
	head, _ := scaledHead(t, autoscaled())
	testkit.Golden(t, "head-autoscaled", head)
}

// TestTheAutoscalerIsAskedFor: it is there with autoscaling and with an image alone, and in
// no worker.
func TestTheAutoscalerIsAskedFor(t *testing.T) {
	plain, scaled := testkit.Cluster("demo", testkit.Group("cpu", 1)), autoscaled()
	for name, head := range map[string]*corev1.Pod{
		"without autoscaling": operatorImage.Complete(pod.Head(plain, 1), plain), "without an image": pod.OperatorImage{}.Complete(pod.Head(scaled, 1), scaled),
		"a worker": pod.Worker(scaled, &scaled.Spec.WorkerGroups[0], 0, 1),
	} {
		if pod.HasAutoscaler(head) || len(head.Spec.InitContainers) > 0 {
			t.Errorf("%s: an autoscaler", name)
		}
	}
	if was, is := pod.Head(plain, 1), operatorImage.Complete(pod.Head(plain, 1), plain); !reflect.DeepEqual(was, is) {
		t.Error("a head without autoscaling is not what it was")
	}
}

// TestTheAutoscalerIsAsTheUserSays: image, variables and security context, with the rest of what pod security asks for.
func TestTheAutoscalerIsAsTheUserSays(t *testing.T) {
	cluster := autoscaled(func(c *v1beta1.ComputeCluster) {
		c.Spec.Autoscaling.Image, c.Spec.Autoscaling.Env = "mine:1", []corev1.EnvVar{{Name: "GODEBUG", Value: "http2debug=1"}}
		c.Spec.Autoscaling.SecurityContext = &corev1.SecurityContext{RunAsUser: new(int64(1000)), ReadOnlyRootFilesystem: new(false)}
	})
	_, container := scaledHead(t, cluster)
	want := &corev1.SecurityContext{
		RunAsUser: new(int64(1000)), RunAsNonRoot: new(true), AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(false),
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if diff := cmp.Diff(want, container.SecurityContext); diff != "" || container.Image != "mine:1" {
		t.Errorf("image %s, security context %s", container.Image, diff)
	}
	if env := container.Env; len(env) != 2 || env[0].Name != naming.VariablePodUID || env[1].Value != "http2debug=1" {
		t.Errorf("variables %+v", env)
	}
	if head := (pod.OperatorImage{}).Complete(pod.Head(cluster, 1), cluster); !pod.HasAutoscaler(head) {
		t.Error("without an image of the operator the user's own is not taken")
	}
}

// TestTheAutoscalerComesFirst: before the user's init containers, which may take long and
// need nothing of it.
func TestTheAutoscalerComesFirst(t *testing.T) {
	cluster := autoscaled(func(c *v1beta1.ComputeCluster) {
		c.Spec.Head.Template = testkit.Template()
		c.Spec.Head.Template.Spec.InitContainers = []corev1.Container{{Name: "mine", Image: "mine"}}
	})
	if head, _ := scaledHead(t, cluster); len(head.Spec.InitContainers) != 2 || head.Spec.InitContainers[1].Name != "mine" {
		t.Errorf("init containers %+v", head.Spec.InitContainers)
	}
	if len(cluster.Spec.Head.Template.Spec.InitContainers) != 1 {
		t.Error("the user's template was changed")
	}
}

// TestTheAutoscalerIsApart: what the user says of pods is said of Ray's container, and the
// autoscaler is restricted whatever the pod may do.
func TestTheAutoscalerIsApart(t *testing.T) {
	cluster := autoscaled(func(c *v1beta1.ComputeCluster) {
		c.Spec.PodDefaults = defaulted().Spec.PodDefaults
		c.Spec.ImagePullPolicy = corev1.PullNever
		c.Spec.Head.Template = testkit.Template()
		c.Spec.Head.Template.Spec.SecurityContext = &corev1.PodSecurityContext{
			RunAsUser: new(int64(0)), RunAsNonRoot: new(false), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined},
		}
	})
	_, container := scaledHead(t, cluster)
	if len(container.Env) != 1 || container.Env[0].Name != "POD_UID" || len(container.EnvFrom) > 0 || container.Image != operatorImage.Image || container.ImagePullPolicy != corev1.PullIfNotPresent {
		t.Errorf("it has the user's variables or image: %+v", container)
	}
	nobody := int64(65532)
	want := &corev1.SecurityContext{
		RunAsUser: &nobody, RunAsNonRoot: new(true), AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if diff := cmp.Diff(want, container.SecurityContext); diff != "" {
		t.Errorf("it is not restricted (- want):\n%s", diff)
	}
	for user, want := range map[int64]*int64{0: &nobody, 1000: nil} {
		cluster.Spec.Head.Template.Spec.SecurityContext.RunAsUser = &user
		if _, container := scaledHead(t, cluster); !reflect.DeepEqual(container.SecurityContext.RunAsUser, want) {
			t.Errorf("in a pod that runs as %d it runs as %v", user, container.SecurityContext.RunAsUser)
		}
	}
}

// TestTheAutoscalersToken is the one file that Ray's container has, where there is one.
func TestTheAutoscalersToken(t *testing.T) {
	head, container := scaledHead(t, autoscaled())
	mounts := ray(t, head).VolumeMounts
	if !reflect.DeepEqual(container.VolumeMounts, mounts[len(mounts)-1:]) || !slices.Contains(container.Args, "--token-file="+mounts[len(mounts)-1].MountPath) {
		t.Errorf("mounts %+v and arguments %v beside Ray's %+v", container.VolumeMounts, container.Args, mounts)
	}
	_, container = scaledHead(t, autoscaled(func(c *v1beta1.ComputeCluster) {
		c.Spec.Authentication = &v1beta1.Authentication{Mode: v1beta1.AuthenticationDisabled}
	}))
	if len(container.VolumeMounts) > 0 || slices.ContainsFunc(container.Args, func(arg string) bool { return strings.Contains(arg, "token") }) {
		t.Errorf("mounts %+v and arguments %v without a token", container.VolumeMounts, container.Args)
	}
}

// TestTheAutoscalersSize: memory is request and limit, CPU a request.
func TestTheAutoscalersSize(t *testing.T) {
	for name, test := range map[string]struct{ size, requests, limits corev1.ResourceList }{
		"by default": {nil, testkit.Resources("cpu", "50m", "memory", "64Mi"), testkit.Resources("memory", "64Mi")},
		"one said":   {testkit.Resources("cpu", "1"), testkit.Resources("cpu", "1", "memory", "64Mi"), testkit.Resources("memory", "64Mi")},
		"both said":  {testkit.Resources("cpu", "2", "memory", "1Gi"), testkit.Resources("cpu", "2", "memory", "1Gi"), testkit.Resources("memory", "1Gi")},
	} {
		_, container := scaledHead(t, autoscaled(func(c *v1beta1.ComputeCluster) { c.Spec.Autoscaling.Size = test.size }))
		if have := container.Resources; !reflect.DeepEqual(have.Requests, test.requests) || !reflect.DeepEqual(have.Limits, test.limits) {
			t.Errorf("%s: %+v", name, have)
		}
	}
}
