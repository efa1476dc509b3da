package validate

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

var headServicePath = field.NewPath("spec", "head", "service")

func isHeadless(c *v1beta1.ComputeCluster) bool {
	return c.Spec.Head.Service != nil && ptr.Deref(c.Spec.Head.Service.Headless, false)
}

func headlessChange(before, after *v1beta1.ComputeCluster, bad report) {
	if isHeadless(before) != isHeadless(after) {
		bad.at(headServicePath.Child("headless"), nil)
	}
}

// familyChange reports another first family of the head's Service, which Kubernetes does not change.
func familyChange(before, after *v1beta1.ComputeCluster, bad report) {
	was, is := before.Spec.Head.Service, after.Spec.Head.Service
	if was == nil || is == nil || isHeadless(after) || len(was.IPFamilies) == 0 || len(is.IPFamilies) == 0 {
		return
	}
	if was.IPFamilies[0] != is.IPFamilies[0] {
		bad.at(headServicePath.Child("ipFamilies"), string(is.IPFamilies[0]))
	}
}

// classChange reports another class of a load balancer in front of the head, which Kubernetes does not change.
func classChange(before, after *v1beta1.ComputeCluster, bad report) {
	const balancer = corev1.ServiceTypeLoadBalancer
	was, is := before.Spec.Head.Service, after.Spec.Head.Service
	if was != nil && is != nil && was.Type == balancer && is.Type == balancer && was.LoadBalancerClass != is.LoadBalancerClass {
		bad.at(headServicePath.Child("loadBalancerClass"), is.LoadBalancerClass)
	}
}

// isSet reports whether a number of a port is given.
func isSet(port int32) bool { return port != 0 }
