package corpus

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// scaled turns autoscaling on, with a most of each group that has none.
func scaled(changes ...func(*v1beta1.Autoscaling)) edit {
	return spec(func(s *v1beta1.ComputeClusterSpec) {
		if s.Autoscaling == nil {
			s.Autoscaling = &v1beta1.Autoscaling{}
		}
		for i := range s.WorkerGroups {
			if s.WorkerGroups[i].MaxReplicas == nil {
				s.WorkerGroups[i].MaxReplicas = ptr(int32(9))
			}
		}
		for _, change := range changes {
			change(s.Autoscaling)
		}
	})
}

func idleAfter(seconds int32) edit {
	return scaled(func(a *v1beta1.Autoscaling) { a.IdleTimeoutSeconds = &seconds })
}

func pace(word v1beta1.Pace) edit { return scaled(func(a *v1beta1.Autoscaling) { a.Pace = word }) }

func nodesAtMost(n int32) edit { return scaled(func(a *v1beta1.Autoscaling) { a.MaxNodes = &n }) }

func autoscalerSize(pairs ...string) edit {
	return scaled(func(a *v1beta1.Autoscaling) { a.Size = resources(pairs...) })
}

// groupScaled sets what a group has for autoscaling alone.
func groupScaled(idle, priority, capacity *int32) edit {
	return inGroup(func(g *group) {
		g.IdleTimeoutSeconds, g.Priority, g.CapacityTimeoutSeconds = idle, priority, capacity
	})
}

// headRuns gives the head a sidecar beside Ray.
func headRuns(change func(*container)) edit {
	return headTemplate(func(t *tmpl, _ *container) { change(&t.Spec.Containers[0]) })
}

func headListens(ports ...corev1.ContainerPort) edit {
	return headRuns(func(c *container) { c.Ports = ports })
}

func headService(port, target int32) edit {
	return servicePorts(v1beta1.ServicePort{Name: "a", Port: port, TargetPort: target})
}

var wantsNewState = []corev1.EnvVar{{Name: "RAY_enable_autoscaler_v2", Value: "0"}}

