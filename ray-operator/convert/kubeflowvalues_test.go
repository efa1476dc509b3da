package convert_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/heliostat-dev/heliostat/ray-operator/convert"
	"github.com/heliostat-dev/heliostat/tests/kubeflow"
	"github.com/heliostat-dev/heliostat/tests/rayio"
)

const (
	tf, torch, mpi, train = "kubeflow.org/v1 TFJob", "kubeflow.org/v1 PyTorchJob", "kubeflow.org/v2beta1 MPIJob", "trainer.kubeflow.org/v1alpha1 TrainJob"
	mpiFirst, mx          = "kubeflow.org/v1alpha1 MPIJob", "kubeflow.org/v1 MXJob"
	ml                    = "a.b/v1 MLTrainingJob"
	search                = "kubeflow.org/v1beta1 Experiment"
	optimization          = "trainer.kubeflow.org/v1alpha1 OptimizationJob"
	spark                 = "sparkoperator.k8s.io/v1beta2 SparkApplication"
	sparkTimes            = "sparkoperator.k8s.io/v1beta2 ScheduledSparkApplication"
	patchedJob            = "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0]"
	torchWorker           = "spec.pytorchReplicaSpecs.Worker"
	launcherContainer     = "spec.mpiReplicaSpecs.Launcher.template.spec.containers[0]"
	torchContainer        = torchWorker + ".template.spec.containers[0]"
)

// base returns an object of an API version and a kind.
func base(of string) *unstructured.Unstructured {
	version, kind, _ := strings.Cut(of, " ")
	return kubeflow.Base(kind, version)
}

// secretly is a variable from a Secret.
var secretly = map[string]any{"name": "KEY", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "hub", "key": "token"}}}

