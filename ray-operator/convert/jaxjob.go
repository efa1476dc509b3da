package convert

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

var jaxKind = trainingKind{
	field: "jaxReplicaSpecs", container: "jax", roles: []roleKind{{"Worker", "worker"}}, framework: v1beta1.FrameworkJAX, restart: restartNever,
}

var jaxRules = replicaRules(kindJAX, jaxKind.field, "Worker")

// jaxJob converts a JAXJob. All its workers decide on success, as those of a gang do.
func jaxJob(c *conversion) runtime.Object {
	return trainingJob(c, &jaxKind, &jaxJobSpec{}, nil)
}
