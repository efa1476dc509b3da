package rights

import (
	"maps"
	"slices"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Site is what an administrator has decided in the values of the chart for all who write the kinds.
type Site struct {
	// Annotations and Labels are keys of pods' metadata, and Tolerations keys of taints, that need no right. An entry
	// with a slash at its end stands for all keys that begin with it.
	Annotations, Labels, Tolerations []string
	// Account is the service account of pods whose spec names none.
	Account string
}

// ChartSite returns the site of the chart's default values.
func ChartSite() Site {
	return Site{
		Annotations: []string{"prometheus.io/", "cluster-autoscaler.kubernetes.io/safe-to-evict", "kubectl.kubernetes.io/"},
		Labels:      []string{"app.kubernetes.io/component", "app.kubernetes.io/part-of", "app.kubernetes.io/version"},
		Tolerations: []string{
			"nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/", "google.com/tpu", "aws.amazon.com/neuron", "habana.ai/gaudi",
			"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable",
		},
		Account: defaultAccount,
	}
}

// Variables of the policies' expressions that hold a Site. The chart gives them their values.
const (
	SiteAnnotations = "podAnnotations"
	SiteLabels      = "podLabels"
	SiteTolerations = "tolerations"
	SiteAccount     = "account"
)

// isListed reports whether a list of the chart has a key.
func isListed(list []string, key string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		return entry == key || strings.HasSuffix(entry, "/") && strings.HasPrefix(key, entry)
	})
}

// listedKey is the counterpart of isListed, for a variable of the policies.
func listedKey(list, key string) string {
	return strings.NewReplacer("LIST", "variables."+list, "KEY", key).Replace("(KEY in LIST || LIST.exists(l, l.endsWith('/') && KEY.startsWith(l)))")
}

// isObeyed reports whether an annotation may be an instruction to some program: it has a prefix that the chart does not list.
func (s *Site) isObeyed(key string) bool {
	return strings.Contains(key, "/") && !isListed(s.Annotations, key)
}

// obeyedKey is the counterpart of isObeyed, for a variable k.
var obeyedKey = "k.contains('/') && !" + listedKey(SiteAnnotations, "k")

// appArmor begins the keys of annotations that the API server takes for the AppArmor profile of a container.
const appArmor = "container.apparmor.security.beta.kubernetes.io/"

func hasAppArmor(annotations map[string]string) bool {
	for key := range annotations {
		if strings.HasPrefix(key, appArmor) {
			return true
		}
	}
	return false
}

// keys are those of metadata at a path.
type keys struct {
	path                string
	annotations, labels map[string]string
}

// ofPods returns the metadata that podDefaults and all templates give to pods.
func (o *object) ofPods() []keys {
	all := []keys{{o.path + ".podDefaults", o.defaults().Annotations, o.defaults().Labels}}
	for _, n := range o.nodes() {
		all = append(all, keys{n.path + ".template.metadata", n.meta.Annotations, n.meta.Labels})
	}
	return all
}

// keysOfPods is the counterpart of ofPods: a list whose items m have m.path, m.annotations and m.labels.
const keysOfPods = "([{'path': dyn(variables.path + '.podDefaults'), 'annotations': dyn(variables.cluster.?podDefaults.?annotations.orValue({})), " +
	"'labels': dyn(variables.cluster.?podDefaults.?labels.orValue({}))}] + " +
	"variables.nodes.map(n, {'path': dyn(n.path + '.template.metadata'), 'annotations': dyn(n.spec.?template.?metadata.?annotations.orValue({})), " +
	"'labels': dyn(n.spec.?template.?metadata.?labels.orValue({}))}))"

// keyEntry is an expression for the entry of one of the keys of a map m.FIELD: all of them would cost too much.
func keyEntry(field, holds string) string {
	return "[m." + field + ".filter(k, " + holds + ")].map(all, size(all) == 0 ? '' : m.path + '." + field + "[' + all[0] + '] -')"
}

