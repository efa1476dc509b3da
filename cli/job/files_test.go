package job

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/heliostat-dev/heliostat/apiserver/verbs"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/crdcheck"
)

// directory makes a directory with a program and others files of some sizes.
func directory(t *testing.T, sizes ...int) string {
	t.Helper()
	root := t.TempDir()
	write := func(name string, content []byte) {
		if err := os.WriteFile(filepath.Join(root, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("train.py", []byte("print(1)\n"))
	for _, size := range sizes {
		noise := make([]byte, size)
		for i := range noise {
			noise[i] = byte(rand.Uint32())
		}
		write(string(rune('a'+size%26))+".bin", noise)
	}
	return root
}

// carried is a job with a directory.
func carried(t *testing.T, flags, at string) (*v1beta1.ClusterJob, carrier, error) {
	t.Helper()
	job, err := built(t, flags, "", "python", "train.py")
	if err != nil {
		t.Fatal(err)
	}
	s := &submission{wish: wish{workingDir: at}}
	files, err := s.carry(job)
	return job, files, err
}

func TestCarry_MountsInEachPodOfTheJobsCluster(t *testing.T) {
	job, files, err := carried(t, `--workers 2 --runtime-env-json {"pip":["x"],"excludes":["*.bin"]}`, directory(t, 2<<20))
	if err != nil {
		t.Fatal(err)
	}
	if _, is := files.(*mounted); !is {
		t.Errorf("they are carried by %T", files)
	}
	spec := job.Spec.ClusterTemplate.Spec
	for name, node := range map[string]v1beta1.NodeSpec{"head": spec.Head.NodeSpec, "workers": spec.WorkerGroups[0].NodeSpec} {
		text, err := json.Marshal(node.Template)
		if err != nil {
			t.Fatal(err)
		}
		for _, holds := range []string{`"configMap":{"name":"working-dir-`, `"mountPath":"/etc/heliostat-working-dir"`, `"name":"ray"`} {
			if !strings.Contains(string(text), holds) {
				t.Errorf("the template of the %s holds no %s: %s", name, holds, text)
			}
		}
	}
	const want = `{"excludes":["*.bin"],"pip":["x"],"working_dir":"file:///etc/heliostat-working-dir/files.zip"}`
	if string(job.Spec.RuntimeEnv.Raw) != want {
		t.Errorf("the runtime environment is %s, want %s", job.Spec.RuntimeEnv.Raw, want)
	}
	job.Name = "x"
	if answer, err := crdcheck.Create("ClusterJob", job); err != nil || len(answer.Findings) > 0 {
		t.Errorf("the API server would refuse it: %v, %v", answer.Findings, err)
	}
}

func TestMountIn_KeepsTheTemplate(t *testing.T) {
	node := v1beta1.NodeSpec{Template: &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Volumes:    []corev1.Volume{{Name: "data"}},
		Containers: []corev1.Container{{Name: "side"}, {Name: "ray", VolumeMounts: []corev1.VolumeMount{{Name: "data"}}}},
	}}}
	(&mounted{&corev1.ConfigMap{}}).mountIn(&node)
	pod := node.Template.Spec
	if len(pod.Volumes) != 2 || len(pod.Containers) != 2 || len(pod.Containers[1].VolumeMounts) != 2 || pod.Containers[0].VolumeMounts != nil {
		t.Errorf("it is %+v", pod)
	}
}

func TestCarry_NamesWhatIsUploadedOrElsewhere(t *testing.T) {
	for at, want := range map[string]string{
		directory(t):         `{"working_dir":"gcs://_ray_pkg_3922764096301487.zip"}`,
		"s3://bucket/ab.zip": `{"working_dir":"s3://bucket/ab.zip"}`,
	} {
		job, _, err := carried(t, "--cluster dev", at)
		if err != nil || string(job.Spec.RuntimeEnv.Raw) != want {
			t.Errorf("%s: %v, %v", at, job.Spec.RuntimeEnv, err)
		}
	}
}

func TestCarry_RefusesWhatCannotGo(t *testing.T) {
	large := directory(t, 2<<20, 1001)
	for name, c := range map[string]struct {
		flags, at string
		code      int
		says      []string
	}{
		"a large directory on its own cluster": {"", large, outcome.Refused, []string{"more than 1.0 MiB when packed", "2.0 MiB", "1001 bytes", ".rayignore", "--cluster", "image", "s3://"}},
		"no directory":                         {"", large + "/none", outcome.Refused, []string{"there is no directory"}},
		"a file":                               {"--cluster dev", large + "/train.py", outcome.Refused, []string{"train.py"}},
		"two directories":                      {`--runtime-env-json {"working_dir":"s3://a/b.zip"}`, large, outcome.Usage, []string{"one of the two"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := carried(t, c.flags, c.at)
			if outcome.Code(err) != c.code {
				t.Errorf("exit code %d, want %d: %v", outcome.Code(err), c.code, err)
			}
			for _, says := range c.says {
				if err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("it does not say %q: %v", says, err)
				}
			}
		})
	}
	if _, _, err := carried(t, "--cluster dev", large); err != nil {
		t.Errorf("2 MiB on a cluster that is there: %v", err)
	}
}

