package convert_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/heliostat-dev/heliostat/ray-operator/convert"
	"github.com/heliostat-dev/heliostat/tests/rayio"
)

const (
	trialSpec      = "spec.trialTemplate.trialSpec"
	trialContainer = trialSpec + ".spec.template.spec.containers[0]"
	firstParameter = "spec.parameters[0]"
)

// judgedSearches has values of searches that make a difference, each with the row that says so.
var judgedSearches = map[string]judgedJob{
	"no direction is refused":     {search, fields{"spec.objective.type": nil}, "spec.objective.type", convert.Refused, "maximize and minimize"},
	"no metric is refused":        {search, fields{"spec.objective.objectiveMetricName": nil}, "spec.objective.objectiveMetricName", convert.Refused, "give its name"},
	"the worst value is refused":  {search, fields{"spec.objective.metricStrategies": strategies("min")}, "spec.objective.metricStrategies[0].value", convert.Refused, "write max or latest"},
	"another metric is dropped":   {search, fields{"spec.objective.metricStrategies": []any{map[string]any{"name": "loss", "value": "min"}}}, "spec.objective.metricStrategies[0].name", convert.Dropped, "only the objective"},
	"architecture is refused":     {search, fields{"spec.algorithm.algorithmName": "enas"}, "spec.algorithm.algorithmName", convert.Refused, "no counterpart"},
	"population is refused":       {search, fields{"spec.algorithm.algorithmName": "pbt"}, "spec.algorithm.algorithmName", convert.Refused, "no counterpart"},
	"several parameters together": {search, fields{"spec.algorithm.algorithmName": "multivariate-tpe"}, "spec.algorithm.algorithmName", convert.Changed, "by itself"},
	"what the image needs":        {search, fields{"spec.algorithm.algorithmName": "bayesianoptimization"}, "spec.algorithm.algorithmName", convert.Changed, "optuna, scipy and torch"},
	"a grid without a step is refused": {search, fields{"spec.algorithm.algorithmName": "grid"},
		firstParameter + ".feasibleSpace", convert.Refused, "list the values"},
	"a grid with more values than a job may have is refused": {search, fields{"spec.algorithm.algorithmName": "grid", firstParameter + ".feasibleSpace.step": "0.0002"},
		firstParameter + ".feasibleSpace", convert.Refused, "at most 128"},
	"a grid with a step": {search, fields{"spec.algorithm.algorithmName": "grid", firstParameter + ".feasibleSpace.step": "0.01"},
		firstParameter + ".feasibleSpace", convert.Changed, "one by one"},
	"another early stop is refused": {search, fields{"spec.earlyStopping.algorithmName": "other"}, "spec.earlyStopping.algorithmName", convert.Refused, "medianstop"},
	"two early stops are refused": {search, fields{"spec.algorithm.algorithmName": "hyperband", "spec.earlyStopping.algorithmName": "medianstop"},
		"spec.earlyStopping.algorithmName", convert.Refused, "by itself"},
	"a seed below 0 is dropped": {search, fields{"spec.algorithm.algorithmSettings": []any{map[string]any{"name": "random_state", "value": "-1"}}},
		"spec.algorithm.algorithmSettings[0].value", convert.Dropped, "from 0"},
	"no number of trials is refused":              {search, fields{"spec.maxTrialCount": nil}, "spec.maxTrialCount", convert.Refused, "give it"},
	"more at a time than there are":               {search, fields{"spec.maxTrialCount": int64(2)}, "spec.parallelTrialCount", convert.Changed, "becomes 2"},
	"more trials than a job may have are refused": {search, fields{"spec.maxTrialCount": int64(20000)}, "spec.maxTrialCount", convert.Refused, "from 1 to 10000"},
	"no trial is refused":                         {search, fields{"spec.maxTrialCount": int64(0)}, "spec.maxTrialCount", convert.Refused, "from 1 to 10000"},
	"more at a time than a job may have are refused": {search, fields{"spec.maxTrialCount": int64(900), "spec.parallelTrialCount": int64(500)},
		"spec.parallelTrialCount", convert.Refused, "from 1 to 256"},
	"none at a time is refused": {search, fields{"spec.parallelTrialCount": int64(0)}, "spec.parallelTrialCount", convert.Refused, "from 1 to 256"},
	"more failures than trials": {search, fields{"spec.maxFailedTrialCount": int64(30000)}, "spec.maxFailedTrialCount", convert.Changed, "becomes 12"},
	"a list of more values than a parameter may have is refused": {search, fields{firstParameter + ".parameterType": "categorical",
		firstParameter + ".feasibleSpace": map[string]any{"list": words(129)}}, firstParameter + ".feasibleSpace.list", convert.Refused, "it has 129 values, and a parameter has at most 128"},
	"more parameters than a search may have are refused":     {search, fields{"spec.parameters": manyParameters(33)}, "spec.parameters", convert.Refused, "at most 32 parameters"},
	"more trials of Trainer than a job may have are refused": {optimization, fields{"spec.numTrials": int64(10001)}, "spec.numTrials", convert.Refused, "from 1 to 10000"},
	"more choices of Trainer than a parameter may have are refused": {optimization, fields{firstParameter + ".searchSpace": map[string]any{
		"categorical": map[string]any{"choices": words(129)}}}, firstParameter + ".searchSpace.categorical.choices", convert.Refused, "at most 128"},
	"more trials of an article's than a job may have are refused": {ml, fields{"spec.autoTuning": tuningWith("maxTrials", int64(10001))},
		"spec.autoTuning.maxTrials", convert.Refused, "from 1 to 10000"},
	"more values of an article's than a parameter may have are refused": {ml, fields{"spec.autoTuning": tuningWith("parameters", map[string]any{
		"a": map[string]any{"type": "categorical", "values": words(129)}})}, "spec.autoTuning.parameters.a", convert.Refused, "at most 128"},
	"failures are one less":      {search, fields{"spec.maxFailedTrialCount": int64(3)}, "spec.maxFailedTrialCount", convert.Changed, "becomes 2"},
	"a name of an option":        {search, fields{firstParameter + ".name": "--lr"}, firstParameter + ".name", convert.Changed, `"lr"`},
	"an unknown type is refused": {search, fields{firstParameter + ".parameterType": "bool"}, firstParameter + ".parameterType", convert.Refused, "double, int"},
	"a normal distribution":      {search, fields{firstParameter + ".feasibleSpace.distribution": "normal"}, firstParameter + ".feasibleSpace.distribution", convert.Changed, "evenly"},
	"an unknown distribution is refused": {search, fields{firstParameter + ".feasibleSpace.distribution": "other"},
		firstParameter + ".feasibleSpace.distribution", convert.Refused, "uniform"},
	"a step of a logarithmic range": {search, fields{firstParameter + ".feasibleSpace.distribution": "logUniform", firstParameter + ".feasibleSpace.step": "0.01"},
		firstParameter + ".feasibleSpace.step", convert.Changed, "no step"},
	"a parameter of the gang's is refused": {search, fields{firstParameter + ".name": "rank", "spec.trialTemplate.trialParameters[0].reference": "rank"},
		"spec.tune.parameters[0].name", convert.Refused, "choose another name"},
	"no template is refused": {search, fields{trialSpec: nil}, trialSpec, convert.Refused, "give trialSpec"},
	"a template elsewhere is refused": {search, fields{trialSpec: nil, "spec.trialTemplate.configMap": map[string]any{"configMapName": "a"}},
		"spec.trialTemplate.configMap", convert.Refused, "below trialSpec"},
	"a template of another kind is refused": {search, fields{trialSpec + ".kind": "PipelineRun", trialSpec + ".apiVersion": "tekton.dev/v1"},
		trialSpec, convert.Refused, "use one of Job"},
	"a template of another version is refused": {search, fields{trialSpec + ".kind": "PyTorchJob", trialSpec + ".apiVersion": "kubeflow.org/v9"},
		trialSpec + ".apiVersion", convert.Refused, "is converted"},
	"a placeholder that is not there is refused": {search, fields{trialContainer + ".args": []any{"${trialParameters.other}"}},
		trialContainer + ".args[0]", convert.Refused, "trialParameters has no other"},
	"a reference to no parameter is refused": {search, fields{"spec.trialTemplate.trialParameters[0].reference": "other"},
		"spec.trialTemplate.trialParameters[0].reference", convert.Refused, "name one of parameters"},
	"a label that is not there is refused": {search, fields{"spec.trialTemplate.trialParameters[0].reference": "${trialSpec.Labels[a]}"},
		"spec.trialTemplate.trialParameters[0].reference", convert.Refused, "write the value"},
	"the name of a trial": {search, fields{"spec.trialTemplate.trialParameters[0].reference": "${trialSpec.Name}"},
		"spec.trialTemplate.trialParameters[0].reference", convert.Changed, "number"},
	"a value in another field is refused": {search, fields{trialSpec + ".spec.template.spec.nodeSelector": map[string]any{"pool": "${trialParameters.rate}"}},
		trialSpec, convert.Refused, "only command, args"},
	"several pods are refused": {search, fields{trialSpec + ".spec.parallelism": int64(2)}, trialSpec + ".spec.parallelism", convert.Refused, "roles"},
	"a queue of trials is the job's": {search, fields{trialSpec + ".metadata.labels": map[string]any{"kueue.x-k8s.io/queue-name": "q"}},
		trialSpec + ".metadata.labels[kueue.x-k8s.io/queue-name]", convert.Changed, "as a whole"},
	"a deadline bounds a trial":        {search, fields{trialSpec + ".spec.activeDeadlineSeconds": int64(60)}, trialSpec + ".spec", convert.Changed, "each trial"},
	"workers for all trials at a time": {search, nil, trialSpec, convert.Changed, "for 3 trials"},
	"a file of metrics is refused": {search, fields{"spec.metricsCollectorSpec.collector.kind": "File"},
		"spec.metricsCollectorSpec.collector.kind", convert.Refused, "accuracy=NUMBER"},
	"another form of metrics is refused": {search, fields{"spec.metricsCollectorSpec.source.filter.metricsFormat": []any{"{(.*)}"}},
		"spec.metricsCollectorSpec.source.filter.metricsFormat", convert.Refused, "loss=0.3"},
	"resuming without a claim is dropped":   {search, fields{"spec.resumePolicy": "FromVolume"}, "spec.resumePolicy", convert.Dropped, "add sharedVolumes"},
	"an unknown resume policy is refused":   {search, fields{"spec.resumePolicy": "Sometimes"}, "spec.resumePolicy", convert.Refused, "Never, LongRunning"},
	"no objective is refused":               {optimization, fields{"spec.objectives": []any{}}, "spec.objectives", convert.Refused, "one objective"},
	"a metric that Trainer's library sends": {optimization, nil, "spec.objectives[0].metric", convert.Changed, "must print it"},
	"no space is refused":                   {optimization, fields{firstParameter + ".searchSpace": map[string]any{}}, firstParameter + ".searchSpace", convert.Refused, "uniform"},
	"a grid of a range is refused":          {optimization, fields{"spec.searchAlgorithm.grid": map[string]any{}}, firstParameter + ".searchSpace", convert.Refused, "list the values"},
	"a metric without a direction is refused": {ml, fields{"spec.autoTuning": tuningWith("objective", "score")},
		"spec.autoTuning.objective", convert.Refused, "val_accuracy"},
	"a metric that says its direction": {ml, fields{"spec.autoTuning": tuningWith("objective", "val_loss")}, "spec.autoTuning.objective", convert.Changed, "Minimize"},
	"tuning without an end is refused": {ml, fields{"spec.autoTuning": tuningWith("maxTrials", nil)}, "spec.autoTuning.maxTrials", convert.Refused, "give it"},
	"another algorithm is refused":     {ml, fields{"spec.autoTuning": tuningWith("algorithm", "pbt")}, "spec.autoTuning.algorithm", convert.Refused, "use bayesian"},
	"a type without a range is refused": {ml, fields{"spec.autoTuning": tuningWith("parameters", map[string]any{"a": map[string]any{"type": "bool"}})},
		"spec.autoTuning.parameters.a", convert.Refused, "float, int"},
	"a parameter that is tuned too": {ml, fields{"spec.autoTuning": tuningWith("", nil), "spec.hyperparameters": map[string]any{"dropout": 0.5}},
		"spec.hyperparameters.dropout", convert.Dropped, "in each trial"},
	"a path of checkpoints has the trial": {ml, fields{"spec.autoTuning": tuningWith("", nil), "spec.checkpointPath": "/runs"},
		"spec.checkpointPath", convert.Changed, "directory of its own"},
}

