package convert

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

var mxKind = trainingKind{
	field: "mxReplicaSpecs", container: "mxnet", roles: []roleKind{{"Scheduler", "scheduler"}, {"Server", "server"}, {"Worker", "worker"}},
	framework: v1beta1.FrameworkGeneric, restart: restartNever,
}

// modeTrain is the mode of an MXJob that trains, and no other one is converted.
const modeTrain = "MXTrain"

var mxRules = append(replicaRules(kindMX, mxKind.field, "Scheduler, Server and Worker"), Rule{
	Kind: kindMX, Path: "spec.jobMode", To: "gang", Verdict: Kept,
	Text: "MXTrain is converted. MXTune is refused: its programs find each other by MX_CONFIG.",
})

// mxJob converts an MXJob. Gangs have no framework of that name, so that roles have what Kubeflow sets as variables.
func mxJob(c *conversion) runtime.Object {
	var spec mxJobSpec
	return trainingJob(c, &mxKind, &spec, func(_ *gangJob, sources []roleSource) {
		if spec.JobMode != "" && spec.JobMode != modeTrain {
			c.refuse("spec.jobMode", "only MXTrain is converted, as programs of MXTune find each other by MX_CONFIG; write a ClusterJob with "+
				"a gang of framework Generic, whose commands have $(ROLE.INDEX.host)")
		}
		if has(sources, "scheduler") >= 0 {
			decide(c, sources, "scheduler")
		}
		setMX(c, sources)
	})
}

// setMX gives roles what Kubeflow sets for MXNet. Without a scheduler the first role's process 0 is where all meet.
func setMX(c *conversion, sources []roleSource) {
	if len(sources) == 0 {
		return
	}
	first := sources[0].name
	many := func(name string) string {
		if at := has(sources, name); at >= 0 {
			return strconv.Itoa(int(sources[at].replicas))
		}
		return "0"
	}
	for i := range sources {
		sources[i].env = []corev1.EnvVar{
			{Name: "DMLC_PS_ROOT_URI", Value: "$(" + first + ".0.host)"}, {Name: "DMLC_PS_ROOT_PORT", Value: "$(" + first + ".0.port)"},
			{Name: "DMLC_NUM_SERVER", Value: many("server")}, {Name: "DMLC_NUM_WORKER", Value: many("worker")},
			{Name: "DMLC_ROLE", Value: sources[i].name}, {Name: "DMLC_USE_KUBERNETES", Value: "1"},
		}
		if sources[i].name == "worker" {
			sources[i].env = append(sources[i].env, corev1.EnvVar{Name: "DMLC_WORKER_ID", Value: "$(index)"})
		}
	}
	c.change(sources[0].at, "gang.framework", "a gang has no framework for MXNet, so that it is Generic, and the roles have DMLC_ "+
		"variables; MX_CONFIG "+
		"cannot be written so, and a program that reads it must take these")
}
