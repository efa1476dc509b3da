package convert

import (
	"fmt"
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
		Text: "With start: PerReplica, as torchrun starts the processes. auto, gpu and cpu become the number of GPUs or CPUs of the container.",
	},
	{
		Kind: kindPyTorch, Path: "spec.elasticPolicy.nProcPerNode", To: "gang.roles[].processesPerReplica", Verdict: Kept, Text: "As nprocPerNode.",
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
		c.change(sources[0].at, "gang.roles[]", "without a Master, processes found no RANK, WORLD_SIZE and MASTER_ADDR, and find them now; a program that "+
			"trains alone where they are missing must be told")
	}
	g.startWith(least)
	limit, path := g.takePolicy(&spec.jobPolicy, managerTraining)
	g.takeRestarts(limit, path, restartOnFailure, restartsUnsaid)
	return g.finished()
}

// takeProcesses says how many processes a replica has, which torchrun starts.
func (g *gangJob) takeProcesses(spec *pyTorchJobSpec, sources []roleSource) {
	path, text := "spec.nprocPerNode", spec.NprocPerNode
	if elastic := spec.ElasticPolicy; elastic != nil && elastic.NProcPerNode != nil && text == "" {
		path, text = "spec.elasticPolicy.nProcPerNode", strconv.Itoa(int(*elastic.NProcPerNode))
	}
	if text == "" && spec.ElasticPolicy == nil {
		return
	}
	for i := range sources {
		sources[i].start = v1beta1.StartPerReplica
		if text == "" {
			continue
		}
		number, err := strconv.Atoi(text)
		if err != nil {
			number = g.countProcesses(path, text, &sources[i])
		}
		sources[i].processes = int32(max(number, 1))
	}
}

// countProcesses counts processes as torchrun does where it is told a kind of device.
func (g *gangJob) countProcesses(path, text string, of *roleSource) int {
	var gpus, cpus int64
	for i := range of.template.Spec.Containers {
		if c := &of.template.Spec.Containers[i]; c.Name == of.container || len(of.template.Spec.Containers) == 1 {
			gpus, cpus = gpusIn(c), cpusIn(c)
		}
	}
	number, what := gpus, "GPUs"
	if text == "cpu" || text == "auto" && gpus == 0 {
		number, what = cpus, "CPUs"
	}
	switch {
	case text != "auto" && text != "cpu" && text != "gpu":
		g.refuse(path, "it is a number, auto, cpu or gpu; use one of them")
	case number == 0:
		g.refuse(path, fmt.Sprintf("the number of %s is not in the resources of %s; write the number of processes", what, of.at))
	default:
		g.adjust(path, "gang.roles[].processesPerReplica", fmt.Sprintf("%s becomes %d, the %s of the container", text, number, what))
	}
	return int(number)
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