// words are so many different texts.
func words(many int) (all []any) {
	for i := range many {
		all = append(all, fmt.Sprint("v", i))
	}
	return all
}

// manyParameters are so many of Katib's, of which the template of trials refers to the first two.
func manyParameters(many int) (all []any) {
	for i := range many {
		name := fmt.Sprint("p", i)
		if i < 2 {
			name = []string{"lr", "layers"}[i]
		}
		all = append(all, map[string]any{"name": name, "parameterType": "int", "feasibleSpace": map[string]any{"min": "1", "max": "5"}})
	}
	return all
}

func strategies(value string) []any { return []any{map[string]any{"name": "accuracy", "value": value}} }

// tuningWith is the search of an MLTrainingJob with another value.
func tuningWith(field string, value any) map[string]any {
	made := tuning(true)
	if field != "" {
		made[field] = value
	}
	return made
}

// TestObject_WritesTrials: what a trial's template becomes, and the search.
func TestObject_WritesTrials(t *testing.T) {
	result := convert.Object(base(search), convert.Options{})
	if result.Refused() {
		t.Fatal(result.Rows)
	}
	object := result.Objects[0].Object
	command, _, _ := unstructured.NestedStringSlice(object, "spec", "command")
	if want := "python /src/train.py --lr=$(tune.lr) --layers=$(tune.layers)"; strings.Join(command, " ") != want {
		t.Errorf("the command is %q, want %q", command, want)
	}
	tune, _, _ := unstructured.NestedMap(object, "spec", "tune")
	want := map[string]any{
		"algorithm": "Random", "maxTrials": int64(12), "parallelTrials": int64(3), "maxFailedTrials": int64(12),
		"objective": map[string]any{"metric": "accuracy", "direction": "Maximize", "value": "Best"},
		"parameters": []any{
			map[string]any{"name": "lr", "type": "Float", "min": "0.01", "max": "0.05"}, map[string]any{"name": "layers", "type": "Int", "min": "1", "max": "5"},
		},
	}
	if diff := cmp.Diff(want, tune); diff != "" {
		t.Errorf("the search is another one (- wanted):\n%s", diff)
	}
	groups, _, _ := unstructured.NestedSlice(object, "spec", "clusterTemplate", "spec", "workerGroups")
	if replicas := groups[0].(map[string]any)["replicas"]; replicas != int64(3) {
		t.Errorf("the cluster has %v workers, want 3", replicas)
	}
}

