package service

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/upgrade"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// Defaults of an upgrade, as the schema has them; a service on a cluster that is not its own
// goes by them too.
const (
	defaultSurge, defaultStep = 100, 20
	defaultInterval           = 10
	defaultDeadline           = 1800
	defaultDrain              = 60
	defaultRetire             = 60
	// provenAfter is how long a configuration on a cluster that is not the service's own has to
	// be healthy, in seconds: nothing is kept there to go back to but the former configuration.
	provenAfter = 30
)

// gatewayOf returns the gateway that a service asks for, nil where it asks for none.
func gatewayOf(service *v1beta1.ClusterService) *v1beta1.ServiceGateway {
	if service.Spec.UpgradeStrategy == nil || service.Spec.ClusterTemplate == nil {
		return nil
	}
	return service.Spec.UpgradeStrategy.Gateway
}

// termsOf returns the terms of the service's upgrades.
func termsOf(service *v1beta1.ClusterService) upgrade.Terms {
	terms := upgrade.Terms{
		Surge: defaultSurge, Step: defaultStep, Interval: defaultInterval * time.Second, Deadline: defaultDeadline * time.Second, AutoRollback: true,
	}
	given := service.Spec.UpgradeStrategy
	if given == nil {
		return terms
	}
	if surge := given.Surge; surge != nil {
		terms.Surge, terms.Step = int(or(surge.MaxSurgePercent, defaultSurge)), int(or(surge.StepPercent, defaultStep))
		terms.Interval = seconds(or(surge.IntervalSeconds, defaultInterval))
	}
	terms.Deadline = seconds(or(given.HealthyDeadlineSeconds, defaultDeadline))
	terms.AutoRollback = given.AutoRollback == nil || *given.AutoRollback
	return terms
}

// drainOf returns how long requests may take that a cluster has when it gets no more.
func drainOf(service *v1beta1.ClusterService) time.Duration {
	if given := service.Spec.UpgradeStrategy; given != nil {
		return seconds(or(given.DrainSeconds, defaultDrain))
	}
	return defaultDrain * time.Second
}

// retireAfterOf returns how long what was before is kept to go back to.
func retireAfterOf(service *v1beta1.ClusterService) time.Duration {
	if given := service.Spec.UpgradeStrategy; given != nil {
		return seconds(or(given.RetireAfterSeconds, defaultRetire))
	}
	if service.Spec.ClusterTemplate == nil {
		return provenAfter * time.Second
	}
	return defaultRetire * time.Second
}

// strategyOf returns how a change that needs other pods comes about.
func strategyOf(service *v1beta1.ClusterService) v1beta1.ServiceUpgradeType {
	if given := service.Spec.UpgradeStrategy; given != nil {
		return given.Type
	}
	return v1beta1.ServiceUpgradeSurge
}

// wasReady reports whether the service was told to be.
func wasReady(service *v1beta1.ClusterService) bool {
	return meta.IsStatusConditionTrue(service.Status.Conditions, v1beta1.ConditionReady)
}

// gatewayName names the gateway for people.
func gatewayName(service *v1beta1.ClusterService) string {
	parent := desired.GatewayParent(service, gatewayOf(service))
	return string(*parent.Namespace) + "/" + string(parent.Name)
}

func or(given *int32, otherwise int32) int32 {
	if given == nil {
		return otherwise
	}
	return *given
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

// circumstances returns a hash of what bears on the fate of a version beside itself: the rest of the spec, but for how
// requests reach the service and for suspension, and the annotation that asks for another try.
func circumstances(service *v1beta1.ClusterService) string {
	spec := service.Spec.DeepCopy()
	spec.Service, spec.Suspend = nil, nil
	if spec.ClusterTemplate != nil {
		validate.OmitFalse(&spec.ClusterTemplate.Spec)
	}
	if spec.UpgradeStrategy != nil {
		spec.UpgradeStrategy.DrainSeconds, spec.UpgradeStrategy.RetireAfterSeconds = nil, nil // of versions that leave
	}
	hash, _ := naming.ObjectHash([]any{spec, service.Annotations[v1beta1.AnnotationRetry]}) // it always marshals
	return hash
}
