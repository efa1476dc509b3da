package convert

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

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
		Text: "As the variable CHECKPOINT_PATH. Add sharedVolumes with that mountPath to the cluster, or checkpoints go with the pods.",
	},
	{
		Kind: kindML, Path: "spec.autoTuning", Verdict: Refused, Whole: true,
		Text: "A ClusterJob runs its program with one set of parameters. Take autoTuning out, and create a job for each set, or search with " +
			"Ray Tune in the program.",
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
	if enabled, is := spec.AutoTuning["enabled"].(bool); is && !enabled {
		c.drop("spec.autoTuning", "it is off")
	}
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
	return g.finished()
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
		text, isText := value.(string)
		if !isText {
			text = numberOrWord(value)
		}
		if text == "" {
			c.refuse(join("spec.hyperparameters", name), "a variable has one value; give a number, a text, true or false")
			continue
		}
		variable := variableOf(name)
		isThere := slices.ContainsFunc(env, func(e corev1.EnvVar) bool { return e.Name == variable }) ||
			spec.CheckpointPath != "" && variable == checkpointVariable
		if isThere || systemVariable.MatchString(variable) || isOfGang(framework, variable) {
			c.refuse(join("spec.hyperparameters", name), fmt.Sprintf("it becomes the variable %.60s, which the system, the gang or another "+
				"parameter has; give it another name, and have the program read that", variable))
			continue
		}
		env = append(env, corev1.EnvVar{Name: variable, Value: strings.ReplaceAll(text, "$", "$$")})
	}
	if spec.CheckpointPath != "" {
		env = append(env, corev1.EnvVar{Name: checkpointVariable, Value: strings.ReplaceAll(spec.CheckpointPath, "$", "$$")})
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

// variableOf is the name of a variable for a parameter: its words in capitals, with _ between them.
func variableOf(name string) string {
	var out strings.Builder
	isLower := false
	for _, letter := range name {
		switch {
		case unicode.IsUpper(letter) && isLower:
			out.WriteRune('_')
		case letter == '-' || letter == '.' || letter == ' ':
			letter = '_'
		}
		isLower = unicode.IsLower(letter) || unicode.IsDigit(letter)
		out.WriteRune(unicode.ToUpper(letter))
	}
	return out.String()
}
