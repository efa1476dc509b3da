package validate

import (
	"fmt"
	"slices"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Bounds that the CRD's schema states, so that the API server and this package agree on
// them; a test sends both sides of each to a real API server.
const (
	maxReplicas = 10000
	maxHosts    = 1024
	maxNodes    = 100000
	year        = 31536000 // seconds
	maxText     = 253
	maxImage    = 1024
	maxNumber   = 40 // of what is a number or a text, as quantities and ports are

	mostVariables       = 256
	mostScalerVariables = 64

	// Of the containers of a template: every pod holds them, and the operator builds many pods at once.
	mostContainerVariables = 512
	mostVariableText       = 256 << 10
)

// text reports a text that is longer than its field allows.
func text(bad report, parent *field.Path, child, value string, most int) {
	if len(value) > most && utf8.RuneCountInString(value) > most {
		bad.at(below(parent, child), fmt.Sprintf("%.20s…", value))
	}
}

func longTexts(c *v1beta1.ComputeCluster, bad report) {
	spec := field.NewPath("spec")
	text(bad, spec, "rayVersion", c.Spec.RayVersion, 32)
	text(bad, spec, "image", c.Spec.Image, maxImage)
	text(bad, spec, "managedBy", c.Spec.ManagedBy, 63)
	if d := c.Spec.PodDefaults; d != nil {
		text(bad, spec, "podDefaults.serviceAccountName", d.ServiceAccountName, maxText)
		text(bad, spec, "podDefaults.priorityClassName", d.PriorityClassName, maxText)
	}
	if a := c.Spec.Authentication; a != nil {
		text(bad, spec, "authentication.secretName", a.SecretName, maxText)
	}
	if a := c.Spec.Autoscaling; a != nil {
		text(bad, spec, "autoscaling.image", a.Image, maxImage)
	}
	if s := c.Spec.Scheduler; s != nil {
		text(bad, spec, "scheduler.queue", s.Queue, 63)
		text(bad, spec, "scheduler.schedulerName", s.SchedulerName, 63)
	}
	storeTexts(c, bad)
	if s := c.Spec.Head.Service; s != nil {
		for i := range s.Ports {
			text(bad, spec.Child("head", "service", "ports").Index(i), "name", s.Ports[i].Name, 63)
		}
	}
	if r, has := ofHead(c); has {
		longReachTexts(&r, bad)
	}
	if g := c.Spec.Head.Ingress; g != nil {
		at := spec.Child("head", "ingress")
		for i, host := range g.AdditionalHosts {
			text(bad, at.Child("additionalHosts").Index(i), "", host, maxText)
		}
		text(bad, at, "className", g.ClassName, maxText)
		text(bad, at, "host", g.Host, maxText)
		text(bad, at, "path", g.Path, 256)
		text(bad, at, "tlsSecretName", g.TLSSecretName, maxText)
	}
	if n := c.Spec.Network; n != nil {
		for i := range n.AllowTo {
			for j, p := range n.AllowTo[i].Ports {
				if p.Port != nil {
					text(bad, spec.Child("network", "allowTo").Index(i).Child("ports").Index(j), "port", p.Port.StrVal, maxNumber)
				}
			}
		}
	}
	for i := range c.Spec.WorkerGroups {
		at := spec.Child("workerGroups").Index(i)
		text(bad, at, "name", c.Spec.WorkerGroups[i].Name, 40)
		text(bad, at, "image", c.Spec.WorkerGroups[i].Image, maxImage)
	}
}

// count reports a list or map that has more entries than its field allows.
func count(bad report, parent *field.Path, child string, have, most int) {
	if have > most {
		bad.at(below(parent, child), have)
	}
}

func longLists(c *v1beta1.ComputeCluster, bad report) {
	spec := field.NewPath("spec")
	count(bad, spec, "workerGroups", len(c.Spec.WorkerGroups), 64)
	if d, at := c.Spec.PodDefaults, spec.Child("podDefaults"); d != nil {
		count(bad, at, "imagePullSecrets", len(d.ImagePullSecrets), 16)
		count(bad, at, "labels", len(d.Labels), 64)
		count(bad, at, "annotations", len(d.Annotations), 64)
		count(bad, at, "env", len(d.Env), mostVariables)
		count(bad, at, "envFrom", len(d.EnvFrom), 16)
		count(bad, at, "nodeSelector", len(d.NodeSelector), 64)
		count(bad, at, "tolerations", len(d.Tolerations), 64)
	}
	if s, at := c.Spec.Head.Service, spec.Child("head", "service"); s != nil {
		count(bad, at, "labels", len(s.Labels), 64)
		count(bad, at, "annotations", len(s.Annotations), 64)
		count(bad, at, "ports", len(s.Ports), 37)
	}
	if r, has := ofHead(c); has {
		longReachLists(&r, bad)
	}
	if g, at := c.Spec.Head.Ingress, spec.Child("head", "ingress"); g != nil {
		count(bad, at, "annotations", len(g.Annotations), 64)
		count(bad, at, "additionalHosts", len(g.AdditionalHosts), 16)
	}
	if a := c.Spec.Autoscaling; a != nil {
		count(bad, spec, "autoscaling.size", len(a.Size), len(sizedNames))
		count(bad, spec, "autoscaling.env", len(a.Env), mostScalerVariables)
	}
	storeLists(c, bad)
	if n, at := c.Spec.Network, spec.Child("network"); n != nil {
		count(bad, at, "encryptionSize", len(n.EncryptionSize), len(sizedNames))
		count(bad, at, "allowFrom", len(n.AllowFrom), 32)
		count(bad, at, "allowTo", len(n.AllowTo), 32)
		for i := range n.AllowFrom {
			count(bad, at.Child("allowFrom").Index(i), "from", len(n.AllowFrom[i].From), 32)
			count(bad, at.Child("allowFrom").Index(i), "ports", len(n.AllowFrom[i].Ports), 6)
		}
		for i := range n.AllowTo {
			count(bad, at.Child("allowTo").Index(i), "to", len(n.AllowTo[i].To), 32)
			count(bad, at.Child("allowTo").Index(i), "ports", len(n.AllowTo[i].Ports), 32)
		}
	}
}

func longNodeLists(n *node, bad report) {
	count(bad, n.path, "size", len(n.spec.Size), 16)
	count(bad, n.path, "rayResources", len(n.spec.RayResources), 64)
	count(bad, n.path, "rayStartParams", len(n.spec.RayStartParams), 64)
	count(bad, n.path, "labels", len(n.spec.Labels), 64)
	if n.group != nil {
		count(bad, n.path, "volumeClaimTemplates", len(n.group.VolumeClaimTemplates), 8)
	}
}

// word reports a value that is none of the known ones; an empty one stands for the default.
func word[T ~string](bad report, parent *field.Path, child string, value T, known ...T) {
	if value != "" && !slices.Contains(known, value) {
		bad.at(below(parent, child), string(value))
	}
}

func unknownWords(c *v1beta1.ComputeCluster, bad report) {
	spec := field.NewPath("spec")
	word(bad, spec, "imagePullPolicy", c.Spec.ImagePullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
	if s := c.Spec.Head.Service; s != nil {
		word(bad, spec, "head.service.type", s.Type,
			corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer)
	}
	if r, has := ofHead(c); has {
		unknownReachWords(&r, bad)
	}
	if g := c.Spec.Head.Ingress; g != nil {
		word(bad, spec, "head.ingress.pathType", g.PathType,
			networkingv1.PathTypePrefix, networkingv1.PathTypeExact, networkingv1.PathTypeImplementationSpecific)
	}
	if a := c.Spec.Authentication; a != nil {
		word(bad, spec, "authentication.mode", a.Mode, v1beta1.AuthenticationToken, v1beta1.AuthenticationDisabled)
	}
	if u := c.Spec.UpgradeStrategy; u != nil {
		word(bad, spec, "upgradeStrategy.type", u.Type,
			v1beta1.ClusterUpgradeNone, v1beta1.ClusterUpgradeRollingWorkers, v1beta1.ClusterUpgradeRecreate)
	}
	if p := c.Spec.IdlePolicy; p != nil {
		word(bad, spec, "idlePolicy.action", p.Action, v1beta1.IdleSuspend, v1beta1.IdleDelete, v1beta1.IdleNone)
	}
	if a := c.Spec.Autoscaling; a != nil {
		word(bad, spec, "autoscaling.pace", a.Pace, v1beta1.PaceDefault, v1beta1.PaceConservative, v1beta1.PaceAggressive)
	}
	if s := c.Spec.Scheduler; s != nil {
		word(bad, spec, "scheduler.name", s.Name,
			v1beta1.SchedulerVolcano, v1beta1.SchedulerYuniKorn, v1beta1.SchedulerKAI, v1beta1.SchedulerPlugins, v1beta1.SchedulerKubernetes)
	}
	storeWords(c, bad)
	if n := c.Spec.Network; n != nil {
		word(bad, spec, "network.isolation", n.Isolation, v1beta1.Enabled, v1beta1.Disabled)
		word(bad, spec, "network.cloudMetadata", n.CloudMetadata,
			v1beta1.Enabled, v1beta1.Disabled)
		word(bad, spec, "network.encryption", n.Encryption, v1beta1.Disabled, v1beta1.Enabled)
		for i := range n.AllowFrom {
			each(bad, spec.Child("network", "allowFrom").Index(i), "ports", n.AllowFrom[i].Ports, isUnknownPort)
		}
	}
}

var knownPorts = []v1beta1.Port{
	v1beta1.PortDashboard, v1beta1.PortClient, v1beta1.PortServe, v1beta1.PortServeGRPC, v1beta1.PortGCS, v1beta1.PortMetrics,
}

func isUnknownPort(p *v1beta1.Port) bool { return !slices.Contains(knownPorts, *p) }

// span is what a number may be.
type span struct{ least, most int32 }

// within reports a number outside of its bounds.
func within(bad report, parent *field.Path, child string, value int32, allowed span) {
	if value < allowed.least || value > allowed.most {
		bad.at(below(parent, child), value)
	}
}

// withinGiven reports a number outside of its bounds, if there is one.
func withinGiven(bad report, parent *field.Path, child string, value *int32, allowed span) {
	if value != nil {
		within(bad, parent, child, *value, allowed)
	}
}

// portsWithin reports numbers of a Service's port that are outside of their bounds. A 0 is not written.
func portsWithin(bad report, parent *field.Path, port, target, node int32) {
	within(bad, parent, "port", port, span{0, 65535})
	within(bad, parent, "targetPort", target, span{0, 65535})
	within(bad, parent, "nodePort", node, span{0, 65535})
}

func numbersOutOfBounds(c *v1beta1.ComputeCluster, bad report) {
	spec := field.NewPath("spec")
	withinGiven(bad, spec, "maxConcurrentJobs", c.Spec.MaxConcurrentJobs, span{1, maxReplicas})
	if s := c.Spec.Head.Service; s != nil {
		for i := range s.Ports {
			at := spec.Child("head", "service", "ports").Index(i)
			portsWithin(bad, at, s.Ports[i].Port, s.Ports[i].TargetPort, s.Ports[i].NodePort)
		}
	}
	if p := c.Spec.IdlePolicy; p != nil {
		within(bad, spec, "idlePolicy.afterSeconds", p.AfterSeconds, span{10, year})
	}
	if a := c.Spec.Autoscaling; a != nil {
		withinGiven(bad, spec, "autoscaling.idleTimeoutSeconds", a.IdleTimeoutSeconds, span{1, year})
		withinGiven(bad, spec, "autoscaling.maxNodes", a.MaxNodes, span{1, maxNodes})
	}
	if n := c.Spec.Network; n != nil {
		for i := range n.AllowFrom {
			if len(n.AllowFrom[i].Ports) == 0 {
				bad.at(spec.Child("network", "allowFrom").Index(i).Child("ports"), 0)
			}
		}
	}
}

func groupOutOfBounds(n *node, bad report) {
	g := n.group
	withinGiven(bad, n.path, "replicas", g.Replicas, span{0, maxReplicas})
	withinGiven(bad, n.path, "minReplicas", g.MinReplicas, span{0, maxReplicas})
	withinGiven(bad, n.path, "maxReplicas", g.MaxReplicas, span{0, maxReplicas})
	within(bad, n.path, "hostsPerReplica", g.HostsPerReplica, span{0, maxHosts}) // 0 is not written
	withinGiven(bad, n.path, "drainSeconds", g.DrainSeconds, span{0, 86400})
	withinGiven(bad, n.path, "idleTimeoutSeconds", g.IdleTimeoutSeconds, span{1, year})
	withinGiven(bad, n.path, "priority", g.Priority, span{-1000, 1000})
	withinGiven(bad, n.path, "capacityTimeoutSeconds", g.CapacityTimeoutSeconds, span{1, year})
}
