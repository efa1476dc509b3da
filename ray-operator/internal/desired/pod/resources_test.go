package pod_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// TestRayIsToldOfThePod: what Ray counts follows from what the container gets.
func TestRayIsToldOfThePod(t *testing.T) {
	for name, test := range map[string]struct {
		resources            corev1.ResourceRequirements
		cpus, gpus, together string
	}{
		"request only":               {corev1.ResourceRequirements{Requests: testkit.Resources("cpu", "1500m", "memory", "1Gi")}, "2", "0", "1073741824"},
		"limit over request":         {corev1.ResourceRequirements{Requests: testkit.Resources("cpu", "1"), Limits: testkit.Resources("cpu", "4")}, "4", "0", ""},
		"below one":                  {corev1.ResourceRequirements{Requests: testkit.Resources("cpu", "100m")}, "1", "0", ""},
		"devices of two makers":      {corev1.ResourceRequirements{Limits: testkit.Resources("nvidia.com/gpu", "2", "amd.com/gpu", "1")}, "", "3", ""},
		"slices and shares":          {corev1.ResourceRequirements{Limits: testkit.Resources("nvidia.com/mig-1g.5gb", "2", "nvidia.com/gpu.shared", "1")}, "", "3", ""},
		"a device that may be a GPU": {corev1.ResourceRequirements{Limits: testkit.Resources("volcano.sh/vgpu-number", "1", "volcano.sh/vgpu-memory", "4000")}, "", "", ""},
		"none of such a device":      {corev1.ResourceRequirements{Limits: testkit.Resources("example.com/fpga", "0")}, "", "0", ""},
		"a device without GPUs":      {corev1.ResourceRequirements{Limits: testkit.Resources("rdma/hca", "1", "google.com/tpu", "4")}, "", "0", ""},
		"limits alone":               {corev1.ResourceRequirements{Limits: testkit.Resources("cpu", "2", "memory", "1Gi")}, "2", "0", "1073741824"},
		"allocated later":            {corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpus"}}}, "1", "", "2147483648"},
		"some allocated later": {corev1.ResourceRequirements{
			Limits: testkit.Resources("nvidia.com/gpu", "1"), Claims: []corev1.ResourceClaim{{Name: "gpus"}},
		}, "", "1", ""},
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

// TestGPUs_AreLeftToRayWhereTheyMayBe: "none" is said only of pods that certainly have none.
func TestGPUs_AreLeftToRayWhereTheyMayBe(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(*corev1.PodTemplateSpec)
		gpus string
	}{
		"nothing":                    {func(*corev1.PodTemplateSpec) {}, "0"},
		"a share of KAI":             {func(t *corev1.PodTemplateSpec) { t.Annotations = map[string]string{"gpu-fraction": "0.5"} }, ""},
		"memory of KAI":              {func(t *corev1.PodTemplateSpec) { t.Annotations = map[string]string{"gpu-memory": "2000"} }, ""},
		"another annotation":         {func(t *corev1.PodTemplateSpec) { t.Annotations = map[string]string{"team": "a"} }, "0"},
		"NVIDIA's runtime class":     {func(t *corev1.PodTemplateSpec) { t.Spec.RuntimeClassName = new("nvidia") }, ""},
		"another runtime class":      {func(t *corev1.PodTemplateSpec) { t.Spec.RuntimeClassName = new("gvisor") }, "0"},
		"all GPUs of the machine":    {visible("all"), ""},
		"no GPU of the machine":      {visible("none"), "0"},
		"no runtime for GPUs at all": {visible("void"), "0"},
	} {
		group := testkit.Group("g", 1)
		group.Template = testkit.Template(corev1.Container{Name: "ray"})
		test.edit(group.Template)
		cluster := testkit.Cluster("demo", group)
		if gpus := argument(t, worker(cluster), "num-gpus"); gpus != test.gpus {
			t.Errorf("%s: num-gpus %q, want %q", name, gpus, test.gpus)
		}
		if detects := pod.DetectsGPUs(cluster, &cluster.Spec.WorkerGroups[0]); detects != (test.gpus == "") {
			t.Errorf("%s: that Ray detects GPUs is %v", name, detects)
		}
		cluster.Spec.WorkerGroups[0].RayResources = map[string]resource.Quantity{"GPU": resource.MustParse("1")}
		if gpus := argument(t, worker(cluster), "num-gpus"); gpus != "1" || pod.DetectsGPUs(cluster, &cluster.Spec.WorkerGroups[0]) {
			t.Errorf("%s: with rayResources num-gpus is %q", name, gpus)
		}
	}
	shared := testkit.Cluster("demo", testkit.Group("g", 1))
	shared.Spec.PodDefaults = &v1beta1.PodDefaults{Annotations: map[string]string{"gpu-fraction": "0.5"}}
	if gpus := argument(t, worker(shared), "num-gpus"); gpus != "" || !pod.DetectsGPUs(shared, &shared.Spec.WorkerGroups[0]) {
		t.Errorf("with a share of podDefaults num-gpus is %q", gpus)
	}
}

// visible gives Ray's container NVIDIA's variable.
func visible(value string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "NVIDIA_VISIBLE_DEVICES", Value: value}}
	}
}

