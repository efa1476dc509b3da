package sidecar

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

const (
	// pull is how old at most what Ray says of waiting tasks is: it asks its nodes once a second. What is free it
	// knows within a tenth of that.
	pull = 1100 * time.Millisecond
	// spans is into how many parts this time is divided.
	spans = 4
)

// recent is what was free and what waited a moment ago. A burst of tasks that just fits is taken by the nodes at once,
// and goes on to be listed as waiting while they are listed as full.
type recent struct {
	spans []span
}

// span is the most that was free on each node in a part of the time, and the least that waited of each request.
type span struct {
	began, last time.Time
	free        map[headclient.NodeID]map[string]float64
	waited      map[string]int
}

// learn notes what is free and what waits.
func (r *recent) learn(s *sight) {
	waits := map[string]int{}
	for _, request := range s.Demand.Requests {
		waits[requestKey(&request)] += request.Count
	}
	first := len(r.spans) == 0
	if last := len(r.spans) - 1; first || s.Now.Sub(r.spans[last].began) >= pull/spans {
		free := make(map[headclient.NodeID]map[string]float64, len(s.Demand.Nodes))
		r.spans = append(r.spans, span{began: s.Now, free: free, waited: waits})
	}
	now := &r.spans[len(r.spans)-1]
	now.last = s.Now
	for key, least := range now.waited {
		now.waited[key] = min(least, waits[key])
	}
	for i := range s.Demand.Nodes {
		node := &s.Demand.Nodes[i]
		free := node.Available
		if !first && !r.knows(node.ID) { // it came free and may have work already
			free = node.Total
		}
		now.free[node.ID] = larger(now.free[node.ID], free)
	}
	// One that began a pull ago stays, so that it is known what has waited for so long.
	for len(r.spans) > 1 && s.Now.Sub(r.spans[1].began) >= pull {
		r.spans = slices.Delete(r.spans, 0, 1)
	}
}

func (r *recent) knows(id headclient.NodeID) bool {
	return slices.ContainsFunc(r.spans, func(one span) bool {
		_, known := one.free[id]
		return known
	})
}

// larger is the larger of two amounts of each resource. It changes neither.
func larger(a, b map[string]float64) map[string]float64 {
	all, own := a, false
	if a == nil {
		return b
	}
	for name, amount := range b {
		if amount <= all[name] {
			continue
		}
		if !own {
			all, own = maps.Clone(a), true
		}
		all[name] = amount
	}
	return all
}

// taken is what is no longer free on the nodes, all together.
func (r *recent) taken(s *sight) map[string]float64 {
	all := map[string]float64{}
	for i := range s.Demand.Nodes {
		node := &s.Demand.Nodes[i]
		if node.State == headclient.Draining {
			continue
		}
		var before map[string]float64
		for at, one := range r.spans {
			// Where rounds take longer than a pull, the one before this counts.
			if s.Now.Sub(one.last) < pull || at == len(r.spans)-2 {
				before = larger(before, one.free[node.ID])
			}
		}
		for name, amount := range before {
			if less := amount - node.Available[name]; less > 0 {
				all[name] += less
			}
		}
	}
	return all
}

// waiting is how many of each of the requests surely wait, in their order: what has waited for longer than a pull, and
// of the rest what the nodes have not taken meanwhile.
func (r *recent) waiting(s *sight) []int {
	taken, sure := r.taken(s), map[string]int{}
	counts := make([]int, len(s.Demand.Requests))
	for i := range s.Demand.Requests {
		request := &s.Demand.Requests[i]
		counts[i] = request.Count
		if len(taken) == 0 {
			continue
		}
		key := requestKey(request)
		if _, known := sure[key]; !known {
			sure[key] = r.least(key, s.Now)
		}
		since := min(request.Count, sure[key])
		sure[key] -= since
		counts[i] -= take(taken, request.Shape, request.Count-since)
	}
	return counts
}

// least is how many of a request waited all the time.
func (r *recent) least(key string, now time.Time) int {
	if now.Sub(r.spans[0].began) < pull {
		return 0
	}
	least := math.MaxInt
	for _, one := range r.spans {
		least = min(least, one.waited[key])
	}
	return least
}

// take takes as many of a shape as there are out of what is there, and says how many.
func take(from, shape map[string]float64, count int) int {
	times := math.MaxFloat64
	for name, amount := range shape {
		if amount > 0 {
			times = min(times, math.Floor(from[name]/amount+1e-9))
		}
	}
	if times == math.MaxFloat64 || times < 1 {
		return 0
	}
	many := int(min(times, float64(count)))
	for name, amount := range shape {
		from[name] -= float64(many) * amount
	}
	return many
}

// requestKey is the same for requests that ask for the same.
func requestKey(request *headclient.Request) string {
	if len(request.Selectors) > 0 && len(request.Selectors[0]) > 0 || len(request.Constraints) > 0 {
		return key(demandOf(*request))
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(request.Shape)) {
		text.WriteString(strconv.Quote(name))
		text.WriteString(strconv.FormatFloat(request.Shape[name], 'g', -1, 64))
	}
	return text.String()
}
