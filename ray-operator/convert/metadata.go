package convert

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Keys of KubeRay and of what goes with it, in labels or annotations.
const (
	keyCluster     = "ray.io/cluster"
	keyStore       = "ray.io/ft-enabled"
	keyNamespace   = "ray.io/external-storage-namespace"
	keyCommand     = "ray.io/overwrite-container-cmd"
	keyTimeout     = "ray.io/initializing-timeout"
	keyGang        = "ray.io/gang-scheduling-enabled"
	keyPriority    = "ray.io/priority-class-name"
	keyIngress     = "kubernetes.io/ingress.class"
	keyQueue       = "kueue.x-k8s.io/queue-name"
	prefixKueue    = "kueue.x-k8s.io/"
	prefixRay      = "ray.io/"
	prefixYuniKorn = "yunikorn.apache.org/"
)

// ofMachines are annotations that programs wrote about the former object.
var ofMachines = []string{corev1.LastAppliedConfigAnnotation}

// queues are the keys that name a queue, with the scheduler whose queue it is.
var queues = map[string]v1beta1.SchedulerKind{
	"volcano.sh/queue-name": v1beta1.SchedulerVolcano, prefixYuniKorn + "queue": v1beta1.SchedulerYuniKorn, "kai.scheduler/queue": v1beta1.SchedulerKAI,
}

// marks are what labels and annotations say that belongs into a spec.
type marks map[string]string

// takeMetadata keeps name, labels and annotations, and sets aside those of KubeRay.
func (c *conversion) takeMetadata() {
	c.marks = marks{}
	c.meta.Name, c.meta.Namespace = c.from.GetName(), c.from.GetNamespace()
	c.meta.GenerateName = c.from.GetGenerateName()
	c.meta.Labels = c.takeKeys("metadata.labels", c.from.GetLabels())
	c.meta.Annotations = c.takeKeys("metadata.annotations", c.from.GetAnnotations())
	if c.marks[keyGang] == "true" && c.scheduler() == nil {
		c.change("metadata.labels["+keyGang+"]", "scheduler", "no label names the scheduler; set scheduler.name, or pods "+
			"are placed one by one")
	}
}

func (c *conversion) takeKeys(path string, keys map[string]string) map[string]string {
	kept := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		rule, has := keyRule(key)
		switch {
		case slices.Contains(ofMachines, key):
		case has && rule.To == "metadata.labels", !has:
			kept[key] = keys[key]
		default:
			c.marks[key] = keys[key]
			c.takeMark(path+"["+key+"]", key, rule)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}

// takeMark says what becomes of a key that is not kept.
func (c *conversion) takeMark(path, key string, rule Rule) {
	off := c.marks[key] != "true" && slices.Contains([]string{keyStore, keyCommand, keyGang,
		"ray.io/enable-serve-service"}, key)
	if rule.Verdict != Kept && !off {
		c.note(Row{Path: path, To: rule.To, Verdict: rule.Verdict, Differs: rule.Differs, Text: rule.Text})
	}
}

// keyRule returns the rule about a key of labels or annotations.
func keyRule(key string) (Rule, bool) {
	for _, rule := range keyRules {
		if strings.HasSuffix(rule.Path, "["+key+"]") {
			return rule, true
		}
	}
	return keyRules[len(keyRules)-1], strings.HasPrefix(key, prefixRay)
}

// scheduler is the one that the queue's label names, nil where there is none.
func (c *conversion) scheduler() *v1beta1.Scheduler {
	for _, key := range slices.Sorted(maps.Keys(queues)) {
		if queue, has := c.marks[key]; has {
			return &v1beta1.Scheduler{Name: queues[key], Queue: queue}
		}
	}
	isYuniKorn := slices.ContainsFunc(slices.Collect(maps.Keys(c.marks)),
		func(key string) bool { return strings.HasPrefix(key, prefixYuniKorn) })
	if isYuniKorn && c.marks[keyGang] == "true" {
		return &v1beta1.Scheduler{Name: v1beta1.SchedulerYuniKorn}
	}
	return nil
}

// suspended is what the user says about the suspension of an object. Of what has a queue, Kueue says it there.
func (c *conversion) suspended(path string, suspend bool) *bool {
	if suspend && c.from.GetLabels()[keyQueue] != "" {
		c.drop(path, "Kueue sets it there, and never here; set it again if it was you")
		return nil
	}
	return ifTrue(suspend)
}

// ifTrue returns a pointer to true, and nil for false, which is the default of each field that it is for.
func ifTrue(is bool) *bool {
	if !is {
		return nil
	}
	return &is
}

// takeKueue moves the labels of Kueue from a service to the template of its clusters.
func (c *conversion) takeKueue() map[string]string {
	moved := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(c.meta.Labels)) {
		if strings.HasPrefix(key, prefixKueue) {
			moved[key] = c.meta.Labels[key]
			c.adjust("metadata.labels["+key+"]", "clusterTemplate.metadata.labels",
				"each cluster of the service is queued by itself")
		}
	}
	maps.DeleteFunc(c.meta.Labels, func(key, _ string) bool { return strings.HasPrefix(key, prefixKueue) })
	if len(moved) == 0 {
		return nil
	}
	return moved
}
