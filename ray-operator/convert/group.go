package convert

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

const (
	// mostWorkers is how many workers a group has at most.
	mostWorkers = 10000
	// mostPriority bounds the priority of a group, on both sides of 0.
	mostPriority = 1000
)

// groupPart is a worker group on its way.
type groupPart struct {
	*clusterPart
	at   string // the path of the group
	from *rayWorkerGroup
	made v1beta1.WorkerGroup
}

func (p *clusterPart) takeHead() {
	head := p.node(p.path("headGroupSpec"), "head", &p.spec.HeadGroupSpec.rayNode)
	p.made.Head.NodeSpec, p.made.Image = head.finished(), head.image
}

func (p *clusterPart) takeGroups() {
	for i := range p.spec.WorkerGroupSpecs {
		p.made.WorkerGroups = append(p.made.WorkerGroups, p.group(fmt.Sprintf("%s[%d]", p.path("workerGroupSpecs"), i),
			&p.spec.WorkerGroupSpecs[i]))
	}
}

func (p *clusterPart) group(at string, from *rayWorkerGroup) v1beta1.WorkerGroup {
	node := p.node(at, "workerGroups[]", &from.rayNode)
	g := &groupPart{clusterPart: p, at: at, from: from}
	g.made = v1beta1.WorkerGroup{Suspend: ifTrue(from.Suspend), NodeSpec: node.finished()}
	g.takeName()
	if node.image != p.made.Image {
		g.made.Image = node.image
	}
	if from.NumOfHosts > 1 {
		g.made.HostsPerReplica = from.NumOfHosts
	}
	g.takeReplicas()
	g.takeScaling()
	return g.made
}

var otherLetters = regexp.MustCompile(`[^-a-z0-9]`)

// takeName takes a name in lower case, as KubeRay writes it in the names of pods.
func (g *groupPart) takeName() {
	g.made.Name = otherLetters.ReplaceAllString(strings.ToLower(g.from.GroupName), "-")
	if g.made.Name != g.from.GroupName {
		g.adjust(g.at+".groupName", "workerGroups[].name", fmt.Sprintf("the name becomes %.40q; say that where programs "+
			"select the group", g.made.Name))
	}
}

// takeReplicas counts as KubeRay does: replicas within minReplicas and maxReplicas, none where nothing is said.
func (g *groupPart) takeReplicas() {
	g.made.MinReplicas = g.from.MinReplicas
	least, most := int32(0), mostWorkers/max(g.made.HostsPerReplica, 1)
	if g.from.MinReplicas != nil {
		least = *g.from.MinReplicas
	}
	switch {
	case g.from.MaxReplicas == nil && g.clusterPart.made.Autoscaling != nil, g.from.MaxReplicas != nil && *g.from.MaxReplicas > most &&
		g.clusterPart.made.Autoscaling != nil:
		g.change(g.at+".maxReplicas", "workerGroups[].maxReplicas", fmt.Sprintf("the group had no bound that counts, and "+
			"gets %d; set what it may cost", most))
		g.made.MaxReplicas = new(most)
	case g.from.MaxReplicas == nil:
	case *g.from.MaxReplicas > most:
		g.drop(g.at+".maxReplicas", "without autoscaling a bound above what a group may have says nothing")
	default:
		g.made.MaxReplicas, most = g.from.MaxReplicas, *g.from.MaxReplicas
	}
	wanted := least
	if g.from.Replicas != nil {
		wanted = *g.from.Replicas
	}
	within := max(min(wanted, most), least)
	if wanted != within {
		g.adjust(g.at+".replicas", "workerGroups[].replicas", fmt.Sprintf("it becomes %d, within minReplicas and "+
			"maxReplicas", within))
	}
	g.made.Replicas = new(within)
}

// takeScaling takes what is said to the autoscaler about the group, if there is one.
func (g *groupPart) takeScaling() {
	if g.clusterPart.made.Autoscaling == nil {
		if g.from.IdleTimeoutSeconds != nil {
			g.drop(g.at+".idleTimeoutSeconds", withoutAutoscaling)
		}
		if g.from.Priority != nil {
			g.drop(g.at+".priority", withoutAutoscaling)
		}
		return
	}
	g.made.IdleTimeoutSeconds = g.atLeastOne(g.at+".idleTimeoutSeconds", "workerGroups[].idleTimeoutSeconds",
		g.from.IdleTimeoutSeconds)
	g.made.Priority = g.from.Priority
	if g.from.Priority == nil {
		return
	}
	if within := max(min(*g.from.Priority, mostPriority), -mostPriority); within != *g.from.Priority {
		g.change(g.at+".priority", "workerGroups[].priority", fmt.Sprintf("it becomes %d, the furthest that there is; compare "+
			"it with those of other groups", within))
		g.made.Priority = &within
	}
}