// ofPod is a variable from a field of the pod.
func ofPod(path string) map[string]any {
	return map[string]any{"name": "POD", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": path}}}
}

// judgedJob is a job with values, and the expected row about one of them.
type judgedJob struct {
	of      string
	set     fields
	path    string
	verdict convert.Verdict
	says    string
}

// judgedJobs has values of jobs of Kubeflow that make a difference, each with the row that says so.
var judgedJobs = map[string]judgedJob{
	"a version of long ago is refused": {"kubeflow.org/v1alpha1 TFJob", nil, "apiVersion", convert.Refused, "v1, v1beta2"},
	"another group is refused":         {"example.com/v1 PyTorchJob", nil, "apiVersion", convert.Refused, "is of kubeflow.org/v1"},
	"an unknown role is refused": {tf, fields{"spec.tfReplicaSpecs.Server": map[string]any{}},
		"spec.tfReplicaSpecs.Server", convert.Refused, "use Chief"},
	"a role twice is refused": {tf, fields{"spec.tfReplicaSpecs.worker": map[string]any{}},
		"spec.tfReplicaSpecs.worker", convert.Refused, "keep one"},
	"a job without roles is refused": {tf, fields{"spec.tfReplicaSpecs": map[string]any{}},
		"spec.tfReplicaSpecs", convert.Refused, "give Chief"},
	"no replica is refused": {torch, fields{torchWorker + ".replicas": int64(0)},
		torchWorker + ".replicas", convert.Refused, "at least one"},
	"an unknown restart policy is refused": {torch, fields{torchWorker + ".restartPolicy": "Sometimes"},
		torchWorker + ".restartPolicy", convert.Refused, "Always"},
	"a limit said twice is refused": {torch, fields{"spec.backoffLimit": int64(1), "spec.runPolicy.backoffLimit": int64(1)},
		"spec.backoffLimit", convert.Refused, "runPolicy"},
	"a limit of no restarts is dropped": {torch, fields{"spec.runPolicy.backoffLimit": int64(3)},
		"spec.runPolicy.backoffLimit", convert.Dropped, "restarts nothing"},
	"two years become one": {torch, fields{"spec.runPolicy.ttlSecondsAfterFinished": int64(63072000)},
		"spec.runPolicy.ttlSecondsAfterFinished", convert.Changed, "a year"},
	"Kueue's suspension is dropped": {torch, fields{"spec.runPolicy.suspend": true, "metadata.labels": map[string]any{"kueue.x-k8s.io/queue-name": "q"}},
		"spec.runPolicy.suspend", convert.Dropped, "Kueue"},
	"a queue beside Kueue's is dropped": {torch, fields{"spec.runPolicy.schedulingPolicy.queue": "q", "metadata.labels": map[string]any{"kueue.x-k8s.io/queue-name": "q"}},
		"spec.runPolicy.schedulingPolicy.queue", convert.Dropped, "Kueue's label"},
	"an init container has the user of its image": {torch, fields{torchWorker + ".template.spec.initContainers": []any{map[string]any{"name": "fetch", "image": "busybox"}}},
		torchWorker + ".template.spec.initContainers[0].securityContext.runAsUser", convert.Changed, "container fetch"},
	"an unknown success policy is refused": {tf, fields{"spec.successPolicy": "Some"},
		"spec.successPolicy", convert.Refused, "AllWorkers"},
	"processes of a plain program": {torch, fields{"spec.nprocPerNode": "auto"}, "spec.nprocPerNode", convert.Dropped, "does not start it"},
	"processes that a shell's line says": {torch, fields{"spec.nprocPerNode": "2", torchContainer + ".command": []any{"sh", "-c", "torchrun --nproc_per_node 2 x"}},
		"spec.nprocPerNode", convert.Dropped, "which counts"},
	"processes of GPUs that are not there": {torch, fields{"spec.nprocPerNode": "gpu", torchContainer + ".command": []any{"torchrun", "x"}},
		"spec.nprocPerNode", convert.Refused, "number of GPUs"},
	"processes of an unknown kind": {torch, fields{"spec.nprocPerNode": "many", torchContainer + ".command": []any{"torchrun", "x"}},
		"spec.nprocPerNode", convert.Refused, "auto, cpu or gpu"},
	"processes by a variable that is not there": {torch, fields{torchContainer + ".command": []any{"torchrun", "--nproc_per_node=$GPUS", "x"}},
		torchContainer + ".command[1]", convert.Refused, "auto, cpu or gpu"},
	"fewer than one process": {torch, fields{"spec.nprocPerNode": "-3", torchContainer + ".command": []any{"torchrun", "x"}},
		"spec.nprocPerNode", convert.Refused, "at least one"},
	"more processes than there are numbers": {torch, fields{"spec.nprocPerNode": "4294967298", torchContainer + ".command": []any{"torchrun", "x"}},
		"spec.nprocPerNode", convert.Refused, "at least one"},
	"several processes of a program that torchrun may start": {torch, fields{"spec.nprocPerNode": "2"},
		"spec.pytorchReplicaSpecs.Master", convert.Changed, "in place of RANK"},
	"torchrun's own meeting": {torch, fields{torchContainer + ".command": []any{"torchrun", "--rdzv_backend=c10d", "--rdzv-endpoint", "sample-worker-0:29400", "x"}},
		torchContainer + ".command[2]", convert.Dropped, "--rdzv-endpoint sample-worker-0:29400"},
	"torchrun's own restarts": {torch, fields{torchContainer + ".command": []any{"sh", "-c", "torchrun --max_restarts=3 x"}},
		torchContainer + ".command[2]", convert.Dropped, "only the whole gang restarts"},
	"a variable of torchrun's meeting": {torch, fields{torchContainer + ".env": []any{map[string]any{"name": "PET_RDZV_BACKEND", "value": "c10d"}}},
		torchContainer + ".env[0]", convert.Dropped, "by variables of the gang"},
	"processes of a node of JAX are dropped": {train, fields{"spec.runtimeRef.name": "jax-distributed", "spec.trainer.numProcPerNode": int64(4)},
		"spec.trainer.numProcPerNode", convert.Dropped, "one process on each node"},
	"a rank in a shell of torchrun's": {torch, fields{"spec.nprocPerNode": "2", torchContainer + ".args": []any{"--r=${RANK}"}},
		torchContainer + ".args[0]", convert.Refused, "NODE_RANK"},
	"a rank that Kubernetes would write": {torch, fields{torchContainer + ".args": []any{"$(RANK)"}},
		torchContainer + ".args[0]", convert.Refused, "line for a shell"},
	"a name of a pod that may be a file": {torch, fields{torchContainer + ".args": []any{"/logs/sample-worker-0"}},
		torchContainer + ".args[0]", convert.Changed, "$(worker.0.host)"},
	"a name without a number": {torch, fields{torchContainer + ".args": []any{"--job=sample-worker"}},
		torchContainer + ".args[0]", convert.Changed, "stays as it is"},
	"a name of a pod that a shell writes": {torch, fields{torchContainer + ".args": []any{"ping sample-worker-$i"}},
		torchContainer + ".args[0]", convert.Refused, "$(worker.0.host)"},
	"the name of a launcher's pod": {mpi, fields{launcherContainer + ".command": []any{"mpirun", "-H", "sample-launcher-x7", "a"}},
		launcherContainer + ".command[2]", convert.Changed, "$(worker.0.host)"},
	"a field that Kubeflow's operator sets": {torch, fields{torchContainer + ".env": []any{ofPod("metadata.labels['training.kubeflow.org/replica-index']")}},
		torchContainer + ".env[0]", convert.Refused, "take ROLE"},
	"the name of its own pod": {torch, fields{torchContainer + ".env": []any{ofPod("metadata.name")}},
		torchContainer + ".env[0]", convert.Changed, "ROLE_INDEX"},
	"the name of its own pod in a shell": {torch, fields{torchContainer + ".args": []any{"echo ${HOSTNAME##*-}"}},
		torchContainer + ".args[0]", convert.Changed, "ROLE_INDEX"},
	"the number of a Job's pod": {train, fields{"spec.trainer.args": []any{"--rank=$JOB_COMPLETION_INDEX"}},
		"spec.trainer.args[0]", convert.Refused, "ROLE_INDEX"},
	"labels of Kubeflow in a term": {torch, fields{torchWorker + ".template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution": []any{
		map[string]any{"topologyKey": "kubernetes.io/hostname", "labelSelector": map[string]any{"matchLabels": map[string]any{"training.kubeflow.org/job-name": "sample"}}}}},
		torchWorker + ".template.spec.affinity", convert.Changed, "heliostat.dev/cluster"},
	"a port of Kubeflow's beside a name": {torch, fields{torchContainer + ".args": []any{"sample-master-0:23456"}},
		torchContainer + ".args[0]", convert.Changed, "$MASTER_ADDR:$MASTER_PORT"},
	"another port beside a name": {torch, fields{torchContainer + ".args": []any{"sample-master-0:80"}},
		torchContainer + ".args[0]", convert.Changed, "port 80 stays"},
	"a pod that may be missing": {torch, fields{"spec.elasticPolicy": map[string]any{"minReplicas": int64(1), "maxReplicas": int64(3)},
		torchContainer + ".env": []any{map[string]any{"name": "PEER", "value": "sample-worker-2"}}},
		torchContainer + ".env[0]", convert.Refused, "minReplicas is 1"},
	"a port of Ray's own": {torch, fields{torchWorker + ".template": containers(map[string]any{"name": "log", "image": "log"}, map[string]any{
		"name": "pytorch", "image": "team/ray:2.60.0", "command": []any{"a"}, "ports": []any{map[string]any{"name": "web", "containerPort": int64(8080)}}})},
		torchWorker + ".template.spec.containers[1].ports[0]", convert.Changed, "listen on another"},
	"an image of two lines":        {torch, fields{torchContainer + ".image": "a\nRUN b"}, torchContainer + ".image", convert.Refused, "no space"},
	"a kind in another case":       {"kubeflow.org/v1 PytorchJob", nil, "kind", convert.Refused, "write PyTorchJob"},
	"a kind that is not converted": {"kubeflow.org/v1 Notebook", nil, "kind", convert.Kept, "as it is"},
	"patches of a former Trainer":  {train, fields{"spec.podTemplateOverrides": []any{}}, "spec.podTemplateOverrides", convert.Refused, "runtimePatches"},
	"parameters of one name": {ml, fields{"spec.hyperparameters": map[string]any{"learningRate": int64(1), "learning_rate": int64(2)}},
		"spec.hyperparameters.learning_rate", convert.Refused, "another name"},
	"a parameter of the system's": {ml, fields{"spec.hyperparameters": map[string]any{"path": "x"}},
		"spec.hyperparameters.path", convert.Refused, "another name"},
	"a parameter of the gang's": {ml, fields{"spec.hyperparameters": map[string]any{"rank": int64(8)}},
		"spec.hyperparameters.rank", convert.Refused, "another name"},
	"a variable of envFrom in a command": {torch, fields{torchContainer + ".envFrom": []any{map[string]any{"secretRef": map[string]any{"name": "hub"}}},
		torchContainer + ".args": []any{"--token=$(TOKEN)"}}, torchContainer + ".args[0]", convert.Refused, "line for a shell"},
	"a variable of a Service in a command": {torch, fields{torchContainer + ".args": []any{"$(REDIS_SERVICE_HOST)"}},
		torchContainer + ".args[0]", convert.Refused, "line for a shell"},
	"a variable that only a launcher's own pod finds": {mpi, fields{launcherContainer + ".env": []any{map[string]any{"name": "A", "value": "$(DB_SERVICE_HOST)"}}},
		launcherContainer + ".env[0]", convert.Refused, "shell line"},
	"a launch agent as a variable": {mpi, fields{launcherContainer + ".env": []any{map[string]any{"name": "OMPI_MCA_plm_rsh_agent", "value": "/etc/mpi/kubexec.sh"}}},
		launcherContainer + ".env[0]", convert.Dropped, "of its own"},
	"a file of Kubeflow's as a variable": {mpi, fields{launcherContainer + ".env": []any{map[string]any{"name": "HOSTS", "value": "/etc/mpi/hostfile"}}},
		launcherContainer + ".env[0]", convert.Refused, "take it out"},
	"deepspeed is refused": {mpi, fields{launcherContainer + ".command": []any{"deepspeed", "--hostfile", "/etc/mpi/hostfile", "x"}},
		launcherContainer + ".command[0]", convert.Refused, "write mpirun"},
	"a hostfile of another program is refused": {mpi, fields{launcherContainer + ".command": []any{"tar", "-f", "/etc/mpi/hostfile"}},
		launcherContainer + ".command[0]", convert.Refused, "/etc/mpi"},
	"credentials for an image are the head's too": {torch, fields{torchWorker + ".template.spec.imagePullSecrets": []any{map[string]any{"name": "hub"}}},
		torchWorker + ".template.spec.imagePullSecrets", convert.Changed, "the head"},
	"a name of a pod that is not there": {torch, fields{torchContainer + ".args": []any{"sample-worker-7"}},
		torchContainer + ".args[0]", convert.Refused, "names a pod"},
	"a name of a pod beside a Secret": {torch, fields{torchContainer + ".env": []any{secretly, map[string]any{"name": "URL", "value": "http://$(KEY)@sample-worker-0"}}},
		torchContainer + ".env[1]", convert.Refused, "shell line"},
	"no command is refused": {torch, fields{torchContainer + ".command": nil},
		torchContainer + ".command", convert.Refused, "--command"},
	"no image is refused": {torch, fields{torchContainer + ".image": nil},
		torchContainer + ".image", convert.Refused, "--image"},
	"several containers of other names": {torch, fields{torchWorker + ".template": containers(map[string]any{"name": "a"}, map[string]any{"name": "b"})},
		torchWorker + ".template.spec.containers", convert.Refused, "pytorch"},
	"the kind of a template is dropped": {torch, fields{torchWorker + ".template.kind": "Pod"}, torchWorker + ".template.kind", convert.Dropped, "no kind"},
	"a probe of the program is dropped": {torch, fields{torchContainer + ".livenessProbe": map[string]any{"tcpSocket": map[string]any{"port": int64(1)}}},
		torchContainer + ".livenessProbe", convert.Dropped, "probes itself"},
	"a variable of the gang's is dropped": {torch, fields{torchContainer + ".env": []any{map[string]any{"name": "MASTER_ADDR", "value": "x"}}},
		torchContainer + ".env[0]", convert.Dropped, "sets MASTER_ADDR"},
	"no launcher is refused": {mpi, fields{"spec.mpiReplicaSpecs.Launcher": nil},
		"spec.mpiReplicaSpecs.Launcher", convert.Refused, "nothing below it"},
	"horovodrun is refused": {mpi, fields{launcherContainer + ".command": []any{"horovodrun", "-np", "2", "x"}},
		launcherContainer + ".command[0]", convert.Refused, "write mpirun"},
	"a file of Kubeflow's is refused": {mpi, fields{launcherContainer + ".command": []any{"sh", "-c", "cat /etc/mpi/hostfile"}},
		launcherContainer + ".command[0]", convert.Refused, "/etc/mpi"},
	"a worker's own program is dropped": {mpi, nil,
		"spec.mpiReplicaSpecs.Worker.template.spec.containers[0].command", convert.Dropped, "only the launcher's"},
	"GPUs that do not divide are refused": {mpiFirst, fields{"spec.replicas": nil, "spec.gpus": int64(12)},
		"spec.gpus", convert.Refused, "does not divide"},
	"GPUs by a number of the job's divide": {mpiFirst, fields{"spec.replicas": nil, "spec.gpus": int64(12), "spec.gpusPerNode": int64(4)},
		"spec.gpus", convert.Changed, "3 replicas of 4"},
	"few GPUs are one replica": {mpiFirst, fields{"spec.replicas": nil, "spec.gpus": int64(4)},
		"spec.gpus", convert.Changed, "one replica of 4"},
	"GPUs beside replicas are refused": {mpiFirst, fields{"spec.gpus": int64(8)}, "spec.replicas", convert.Refused, "keep one"},
	"GPUs in two spellings are refused": {mpiFirst, fields{"spec.replicas": nil, "spec.gpus": int64(8), "spec.GPUs": int64(8)},
		"spec.GPUs", convert.Refused, "keep that"},
	"neither GPUs nor replicas are refused": {mpiFirst, fields{"spec.replicas": nil}, "spec.replicas", convert.Refused, "neither"},
	"tuning of MXNet is refused":            {mx, fields{"spec.jobMode": "MXTune"}, "spec.jobMode", convert.Refused, "only MXTrain"},
	"a patch that is none is refused": {train, fields{patchedJob + ".name": "node", patchedJob + ".template.spec.template.spec.containers": "x"},
		patchedJob, convert.Refused, "correct it"},
	"a patch of a launcher is dropped": {train, fields{patchedJob + ".name": "launcher",
		patchedJob + ".template.spec.template.spec.hostNetwork": true}, patchedJob, convert.Dropped, "patch these"},
	"a runtime that is not given is refused": {train, fields{"spec.runtimeRef.name": "own"},
		"spec.runtimeRef", convert.Refused, "by -f too"},
	"another framework is refused": {ml, fields{"spec.framework": "caffe"},
		"spec.framework", convert.Refused, "use one of"},
	"a parameter of parts is refused": {ml, fields{"spec.hyperparameters": map[string]any{"layers": []any{int64(1)}}},
		"spec.hyperparameters.layers", convert.Refused, "one value"},
	"tuning that is off is dropped": {ml, fields{"spec.autoTuning": map[string]any{"enabled": false}},
		"spec.autoTuning", convert.Dropped, "off"},
}

func TestObject_JudgesValuesOfJobs(t *testing.T) {
	all := maps.Clone(judgedJobs)
	maps.Copy(all, judgedSearches)
	maps.Copy(all, judgedApplications)
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			object := base(c.of)
			for path, value := range c.set {
				rayio.Set(object.Object, path, value)
			}
			result := convert.Object(object, convert.Options{})
			for _, row := range result.Rows {
				if row.Path == c.path && row.Verdict == c.verdict && strings.Contains(row.Text, c.says) {
					return
				}
			}
			t.Errorf("no row says that %s is %s, with %q: %v", c.path, c.verdict, c.says, result.Rows)
		})
	}
}

