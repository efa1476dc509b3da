package convert

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// containerNode is the name of a trainer's container.
const containerNode = "node"

const initializerText = "No container loads data or a model before the job. Load them in a first job, onto a claim that both have in " +
	"sharedVolumes, and take the initializer out."

var trainRules = []Rule{
	{
		Kind: kindTrain, Path: "spec.runtimeRef.name", To: "gang.framework", Verdict: Kept,
		Text: "torch-, jax-, xgboost-, mpi- and deepspeed-distributed are known. Another runtime is given by -f too, or read where the " +
			"TrainJob is live.",
	},
	{Kind: kindTrain, Path: "spec.runtimeRef.apiGroup", Verdict: Dropped, Text: "A ClusterJob refers to no runtime."},
	{Kind: kindTrain, Path: "spec.runtimeRef.kind", To: "gang.framework", Verdict: Kept, Text: "TrainingRuntime or " +
		"ClusterTrainingRuntime, the default."},
	{Kind: kindTrain, Path: "spec.initializer", Verdict: Refused, Whole: true, Text: initializerText},
	{Kind: kindTrain, Path: "spec.trainer.image", To: "clusterTemplate.spec.image", Verdict: Kept, Text: "It must hold Ray. --image maps it."},
	{Kind: kindTrain, Path: "spec.trainer.command", To: "command", Verdict: Kept, Text: "With torch it runs once in each replica (start: PerReplica)."},
	{Kind: kindTrain, Path: "spec.trainer.args", To: "command", Verdict: Kept},
	{
		Kind: kindTrain, Path: "spec.trainer.env", To: "env", Verdict: Kept, Whole: true,
		Text: "Variables with a value. Others stay in the template of the worker group, and are refused with --onto.",
	},
	{Kind: kindTrain, Path: "spec.trainer.numNodes", To: "gang.roles[].replicas", Verdict: Kept},
	{
		Kind: kindTrain, Path: "spec.trainer.numProcPerNode", To: "gang.roles[].processesPerReplica", Verdict: Kept,
		Text: "Of torch and mpi. Without it torchrun starts a process for each GPU of resourcesPerNode, or else each CPU, and mpirun one " +
			"for each GPU. With other frameworks each node has one process, as there.",
	},
	{
		Kind: kindTrain, Path: "spec.trainer.resourcesPerNode", To: "clusterTemplate.spec.workerGroups[].template", Verdict: Kept, Whole: true,
		Text: "CPUs and GPUs become the role's resources too.",
	},
	{
		Kind: kindTrain, Path: "spec.runtimePatches", To: "clusterTemplate.spec.workerGroups[].template", Verdict: Kept, Whole: true,
		Text: "Patches of pod templates are applied in their order. Labels of Jobs and of the JobSet have no counterpart.",
	},
	{Kind: kindTrain, Path: "spec.suspend", To: "suspend", Verdict: Kept, Text: "With Kueue's label it is dropped: Kueue set it."},
	{Kind: kindTrain, Path: "spec.activeDeadlineSeconds", To: "activeDeadlineSeconds", Verdict: Changed, Differs: true, Text: deadlineText},
	{
		Kind: kindTrain, Path: "spec.managedBy", To: "managedBy", Verdict: Kept,
		Text: managerTrainer + " becomes the default; kueue.x-k8s.io/multikueue stays.",
	},
}

// trainPart is what a TrainJob takes from elsewhere: its runtime, and what it changes of that.
type trainPart struct{ *conversion }

// trainJob converts a TrainJob by its runtime.
func trainJob(c *conversion) runtime.Object {
	var spec trainJobSpec
	if !c.read(&spec) {
		return nil
	}
	t := trainPart{c}
	of, found := t.runtimeOf(&spec.RuntimeRef)
	if !found {
		return nil
	}
	g := c.newGangJob(of.framework)
	worker := roleSource{
		name: "worker", alias: containerNode + "-0", at: "spec.trainer", templateAt: "spec.runtimeRef.template", template: of.template,
		container: containerNode, replicas: of.nodes, restart: of.restart, restartAt: "spec.runtimeRef",
	}
	if !t.applyPatches(spec.RuntimePatches, &worker) || !t.applyTrainer(&spec.Trainer, of, &worker) {
		return nil
	}
	g.takeRoles([]roleSource{worker})
	g.spec.Suspend = g.suspended("spec.suspend", spec.Suspend)
	g.spec.ActiveDeadlineSeconds = atMostAYear(spec.ActiveDeadlineSeconds)
	g.spec.ManagedBy = g.manager("spec.managedBy", spec.ManagedBy, managerTrainer)
	g.takeRestarts(nil, "", worker.restart, of.restarts)
	made := g.finished()
	g.moveRows()
	return made
}

// moveRows has rows about the pod template be about the fields of the job that say more of it, or else about what refers to it.
func (g *gangJob) moveRows() {
	for i := range g.rows {
		path := g.rows[i].Path
		if !isBelow(path, "spec.runtimeRef.template") {
			continue
		}
		g.rows[i].Path = "spec.runtimeRef"
		_, field, isOfContainer := strings.Cut(path, "].")
		if !isOfContainer || !strings.HasPrefix(path, "spec.runtimeRef.template.spec.containers[") {
			continue
		}
		name, _, _ := strings.Cut(field, "[")
		switch name {
		case "image", "command", "args":
			g.rows[i].Path = "spec.trainer." + field
		case "env":
			g.rows[i].Path = "spec.trainer.env"
		case "resources":
			g.rows[i].Path = "spec.trainer.resourcesPerNode"
		}
	}
}

