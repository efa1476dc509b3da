package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// mistake is one that beginners make. Manifests have NAME for the object's name.
type mistake struct {
	name  string
	wrong string
	// says is a part of the one line shown: of the refusal, or else of the reason and message of the condition Ready.
	says string
	// right is what the remedy asks for, applied and nothing else.
	right string
}

const (
	clusterHead = "apiVersion: heliostat.dev/v1beta1\nkind: ComputeCluster\nmetadata: {name: NAME}\n"
	jobHead     = "apiVersion: heliostat.dev/v1beta1\nkind: ClusterJob\nmetadata: {name: NAME}\n"
	smallSize   = "size: {cpu: 100m, memory: 2Gi}"
	goodCluster = clusterHead + "spec: {rayVersion: " + release + ", head: {" + smallSize + "}}\n"
	goodJob     = jobHead + "spec: {clusterRef: {name: shared}, entrypoint: 'true'}\n"
	goneSecret  = "apiVersion: v1\nkind: Secret\nmetadata: {name: gone-NAME}\nstringData: {token: a}\n"
)

// spoilt is a cluster whose head is this.
func spoilt(head string) string {
	return clusterHead + "spec: {rayVersion: " + release + ", head: {" + head + "}}\n"
}

// spoiltPod is a cluster whose head has this in its template's spec, and spoiltRay one with this in its container.
func spoiltPod(spec string) string { return spoilt(smallSize + ", template: {spec: {" + spec + "}}") }

func spoiltRay(container string) string {
	return spoiltPod("containers: [{name: ray, " + container + "}]")
}

func spoiltJob(spec string) string {
	return jobHead + "spec: {clusterRef: {name: shared}, entrypoint: 'true', " + spec + "}\n"
}

func quotaOf(pods int) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: pods}\nspec: {hard: {pods: %d}}\n---\n", pods)
}

// mistakes are refused at once, or show in the column REASON.
var mistakes = []mistake{
	{"a typo beside spec", strings.Replace(goodCluster, "spec:", "specc:", 1), `specc`, goodCluster},
	{"a typo in spec", strings.Replace(goodCluster, "rayVersion", "rayVersio", 1), `unknown field "spec.rayVersio"`, goodCluster},
	{"a typo in the head", spoilt("sizee: {cpu: 1}"), `unknown field "spec.head.sizee"`, goodCluster},
	{"a typo in a pod template", spoiltPod("nodeSelektor: {a: b}"), `unknown field "spec.head.template.spec.nodeSelektor"`, goodCluster},
	{"a typo in a container", spoiltRay("envv: []"), `unknown field "spec.head.template.spec.containers[0].envv"`, goodCluster},
	{"a version of Ray without its last part", strings.Replace(goodCluster, release, `"2.60"`, 1), "rayVersion", goodCluster},
	{"a version of Ray that is too old", strings.Replace(goodCluster, release, "2.40.0", 1), "rayVersion", goodCluster},
	{"too little memory", spoilt("size: {memory: 100Mi}"), "memory", goodCluster},
	{"an amount that is none", spoilt("size: {cpu: abc}"), "size", goodCluster},
	{"an image that is not there", spoiltRay("image: registry.invalid/ray:1"), "ImagePullFailed", goodCluster},
	{"a name that no image has", spoiltRay("image: UPPER/ray:1"), "ImagePullFailed", goodCluster},
	{"an image without Ray", spoiltRay("image: 'localhost/busybox:1', securityContext: {runAsUser: 1000}"), "ray: not found", goodCluster},
	{"root in a container that must not be root", spoiltRay("securityContext: {runAsUser: 0, runAsNonRoot: true}"), "runAsUser", goodCluster},
	{"a pod that is too large", spoilt("size: {cpu: 64}"), "Unschedulable", goodCluster},
	{"a label that no node has", spoiltPod("nodeSelector: {disk: none}"), "Unschedulable", goodCluster},
	{"a variable from a Secret that is missing", spoiltRay("env: [{name: T, valueFrom: {secretKeyRef: {name: gone-NAME, key: token}}}]"), "Create Secret", goneSecret},
	{"a volume of a Secret that is missing", spoiltPod("volumes: [{name: v, secret: {secretName: gone-NAME}}], containers: [{name: ray, volumeMounts: [{name: v, mountPath: /v}]}]"), "Create Secret", goneSecret},
	{"a quota that is used up", quotaOf(0) + goodCluster, "QuotaExceeded", quotaOf(20)},
	{"a job on a cluster that is not there", jobHead + "spec: {clusterRef: {name: NAME}, entrypoint: 'true'}\n", "ClusterMissing", goodCluster},
	{"a typo in a runtime environment", spoiltJob("runtimeEnv: {pipp: [torch]}"), "misspelt", goodJob},
	{"the name of a GPU in Kubernetes", spoiltJob("entrypointResources: {nvidia.com/gpu: 1}"), "write CPU, GPU or TPU", goodJob},
	{"a variable that Ray would replace", spoiltJob("env: [{name: A, value: 'pw${A}1'}]"), "env_vars of runtimeEnv", goodJob},
	{"a directory of one's own machine", spoiltJob("runtimeEnv: {working_dir: .}"), "URI of an archive", goodJob},
}

