package validate

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

// Bounds that the CRD's schema states, so that the API server and this package agree on
// them; a test sends both sides of each to a real API server.
const (
	maxReplicas = 10000
	maxHosts    = 1024
	maxText     = 253
	maxImage    = 1024
)

// text reports a text that is longer than its field allows.
func text[T ~string](bad report, path *field.Path, value T, most int) {
	if len([]rune(string(value))) > most {
		bad(path, fmt.Sprintf("%.20s…", value))
	}
}

func longTexts(c *v1alpha1.ComputeCluster, bad report) {
	spec := field.NewPath("spec")
	text(bad, spec.Child("rayVersion"), c.Spec.RayVersion, 32)
	text(bad, spec.Child("image"), c.Spec.Image, maxImage)
	text(bad, spec.Child("managedBy"), c.Spec.ManagedBy, 63)
	if d := c.Spec.PodDefaults; d != nil {
		text(bad, spec.Child("podDefaults", "serviceAccountName"), d.ServiceAccountName, maxText)
		text(bad, spec.Child("podDefaults", "priorityClassName"), d.PriorityClassName, maxText)
	}
	if a := c.Spec.Authentication; a != nil {
		text(bad, spec.Child("authentication", "secretName"), a.SecretName, maxText)
	}
	if s := c.Spec.Head.Service; s != nil {
		for i := range s.Ports {
			text(bad, spec.Child("head", "service", "ports").Index(i).Child("name"), s.Ports[i].Name, 15)
		}
	}
	if g := c.Spec.Head.Ingress; g != nil {
		at := spec.Child("head", "ingress")
		text(bad, at.Child("className"), g.ClassName, maxText)
		text(bad, at.Child("host"), g.Host, maxText)
		text(bad, at.Child("path"), g.Path, 256)
		text(bad, at.Child("tlsSecretName"), g.TLSSecretName, maxText)
	}
	for i := range c.Spec.WorkerGroups {
		at := spec.Child("workerGroups").Index(i)
		text(bad, at.Child("name"), c.Spec.WorkerGroups[i].Name, 40)
		text(bad, at.Child("image"), c.Spec.WorkerGroups[i].Image, maxImage)
	}
}

// count reports a list or map that has more entries than its field allows.
func count(bad report, path *field.Path, have, most int) {
	if have > most {
		bad(path, have)
	}
}

func longLists(c *v1alpha1.ComputeCluster, bad report) {
	spec := field.NewPath("spec")
	count(bad, spec.Child("workerGroups"), len(c.Spec.WorkerGroups), 64)
	if d, at := c.Spec.PodDefaults, spec.Child("podDefaults"); d != nil {
		count(bad, at.Child("imagePullSecrets"), len(d.ImagePullSecrets), 16)
		count(bad, at.Child("labels"), len(d.Labels), 64)
		count(bad, at.Child("annotations"), len(d.Annotations), 64)
		count(bad, at.Child("env"), len(d.Env), 256)
		count(bad, at.Child("envFrom"), len(d.EnvFrom), 16)
		count(bad, at.Child("nodeSelector"), len(d.NodeSelector), 64)
		count(bad, at.Child("tolerations"), len(d.Tolerations), 64)
	}
	if s, at := c.Spec.Head.Service, spec.Child("head", "service"); s != nil {
		count(bad, at.Child("labels"), len(s.Labels), 64)
		count(bad, at.Child("annotations"), len(s.Annotations), 64)
		count(bad, at.Child("ports"), len(s.Ports), 32)
	}
	if n, at := c.Spec.Network, spec.Child("network"); n != nil {
		count(bad, at.Child("allowFrom"), len(n.AllowFrom), 32)
		count(bad, at.Child("allowTo"), len(n.AllowTo), 32)
		for i := range n.AllowFrom {
			count(bad, at.Child("allowFrom").Index(i).Child("from"), len(n.AllowFrom[i].From), 32)
			count(bad, at.Child("allowFrom").Index(i).Child("ports"), len(n.AllowFrom[i].Ports), 6)
		}
		for i := range n.AllowTo {
			count(bad, at.Child("allowTo").Index(i).Child("to"), len(n.AllowTo[i].To), 32)
			count(bad, at.Child("allowTo").Index(i).Child("ports"), len(n.AllowTo[i].Ports), 32)
		}
	}
}

