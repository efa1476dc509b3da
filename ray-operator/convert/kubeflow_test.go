package convert_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/heliostat-dev/heliostat/ray-operator/convert"
	"github.com/heliostat-dev/heliostat/ray-operator/convert/document"
	"github.com/heliostat-dev/heliostat/tests/kubeflow"
	"github.com/heliostat-dev/heliostat/tests/rayio"
)

// policyKinds are those that the rules about every job of kubeflow.org hold for.
var policyKinds = []string{"TFJob", "PyTorchJob", "JAXJob", "XGBoostJob", "MPIJob", "PaddleJob", "MXJob"}

// kubeflowRule returns the rule about a leaf, and whether there is exactly one.
func kubeflowRule(leaf *kubeflow.Leaf) (convert.Rule, bool) {
	found, has := find(leaf.Path, leaf.Kind)
	if !has && slices.Contains(policyKinds, leaf.Kind) {
		return find(leaf.Path, convert.KubeflowJobs)
	}
	return found, has
}

func TestKubeflowRules_HoldForEveryLeaf(t *testing.T) {
	used := map[string]bool{}
	for _, leaf := range kubeflow.Leaves() {
		rule, has := kubeflowRule(&leaf)
		if !has {
			t.Errorf("no rule, or more than one, is about %s %s: add one to the table", leaf.Kind, leaf.Path)
		}
		used[rule.Kind+rule.Path] = true
	}
	for _, rule := range everyRule() {
		if !isOfRay(&rule) && !used[rule.Kind+rule.Path] {
			t.Errorf("the rule about %s %s is about no field of Kubeflow", rule.Kind, rule.Path)
		}
	}
}

// without are leaves that are taken out where another is set, as the two exclude each other.
var without = map[string]string{
	"spec.gpus": "spec.replicas", "spec.GPUs": "spec.replicas", "spec.processingUnits": "spec.replicas",
}

