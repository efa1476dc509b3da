package pod_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

func worker(cluster *v1alpha1.ComputeCluster) *corev1.Pod {
	return pod.Worker(cluster, &cluster.Spec.WorkerGroups[0], 1, 2)
}

// sized says everything about a group that is not a template.
func sized() v1alpha1.WorkerGroup {
	group := testkit.Sized(testkit.Group("gpu", 1), "cpu", "3500m", "memory", "16Gi", "nvidia.com/gpu", "2", "nvidia.com/mig-1g.5gb", "1")
	group.Image = "example.com/ray:gpu"
	group.Labels = map[string]string{"market": "spot", "accelerator": "a100"}
	group.RayResources = map[string]resource.Quantity{"CPU": resource.MustParse("3"), "reader": resource.MustParse("500m")}
	group.RayStartParams = map[string]string{"min-worker-port": "11000", "enable-resource-isolation": "", "temp-dir": "/tmp/$(HOME)"}
	return group
}

// templated has a template with a sidecar, variables and probes of its own.
func templated() v1alpha1.WorkerGroup {
	group := testkit.Group("own", 1)
	group.Template = testkit.Template(
		corev1.Container{Name: "sidecar", Image: "example.com/sidecar:1"},
		corev1.Container{
			Name: "ray", Image: "example.com/ray:own",
			Env:           []corev1.EnvVar{{Name: "RAY_USAGE_STATS_ENABLED", Value: "1"}, {Name: "MINE", Value: "yes"}},
			Resources:     corev1.ResourceRequirements{Limits: testkit.Resources("cpu", "2", "memory", "8Gi", "amd.com/gpu", "1")},
			LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}},
			Ports:         []corev1.ContainerPort{{Name: "metrics", ContainerPort: 9090}},
			VolumeMounts:  []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
		},
	)
	group.Template.Labels = map[string]string{"team": "a"}
	group.Template.Annotations = map[string]string{"example.com/owner": "ana"}
	grace := int64(120)
	group.Template.Spec.TerminationGracePeriodSeconds = &grace
	group.Template.Spec.ServiceAccountName = "reader"
	group.Template.Spec.NodeSelector = map[string]string{"pool": "big"}
	group.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	return group
}

func TestGolden(t *testing.T) {
	testkit.Golden(t, "head", pod.Head(testkit.Cluster("demo", testkit.Group("cpu", 1)), 1))
	testkit.Golden(t, "head-without-groups", pod.Head(testkit.Cluster("demo"), 1))
	testkit.Golden(t, "worker", worker(testkit.Cluster("demo", testkit.Group("cpu", 1))))
	testkit.Golden(t, "worker-sized", worker(testkit.Cluster("demo", sized())))
	testkit.Golden(t, "worker-templated", worker(testkit.Cluster("demo", templated())))
}

// TestBuildIsAFunction: the same spec gives the same pod, and is not changed by it.
func TestBuildIsAFunction(t *testing.T) {
	cluster := testkit.Cluster("demo", templated())
	before := cluster.DeepCopy()
	one, two := worker(cluster), worker(cluster)
	if !reflect.DeepEqual(one, two) {
		t.Error("two builds differ")
	}
	if !reflect.DeepEqual(before, cluster) {
		t.Error("building a pod changed the spec")
	}
}

func argument(t *testing.T, of *corev1.Pod, name string) string {
	t.Helper()
	for _, container := range of.Spec.Containers {
		if container.Name != v1alpha1.ContainerRay {
			continue
		}
		for _, arg := range container.Args {
			if value, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
				return value
			}
		}
	}
	return ""
}

// TestRayIsToldOfThePod: what Ray counts follows from what the container gets.
func TestRayIsToldOfThePod(t *testing.T) {
	for name, test := range map[string]struct {
		resources            corev1.ResourceRequirements
		cpus, gpus, together string
	}{
		"request only":          {corev1.ResourceRequirements{Requests: testkit.Resources("cpu", "1500m", "memory", "1Gi")}, "2", "0", "1073741824"},
		"limit over request":    {corev1.ResourceRequirements{Requests: testkit.Resources("cpu", "1"), Limits: testkit.Resources("cpu", "4")}, "4", "0", ""},
		"below one":             {corev1.ResourceRequirements{Requests: testkit.Resources("cpu", "100m")}, "1", "0", ""},
		"devices of two makers": {corev1.ResourceRequirements{Limits: testkit.Resources("nvidia.com/gpu", "2", "amd.com/gpu", "1")}, "", "3", ""},
		"slices and shares":     {corev1.ResourceRequirements{Limits: testkit.Resources("nvidia.com/mig-1g.5gb", "2", "nvidia.com/gpu.shared", "1")}, "", "3", ""},
		"no device of ours":     {corev1.ResourceRequirements{Limits: testkit.Resources("example.com/fpga", "2")}, "", "0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			group := testkit.Group("g", 1)
			group.Template = testkit.Template(corev1.Container{Name: "ray", Resources: test.resources})
			built := worker(testkit.Cluster("demo", group))
			if cpus := argument(t, built, "num-cpus"); cpus != test.cpus {
				t.Errorf("num-cpus %q, want %q", cpus, test.cpus)
			}
			if gpus := argument(t, built, "num-gpus"); gpus != test.gpus {
				t.Errorf("num-gpus %q, want %q", gpus, test.gpus)
			}
			var store, heap int64
			_, _ = fmt.Sscan(argument(t, built, "object-store-memory"), &store)
			_, _ = fmt.Sscan(argument(t, built, "memory"), &heap)
			if test.together != "" && fmt.Sprint(store+heap) != test.together {
				t.Errorf("object store %d and memory %d are not %s together", store, heap, test.together)
			}
		})
	}
}