// resources is what Ray is told in --resources.
func resources(t *testing.T, of *corev1.Pod) map[string]float64 {
	t.Helper()
	text := argument(t, of, "resources")
	if text == "" {
		return nil
	}
	var counts map[string]float64
	if err := json.Unmarshal([]byte(text), &counts); err != nil {
		t.Fatal(err)
	}
	return counts
}

// TestAccelerators: which resource of Ray a device counts as.
func TestAccelerators(t *testing.T) {
	for name, want := range map[corev1.ResourceName]string{
		"nvidia.com/gpu":                   "GPU",
		"nvidia.com/gpu.shared":            "GPU",
		"nvidia.com/gpu.memory":            "",
		"nvidia.com/mig-1g.5gb":            "GPU",
		"nvidia.com/mig-1g.10gb.me":        "GPU",
		"nvidia.com/mig-1g.5gb.shared":     "GPU",
		"nvidia.com/mig-1g.10gb.me.shared": "GPU",
		"nvidia.com/mig-7g.80gb":           "GPU",
		"nvidia.com/mig-":                  "",
		"example.nvidia.com/gpu":           "",
		"nvidia-com/gpu":                   "",
		"amd.com/gpu":                      "GPU",
		"amd.com/cpx_nps4":                 "GPU",
		"amd.com/gpu.x":                    "",
		"gpu.intel.com/i915":               "GPU",
		"gpu.intel.com/xe":                 "GPU",
		"gpu.intel.com/xe_monitoring":      "",
		"gpu.intel.com/millicores":         "",
		"metax-tech.com/gpu":               "GPU",
		"metax-tech.com/vmemory":           "",
		"google.com/tpu":                   "TPU",
		"google.com/tpus":                  "",
		"aws.amazon.com/neuroncore":        "neuron_cores",
		"aws.amazon.com/neuron":            "",
		"habana.ai/gaudi":                  "HPU",
		"habana.ai/gaudi2":                 "",
		"huawei.com/Ascend910":             "NPU",
		"huawei.com/Ascend310P":            "NPU",
		"huawei.com/Ascend310P-VPro":       "NPU",
		"huawei.com/Ascend310P-2c.1cpu":    "NPU",
		"huawei.com/Ascend910-16c":         "NPU",
		"huawei.com/Ascend910B4-memory":    "",
		"rebellions.ai/ATOM":               "RBLN",
		"furiosa.ai/rngd-2core.12gb":       "FURIOSA",
		"example.com/fpga":                 "",
		"cpu":                              "",
		"memory":                           "",
	} {
		if have := naming.Accelerator(name); have != want {
			t.Errorf("%s counts as %q, want %q", name, have, want)
		}
		if have := v1beta1.IsGPU(name); have != (want == "GPU") {
			t.Errorf("IsGPU(%s) is %v", name, have)
		}
	}
}

