package main

import "testing"

func TestPercentFor_LeavesASmallHeapAlone(t *testing.T) {
	for _, c := range []struct {
		name string
		live uint64
		want int
	}{
		{"before the first collection as for a large one", 0, collectAt},
		{"up to 64 MiB where little is in use", 16 << 20, 300},
		{"half of what is in use where that is more", 48 << 20, collectAt},
		{"half of what is in use of a large heap", 300 << 20, collectAt},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := percentFor(c.live); got != c.want {
				t.Errorf("it is %d, want %d", got, c.want)
			}
		})
	}
}
