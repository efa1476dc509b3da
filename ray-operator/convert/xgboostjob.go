package convert

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

var xgBoostRoles = []roleKind{{"Master", "master"}, {"Worker", "worker"}}

var xgBoostRules = replicaRules(kindXGBoost, "xgbReplicaSpecs", "Master and Worker")

// xgBoostJob converts an XGBoostJob. Its master decides on success, as that of a gang does.
func xgBoostJob(c *conversion) runtime.Object {
	var spec xgBoostJobSpec
	if refuseMisplaced(c, "xgbReplicaSpecs", xgBoostRoles) || !c.read(&spec) {
		return nil
	}
	g := c.newGangJob(v1beta1.FrameworkXGBoost)
	g.takeRoles(gather(c, "xgbReplicaSpecs", "xgboost", spec.Roles, xgBoostRoles))
	limit, path := g.takePolicy(&spec.jobPolicy, managerTraining)
	g.takeRestarts(limit, path, restartNever, restartsUnsaid)
	return g.finished()
}