var autoscalingRows = []row{
	{Name: "autoscaling", Edit: scaled()},
	{Name: "autoscaling from none", Edit: both(scaled(), replicas(nil, nil, ptr(int32(3))))},
	{Name: "autoscaling from the least", Edit: both(scaled(), replicas(ptr(int32(2)), nil, ptr(int32(3))))},
	{Name: "autoscaling with a beginning", Edit: both(scaled(), replicas(ptr(int32(0)), ptr(int32(2)), ptr(int32(3))))},
	{Name: "autoscaling of no workers", Edit: both(scaled(), replicas(nil, nil, ptr(int32(0))))},
	{Name: "autoscaling without a most", Rule: "autoscaling-max", Edit: both(scaled(), replicas(nil, nil, nil))},
	{Name: "a beginning below the least", Edit: both(scaled(), replicas(ptr(int32(2)), ptr(int32(1)), ptr(int32(3))))},
	{Name: "a beginning above the most", Edit: both(scaled(), replicas(nil, ptr(int32(4)), ptr(int32(3))))},
	{Name: "autoscaling of a head alone", Edit: both(groups(0), scaled())},
	{Name: "the most hosts of autoscaling", Edit: both(scaled(), hosts(2), replicas(nil, nil, ptr(int32(5000))))},
	{Name: "too many hosts of autoscaling", Rule: "autoscaling-hosts", Edit: both(scaled(), hosts(2), replicas(nil, nil, ptr(int32(5001))))},
	{Name: "many hosts without autoscaling", Edit: both(hosts(2), replicas(nil, ptr(int32(1)), ptr(int32(10000))))},
	{Name: "what autoscaling takes", Edit: both(idleAfter(31536000), pace(v1beta1.PaceConservative), nodesAtMost(100000), autoscalerSize("cpu", "1m", "memory", "32Mi"))},
	{Name: "the quickest autoscaling", Edit: both(idleAfter(1), pace(v1beta1.PaceAggressive), groupScaled(ptr(int32(1)), ptr(int32(1000)), ptr(int32(1))))},
	{Name: "autoscaling too quick", Rule: "out-of-bounds", Edit: idleAfter(0)},
	{Name: "autoscaling too slow", Rule: "out-of-bounds", Edit: idleAfter(31536001)},
	{Name: "an unknown pace", Rule: "unknown-word", Edit: pace("Fast")},
	{Name: "autoscaling to no nodes", Rule: "out-of-bounds", Edit: nodesAtMost(0)},
	{Name: "the least as many as may be", Edit: both(hosts(2), replicas(ptr(int32(2)), nil, ptr(int32(3))), nodesAtMost(4))},
	{Name: "the least more than may be", Rule: "autoscaling-nodes", Edit: both(hosts(2), replicas(ptr(int32(2)), nil, ptr(int32(3))), nodesAtMost(3))},
	{Name: "the least of all more than may be", Rule: "autoscaling-nodes", Edit: both(nodesAtMost(3), spec(func(s *v1beta1.ComputeClusterSpec) {
		for i := range s.WorkerGroups {
			s.WorkerGroups[i].Replicas, s.WorkerGroups[i].MinReplicas, s.WorkerGroups[i].MaxReplicas = nil, ptr(int32(2)), ptr(int32(2))
		}
	}))},
	{Name: "an autoscaler with a GPU", Rule: "autoscaling-size-name", Edit: autoscalerSize("nvidia.com/gpu", "1")},
	{Name: "an autoscaler with little memory", Rule: "autoscaling-size", Edit: autoscalerSize("memory", "31Mi")},
	{Name: "an autoscaler with no CPU", Rule: "autoscaling-size", Edit: autoscalerSize("cpu", "0")},
	{Name: "an autoscaler of five", Rule: "long-list", Edit: autoscalerSize("cpu", "1", "limits.cpu", "1", "memory", "1Gi", "ephemeral-storage", "1Gi", "other", "1")},
	{Name: "an autoscaler with all that it takes", Edit: autoscalerSize("cpu", "1", "limits.cpu", "1", "memory", "1Gi", "ephemeral-storage", "1Gi")},
	{Name: "an autoscaler with a limit below cpu", Rule: "autoscaling-size-limit", Edit: autoscalerSize("cpu", "2", "limits.cpu", "1")},
	{Name: "a group's own pace", Edit: both(scaled(), groupScaled(ptr(int32(31536000)), ptr(int32(-1000)), ptr(int32(31536000))))},
	{Name: "a group too quick", Rule: "out-of-bounds", Edit: both(scaled(), groupScaled(ptr(int32(0)), nil, nil))},
	{Name: "a group too important", Rule: "out-of-bounds", Edit: both(scaled(), groupScaled(nil, ptr(int32(1001)), nil))},
	{Name: "a group passed over at once", Rule: "out-of-bounds", Edit: both(scaled(), groupScaled(nil, nil, ptr(int32(0))))},
	{Name: "a group idle for nothing", Rule: "autoscaling-unused", Edit: groupScaled(ptr(int32(60)), nil, nil)},
	{Name: "a priority for nothing", Rule: "autoscaling-unused", Edit: groupScaled(nil, ptr(int32(0)), nil)},
	{Name: "a capacity timeout for nothing", Rule: "autoscaling-unused", Edit: groupScaled(nil, nil, ptr(int32(60)))},
	{Name: "autoscaling with claims", Edit: both(scaled(), claim())},
	{Name: "a head's sidecar called autoscaler", Rule: "autoscaling-container", Edit: both(scaled(), headRuns(func(c *container) { c.Name = "autoscaler" }))},
	{Name: "a head's init container called autoscaler", Rule: "autoscaling-container", Edit: both(scaled(), headTemplate(func(t *tmpl, _ *container) {
		t.Spec.InitContainers = []container{{Name: "autoscaler", Image: "a"}}
	}))},
	{Name: "an autoscaler of the user's own", Edit: headRuns(func(c *container) { c.Name = "autoscaler" })},
	{Name: "a worker's sidecar called autoscaler", Edit: both(scaled(), inSide(func(c *container) {
		c.Name, c.Ports = "autoscaler", []corev1.ContainerPort{{Name: "scale", ContainerPort: 6380}}
	}))},
	{Name: "a head's sidecar on the autoscaler's port", Rule: "autoscaling-port", Edit: both(scaled(), headListens(port(6380)))},
	{Name: "a head's sidecar on the autoscaler's metrics", Rule: "autoscaling-port", Edit: both(scaled(), headListens(port(44217)))},
	{Name: "a head's port called scale", Rule: "autoscaling-port", Edit: both(scaled(), headTemplate(func(_ *tmpl, c *container) {
		c.Ports = []corev1.ContainerPort{{Name: "scale", ContainerPort: 9000}}
	}))},
	{Name: "a head's sidecar on that port of another protocol", Edit: both(scaled(), headListens(corev1.ContainerPort{ContainerPort: 6380, Protocol: corev1.ProtocolUDP}))},
	{Name: "a head's sidecar on that port without autoscaling", Edit: headListens(corev1.ContainerPort{Name: "scale", ContainerPort: 6380})},
	{Name: "a Service's port to the autoscaler", Rule: "autoscaling-service", Edit: both(scaled(), headService(6380, 0))},
	{Name: "another port of a Service to the autoscaler", Rule: "autoscaling-service", Edit: both(scaled(), headService(80, 6380))},
	{Name: "that port of a Service to elsewhere", Edit: both(scaled(), headService(6380, 80))},
	{Name: "that port of a Service without autoscaling", Edit: headService(6380, 0)},
	{Name: "the autoscaler's variable", Rule: "autoscaling-variable", Edit: both(scaled(), defaults(func(d *v1beta1.PodDefaults) { d.Env = wantsNewState }))},
	{Name: "the autoscaler's variable in ray", Rule: "autoscaling-variable", Edit: both(scaled(), headTemplate(func(_ *tmpl, c *container) { c.Env = wantsNewState }))},
	{Name: "that variable without autoscaling", Edit: headTemplate(func(_ *tmpl, c *container) { c.Env = wantsNewState })},
}