// beside are leaves that another needs to mean something.
var beside = map[string]map[string]any{
	"spec.gpusPerNode":               {"spec.gpus": int64(8)},
	"spec.processingUnitsPerNode":    {"spec.processingUnits": int64(8)},
	"spec.processingResourceType":    {"spec.processingUnits": int64(8)},
	"spec.elasticPolicy.minReplicas": {"spec.elasticPolicy.maxReplicas": int64(3)},

	"spec.objective.metricStrategies[].name":        {"spec.objective.metricStrategies[0].value": "latest"},
	"spec.objective.metricStrategies[].value":       {"spec.objective.metricStrategies[0].name": "accuracy"},
	"spec.algorithm.algorithmSettings[].value":      {"spec.algorithm.algorithmSettings[0].name": "random_state"},
	"spec.parameters[].parameterType":               {"spec.parameters[0].feasibleSpace.list": []any{"1", "2"}},
	"spec.parameters[].feasibleSpace.list":          {"spec.parameters[0].parameterType": "categorical"},
	"Experiment spec.parameters[].name":             {"spec.trialTemplate.trialParameters[0].reference": "rate"},
	"spec.searchAlgorithm.grid":                     {"spec.parameters[0].searchSpace": map[string]any{"categorical": map[string]any{"choices": []any{"1"}}}},
	"spec.parameters[].searchSpace.uniform.type":    {"spec.parameters[0].searchSpace.uniform": ofWhole},
	"spec.parameters[].searchSpace.logUniform.type": {"spec.parameters[0].searchSpace.logUniform": ofWhole},
	"spec.parameters[].searchSpace.logUniform.min":  {"spec.parameters[0].searchSpace.logUniform": ofWhole},
	"spec.parameters[].searchSpace.logUniform.max":  {"spec.parameters[0].searchSpace.logUniform": map[string]any{"min": "0.01", "max": "0.1"}},
	"spec.autoTuning.enabled":                       {"spec.autoTuning": tuning(false)},
	"spec.autoTuning.algorithm":                     {"spec.autoTuning": tuning(true)},
	"spec.autoTuning.objective":                     {"spec.autoTuning": tuning(true)},
	"spec.autoTuning.maxTrials":                     {"spec.autoTuning": tuning(true)},
	"spec.autoTuning.parallelTrials":                {"spec.autoTuning": tuning(true)},
	"spec.autoTuning.parameters":                    {"spec.autoTuning": tuning(true)},
	"spec.restartPolicy.type":                       {"spec.restartPolicy.onFailureRetries": int64(3)},
	"spec.restartPolicy.onFailureRetries":           {"spec.restartPolicy.type": "OnFailure"},
	"spec.failureRetries":                           {"spec.restartPolicy.type": "OnFailure"},
	"spec.dynamicAllocation.minExecutors":           {"spec.dynamicAllocation.enabled": true, "spec.dynamicAllocation.maxExecutors": int64(5)},
	"spec.dynamicAllocation.maxExecutors":           {"spec.dynamicAllocation.enabled": true},
	"spec.dynamicAllocation.initialExecutors":       {"spec.dynamicAllocation.enabled": true},
	"spec.volumes":                                  {"spec.driver.volumeMounts": ofTemporary},
	"spec.driver.volumeMounts":                      {"spec.volumes": []any{map[string]any{"name": "data", "emptyDir": map[string]any{}}}},
	"spec.executor.volumeMounts":                    {"spec.volumes": []any{map[string]any{"name": "data", "emptyDir": map[string]any{}}}},
	"spec.driver.gpu.name":                          {"spec.driver.gpu.quantity": int64(1)},
	"spec.executor.gpu.name":                        {"spec.executor.gpu.quantity": int64(1)},
	"spec.driver.gpu.quantity":                      {"spec.driver.gpu.name": "nvidia.com/gpu"},
	"spec.executor.gpu.quantity":                    {"spec.executor.gpu.name": "nvidia.com/gpu"},
	"spec.driver.configMaps[].name":                 {"spec.driver.configMaps[0].path": "/etc/a"},
	"spec.executor.configMaps[].name":               {"spec.executor.configMaps[0].path": "/etc/a"},
	"spec.driver.configMaps[].path":                 {"spec.driver.configMaps[0].name": "a"},
	"spec.executor.configMaps[].path":               {"spec.executor.configMaps[0].name": "a"},
	"spec.driver.secrets[].name":                    {"spec.driver.secrets[0].path": "/etc/a"},
	"spec.executor.secrets[].name":                  {"spec.executor.secrets[0].path": "/etc/a"},
	"spec.driver.secrets[].path":                    {"spec.driver.secrets[0].name": "a"},
	"spec.executor.secrets[].path":                  {"spec.executor.secrets[0].name": "a"},
	"spec.driver.secrets[].secretType":              {"spec.driver.secrets[0]": map[string]any{"name": "a", "path": "/etc/a"}},
	"spec.executor.secrets[].secretType":            {"spec.executor.secrets[0]": map[string]any{"name": "a", "path": "/etc/a"}},
	"spec.driver.envSecretKeyRefs{}.name":           {"spec.driver.envSecretKeyRefs.Worker.key": "a"},
	"spec.executor.envSecretKeyRefs{}.name":         {"spec.executor.envSecretKeyRefs.Worker.key": "a"},
	"spec.driver.envSecretKeyRefs{}.key":            {"spec.driver.envSecretKeyRefs.Worker.name": "a"},
	"spec.executor.envSecretKeyRefs{}.key":          {"spec.executor.envSecretKeyRefs.Worker.name": "a"},
}

// ofWhole are bounds of whole numbers, and ofTemporary is a mount of a volume.
var (
	ofWhole     = map[string]any{"min": "1", "max": "64"}
	ofTemporary = []any{map[string]any{"name": "data", "mountPath": "/data"}}
)

// tuning is the search of an MLTrainingJob.
func tuning(isEnabled bool) map[string]any {
	return map[string]any{"enabled": isEnabled, "algorithm": "random", "maxTrials": int64(4), "objective": "val_accuracy", "parameters": map[string]any{
		"dropout": map[string]any{"type": "float", "min": 0.1, "max": 0.5}}}
}

func TestKubeflowRules_AreWhatHappens(t *testing.T) {
	for _, leaf := range kubeflow.Leaves() {
		rule, has := kubeflowRule(&leaf)
		if !has || leaf.Kind == "TrainingRuntime" {
			continue
		}
		before, after := withJobLeaf(&leaf)
		at := leaf.At()
		if leaf.Kind == "Job" {
			before, after, at = asTrial(before), asTrial(after), "spec.trialTemplate.trialSpec."+at
		}
		was, is := convertOnce(before), convert.Object(after, convert.Options{})
		said := rowsAbout(is.Rows, at)
		switch {
		case rule.Verdict == convert.Refused:
			if !is.Refused() || len(said) == 0 {
				t.Errorf("%s %s is not refused: %v", leaf.Kind, leaf.Path, is.Rows)
			}
		case is.Refused():
			t.Errorf("%s %s is refused: %v", leaf.Kind, leaf.Path, is.Rows)
		case len(said) > 0:
		case rule.Verdict != convert.Kept:
			t.Errorf("%s %s is %s, and no row says so: %v", leaf.Kind, leaf.Path, rule.Verdict, is.Rows)
		case cmp.Equal(objectsOf(was), objectsOf(is)) && !isSilent(&leaf):
			t.Errorf("%s %s is lost without a row:\n%s", leaf.Kind, leaf.Path, text(after))
		}
	}
}