func longNodeLists(n *node, bad report) {
	count(bad, n.path.Child("size"), len(n.spec.Size), 16)
	count(bad, n.path.Child("rayResources"), len(n.spec.RayResources), 64)
	count(bad, n.path.Child("rayStartParams"), len(n.spec.RayStartParams), 64)
	count(bad, n.path.Child("labels"), len(n.spec.Labels), 64)
	if n.group != nil {
		count(bad, n.path.Child("volumeClaimTemplates"), len(n.group.VolumeClaimTemplates), 8)
	}
}

// word reports a value that is none of the known ones; an empty one stands for the default.
func word[T ~string](bad report, path *field.Path, value T, known ...T) {
	if value != "" && !slices.Contains(known, value) {
		bad(path, string(value))
	}
}

func unknownWords(c *v1alpha1.ComputeCluster, bad report) {
	spec := field.NewPath("spec")
	word(bad, spec.Child("imagePullPolicy"), c.Spec.ImagePullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
	if s := c.Spec.Head.Service; s != nil {
		word(bad, spec.Child("head", "service", "type"), s.Type,
			corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer)
	}
	if a := c.Spec.Authentication; a != nil {
		word(bad, spec.Child("authentication", "mode"), a.Mode, v1alpha1.AuthenticationToken, v1alpha1.AuthenticationDisabled)
	}
	if u := c.Spec.UpgradeStrategy; u != nil {
		word(bad, spec.Child("upgradeStrategy", "type"), u.Type,
			v1alpha1.UpgradeOnDelete, v1alpha1.UpgradeRollingWorkers, v1alpha1.UpgradeRecreate)
	}
	if p := c.Spec.IdlePolicy; p != nil {
		word(bad, spec.Child("idlePolicy", "action"), p.Action, v1alpha1.IdleSuspend, v1alpha1.IdleDelete, v1alpha1.IdleNone)
	}
	if n := c.Spec.Network; n != nil {
		word(bad, spec.Child("network", "isolation"), n.Isolation, v1alpha1.IsolationEnabled, v1alpha1.IsolationDisabled)
		for i := range n.AllowFrom {
			ports(n.AllowFrom[i].Ports, bad, spec.Child("network", "allowFrom").Index(i).Child("ports"))
		}
	}
}

var knownPorts = []v1alpha1.Port{
	v1alpha1.PortDashboard, v1alpha1.PortClient, v1alpha1.PortServe, v1alpha1.PortServeGRPC, v1alpha1.PortGCS, v1alpha1.PortMetrics,
}

func ports(named []v1alpha1.Port, bad report, path *field.Path) {
	each(bad, path, named, func(p *v1alpha1.Port) bool { return !slices.Contains(knownPorts, *p) })
}

// within reports a number outside of its bounds.
func within(bad report, path *field.Path, value, least, most int32) {
	if value < least || value > most {
		bad(path, value)
	}
}

func numbersOutOfBounds(c *v1alpha1.ComputeCluster, bad report) {
	spec := field.NewPath("spec")
	if s := c.Spec.Head.Service; s != nil {
		for i := range s.Ports {
			at := spec.Child("head", "service", "ports").Index(i)
			within(bad, at.Child("port"), s.Ports[i].Port, 1, 65535)
			within(bad, at.Child("targetPort"), s.Ports[i].TargetPort, 0, 65535) // 0 is not written
		}
	}
	if u := c.Spec.UpgradeStrategy; u != nil && u.Rolling != nil {
		at := spec.Child("upgradeStrategy", "rolling")
		within(bad, at.Child("maxUnavailable"), u.Rolling.MaxUnavailable, 0, maxReplicas)
		within(bad, at.Child("maxSurge"), u.Rolling.MaxSurge, 0, maxReplicas)
	}
	if p := c.Spec.IdlePolicy; p != nil {
		within(bad, spec.Child("idlePolicy", "afterSeconds"), p.AfterSeconds, 10, 31536000)
	}
	if n := c.Spec.Network; n != nil {
		for i := range n.AllowFrom {
			if len(n.AllowFrom[i].Ports) == 0 {
				bad(spec.Child("network", "allowFrom").Index(i).Child("ports"), 0)
			}
		}
	}
}

func groupOutOfBounds(n *node, bad report) {
	g := n.group
	for name, value := range map[string]*int32{"replicas": g.Replicas, "minReplicas": g.MinReplicas, "maxReplicas": g.MaxReplicas} {
		if value != nil {
			within(bad, n.path.Child(name), *value, 0, maxReplicas)
		}
	}
	within(bad, n.path.Child("hostsPerReplica"), g.HostsPerReplica, 0, maxHosts) // 0 is not written
	if g.DrainSeconds != nil {
		within(bad, n.path.Child("drainSeconds"), *g.DrainSeconds, 0, 86400)
	}
}
