package convert

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

var jaxRoles = []roleKind{{"Worker", "worker"}}

var jaxRules = replicaRules(kindJAX, "jaxReplicaSpecs", "Worker")

// jaxJob converts a JAXJob. All its workers decide on success, as those of a gang do.
func jaxJob(c *conversion) runtime.Object {
	var spec jaxJobSpec
	if refuseMisplaced(c, "jaxReplicaSpecs", jaxRoles) || !c.read(&spec) {
		return nil
	}
	g := c.newGangJob(v1beta1.FrameworkJAX)
	g.takeRoles(gather(c, "jaxReplicaSpecs", "jax", spec.Roles, jaxRoles))
	limit, path := g.takePolicy(&spec.jobPolicy, managerTraining)
	g.takeRestarts(limit, path, restartNever, restartsUnsaid)
	return g.finished()
}
