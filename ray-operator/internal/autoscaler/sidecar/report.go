package sidecar

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/decision"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
)

// report is what Ray is told, with texts by which two reports of what can never fit can be
// compared.
type report struct {
	headclient.Report
	never []string
}

// same reports whether two reports say the same, the time apart.
func (r report) same(other report) bool {
	return slices.Equal(r.Wanted, other.Wanted) && slices.Equal(r.Coming, other.Coming) && slices.Equal(r.Failed, other.Failed) &&
		slices.Equal(r.never, other.never)
}

// report tells of the workers that are on their way, those that could not be had, and what
// can never fit.
func (m *Memory) report(s *sight, in decision.Input, result decision.Result) report {
	r := report{Report: headclient.Report{At: s.Now}}
	there := make(map[string]int, len(s.Snapshot.Groups))
	for uid, i := range s.pods {
		pod := &s.Snapshot.Pods[i]
		if pod.Stage == protocol.Leaving {
			continue
		}
		there[pod.Group]++
		if _, told := m.leaving.told[uid]; told || s.node(uid) != nil {
			continue
		}
		r.Coming = append(r.Coming, headclient.Coming{Type: pod.Group, Instance: uid, Details: cmp.Or(pod.Why, stageWords(pod.Stage))})
	}
	slices.SortFunc(r.Coming, func(a, b headclient.Coming) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Instance, b.Instance))
	})
	for _, ordered := range s.Snapshot.Groups {
		known := m.groups[ordered.Name]
		if missing := known.target.Replicas*max(1, ordered.Hosts) - there[ordered.Name]; missing > 0 {
			r.Wanted = append(r.Wanted, headclient.Wanted{Type: ordered.Name, Count: missing, Since: known.since})
		}
		if c := known.capacity; c.passed(s.Now) {
			r.Failed = append(r.Failed, headclient.Failed{
				Type: ordered.Name, Count: c.lacking, Since: c.from.Add(-ordered.CapacityTimeout), Until: c.from,
				Reason: fmt.Sprintf("no capacity within %s", ordered.CapacityTimeout),
			})
		}
	}
	r.Failed = append(r.Failed, m.failed(s)...)
	r.echo(s, in, result.Infeasible)
	return r
}

func stageWords(stage protocol.Stage) string {
	return map[protocol.Stage]string{protocol.Waiting: "waits for a machine", protocol.Starting: "starts", protocol.Ready: "joins"}[stage]
}

// echo puts what can never fit into the report, each request as the head sent it.
func (r *report) echo(s *sight, in decision.Input, never decision.Infeasible) {
	for _, one := range []struct {
		never []decision.Demand
		in    []decision.Demand
		from  []headclient.Request
		to    *[]headclient.Request
	}{
		{never.Demand, in.Demand, s.Demand.Requests, &r.Requests}, {never.Floor, in.Floor, s.Demand.Floor, &r.Floor},
	} {
		if len(one.never) == 0 {
			continue
		}
		known := make(map[string]bool, len(one.never))
		for _, demand := range one.never {
			known[key(demand)] = true
		}
		for i := range one.in {
			if text := key(one.in[i]); known[text] {
				*one.to = append(*one.to, one.from[i])
				r.never = append(r.never, fmt.Sprintf("%d %s", one.from[i].Count, text))
			}
		}
	}
	for _, i := range never.Gangs {
		if i >= 0 && i < len(s.Demand.Gangs) {
			r.Gangs = append(r.Gangs, s.Demand.Gangs[i])
			r.never = append(r.never, s.Demand.Gangs[i].Group)
		}
	}
	slices.Sort(r.never)
}

// key is the same for requests that ask for the same.
func key(demand decision.Demand) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(demand.Shape)) {
		fmt.Fprintf(&text, "%q=%v ", name, demand.Shape[name])
	}
	for _, selector := range demand.Selectors {
		text.WriteString("; ")
		for _, term := range selector {
			fmt.Fprintf(&text, "%q %t %q ", term.Label, term.Not, term.Values)
		}
	}
	for _, label := range demand.Apart {
		fmt.Fprintf(&text, "apart %q=%q ", label.Name, label.Value)
	}
	return text.String()
}

// shapes are the kinds of nodes that there could be. No group can have more nodes than the
// cluster.
func shapes(snapshot protocol.Snapshot) []headclient.Shape {
	all := make([]headclient.Shape, 0, len(snapshot.Groups))
	for _, group := range snapshot.Groups {
		if group.Suspended {
			continue
		}
		hosts := max(1, group.Hosts)
		shape := headclient.Shape{Name: group.Name, Resources: group.Resources, Min: group.Min * hosts, Max: group.Max * hosts}
		if snapshot.MaxNodes > 0 {
			shape.Max = min(shape.Max, snapshot.MaxNodes)
		}
		all = append(all, shape)
	}
	return all
}

// often is how often Ray is told what did not change.
const often = 5 * time.Second