// TestDevicesAreResources: each kind of device by its own name, all kinds of an
// accelerator together, and what is no device not at all.
func TestDevicesAreResources(t *testing.T) {
	for name, test := range map[string]struct {
		limits corev1.ResourceList
		own    map[string]resource.Quantity
		gpus   string
		want   map[string]float64
	}{
		"none": {limits: testkit.Resources("cpu", "1", "memory", "1Gi", "hugepages-2Mi", "4Mi", "kubernetes.io/batch-cpu", "1", "ephemeral-storage", "1Gi"), gpus: "0"},
		"slices, shares and whole ones": {
			limits: testkit.Resources("nvidia.com/gpu", "1", "nvidia.com/mig-1g.5gb", "2", "nvidia.com/gpu.shared", "3"), gpus: "6",
			want: map[string]float64{"nvidia.com/gpu": 1, "nvidia.com/mig-1g.5gb": 2, "nvidia.com/gpu.shared": 3},
		},
		"accelerators of two kinds": {
			limits: testkit.Resources("google.com/tpu", "4", "habana.ai/gaudi", "8"), gpus: "0",
			want: map[string]float64{"google.com/tpu": 4, "TPU": 4, "habana.ai/gaudi": 8, "HPU": 8},
		},
		"two kinds of one accelerator": {
			limits: testkit.Resources("huawei.com/Ascend910", "1", "huawei.com/Ascend310P", "2"), gpus: "0",
			want: map[string]float64{"huawei.com/Ascend910": 1, "huawei.com/Ascend310P": 2, "NPU": 3},
		},
		"one that Ray does not know": {
			limits: testkit.Resources("example.com/fpga", "2"), gpus: "", want: map[string]float64{"example.com/fpga": 2},
		},
		"Neuron devices are left to Ray": {
			limits: testkit.Resources("aws.amazon.com/neuron", "1"), gpus: "0", want: map[string]float64{"aws.amazon.com/neuron": 1},
		},
		"the user's word": {
			limits: testkit.Resources("google.com/tpu", "4"), gpus: "2",
			own:  map[string]resource.Quantity{"TPU": resource.MustParse("8"), "reader": resource.MustParse("1"), "GPU": resource.MustParse("2")},
			want: map[string]float64{"google.com/tpu": 4, "TPU": 8, "reader": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			group := testkit.Group("g", 1)
			group.RayResources = test.own
			group.Template = testkit.Template(corev1.Container{Name: "ray", Resources: corev1.ResourceRequirements{Limits: test.limits}})
			built := worker(testkit.Cluster("demo", group))
			if have := resources(t, built); !reflect.DeepEqual(have, test.want) {
				t.Errorf("resources %v, want %v", have, test.want)
			}
			if have := argument(t, built, "num-gpus"); have != test.gpus {
				t.Errorf("num-gpus %s, want %s", have, test.gpus)
			}
		})
	}
}

