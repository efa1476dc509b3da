package convert

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// algorithms are those of Katib. hyperband draws at random, and stops early.
var algorithms = map[string]v1beta1.TuneAlgorithm{
	"random": v1beta1.TuneRandom, "grid": v1beta1.TuneGrid, "bayesianoptimization": v1beta1.TuneGaussianProcess, "tpe": v1beta1.TuneTPE,
	"multivariate-tpe": v1beta1.TuneTPE, "cmaes": v1beta1.TuneCMAES, "sobol": v1beta1.TuneQMC, hyperband: v1beta1.TuneRandom,
}

const (
	hyperband  = "hyperband"
	medianStop = "medianstop"
	// parallelUnsaid is how many trials Katib runs at a time where an Experiment gives no number.
	parallelUnsaid = 3
)

// experimentPart is an Experiment of Katib on its way.
type experimentPart struct {
	*tunePart
	spec *experimentSpec
}

// experiment converts an Experiment of Katib.
func experiment(c *conversion, spec *experimentSpec) runtime.Object {
	e := experimentPart{&tunePart{conversion: c, parametersAt: "spec.parameters"}, spec}
	e.takeObjective()
	e.takeParameters()
	e.takeAlgorithm()
	e.takeCounts()
	e.takeCollector()
	template := e.template()
	var job *v1beta1.ClusterJob
	if template != nil {
		job = template.job()
	}
	if job == nil {
		c.tell(kindExperiment, c.from.Object["spec"]) // what else is refused
		return nil
	}
	made := template.withTune(job, &e.made)
	e.takeResume(job)
	return made
}

// takeObjective takes the metric. Katib's default is the best value of a trial.
func (e experimentPart) takeObjective() {
	given, made := &e.spec.Objective, &e.made.Objective
	made.Metric, made.Value = given.ObjectiveMetricName, v1beta1.TuneBest
	best := map[v1beta1.TuneDirection]string{v1beta1.Maximize: "max", v1beta1.Minimize: "min"}
	switch given.Type {
	case "maximize":
		made.Direction = v1beta1.Maximize
	case "minimize":
		made.Direction = v1beta1.Minimize
	default:
		e.refuse("spec.objective.type", "Katib has maximize and minimize; use one of them")
	}
	if given.Goal != nil {
		made.Goal = strconv.FormatFloat(*given.Goal, 'g', -1, 64)
	}
	if made.Metric == "" {
		e.refuse("spec.objective.objectiveMetricName", "trials are compared by a metric; give its name")
	}
	for i, strategy := range given.MetricStrategies {
		at := fmt.Sprintf("spec.objective.metricStrategies[%d].", i)
		switch {
		case strategy.Name != made.Metric:
			e.drop(at+"name", "only the objective is read; other metrics are in the logs of trials")
			e.keep(at + "value")
		case strategy.Value == "latest":
			made.Value = v1beta1.TuneLast
		case strategy.Value != best[made.Direction]:
			e.refuse(at+"value", "of the values of a trial the best one or the last one counts; write "+
				cmp.Or(best[made.Direction], "max")+" or latest")
		}
	}
}

// takeParameters takes the parameters with their ranges.
func (e experimentPart) takeParameters() {
	for i := range e.spec.Parameters {
		at, given := fmt.Sprintf("spec.parameters[%d]", i), &e.spec.Parameters[i]
		p := v1beta1.TuneParameter{Name: e.nameOf(at+".name", given.Name)}
		space := &given.FeasibleSpace
		switch given.ParameterType {
		case "double":
			p.Type = v1beta1.ParameterFloat
		case "int":
			p.Type = v1beta1.ParameterInt
		case "discrete":
			p.Type, p.Values = v1beta1.ParameterFloat, space.List
		case "categorical":
			p.Type, p.Values = v1beta1.ParameterCategorical, space.List
		default:
			e.refuse(at+".parameterType", "Katib has double, int, discrete and categorical; use one of them")
			continue
		}
		if len(p.Values) == 0 {
			p.Min, p.Max, p.Step = space.Min, space.Max, space.Step
			e.takeDistribution(at+".feasibleSpace.", space, &p)
		}
		e.add(at+".feasibleSpace.list", p)
	}
}

// takeDistribution takes how numbers are spread.
func (e experimentPart) takeDistribution(at string, space *feasibleSpace, p *v1beta1.TuneParameter) {
	isLog := strings.HasPrefix(space.Distribution, "log")
	switch space.Distribution {
	case "", "uniform", "logUniform":
	case "normal", "logNormal":
		e.change(at+"distribution", "tune.parameters[].scale", "numbers are spread evenly between min and max, and not around their middle")
	default:
		e.refuse(at+"distribution", "distributions are uniform, logUniform, normal and logNormal; use one of them")
	}
	if isLog {
		p.Scale = v1beta1.ScaleLog
	}
	if isLog && p.Step != "" {
		p.Step = ""
		e.change(at+"step", "", "a range with scale Log has no step; list the values to have only some")
	}
}

