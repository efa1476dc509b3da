package sidecar

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
)

// Labels and resources by which Ray places work on TPUs. The first host of a slice has the resource.
const (
	labelPodType  = "ray.io/tpu-pod-type"
	labelWorkerID = "ray.io/tpu-worker-id"
	resourceTPU   = "TPU"
)

// ofSlice is what only the first host of a TPU slice has, and the label that numbers the hosts; nothing for others.
func ofSlice(resources map[string]float64, labels map[string]string) (first map[string]float64, numbered string) {
	podType := labels[labelPodType]
	if podType == "" || resources[resourceTPU] <= 0 {
		return nil, ""
	}
	return map[string]float64{"TPU-" + podType + "-head": 1}, labelWorkerID
}

// learnable are the labels that Ray makes of a machine and that all machines of a group have alike. Zones are not: the
// next machine may come in another one.
var learnable = []string{"ray.io/accelerator-type", "ray.io/market-type", labelPodType, "ray.io/tpu-topology"}

// learnableAmounts are what Ray counts of a machine where it is not told.
var learnableAmounts = []string{"CPU", "GPU", "memory", resourceTPU, "neuron_cores", "HPU", "NPU", "RBLN", "FURIOSA"}

// typed begins the name of the resource that Ray makes of the type of a machine's accelerator.
const typed = "accelerator_type:"

// machine is what the nodes of a group have beside what was ordered: what their machines told Ray. It is kept when
// the last of them has gone.
type machine struct {
	ordered protocol.Group
	// since is when this was ordered first, zero if it was when this process began: older pods may be others.
	since     time.Time
	resources map[string]float64
	labels    map[string]string
}

// order forgets what was learned of nodes that were ordered otherwise.
func (m *machine) order(ordered protocol.Group, now time.Time) {
	switch {
	case m.ordered.Name == "":
		m.ordered = ordered
	case !maps.Equal(m.ordered.Resources, ordered.Resources) || !maps.Equal(m.ordered.Labels, ordered.Labels):
		*m = machine{ordered: ordered, since: now}
	}
}

// observe learns what the nodes of each group have in common.
func (m *Memory) observe(s *sight) {
	fresh := map[string]*machine{}
	for uid := range s.nodes {
		pod, node := s.pod(uid), s.node(uid)
		known := m.groups[pod.Group]
		if known == nil || pod.Since.Before(known.machine.since) {
			continue
		}
		one := fresh[pod.Group]
		if one == nil {
			one = &machine{resources: learnedAmounts(node), labels: learnedLabels(node)}
			fresh[pod.Group] = one
			continue
		}
		maps.DeleteFunc(one.labels, func(label, value string) bool { return node.Labels[label] != value })
		maps.DeleteFunc(one.resources, func(name string, _ float64) bool { return node.Total[name] <= 0 })
		for name, amount := range one.resources {
			one.resources[name] = min(amount, node.Total[name])
		}
	}
	for group, one := range fresh {
		known := &m.groups[group].machine
		known.resources, known.labels = one.resources, one.labels
	}
}

func learnedLabels(node *headclient.Node) map[string]string {
	labels := map[string]string{}
	for _, label := range learnable {
		if value, has := node.Labels[label]; has {
			labels[label] = value
		}
	}
	return labels
}

func learnedAmounts(node *headclient.Node) map[string]float64 {
	amounts := map[string]float64{}
	for name, amount := range node.Total {
		if amount > 0 && (strings.HasPrefix(name, typed) || slices.Contains(learnableAmounts, name)) {
			amounts[name] = amount
		}
	}
	return amounts
}

// offers is what each node of a group has: what was ordered, and beside that what was learned.
func (m *machine) offers(ordered protocol.Group) (resources map[string]float64, labels map[string]string) {
	return under(m.resources, ordered.Resources), under(m.labels, ordered.Labels)
}

// under lays entries below others, which win.
func under[Value any](below, above map[string]Value) map[string]Value {
	if len(below) == 0 {
		return above
	}
	all := maps.Clone(below)
	maps.Copy(all, above)
	return all
}