// TestHeadTakesNoTasks where there are workers, and all where there are none.
func TestHeadTakesNoTasks(t *testing.T) {
	for name, test := range map[string]struct {
		groups     []v1beta1.WorkerGroup
		own        map[string]resource.Quantity
		cpus, gpus string
		want       map[string]float64
	}{
		"alone":        {cpus: "3", gpus: "1", want: map[string]float64{"nvidia.com/gpu": 1, "google.com/tpu": 4, "TPU": 4}},
		"with workers": {groups: []v1beta1.WorkerGroup{testkit.Group("g", 0)}, cpus: "0", gpus: "0", want: map[string]float64{"nvidia.com/gpu": 0, "google.com/tpu": 0, "TPU": 0}},
		"unless said": {
			groups: []v1beta1.WorkerGroup{testkit.Group("g", 0)}, cpus: "2", gpus: "0",
			own:  map[string]resource.Quantity{"CPU": resource.MustParse("2"), "TPU": resource.MustParse("1")},
			want: map[string]float64{"nvidia.com/gpu": 0, "google.com/tpu": 0, "TPU": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := testkit.Cluster("demo", test.groups...)
			cluster.Spec.Head.Size = testkit.Resources("cpu", "2500m", "nvidia.com/gpu", "1", "google.com/tpu", "4")
			cluster.Spec.Head.RayResources = test.own
			built := pod.Head(cluster, 1)
			if cpus, gpus := argument(t, built, "num-cpus"), argument(t, built, "num-gpus"); cpus != test.cpus || gpus != test.gpus {
				t.Errorf("%s CPUs and %s GPUs, want %s and %s", cpus, gpus, test.cpus, test.gpus)
			}
			if have := resources(t, built); !reflect.DeepEqual(have, test.want) {
				t.Errorf("resources %v, want %v", have, test.want)
			}
			if memory := argument(t, built, "memory"); memory == "" || memory == "0" {
				t.Errorf("memory is %q", memory)
			}
		})
	}
}

// TestHead_SaysThatItTakesNoTasks also where Ray would find out by itself what there is.
func TestHead_SaysThatItTakesNoTasks(t *testing.T) {
	cluster := testkit.Cluster("demo", testkit.Group("g", 1))
	cluster.Spec.Head.Template = testkit.Template(corev1.Container{Name: "ray", Resources: corev1.ResourceRequirements{
		Limits: testkit.Resources("memory", "4Gi"), Claims: []corev1.ResourceClaim{{Name: "gpus"}},
	}})
	head := pod.Head(cluster, 1)
	if cpus, gpus := argument(t, head, "num-cpus"), argument(t, head, "num-gpus"); cpus != "0" || gpus != "0" {
		t.Errorf("%q CPUs and %q GPUs, want 0 of both", cpus, gpus)
	}
}

func TestRayResources_OfRaysOwnAreWhole(t *testing.T) {
	for name, option := range map[string]string{"CPU": "num-cpus", "GPU": "num-gpus", "memory": "memory"} {
		group := testkit.Group("g", 1)
		group.RayResources = map[string]resource.Quantity{name: resource.MustParse("1500m")}
		if have := argument(t, worker(testkit.Cluster("demo", group)), option); have != "2" {
			t.Errorf("of 1500m of %s Ray is told %s, want 2", name, have)
		}
	}
}

// TestMemoryOfEverySize: Ray takes /dev/shm only where all of the object store fits
// into it, and refuses an object store below 75 MiB; and what it counts on is never more
// than the container has.
func TestMemoryOfEverySize(t *testing.T) {
	for size, wantStore := range map[string]int64{
		"256Mi":      80530620,
		"123456789":  75 << 20,
		"1000000007": 300000000,
		"2Gi":        644245080,
		"64Gi":       20615843010,
		"620Gi":      199715979240,
		"621Gi":      200000000000,
		"4Ti":        200000000000,
	} {
		t.Run(size, func(t *testing.T) {
			built := worker(testkit.Cluster("demo", testkit.Sized(testkit.Group("g", 1), "memory", size)))
			store, err := strconv.ParseInt(argument(t, built, "object-store-memory"), 10, 64)
			if err != nil || store != wantStore {
				t.Errorf("object store of %d, %v, want %d", store, err, wantStore)
			}
			heap, err := strconv.ParseInt(argument(t, built, "memory"), 10, 64)
			quantity := resource.MustParse(size)
			if limit := quantity.Value(); err != nil || store+heap != limit {
				t.Errorf("object store %d and memory %d, %v, of %d", store, heap, err, limit)
			}
			shared := built.Spec.Volumes[0].EmptyDir.SizeLimit.Value()
			if shared < store+store/10-110 || shared > store+store/10 || shared > quantity.Value() {
				t.Errorf("/dev/shm of %d for an object store of %d in %s", shared, store, size)
			}
		})
	}
}

