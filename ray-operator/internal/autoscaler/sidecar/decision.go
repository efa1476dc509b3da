package sidecar

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/decision"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
)

// decision returns what a result means for the operator.
func (m *Memory) decision(s *sight, in decision.Input, result decision.Result) protocol.Decision {
	going := m.parting(s, result.Release)
	return protocol.Decision{
		Head: s.Snapshot.Head, Targets: m.targets(s, going, result), Removals: m.removals(s, going), Infeasible: infeasible(in, result, m.undetected(s)),
	}
}

// targets are the sizes that groups must have, within what was ordered. The words of a
// target stay as long as its number, so that they say why it changed, unless workers begin or cease to fail.
func (m *Memory) targets(s *sight, going parting, result decision.Result) []protocol.Target {
	wanted := make(map[string]decision.Target, len(result.Targets))
	for _, target := range result.Targets {
		wanted[target.Group] = target
	}
	standing, failing := standing(s, m.leaving.told, going), m.failing(s)
	var all []protocol.Target
	for _, ordered := range s.Snapshot.Groups {
		target, decided := wanted[ordered.Name]
		if !decided {
			continue
		}
		target.Replicas = within(target.Replicas, ordered)
		// Workers that are gone are taken away before others come in their place: the operator
		// gives back only what makes a group smaller.
		if there := standing[ordered.Name]; there.drained > 0 && target.Replicas > there.replicas-there.drained {
			target.Replicas, target.Reason = within(there.replicas-there.drained, ordered), "idle"
		}
		known := m.groups[ordered.Name]
		if how := failing[ordered.Name].how; known.since.IsZero() || known.target.Replicas != target.Replicas || known.failing != how {
			known.target, known.since = protocol.Target{Group: target.Group, Replicas: target.Replicas, Reason: target.Reason}, s.Now
			known.failing = how
		}
		all = append(all, known.target)
	}
	return all
}

func within(replicas int, ordered protocol.Group) int {
	if ordered.Suspended {
		return 0
	}
	return max(0, min(max(replicas, ordered.Min), ordered.Max))
}

// stand is how many replicas of a group have pods that are not on their way out, and how
// many of those are drained.
type stand struct{ replicas, drained int }

func standing(s *sight, leaving map[string]leave, going parting) map[string]stand {
	drained, seen := make(map[replica]bool, len(leaving)), make(map[replica]bool, len(s.pods))
	for uid := range leaving {
		of := replicaOf(s.pod(uid))
		drained[of] = going.gone[of]
	}
	all := map[string]stand{}
	for _, i := range s.pods {
		pod := &s.Snapshot.Pods[i]
		of := replicaOf(pod)
		if pod.Stage == protocol.Leaving || seen[of] {
			continue
		}
		seen[of] = true
		group := all[pod.Group]
		group.replicas++
		if drained[of] {
			group.drained++
		}
		all[pod.Group] = group
	}
	return all
}

// undetected are the groups whose GPUs Ray counts by itself, and of which no node was there to tell.
type undetected []string

func (m *Memory) undetected(s *sight) undetected {
	var groups undetected
	for _, ordered := range s.Snapshot.Groups {
		if ordered.DetectsGPUs && m.groups[ordered.Name].machine.resources == nil {
			groups = append(groups, ordered.Name)
		}
	}
	return groups
}

// mostUndetected is how many of these groups a text names.
const mostUndetected = 3

// explain adds these groups to the reason why a request for GPUs fits nowhere.
func (u undetected) explain(why string) string {
	if len(u) == 0 || !strings.HasSuffix(why, " GPU") {
		return why
	}
	return fmt.Sprintf("%s; Ray counts those of group %s when a first worker is ready; to autoscale before, set GPU in rayResources",
		why, strings.Join(u[:min(mostUndetected, len(u))], ", "))
}

// infeasible is what can never fit, in words, the same words once.
func infeasible(in decision.Input, result decision.Result, groups undetected) []protocol.Infeasible {
	type words struct{ shape, reason string }
	counts := map[words]int{}
	for _, demand := range result.Infeasible.Demand {
		counts[words{demand.Shape.String(), groups.explain(why(demand, in.Groups))}] += demand.Count
	}
	for _, demand := range result.Infeasible.Floor {
		counts[words{demand.Shape.String(), groups.explain(why(demand, in.Groups)) + ", which request_resources asks for"}] += demand.Count
	}
	for _, i := range result.Infeasible.Gangs {
		if i >= 0 && i < len(in.Gangs) {
			counts[words{bundles(in.Gangs[i]), groups.explain(whyGang(in.Gangs[i], in.Groups))}]++
		}
	}
	var all []protocol.Infeasible
	for text, count := range counts {
		all = append(all, protocol.Infeasible{Shape: text.shape, Count: min(max(count, 0), 1<<31-1), Reason: text.reason})
	}
	slices.SortFunc(all, func(a, b protocol.Infeasible) int {
		return cmp.Or(cmp.Compare(a.Shape, b.Shape), cmp.Compare(a.Reason, b.Reason))
	})
	return all
}

// why says what a request asks for that no group has.
func why(demand decision.Demand, groups []decision.Group) string {
	if len(groups) == 0 {
		return "there are no groups of workers"
	}
	const speck = 1e-9 // less is lost in adding up
	for _, name := range slices.Sorted(maps.Keys(demand.Shape)) {
		largest := 0.0
		for _, group := range groups {
			largest = max(largest, group.Resources[name])
		}
		if demand.Shape[name] <= largest*(1+speck) {
			continue
		}
		text := strings.Trim(decision.Resources{name: max(largest, 1)}.String(), "{}")
		at := max(0, strings.LastIndex(text, ": "))
		if largest == 0 {
			return "no group has " + text[:at]
		}
		return "the largest group has " + strings.TrimPrefix(text[at:], ": ") + " " + text[:at]
	}
	if len(demand.Selectors) > 0 {
		return "no group that is large enough has the labels that it asks for"
	}
	return "no group has all of it on one node"
}

// whyGang says the same of a placement group: of a bundle that has no place by itself, of
// all together where they must be, or of their number.
func whyGang(gang decision.Gang, groups []decision.Group) string {
	if gang.Together {
		sum := decision.Demand{Shape: decision.Resources{}}
		for _, bundle := range gang.Bundles {
			for name, amount := range bundle.Shape {
				sum.Shape[name] += amount * float64(bundle.Count)
			}
			sum.Selectors = append(sum.Selectors, bundle.Selectors...)
		}
		return why(sum, groups)
	}
	none := why(decision.Demand{}, groups)
	for _, bundle := range gang.Bundles {
		if reason := why(bundle, groups); reason != none {
			return reason
		}
	}
	return "no nodes that groups have can hold all of its bundles at once"
}

// mostBundles is of how many kinds of bundles a gang's text speaks.
const mostBundles = 3

func bundles(gang decision.Gang) string {
	var parts []string
	for _, bundle := range gang.Bundles[:min(mostBundles, len(gang.Bundles))] {
		parts = append(parts, fmt.Sprintf("%d × %s", bundle.Count, bundle.Shape))
	}
	if len(gang.Bundles) > mostBundles {
		parts = append(parts, "…")
	}
	text := "placement group of " + strings.Join(parts, " + ")
	if gang.Together {
		text += " on one node"
	}
	return text
}
