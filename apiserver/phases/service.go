package phases

import (
	"slices"

	"github.com/heliostat-dev/heliostat/apiserver/explain"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// States of an application in Serve's own words.
const (
	stateRunning   = "RUNNING"
	stateUnhealthy = "UNHEALTHY"
	stateFailed    = "DEPLOY_FAILED"
)

// wayOfService is that of the version on its way to the requests, or of the one that has them.
func wayOfService(service *v1beta1.ClusterService, in explain.Input) way {
	conditions := service.Status.Conditions
	w := begin(&service.ObjectMeta, conditions, service.Status.Phase)
	w.began = latest(w.began, resumed(conditions))
	readySince, isReady := since(conditions, v1beta1.ConditionReady)
	version, takesOver := service.Status.Active, service.Status.Candidate != nil
	if takesOver {
		version, isReady = service.Status.Candidate, false
		w.began, _ = since(conditions, v1beta1.ConditionUpgrading)
	} else if last := service.Status.LastUpgrade; last != nil && last.Result == v1beta1.UpgradeSucceeded {
		w.began = timeOf(last.StartTime)
	}
	if version == nil {
		version = &v1beta1.ServiceVersion{}
	}
	name := version.ClusterName
	if name == "" && service.Spec.ClusterRef != nil {
		name = service.Spec.ClusterRef.Name
	}
	answered, hasHead := headSince(clusterOf(in, service.Namespace, name), w.began)
	w.steps = stepsOf(version, hasHead, takesOver)
	w.steps[0].until = answered
	last := step{name: Ready, isDone: isReady}
	if isReady {
		last.since = readySince
		for i := range w.steps {
			w.steps[i].isDone, w.steps[i].hasFailed = true, false
		}
	}
	w.steps = append(w.steps, last)
	return w
}

// stepsOf are those of a version, until it serves. One that takes over has come to its end with all requests.
func stepsOf(version *v1beta1.ServiceVersion, hasHead, takesOver bool) []step {
	hasTraffic := version.ReadyEndpoints > 0
	if takesOver {
		hasTraffic = version.TrafficPercent >= 100
	}
	apps := version.Applications
	return []step{
		{name: Cluster, isDone: hasHead || version.Healthy || len(apps) > 0},
		{name: Deployed, isDone: version.Healthy || isDeployed(apps), hasFailed: hasFailed(apps)},
		{name: Healthy, isDone: version.Healthy},
		{name: Traffic, isDone: hasTraffic},
	}
}

// isDeployed reports whether Serve runs all applications, well or not.
func isDeployed(all []v1beta1.ApplicationStatus) bool {
	return len(all) > 0 && !slices.ContainsFunc(all, func(app v1beta1.ApplicationStatus) bool {
		return app.State != stateRunning && app.State != stateUnhealthy
	})
}

func hasFailed(all []v1beta1.ApplicationStatus) bool {
	return slices.ContainsFunc(all, func(app v1beta1.ApplicationStatus) bool { return app.State == stateFailed })
}