// TestObject_WritesWhatAGangReads: texts of a container, and what a role has of them.
func TestObject_WritesWhatAGangReads(t *testing.T) {
	for name, c := range map[string]struct {
		env  []any
		arg  string
		want string
	}{
		"a plain word":                     {nil, "--epochs=3", "--epochs=3"},
		"a variable":                       {[]any{map[string]any{"name": "DATA", "value": "/d"}}, "$(DATA)/train", "/d/train"},
		"a variable of a variable":         {[]any{map[string]any{"name": "A", "value": "/a"}, map[string]any{"name": "B", "value": "$(A)/b"}}, "$(B)", "/a/b"},
		"a variable that is not there":     {nil, "$(hostname)", "$(hostname)"},
		"a dollar sign":                    {nil, "$$HOME and $HOME", "$HOME and $HOME"},
		"what only looks like a reference": {nil, "$(index) $(a.sh) $$(b)", "$$(index) $$(a.sh) $(b)"},
		"the name of a pod":                {nil, "sample-worker-0", "$(worker.0.host)"},
		"an address":                       {nil, "tcp://sample-master-0.team.svc.cluster.local:23456/x", "tcp://$(master.0.host):23456/x"},
		"the name of another job's pod":    {nil, "other-sample-worker-0", "other-sample-worker-0"},
		"a reference to a role":            {nil, "for i in $(worker.0.host) $(master.addresses) $(worker.sh)", "for i in $(worker.0.host) $(master.addresses) $$(worker.sh)"},
		"a reference to no role":           {nil, "$(ps.0.host)", "$$(ps.0.host)"},
		"a command of a shell":             {nil, "$(hostname)", "$(hostname)"},
		"what Kubeflow sets":               {nil, "$(MASTER_ADDR):$(MASTER_PORT)", "$(master.0.host):$(master.0.port)"},
	} {
		t.Run(name, func(t *testing.T) {
			object := base(torch)
			rayio.Set(object.Object, torchContainer+".env", c.env)
			rayio.Set(object.Object, torchContainer+".args", []any{c.arg})
			result := convert.Object(object, convert.Options{})
			if result.Refused() {
				t.Fatal(result.Rows)
			}
			roles, _, _ := unstructured.NestedSlice(result.Objects[0].Object, "spec", "gang", "roles")
			command := roles[1].(map[string]any)["command"].([]any)
			if got := command[len(command)-1]; got != c.want {
				t.Errorf("it becomes %q, want %q", got, c.want)
			}
		})
	}
}

