package convert

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

var tfKind = trainingKind{
	field: "tfReplicaSpecs", container: "tensorflow",
	roles:     []roleKind{{"Chief", "chief"}, {"Master", "master"}, {"Worker", "worker"}, {"PS", "ps"}, {"Evaluator", "evaluator"}},
	framework: v1beta1.FrameworkTensorFlow, restart: restartNever,
}

// allWorkers is the success policy of a TFJob that waits for each worker.
const allWorkers = "AllWorkers"

var tfRules = append(replicaRules(kindTF, tfKind.field, "Chief, Master, Worker, PS and Evaluator"), []Rule{
	{
		Kind: kindTF, Path: "spec.successPolicy", To: "gang.roles[].successPolicy", Verdict: Kept,
		Text: "AllWorkers becomes All of the workers. Beside a chief or master it is dropped, as that decides alone.",
	},
	{
		Kind: kindTF, Path: "spec.enableDynamicWorker", Verdict: Dropped, Differs: true,
		Text: "Each process finds the whole TF_CONFIG, and a worker that fails ends the round for all. minReplicas of a role starts with fewer.",
	},
}...)

// tfJob converts a TFJob.
func tfJob(c *conversion) runtime.Object {
	var spec tfJobSpec
	return trainingJob(c, &tfKind, &spec, func(g *gangJob, sources []roleSource) { g.takeTFSuccess(spec.SuccessPolicy, sources) })
}

// takeTFSuccess says who decides: a chief or master, or worker 0. An evaluator never does.
func (g *gangJob) takeTFSuccess(policy string, sources []roleSource) {
	worker, evaluator := has(sources, "worker"), has(sources, "evaluator")
	isLed := has(sources, "chief") >= 0 || has(sources, "master") >= 0
	switch {
	case policy == "":
	case policy != allWorkers:
		g.refuse("spec.successPolicy", "a TFJob has AllWorkers or nothing; use one of them")
	case isLed:
		g.drop("spec.successPolicy", "the chief or master decides alone")
	case worker >= 0:
		sources[worker].success = v1beta1.SuccessAll
	}
	if evaluator >= 0 && len(sources) > 1 {
		sources[evaluator].success = v1beta1.SuccessIgnore
		g.adjust(sources[evaluator].at, "gang.roles[].successPolicy", "the job does not wait for the evaluator, as before; take "+
			"successPolicy out to "+
			"have it finish")
	}
}
