package convert_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/heliostat-dev/heliostat/ray-operator/convert"
	"github.com/heliostat-dev/heliostat/tests/rayio"
)

// TestObject_LeavesOutHowTorchrunMeets: options by which torchrun would wait for itself, and not those of the program.
func TestObject_LeavesOutHowTorchrunMeets(t *testing.T) {
	for name, c := range map[string]struct{ command, want []any }{
		"a module's": {[]any{"python", "-m", "torch.distributed.run", "--rdzv_backend=c10d", "--nnodes=1:3", "--log_dir", "/l", "./echo.py"},
			[]any{"python", "-m", "torch.distributed.run", "--log_dir", "/l", "./echo.py"}},
		"with values of their own": {[]any{"torchrun", "--nnodes", "2", "--max_restarts", "3", "--rdzv_id", "x", "t.py"}, []any{"torchrun", "--nnodes", "2", "t.py"}},
		"and not the program's":    {[]any{"torchrun", "--no-python", "t.sh", "--max_restarts=3"}, []any{"torchrun", "--no-python", "t.sh", "--max_restarts=3"}},
		"in a shell's line": {[]any{"sh", "-c", "torchrun \\\n  --nnodes=1:2 \\\n  --rdzv_id=$(hostname) --rdzv_endpoint=$PET_RDZV_ENDPOINT \\\n  t.py; a --b"},
			[]any{"sh", "-c", "torchrun \\\n  t.py; a --b"}},
		"and not another program's": {[]any{"python", "t.py", "--max_restarts=3"}, []any{"python", "t.py", "--max_restarts=3"}},
	} {
		t.Run(name, func(t *testing.T) {
			object := base(torch)
			rayio.Unset(object.Object, "spec.pytorchReplicaSpecs.Master")
			rayio.Set(object.Object, torchContainer+".command", c.command)
			result := convert.Object(object, convert.Options{})
			if result.Refused() {
				t.Fatal(result.Rows)
			}
			command, _, _ := unstructured.NestedSlice(result.Objects[0].Object, "spec", "command")
			if diff := cmp.Diff(c.want, command); diff != "" {
				t.Errorf("the command is another (- wanted):\n%s", diff)
			}
		})
	}
}

// TestObject_StartsOncePerNodeAsTrainerDoes: with torch a program runs once on each node, and finds how many processes it may start.
func TestObject_StartsOncePerNodeAsTrainerDoes(t *testing.T) {
	for name, c := range map[string]struct {
		runtime string
		command []any
		said    any
		want    string // start and processes
	}{
		"a plain program of torch":       {"torch-distributed", []any{"python", "a.py"}, nil, "PerReplica <nil>"},
		"a plain program that may spawn": {"torch-distributed", []any{"python", "a.py"}, int64(4), "PerReplica 4"},
		"a line for a shell":             {"torch-distributed", []any{"bash", "-c", "accelerate launch a.py"}, nil, "PerReplica 2"},
		"a line with torchrun":           {"torch-distributed", []any{"bash", "-c", "torchrun --nproc_per_node=3 a.py"}, int64(4), "PerReplica 3"},
		"torchrun by itself":             {"torch-distributed", []any{"torchrun", "a.py"}, "auto", "PerReplica 2"},
		"a program of JAX":               {"jax-distributed", []any{"python", "a.py"}, int64(4), "<nil> <nil>"},
		"ranks of MPI":                   {"mpi-distributed", []any{"mpirun", "a"}, int64(4), "<nil> 4"},
	} {
		t.Run(name, func(t *testing.T) {
			object := base(train)
			rayio.Set(object.Object, "spec.runtimeRef.name", c.runtime)
			rayio.Set(object.Object, "spec.trainer.command", c.command)
			rayio.Set(object.Object, "spec.trainer.numProcPerNode", c.said)
			rayio.Set(object.Object, "spec.trainer.resourcesPerNode.limits", map[string]any{"cpu": "2", "memory": "4Gi"})
			result := convert.Object(object, convert.Options{})
			if result.Refused() {
				t.Fatal(result.Rows)
			}
			roles, _, _ := unstructured.NestedSlice(result.Objects[0].Object, "spec", "gang", "roles")
			role := roles[0].(map[string]any)
			if got := fmt.Sprintf("%v %v", role["start"], role["processesPerReplica"]); got != c.want {
				t.Errorf("it is %s, want %s: %v", got, c.want, result.Rows)
			}
		})
	}
}

