package validate

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// flag makes a rule's function of a question about a template and the field below its
// spec that is wrong when the answer is yes.
func flag(child string, wrong func(n *node) bool) func(*node, report) {
	return func(n *node, bad report) {
		if wrong(n) {
			bad.at(n.podPath().Child(child), nil)
		}
	}
}

func is(value *bool) bool { return value != nil && *value }

// templateRules are about a pod template as a whole. In their expressions n.meta and n.pod
// are its metadata and spec, empty where it has none, and n.hosts the group's hostsPerReplica.
var templateRules = []Rule{
	{
		ID: "template-metadata", Field: "NODE.template.metadata", By: Policy,
		Refused: "metadata of a template must contain only labels and annotations", Remedy: "remove name, generateName, namespace, finalizers and ownerReferences",
		Holds: "!['name', 'generateName', 'namespace', 'finalizers', 'ownerReferences'].exists(f, f in n.meta)",
		inner: func(n *node, bad report) {
			m := &n.template.ObjectMeta
			if m.Name != "" || m.GenerateName != "" || m.Namespace != "" || len(m.Finalizers)+len(m.OwnerReferences) > 0 {
				bad.at(n.metaPath(), nil)
			}
		},
	},
	{
		ID: "template-own-label", Field: "NODE.template.metadata.labels", By: Policy,
		Refused: "a key must not have the prefix heliostat.dev, nor be app.kubernetes.io/name, instance or managed-by, which the operator sets", Remedy: chooseOther,
		Holds: fmt.Sprintf(noOwnLabel, "n.meta.?labels.orValue({})"),
		inner: func(n *node, bad report) { keys(bad, n.metaPath(), "labels", n.template.Labels, isOwnLabel) },
	},
	{
		ID: "template-own-annotation", Field: "NODE.template.metadata.annotations", By: Policy,
		Refused: "a key must not have the prefix heliostat.dev, which is reserved for the operator", Remedy: chooseOther,
		Holds: "n.meta.?annotations.orValue({}).all(k, " + isNotOwn + " || (k == '" + v1beta1.AnnotationRestart + "' && n.path == 'spec.head' && " +
			"object.metadata.?ownerReferences.orValue([]).exists(r, r.apiVersion.startsWith('" + prefixOurs + "') && r.?controller.orValue(false))))",
		inner: func(n *node, bad report) {
			restarts := n.group == nil && naming.Controller(n.cluster) != nil // the operator notes it in clusters that it makes
			keys(bad, n.metaPath(), "annotations", n.template.Annotations, func(key string) bool {
				return isOwnKey(key) && !(restarts && key == v1beta1.AnnotationRestart)
			})
		},
	},
	{
		ID: "template-label-grammar", Field: "NODE.template", By: Policy,
		Refused: labelGrammar, Remedy: "correct the key or the value",
		Holds: fmt.Sprintf(goodLabels, "n.meta.?labels.orValue({})") + " && " + fmt.Sprintf(goodLabels, "n.pod.?nodeSelector.orValue({})"),
		inner: func(n *node, bad report) {
			keys(bad, n.metaPath(), "labels", n.template.Labels, badLabels(n.template.Labels))
			keys(bad, n.podPath(), "nodeSelector", n.pod.NodeSelector, badLabels(n.pod.NodeSelector))
		},
	},
	{
		ID: "template-annotation-grammar", Field: "NODE.template.metadata.annotations", By: Policy,
		Refused: "a key of an annotation must have Kubernetes' syntax", Remedy: "use letters, digits, '-', '_' and '.', at most 63, with an optional DNS prefix and '/'",
		Holds: fmt.Sprintf(goodAnnotations, "n.meta.?annotations.orValue({})"),
		inner: func(n *node, bad report) {
			keys(bad, n.metaPath(), "annotations", n.template.Annotations, badAnnotation)
		},
	},
	{
		ID: "template-no-ray", Field: "NODE.template.spec.containers", By: Policy,
		Refused: "one container must be named ray, which runs Ray", Remedy: "name one of them ray, or list no containers",
		Holds: "size(n.containers) == 0 || n.containers.exists(c, c.name == 'ray')",
		inner: flag("containers", func(n *node) bool { return len(n.pod.Containers) > 0 && n.ray == nil }),
	},
	{
		ID: "template-init-name", Field: "NODE.template.spec.initContainers", By: Policy,
		Refused: "an init container must not have the name of a container, or the name ray", Remedy: "rename it",
		Holds: "n.inits.all(i, i.name != 'ray' && !n.containers.exists(c, c.name == i.name))",
		inner: func(n *node, bad report) {
			taken := map[string]bool{v1beta1.ContainerRay: true}
			for i := range n.pod.Containers {
				taken[n.pod.Containers[i].Name] = true
			}
			each(bad, n.podPath(), "initContainers", n.pod.InitContainers, func(i *corev1.Container) bool { return taken[i.Name] })
		},
	},
	{
		ID: "template-volume", Field: "NODE.template.spec.volumes", By: Policy,
		Refused: "the operator adds the volumes " + strings.Join(ownVolumes, ", "), Remedy: "choose another name",
		Holds: "!n.volumes.exists(v, v in " + list(ownVolumes) + ")",
		inner: func(n *node, bad report) {
			each(bad, n.podPath(), "volumes", n.pod.Volumes, func(v *corev1.Volume) bool { return slices.Contains(ownVolumes, v.Name) })
		},
	},
	{
		ID: "template-processes", Field: "NODE.template.spec.shareProcessNamespace", By: Policy,
		Refused: "shareProcessNamespace must not be true, because job code could read the memory and credentials of other containers", Remedy: "leave it out",
		Holds: "!n.pod.?shareProcessNamespace.orValue(false)",
		inner: flag("shareProcessNamespace", func(n *node) bool { return is(n.pod.ShareProcessNamespace) }),
	},
	{
		ID: "template-host-processes", Field: "NODE.template.spec.hostPID", By: Policy,
		Refused: "hostPID must not be true, because job code could reach every process of the node", Remedy: "leave it out",
		Holds: "!n.pod.?hostPID.orValue(false)",
		inner: flag("hostPID", func(n *node) bool { return n.pod.HostPID }),
	},
	{
		ID: "template-host-network", Field: "NODE.template.spec.hostNetwork", By: Policy,
		Refused: "hostNetwork must not be true with network.isolation, because NetworkPolicies do not apply to the host's network", Remedy: "set network.isolation to Disabled, or leave hostNetwork out",
		Holds: "!n.pod.?hostNetwork.orValue(false) || variables.cluster.?network.?isolation.orValue('Enabled') == 'Disabled'",
		inner: flag("hostNetwork", func(n *node) bool {
			open := n.cluster.Spec.Network != nil && n.cluster.Spec.Network.Isolation == v1beta1.Disabled
			return n.pod.HostNetwork && !open
		}),
	},
	{
		ID: "template-host-dns", Field: "NODE.template.spec.dnsPolicy", By: Policy,
		Refused: "dnsPolicy must let a pod on the host's network resolve the name of the head's Service", Remedy: "set dnsPolicy to ClusterFirstWithHostNet",
		Holds: "!n.pod.?hostNetwork.orValue(false) || n.pod.?dnsPolicy.orValue('') in ['ClusterFirstWithHostNet', 'None']",
		inner: flag("dnsPolicy", func(n *node) bool {
			return n.pod.HostNetwork && n.pod.DNSPolicy != corev1.DNSClusterFirstWithHostNet && n.pod.DNSPolicy != corev1.DNSNone
		}),
	},
	{
		ID: "template-restart", Field: "NODE.template.spec.restartPolicy", By: Policy,
		Refused: "restartPolicy must be Always for pods and containers of Ray", Remedy: "leave restartPolicy out, in the pod and in the ray container",
		Holds: "n.pod.?restartPolicy.orValue('') in ['', 'Always'] && n.ray.?restartPolicy.orValue('Always') == 'Always'",
		inner: flag("restartPolicy", func(n *node) bool {
			own := n.ray != nil && n.ray.RestartPolicy != nil && *n.ray.RestartPolicy != corev1.ContainerRestartPolicyAlways
			return own || n.pod.RestartPolicy != "" && n.pod.RestartPolicy != corev1.RestartPolicyAlways
		}),
	},
	{
		ID: "template-deadline", Field: "NODE.template.spec.activeDeadlineSeconds", By: Policy,
		Refused: "activeDeadlineSeconds must not be set, because it would kill the pod during its work", Remedy: "use idlePolicy, or delete the cluster when it is no longer needed",
		Holds: "!('activeDeadlineSeconds' in n.pod)",
		inner: flag("activeDeadlineSeconds", func(n *node) bool { return n.pod.ActiveDeadlineSeconds != nil }),
	},
	{
		ID: "template-grace", Field: "NODE.template.spec.terminationGracePeriodSeconds", By: Policy,
		Refused: "a grace period must not be negative", Remedy: "give 0 or more, or leave it out",
		Holds: "n.pod.?terminationGracePeriodSeconds.orValue(0) >= 0",
		inner: flag("terminationGracePeriodSeconds", func(n *node) bool {
			return n.pod.TerminationGracePeriodSeconds != nil && *n.pod.TerminationGracePeriodSeconds < 0
		}),
	},
	{
		ID: "template-node-name", Field: "NODE.template.spec.nodeName", By: Policy,
		Refused: "nodeName must not be set, because it bypasses the scheduler, and pods that do not fit would keep failing", Remedy: "use nodeSelector with kubernetes.io/hostname",
		Holds: "n.pod.?nodeName.orValue('') == ''",
		inner: flag("nodeName", func(n *node) bool { return n.pod.NodeName != "" }),
	},
	{
		ID: "template-host-name", Field: "NODE.template.spec.hostname", By: Policy,
		Refused: "hostname and subdomain must not be set with hostsPerReplica above 1, because the operator sets them", Remedy: "leave them out",
		Holds: "n.hosts == 1 || (n.pod.?hostname.orValue('') == '' && n.pod.?subdomain.orValue('') == '')",
		inner: flag("hostname", func(n *node) bool {
			return n.group != nil && n.group.HostsPerReplica > 1 && n.pod.Hostname+n.pod.Subdomain != ""
		}),
	},
	{
		ID: "template-ephemeral", Field: "NODE.template.spec.ephemeralContainers", By: Policy,
		Refused: "a template must not have ephemeral containers", Remedy: "add them to a running pod with kubectl debug",
		Holds: "size(n.pod.?ephemeralContainers.orValue([])) == 0",
		inner: flag("ephemeralContainers", func(n *node) bool { return len(n.pod.EphemeralContainers) > 0 }),
	},
	{
		ID: "template-pod-resources", Field: "NODE.template.spec.resources", By: Policy,
		Refused: "resources of the pod must not be set, because Ray reads those of its container", Remedy: "use size, or the resources of the ray container",
		Holds: "!('resources' in n.pod)",
		inner: flag("resources", func(n *node) bool { return n.pod.Resources != nil }),
	},
}
