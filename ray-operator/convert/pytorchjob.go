package convert

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

var pyTorchRoles = []roleKind{{"Master", "master"}, {"Worker", "worker"}}

const staticText = "torchrun runs with a fixed number of nodes here, and needs no address, as the gang gives it one."

var pyTorchRules = append(replicaRules(kindPyTorch, "pytorchReplicaSpecs", "Master and Worker"), append(elasticRules(kindPyTorch), []Rule{
	{
		Kind: kindPyTorch, Path: "spec.nprocPerNode", To: "gang.roles[].processesPerReplica", Verdict: Kept,
		Text: "With start: PerReplica, as torchrun starts the processes. auto, gpu and cpu become the number of GPUs or CPUs of the container. " +
			"Without it torchrun counts as with auto.",
	},
	{
		Kind: kindPyTorch, Path: "spec.elasticPolicy.nProcPerNode", To: "gang.roles[].processesPerReplica", Verdict: Kept, Text: "As " +
			"nprocPerNode.",
	},
	{Kind: kindPyTorch, Path: "spec.elasticPolicy.rdzvBackend", Verdict: Dropped, Text: staticText},
	{Kind: kindPyTorch, Path: "spec.elasticPolicy.rdzvPort", Verdict: Dropped, Text: staticText},
	{Kind: kindPyTorch, Path: "spec.elasticPolicy.rdzvHost", Verdict: Dropped, Text: staticText},
	{Kind: kindPyTorch, Path: "spec.elasticPolicy.rdzvId", Verdict: Dropped, Text: staticText},
	{Kind: kindPyTorch, Path: "spec.elasticPolicy.rdzvConf", Verdict: Dropped, Whole: true, Text: staticText},
	{Kind: kindPyTorch, Path: "spec.elasticPolicy.standalone", Verdict: Dropped, Text: staticText},
}...)...)

// elasticRules are about the elastic policy of a kind.
func elasticRules(kind string) []Rule {
	return []Rule{
		{
			Kind: kind, Path: "spec.elasticPolicy.minReplicas", To: "gang.roles[].minReplicas", Verdict: Changed, Differs: true,
			Text: "A round starts with fewer workers, minReplicasAfterSeconds after the minimum is there. A running gang does not grow or shrink.",
		},
		{
			Kind: kind, Path: "spec.elasticPolicy.maxReplicas", To: "gang.roles[].replicas", Verdict: Changed, Differs: true,
			Text: "Each round asks for as many workers. A running gang does not grow.",
		},
		{
			Kind: kind, Path: "spec.elasticPolicy.maxRestarts", Verdict: Dropped, Differs: true,
			Text: "Only the whole gang restarts: gang.maxRestarts counts that, and follows restartPolicy and backoffLimit.",
		},
		{
			Kind: kind, Path: "spec.elasticPolicy.metrics", Verdict: Dropped, Differs: true, Whole: true,
			Text: "No autoscaler changes the number of workers by metrics.",
		},
	}
}

// pyTorchJob converts a PyTorchJob.
func pyTorchJob(c *conversion) runtime.Object {
	var spec pyTorchJobSpec
	if refuseMisplaced(c, "pytorchReplicaSpecs", pyTorchRoles) || !c.read(&spec) {
		return nil
	}
	g := c.newGangJob(v1beta1.FrameworkPyTorch)
	sources := gather(c, "pytorchReplicaSpecs", "pytorch", spec.Roles, pyTorchRoles)
	g.takeProcesses(&spec, sources)
	least := g.takeElastic(spec.ElasticPolicy, sources)
	if has(sources, "master") >= 0 {
		decide(c, sources, "master")
	}
	g.takeRoles(sources)
	if len(sources) > 0 && has(sources, "master") < 0 && g.roles[0].made.Start == "" { // torchrun sets them in both
		c.change(sources[0].at, "gang.roles[]", "without a Master, processes found no RANK, WORLD_SIZE and MASTER_ADDR, and find them "+
			"now; a program that "+
			"trains alone where they are missing must be told")
	}
	g.startWith(least)
	limit, path := g.takePolicy(&spec.jobPolicy, managerTraining)
	g.takeRestarts(limit, path, restartOnFailure, restartsUnsaid)
	return g.finished()
}

// What a job says of the processes of a node where it is no number. Without a word it is auto.
const (
	nprocAuto = "auto"
	nprocGPU  = "gpu"
	nprocCPU  = "cpu"
)