// TestObjectStoreMemory: what the user says, with /dev/shm a tenth larger, and the rest of the memory for Ray.
func TestObjectStoreMemory(t *testing.T) {
	group := testkit.Sized(testkit.Group("g", 1), "memory", "4Gi")
	group.ObjectStoreMemory = new(resource.MustParse("1G"))
	built := worker(testkit.Cluster("demo", group))
	if store, memory := argument(t, built, "object-store-memory"), argument(t, built, "memory"); store != "1000000000" || memory != "3294967296" {
		t.Errorf("object store of %s beside memory of %s", store, memory)
	}
	if shared := built.Spec.Volumes[0].EmptyDir.SizeLimit.Value(); shared != 1100000000 {
		t.Errorf("/dev/shm of %d", shared)
	}
}

// TestMemoryTooSmall: what cannot work is not hidden behind a negative number.
func TestMemoryTooSmall(t *testing.T) {
	built := worker(testkit.Cluster("demo", testkit.Sized(testkit.Group("g", 1), "memory", "10Mi")))
	if memory := argument(t, built, "memory"); memory != "0" {
		t.Errorf("memory %s", memory)
	}
}

// TestSizes: size, or the defaults, or the template's own resources as they are.
func TestSizes(t *testing.T) {
	type want struct{ requests, limits corev1.ResourceList }
	for name, test := range map[string]struct {
		size     corev1.ResourceList
		template *corev1.ResourceRequirements
		want     want
	}{
		"nothing":        {want: want{testkit.Resources("cpu", "1", "memory", "2Gi"), testkit.Resources("memory", "2Gi")}},
		"cpu only":       {size: testkit.Resources("cpu", "3"), want: want{testkit.Resources("cpu", "3", "memory", "2Gi"), testkit.Resources("memory", "2Gi")}},
		"with device":    {size: testkit.Resources("nvidia.com/gpu", "1"), want: want{testkit.Resources("cpu", "1", "memory", "2Gi", "nvidia.com/gpu", "1"), testkit.Resources("memory", "2Gi", "nvidia.com/gpu", "1")}},
		"a limit of cpu": {size: testkit.Resources("cpu", "3", "limits.cpu", "4"), want: want{testkit.Resources("cpu", "3", "memory", "2Gi"), testkit.Resources("cpu", "4", "memory", "2Gi")}},
		"a limit of cpu below the default": {
			size: testkit.Resources("limits.cpu", "500m"), want: want{testkit.Resources("cpu", "500m", "memory", "2Gi"), testkit.Resources("cpu", "500m", "memory", "2Gi")},
		},
		"template's requests": {
			template: &corev1.ResourceRequirements{Requests: testkit.Resources("cpu", "7")}, want: want{requests: testkit.Resources("cpu", "7")},
		},
		"template's limits": {
			template: &corev1.ResourceRequirements{Limits: testkit.Resources("memory", "7Gi")}, want: want{limits: testkit.Resources("memory", "7Gi")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			group := testkit.Group("g", 1)
			group.Size = test.size
			if test.template != nil {
				group.Template = testkit.Template(corev1.Container{Name: "ray", Resources: *test.template})
			}
			have := ray(t, worker(testkit.Cluster("demo", group))).Resources
			if !reflect.DeepEqual(have.Requests, test.want.requests) || !reflect.DeepEqual(have.Limits, test.want.limits) {
				t.Errorf("%+v, want %+v", have, test.want)
			}
		})
	}
	if memory := ray(t, pod.Head(testkit.Cluster("demo"), 1)).Resources.Limits.Memory().String(); memory != "4Gi" {
		t.Errorf("a head has %s", memory)
	}
}
