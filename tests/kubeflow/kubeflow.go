// Package kubeflow makes jobs of Kubeflow for tests.
//
// In: a kind and a version, or a source of chance. Out: jobs of which each field has one of the values that users write, some of
// them odd. leaves.tsv lists every field of the kinds; a new version of an operator is a new list.
// It must never know what Heliostat makes of a job.
package kubeflow

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/tests/rayio"
)

//go:embed leaves.tsv
var table string

// Leaf is a field of a spec that holds a value.
type Leaf struct{ Kind, APIVersion, Path, Type string }

// Leaves are all fields of all kinds.
func Leaves() []Leaf { return slices.Clone(leaves()) }

// leaves reads the table once.
var leaves = sync.OnceValue(func() []Leaf {
	var all []Leaf
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if !strings.HasPrefix(line, "#") && len(cells) == 4 {
			all = append(all, Leaf{Kind: cells[0], APIVersion: cells[1], Path: cells[2], Type: cells[3]})
		}
	}
	return all
})

// At is the path of a leaf in an object of Base: that of the role Worker, and of the first entries of lists.
func (l *Leaf) At() string { return strings.ReplaceAll(l.Path, "{}", ".Worker") }

// roles are the fields of the roles of a kind, with the roles that it has in Base.
var roles = map[string]struct {
	field, container string
	keys             []string
}{
	"TFJob":      {"tfReplicaSpecs", "tensorflow", []string{"Chief", "Worker"}},
	"PyTorchJob": {"pytorchReplicaSpecs", "pytorch", []string{"Master", "Worker"}},
	"JAXJob":     {"jaxReplicaSpecs", "jax", []string{"Worker"}},
	"XGBoostJob": {"xgbReplicaSpecs", "xgboost", []string{"Master", "Worker"}},
	"PaddleJob":  {"paddleReplicaSpecs", "paddle", []string{"Worker"}},
	"MXJob":      {"mxReplicaSpecs", "mxnet", []string{"Scheduler", "Worker"}},
	"MPIJob":     {"mpiReplicaSpecs", "mpi", []string{"Launcher", "Worker"}},
}

// Base returns an object of a kind with what the kind must have.
func Base(kind, apiVersion string) *unstructured.Unstructured {
	object := map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "sample", "namespace": "team"}, "spec": map[string]any{},
	}
	set := func(path string, value any) { rayio.Set(object, path, value) }
	switch of, hasRoles := roles[kind]; {
	case strings.HasSuffix(apiVersion, "/v1alpha1") && kind == "MPIJob":
		set("spec.replicas", int64(2))
		set("spec.template", template("mpi"))
	case hasRoles:
		for _, key := range of.keys {
			set("spec."+of.field+"."+key, map[string]any{"replicas": int64(1), "restartPolicy": "Never", "template": template(of.container)})
		}
	case kind == "TrainJob":
		set("spec.runtimeRef.name", "torch-distributed")
		set("spec.trainer", map[string]any{"image": image, "command": []any{"torchrun", "/src/train.py"}})
	case bases[kind] != nil:
		set("spec", runtime.DeepCopyJSON(bases[kind]))
	case kind == "MLTrainingJob":
		set("spec", map[string]any{"framework": "pytorch", "replicas": int64(2), "image": image, "command": []any{"python", "/src/train.py"}})
	}
	return &unstructured.Unstructured{Object: object}
}

// image is one that holds Ray.
const image = "registry.example/team/own-ray:2.60.0"

func template(container string) map[string]any {
	return map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
		"name": container, "image": image, "command": []any{"python", "/src/train.py"},
		"resources": map[string]any{"limits": map[string]any{"cpu": "2", "memory": "4Gi"}},
	}}}}
}

// odd are pod templates with what users have beside the program.
func odd(container string) []any {
	plain := template(container)
	of := func(more map[string]any, ofContainer map[string]any) map[string]any {
		made := runtime.DeepCopyJSON(plain)
		spec := made["spec"].(map[string]any)
		for key, value := range more {
			spec[key] = value
		}
		for key, value := range ofContainer {
			spec["containers"].([]any)[0].(map[string]any)[key] = value
		}
		return made
	}
	return []any{
		of(nil, map[string]any{"command": []any{"python", "/src/other.py"}}),
		of(map[string]any{"hostNetwork": true, "restartPolicy": "Never", "terminationGracePeriodSeconds": int64(90)}, nil),
		of(map[string]any{"serviceAccountName": "trainer", "nodeSelector": map[string]any{"pool": "gpu"},
			"tolerations": []any{map[string]any{"key": "gpu", "operator": "Exists"}}}, map[string]any{"workingDir": "/src"}),
		of(map[string]any{"volumes": []any{map[string]any{"name": "shm", "emptyDir": map[string]any{"medium": "Memory"}}}},
			map[string]any{"volumeMounts": []any{map[string]any{"name": "shm", "mountPath": "/dev/shm"}}}),
		of(map[string]any{"volumes": []any{map[string]any{"name": "runs", "persistentVolumeClaim": map[string]any{"claimName": "runs"}}}},
			map[string]any{"volumeMounts": []any{map[string]any{"name": "runs", "mountPath": "/tmp/ray/runs"}}}),
		of(map[string]any{"initContainers": []any{map[string]any{"name": "fetch", "image": "busybox:1.36"}}}, map[string]any{
			"args": []any{"--host", "sample-worker-0.team.svc", "--at", "$(HOME_DIR)/x", "--rank", "$(RANK)"},
			"env":  []any{map[string]any{"name": "HOME_DIR", "value": "/data"}, map[string]any{"name": "RANK", "value": "3"}},
		}),
		of(nil, map[string]any{"resources": map[string]any{"limits": map[string]any{"nvidia.com/gpu": "2"}}, "env": []any{map[string]any{
			"name": "KEY", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "hub", "key": "token"}}}}}),
		of(nil, map[string]any{"command": nil, "image": nil}),
		map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": container}}, "image": image}},
		map[string]any{},
	}
}