// takeAlgorithm takes what draws values, and what ends trials early.
func (e experimentPart) takeAlgorithm() {
	given := &e.spec.Algorithm
	algorithm, isKnown := algorithms[given.AlgorithmName]
	if !isKnown {
		e.refuse("spec.algorithm.algorithmName", fmt.Sprintf("%.40q has no counterpart; use one of %s", given.AlgorithmName,
			strings.Join(slices.Sorted(maps.Keys(algorithms)), ", ")))
		return
	}
	e.made.Algorithm = algorithm
	e.tellOptuna("spec.algorithm.algorithmName")
	switch given.AlgorithmName {
	case hyperband:
		e.made.EarlyStopping = v1beta1.StopHyperband
		e.change("spec.algorithm.algorithmName", "tune.earlyStopping", "values are drawn at random, and Hyperband ends trials early: the "+
			"program must print the metric in each step")
	case "multivariate-tpe":
		e.change("spec.algorithm.algorithmName", "tune.algorithm", "TPE draws each parameter by itself, and not all together")
	}
	e.takeSettings()
	e.listGrid(func(number int) string { return fmt.Sprintf("spec.parameters[%d].feasibleSpace", number) })
	early := "spec.earlyStopping.algorithmName"
	switch name := e.spec.EarlyStopping.AlgorithmName; {
	case name == "":
	case name != medianStop:
		e.refuse(early, "trials are ended early by medianstop; use that, or take earlyStopping out")
	case e.made.EarlyStopping != "":
		e.refuse(early, "hyperband ends trials early by itself; take earlyStopping out")
	default:
		e.made.EarlyStopping = v1beta1.StopMedian
		e.adjust(early, "tune.earlyStopping", "each line with the metric is a step, and trials are ended from the sixth trial on")
	}
}

// takeSettings takes the seed. With hyperband, a parameter is how long a trial may run: each trial may run to the end here.
func (e experimentPart) takeSettings() {
	settings := map[string]string{}
	for i, setting := range e.spec.Algorithm.AlgorithmSettings {
		at := fmt.Sprintf("spec.algorithm.algorithmSettings[%d].", i)
		settings[setting.Name] = setting.Value
		number, err := strconv.ParseInt(setting.Value, 10, 64)
		isHyperband := e.made.EarlyStopping == v1beta1.StopHyperband && slices.Contains([]string{"resource_name", "r_l"}, setting.Name)
		switch {
		case setting.Name == "random_state" && err == nil:
			e.keep(at + "name")
			e.seed(at+"value", number)
		case isHyperband:
			e.keep(at + "name")
			e.keep(at + "value")
		default:
			e.note(Row{Path: at + "name", Verdict: Dropped, Differs: true, Text: "algorithms have Optuna's own settings"})
			e.keep(at + "value")
		}
	}
	if e.made.EarlyStopping != v1beta1.StopHyperband {
		return
	}
	for i := range e.made.Parameters {
		p := &e.made.Parameters[i]
		if most := settings["r_l"]; e.spec.Parameters[i].Name == settings["resource_name"] && most != "" {
			*p = v1beta1.TuneParameter{Name: p.Name, Type: p.Type, Values: []string{most}}
			e.adjust(fmt.Sprintf("spec.parameters[%d]", i), "tune.parameters[].values", fmt.Sprintf("it is %s in each trial, which Hyperband ends sooner", most))
		}
	}
}

// takeCounts takes how many trials there are.
func (e experimentPart) takeCounts() {
	if e.spec.MaxTrialCount == nil {
		e.refuse("spec.maxTrialCount", "a search ends after a number of trials; give it")
		return
	}
	e.made.MaxTrials = e.within("spec.maxTrialCount", *e.spec.MaxTrialCount, mostTrials)
	parallel := int32(parallelUnsaid)
	if e.spec.ParallelTrialCount != nil {
		parallel = *e.spec.ParallelTrialCount
	}
	e.limitParallel("spec.parallelTrialCount", parallel)
	failed := e.made.MaxTrials
	if given := e.spec.MaxFailedTrialCount; given != nil {
		failed = min(max(*given-1, 0), failed) // no more can fail than there are
		e.adjust("spec.maxFailedTrialCount", "tune.maxFailedTrials", fmt.Sprintf("it becomes %d: Katib gives up at its number, and maxFailedTrials may fail",
			failed))
	}
	e.made.MaxFailedTrials = &failed
}

