package decision

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// world is the input in the packer's terms.
type world struct {
	in     *Input
	kinds  kinds
	labels *labels
	// scale is the most that a group's node has, by kind.
	scale map[kind]float64
	// groups are in the order of their names, order maps them to the input's.
	groups []*group
	order  []int
	demand []*unit
	floor  []*unit
	gangs  []*gang
	// loose are nodes of no group that we know, such as the head.
	loose []*host
	// room is how many pods there may be more than the groups' sizes, joined how many
	// workers are nodes.
	room   int64
	joined int64
}

// group is a group with what is there of it.
type group struct {
	*Group
	index int
	// hosts is at least 1.
	hosts, least, most int64
	// labels are those that all hosts have, size is that of most.
	labels      set
	variants    []variant
	accelerated bool
	size        float64
	// replicas are those that are there, alive in number; above are those above a maximum, with
	// which there are live in number.
	replicas, above []*replica
	live, alive     int64
	// replaced are those that go now for others to be made in their place. They are in none of the above.
	replaced []*replica
	// missing is how many replicas the minimum asks for.
	missing int64
	// stock are replicas of which all pods are on their way and counted on, in the order in
	// which they are made use of.
	stock []*replica
}

// replica is what is there of a replica.
type replica struct {
	group  int
	number int
	hosts  []*host
	// nodes counts those of its pods that are nodes, pods the others, waiting and late some
	// of these; lacking is how many are not there at all.
	nodes, pods, waiting, late, lacking int
	going, replace                      bool
	// idle is for how long nothing has run on any of its nodes, age that of its youngest pod.
	idle, age time.Duration
	// free tells that it goes if nothing is placed on it, used that something was.
	free, used bool
}

// host is a node or a pod on its way.
type host struct {
	replica *replica
	node    *Node
	pod     *Pod
	key     string
	host    int
}

// onItsWay tells a replica of which nothing is a node yet.
func (r *replica) onItsWay() bool { return r.nodes == 0 && r.lacking == 0 }

func newWorld(in *Input) *world {
	w := &world{
		in: in, kinds: kinds{byName: map[string]kind{}, accelerator: map[kind]bool{}}, labels: newLabels(), scale: map[kind]float64{},
	}
	w.demand, w.floor = w.unitsOf(in.Demand), w.unitsOf(in.Floor)
	for i := range in.Gangs {
		if g := w.gangOf(&in.Gangs[i], i); g != nil {
			w.gangs = append(w.gangs, g)
		}
	}
	w.addGroups()
	w.measure()
	w.addHosts()
	w.bound()
	for _, g := range w.groups {
		w.classify(g)
	}
	return w
}

func (w *world) addGroups() {
	for i := range w.in.Groups {
		from := &w.in.Groups[i]
		g := &group{Group: from, index: i, hosts: int64(max(1, from.Hosts)), most: int64(max(0, from.Max))}
		g.least = min(int64(max(0, from.Min)), g.most)
		if from.Closed {
			g.least, g.most = 0, 0
		}
		for name, n := range from.Resources {
			g.accelerated = g.accelerated || accelerators[name] && n > 0
		}
		g.labels = w.labels.know(from.Labels)
		w.vary(g)
		w.groups = append(w.groups, g)
	}
	slices.SortStableFunc(w.groups, func(a, b *group) int { return strings.Compare(a.Name, b.Name) })
	w.order = make([]int, len(w.groups))
	for at, g := range w.groups {
		w.order[g.index] = at
	}
}

// measure finds how large groups and requests are, and brings requests into their order.
func (w *world) measure() {
	for _, g := range w.groups {
		for i := range g.variants {
			for _, part := range g.variants[i].free {
				w.scale[part.kind] = max(w.scale[part.kind], float64(part.n))
			}
		}
	}
	for _, g := range w.groups {
		for i := range g.variants {
			g.variants[i].size = w.bulk(g.variants[i].free)
			g.size = g.variants[i].size
		}
	}
	all := slices.Concat(w.demand, w.floor)
	for _, g := range w.gangs {
		all = append(all, g.units...)
	}
	for _, one := range all {
		for _, part := range one.need {
			one.size = max(one.size, float64(part.n)/w.unit(part.kind))
		}
		for _, g := range w.groups {
			rank, _ := w.rankIn(one, everyNode, g)
			one.holds = append(one.holds, rank)
		}
	}
	slices.SortFunc(w.demand, harder)
	slices.SortFunc(w.floor, harder)
	for _, g := range w.gangs {
		slices.SortFunc(g.units, harder)
		for _, one := range g.units {
			g.size += one.size * float64(one.count)
		}
	}
	slices.SortStableFunc(w.gangs, harderGang)
}