// takeProcesses says how many processes a replica has, where torchrun starts them. What runs without it is one process, whatever the job
// says.
func (g *gangJob) takeProcesses(spec *pyTorchJobSpec, sources []roleSource) {
	path, text := "spec.nprocPerNode", spec.NprocPerNode
	if elastic := spec.ElasticPolicy; elastic != nil && elastic.NProcPerNode != nil && text == "" {
		path, text = "spec.elasticPolicy.nProcPerNode", strconv.Itoa(int(*elastic.NProcPerNode))
	}
	for i := range sources {
		of := &sources[i]
		words := wordsOf(of, g.options.Kubeflow.Command)
		option, hasOption := nprocOption(words)
		_, isCounted := strconv.Atoi(text)
		switch {
		case hasOption && !startsDirectly(words): // in the line of a shell, for which RANK is that of its node, as before
			if text != "" {
				g.drop(path, "the command says it too, which counts")
			}
		case hasOption:
			of.start = v1beta1.StartPerReplica
			g.count(of.at, option, of)
		case startsProcesses(words) || text != "" && isCounted == nil || spec.ElasticPolicy != nil:
			of.start = v1beta1.StartPerReplica
			g.count(path, text, of)
		case text != "":
			g.drop(path, "the program runs once in each replica, as torchrun does not start it")
		}
	}
}

// wordsOf returns the program of a role with its arguments, where unsaid is what runs without a command.
func wordsOf(of *roleSource, unsaid []string) []string {
	container := containerOf(of)
	if container == nil {
		return nil
	}
	words := container.Command
	if len(words) == 0 {
		words = unsaid
	}
	return slices.Concat(words, container.Args)
}

// containerOf returns the container that runs the program of a role, nil where none is certain.
func containerOf(of *roleSource) *corev1.Container {
	all := of.template.Spec.Containers
	at := slices.IndexFunc(all, func(c corev1.Container) bool { return c.Name == of.container })
	switch {
	case at >= 0:
		return &all[at]
	case len(all) == 1:
		return &all[0]
	}
	return nil
}

// count counts the processes of a replica, as torchrun does where it is told a kind of device.
func (g *gangJob) count(path, text string, of *roleSource) {
	if number, err := strconv.Atoi(text); err == nil {
		of.processes = int32(max(number, 1))
		return
	}
	var gpus, cpus int64
	if container := containerOf(of); container != nil {
		gpus, cpus = gpusIn(container), cpusIn(container)
	}
	word := cmp.Or(text, nprocAuto)
	number, what := gpus, "GPUs"
	if word == nprocCPU || word == nprocAuto && gpus == 0 {
		number, what = cpus, "CPUs"
	}
	switch {
	case !slices.Contains([]string{nprocAuto, nprocGPU, nprocCPU}, word):
		g.refuse(path, "it is a number, auto, cpu or gpu; use one of them")
	case number == 0 && text == "":
		g.change(of.at, "gang.roles[].processesPerReplica", "torchrun counted the CPUs of the machine, and starts one process here; set "+
			"processesPerReplica for more")
	case number == 0:
		g.refuse(path, fmt.Sprintf("the number of %s is not in the resources of %s; write the number of processes", what, of.at))
	default:
		of.processes = int32(number)
		if text == "" {
			path = of.at
		}
		g.adjust(path, "gang.roles[].processesPerReplica", fmt.Sprintf("torchrun starts %d processes, the %s of the container", number, what))
	}
}

// gpusIn counts the GPUs of a container.
func gpusIn(of *corev1.Container) int64 {
	sum := int64(0)
	for name, quantity := range of.Resources.Limits {
		if naming.Accelerator(name) == naming.ResourceGPU {
			sum += quantity.Value()
		}
	}
	return sum
}

// cpusIn counts the CPUs of a container.
func cpusIn(of *corev1.Container) int64 {
	quantity, _ := amount(of, corev1.ResourceCPU)
	return quantity.Value()
}

// takeElastic takes the bounds of the workers, and returns the least number of them, 0 where there is no other.
func (g *gangJob) takeElastic(policy *elasticPolicy, sources []roleSource) int32 {
	worker := has(sources, "worker")
	if policy == nil || worker < 0 {
		return 0
	}
	if policy.MaxReplicas != nil {
		sources[worker].replicas = *policy.MaxReplicas
	}
	if policy.MinReplicas == nil || *policy.MinReplicas >= sources[worker].replicas {
		return 0
	}
	return *policy.MinReplicas
}

// startWith has rounds start with fewer workers.
func (g *gangJob) startWith(least int32) {
	for _, role := range g.roles {
		if role.name == "worker" {
			role.made.MinReplicas = least
		}
	}
}
