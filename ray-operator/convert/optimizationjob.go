package convert

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// optimizationVariable is how the variables begin by which Trainer gives a program its parameters.
const optimizationVariable = "KUBEFLOW_TRAINER_OPT_"

var optimizationRules = []Rule{
	{
		Kind: kindOptimization, Path: "spec.objectives[].metric", To: "tune.objective.metric", Verdict: Changed, Differs: true,
		Text: "The first process must print it, as in loss=0.3: nothing reads what a program reports to Trainer. The last value counts.",
	},
	{Kind: kindOptimization, Path: "spec.objectives[].direction", To: "tune.objective.direction", Verdict: Kept, Text: "Minimize is the default."},
	{Kind: kindOptimization, Path: "spec.searchAlgorithm.random.seed", To: "tune.seed", Verdict: Kept},
	{Kind: kindOptimization, Path: "spec.searchAlgorithm.grid", To: "tune.algorithm", Verdict: Changed, Whole: true, Text: "The Python that has Ray needs optuna."},
	{Kind: kindOptimization, Path: "spec.parameters[].name", To: "tune.parameters[].name", Verdict: Kept},
	{Kind: kindOptimization, Path: "spec.parameters[].searchSpace.uniform.min", To: "tune.parameters[].min", Verdict: Kept},
	{Kind: kindOptimization, Path: "spec.parameters[].searchSpace.uniform.max", To: "tune.parameters[].max", Verdict: Kept},
	{Kind: kindOptimization, Path: "spec.parameters[].searchSpace.uniform.type", To: "tune.parameters[].type", Verdict: Kept, Text: "Float is the default."},
	{Kind: kindOptimization, Path: "spec.parameters[].searchSpace.logUniform.min", To: "tune.parameters[].min", Verdict: Kept, Text: "With scale Log."},
	{Kind: kindOptimization, Path: "spec.parameters[].searchSpace.logUniform.max", To: "tune.parameters[].max", Verdict: Kept, Text: "With scale Log."},
	{Kind: kindOptimization, Path: "spec.parameters[].searchSpace.logUniform.type", To: "tune.parameters[].type", Verdict: Kept, Text: "Float is the default."},
	{Kind: kindOptimization, Path: "spec.parameters[].searchSpace.categorical.choices", To: "tune.parameters[].values", Verdict: Kept},
	{Kind: kindOptimization, Path: "spec.numTrials", To: "tune.maxTrials", Verdict: Kept, Text: "1 is the default."},
	{
		Kind: kindOptimization, Path: "spec.parallelTrials", To: "tune.parallelTrials", Verdict: Kept,
		Text: "The job's own cluster has workers for as many trials.",
	},
	{
		Kind: kindOptimization, Path: "spec.trainJobTemplate.metadata", Verdict: Dropped, Whole: true,
		Text: "A trial is no object. Labels and annotations of the OptimizationJob are kept.",
	},
	{
		Kind: kindOptimization, Path: "spec.trainJobTemplate.spec", To: "gang", Verdict: Kept, Whole: true,
		Text: "As the spec of a TrainJob, with a row for each of its fields that is not kept. A program finds parameters as there, in " +
			optimizationVariable + " variables, and in those of tune.",
	},
}

// optimizationJob converts an OptimizationJob of Trainer.
func optimizationJob(c *conversion, spec *optimizationJobSpec) runtime.Object {
	t := &tunePart{conversion: c, parametersAt: "spec.parameters"}
	t.made.Algorithm, t.made.MaxTrials = v1beta1.TuneRandom, 1
	if spec.SearchAlgorithm.Grid != nil {
		t.made.Algorithm = v1beta1.TuneGrid
	}
	t.tellOptuna("spec.searchAlgorithm")
	if random := spec.SearchAlgorithm.Random; random != nil && random.Seed != nil {
		t.seed("spec.searchAlgorithm.random.seed", *random.Seed)
	}
	takeObjectives(t, spec)
	takeSearchSpaces(t, spec)
	t.listGrid(func(number int) string { return fmt.Sprintf("spec.parameters[%d].searchSpace", number) })
	if spec.NumTrials != nil {
		t.made.MaxTrials = t.within("spec.numTrials", *spec.NumTrials, mostTrials)
	}
	parallel := int32(1)
	if spec.ParallelTrials != nil {
		parallel = *spec.ParallelTrials
	}
	t.limitParallel("spec.parallelTrials", parallel)
	template := &trialTemplate{
		conversion: c, at: "spec.trainJobTemplate", trial: &trial{parameters: t.names()},
		from: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": c.from.GetAPIVersion(), "kind": kindTrain, "spec": spec.TrainJobTemplate.Spec,
		}},
	}
	job := template.job()
	if job == nil {
		return nil
	}
	for _, p := range t.made.Parameters {
		e := corev1.EnvVar{Name: optimizationVariable + strings.ToUpper(strings.ReplaceAll(p.Name, "-", "_")), Value: trialReference + p.Name + ")"}
		if !slices.ContainsFunc(job.Spec.Env, func(other corev1.EnvVar) bool { return other.Name == e.Name }) {
			job.Spec.Env = append(job.Spec.Env, e)
		}
	}
	return template.withTune(job, &t.made)
}

// takeObjectives takes the metric.
func takeObjectives(t *tunePart, spec *optimizationJobSpec) {
	if len(spec.Objectives) != 1 {
		t.refuse("spec.objectives", "trials are compared by one metric; give one objective")
		return
	}
	given := spec.Objectives[0]
	t.made.Objective = v1beta1.TuneObjective{Metric: given.Metric, Direction: v1beta1.Minimize}
	if given.Direction != "" {
		t.made.Objective.Direction = v1beta1.TuneDirection(given.Direction)
	}
}

// takeSearchSpaces takes the parameters with their ranges.
func takeSearchSpaces(t *tunePart, spec *optimizationJobSpec) {
	for i := range spec.Parameters {
		at, given := fmt.Sprintf("spec.parameters[%d]", i), &spec.Parameters[i]
		p := v1beta1.TuneParameter{Name: t.nameOf(at+".name", given.Name)}
		numbers := given.SearchSpace.Uniform
		if given.SearchSpace.LogUniform != nil {
			numbers, p.Scale = given.SearchSpace.LogUniform, v1beta1.ScaleLog
		}
		switch {
		case given.SearchSpace.Categorical != nil:
			p.Type, p.Scale, p.Values = v1beta1.ParameterCategorical, "", given.SearchSpace.Categorical.Choices
		case numbers == nil:
			t.refuse(at+".searchSpace", "a parameter needs a range or choices; give uniform, logUniform or categorical")
			continue
		default:
			p.Type, p.Min, p.Max = v1beta1.ParameterFloat, numbers.Min, numbers.Max
			if numbers.Type != "" {
				p.Type = v1beta1.ParameterType(numbers.Type)
			}
		}
		t.add(at+".searchSpace.categorical.choices", p)
	}
}
