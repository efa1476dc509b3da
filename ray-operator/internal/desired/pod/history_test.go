package pod_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// archive is an installation that keeps outputs.
func archive() *pod.History {
	return &pod.History{
		Archivers: []string{"archiver-0.archiver.heliostat-system.svc:8444", "archiver-1.archiver.heliostat-system.svc:8444"},
		Authority: "PEM", Redact: []string{`key-\w+`}, Keep: v1beta1.HistoryOutputs, KeepFor: metav1.Duration{Duration: 720 * time.Hour},
	}
}

// archivedHead returns the head's pod of a cluster on an installation that keeps outputs.
func archivedHead(cluster *v1beta1.ComputeCluster) *corev1.Pod {
	laid := archive().Under(cluster)
	return operatorImage.AddCollector(operatorImage.Complete(pod.Head(laid, 1), laid), laid, archive())
}

// archivedWorker does the same for a worker of the first group.
func archivedWorker(cluster *v1beta1.ComputeCluster) *corev1.Pod {
	laid := archive().Under(cluster)
	return operatorImage.AddCollector(operatorImage.Complete(worker(laid), laid), laid, archive())
}

func TestGoldenOfHistory(t *testing.T) {
	testkit.Golden(t, "head-archived", archivedHead(autoscaled()))
	testkit.Golden(t, "worker-archived", archivedWorker(testkit.Cluster("demo", templated())))
}

func TestHistory_WithoutAnArchiveChangesNoPod(t *testing.T) {
	plain := testkit.Cluster("demo", testkit.Group("cpu", 1))
	asking := plain.DeepCopy()
	asking.Spec.History = &v1beta1.History{Keep: v1beta1.HistoryOutputs}
	var none *pod.History
	head := operatorImage.AddCollector(operatorImage.Complete(pod.Head(none.Under(asking), 1), asking), asking, none)
	if diff := cmp.Diff(operatorImage.Complete(pod.Head(plain, 1), plain), head); diff != "" {
		t.Errorf("a cluster that asks for history where none is installed has another head:\n%s", diff)
	}
	if none.Under(plain) != plain {
		t.Error("a cluster without history was copied")
	}
}

func TestHistory_CollectsOnlyWhatIsOfThePodAlone(t *testing.T) {
	volume := func(source corev1.VolumeSource, mount corev1.VolumeMount) func(*v1beta1.ComputeCluster) {
		return func(cluster *v1beta1.ComputeCluster) {
			group := &cluster.Spec.WorkerGroups[0]
			group.Template = testkit.Template(corev1.Container{Name: "ray", VolumeMounts: []corev1.VolumeMount{mount}})
			if mount.Name == "own" {
				group.Template.Spec.Volumes = []corev1.Volume{{Name: "own", VolumeSource: source}}
			}
		}
	}
	empty := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	claim := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "all"}}
	for name, test := range map[string]struct {
		edit   func(*v1beta1.ComputeCluster)
		mounts string // of the collector, without tokens; empty: there is none
	}{
		"volume of ours": {func(*v1beta1.ComputeCluster) {}, "ray-session /tmp/ray"},
		"temp-dir": {func(c *v1beta1.ComputeCluster) {
			c.Spec.WorkerGroups[0].RayStartParams = map[string]string{"temp-dir": "/scratch/ray"}
		}, "ray-session /scratch/ray"},
		"records":                            {func(c *v1beta1.ComputeCluster) { c.Spec.History = &v1beta1.History{Keep: v1beta1.HistoryRecords} }, ""},
		"own volume there":                   {volume(empty, corev1.VolumeMount{Name: "own", MountPath: "/tmp/ray/", SubPath: "a"}), "own /tmp/ray/ a"},
		"own volume above":                   {volume(empty, corev1.VolumeMount{Name: "own", MountPath: "/tmp"}), "own /tmp"},
		"own volume beside":                  {volume(claim, corev1.VolumeMount{Name: "own", MountPath: "/tmp/ray-data"}), "ray-session /tmp/ray"},
		"own volume below":                   {volume(claim, corev1.VolumeMount{Name: "own", MountPath: "/tmp/ray/data"}), "ray-session /tmp/ray"},
		"volume of others there":             {volume(claim, corev1.VolumeMount{Name: "own", MountPath: "/tmp/ray"}), ""},
		"volume of others above":             {volume(claim, corev1.VolumeMount{Name: "own", MountPath: "/tmp"}), ""},
		"own volume, whose path has a field": {volume(empty, corev1.VolumeMount{Name: "own", MountPath: "/tmp/ray", SubPathExpr: "$(POD)"}), ""},
		"claim of the worker": {func(c *v1beta1.ComputeCluster) {
			volume(empty, corev1.VolumeMount{Name: "mine", MountPath: "/tmp/ray"})(c)
			c.Spec.WorkerGroups[0].VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}}
		}, "mine /tmp/ray"},
		"shared volume above": {func(c *v1beta1.ComputeCluster) {
			c.Spec.SharedVolumes = []v1beta1.SharedVolume{{Name: "all", MountPath: "/tmp", ClaimName: "all"}}
		}, ""},
		"processes of the node": {func(c *v1beta1.ComputeCluster) {
			c.Spec.WorkerGroups[0].Template = testkit.Template()
			c.Spec.WorkerGroups[0].Template.Spec.HostPID = true
		}, ""},
		"shared processes": {func(c *v1beta1.ComputeCluster) {
			c.Spec.WorkerGroups[0].Template = testkit.Template()
			c.Spec.WorkerGroups[0].Template.Spec.ShareProcessNamespace = new(true)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := testkit.Cluster("demo", testkit.Group("cpu", 1))
			test.edit(cluster)
			made := archivedWorker(cluster)
			if pod.HasCollector(made) != (test.mounts != "") {
				t.Fatalf("there is a collector: %v", pod.HasCollector(made))
			}
			hasToken := slices.ContainsFunc(made.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == naming.VolumeHistory })
			if hasToken != (test.mounts != "") {
				t.Errorf("the pod has a token for the archive: %v", hasToken)
			}
			if test.mounts == "" {
				return
			}
			last := made.Spec.InitContainers[len(made.Spec.InitContainers)-1]
			files := last.VolumeMounts[1]
			if got := strings.TrimSpace(files.Name + " " + files.MountPath + " " + files.SubPath); got != test.mounts || !files.ReadOnly {
				t.Errorf("the collector mounts %s (read-only: %v), want %s", got, files.ReadOnly, test.mounts)
			}
			if got, want := pod.Requests(archive().Under(cluster), "cpu"), collectorsSum(made); !got.Cpu().Equal(*want.Cpu()) || !got.Memory().Equal(*want.Memory()) {
				t.Errorf("requests of %v are counted as %v", want, got)
			}
		})
	}
}

