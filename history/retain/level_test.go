package retain

import (
	"math/rand/v2"
	"testing"
)

func TestLevel_TakesFromTheLargestAlone(t *testing.T) {
	for name, one := range map[string]struct {
		held  []Held
		limit int64
		want  int64
		is    bool
	}{
		"no limit":           {[]Held{{Size: 100}}, 0, 0, false},
		"all fit":            {[]Held{{Size: 100}, {Size: 50}}, 150, 0, false},
		"the largest":        {[]Held{{Size: 100}, {Size: 50}}, 120, 70, true},
		"two of three":       {[]Held{{Size: 100}, {Size: 90}, {Size: 10}}, 100, 45, true},
		"what cannot be cut": {[]Held{{Size: 100, Floor: 80}, {Size: 90}, {Size: 10}}, 120, 30, true},
		"nothing can be cut": {[]Held{{Size: 100, Floor: 200}}, 50, 0, true},
	} {
		if level, is := Level(one.held, one.limit); level != one.want || is != one.is {
			t.Errorf("%s: level %d, %v", name, level, is)
		}
	}
}

func TestLevel_IsTheHighestThatFits(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var held []Held
		sum := func(level int64) (total int64) {
			for _, one := range held {
				total += min(one.Size, level)
			}
			return total
		}
		for range 1 + random.IntN(6) {
			held = append(held, Held{Size: random.Int64N(1000)})
		}
		limit := 1 + random.Int64N(2000)
		level, is := Level(held, limit)
		if is != (sum(1000) > limit) || is && (sum(level) > limit || sum(level+1) <= limit) {
			t.Fatalf("%v, limit %d: level %d, %v", held, limit, level, is)
		}
	}
}