// plainFormat matches what Katib's own filter is, and what people write in its place.
var plainFormat = regexp.MustCompile(`^\(\[\\w\|-\]\+\)\\s\*=\\s\*`)

// takeCollector is about where the metric is found: in the output of the first process alone.
func (e experimentPart) takeCollector() {
	const at = "spec.metricsCollectorSpec."
	given := &e.spec.MetricsCollectorSpec
	switch given.Collector.Kind {
	case "", "StdOut":
		e.keep(at + "collector.kind")
	default:
		e.refuse(at+"collector.kind", "the metric is read from the output of the first process; have the program print "+
			e.made.Objective.Metric+"=NUMBER, such as by a line for a shell that ends with '&& cat FILE', and take metricsCollectorSpec out")
	}
	for _, format := range given.Source.Filter.MetricsFormat {
		if !plainFormat.MatchString(format) {
			return
		}
	}
	e.keep(at + "source.filter.metricsFormat")
}

// template returns the template of the trials. It refuses the experiment and returns nil if the manifest has no template.
func (e experimentPart) template() *trialTemplate {
	given := &e.spec.TrialTemplate
	if given.TrialSpec == nil {
		if given.ConfigMap != nil {
			e.refuse("spec.trialTemplate.configMap", "the template is not in the manifest; write what the ConfigMap has below trialSpec")
		} else {
			e.refuse("spec.trialTemplate.trialSpec", "trials need a template; give trialSpec")
		}
		return nil
	}
	of := &trialTemplate{
		conversion: e.conversion, at: "spec.trialTemplate.trialSpec", from: &unstructured.Unstructured{Object: given.TrialSpec},
		trial: &trial{parameters: e.names(), container: given.PrimaryContainerName}, values: map[string]string{},
	}
	for i, p := range given.TrialParameters {
		at := fmt.Sprintf("spec.trialTemplate.trialParameters[%d].reference", i)
		if text, is := e.reference(at, p.Reference, of.from); is {
			of.values[p.Name] = text
		}
	}
	return of
}

// ofTrialSpec matches a reference to what the trial itself has.
var ofTrialSpec = regexp.MustCompile(`^\$\{trialSpec\.(Name|Namespace|Kind|APIVersion|Labels|Annotations)(?:\[(.+)\])?\}$`)

// reference returns the text that stands for a parameter of the search, or for what the trial itself has.
func (e experimentPart) reference(at, name string, of *unstructured.Unstructured) (text string, is bool) {
	number := slices.IndexFunc(e.spec.Parameters, func(p katibParameter) bool { return p.Name == name })
	if number >= 0 && number < len(e.made.Parameters) {
		return trialReference + e.made.Parameters[number].Name + ")", true
	}
	found := ofTrialSpec.FindStringSubmatch(name)
	if found == nil {
		e.refuse(at, fmt.Sprintf("there is no parameter %.60q; name one of parameters", name))
		return "", false
	}
	switch found[1] {
	case "Name":
		text = e.meta.Name + "-" + numberOfTrial
		e.adjust(at, "command", "a trial is no object; its number makes the name another one in each trial")
	case "Namespace":
		text = e.meta.Namespace
	case "Kind":
		text = of.GetKind()
	case "APIVersion":
		text = of.GetAPIVersion()
	case "Labels":
		text = of.GetLabels()[found[2]]
	case "Annotations":
		text = of.GetAnnotations()[found[2]]
	}
	if text == "" {
		e.refuse(at, "the manifest does not have it; write the value in place of the reference")
	}
	return text, text != ""
}

// takeResume has a later job go on with the trials, where a volume of all pods can have them.
func (e experimentPart) takeResume(job *v1beta1.ClusterJob) {
	const at = "spec.resumePolicy"
	switch e.spec.ResumePolicy {
	case "", "Never":
		e.keep(at)
		return
	case "LongRunning", "FromVolume":
	default:
		e.refuse(at, "policies are Never, LongRunning and FromVolume; use one of them")
		return
	}
	if template := job.Spec.ClusterTemplate; template != nil {
		for _, volume := range template.Spec.SharedVolumes {
			if volume.ReadOnly == nil || !*volume.ReadOnly {
				job.Spec.Tune.Storage = volume.MountPath + "/" + cmp.Or(e.meta.Name, strings.TrimSuffix(e.meta.GenerateName, "-"))
				e.adjust(at, "tune.storage", fmt.Sprintf("a later job with the storage %s and a higher maxTrials goes on with its trials", job.Spec.Tune.Storage))
				return
			}
		}
	}
	e.note(Row{Path: at, Verdict: Dropped, Differs: true, Text: "no volume that all pods mount can have the trials, so that no later job goes on with them; " +
		"add sharedVolumes to the cluster, and set tune.storage to a directory there"})
}