// applyPatches applies what the job changes of the runtime's pod template.
func (t trainPart) applyPatches(patches []runtimePatch, to *roleSource) bool {
	for i := range patches {
		for j, job := range patches[i].Spec.Template.Spec.ReplicatedJobs {
			at := fmt.Sprintf("spec.runtimePatches[%d].trainingRuntimeSpec.template.spec.replicatedJobs[%d]", i, j)
			if job.Name != containerNode && len(job.Template.Spec.Template) > 0 {
				t.note(Row{Path: at, Verdict: Dropped, Differs: true, Text: "only pods of node are there; patch these"})
			}
			if job.Name != containerNode || len(job.Template.Spec.Template) == 0 {
				continue
			}
			template, err := patched(to.template, job.Template.Spec.Template)
			if err != nil {
				t.refuse(at, "it is no part of a pod template; correct it: "+firstLine(err.Error()))
				return false
			}
			to.template = template
		}
	}
	return true
}

// patched is a pod template with a part merged into it.
func patched(of corev1.PodTemplateSpec, part map[string]any) (corev1.PodTemplateSpec, error) {
	var made corev1.PodTemplateSpec
	before, err := json.Marshal(of)
	if err != nil {
		return made, fmt.Errorf("write the template: %w", err)
	}
	patch, err := json.Marshal(part)
	if err != nil {
		return made, fmt.Errorf("write the patch: %w", err)
	}
	after, err := strategicpatch.StrategicMergePatch(before, patch, corev1.PodTemplateSpec{})
	if err != nil {
		return made, fmt.Errorf("merge the patch: %w", err)
	}
	if err := json.Unmarshal(after, &made); err != nil {
		return made, fmt.Errorf("read the result: %w", err)
	}
	return made, nil
}

// applyTrainer puts what the job says of its container over what the runtime says.
func (t trainPart) applyTrainer(of *trainer, given *runtimePart, to *roleSource) bool {
	at := slices.IndexFunc(to.template.Spec.Containers, func(one corev1.Container) bool { return one.Name == containerNode })
	if at < 0 {
		t.refuse("spec.runtimeRef", "the runtime has no container node, which runs the program; name it so in the runtime")
		return false
	}
	node := &to.template.Spec.Containers[at]
	if of.Image != "" {
		node.Image = of.Image
	}
	if len(of.Command) > 0 {
		node.Command = of.Command
	}
	if len(of.Args) > 0 {
		node.Args = of.Args
	}
	node.Env = slices.Concat(node.Env, of.Env) // of two with one name the last one counts
	if of.ResourcesPerNode != nil {
		node.Resources = *of.ResourcesPerNode
	}
	if of.NumNodes != nil {
		to.replicas = *of.NumNodes
	}
	t.countPerNode(of, given, to)
	return true
}

// countPerNode says how many processes a node has. Kubeflow's Trainer starts a program once on each node, and tells torchrun and mpirun
// how many processes they start.
func (t trainPart) countPerNode(of *trainer, given *runtimePart, to *roleSource) {
	text, path := given.perNode, "spec.runtimeRef"
	if of.NumProcPerNode != nil {
		text, path = of.NumProcPerNode.String(), "spec.trainer.numProcPerNode"
	}
	switch given.framework {
	case v1beta1.FrameworkPyTorch:
		to.start = v1beta1.StartPerReplica
		t.countOfTorch(path, text, to)
	case v1beta1.FrameworkMPI:
		t.countOfMPI(path, text, to)
	default:
		if of.NumProcPerNode != nil {
			t.drop(path, "Kubeflow's Trainer starts one process on each node with this framework, and so does the gang")
		}
	}
}

// countOfTorch counts the processes of torchrun, by its option or what the job says. Of a plain Python program there is one.
func (t trainPart) countOfTorch(path, text string, to *roleSource) {
	words := wordsOf(to, t.options.Kubeflow.Command)
	option, at, hasOption := nprocOption(words)
	_, err := strconv.Atoi(text)
	switch {
	case hasOption && !variableOfNumber.MatchString(option) && startsDirectly(words):
		t.count(wordPath(to, t.options.Kubeflow.Command, at), valueOf(containerOf(to), option), to)
	case hasOption && isCount(option):
		t.count(path, option, to)
	case isPython(words) && err != nil:
		to.processes = 1
	default:
		t.count(path, text, to)
	}
}

// isCount reports whether a text is a number.
func isCount(text string) bool {
	_, err := strconv.Atoi(text)
	return err == nil
}

// countOfMPI counts the slots of a node: as the job says, and else one for each GPU.
func (t trainPart) countOfMPI(path, text string, to *roleSource) {
	if isCount(text) {
		t.count(path, text, to)
		return
	}
	to.processes = 1
	if container := containerOf(to); container != nil {
		to.processes = int32(max(gpusIn(container), 1))
	}
	if to.processes > 1 {
		t.adjust("spec.trainer", "gang.roles[].processesPerReplica", fmt.Sprintf("each node has %d processes, as its resources say; set "+
			"processesPerReplica for another number", to.processes))
	}
}