// unit is what amounts of a kind are measured by: the most that a group has, or 1.
func (w *world) unit(of kind) float64 {
	return max(w.scale[of], perOne)
}

// bulk is how large a vector is in all.
func (w *world) bulk(of vector) float64 {
	all := 0.0
	for _, part := range of {
		all += float64(part.n) / w.unit(part.kind)
	}
	return all
}

// rank is which of its selectors a request has on a node with these labels, nowhere if it
// has none or does not fit.
func (w *world) rank(one *unit, free vector, on set) int {
	if free.fits(one.need) == 0 {
		return nowhere
	}
	return w.matches(one.rules, on)
}

// matches is the sum of the ranks of all rules, or nowhere.
func (w *world) matches(rules []rule, on set) int {
	all := 0
	for _, of := range rules {
		rank := w.labels.rank(of, on)
		if rank == nowhere {
			return nowhere
		}
		all += rank
	}
	return all
}

// addHosts sorts nodes and pods into their replicas.
func (w *world) addHosts() {
	byName := map[string]int{}
	for at := len(w.groups) - 1; at >= 0; at-- {
		byName[w.groups[at].Name] = at
	}
	type where struct{ group, number int }
	there := map[where]*replica{}
	add := func(place *Place, h *host) {
		h.key, h.host = place.Key, place.Host
		at, known := byName[place.Group]
		if !known {
			w.addLoose(h)
			return
		}
		r := there[where{at, place.Replica}]
		if r == nil {
			r = &replica{group: at, number: place.Replica}
			there[where{at, place.Replica}] = r
			w.groups[at].replicas = append(w.groups[at].replicas, r)
		}
		h.replica = r
		r.hosts = append(r.hosts, h)
	}
	for i := range w.in.Nodes {
		add(&w.in.Nodes[i].Place, &host{node: &w.in.Nodes[i]})
	}
	for i := range w.in.Pods {
		add(&w.in.Pods[i].Place, &host{pod: &w.in.Pods[i]})
	}
	for _, g := range w.groups {
		slices.SortFunc(g.replicas, func(a, b *replica) int { return cmp.Compare(a.number, b.number) })
		for _, r := range g.replicas {
			r.count(g.hosts)
		}
		g.replicas = slices.DeleteFunc(g.replicas, func(r *replica) bool {
			goes := w.replaces(r, g)
			if goes {
				g.replaced = append(g.replaced, r)
			}
			return goes || r.going
		})
		g.live = int64(len(g.replicas))
	}
}

// replaces reports whether a replica goes now for another to be made in its place: nothing runs there.
func (w *world) replaces(r *replica, g *group) bool {
	return r.replace && !r.going && (r.nodes == 0 || w.in.MayShrink && r.rested(g))
}

// addLoose takes up a node of no group; a pod of none counts for nothing.
func (w *world) addLoose(h *host) {
	if h.node != nil && !h.node.Draining && !h.node.Going {
		w.loose = append(w.loose, h)
	}
}

// count finds out about a replica from its hosts.
func (r *replica) count(hosts int64) {
	slices.SortFunc(r.hosts, func(a, b *host) int { return cmp.Or(cmp.Compare(a.host, b.host), strings.Compare(a.key, b.key)) })
	for _, h := range r.hosts {
		switch {
		case h.node != nil:
			r.going = r.going || h.node.Draining || h.node.Going
			if r.nodes == 0 || h.node.Idle < r.idle {
				r.idle = max(0, h.node.Idle)
			}
			r.nodes++
		default:
			r.going = r.going || h.pod.Going
			r.replace = r.replace || h.pod.Replace
			if h.pod.Late {
				r.late++
			}
			if h.pod.Waiting {
				r.waiting++
			}
			if r.pods == 0 || h.pod.Age < r.age {
				r.age = h.pod.Age
			}
			r.pods++
		}
	}
	r.lacking = int(min(max(0, hosts-int64(len(r.hosts))), mostLacking))
}

// mostLacking is the largest number of missing pods of one replica that a decision may assume.
const mostLacking = 4096