// TestObject_KeepsALauncherThatHasMore: a launcher whose pod has what the workers' has not is a role of its own.
func TestObject_KeepsALauncherThatHasMore(t *testing.T) {
	const pod = "spec.mpiReplicaSpecs.Launcher.template.spec."
	both := func(path string, value any) fields {
		return fields{pod + path: value, "spec.mpiReplicaSpecs.Worker.template.spec." + path: value}
	}
	variable := func(value string) []any { return []any{map[string]any{"name": "MODE", "value": value}} }
	for name, c := range map[string]struct {
		set   fields
		roles int
	}{
		"nothing":                   {nil, 1},
		"a place":                   {fields{pod + "nodeSelector": map[string]any{"pool": "cpu"}}, 2},
		"the same place":            {both("nodeSelector", map[string]any{"pool": "cpu"}), 1},
		"a service account":         {fields{pod + "serviceAccountName": "driver"}, 2},
		"an init container":         {fields{pod + "initContainers": []any{map[string]any{"name": "fetch", "image": "busybox"}}}, 2},
		"an annotation":             {fields{"spec.mpiReplicaSpecs.Launcher.template.metadata.annotations": map[string]any{"a": "b"}}, 2},
		"another security context":  {fields{launcherContainer + ".securityContext": map[string]any{"runAsUser": int64(1)}}, 2},
		"resources":                 {fields{launcherContainer + ".resources": map[string]any{"limits": map[string]any{"cpu": "1"}}}, 1},
		"a variable with its value": {fields{launcherContainer + ".env": variable("l")}, 1},
		"a variable with another value": {fields{launcherContainer + ".env": variable("l"),
			"spec.mpiReplicaSpecs.Worker.template.spec.containers[0].env": variable("w")}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			object := base(mpi)
			for path, value := range c.set {
				rayio.Set(object.Object, path, value)
			}
			result := convert.Object(object, convert.Options{})
			if result.Refused() {
				t.Fatal(result.Rows)
			}
			if roles, _, _ := unstructured.NestedSlice(result.Objects[0].Object, "spec", "gang", "roles"); len(roles) != c.roles {
				t.Errorf("there are %d roles, want %d: %v", len(roles), c.roles, result.Rows)
			}
		})
	}
}

// TestObject_LeavesOutResourcesWithARow: what a job on a cluster that is there does not have of a container's resources.
func TestObject_LeavesOutResourcesWithARow(t *testing.T) {
	for name, c := range map[string]struct {
		limits    map[string]any
		selectors map[string]map[string]string
		want      string // path and verdict
	}{
		"memory":  {map[string]any{"cpu": "1", "memory": "1Gi"}, nil, torchContainer + ".resources[memory] dropped"},
		"devices": {map[string]any{"rdma/hca": "1"}, nil, torchContainer + ".resources[rdma/hca] refused"},
		"devices of nodes that are picked": {map[string]any{"rdma/hca": "1"}, map[string]map[string]string{"worker": {"net": "ib"}},
			torchContainer + ".resources[rdma/hca] dropped"},
		"memory alone, which makes one CPU": {map[string]any{"memory": "1Gi"}, nil, torchWorker + " changed"},
	} {
		t.Run(name, func(t *testing.T) {
			object := base(torch)
			rayio.Unset(object.Object, "spec.pytorchReplicaSpecs.Master")
			rayio.Set(object.Object, torchContainer+".resources.limits", c.limits)
			result := convert.Object(object, convert.Options{Kubeflow: convert.Kubeflow{Onto: "shared", Selectors: c.selectors}})
			for _, row := range result.Rows {
				if fmt.Sprintf("%s %s", row.Path, row.Verdict) == c.want {
					return
				}
			}
			t.Errorf("no row is %s: %v", c.want, result.Rows)
		})
	}
}

// TestObject_WritesPortsOfTensorFlow: those that TF_CONFIG has.
func TestObject_WritesPortsOfTensorFlow(t *testing.T) {
	object := base(tf)
	const container = "spec.tfReplicaSpecs.Worker.template.spec.containers[0]"
	rayio.Set(object.Object, container+".args", []any{"grpc://sample-chief-0:2222,sample-chief-0:80"})
	result := convert.Object(object, convert.Options{})
	if result.Refused() || !strings.Contains(text(result.Objects[0]), "grpc://$(chief.0.host):$(chief.0.port),$(chief.0.host):80") {
		t.Errorf("ports are others: %v, %v", result.Rows, text(result.Objects[0]))
	}
}

// TestObject_TellsWhatALauncherLosesOntoACluster: it runs in the place of worker 0, whatever its pod has.
func TestObject_TellsWhatALauncherLosesOntoACluster(t *testing.T) {
	object := base(mpi)
	mode := func(value string) []any { return []any{map[string]any{"name": "MODE", "value": value}} }
	rayio.Set(object.Object, launcherContainer+".env", mode("l"))
	rayio.Set(object.Object, "spec.mpiReplicaSpecs.Worker.template.spec.containers[0].env", mode("w"))
	rayio.Set(object.Object, "spec.mpiReplicaSpecs.Launcher.template.spec.nodeSelector", map[string]any{"pool": "cpu"})
	said := map[string]convert.Verdict{}
	for _, row := range convert.Object(object, convert.Options{Kubeflow: convert.Kubeflow{Onto: "shared"}}).Rows {
		said[row.Path] = row.Verdict
	}
	for path, want := range map[string]convert.Verdict{
		launcherContainer + ".env[0]":                              convert.Refused,
		launcherContainer + ".image":                               convert.Dropped,
		launcherContainer + ".resources":                           convert.Dropped,
		"spec.mpiReplicaSpecs.Launcher.template.spec.nodeSelector": convert.Dropped,
	} {
		if said[path] != want {
			t.Errorf("%s is %q, want %s", path, said[path], want)
		}
	}
}
