package validate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Bounds of a service's own fields that the CRD's schema states; those of its cluster are the
// ComputeCluster's.

const (
	portHTTP = "http"
	portGRPC = "grpc"

	mostUpgrade = 86400
	leastHealth = 10
)

// goodIn is an expression about the labels or annotations of the Service.
func goodIn(good, which string) string {
	return fmt.Sprintf(good, "object.spec.?service.?"+which+".orValue({})")
}

func longServiceTexts(s *serving, bad report) {
	text(bad, specPath, "healthPath", s.spec.HealthPath, 1024)
	text(bad, specPath, "managedBy", s.spec.ManagedBy, 63)
	for i := range s.front().Ports {
		text(bad, frontPath.Child("ports").Index(i), "name", s.front().Ports[i].Name, 63)
	}
	r := ofProxies(s)
	longReachTexts(&r, bad)
	longGatewayTexts(s, bad)
}

func longServiceLists(s *serving, bad report) {
	r := ofProxies(s)
	longReachLists(&r, bad)
	count(bad, frontPath, "ports", len(s.front().Ports), 32)
	count(bad, frontPath, "allowFrom", len(s.front().AllowFrom), 32)
	count(bad, frontPath, "labels", len(s.front().Labels), 64)
	count(bad, frontPath, "annotations", len(s.front().Annotations), 64)
	if g := s.gateway(); g != nil {
		count(bad, specPath, "upgradeStrategy.gateway.hostnames", len(g.Hostnames), maxHostnames)
	}
}

func unknownServiceWords(s *serving, bad report) {
	word(bad, frontPath, "type", s.front().Type,
		corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer)
	r := ofProxies(s)
	unknownReachWords(&r, bad)
	word(bad, specPath, "upgradeStrategy.type", s.upgrade().Type, v1beta1.ServiceUpgradeSurge, v1beta1.ServiceUpgradeInPlace, v1beta1.ServiceUpgradeNone)
}

func serviceOutOfBounds(s *serving, bad report) {
	for i := range s.front().Ports {
		port := &s.front().Ports[i]
		portsWithin(bad, frontPath.Child("ports").Index(i), port.Port, port.TargetPort, port.NodePort)
	}
	u, at := s.upgrade(), specPath.Child("upgradeStrategy")
	if surge := u.Surge; surge != nil {
		withinGiven(bad, at, "surge.maxSurgePercent", surge.MaxSurgePercent, span{1, 100})
		withinGiven(bad, at, "surge.stepPercent", surge.StepPercent, span{1, 100})
		withinGiven(bad, at, "surge.intervalSeconds", surge.IntervalSeconds, span{0, mostUpgrade})
	}
	withinGiven(bad, at, "healthyDeadlineSeconds", u.HealthyDeadlineSeconds, span{leastHealth, mostUpgrade})
	withinGiven(bad, at, "drainSeconds", u.DrainSeconds, span{0, mostUpgrade})
	withinGiven(bad, at, "retireAfterSeconds", u.RetireAfterSeconds, span{0, mostUpgrade})
}

func serviceDuplicates(s *serving, bad report) {
	r := ofProxies(s)
	twiceInReach(&r, bad)
	twice(bad, frontPath, "ports", s.front().Ports, func(p *v1beta1.ServePort) string { return p.Name })
	if g := s.gateway(); g != nil {
		twice(bad, specPath, "upgradeStrategy.gateway.hostnames", g.Hostnames, func(name *string) string { return *name })
	}
}
