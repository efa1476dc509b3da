package convert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/convert"
	"github.com/heliostat-dev/heliostat/tests/rayio"
)

// runCommand runs the command on files, and returns what it prints and its exit code.
func runCommand(t *testing.T, stdin io.Reader, args ...string) (out, rows string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := Command(genericclioptions.NewConfigFlags(false), genericiooptions.IOStreams{In: stdin, Out: &stdout,
		ErrOut: &stderr})
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs(args)
	err := command.ExecuteContext(t.Context())
	if err != nil {
		fmt.Fprint(&stderr, err)
	}
	return stdout.String(), stderr.String(), outcome.Code(err)
}

const shared = `apiVersion: ray.io/v1
kind: RayJob
metadata: {name: shared}
spec: {entrypoint: ls, clusterSelector: {ray.io/cluster: plain}}
`

func TestCommand_RefusesWhatItCannotUnderstand(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"nothing to convert":           {nil, "give -f FILE"},
		"files and kinds":              {[]string{"-f", "x.yaml", "rayjobs"}, "give one of the two"},
		"files of all namespaces":      {[]string{"-f", "x.yaml", "-A"}, "give one of the two"},
		"an unknown kind":              {[]string{"rayclustrs"}, `write "rayclusters"`},
		"a file without -f":            {[]string{"rayjob.yaml"}, "give it with -f"},
		"a name of two kinds":          {[]string{"rayjobs,rayclusters", "x"}, "give one kind"},
		"a name in all namespaces":     {[]string{"rayjobs", "x", "-A"}, "give -n NAMESPACE"},
		"explain with a file":          {[]string{"--explain", "suspend", "-f", "x.yaml"}, "leave files and kinds out"},
		"explain of an unknown field":  {[]string{"--explain", "numOfHost"}, `write "numOfHosts"`},
		"a file that is not there":     {[]string{"-f", "testdata/none.yaml"}, "no such file"},
		"a directory without manifest": {[]string{"-f", t.TempDir()}, "name one that has some"},
		"a selector without --onto":    {[]string{"-f", "x.yaml", "--label-selector", "worker=a=b"}, "give onto too"},
		"a selector of no role":        {[]string{"-f", "x.yaml", "--onto", "c", "--label-selector", "a=b"}, "give ROLE=KEY=VALUE"},
		"an image that is not there":   {[]string{"-f", "x.yaml", "--image", "a="}, "give FROM=TO"},
		"a quote that is not closed":   {[]string{"-f", "x.yaml", "--command", "python 'a"}, "close each quote"},
		"a kind of any group":          {[]string{"mltrainingjobs"}, "no such kind"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, said, code := runCommand(t, nil, c.args...); code != outcome.Usage || !strings.Contains(said, c.says) {
				t.Errorf("exit code %d, %q; want 2 and %q", code, said, c.says)
			}
		})
	}
}

func TestCommand_ReadsStandardInputAndDirectories(t *testing.T) {
	directory := t.TempDir()
	for name, text := range map[string]string{"a.yaml": shared, "b.yml": shared, "c.txt": "no",
		"d.json": `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "ConfigMap"}]}`} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, _, code := runCommand(t, strings.NewReader(shared), "-f", directory, "-f", "-")
	if code != outcome.Done || strings.Count(out, "kind: ClusterJob") != 3 || strings.Count(out, "kind: ConfigMap") != 1 {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

func TestCommand_ConvertsOnceWhatItConvertsTwice(t *testing.T) {
	once, _, _ := runCommand(t, nil, "-f", "testdata/manifests", "-f", "testdata/kubeflow", "--aliases")
	twice, _, code := runCommand(t, strings.NewReader(once), "-f", "-", "--aliases")
	if diff := cmp.Diff(once, twice); diff != "" {
		t.Errorf("converting twice changes (- once), exit code %d:\n%s", code, diff)
	}
}

func TestCommand_RefusesWhatIsTooLarge(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for letter := 'b'; letter < 'k'; letter++ {
		before := string(letter - 1)
		bomb += fmt.Sprintf("%[1]c: &%[1]c [%[2]s]\n", letter, strings.TrimSuffix(strings.Repeat("*"+before+", ", 9), ", "))
	}
	for name, text := range map[string]string{
		"a bomb of anchors": "apiVersion: ray.io/v1\nkind: RayJob\n" + bomb,
		"10 MB":             strings.Repeat("# comment\n", mostBytes/10+1),
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "large.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			out, said, code := runCommand(t, strings.NewReader(shared), "-f", file, "-f", "-")
			if code != outcome.Usage || !strings.Contains(said, "unread") || !strings.Contains(out, "ClusterJob") {
				t.Errorf("exit code %d, %q, %q", code, said, out)
			}
		})
	}
}

