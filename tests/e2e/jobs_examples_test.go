package e2e

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// The examples, as a user applies them.
var _ = Describe("an example", func() {
	It("runs a batch on a shared cluster, one job at a time", Label(live.JobExamplesLabel, live.AcceptLabel), func(ctx SpecContext) {
		o := example(ctx, "batch", nil)
		for name, line := range map[string]string{"count": "there are 2262 primes below 20000", "count-more": "there are 5133 primes below 50000"} {
			Expect(last(o.job(name).is(ctx, v1beta1.PhaseSucceeded)).LastLines).To(ContainElement(line))
		}
		first, second := o.job("count").now(ctx), o.job("count-more").now(ctx)
		if second.Status.StartTime.Before(first.Status.StartTime) {
			first, second = second, first // made within a second, in whichever order
		}
		Expect(second.Status.StartTime.Before(first.Status.EndTime)).To(BeFalse())
	}, SpecTimeout(2*limit))

	It("trains on from its last checkpoint when its head is lost", Label(live.JobExamplesLabel, live.AcceptLabel), func(ctx SpecContext) {
		o := example(ctx, "training", nil)
		job := o.job("training")
		attempt := job.runs(ctx, 1)
		var head corev1.Pod
		Expect(kubernetes.Get(ctx, o.named(attempt.HeadName), &head)).To(Succeed())
		exec(ctx, &head, "sh", "-c", "until grep -Eq '\"epoch\": ([5-9]|[12][0-9])' /checkpoints/training.json 2>/dev/null; do sleep 0.1; done")
		kill(ctx, &head)
		ended := job.is(ctx, v1beta1.PhaseSucceeded)
		Expect(ended.Status.Attempt).To(BeNumerically(">", 1))
		Expect(ended.Status.Attempts[0].Reason).To(Equal(reason.HeadLost.Code))
		Expect(last(ended).LastLines).To(ContainElement(fmt.Sprintf("trained in attempt %d", ended.Status.Attempt)))
		Expect(epochs(last(ended).LastLines)).To(BeNumerically("<=", 30-5), "it went on from a checkpoint")
	}, SpecTimeout(3*limit))

	It("trains on in four processes when one of them is killed", Label(live.GangFrameworksLabel, live.AcceptLabel, localkubeLabel), func(ctx SpecContext) {
		o := example(ctx, "gang", map[string]func(*unstructured.Unstructured){
			"ClusterJob": func(object *unstructured.Unstructured) {
				spec, _, err := unstructured.NestedMap(object.Object, "spec", "clusterTemplate", "spec")
				Expect(err).NotTo(HaveOccurred())
				spec["image"] = "localhost/heliostat/frameworks:dev"
				volumes, isList := spec["sharedVolumes"].([]any)
				Expect(isList).To(BeTrue())
				Expect(unstructured.SetNestedField(volumes[0].(map[string]any), "shared", "claim", "storageClassName")).To(Succeed())
				Expect(unstructured.SetNestedMap(object.Object, spec, "spec", "clusterTemplate", "spec")).To(Succeed())
			},
		})
		job := o.job("gang")
		attempt := job.runs(ctx, 1)
		worker := (&env{o.named(attempt.ClusterName)}).group(ctx, "cpu")[0]
		exec(ctx, &worker, "sh", "-c", "until [ -e /checkpoints/gang.pt ]; do sleep 0.1; done")
		processes, err := live.CommandsIn(worker.UID, "/code/train.py")
		Expect(err).NotTo(HaveOccurred())
		Expect(syscall.Kill(processes[0].ID, syscall.SIGKILL)).To(Succeed())
		ended := job.is(ctx, v1beta1.PhaseSucceeded)
		Expect(ended.Status.Attempt).To(BeEquivalentTo(1))
		Expect(ended.Status.Gang.Restarts).To(BeEquivalentTo(1))
		Expect(last(ended).LastLines).To(ContainElement(HavePrefix("epoch 30: ")))
		Expect(epochs(last(ended).LastLines)).To(BeNumerically("<", 30), "it went on from a checkpoint")
	}, SpecTimeout(2*limit))

	It("runs a Ray Data pipeline", Label(live.JobExamplesLabel, live.AcceptLabel), func(ctx SpecContext) {
		o := example(ctx, "data", nil)
		lines := last(o.job("report").is(ctx, v1beta1.PhaseSucceeded)).LastLines
		for _, shop := range []string{"shop 0: ", "shop 1: ", "shop 2: "} {
			Expect(lines).To(ContainElement(HavePrefix(shop)))
		}
		o.cleared(ctx)
	}, SpecTimeout(2*limit))

	It("has a package from pip for itself", Label(live.JobExamplesLabel, live.AcceptLabel, localkubeLabel), func(ctx SpecContext) {
		index := packageIndex(ctx, "tabulate", "0.9.0", "def tabulate(rows):\n    return '\\n'.join(' is '.join(map(str, row)) for row in rows)\n")
		host, _, err := net.SplitHostPort(index)
		Expect(err).NotTo(HaveOccurred())
		o := example(ctx, "pip", map[string]func(*unstructured.Unstructured){"ClusterJob": func(object *unstructured.Unstructured) {
			Expect(unstructured.SetNestedSlice(object.Object, []any{
				map[string]any{"name": "PIP_INDEX_URL", "value": "http://" + index + "/simple"}, map[string]any{"name": "PIP_TRUSTED_HOST", "value": host},
			}, "spec", "clusterTemplate", "spec", "podDefaults", "env")).To(Succeed())
		}})
		Expect(last(o.job("table").is(ctx, v1beta1.PhaseSucceeded)).LastLines).To(ContainElements("head is 1", "workers is 0"))
	}, SpecTimeout(2*limit))
})

