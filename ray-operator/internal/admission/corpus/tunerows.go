package corpus

import (
	"fmt"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

type (
	tuneSpec  = v1beta1.Tune
	parameter = v1beta1.TuneParameter
)

// tuned makes a job run trials of one Float parameter, with further edits.
func tuned(changes ...func(*tuneSpec)) jobEdit {
	return jobSpec(func(s *jobs) {
		s.Tune = &tuneSpec{
			Objective: v1beta1.TuneObjective{Metric: "val_accuracy"}, MaxTrials: 20, ParallelTrials: 4,
			Parameters: []parameter{inRange("learningRate", "0.0001", "0.1")},
		}
		for _, change := range changes {
			change(s.Tune)
		}
	})
}

func inRange(name, least, most string) parameter {
	return parameter{Name: name, Type: v1beta1.ParameterFloat, Min: least, Max: most}
}

func among(name string, kind v1beta1.ParameterType, values ...string) parameter {
	return parameter{Name: name, Type: kind, Values: values}
}

func parameters(all ...parameter) func(*tuneSpec) { return func(t *tuneSpec) { t.Parameters = all } }

// ofParameter makes trials of one Float parameter, which it edits.
func ofParameter(change func(*parameter)) jobEdit {
	return tuned(func(t *tuneSpec) { change(&t.Parameters[0]) })
}

func ofMetric(name string) jobEdit {
	return tuned(func(t *tuneSpec) { t.Objective.Metric = name })
}

func draws(algorithm v1beta1.TuneAlgorithm) func(*tuneSpec) {
	return func(t *tuneSpec) { t.Algorithm = algorithm }
}

func stores(path string) func(*tuneSpec) { return func(t *tuneSpec) { t.Storage = path } }

// tuneAgain makes a job retry trials with a storage.
func tuneAgain(path string) jobEdit {
	return both(tuned(stores(path)), retry(func(r *v1beta1.Retry) { r.Limit = 1 }))
}

// manyParameters are so many, with different names.
func manyParameters(n int) []parameter {
	var all []parameter
	for i := range n {
		all = append(all, inRange(fmt.Sprintf("p%d", i), "0", "1"))
	}
	return all
}

// tuneRows are about trials.
var tuneRows = []jobRow{
	{Name: "trials", Edit: tuned()},
	{Name: "trials of a gang", Edit: both(inRole(times(2)), tuned())},
	{Name: "trials of a gang whose role has the name of their references", Rule: "tune-role", Edit: both(gangOf(v1beta1.FrameworkGeneric, roleOf("tune")), tuned())},
	{Name: "a gang whose role has that name", Edit: gangOf(v1beta1.FrameworkGeneric, roleOf("tune"))},
	{Name: "trials of each type", Edit: tuned(stores("/results/x"), parameters(
		inRange("learningRate", "1e-4", ".1"), among("batchSize", v1beta1.ParameterInt, "16", "32"), among("optimizer", v1beta1.ParameterCategorical, "sgd", "adam"),
		parameter{Name: "layers", Type: v1beta1.ParameterInt, Min: "-1", Max: "8", Step: "3"},
		parameter{Name: "width", Type: v1beta1.ParameterInt, Min: "1", Max: "1024", Scale: v1beta1.ScaleLog}))},
	{Name: "trials of nothing", Rule: "required", Edit: tuned(parameters())},
	{Name: "trials of 33 parameters", Rule: "long-list", Edit: tuned(parameters(manyParameters(33)...))},
	{Name: "trials of 32 parameters", Edit: tuned(parameters(manyParameters(32)...))},
	{Name: "no trial", Rule: "required", Edit: tuned(func(t *tuneSpec) { t.MaxTrials = 0 })},
	{Name: "more trials at a time than in all", Rule: "tune-parallel", Edit: tuned(func(t *tuneSpec) { t.MaxTrials, t.ParallelTrials = 3, 4 })},
	{Name: "trials by another algorithm", Rule: "unknown-word", Edit: tuned(draws("Genetic"))},
	{Name: "a grid of numbers between others", Rule: "tune-grid", Edit: tuned(draws(v1beta1.TuneGrid))},
	{Name: "a grid", Edit: tuned(draws(v1beta1.TuneGrid), parameters(among("x", v1beta1.ParameterFloat, "0.1", "1"), parameter{Name: "n", Type: v1beta1.ParameterInt, Min: "1", Max: "3"}))},
	{Name: "a grid of orders of size", Rule: "tune-grid", Edit: tuned(draws(v1beta1.TuneGrid), parameters(parameter{Name: "n", Type: v1beta1.ParameterInt, Min: "1", Max: "3", Scale: v1beta1.ScaleLog}))},
	{Name: "CMAES of one number", Rule: "tune-cmaes", Edit: tuned(draws(v1beta1.TuneCMAES))},
	{Name: "CMAES of two numbers", Edit: tuned(draws(v1beta1.TuneCMAES), parameters(inRange("x", "0", "1"), inRange("y", "0", "1")))},

	{Name: "a metric whose name tells no direction", Rule: "tune-direction", Edit: ofMetric("score")},
	{Name: "a metric whose name tells both directions", Rule: "tune-direction", Edit: ofMetric("accuracy_error")},
	{Name: "a metric that is lossless", Rule: "tune-direction", Edit: ofMetric("lossless")},
	{Name: "a metric with a direction", Edit: tuned(func(t *tuneSpec) { t.Objective.Metric, t.Objective.Direction = "score", v1beta1.Maximize })},
	{Name: "a loss", Edit: ofMetric("eval/Loss")},
	{Name: "an F1 score", Edit: ofMetric("f1-score")},
	{Name: "a metric with a blank", Rule: "tune-metric", Edit: ofMetric("val accuracy")},
	{Name: "a goal", Edit: tuned(func(t *tuneSpec) { t.Objective.Goal = "9.5e-1" })},
	{Name: "a goal that is no number", Rule: "tune-goal", Edit: tuned(func(t *tuneSpec) { t.Objective.Goal = "high" })},

	{Name: "a storage below another directory", Edit: tuned(stores("/a/b/c"))},
	{Name: "a storage without a root", Rule: "tune-storage", Edit: tuned(stores("results"))},
	{Name: "a storage above itself", Rule: "tune-storage", Edit: tuned(stores("/results/../x"))},
	{Name: "trials again without a storage", Rule: "tune-retry", Edit: tuneAgain("")},
	{Name: "trials again on a cluster without their storage", Rule: "tune-storage-shared", Edit: both(ownCluster, tuneAgain("/results/x"))},
	{Name: "trials again on a cluster that shares their storage", Edit: both(ofCluster(sharing(asGiven)), tuneAgain("/v0/x"))},
	{Name: "trials again on a cluster that shares another path", Rule: "tune-storage-shared", Edit: both(ofCluster(sharing(asGiven)), tuneAgain("/v01"))},
	{Name: "trials again on a cluster that shares it to be read", Rule: "tune-storage-shared", Edit: both(ofCluster(sharing(func(v *sharedVolume) { v.ReadOnly = ptr(true) })), tuneAgain("/v0/x"))},
	{Name: "trials again with a storage", Edit: tuneAgain("/results/x")},

	{Name: "a parameter with a dot", Rule: "parameter-name", Edit: ofParameter(func(p *parameter) { p.Name = "a.b" })},
	{Name: "a parameter that is the trial", Rule: "parameter-trial", Edit: ofParameter(func(p *parameter) { p.Name = "trial" })},
	{Name: "a parameter twice", Rule: "duplicate", Edit: tuned(parameters(inRange("x", "0", "1"), inRange("x", "0", "1")))},
	{Name: "two parameters of one variable", Rule: "parameter-variable-twice", Edit: tuned(parameters(inRange("learningRate", "0", "1"), inRange("learning_rate", "0", "1")))},
	{Name: "a parameter that the gang has", Rule: "parameter-variable", Edit: ofParameter(func(p *parameter) { p.Name = "rank" })},
	{Name: "a parameter that another framework has", Edit: ofParameter(func(p *parameter) { p.Name = "tfConfig" })},
	{Name: "a parameter that the framework has", Rule: "parameter-variable", Edit: both(gangOf(v1beta1.FrameworkTensorFlow, roleOf("worker")), ofParameter(func(p *parameter) { p.Name = "tfConfig" }))},
	{Name: "a parameter that the system has", Rule: "parameter-variable", Edit: ofParameter(func(p *parameter) { p.Name = "path" })},
	{Name: "a parameter that Ray has", Rule: "parameter-variable", Edit: ofParameter(func(p *parameter) { p.Name = "rayAddress" })},
	{Name: "a parameter without a range", Rule: "parameter-range", Edit: ofParameter(func(p *parameter) { p.Max = "" })},
	{Name: "a parameter with a range and values", Rule: "parameter-range", Edit: ofParameter(func(p *parameter) { p.Values = []string{"1"} })},
	{Name: "a category with a range", Rule: "parameter-range", Edit: ofParameter(func(p *parameter) { p.Type = v1beta1.ParameterCategorical })},
	{Name: "a parameter of words", Rule: "parameter-number", Edit: ofParameter(func(p *parameter) { p.Min, p.Max = "few", "many" })},
	{Name: "an integer with a fraction", Rule: "parameter-number", Edit: ofParameter(func(p *parameter) { p.Type, p.Min, p.Max = v1beta1.ParameterInt, "0.5", "2" })},
	{Name: "an integer among fractions", Rule: "parameter-values", Edit: tuned(parameters(among("n", v1beta1.ParameterInt, "1", "1.5")))},
	{Name: "a number among words", Rule: "parameter-values", Edit: tuned(parameters(among("n", v1beta1.ParameterFloat, "1", "one")))},
	{Name: "a value twice", Rule: "duplicate", Edit: tuned(parameters(among("n", v1beta1.ParameterInt, "1", "1")))},
	{Name: "a range upside down", Rule: "parameter-order", Edit: ofParameter(func(p *parameter) { p.Min, p.Max = "1", "0" })},
	{Name: "orders of size from 0", Rule: "parameter-log", Edit: ofParameter(func(p *parameter) { p.Scale, p.Min = v1beta1.ScaleLog, "0" })},
	{Name: "orders of size in steps", Rule: "parameter-log-step", Edit: ofParameter(func(p *parameter) { p.Scale, p.Step = v1beta1.ScaleLog, "0.1" })},
	{Name: "a step of 0", Rule: "parameter-step", Edit: ofParameter(func(p *parameter) { p.Step = "0" })},

	{Name: "a reference to a parameter", Edit: both(command("train", "--lr=$(tune.learningRate)", "--out=/x/$(tune.trial)", "$$(tune.x)"), tuned())},
	{Name: "a reference to no parameter", Rule: "gang-reference", Edit: both(command("train", "$(tune.lr)"), tuned())},
	{Name: "a role's reference to a parameter", Edit: both(inRole(runs("train", "$(tune.learningRate)", "$(worker.count)")), tuned())},
	{Name: "a parameter's reference without trials", Rule: "gang-reference", Edit: inRole(runs("train", "$(tune.learningRate)"))},
}
