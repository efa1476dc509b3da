package live

import (
	"slices"
	"testing"
)

// whole is a count of which nothing is wrong.
func whole() Memory {
	return Memory{
		Store: "redis", Recorded: 2, Asked: 4, Tasks: 100, Requests: 200,
		Recoveries: []Recovery{{How: InPlace, Listed: 9, Answered: 9}, {How: NewPod, Created: 0.3, Listed: 6, Ready: 10, Answered: 9}},
		ByHand:     []Recovery{{How: NewPod, Listed: 5.5, Answered: 8}},
	}
}

func TestAMemoryIsHeldToItsPromises(t *testing.T) {
	for _, c := range []struct {
		spoil  func(*Memory)
		broken []string
		late   []string
	}{
		{func(*Memory) {}, nil, nil},
		{func(m *Memory) { m.Recoveries, m.Recorded = nil, 0 }, []string{"something was not tried at all"}, []string{
			"answered after NaN times as long as by hand", "listed after NaN times as long as by hand"}},
		{func(m *Memory) { m.Requests = 0 }, []string{"something was not tried at all"}, nil},
		{func(m *Memory) { m.Recorded = 1 }, []string{"a recovery is not recorded"}, nil},
		{func(m *Memory) { m.Touched = 1 }, []string{"a worker pod was touched"}, nil},
		{func(m *Memory) { m.Changed = 1 }, []string{"an actor is another"}, nil},
		{func(m *Memory) { m.TasksLost, m.Failed = 1, 1 }, []string{"a task was lost", "a request failed"}, nil},
		{func(m *Memory) { m.Recoveries[1].Created = 2.1 }, nil, []string{"a pod came after 2.1 s"}},
		{func(m *Memory) { m.Recoveries[1].Answered = 9.7 }, nil, []string{"answered after 1.21 times as long as by hand"}},
		{func(m *Memory) { m.ByHand[0].Listed = 4.9 }, nil, []string{"listed after 1.22 times as long as by hand"}},
	} {
		memory := whole()
		c.spoil(&memory)
		if broken, late := memory.Broken(), memory.Late(); !slices.Equal(broken, c.broken) || !slices.Equal(late, c.late) {
			t.Errorf("%s: broken %q, late %q; want %q, %q", memory, broken, late, c.broken, c.late)
		}
	}
}

func TestAFaultIsHeldToItsPromises(t *testing.T) {
	for _, c := range []struct {
		fault  StoreFault
		broken bool
	}{
		{StoreFault{Back: 20}, false},
		{StoreFault{Back: 20.1}, true},
		{StoreFault{Touched: 1}, true},
		{StoreFault{Touched: 2, NewSession: true}, false},
	} {
		if c.fault.Broken() != c.broken {
			t.Errorf("%s: broken is %v", c.fault, c.fault.Broken())
		}
	}
}
