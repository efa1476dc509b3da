package convert

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

const (
	// mostWorkers is how many workers a group has at most.
	mostWorkers = 10000
	// mostPriority bounds the priority of a group, on both sides of 0.
	mostPriority = 1000
)

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

func (p *clusterPart) group(at string, from *rayWorkerGroup) v1alpha1.WorkerGroup {
	node := p.node(at, "workerGroups[]", &from.rayNode)
	group := v1alpha1.WorkerGroup{Name: p.groupName(at+".groupName", from.GroupName), Suspend: from.Suspend,
		NodeSpec: node.finished()}
	if node.image != p.made.Image {
		group.Image = node.image
	}
	if from.NumOfHosts > 1 {
		group.HostsPerReplica = from.NumOfHosts
	}
	p.takeReplicas(at, from, &group)
	if p.made.Autoscaling == nil {
		if from.IdleTimeoutSeconds != nil {
			p.drop(at+".idleTimeoutSeconds", withoutAutoscaling)
		}
		if from.Priority != nil {
			p.drop(at+".priority", withoutAutoscaling)
		}
		return group
	}
	group.IdleTimeoutSeconds = p.atLeastOne(at+".idleTimeoutSeconds", "workerGroups[].idleTimeoutSeconds",
		from.IdleTimeoutSeconds)
	group.Priority = p.priority(at+".priority", from.Priority)
	return group
}

var otherLetters = regexp.MustCompile(`[^-a-z0-9]`)

// groupName is a name in lower case, as KubeRay writes it in the names of pods.
func (p *clusterPart) groupName(path, name string) string {
	simple := otherLetters.ReplaceAllString(strings.ToLower(name), "-")
	if simple != name {
		p.adjust(path, "workerGroups[].name", fmt.Sprintf("the name becomes %.40q; say that where programs select the "+
			"group", simple))
	}
	return simple
}

// takeReplicas counts as KubeRay does: replicas within minReplicas and maxReplicas, none where nothing is said.
func (p *clusterPart) takeReplicas(at string, from *rayWorkerGroup, group *v1alpha1.WorkerGroup) {
	group.MinReplicas = from.MinReplicas
	least, most := int32(0), mostWorkers/max(group.HostsPerReplica, 1)
	if from.MinReplicas != nil {
		least = *from.MinReplicas
	}
	switch {
	case from.MaxReplicas == nil && p.made.Autoscaling != nil, from.MaxReplicas != nil && *from.MaxReplicas > most &&
		p.made.Autoscaling != nil:
		p.change(at+".maxReplicas", "workerGroups[].maxReplicas", fmt.Sprintf("the group had no bound that counts, and "+
			"gets %d; set what it may cost", most))
		group.MaxReplicas = new(most)
	case from.MaxReplicas == nil:
	case *from.MaxReplicas > most:
		p.drop(at+".maxReplicas", "without autoscaling a bound above what a group may have says nothing")
	default:
		group.MaxReplicas, most = from.MaxReplicas, *from.MaxReplicas
	}
	wanted := least
	if from.Replicas != nil {
		wanted = *from.Replicas
	}
	within := max(min(wanted, most), least)
	if wanted != within {
		p.adjust(at+".replicas", "workerGroups[].replicas", fmt.Sprintf("it becomes %d, within minReplicas and "+
			"maxReplicas", within))
	}
	group.Replicas = new(within)
}

func (p *clusterPart) priority(path string, priority *int32) *int32 {
	if priority == nil || *priority >= -mostPriority && *priority <= mostPriority {
		return priority
	}
	within := max(min(*priority, mostPriority), -mostPriority)
	p.change(path, "workerGroups[].priority", fmt.Sprintf("it becomes %d, the furthest that there is; compare it with "+
		"those of other groups", within))
	return &within
}
