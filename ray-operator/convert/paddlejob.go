package convert

import (
	"cmp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

var paddleKind = trainingKind{
	field: "paddleReplicaSpecs", container: "paddle", roles: []roleKind{{"Master", "master"}, {"Worker", "worker"}},
	framework: v1beta1.FrameworkGeneric, restart: restartOnFailure,
}

var paddleRules = append(replicaRules(kindPaddle, paddleKind.field, "Master and Worker"), elasticRules(kindPaddle)...)

// paddleJob converts a PaddleJob. Gangs have no framework of that name, so that roles have what Kubeflow sets as variables.
func paddleJob(c *conversion) runtime.Object {
	var spec paddleJobSpec
	return trainingJob(c, &paddleKind, &spec, func(_ *gangJob, sources []roleSource) {
		isElastic := takeElastic(spec.ElasticPolicy, sources)
		if has(sources, "master") >= 0 {
			decide(c, sources, "master")
		}
		setPaddle(c, sources, isElastic)
	})
}

// setPaddle gives roles what Kubeflow sets for Paddle. The first process of a master or else of the workers is where all meet.
func setPaddle(c *conversion, sources []roleSource, isElastic bool) {
	if len(sources) == 0 {
		return
	}
	first, nodes := sources[0].name, strconv.Itoa(int(total(sources)))
	if isElastic && len(sources) == 1 {
		nodes = "$(" + first + ".count)"
	}
	for i := range sources {
		env := []corev1.EnvVar{
			{Name: "PADDLE_JOB_ID", Value: cmp.Or(c.meta.Name, strings.TrimSuffix(c.meta.GenerateName, "-"))},
			{Name: "PADDLE_NNODES", Value: nodes},
			{Name: "PADDLE_MASTER", Value: "$(" + first + ".0.host):$(" + first + ".0.port)"},
		}
		switch {
		case first != "master":
		case sources[i].name == "master":
			env = append(env, corev1.EnvVar{Name: "PADDLE_SERVER_NUM", Value: "1"})
		default:
			env = append(env, corev1.EnvVar{Name: "PADDLE_TRAINER_NUM", Value: "1"})
		}
		sources[i].env = env
	}
	c.adjust(sources[0].at, "gang.framework", "a gang has no framework for Paddle, so that it is Generic, and the roles have PADDLE_ "+
		"variables; their "+
		"addresses and ports are those of each round")
}