func TestIntent(t *testing.T) {
	base := func() *v1alpha1.ComputeCluster { return testkit.Cluster("demo", sized()) }
	was, wasHead := pod.Intent(base(), "gpu"), pod.Intent(base(), "")
	for name, test := range map[string]struct {
		edit          func(*v1alpha1.ComputeCluster)
		changes, head bool
	}{
		"replicas": {edit: func(c *v1alpha1.ComputeCluster) { *c.Spec.WorkerGroups[0].Replicas = 9 }},
		"another group": {edit: func(c *v1alpha1.ComputeCluster) {
			c.Spec.WorkerGroups = append(c.Spec.WorkerGroups, testkit.Group("x", 1))
		}},
		"labels of ours":  {edit: func(c *v1alpha1.ComputeCluster) { c.Labels = map[string]string{"a": "b"} }},
		"cluster's image": {edit: func(c *v1alpha1.ComputeCluster) { c.Spec.Image = "other" }, head: true},
		"group's image":   {edit: func(c *v1alpha1.ComputeCluster) { c.Spec.WorkerGroups[0].Image = "other" }, changes: true},
		"version":         {edit: func(c *v1alpha1.ComputeCluster) { c.Spec.RayVersion = "2.59.0" }, changes: true, head: true},
		"pull policy":     {edit: func(c *v1alpha1.ComputeCluster) { c.Spec.ImagePullPolicy = "Always" }, changes: true, head: true},
		"size":            {edit: func(c *v1alpha1.ComputeCluster) { c.Spec.WorkerGroups[0].Size["cpu"] = resource.MustParse("9") }, changes: true},
		"size, said alike": {edit: func(c *v1alpha1.ComputeCluster) {
			c.Spec.WorkerGroups[0].Size["cpu"] = resource.MustParse("3.5")
		}},
		"rayResources":   {edit: func(c *v1alpha1.ComputeCluster) { delete(c.Spec.WorkerGroups[0].RayResources, "CPU") }, changes: true},
		"rayStartParams": {edit: func(c *v1alpha1.ComputeCluster) { c.Spec.WorkerGroups[0].RayStartParams["a"] = "b" }, changes: true},
		"labels":         {edit: func(c *v1alpha1.ComputeCluster) { c.Spec.WorkerGroups[0].Labels["market"] = "x" }, changes: true},
		"template":       {edit: func(c *v1alpha1.ComputeCluster) { c.Spec.WorkerGroups[0].Template = testkit.Template() }, changes: true},
		"head's size":    {edit: func(c *v1alpha1.ComputeCluster) { c.Spec.Head.Size = testkit.Resources("cpu", "2") }, head: true},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := base()
			test.edit(cluster)
			if changed := pod.Intent(cluster, "gpu") != was; changed != test.changes {
				t.Errorf("the group's intent changed: %v, want %v", changed, test.changes)
			}
			if changed := pod.Intent(cluster, "") != wasHead; changed != test.head {
				t.Errorf("the head's intent changed: %v, want %v", changed, test.head)
			}
		})
	}
	if intent := pod.Intent(base(), "no-such-group"); intent != "" {
		t.Errorf("a group that is not there has the intent %q", intent)
	}
}

// TestIntentIsKept holds the hash of version 1: if it changed, a new operator would
// call every running pod out of date.
func TestIntentIsKept(t *testing.T) {
	if intent := pod.Intent(testkit.Cluster("demo", sized()), "gpu"); intent != keptIntent {
		t.Errorf("intent %s, want %s: give a changed form a new version", intent, keptIntent)
	}
}

// TestOwnerIsTheCluster: deletion and adoption both hang on it.
func TestOwnerIsTheCluster(t *testing.T) {
	cluster := testkit.Cluster("demo", testkit.Group("cpu", 1))
	for _, built := range []*corev1.Pod{pod.Head(cluster, 1), worker(cluster)} {
		if !metav1.IsControlledBy(built, cluster) {
			t.Errorf("%s is not owned", built.Name)
		}
	}
	if !slices.ContainsFunc(pod.Head(cluster, 1).Spec.Containers, func(c corev1.Container) bool { return c.Name == v1alpha1.ContainerRay }) {
		t.Error("the head has no ray container")
	}
}

const keptIntent = "v1-jkp4hgba6a75n"