var metadataNeed = Need{
	ID: "pod-metadata", Family: Pods, Verb: "create", Resource: "pods", OrPods: true,
	Fields: "a label of pods that the chart's `tenancy.podLabels` lacks, and an annotation with a prefix that `tenancy.podAnnotations` lacks",
	Refused: "webhooks, Services and NetworkPolicies go by labels and annotations of pods: those that the chart's tenancy.podLabels and " +
		"tenancy.podAnnotations lack are for those who may create pods",
	Entries: keysOfPods + ".map(m, (" + keyEntry("annotations", obeyedKey) + " + " + keyEntry("labels", "!"+listedKey(SiteLabels, "k")) + ").join(','))",
	find: func(o *object, found func(field, name string)) {
		for _, m := range o.ofPods() {
			for _, key := range slices.Sorted(maps.Keys(m.annotations)) {
				if o.site.isObeyed(key) {
					found(m.path+".annotations["+key+"]", "")
				}
			}
			for _, key := range slices.Sorted(maps.Keys(m.labels)) {
				if !isListed(o.site.Labels, key) {
					found(m.path+".labels["+key+"]", "")
				}
			}
		}
	},
}

var tolerationNeed = Need{
	ID: "toleration", Family: Pods, Verb: "create", Resource: "pods", OrPods: true,
	Fields:  "a toleration of a key that the chart's `tenancy.tolerations` lacks, of control planes, or of everything",
	Refused: "a pod on nodes that a taint keeps for others, by a key that the chart's tenancy.tolerations lacks, is for those who may create pods",
	Entries: when(tolerated("variables.cluster.?podDefaults.?tolerations.orValue([])"), "variables.path + '.podDefaults.tolerations'") +
		" + " + perNode(when(tolerated("n.pod.?tolerations.orValue([])"), "n.path + '.template.spec.tolerations'")),
	find: func(o *object, found func(field, name string)) {
		if slices.ContainsFunc(o.defaults().Tolerations, o.site.isReserved) {
			found(o.path+".podDefaults.tolerations", "")
		}
		for _, n := range o.nodes() {
			if slices.ContainsFunc(n.pod.Tolerations, o.site.isReserved) {
				found(n.template("tolerations"), "")
			}
		}
	},
}

// queueNeed is for the queue of a scheduler whose queues belong to no namespace.
func queueNeed(scheduler v1beta1.SchedulerKind, id, group string) Need {
	return Need{
		ID: id, Family: Doors, Verb: "use", Group: group, Resource: "queues", IsClusterWide: true, IsNamed: true, OrPods: true, Most: 1,
		Fields: "`scheduler.queue` of " + string(scheduler),
		Entries: "[variables.path + '.scheduler.queue ' + (variables.cluster.?scheduler.?name.orValue('') == '" + string(scheduler) +
			"' ? variables.cluster.?scheduler.?queue.orValue('') : '')]",
		find: func(o *object, found func(field, name string)) {
			if s := o.cluster.Scheduler; s != nil && s.Name == scheduler {
				found(o.path+".scheduler.queue", s.Queue)
			}
		},
	}
}

// PriorityLabel names a WorkloadPriorityClass, by which Kueue ranks what is queued in all namespaces.
const PriorityLabel = "kueue.x-k8s.io/priority-class"

// placeNeeds are about an object's place among those of other teams.
var placeNeeds = []Need{
	{
		ID: "workload-priority", Family: Doors, Verb: "use", Group: "kueue.x-k8s.io", Resource: "workloadpriorityclasses",
		IsClusterWide: true, IsNamed: true, OrPods: true, Most: 3,
		Fields: "the label `" + PriorityLabel + "` of the object, of a schedule's jobs or of a `clusterTemplate`",
		Entries: "[" + strings.Join([]string{
			ranked("'metadata", "object.metadata"), ranked("'spec.jobTemplate.metadata", "object.spec.?jobTemplate.?metadata"),
			ranked("variables.at + '.clusterTemplate.metadata", "variables.spec.?clusterTemplate.?metadata"),
		}, ", ") + "]",
		find: func(o *object, found func(field, name string)) {
			for _, at := range o.ranks {
				found(at.path+".labels["+PriorityLabel+"]", at.labels[PriorityLabel])
			}
		},
	},
	queueNeed(v1beta1.SchedulerVolcano, "queue-volcano", "scheduling.volcano.sh"),
	queueNeed(v1beta1.SchedulerKAI, "queue-kai", "scheduling.run.ai"),
	queueNeed(v1beta1.SchedulerYuniKorn, "queue-yunikorn", "yunikorn.apache.org"),
}

// ranked is an expression for the entry of a priority's label.
func ranked(path, meta string) string {
	return path + ".labels[" + PriorityLabel + "] ' + " + meta + ".?labels[?'" + PriorityLabel + "'].orValue('')"
}
