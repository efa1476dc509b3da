package convert

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

var pyTorchKind = trainingKind{
	field: "pytorchReplicaSpecs", container: "pytorch", roles: []roleKind{{"Master", "master"}, {"Worker", "worker"}},
	framework: v1beta1.FrameworkPyTorch, restart: restartOnFailure,
}

const staticText = "torchrun runs with a fixed number of nodes here, and needs no address, as the gang gives it one."

var pyTorchRules = append(replicaRules(kindPyTorch, pyTorchKind.field, "Master and Worker"), append(elasticRules(kindPyTorch), []Rule{
	{
		Kind: kindPyTorch, Path: "spec.nprocPerNode", To: "gang.roles[].processesPerReplica", Verdict: Kept,
		Text: "With start: PerReplica, as torchrun starts the processes. auto, gpu and cpu become the number of GPUs or CPUs of the container. " +
			"Without it torchrun counts as with auto. 1 has no effect on a program that torchrun does not start.",
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
	{
		Kind: kindPyTorch, Path: "spec.elasticPolicy.standalone", Verdict: Dropped, Differs: true,
		Text: "All replicas train together. Write torchrun --standalone in the command to have each train alone.",
	},
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
	return trainingJob(c, &pyTorchKind, &spec, func(g *gangJob, sources []roleSource) {
		g.takeProcesses(&spec, sources)
		takeElastic(spec.ElasticPolicy, sources)
		switch isLed := has(sources, "master") >= 0; {
		case isLed:
			decide(c, sources, "master")
		case len(sources) > 0 && sources[0].start == "": // torchrun sets them in both
			c.change(sources[0].at, "gang.roles[]", "without a Master, processes found no RANK, WORLD_SIZE and MASTER_ADDR, and find them "+
				"now; a program that trains alone where they are missing must be told")
		}
	})
}

// takeProcesses says how many processes a replica has, where torchrun starts them. What runs without it is one process, whatever the job
// says.
func (g *gangJob) takeProcesses(spec *pyTorchJobSpec, sources []roleSource) {
	path, text := "spec.nprocPerNode", spec.NprocPerNode
	if elastic := spec.ElasticPolicy; elastic != nil && elastic.NProcPerNode != nil && text == "" {
		path, text = "spec.elasticPolicy.nProcPerNode", strconv.Itoa(int(*elastic.NProcPerNode))
	}
	for i := range sources {
		g.takeProcessesOf(&sources[i], path, text, spec.ElasticPolicy != nil)
	}
	if number, err := strconv.Atoi(text); (err != nil || number == 1) && spec.ElasticPolicy == nil {
		return
	}
	opaque := slices.IndexFunc(sources, func(s roleSource) bool {
		return s.start == v1beta1.StartPerReplica && !startsProcesses(wordsOf(&s, g.options.Kubeflow.Command))
	})
	if opaque >= 0 && has(sources, "master") >= 0 {
		g.change(sources[opaque].at, "gang.roles[].start", "the program starts the processes of a replica itself, and finds NODE_RANK and "+
			"PET_NNODES in place of RANK and WORLD_SIZE; take start and processesPerReplica out if it is a single process")
	}
}

// takeProcessesOf says it of one role, where text is what the job says at a path.
func (g *gangJob) takeProcessesOf(of *roleSource, path, text string, isElastic bool) {
	words := wordsOf(of, g.options.Kubeflow.Command)
	option, at, hasOption := nprocOption(words)
	hasOption = hasOption && !variableOfNumber.MatchString(option) // which says what the job says
	number, err := strconv.Atoi(text)
	isOne := err == nil && number == 1
	switch {
	case hasOption && !startsDirectly(words): // in the line of a shell, for which RANK is that of its node, as before
		if text != "" {
			g.drop(path, "the command says it too, which counts")
		}
	case hasOption:
		of.start = v1beta1.StartPerReplica
		g.count(wordPath(of, g.options.Kubeflow.Command, at), valueOf(containerOf(of), option), of)
	case startsProcesses(words) || isElastic || err == nil && !isOne:
		of.start = v1beta1.StartPerReplica
		if text != "" || !isPython(words) {
			g.count(path, text, of)
		}
	case isOne:
		g.keep(path)
	case text != "":
		g.drop(path, "the program runs once in each replica, as torchrun does not start it")
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

// wordPath returns where a word of a role's program stands.
func wordPath(of *roleSource, unsaid []string, number int) string {
	container := containerOf(of)
	field, first := "command", len(container.Command)
	if first == 0 {
		first = len(unsaid)
	}
	if number >= first {
		field, number = "args", number-first
	}
	return fmt.Sprintf("%s[%d]", containerPath(of, field), number)
}

// containerPath returns the path of a field of the container that runs a role's program.
func containerPath(of *roleSource, field string) string {
	at := slices.IndexFunc(of.template.Spec.Containers, func(c corev1.Container) bool { return c.Name == of.container })
	return fmt.Sprintf("%s.spec.containers[%d].%s", of.templateAt, max(at, 0), field)
}

// containerOf returns the container that runs the program of a role, nil where none is certain.
func containerOf(of *roleSource) *corev1.Container {
	all := of.template.Spec.Containers
	at := slices.IndexFunc(all, func(c corev1.Container) bool { return c.Name == of.container })
	switch {
	case at >= 0:
		return &all[at]
	case len(all) == 1 || len(all) > 0 && of.container == "":
		return &all[0]
	}
	return nil
}

// takeElastic takes the bounds of the workers, and reports whether a round may start with fewer.
func takeElastic(policy *elasticPolicy, sources []roleSource) bool {
	worker := has(sources, "worker")
	if policy == nil || worker < 0 {
		return false
	}
	if policy.MaxReplicas != nil {
		sources[worker].replicas = *policy.MaxReplicas
	}
	if policy.MinReplicas == nil || *policy.MinReplicas >= sources[worker].replicas {
		return false
	}
	sources[worker].least = *policy.MinReplicas
	return *policy.MinReplicas > 0
}
