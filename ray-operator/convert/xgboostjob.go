package convert

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

var xgBoostKind = trainingKind{
	field: "xgbReplicaSpecs", container: "xgboost", roles: []roleKind{{"Master", "master"}, {"Worker", "worker"}},
	framework: v1beta1.FrameworkXGBoost, restart: restartNever,
}

var xgBoostRules = replicaRules(kindXGBoost, xgBoostKind.field, "Master and Worker")

// xgBoostJob converts an XGBoostJob. Its master decides on success, as that of a gang does.
func xgBoostJob(c *conversion) runtime.Object {
	return trainingJob(c, &xgBoostKind, &xgBoostJobSpec{}, nil)
}
