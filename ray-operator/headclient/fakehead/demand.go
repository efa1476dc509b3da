package fakehead

import (
	"maps"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc"
	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc/autoscaler"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// maxShapes is of how many shapes a raylet tells: of more, any that many.
const maxShapes = 100

// Ask is a number of equal tasks, actors or bundles.
type Ask struct {
	Shape map[string]float64
	// Selectors are alternatives, the preferred one first; none matches every node.
	Selectors []headclient.Selector
	Count     int
}

// asked is an Ask with the nodes on which as many of its tasks run.
type asked struct {
	Ask
	on []*node
}

// Want makes tasks wait for room. They run where there is some, and run again elsewhere if
// their node dies, until end is called.
func (c *cluster) Want(ask Ask) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := &asked{Ask: ask}
	c.asks = append(c.asks, one)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.settle()
		for _, node := range one.on {
			node.give(one.Shape, c.clock.Now())
		}
		c.asks = slices.DeleteFunc(c.asks, func(other *asked) bool { return other == one })
	}
}

// house runs what there is room for. The caller holds the lock.
func (c *cluster) house() {
	for _, one := range c.asks {
		one.on = slices.DeleteFunc(one.on, func(n *node) bool { return n.dead })
		for len(one.on) < one.Count {
			at := c.room(one.Ask)
			if at == nil {
				break
			}
			at.take(one.Shape)
			one.on = append(one.on, at)
		}
	}
	for _, one := range c.groups {
		c.placeGroup(one)
	}
}

// room finds a node for one request; nil if there is none.
func (c *cluster) room(ask Ask) *node {
	for _, one := range c.nodes {
		if one.open() && one.matches(ask.Selectors) && fits(ask.Shape, one.free()) {
			return one
		}
	}
	return nil
}

// open reports whether a node takes work.
func (n *node) open() bool { return !n.dead && !n.away && n.draining == 0 }

func (n *node) free() map[string]float64 {
	free := make(map[string]float64, len(n.Total))
	maps.Copy(free, n.Total)
	for name, amount := range n.used {
		if amount > 0 {
			free[name] = max(0, math.Round((free[name]-amount)*1e4)/1e4) // Ray reckons in units of that size
		}
	}
	return free
}

func fits(shape, free map[string]float64) bool {
	for name, amount := range shape {
		if free[name] < amount {
			return false
		}
	}
	return true
}

func (n *node) matches(selectors []headclient.Selector) bool {
	return len(selectors) == 0 || slices.ContainsFunc(selectors, func(selector headclient.Selector) bool {
		return !slices.ContainsFunc(selector, func(term headclient.Term) bool {
			value, there := n.Labels[term.Label]
			return (there && slices.Contains(term.Values, value)) == term.Not
		})
	})
}

// waitingTasks lists what has no room, as of a version of the state. The caller holds the lock.
func (c *cluster) waitingTasks(version int64) []*autoscaler.ResourceRequestByCount {
	var listed []*autoscaler.ResourceRequestByCount
	if c.pending > 0 {
		listed = append(listed, &autoscaler.ResourceRequestByCount{Request: Ask{Shape: map[string]float64{"CPU": 1}}.task(), Count: c.pending})
	}
	for _, one := range c.groups {
		if one.tasks > 0 && !one.placed {
			listed = append(listed, &autoscaler.ResourceRequestByCount{Request: Ask{Shape: one.inside()}.task(), Count: int64(one.tasks)})
		}
	}
	at := map[string]*autoscaler.ResourceRequestByCount{}
	for _, one := range c.asks {
		waiting := int64(one.Count - len(one.on))
		if waiting <= 0 {
			continue
		}
		request := one.task()
		wire, err := proto.MarshalOptions{Deterministic: true}.Marshal(request)
		if err != nil {
			panic(err) // it was made here
		}
		if same := at[string(wire)]; same != nil {
			same.Count += waiting
			continue
		}
		at[string(wire)] = &autoscaler.ResourceRequestByCount{Request: request, Count: waiting}
		listed = append(listed, at[string(wire)])
	}
	if len(listed) > maxShapes { // others each time
		first := int(version) * 7 % len(listed)
		listed = append(listed[first:], listed[:first]...)[:maxShapes]
	}
	return listed
}

// task is how GCS tells of a task: one that does not select has one selector all the same.
func (a Ask) task() *autoscaler.ResourceRequest {
	request := a.request()
	if len(a.Selectors) == 0 {
		request.LabelSelectors = []*rpc.LabelSelector{{}}
	}
	return request
}

// request is how it tells of a bundle.
func (a Ask) request() *autoscaler.ResourceRequest {
	request := &autoscaler.ResourceRequest{ResourcesBundle: maps.Clone(a.Shape)}
	for _, selector := range a.Selectors {
		request.LabelSelectors = append(request.LabelSelectors, written(selector))
	}
	return request
}

func written(selector headclient.Selector) *rpc.LabelSelector {
	out := &rpc.LabelSelector{}
	for _, term := range selector {
		operator := rpc.LabelSelectorOperator_LABEL_OPERATOR_IN
		if term.Not {
			operator = rpc.LabelSelectorOperator_LABEL_OPERATOR_NOT_IN
		}
		out.LabelConstraints = append(out.LabelConstraints, &rpc.LabelSelectorConstraint{
			LabelKey: term.Label, Operator: operator, LabelValues: slices.Clone(term.Values),
		})
	}
	return out
}