func TestChoices_DivideACommandAsAShellDoes(t *testing.T) {
	for line, want := range map[string][]string{
		"python  train.py":         {"python", "train.py"},
		`sh -c 'a "b" c'`:          {"sh", "-c", `a "b" c`},
		`a "b 'c' \" d" e\ f "" g`: {"a", `b 'c' " d`, "e f", "", "g"},
		"":                         nil,
	} {
		made, err := (&convert.Choices{Command: line}).Read()
		if diff := cmp.Diff(want, made.Command); diff != "" || err != nil {
			t.Errorf("%s is divided otherwise (- wanted), %v:\n%s", line, err, diff)
		}
	}
}

// TestObject_CountsProcessesAsTorchrunDoes: by the job, by the command, and by the devices of the container.
func TestObject_CountsProcessesAsTorchrunDoes(t *testing.T) {
	for name, c := range map[string]struct {
		command []any
		said    any
		want    string // start and processes
	}{
		"a plain program":                    {[]any{"python", "x"}, nil, "<nil> <nil>"},
		"torchrun, by the CPUs":              {[]any{"torchrun", "x"}, nil, "PerReplica 2"},
		"torchrun, by the job":               {[]any{"torchrun", "x"}, "3", "PerReplica 3"},
		"torchrun, by its option":            {[]any{"torchrun", "--nproc-per-node", "4", "x"}, "3", "PerReplica 4"},
		"a module, by its option":            {[]any{"python", "-m", "torch.distributed.run", "--nproc_per_node=4", "x"}, nil, "PerReplica 4"},
		"a shell's line, by the CPUs":        {[]any{"sh", "-c", "cd /src && torchrun x"}, nil, "PerReplica 2"},
		"a shell's line, by itself":          {[]any{"sh", "-c", "torchrun --nproc_per_node=4 --node_rank=$RANK x"}, nil, "<nil> <nil>"},
		"a script, by the job":               {[]any{"bash", "run.sh"}, "2", "PerReplica 2"},
		"a plain program with one":           {[]any{"python", "x"}, "1", "<nil> <nil>"},
		"a line, by the job's variable":      {[]any{"sh", "-c", `torchrun --nproc_per_node="${PET_NPROC_PER_NODE}" x`}, "2", "PerReplica 2"},
		"torchrun, by the job's variable":    {[]any{"torchrun", "--nproc_per_node", "$(PET_NPROC_PER_NODE)", "x"}, "2", "PerReplica 2"},
		"torchrun, by a variable of its own": {[]any{"torchrun", "--nproc_per_node=$(NPROC)", "x"}, nil, "PerReplica 8"},
	} {
		t.Run(name, func(t *testing.T) {
			object := base(torch)
			rayio.Unset(object.Object, "spec.pytorchReplicaSpecs.Master")
			rayio.Set(object.Object, torchContainer+".command", c.command)
			rayio.Set(object.Object, torchContainer+".env", []any{map[string]any{"name": "NPROC", "value": "8"}})
			rayio.Set(object.Object, "spec.nprocPerNode", c.said)
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

// TestObject_SharesAClaimOfAllPods: where the head can mount it too, and the rules let a cluster have it.
func TestObject_SharesAClaimOfAllPods(t *testing.T) {
	claim := map[string]any{"name": "runs", "persistentVolumeClaim": map[string]any{"claimName": "runs"}}
	twice := map[string]any{"name": "again", "persistentVolumeClaim": map[string]any{"claimName": "runs"}}
	for name, c := range map[string]struct {
		replicas int64
		mount    map[string]any
		isShared bool
		more     []any
	}{
		"of two pods":             {2, map[string]any{"name": "runs", "mountPath": "/runs"}, true, nil},
		"of two volumes of a pod": {2, map[string]any{"name": "runs", "mountPath": "/runs"}, false, []any{twice}},
		"to read alone":           {2, map[string]any{"name": "runs", "mountPath": "/runs", "readOnly": true}, true, nil},
		"of one pod":              {1, map[string]any{"name": "runs", "mountPath": "/runs"}, false, nil},
		"of which a part is used": {2, map[string]any{"name": "runs", "mountPath": "/runs", "subPath": "a"}, false, nil},
		"over Ray's own files":    {2, map[string]any{"name": "runs", "mountPath": "/tmp/ray/runs"}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			object := base(torch)
			rayio.Unset(object.Object, "spec.pytorchReplicaSpecs.Master")
			rayio.Set(object.Object, torchWorker+".replicas", c.replicas)
			rayio.Set(object.Object, torchWorker+".template.spec.volumes", append([]any{claim}, c.more...))
			rayio.Set(object.Object, torchContainer+".volumeMounts", []any{c.mount})
			result := convert.Object(object, convert.Options{})
			if result.Refused() {
				t.Fatal(result.Rows)
			}
			_, isShared, _ := unstructured.NestedSlice(result.Objects[0].Object, "spec", "clusterTemplate", "spec", "sharedVolumes")
			if isShared != c.isShared {
				t.Errorf("shared: %v, want %v: %s", isShared, c.isShared, text(result.Objects[0]))
			}
		})
	}
}

// TestObject_ReadsRaysVersion: from the name of an image that holds Ray, and else the newest, with a row that says how to put it there.
func TestObject_ReadsRaysVersion(t *testing.T) {
	for image, want := range map[string]string{
		"rayproject/ray:2.58.0-py311-gpu": "2.58.0", "registry.example:5000/team/torch-ray:2.57.1": "2.57.1", "team/torch:2.5.1-ray2.56.0": "2.56.0",
		"rayproject/ray:nightly": "nightly", "team/ray:latest": "2.60.0", "team/array:2.58.0": "told 2.60.0", "pytorch/pytorch:2.5.1": "told 2.60.0",
		"rayproject/ray:2.9.0": "told 2.60.0", "team/x-ray:3.1.0": "told 2.60.0",
	} {
		object := base(torch)
		rayio.Unset(object.Object, "spec.pytorchReplicaSpecs.Master")
		rayio.Set(object.Object, torchContainer+".image", image)
		result := convert.Object(object, convert.Options{})
		got, _, _ := unstructured.NestedString(result.Objects[0].Object, "spec", "clusterTemplate", "spec", "rayVersion")
		for _, row := range result.Rows {
			if row.Path == torchContainer+".image" && strings.Contains(row.Text, "\nFROM "+image+"\n") {
				got = "told " + got
			}
		}
		if got != want {
			t.Errorf("%s holds Ray %s, want %s: %v", image, got, want, result.Rows)
		}
	}
}
