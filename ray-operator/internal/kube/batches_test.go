package kube_test

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
)

var errNo = errors.New("no")

// acts runs n acts of which some fail and gives which were tried, in order of batches.
func acts(n int, fails func(int) bool) (tried []int, errs []error) {
	var mu sync.Mutex
	errs = kube.Batches(n, func(i int) error {
		mu.Lock()
		defer mu.Unlock()
		tried = append(tried, i)
		if fails(i) {
			return errNo
		}
		return nil
	})
	return tried, errs
}

func TestBatches(t *testing.T) {
	for name, test := range map[string]struct {
		n, tried, failed int
		fails            func(int) bool
	}{
		"none":                          {0, 0, 0, func(int) bool { return false }},
		"all well":                      {10, 10, 0, func(int) bool { return false }},
		"the first fails":               {10, 1, 1, func(i int) bool { return i == 0 }},
		"a batch fails as a whole":      {20, 3, 2, func(i int) bool { return i > 0 }},
		"one of a batch fails":          {20, 20, 1, func(i int) bool { return i == 4 }},
		"each batch has one that fails": {7, 7, 2, func(i int) bool { return i == 1 || i == 3 }},
	} {
		t.Run(name, func(t *testing.T) {
			tried, errs := acts(test.n, test.fails)
			failed := 0
			for _, err := range errs {
				if err != nil {
					failed++
				}
			}
			if len(errs) != test.n || len(tried) != test.tried || failed != test.failed {
				t.Errorf("%d results, %d tried, %d failed; want %d, %d, %d", len(errs), len(tried), failed, test.n, test.tried, test.failed)
			}
			slices.Sort(tried)
			if len(slices.Compact(tried)) != test.tried {
				t.Errorf("an act was done twice")
			}
		})
	}
}

// TestBatchesDouble holds back each batch until all of it has begun: it would hang if
// a batch were smaller than 1, 2, 4.
func TestBatchesDouble(t *testing.T) {
	var first, second, third sync.WaitGroup
	first.Add(1)
	second.Add(2)
	third.Add(4)
	batches := []*sync.WaitGroup{&first, &second, &second, &third, &third, &third, &third}
	kube.Batches(len(batches), func(i int) error {
		batches[i].Done()
		batches[i].Wait()
		return nil
	})
}

// TestBatches_LeaveRoomForOthers counts acts under way.
func TestBatches_LeaveRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var under, most atomic.Int32
		kube.Batches(200, func(int) error {
			now := under.Add(1)
			for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
			}
			<-time.After(time.Second)
			under.Add(-1)
			return nil
		})
		if got := most.Load(); got != 4 {
			t.Errorf("%d acts were under way at once, not 4", got)
		}
	})
}

func TestAtOnceDoesAll(t *testing.T) {
	errs := kube.AtOnce(200, func(i int) error {
		if i%2 == 0 {
			return errNo
		}
		return nil
	})
	for i, err := range errs {
		if (err != nil) != (i%2 == 0) {
			t.Errorf("act %d: %v", i, err)
		}
	}
	if len(errs) != 200 {
		t.Errorf("%d results", len(errs))
	}
}
