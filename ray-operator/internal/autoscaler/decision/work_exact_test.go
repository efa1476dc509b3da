package decision

import "testing"

// What is looked at is counted: only what counts is bounded.
func TestWork_IsCounted(t *testing.T) {
	a := []Group{kindOf("a", cpus(4))}
	racks := []Group{kindOf("a", cpus(4), labelled("rack", "1"))}
	there := []Node{node("a", 0, cpus(1), cpus(4))}
	alike := []Node{there[0], node("a", 1, cpus(1), cpus(4))}
	two, inRack := append(tasks(1, cpus(4)), tasks(1, cpus(3))...), within("rack", pack("p", 4, cpus(1)))
	uneven := append(tasks(1, cpus(4)), tasks(1, cpus(1))...)
	for name, c := range map[string]struct {
		in   Input
		want int
	}{
		"nothing for nothing":      {Input{Groups: a, Nodes: there}, 0},
		"the node, for a task":     {Input{Groups: a, Nodes: there, Demand: tasks(1, cpus(1))}, 1},
		"it once for each of two":  {Input{Groups: a, Nodes: there, Demand: two}, 2 + (2 + 1) + (1 + 1 + 1)},
		"no part of it once more":  {Input{Groups: a, Nodes: alike, Demand: uneven}, 2 + (2 + 1)},
		"shape and group, of gang": {Input{Groups: a, Gangs: []Gang{pack("p", 4, cpus(1))}}, (1 + 1) + 2 + 1},
		"nodes by rack, too":       {Input{Groups: racks, Nodes: there, Gangs: []Gang{inRack}}, 1 + 1 + (1 + 1) + 2 + 1},
	} {
		if got := planFor(&c.in).main.work; got != c.want {
			t.Errorf("%s: takes %d looks, not %d", name, got, c.want)
		}
	}
}

// Without request_resources no node is looked at for it.
func TestPlan_LooksAtNodesForTheFloorOnlyIfThereIsOne(t *testing.T) {
	in := Input{Groups: []Group{kindOf("a", cpus(4))}, Nodes: []Node{node("a", 0, cpus(1), cpus(4))}}
	without := planFor(&in).floor.there
	in.Floor = tasks(1, cpus(1))
	if with := planFor(&in).floor.there; without != 0 || with != 1 {
		t.Errorf("there are %d classes without a floor, and %d with one", without, with)
	}
}

func TestPlaceGang_LooksNoFurtherThanEnough(t *testing.T) {
	in := Input{
		Groups: []Group{kindOf("a", cpus(4), labelled("rack", "1"))},
		Nodes:  []Node{node("a", 0, cpus(4), cpus(4), with("rack", "1"))},
		Gangs:  []Gang{within("rack", pack("p", 1, cpus(1)))},
	}
	p := planFor(&in)
	if !p.main.placeGang(p.gangs[0], nil) {
		t.Error("a gang is not placed on a node that is free")
	}
	const most = mostWork + 1
	p.main.work = most
	if p.main.placeGang(p.gangs[0], nil) || p.main.work != most {
		t.Errorf("a gang is placed after enough looks, or takes %d more", p.main.work-most)
	}
}
