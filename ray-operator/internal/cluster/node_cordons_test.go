package cluster

import (
	"testing"
	"time"
)

// TestCordons_DateFromWhenTheyWereSeen: a node's own time counts, else when it was first seen cordoned.
func TestCordons_DateFromWhenTheyWereSeen(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	var cordons Cordons
	for i, c := range []struct{ node, want Node }{
		{Node{}, Node{}},
		{Node{Closed: true}, Node{Closed: true, Cordoned: at(1)}},
		{Node{Closed: true}, Node{Closed: true, Cordoned: at(1)}},
		{Node{Closed: true, Cordoned: at(0)}, Node{Closed: true, Cordoned: at(0)}},
		{Node{}, Node{}},
		{Node{Closed: true}, Node{Closed: true, Cordoned: at(5)}},
	} {
		if got := cordons.dateNode("n", c.node, at(i)); got != c.want {
			t.Errorf("after %d s: %+v, want %+v", i, got, c.want)
		}
	}
}