// withJobLeaf returns a job without a leaf and the same with it, each with what the leaf needs.
func withJobLeaf(leaf *kubeflow.Leaf) (before, after *unstructured.Unstructured) {
	before = kubeflow.Base(leaf.Kind, leaf.APIVersion)
	for _, name := range []string{leaf.Path, leaf.Kind + " " + leaf.Path} {
		for path, value := range beside[name] {
			rayio.Set(before.Object, path, value)
		}
	}
	if _, isGPUs := beside[leaf.Path]["spec.gpus"]; isGPUs || strings.HasPrefix(leaf.Path, "spec.processing") {
		rayio.Unset(before.Object, "spec.replicas")
	}
	after = before.DeepCopy()
	if other := without[leaf.Path]; other != "" {
		rayio.Unset(after.Object, other)
	}
	rayio.Set(after.Object, leaf.At(), kubeflow.Values(leaf)[0])
	return before, after
}

// asTrial returns an Experiment whose trials are a job.
func asTrial(job *unstructured.Unstructured) *unstructured.Unstructured {
	object := base(search)
	rayio.Set(object.Object, "spec.trialTemplate.trialSpec", job.Object)
	return object
}

// isSilent reports whether the plainest value of a leaf says what is so without a word, or is looked at in another test.
func isSilent(leaf *kubeflow.Leaf) bool {
	for _, end := range []string{"backoffLimit", "mainContainer", "runtimeRef.kind", "jobMode", "runtimePatches", "parallelism", "completions", "primaryContainerName", "trialParameters[].name",
		"SparkApplication spec.type", "spec.driver.memoryOverhead"} {
		if strings.HasSuffix(leaf.Kind+" "+leaf.Path, end) || strings.Contains(leaf.Path, "."+end+"[") {
			return true
		}
	}
	return false
}

// wishes are what a user may choose.
func wishes(chance *rand.Rand) convert.Options {
	made := convert.Options{Kubeflow: convert.Kubeflow{Images: map[string]string{}}}
	if chance.IntN(3) == 0 {
		made.Kubeflow.Onto = "shared"
	}
	if chance.IntN(2) == 0 {
		made.Kubeflow.Command = []string{"python", "/src/given.py"}
		made.Kubeflow.Images[""] = "registry.example/given-ray:2.60.0"
	}
	if chance.IntN(2) == 0 && made.Kubeflow.Onto != "" {
		made.Kubeflow.Selectors = map[string]map[string]string{"worker": {"pool": "gpu"}}
	}
	return made
}

// jobs is how many generated jobs are converted.
const jobs = 400

func TestObject_HoldsForGeneratedJobsOfKubeflow(t *testing.T) {
	holdsFor(t, jobs, 47, func(chance *rand.Rand) generated {
		return generated{object: kubeflow.Generate(chance), options: wishes(chance)}
	})
}

// FuzzManifest converts whatever text there is: nothing crashes, no object comes out beside a refused field, and what comes out passes
// the rules and stays as it is.
func FuzzManifest(f *testing.F) {
	files, err := filepath.Glob("../../cli/convert/testdata/*/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("find the manifests: %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, "", "python train.py", "")
		f.Add(text, "shared", "", "worker=pool=gpu")
	}
	f.Fuzz(func(t *testing.T, manifest []byte, onto, command, selector string) {
		choices := convert.Choices{Onto: onto, Command: command, Images: []string{"registry.example/given-ray:2.60.0"}}
		if selector != "" {
			choices.Selectors = []string{selector}
		}
		chosen, err := choices.Read()
		if err != nil {
			return
		}
		options := convert.Options{Kubeflow: chosen}
		documents := document.Read(manifest, 1<<20)
		for i := range documents {
			options.Kubeflow.AddRuntime(documents[i].Object)
		}
		for i := range documents {
			if object := documents[i].Object; object != nil && hasResult(object) {
				result := convert.Object(object, options)
				documents[i].Place(result.Rows)
				if wrong := wrongWith(result, options) + refusedOf(result); wrong != "" {
					t.Fatal(wrong)
				}
			}
		}
	})
}

// hasResult reports whether an object is of a kind that becomes another, and is made by nothing else. All others come out as they
// are, or are converted with others.
func hasResult(object *unstructured.Unstructured) bool {
	kind := object.GetKind()
	return slices.Contains(convert.Kinds(), kind) && !strings.HasSuffix(kind, "Runtime") && len(object.GetOwnerReferences()) == 0
}
