package decision

import (
	"slices"
	"testing"
)

func TestLabels_RankIsThePlaceOfTheFirstMatch(t *testing.T) {
	l := newLabels()
	after := func(others int) rule {
		return l.learn(append(slices.Repeat([]Selector{in("zone", "b")}, others), in("zone", "a"), in("zone", "a")))
	}
	cases := []struct {
		of   rule
		want int
	}{
		{everyNode, 0}, {after(0), 0}, {after(1), 1}, {after(119), 119}, {after(120), 120}, {after(121), 120},
		{l.learn([]Selector{in("zone", "c")}), nowhere},
	}
	on := l.know(map[string]string{"zone": "a"})
	for i, c := range cases {
		if got := l.rank(c.of, on); got != c.want {
			t.Errorf("case %d: the rank is %d, not %d", i, got, c.want)
		}
	}
}

// Selectors are matched once with each set of labels, because there are many nodes of a set.
func TestLabels_RankIsFoundOnce(t *testing.T) {
	l := newLabels()
	of := l.learn([]Selector{in("zone", "a")})
	on := l.know(map[string]string{"zone": "a"})
	found := l.rank(of, on)
	l.rules[of] = nil
	if again := l.rank(of, on); found != 0 || again != 0 {
		t.Errorf("the rank is %d at first and %d then", found, again)
	}
}

func TestLabels_EmptySelectorsMatchEveryNode(t *testing.T) {
	for name, selectors := range map[string][]Selector{
		"none":                    nil,
		"an empty one":            {{}},
		"an empty one and others": {{}, in("zone", "a")},
	} {
		if got := newLabels().learn(selectors); got != everyNode {
			t.Errorf("%s: is rule %d", name, got)
		}
	}
}
