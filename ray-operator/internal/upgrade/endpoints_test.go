package upgrade

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestEndpoints(t *testing.T) {
	for _, test := range []struct{ traffic, active, candidate, a, c, share int }{
		{0, 5, 5, 5, 0, 0},
		{100, 5, 5, 0, 5, 100},
		// By steps of 20 five pods make exact shares.
		{20, 5, 5, 4, 1, 20},
		{40, 5, 5, 3, 2, 40},
		{60, 5, 5, 2, 3, 60},
		{80, 5, 5, 1, 4, 80},
		// An exact share of fewer endpoints than one side has would be 4 and 1.
		{20, 7, 7, 7, 2, 22},
		{80, 7, 7, 1, 6, 86},
		// Among equal shares the most endpoints.
		{50, 4, 4, 4, 4, 50},
		{40, 6, 6, 6, 4, 40},
		{33, 10, 10, 10, 5, 33},
		{1, 200, 200, 198, 2, 1},
		// What shares there are with few.
		{20, 1, 1, 1, 1, 50},
		{50, 1, 1, 1, 1, 50},
		{51, 1, 1, 0, 1, 100},
		{20, 3, 3, 3, 1, 25},
		{80, 3, 3, 0, 3, 100},
		{60, 3, 1, 0, 1, 100},
		// The candidate has too few for both: its share is enough all the same.
		{50, 10, 1, 1, 1, 50},
		{50, 10, 2, 2, 2, 50},
		{45, 6, 4, 4, 4, 50},
		{80, 20, 7, 1, 6, 86},
		// A few that are left of the active side do not make the rest stand by.
		{20, 1, 7, 1, 6, 86},
		// Nobody on one side, on both, or out of all reason.
		{50, 4, 0, 4, 0, 0},
		{100, 4, 0, 4, 0, 0},
		{0, 0, 4, 0, 0, 0},
		{50, 0, 4, 0, 4, 100},
		{50, 0, 0, 0, 0, 0},
		{-5, -5, -5, 0, 0, 0},
		{500, 2, 3, 0, 3, 100},
		{50, math.MaxInt, math.MaxInt, mostPods, mostPods, 50},
		{0, math.MaxInt, 1, mostPods, 0, 0},
	} {
		a, c := Endpoints(test.traffic, test.active, test.candidate)
		if share := shareOf(a, c); a != test.a || c != test.c || share != test.share {
			t.Errorf("%d %% of %d and %d: %d and %d, share %d, want %d and %d, share %d", test.traffic, test.active, test.candidate, a, c, share, test.a, test.c, test.share)
		}
	}
}

func TestShare(t *testing.T) {
	for _, test := range []struct{ a, c, want int }{
		{0, 0, 0}, {3, 0, 0}, {0, 3, 100}, {2, 1, 33}, {1, 2, 67}, {7, 1, 13}, {199, 1, 1}, {200, 1, 0}, {-1, 5, 100}, {5, -5, 0},
		{math.MaxInt, math.MaxInt, 50},
	} {
		if have := shareOf(test.a, test.c); have != test.want {
			t.Errorf("%d and %d: %d, want %d", test.a, test.c, have, test.want)
		}
	}
}

// TestEndpointsAreTheNearest compares with a search through all mixes.
func TestEndpointsAreTheNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		traffic, active, candidate := rapid.IntRange(1, 99).Draw(t, "traffic"), rapid.IntRange(1, 30).Draw(t, "active"), rapid.IntRange(1, 30).Draw(t, "candidate")
		a, c := Endpoints(traffic, active, candidate)
		wantA, wantC := searched(traffic, active, candidate, max(active, candidate))
		if wantC == 0 {
			wantA, wantC = searched(traffic, active, candidate, candidate)
		}
		if wantC == 0 {
			wantC = candidate
		}
		if a != wantA || c != wantC {
			t.Fatalf("%d and %d, want %d and %d", a, c, wantA, wantC)
		}
	})
}

func searched(traffic, active, candidate, least int) (a, c int) {
	for x := 1; x <= active; x++ {
		for y := 1; y <= candidate; y++ {
			if y*100 < traffic*(x+y) || x+y < least {
				continue
			}
			if now, best := y*(a+c), c*(x+y); c == 0 || now < best || now == best && x+y > a+c {
				a, c = x, y
			}
		}
	}
	return a, c
}
