package convert

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

var mlRules = []Rule{
	{
		Kind: kindML, Path: "spec.framework", To: "gang.framework", Verdict: Kept,
		Text: "pytorch, tensorflow, jax, xgboost, mpi and horovod. paddle and mxnet become Generic, with their variables.",
	},
	{Kind: kindML, Path: "spec.replicas", To: "gang.roles[].replicas", Verdict: Kept, Text: "Of the role worker."},
	{Kind: kindML, Path: "spec.image", To: "clusterTemplate.spec.image", Verdict: Kept, Text: "It must hold Ray. Without it, pass " +
		"--image IMAGE."},
	{Kind: kindML, Path: "spec.command", To: "command", Verdict: Kept, Text: "Without it, pass --command PROGRAM."},
	{Kind: kindML, Path: "spec.args", To: "command", Verdict: Kept},
	{Kind: kindML, Path: "spec.resources.gpu", To: "gang.roles[].resources", Verdict: Kept, Text: "As nvidia.com/gpu of the worker group."},
	{Kind: kindML, Path: "spec.resources.cpu", To: "gang.roles[].resources", Verdict: Kept},
	{Kind: kindML, Path: "spec.resources.memory", To: "clusterTemplate.spec.workerGroups[].template", Verdict: Kept},
	{
		Kind: kindML, Path: "spec.hyperparameters", To: "env", Verdict: Changed, Whole: true,
		Text: "learningRate becomes the variable LEARNING_RATE, and so on. The program must read them.",
	},
	{
		Kind: kindML, Path: "spec.checkpointPath", To: "env", Verdict: Changed,
		Text: "As the variable CHECKPOINT_PATH. Add sharedVolumes with a mountPath at or above it to clusterTemplate.spec, or with --onto to the ComputeCluster: " +
			"without a volume the program may not be able to write there. A URL needs none.",
	},
	{
		Kind: kindML, Path: "spec.autoTuning.enabled", To: "tune", Verdict: Kept,
		Text: "false drops autoTuning as a whole.",
	},
	{
		Kind: kindML, Path: "spec.autoTuning.algorithm", To: "tune.algorithm", Verdict: Changed,
		Text: "bayesian and tpe become TPE, random Random, and grid Grid. The Python that has Ray needs optuna.",
	},
	{Kind: kindML, Path: "spec.autoTuning.maxTrials", To: "tune.maxTrials", Verdict: Kept, Text: "Without it autoTuning is refused."},
	{
		Kind: kindML, Path: "spec.autoTuning.parallelTrials", To: "tune.parallelTrials", Verdict: Kept,
		Text: "1 is the default. The job's own cluster has workers for as many trials.",
	},
	{
		Kind: kindML, Path: "spec.autoTuning.objective", To: "tune.objective", Verdict: Changed,
		Text: "Its name says the direction: accuracy, auc and f1 are maximized, and loss and error minimized. The first process must print it, " +
			"as in val_accuracy=0.93.",
	},
	{
		Kind: kindML, Path: "spec.autoTuning.parameters", To: "tune.parameters", Verdict: Changed, Whole: true,
		Text: "learningRate becomes the variable LEARNING_RATE of each trial, and so on. The program must read them. One that hyperparameters " +
			"have too is taken from here.",
	},
}

// mlFrameworks are frameworks by the names that articles write.
var mlFrameworks = map[string]v1beta1.GangFramework{
	"pytorch": v1beta1.FrameworkPyTorch, "tensorflow": v1beta1.FrameworkTensorFlow, "jax": v1beta1.FrameworkJAX, "xgboost": v1beta1.FrameworkXGBoost,
	"mpi": v1beta1.FrameworkMPI, "horovod": v1beta1.FrameworkMPI, "paddle": v1beta1.FrameworkGeneric, "paddlepaddle": v1beta1.FrameworkGeneric,
	"mxnet": v1beta1.FrameworkGeneric,
}

