package convert_test

import (
	"fmt"
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