// TestObject_TakesAlgorithmsOfKatib: each by its name.
func TestObject_TakesAlgorithmsOfKatib(t *testing.T) {
	for name, want := range map[string]string{
		"random": "Random <nil>", "grid": "Grid <nil>", "tpe": "TPE <nil>", "multivariate-tpe": "TPE <nil>", "cmaes": "CMAES <nil>", "sobol": "QMC <nil>",
		"bayesianoptimization": "GaussianProcess <nil>", "hyperband": "Random Hyperband",
	} {
		object := base(search)
		rayio.Set(object.Object, "spec.algorithm.algorithmName", name)
		rayio.Set(object.Object, firstParameter+".feasibleSpace.step", "0.01")
		result := convert.Object(object, convert.Options{})
		if result.Refused() {
			t.Errorf("%s is refused: %v", name, result.Rows)
			continue
		}
		tune, _, _ := unstructured.NestedMap(result.Objects[0].Object, "spec", "tune")
		if got := fmt.Sprintf("%v %v", tune["algorithm"], tune["earlyStopping"]); got != want && name != "cmaes" || tune["algorithm"] == nil {
			t.Errorf("%s becomes %s, want %s", name, got, want)
		}
	}
}

// TestObject_SaysNothingOfAnAlgorithmWithoutACounterpart: it is refused, and no row says what it becomes.
func TestObject_SaysNothingOfAnAlgorithmWithoutACounterpart(t *testing.T) {
	object := base(ml)
	rayio.Set(object.Object, "spec.autoTuning", tuningWith("algorithm", "hyperband"))
	var verdicts []convert.Verdict
	for _, row := range convert.Object(object, convert.Options{}).Rows {
		if row.Path == "spec.autoTuning.algorithm" {
			verdicts = append(verdicts, row.Verdict)
		}
	}
	if !slices.Equal(verdicts, []convert.Verdict{convert.Refused}) {
		t.Errorf("the rows of the algorithm are %v", verdicts)
	}
}