// mlTrainingJob converts an MLTrainingJob, a kind that articles define for themselves.
func mlTrainingJob(c *conversion, spec *mlTrainingJobSpec) runtime.Object {
	framework, isKnown := mlFrameworks[strings.ToLower(spec.Framework)]
	if !isKnown {
		c.refuse("spec.framework", fmt.Sprintf("%.40q is no framework that is known; use one of %s", spec.Framework,
			strings.Join(slices.Sorted(maps.Keys(mlFrameworks)), ", ")))
		return nil
	}
	t := autoTuned(c, spec)
	container := corev1.Container{
		Name: "program", Image: spec.Image, Command: spec.Command, Args: spec.Args, Resources: mlResources(spec), Env: parameters(c, spec, framework),
	}
	sources := []roleSource{{
		name: "worker", alias: "worker", at: "spec", templateAt: "spec.template", restartAt: "spec",
		template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{container}}}, replicas: 1,
	}}
	if spec.Replicas != nil {
		sources[0].replicas = *spec.Replicas
	}
	switch strings.ToLower(spec.Framework) {
	case "paddle", "paddlepaddle":
		setPaddle(c, sources, false)
	case "mxnet":
		setMX(c, sources)
		c.change("spec.framework", "gang.roles", "the gang has workers alone; for a store of parameters add roles scheduler and server, "+
			"and their DMLC_ variables")
	}
	g := c.newGangJob(framework)
	if framework == v1beta1.FrameworkPyTorch {
		g.takeProcesses(&pyTorchJobSpec{}, sources)
	}
	g.takeRoles(sources)
	for i := range g.rows {
		g.rows[i].Path = strings.Replace(g.rows[i].Path, "spec.template.spec.containers[0]", "spec", 1)
	}
	g.takeRestarts(nil, "", restartNever, 0)
	job := g.finished()
	if t == nil {
		return job
	}
	template := &trialTemplate{conversion: c, at: "spec.autoTuning"}
	return template.withTune(job, &t.made)
}

// tunedAlgorithms are the algorithms that articles name.
var tunedAlgorithms = map[string]v1beta1.TuneAlgorithm{
	"": v1beta1.TuneTPE, "bayesian": v1beta1.TuneTPE, "tpe": v1beta1.TuneTPE, "random": v1beta1.TuneRandom, "grid": v1beta1.TuneGrid,
}

// autoTuned returns the search of a job, nil where it has none.
func autoTuned(c *conversion, spec *mlTrainingJobSpec) *tunePart {
	const at = "spec.autoTuning."
	given, t := &spec.AutoTuning, &tunePart{conversion: c, parametersAt: at + "parameters"}
	if reflect.ValueOf(*given).IsZero() {
		return nil
	}
	if !ptr.Deref(given.Enabled, false) {
		c.drop("spec.autoTuning", "it is off")
		for _, field := range []string{"algorithm", "objective", "parameters"} {
			c.keep(at + field)
		}
		return nil
	}
	algorithm, isKnown := tunedAlgorithms[strings.ToLower(given.Algorithm)]
	if !isKnown {
		c.refuse(at+"algorithm", fmt.Sprintf("%.40q has no counterpart; use bayesian, random or grid", given.Algorithm))
	}
	t.made.Algorithm = algorithm
	if isKnown {
		t.tellOptuna(at + "algorithm")
	}
	t.made.Objective = v1beta1.TuneObjective{Metric: given.Objective, Direction: direction(given.Objective)}
	if t.made.Objective.Direction == "" {
		c.refuse(at+"objective", "its name does not say which values are better; name it with one of the words accuracy, auc, f1, loss and error, "+
			"such as val_accuracy")
	} else {
		t.adjust(at+"objective", "tune.objective", fmt.Sprintf("its direction becomes %s, as its name says; the first process must print %s=NUMBER",
			t.made.Objective.Direction, given.Objective))
	}
	if given.MaxTrials == nil {
		c.refuse(at+"maxTrials", "a search ends after a number of trials; give it")
	} else {
		t.made.MaxTrials = t.within(at+"maxTrials", *given.MaxTrials, mostTrials)
	}
	parallel := int32(1)
	if given.ParallelTrials != nil {
		parallel = *given.ParallelTrials
	}
	t.limitParallel(at+"parallelTrials", parallel)
	takeTuned(t, spec)
	names := slices.Sorted(maps.Keys(given.Parameters))
	t.listGrid(func(number int) string { return join(at+"parameters", names[number]) })
	c.trial = &trial{parameters: t.names()}
	return t
}