// beginner types kubectl in a namespace.
type beginner struct{ namespace string }

func (n beginner) kubectl(ctx context.Context, input string, args ...string) (string, error) {
	command := kubectl(ctx, append(args, "--namespace", n.namespace)...)
	command.Stdin = strings.NewReader(input)
	out, err := command.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (n beginner) applies(ctx context.Context, manifest, name string) (string, error) {
	return n.kubectl(ctx, strings.ReplaceAll(manifest, "NAME", name), "apply", "-f", "-")
}

// sees waits until the status of an object says what is wrong.
func (n beginner) sees(ctx context.Context, object, says string) (line string) {
	GinkgoHelper()
	eventually(ctx, object+" to say "+says, func(ctx context.Context) (err error) {
		line, err = n.kubectl(ctx, "", "get", object, "-o", `jsonpath={range .status.conditions[?(@.type=="Ready")]}{.reason}: {.message}{end}`)
		if err == nil && !strings.Contains(line, says) {
			err = errors.New(line)
		}
		return err
	})
	return line
}

// makes makes a mistake, follows its remedy, and waits until all is well.
func (n beginner) makes(ctx context.Context, m mistake, name string) live.Mistake {
	GinkgoHelper()
	object, end := "computecluster/"+name, "condition=Ready"
	if strings.Contains(m.wrong, "kind: ClusterJob\n") {
		object, end = "clusterjob/"+name, "condition=Complete"
	}
	begin, seen := time.Now(), live.Mistake{Name: m.name, Where: "kubectl apply"}
	said, err := n.applies(ctx, m.wrong, name)
	if err == nil {
		seen.Where, said = "REASON of kubectl get, and its message", n.sees(ctx, object, m.says)
	}
	Expect(said).To(ContainSubstring(m.says))
	lines := strings.Split(said, "\n")
	seen.Line, seen.Shown = lines[len(lines)-1], time.Since(begin).Seconds()
	begin = time.Now()
	said, err = n.applies(ctx, m.right, name)
	Expect(err).NotTo(HaveOccurred(), said)
	said, err = n.kubectl(ctx, "", "wait", "--for="+end, object, "--timeout=3m")
	Expect(err).NotTo(HaveOccurred(), said)
	seen.Mended = time.Since(begin).Seconds()
	_, err = n.kubectl(ctx, "", "delete", "clusterjob,computecluster", name, "--ignore-not-found")
	Expect(err).NotTo(HaveOccurred())
	return seen
}

var _ = Describe("a first mistake", Ordered, ContinueOnFailure, Label(live.MistakesLabel, live.AcceptLabel, localkubeLabel), func() {
	var n beginner

	BeforeAll(func(ctx SpecContext) {
		n = beginner{fresh(ctx)}
		said, err := n.applies(ctx, goodCluster, "shared")
		Expect(err).NotTo(HaveOccurred(), said)
		said, err = n.kubectl(ctx, "", "wait", "--for=condition=Ready", "cc/shared", "--timeout=3m")
		Expect(err).NotTo(HaveOccurred(), said)
	}, NodeTimeout(limit))

	for i, m := range mistakes {
		It("is shown in one line, whose remedy is enough: "+m.name, func(ctx SpecContext) {
			AddReportEntry(live.MistakesEntry, n.makes(ctx, m, fmt.Sprintf("first-%d", i)), ReportEntryVisibilityAlways)
		}, SpecTimeout(2*limit))
	}
})
