package decision

import (
	"slices"
	"testing"
)

func graded(grades ...int) queue {
	var q queue
	for _, grade := range grades {
		q = append(q, candidate{grade: grade})
	}
	return q
}

// A candidate sinks below its own two children only, or thousands would be looked at each time.
func TestQueue_SinksBelowChildrenAlone(t *testing.T) {
	for at := range 7 {
		q := graded(0, 5, 1, 6, 7, 2, 3)
		q.sink(at)
		checkExact(t, graded(0, 5, 1, 6, 7, 2, 3), q)
	}
	q := graded(9, 5, 1, 6, 7, 2, 3)
	q.sink(0)
	checkExact(t, graded(1, 5, 2, 6, 7, 9, 3), q)
}

func TestQueue_TakesTheBestUntilItIsEmpty(t *testing.T) {
	q := graded(3, 1, 2)
	q.order()
	var got []int
	for next, ok := q.pop(); ok; next, ok = q.pop() {
		got = append(got, next.grade)
	}
	if next, ok := q.pop(); ok || next != (candidate{}) || !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("it gives %d, then %v", got, next)
	}
}