// takeTuned takes the parameters of a search. One that is among the hyperparameters too is no variable of these.
func takeTuned(t *tunePart, spec *mlTrainingJobSpec) {
	for _, name := range slices.Sorted(maps.Keys(spec.AutoTuning.Parameters)) {
		at, given := join("spec.autoTuning.parameters", name), spec.AutoTuning.Parameters[name]
		p := v1beta1.TuneParameter{Name: t.nameOf(at, name), Min: plainText(given.Min), Max: plainText(given.Max), Step: plainText(given.Step)}
		switch strings.ToLower(given.Type) {
		case "float", "double":
			p.Type = v1beta1.ParameterFloat
		case "int", "integer":
			p.Type = v1beta1.ParameterInt
		case "categorical", "string":
			p.Type = v1beta1.ParameterCategorical
		default:
			t.refuse(at, "types are float, int and categorical; use one of them")
		}
		switch given.Scale {
		case "", "linear":
		case "log":
			p.Scale = v1beta1.ScaleLog
		default:
			t.refuse(at, "scales are linear and log; use one of them")
		}
		for _, value := range given.Values {
			p.Values = append(p.Values, plainText(value))
		}
		t.add(at, p)
		for _, other := range slices.Sorted(maps.Keys(spec.Hyperparameters)) {
			if variableOf(other) == variableOf(name) {
				t.drop(join("spec.hyperparameters", other), "autoTuning sets it in each trial")
				delete(spec.Hyperparameters, other)
			}
		}
	}
}

// plainText writes a text, or a number as JSON has it.
func plainText(value any) string {
	if text, is := value.(string); is {
		return text
	}
	return numberOrWord(value)
}

// mlResources are the resources of each replica.
func mlResources(spec *mlTrainingJobSpec) corev1.ResourceRequirements {
	limits, requests := corev1.ResourceList{}, corev1.ResourceList{}
	for name, quantity := range map[corev1.ResourceName]*resource.Quantity{
		formerResource: spec.Resources.GPU, corev1.ResourceMemory: spec.Resources.Memory,
	} {
		if quantity != nil {
			limits[name], requests[name] = *quantity, *quantity
		}
	}
	if spec.Resources.CPU != nil {
		requests[corev1.ResourceCPU] = *spec.Resources.CPU
	}
	return corev1.ResourceRequirements{Limits: limits, Requests: requests}
}

// parameters are the variables for what the program was to find in its spec.
func parameters(c *conversion, spec *mlTrainingJobSpec, framework v1beta1.GangFramework) []corev1.EnvVar {
	var env []corev1.EnvVar
	for _, name := range slices.Sorted(maps.Keys(spec.Hyperparameters)) {
		value := spec.Hyperparameters[name]
		text := plainText(value)
		if text == "" {
			c.refuse(join("spec.hyperparameters", name), "a variable has one value; give a number, a text, true or false")
			continue
		}
		variable := variableOf(name)
		isThere := slices.ContainsFunc(env, func(e corev1.EnvVar) bool { return e.Name == variable }) ||
			spec.CheckpointPath != "" && variable == checkpointVariable
		if variable == "" || isThere || systemVariable.MatchString(variable) || isOfGang(framework, variable) {
			c.refuse(join("spec.hyperparameters", name), fmt.Sprintf("it becomes the variable %.60s, which the system, the gang or another "+
				"parameter has; give it another name, and have the program read that", variable))
			continue
		}
		env = append(env, corev1.EnvVar{Name: variable, Value: strings.ReplaceAll(text, "$", "$$")})
	}
	if spec.CheckpointPath != "" {
		path := strings.ReplaceAll(spec.CheckpointPath, "$", "$$")
		if c.trial != nil {
			path = strings.TrimRight(path, "/") + "/" + numberOfTrial
			c.adjust("spec.checkpointPath", "env", "each trial has a directory of its own in CHECKPOINT_PATH, which the program makes; add "+
				"sharedVolumes with a mountPath at or above this path to clusterTemplate.spec, or with --onto to the ComputeCluster")
		}
		env = append(env, corev1.EnvVar{Name: checkpointVariable, Value: path})
	}
	return env
}

// checkpointVariable is the variable for checkpointPath.
const checkpointVariable = "CHECKPOINT_PATH"

// systemVariable matches variables without which programs do not start as they should.
var systemVariable = regexp.MustCompile(`^(PATH|HOME|USER|SHELL|PWD|TMPDIR|HOSTNAME|PYTHON[A-Z]*|LD_.*|RAY_.*|HELIOSTAT_.*)$`)

// numberOrWord writes a number, true or false as JSON has it, and nothing for what has several values.
func numberOrWord(value any) string {
	switch value := value.(type) {
	case float64:
		return strconv.FormatFloat(value, 'g', -1, 64)
	case int64, bool, json.Number:
		return fmt.Sprint(value)
	default:
		return ""
	}
}