// settled creates a job with files on an API server that takes them, or takes them no more once the job is there.
func settled(t *testing.T, fails bool) (jobs v1beta1.ClusterJobList, files corev1.ConfigMapList, err error) {
	t.Helper()
	made := fake.NewClientBuilder().WithScheme(kube.Scheme()).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			of := client.CreateOptions{}
			of.ApplyOptions(options)
			if _, isFiles := object.(*corev1.ConfigMap); isFiles && fails && len(of.DryRun) == 0 {
				return errors.New("the quota is used up")
			}
			object.SetUID("u")
			return c.Create(ctx, object, options...)
		}}).Build()
	objects := &kube.Objects{WithWatch: made, Namespace: "a"}
	job, carrier, err := carried(t, "--name x", directory(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(carrier.prepare(t.Context(), objects, job), objects.CreateNew(t.Context(), job, false)); err != nil {
		t.Fatal(err)
	}
	err = carrier.settle(t.Context(), objects, job)
	if err := errors.Join(objects.List(t.Context(), &jobs), objects.List(t.Context(), &files)); err != nil {
		t.Fatal(err)
	}
	return jobs, files, err
}

func TestSettle_DeletesAJobWithoutItsFiles(t *testing.T) {
	jobs, files, err := settled(t, true)
	if err == nil || len(jobs.Items)+len(files.Items) != 0 {
		t.Errorf("there are %d jobs and %d ConfigMaps: %v", len(jobs.Items), len(files.Items), err)
	}
}

func TestSettle_HasTheJobOwnItsFiles(t *testing.T) {
	jobs, files, err := settled(t, false)
	if err != nil || len(jobs.Items) != 1 || len(files.Items) != 1 {
		t.Fatalf("there are %d jobs and %d ConfigMaps: %v", len(jobs.Items), len(files.Items), err)
	}
	owners := files.Items[0].OwnerReferences
	if len(owners) != 1 || owners[0].UID != "u" || owners[0].Kind != "ClusterJob" || owners[0].Name != "x" {
		t.Errorf("it is of %v", owners)
	}
	if len(files.Items[0].BinaryData[archiveKey]) == 0 {
		t.Error("it holds nothing")
	}
}

func TestOutlives_NamesWhatRunsTooLate(t *testing.T) {
	two, now := int32(2), metav1.Now()
	on := func(cluster string, edit func(*v1beta1.ClusterJob)) verbs.Object {
		job := &v1beta1.ClusterJob{}
		job.Spec.ClusterRef = &v1beta1.ClusterReference{Name: cluster}
		if edit != nil {
			edit(job)
		}
		return job
	}
	busy := []verbs.Object{on("dev", nil), on("dev", nil)}
	for name, c := range map[string]struct {
		most       *int32
		jobs       []verbs.Object
		isDetached bool
		edit       func(*v1beta1.ClusterJobSpec)
		says       string
	}{
		"followed on a free cluster":          {nil, nil, false, nil, ""},
		"followed in a queue":                 {&two, busy, false, nil, ""},
		"detached on a cluster with no queue": {nil, busy, true, nil, ""},
		"detached behind a queue":             {&two, busy, true, nil, "runs 2 jobs at once and has 2"},
		"detached with a place": {&two, []verbs.Object{on("dev", nil), on("other", nil),
			on("dev", func(j *v1beta1.ClusterJob) { j.Status.EndTime = &now }),
			on("dev", func(j *v1beta1.ClusterJob) { j.Spec.Suspend = new(true) })}, true, nil, ""},
		"a retry": {nil, nil, false, func(s *v1beta1.ClusterJobSpec) { s.Retry = &v1beta1.Retry{Limit: 1} }, "a retry"},
		"a retry of what was lost": {nil, nil, false, func(s *v1beta1.ClusterJobSpec) {
			s.Retry = &v1beta1.Retry{InfrastructureLimit: &two}
		}, "a retry"},
		"no retry":  {nil, nil, false, func(s *v1beta1.ClusterJobSpec) { s.Retry = &v1beta1.Retry{} }, ""},
		"suspended": {nil, nil, false, func(s *v1beta1.ClusterJobSpec) { s.Suspend = new(true) }, "suspended"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, job := &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Name: "dev"}}, &v1beta1.ClusterJob{}
			cluster.Spec.MaxConcurrentJobs = c.most
			if c.edit != nil {
				c.edit(&job.Spec)
			}
			why := outlives(job, cluster, c.jobs, c.isDetached)
			if (why == "") != (c.says == "") || !strings.Contains(why, c.says) {
				t.Errorf("it says %q, want %q", why, c.says)
			}
		})
	}
}