// collectorsSum is what Ray's container and a collector request together.
func collectorsSum(made *corev1.Pod) corev1.ResourceList {
	ray, collector := pod.Ray(made).Resources.Requests, made.Spec.InitContainers[len(made.Spec.InitContainers)-1].Resources.Requests
	cpu, memory := ray.Cpu().DeepCopy(), ray.Memory().DeepCopy()
	cpu.Add(*collector.Cpu())
	memory.Add(*collector.Memory())
	return corev1.ResourceList{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory}
}

func TestHistory_OfAClusterLiesOverTheInstallations(t *testing.T) {
	cluster := testkit.Cluster("demo")
	cluster.Spec.History = &v1beta1.History{KeepFor: &metav1.Duration{Duration: time.Hour}, Size: testkit.Resources("memory", "64Mi")}
	installed := archive()
	installed.Size = testkit.Resources("cpu", "20m", "memory", "48Mi")
	got := installed.Under(cluster).Spec.History
	want := &v1beta1.History{Keep: v1beta1.HistoryOutputs, KeepFor: &metav1.Duration{Duration: time.Hour}, Size: testkit.Resources("cpu", "20m", "memory", "64Mi")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if cluster.Spec.History.Keep != "" {
		t.Error("the cluster itself was changed")
	}
}

func TestIntent_OfHistory(t *testing.T) {
	plain := testkit.Cluster("demo", testkit.Group("cpu", 1))
	intent := func(history *v1beta1.History) string {
		cluster := plain.DeepCopy()
		cluster.Spec.History = history
		return pod.Intent(cluster, "cpu")
	}
	for name, test := range map[string]struct {
		history *v1beta1.History
		isSame  bool
	}{
		"empty":   {&v1beta1.History{}, true},
		"keepFor": {&v1beta1.History{KeepFor: &metav1.Duration{Duration: time.Hour}}, true},
		"keep":    {&v1beta1.History{Keep: v1beta1.HistoryRecords}, false},
		"size":    {&v1beta1.History{Size: testkit.Resources("memory", "64Mi")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if isSame := intent(test.history) == pod.Intent(plain, "cpu"); isSame != test.isSame {
				t.Errorf("the intent is that of a cluster without history: %v", isSame)
			}
		})
	}
}

// TestStart_KeepsTheLogsOfTheFormerSession runs the start script with a ray that does nothing.
func TestStart_KeepsTheLogsOfTheFormerSession(t *testing.T) {
	directory, programs := t.TempDir(), t.TempDir()
	sessions := filepath.Join(directory, "it's ray")
	for _, name := range []string{
		"session_2026-12-01_08-00-00_000001_1/logs/old", "session_2026-12-01_09-00-00_000001_1/logs/raylet.out",
		"session_2026-12-01_09-00-00_000001_1/runtime_resources/pip/large", "session_2026-12-01_09-00-00_000001_1/.hidden",
	} {
		if err := os.MkdirAll(filepath.Join(sessions, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	outside := filepath.Join(directory, "outside")
	if err := os.MkdirAll(filepath.Join(outside, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"session_latest": "session_2026-12-01_09-00-00_000001_1", "session_2026-12-01_10-00-00_000001_1": outside} {
		if err := os.Symlink(to, filepath.Join(sessions, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(programs, "ray"), []byte("#!/bin/sh\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	cluster := testkit.Cluster("demo")
	cluster.Spec.Head.RayStartParams = map[string]string{"temp-dir": sessions}
	ray := pod.Ray(archivedHead(cluster))
	start := exec.CommandContext(t.Context(), ray.Command[0], append(slices.Clone(ray.Command[1:]), ray.Args...)...)
	start.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "HELIOSTAT_POD_IPS=10.0.0.1", "l=/nowhere")
	if out, err := start.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	left, err := filepath.Glob(filepath.Join(sessions, "session_[0-9]*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(sessions, "session_2026-12-01_09-00-00_000001_1/logs"), filepath.Join(sessions, "session_2026-12-01_10-00-00_000001_1/data")}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(filepath.Join(sessions, "session_2026-12-01_09-00-00_000001_1/.hidden")); !os.IsNotExist(err) {
		t.Errorf("a hidden file is left: %v", err)
	}
}