func TestCommand_KeepsOpenAndAddsAliases(t *testing.T) {
	out, rows, code := runCommand(t, nil, "-f", "testdata/manifests/cluster-rocksdb.yaml", "--keep-open", "--aliases")
	for _, want := range []string{"mode: Disabled", "isolation: Disabled", "name: embedded-head-svc",
		"heliostat.dev/role: head"} {
		if !strings.Contains(out, want) {
			t.Errorf("the result lacks %q:\n%s", want, out)
		}
	}
	if code != outcome.Done {
		t.Errorf("exit code %d, though nothing differs: %s", code, rows)
	}
	if out, _, _ = runCommand(t, nil, "-f", "testdata/manifests/service-plain.yaml",
		"--aliases"); !strings.Contains(out, "name: text-serve-svc") {
		t.Errorf("the service has no alias:\n%s", out)
	}
	if out, _, _ = runCommand(t, nil, "-f", "testdata/manifests/cluster-closed.yaml",
		"--aliases"); strings.Contains(out, "head-svc") {
		t.Errorf("a cluster that encrypts has an alias that leads nowhere:\n%s", out)
	}
}

func TestCommand_PrintsNothingThatATerminalObeys(t *testing.T) {
	text := strings.Replace(shared, "entrypoint: ls", `"\e[2Jx": 1`, 1)
	if _, rows, _ := runCommand(t, strings.NewReader(text), "-f", "-"); strings.ContainsRune(rows, '\x1b') {
		t.Errorf("an escape sequence is printed: %q", rows)
	}
}

func TestCommand_NamesChoicesThatFitNothing(t *testing.T) {
	const all, refused = "testdata/kubeflow/pytorch-onto.yaml", "testdata/kubeflow/job-texts.yaml"
	wrong := []string{"--onto", "shared", "--command", "python a.py", "--image", "nosuch=a", "--image", "b", "--label-selector", "wrker=pool=gpu", "--label-selector", "worker=pool=gpu"}
	_, rows, _ := runCommand(t, nil, append(slices.Clone(wrong), "-f", all)...)
	for _, want := range []string{"--command is for", `--image "nosuch" is of no container`, "--image without FROM=", `--label-selector is for the role "wrker"`} {
		if !strings.Contains(rows, want) {
			t.Errorf("no line says %s:\n%s", want, rows)
		}
	}
	if _, rows, _ := runCommand(t, nil, append(slices.Clone(wrong), "-f", refused)...); strings.Contains(rows, "\n--") {
		t.Errorf("a choice that an object may need which did not come out is said to fit nothing:\n%s", rows)
	}
	if _, rows, _ := runCommand(t, nil, append(flagsOf(t, all), "-f", all)...); strings.Contains(rows, "\n--") {
		t.Errorf("a choice that fits is said to fit nothing:\n%s", rows)
	}
}

func TestExplain_PrintsTheRule(t *testing.T) {
	for field, want := range map[string]string{
		"spec.workerGroupSpecs[2].numOfHosts": "workerGroups[].hostsPerReplica", "backoffLimit": "retry.limit", "spec.rayClusterConfig.tlsOptions.enabled": "network.encryption",
		"autoscalerOptions.env[0].name": "autoscaling.env", "upgradeStrategy.type": "kept",
		"PyTorchJob.spec.elasticPolicy": "spec.elasticPolicy.minReplicas  (PyTorchJob)", "TFJob.spec.tfReplicaSpecs.PS.restartPolicy": "gang.maxRestarts",
		"mpijob": "spec.slotsPerWorker  (MPIJob)", "pytorchjob.elasticPolicy": "spec.elasticPolicy.minReplicas  (PyTorchJob)",
		"MPIJob.spec.runPolicy.suspend": "every job of kubeflow.org", "ClusterTrainingRuntime.spec.mlPolicy.numNodes": "gang.roles[].replicas",
		"SparkApplication.spec.dynamicAllocation.enabled": "minExecutors", "experiment.spec.algorithm.algorithmName": "GaussianProcess",
		"Job.spec.backoffLimit": "gang.maxRestarts", "SparkApplication.driver.envVars.LEVEL": "gang.roles[].env",
	} {
		if out, _, code := runCommand(t, nil, "--explain", field); code != outcome.Done || !strings.Contains(out, want) {
			t.Errorf("--explain %s, exit code %d: %s", field, code, out)
		}
	}
}

// client is an API server with objects of ray.io.
func client(objects ...runtime.Object) *fake.FakeDynamicClient {
	kinds := map[schema.GroupVersionResource]string{}
	for resource, kind := range map[string]string{"rayclusters": "RayClusterList", "rayjobs": "RayJobList",
		"rayservices": "RayServiceList"} {
		kinds[schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: resource}] = kind
	}
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...)
}

