package convert

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// Bounds of an upgrade's times, in seconds.
const (
	leastHealthy = 10
	longestStep  = 86400
)

// clusterService converts a RayService.
func (c *conversion) clusterService(spec *rayServiceSpec) runtime.Object {
	service := &v1beta1.ClusterService{TypeMeta: typeMeta("ClusterService"), Spec: v1beta1.ClusterServiceSpec{
		Suspend: c.suspended("spec.suspend", spec.Suspend), ManagedBy: c.manager("spec.managedBy", spec.ManagedBy, managerKubeRay),
	}}
	if config := c.object("spec.serveConfigV2", spec.ServeConfig); config != nil {
		service.Spec.ServeConfig = *config
	} else if spec.ServeConfig == "" {
		c.refuse("spec.serveConfigV2", "a service has something to serve; set serveConfigV2")
	}
	service.Spec.ClusterTemplate = &v1beta1.ClusterTemplate{
		Metadata: v1beta1.TemplateMetadata{Labels: c.takeKueue()}, Spec: c.cluster(&spec.RayClusterSpec),
	}
	service.ObjectMeta = c.meta // after takeKueue, which takes labels away
	service.Spec.Service = c.serveService(spec)
	service.Spec.UpgradeStrategy = c.upgrade(spec)
	return service
}

// serveService converts the Service in front of the proxies.
func (c *conversion) serveService(spec *rayServiceSpec) *v1beta1.ServeService {
	made := &v1beta1.ServeService{}
	isHeadAlone := len(spec.RayClusterSpec.WorkerGroupSpecs) == 0
	switch {
	case isHeadAlone && spec.ExcludeHead:
		c.change("spec.excludeHeadPodFromServeSvc", "service.headEndpoints",
			"the cluster has no workers, so that the head's proxy answers; add a worker group to keep it free")
	case !isHeadAlone && !spec.ExcludeHead:
		made.HeadEndpoints = new(true)
	}
	from := spec.ServeService
	if from == nil || len(from.Spec.Ports) == 0 {
		c.takeServePort(spec, made)
	}
	if from == nil {
		if made.HeadEndpoints == nil && made.Ports == nil {
			return nil
		}
		return made
	}
	const at = "spec.serveService"
	if from.Name != "" {
		c.change(at+".metadata.name", "", "the Service is named as the ClusterService; point clients there, or add a "+
			"Service of the other name")
	}
	made.Type, made.Labels, made.Annotations = from.Spec.Type, c.serviceLabels(at, from.Labels), from.Annotations
	made.ServiceReach = c.reach(at, &from.Spec)
	if len(from.Spec.Ports) > 0 {
		made.Ports = c.servePorts(at, from.Spec.Ports)
	}
	return made
}

// takeServePort keeps the port of the Service, which KubeRay takes from the port of the head's container that is named serve.
func (c *conversion) takeServePort(spec *rayServiceSpec, made *v1beta1.ServeService) {
	containers := spec.RayClusterSpec.HeadGroupSpec.Template.Spec.Containers
	if len(containers) == 0 {
		return
	}
	for i, port := range containers[0].Ports {
		if port.Name == "serve" && port.ContainerPort != servePort {
			c.adjust(fmt.Sprintf("%s.headGroupSpec.template.spec.containers[0].ports[%d]", clusterAt[kindService], i), "service.ports",
				fmt.Sprintf("the Service has the port %d for Serve's proxies, which listen where serveConfig says", port.ContainerPort))
			made.Ports = []v1beta1.ServePort{{Name: portHTTP, Port: port.ContainerPort}}
		}
	}
}

// servePort is where Serve's proxies listen by default.
const servePort = 8000

// Names of the ports of the Service in front of the proxies.
const (
	portHTTP = "http"
	portGRPC = "grpc"
)

// servePorts are the ports for HTTP and gRPC, and additional ones. Those of Ray itself are reached by the head's Service.
func (r *report) servePorts(at string, ports []corev1.ServicePort) []v1beta1.ServePort {
	var made []v1beta1.ServePort
	for _, port := range ports {
		of := v1beta1.ServePort{Name: serveName(port), Port: port.Port, NodePort: port.NodePort}
		isNamed := slices.ContainsFunc(made, func(other v1beta1.ServePort) bool { return other.Name == of.Name })
		if of.Name == "" || isNamed {
			of.Name, of.TargetPort = r.additionalPort(at+".spec.ports", port), port.TargetPort.IntVal
		}
		if of.Name != "" {
			made = append(made, of)
		}
	}
	return made
}

