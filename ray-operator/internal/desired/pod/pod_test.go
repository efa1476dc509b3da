package pod_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

func worker(cluster *v1beta1.ComputeCluster) *corev1.Pod {
	return pod.Worker(cluster, &cluster.Spec.WorkerGroups[0], 1, 2)
}

// sized says everything about a group that is not a template.
func sized() v1beta1.WorkerGroup {
	group := testkit.Sized(testkit.Group("gpu", 1), "cpu", "3500m", "memory", "16Gi", "nvidia.com/gpu", "2", "nvidia.com/mig-1g.5gb", "1")
	group.Image = "example.com/ray:gpu"
	group.Labels = map[string]string{"market": "spot", "accelerator": "a100"}
	group.RayResources = map[string]resource.Quantity{"CPU": resource.MustParse("3"), "reader": resource.MustParse("500m")}
	group.RayStartParams = map[string]string{"min-worker-port": "11000", "enable-resource-isolation": "", "temp-dir": "/tmp/$(HOME)"}
	return group
}

// templated has a template with a sidecar, variables and probes of its own.
func templated() v1beta1.WorkerGroup {
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
	group.Template.Spec.TerminationGracePeriodSeconds = new(int64(120))
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
	testkit.Golden(t, "worker-defaulted", worker(defaulted()))
	testkit.Golden(t, "head-defaulted", pod.Head(defaulted(), 1))
	testkit.Golden(t, "worker-of-a-slice", pod.Worker(sliced(), &sliced().Spec.WorkerGroups[0], 6, 2))
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

// ray is the Ray container of a pod.
func ray(t *testing.T, of *corev1.Pod) *corev1.Container {
	t.Helper()
	i := slices.IndexFunc(of.Spec.Containers, func(c corev1.Container) bool { return c.Name == v1beta1.ContainerRay })
	if i < 0 {
		t.Fatalf("%s has no container named ray", of.Name)
	}
	return &of.Spec.Containers[i]
}

// argument is the value of an option of "ray start", empty where it is not there.
func argument(t *testing.T, of *corev1.Pod, name string) string {
	t.Helper()
	for _, arg := range ray(t, of).Args {
		if value, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
			return value
		}
	}
	return ""
}

// variables are the Ray container's variables by name; a variable given twice fails
// the test.
func variables(t *testing.T, of *corev1.Pod) map[string]string {
	t.Helper()
	values := map[string]string{}
	for _, variable := range ray(t, of).Env {
		if _, twice := values[variable.Name]; twice {
			t.Errorf("%s is given twice", variable.Name)
		}
		values[variable.Name] = variable.Value
		if from := variable.ValueFrom; from != nil && from.FieldRef != nil {
			values[variable.Name] = from.FieldRef.FieldPath
		}
	}
	return values
}

// TestOwnerIsTheCluster: deletion and adoption both hang on it.
func TestOwnerIsTheCluster(t *testing.T) {
	cluster := testkit.Cluster("demo", testkit.Group("cpu", 1))
	for _, built := range []*corev1.Pod{pod.Head(cluster, 1), worker(cluster)} {
		if !metav1.IsControlledBy(built, cluster) {
			t.Errorf("%s is not owned", built.Name)
		}
	}
	if !slices.ContainsFunc(pod.Head(cluster, 1).Spec.Containers, func(c corev1.Container) bool { return c.Name == v1beta1.ContainerRay }) {
		t.Error("the head has no ray container")
	}
}

// TestFormerPodsAreUpToDate: pods that the operator of the first commit of v1beta1 built, kept here as they were, carry the
// names and intents that today's operator gives them, so that it neither makes a twin of one nor calls it out of date. These
// files are never written again.
func TestFormerPodsAreUpToDate(t *testing.T) {
	for file, today := range map[string]*corev1.Pod{
		"head":                pod.Head(testkit.Cluster("demo", testkit.Group("cpu", 1)), 1),
		"head-without-groups": pod.Head(testkit.Cluster("demo"), 1),
		"worker":              worker(testkit.Cluster("demo", testkit.Group("cpu", 1))),
		"worker-sized":        worker(testkit.Cluster("demo", sized())),
		"worker-templated":    worker(testkit.Cluster("demo", templated())),
	} {
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata", "former", file+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			var former corev1.Pod
			if err := yaml.UnmarshalStrict(text, &former); err != nil {
				t.Fatal(err)
			}
			if was, is := former.Annotations[v1beta1.AnnotationIntent], today.Annotations[v1beta1.AnnotationIntent]; was != is || was == "" {
				t.Errorf("intent %q, was %q", is, was)
			}
			if was, is := former.Annotations[v1beta1.AnnotationShape], today.Annotations[v1beta1.AnnotationShape]; was != is {
				t.Errorf("intent of the shape %q, was %q", is, was)
			}
			if former.Name != today.Name || !reflect.DeepEqual(former.Labels, today.Labels) {
				t.Errorf("%s %v, was %s %v", today.Name, today.Labels, former.Name, former.Labels)
			}
		})
	}
}