func live(kind, namespace, name string) *unstructured.Unstructured {
	object := rayio.Base(kind)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// of reads a list of kinds as users write it.
func of(t *testing.T, kinds string) []convert.Kind {
	t.Helper()
	all, err := readResources(kinds)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestList_TakesLiveObjects(t *testing.T) {
	owned := live("RayCluster", "a", "of-a-job")
	_ = unstructured.SetNestedSlice(owned.Object, []any{map[string]any{
		"apiVersion": "ray.io/v1", "kind": "RayJob", "name": "one", "uid": "1", "controller": true,
	}}, "metadata", "ownerReferences")
	api := client(live("RayCluster", "a", "one"), live("RayCluster", "b", "two"), live("RayJob", "a", "one"), owned)
	for name, c := range map[string]struct {
		wanted request
		want   []string
	}{
		"of the namespace": {request{resources: of(t, "rayclusters")}, []string{"ComputeCluster a/one"}},
		"of all namespaces": {request{resources: of(t, "rayclusters,rayjobs"), allNamespaces: true},
			[]string{"ComputeCluster a/one", "ComputeCluster b/two", "ClusterJob a/one"}},
		"of a name": {request{resources: of(t, "rayjobs"), names: []string{"one"}}, []string{"ClusterJob a/one"}},
	} {
		t.Run(name, func(t *testing.T) {
			inputs, err := c.wanted.listWith(t.Context(), api, "a")
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			printed := report{out: &out, rows: io.Discard}
			for i := range inputs {
				if err := printed.convert(&inputs[i], c.wanted.options); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			for _, in := range readFrom("out", &out) {
				got = append(got, fmt.Sprintf("%s %s/%s", in.Object.GetKind(), in.Object.GetNamespace(), in.Object.GetName()))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("other objects come out (- wanted):\n%s", diff)
			}
		})
	}
}

// TestList_TakesJobsOfKubeflow: an MPIJob in the version that the API server has, and a TrainJob with its runtime.
func TestList_TakesJobsOfKubeflow(t *testing.T) {
	kinds := map[schema.GroupVersionResource]string{
		{Group: "kubeflow.org", Version: "v2beta1", Resource: "mpijobs"}:                          "MPIJobList",
		{Group: "kubeflow.org", Version: "v1", Resource: "mpijobs"}:                               "MPIJobList",
		{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainjobs"}:               "TrainJobList",
		{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainingruntimes"}:        "TrainingRuntimeList",
		{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "clustertrainingruntimes"}: "ClusterTrainingRuntimeList",
		{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "optimizationjobs"}:        "OptimizationJobList",
		{Group: "sparkoperator.k8s.io", Version: "v1beta2", Resource: "sparkapplications"}:        "SparkApplicationList",
	}
	var objects []runtime.Object
	for _, file := range []string{"trainjob-runtime.yaml", "mpi-v1.yaml", "spark-python.yaml", "optimizationjob.yaml"} {
		for _, in := range readFile("testdata/kubeflow/" + file) {
			if in.Object.GetName() != "unknown" && in.Object.GetName() != "loaded" {
				objects = append(objects, in.Object)
			}
		}
	}
	api := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...)
	api.PrependReactor("list", "mpijobs", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetResource().Version == "v1" {
			return false, nil, nil
		}
		return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "mpijobs"}, "")
	})
	wanted := request{resources: of(t, "mpijobs,trainjob,sparkapplications,optimizationjobs"), allNamespaces: true}
	inputs, err := wanted.listWith(t.Context(), api, "")
	if err != nil {
		t.Fatal(err)
	}
	var rows bytes.Buffer
	printed := report{out: io.Discard, rows: &rows}
	for i := range inputs {
		if err := printed.convert(&inputs[i], wanted.options); err != nil {
			t.Fatal(err)
		}
	}
	if printed.written != 4 || printed.refused > 0 {
		t.Errorf("%d of 4 objects come out:\n%s", printed.written, &rows)
	}
}

func TestList_SaysWhyItCannot(t *testing.T) {
	jobs := schema.GroupResource{Group: "ray.io", Resource: "rayjobs"}
	for name, c := range map[string]struct {
		err  error
		code int
		says string
	}{
		"no right":       {apierrors.NewForbidden(jobs, "", errors.New("ana may not")), outcome.Refused, "ask for the right"},
		"no CRDs":        {apierrors.NewNotFound(jobs, ""), outcome.Usage, "has no such kind"},
		"another reason": {errors.New("refused"), outcome.Failed, "list rayjobs"},
	} {
		t.Run(name, func(t *testing.T) {
			api := client()
			api.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, c.err })
			_, err := (&request{resources: of(t, "rayjobs")}).listWith(context.Background(), api, "a")
			if outcome.Code(err) != c.code || !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("exit code %d: %v", outcome.Code(err), err)
			}
		})
	}
	_, err := (&request{resources: of(t, "rayjobs"), names: []string{"trai"}}).listWith(t.Context(),
		client(live("RayJob", "a", "train")), "a")
	if outcome.Code(err) != outcome.Usage || !strings.Contains(fmt.Sprint(err), `write "train"`) {
		t.Errorf("a name that is not there: %v", err)
	}
}