// Generate returns a job of one of the kinds.
func Generate(chance *rand.Rand) *unstructured.Unstructured {
	all := slices.DeleteFunc(Leaves(), func(l Leaf) bool { return l.Kind == "TrainingRuntime" || l.Kind == "Job" })
	kinds := slices.Compact(slices.Collect(func(yield func(string) bool) {
		for i := range all {
			if !yield(all[i].APIVersion + " " + all[i].Kind) {
				return
			}
		}
	}))
	of := Leaf{}
	of.APIVersion, of.Kind, _ = strings.Cut(kinds[chance.IntN(len(kinds))], " ")
	object := Base(of.Kind, of.APIVersion)
	object.SetName(fmt.Sprintf("sample-%d", chance.IntN(1000)))
	share := chance.Float64() * chance.Float64() / 3 // most objects say little
	for _, leaf := range all {
		if leaf.Kind != of.Kind || leaf.APIVersion != of.APIVersion || chance.Float64() > share {
			continue
		}
		values := Values(&leaf)
		rayio.Set(object.Object, leaf.At(), runtime.DeepCopyJSONValue(values[chance.IntN(len(values))]))
	}
	return object
}

// named are values of fields by their names, the plainest first.
var named = map[string][]any{
	"restartPolicy": {"OnFailure", "ExitCode", "Always", "Never"}, "managedBy": {"kueue.x-k8s.io/multikueue", "kubeflow.org/training-operator"},
	"successPolicy": {"AllWorkers", ""}, "nprocPerNode": {"2", "auto", "cpu", "gpu"}, "gpus": {int64(8), int64(16), int64(3), int64(9)},
	"GPUs": {int64(16), int64(8)}, "processingUnits": {int64(16), int64(8)}, "processingResourceType": {"cpu", "nvidia.com/gpu"},
	"jobMode": {"MXTrain"}, "framework": {"tensorflow", "paddle", "mxnet", "jax", "mpi", "caffe"}, "gpu": {int64(2)}, "cpu": {int64(4)},
	"memory": {"16Gi"}, "hyperparameters": {map[string]any{"learningRate": 0.01, "epochs": int64(3)}},
	"mainContainer": {"mpi"}, "limits": {map[string]any{"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "2"}}, "requests": {map[string]any{"cpu": "3"}},
	"command": {[]any{"python", "/src/other.py"}}, "minReplicas": {int64(1)}, "maxReplicas": {int64(3)}, "replicas": {int64(2), int64(1), int64(3)},
	"cleanPodPolicy": {"Running", "None", "All"}, "slotsPerWorker": {int64(2)}, "numNodes": {int64(2)}, "numProcPerNode": {int64(2)},
	"gpusPerNode": {int64(4)}, "processingUnitsPerNode": {int64(4)}, "priorityClass": {"high"}, "checkpointPath": {"/checkpoints"},
	"image": {"registry.example/other-ray:2.60.0"}, "kind": {"ClusterTrainingRuntime"}, "nProcPerNode": {int64(2)},
}

// Values are what users write into a field, the plainest first.
func Values(leaf *Leaf) []any {
	name := leaf.Path[strings.LastIndexAny(leaf.Path, ".}")+1:]
	if name == "name" && strings.HasSuffix(leaf.Path, "runtimeRef.name") {
		return []any{"jax-distributed", "torch-distributed", "mpi-distributed"}
	}
	if known, has := ofKinds[leaf.Kind+" "+leaf.Path]; has {
		return known
	}
	if known, has := ofTypes[leaf.Type]; has {
		return known
	}
	if known, has := named[name]; has {
		return known
	}
	kind, allowed, isEnum := strings.Cut(leaf.Type, " enum=")
	if isEnum {
		var words []any
		for word := range strings.SplitSeq(strings.TrimSuffix(allowed, ","), ",") {
			words = append(words, word)
		}
		return words
	}
	return valuesOfType(kind, leaf.Kind)
}

// valuesOfType are values of a type that no name tells, in an object of a kind.
func valuesOfType(name, kind string) []any {
	switch name {
	case "boolean":
		return []any{true, false}
	case "integer":
		return []any{int64(30), int64(1), int64(0)}
	case "map", "metadata":
		return []any{map[string]any{"team": "a"}}
	case "array[]":
		return []any{[]any{"one"}}
	case "array of env":
		return []any{[]any{map[string]any{"name": "LEVEL", "value": "info"}}}
	case "intOrString":
		return []any{int64(3), "3"}
	case "podTemplate":
		if of, has := roles[kind]; has {
			return odd(of.container)
		}
		if kind == "Job" {
			return odd("main")
		}
		return []any{map[string]any{"spec": map[string]any{"nodeSelector": map[string]any{"pool": "gpu"}}}}
	default:
		return []any{"some-name"}
	}
}