// additionalPort returns the name of a port that leads to no proxy of Serve, empty for one that is left out.
func (r *report) additionalPort(at string, port corev1.ServicePort) string {
	target := cmp.Or(port.TargetPort.IntVal, port.Port)
	if slices.Contains(validate.ReservedPorts(), target) || slices.Contains(rayTargets, port.TargetPort.StrVal) {
		r.change(at, "service.ports", fmt.Sprintf("the port %d leads to Ray itself, and is left out; use the Service NAME-head "+
			"for the head's", port.Port))
		return ""
	}
	r.refusePort(at, "service.ports", port)
	if port.Name != "" && port.Name != portHTTP && port.Name != portGRPC {
		return port.Name
	}
	name := portName("", port.Port)
	r.change(at, "service.ports", fmt.Sprintf("the port %d is named %s: http and grpc are those of Serve's proxies", port.Port, name))
	return name
}

// rayTargets are the names that KubeRay's samples give to ports of Ray itself.
var rayTargets = []string{"gcs", "gcs-server", "dashboard", "client", "metrics", "dashboard-agent"}

// serveName is the name of ours for a port that leads to Serve's proxies, empty for another.
func serveName(port corev1.ServicePort) string {
	target := port.Port
	if port.TargetPort.IntVal != 0 {
		target = port.TargetPort.IntVal
	}
	switch {
	case target == 8000 || port.Name == "serve" || port.TargetPort.StrVal == "serve":
		return portHTTP
	case target == 9000 || port.Name == "serve-grpc" || port.TargetPort.StrVal == "serve-grpc":
		return portGRPC
	default:
		return ""
	}
}

// upgrade says how a change reaches users: all at once by default, as in KubeRay.
func (c *conversion) upgrade(spec *rayServiceSpec) *v1beta1.ServiceUpgradeStrategy {
	made := &v1beta1.ServiceUpgradeStrategy{RetireAfterSeconds: c.atMost("spec.rayClusterDeletionDelaySeconds", "upgradeStrategy.retireAfterSeconds", spec.DeletionDelay)}
	u := spec.UpgradeStrategy
	if u == nil {
		u = &rayUpgrade{}
	}
	switch u.Type {
	case "", "NewCluster":
		made.Surge = &v1beta1.Surge{StepPercent: new(int32(100))}
	case "NewClusterWithIncrementalUpgrade":
		made.Type = v1beta1.ServiceUpgradeSurge
	case "None":
		made.Type = v1beta1.ServiceUpgradeNone
	default:
		c.refuse("spec.upgradeStrategy.type", "ray.io knows NewCluster, NewClusterWithIncrementalUpgrade and None; use "+
			"one of them")
	}
	c.takeSteps(u, made)
	made.HealthyDeadlineSeconds = c.healthyDeadline()
	return made
}

func (c *conversion) takeSteps(u *rayUpgrade, made *v1beta1.ServiceUpgradeStrategy) {
	const at, to = "spec.upgradeStrategy.clusterUpgradeOptions", "upgradeStrategy.surge."
	switch o := u.Options; {
	case o == nil:
	case made.Type != v1beta1.ServiceUpgradeSurge:
		c.drop(at, "the options belong to NewClusterWithIncrementalUpgrade; set that type, or leave them out")
	default:
		made.Surge = &v1beta1.Surge{
			MaxSurgePercent: c.atLeastOne(at+".maxSurgePercent", to+"maxSurgePercent", o.MaxSurgePercent),
			StepPercent:     c.atLeastOne(at+".stepSizePercent", to+"stepPercent", o.StepSizePercent),
			IntervalSeconds: c.atMost(at+".intervalSeconds", to+"intervalSeconds", o.IntervalSeconds),
		}
	}
}

// healthyDeadline is the time that a version has to become healthy, which KubeRay has in an annotation: seconds, or a
// duration as Go writes it.
func (c *conversion) healthyDeadline() *int32 {
	text := c.marks[keyTimeout]
	if text == "" {
		return nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil {
		duration, notDuration := time.ParseDuration(text)
		if notDuration != nil {
			c.refuse("metadata.annotations["+keyTimeout+"]", "it is neither seconds nor a duration such as 30m; correct it")
			return nil
		}
		seconds = duration.Seconds()
	}
	return new(int32(max(min(seconds, longestStep), leastHealthy)))
}