// epochs is how many of the last lines tell of an epoch.
func epochs(lines []string) int {
	count := 0
	for _, line := range lines {
		if regexp.MustCompile(`^epoch \d+: `).MatchString(line) {
			count++
		}
	}
	return count
}

// example applies an example in a namespace of its own, as kubectl apply -k does, its jobs and clusters after changes by their
// kinds.
func example(ctx context.Context, name string, changes map[string]func(*unstructured.Unstructured)) *office {
	GinkgoHelper()
	o := &office{namespace: fresh(ctx)}
	directory := filepath.Join(root, "examples", name)
	read := func(file string) []byte {
		text, err := os.ReadFile(filepath.Join(directory, file))
		Expect(err).NotTo(HaveOccurred())
		return text
	}
	var kustomization struct {
		Resources          []string
		ConfigMapGenerator []struct {
			Name  string
			Files []string
		}
	}
	Expect(yaml.Unmarshal(read("kustomization.yaml"), &kustomization)).To(Succeed())
	for _, generator := range kustomization.ConfigMapGenerator {
		code := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: generator.Name}, Data: map[string]string{}}
		for _, file := range generator.Files {
			code.Data[file] = string(read(file))
		}
		Expect(kubernetes.Create(ctx, code)).To(Succeed())
	}
	for _, file := range kustomization.Resources {
		objects, err := live.Decode(read(file))
		Expect(err).NotTo(HaveOccurred())
		for _, object := range objects {
			object.SetNamespace(o.namespace)
			if change := changes[object.GetKind()]; change != nil {
				change(object)
			}
			Expect(kubernetes.ApplyObject(ctx, object)).To(Succeed())
		}
	}
	return o
}

// packageIndex serves one pure Python package of one module to pip, at the address of this
// machine that the nodes know.
func packageIndex(ctx context.Context, name, version, module string) string {
	GinkgoHelper()
	file := fmt.Sprintf("%s-%s-py3-none-any.whl", name, version)
	wheel := wheel(name, version, module)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /simple/"+name+"/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<a href="/%s">%s</a>`, file, file) // pip tells when it did not get it
	})
	mux.HandleFunc("GET /"+file, func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, file, time.Time{}, bytes.NewReader(wheel))
	})
	listener, err := net.Listen("tcp", net.JoinHostPort(here(ctx).String(), "0"))
	Expect(err).NotTo(HaveOccurred())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: limit}
	go func() { _ = server.Serve(listener) }() // ends when it is closed
	DeferCleanup(server.Close)
	return listener.Addr().String()
}

// wheel is the archive that pip installs a module from.
func wheel(name, version, module string) []byte {
	GinkgoHelper()
	info := fmt.Sprintf("%s-%s.dist-info/", name, version)
	files := [][2]string{
		{name + ".py", module},
		{info + "METADATA", fmt.Sprintf("Metadata-Version: 2.1\nName: %s\nVersion: %s\n", name, version)},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{info + "RECORD", name + ".py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n"},
	}
	var archive bytes.Buffer
	out := zip.NewWriter(&archive)
	for _, file := range files {
		part, err := out.Create(file[0])
		Expect(err).NotTo(HaveOccurred())
		_, err = part.Write([]byte(file[1]))
		Expect(err).NotTo(HaveOccurred())
	}
	Expect(out.Close()).To(Succeed())
	return archive.Bytes()
}
