package phases_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// What a service may say. Its former version is on another cluster.
var (
	former    = &v1beta1.ServiceVersion{ClusterName: "former", Healthy: true, ReadyEndpoints: 1, TrafficPercent: 100}
	not       = since(v1beta1.ConditionReady, false, 0)
	serves    = since(v1beta1.ConditionReady, true, 9)
	upgrading = since(v1beta1.ConditionUpgrading, true, 4)
)

// version is one on the cluster demo, with the states of its applications.
func version(isHealthy bool, percent, endpoints int32, states ...string) *v1beta1.ServiceVersion {
	return &v1beta1.ServiceVersion{
		ClusterName: "demo", Healthy: isHealthy, TrafficPercent: percent, ReadyEndpoints: endpoints, Applications: apps(states...),
	}
}

// servicePhases are services on a cluster whose head answers after six minutes, and how far they are.
var servicePhases = map[string]struct {
	service *v1beta1.ClusterService
	want    string
}{
	"waits for a cluster": {
		serviceOf(nil, nil, not), "Cluster Current 0-? (because), Deployed Pending, Healthy Pending, Traffic Pending, Ready Pending",
	},
	"the cluster that it names is there": {
		but(serviceOf(nil, nil, not), func(service *v1beta1.ClusterService) {
			service.Spec.ClusterRef = &v1beta1.ClusterReference{Name: "demo"}
		}),
		"Cluster Done 0-6, Deployed Current 6-? (because), Healthy Pending, Traffic Pending, Ready Pending",
	},
	"is deployed": {
		serviceOf(version(false, 0, 0, "RUNNING", "DEPLOYING"), nil, not),
		"Cluster Done 0-6, Deployed Current 6-? (because), Healthy Pending, Traffic Pending, Ready Pending",
	},
	"could not be deployed": {
		serviceOf(version(false, 0, 0, "RUNNING", "DEPLOY_FAILED"), nil, not),
		"Cluster Done 0-6, Deployed Failed 6-? (because), Healthy Pending, Traffic Pending, Ready Pending",
	},
	"is not healthy": {
		serviceOf(version(false, 0, 0, "RUNNING", "UNHEALTHY"), nil, not),
		"Cluster Done 0-6, Deployed Done 6-?, Healthy Current ?-? (because), Traffic Pending, Ready Pending",
	},
	"gets no requests": {
		serviceOf(version(true, 0, 0, "RUNNING"), nil, not),
		"Cluster Done 0-6, Deployed Done 6-?, Healthy Done ?-?, Traffic Current ?-? (because), Ready Pending",
	},
	"serves, and an application failed since": {
		serviceOf(version(false, 100, 2, "RUNNING", "DEPLOY_FAILED"), nil, serves),
		"Cluster Done 0-6, Deployed Done 6-?, Healthy Done ?-?, Traffic Done ?-?, Ready Done 9-?",
	},
	"waits since it was resumed": {
		serviceOf(nil, nil, not, since(v1beta1.ConditionSuspended, false, 10)),
		"Cluster Current 10-? (because), Deployed Pending, Healthy Pending, Traffic Pending, Ready Pending",
	},
	"another version has nearly all requests": {
		serviceOf(former, version(true, 99, 2, "RUNNING"), serves, upgrading),
		"Cluster Done 4-6, Deployed Done 6-?, Healthy Done ?-?, Traffic Current ?-? (because), Ready Pending",
	},
	"one pod takes requests": {
		serviceOf(version(true, 100, 1, "RUNNING"), nil, not),
		"Cluster Done 0-6, Deployed Done 6-?, Healthy Done ?-?, Traffic Done ?-?, Ready Current ?-? (because)",
	},
	"serves": {
		serviceOf(version(true, 100, 2, "RUNNING"), nil, serves),
		"Cluster Done 0-6, Deployed Done 6-?, Healthy Done ?-?, Traffic Done ?-?, Ready Done 9-?",
	},
	"serves since an upgrade": {
		but(serviceOf(version(true, 100, 2, "RUNNING"), nil, serves), func(service *v1beta1.ClusterService) {
			service.Status.LastUpgrade = &v1beta1.UpgradeOutcome{Result: v1beta1.UpgradeSucceeded, StartTime: new(at(3))}
		}),
		"Cluster Done 3-6, Deployed Done 6-?, Healthy Done ?-?, Traffic Done ?-?, Ready Done 9-?",
	},
	"another version takes requests over": {
		serviceOf(former, version(true, 40, 2, "RUNNING"), serves, upgrading),
		"Cluster Done 4-6, Deployed Done 6-?, Healthy Done ?-?, Traffic Current ?-? (because), Ready Pending",
	},
	"another version has all requests": {
		serviceOf(former, version(true, 100, 2, "RUNNING"), serves, upgrading),
		"Cluster Done 4-6, Deployed Done 6-?, Healthy Done ?-?, Traffic Done ?-?, Ready Current ?-? (because)",
	},
}

func TestOf_Service(t *testing.T) {
	for name, test := range servicePhases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, draw(test.service, []*v1beta1.ComputeCluster{own})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
