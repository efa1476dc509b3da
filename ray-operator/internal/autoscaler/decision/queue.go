package decision

// queue is candidates as a heap: of thousands that fit a few are taken mostly.
type queue []candidate

func (q queue) order() {
	for at := len(q)/2 - 1; at >= 0; at-- {
		q.sink(at)
	}
}

// pop takes the best.
func (q *queue) pop() (candidate, bool) {
	all := *q
	if len(all) == 0 {
		return candidate{}, false
	}
	best := all[0]
	last := len(all) - 1
	all[0] = all[last]
	*q = all[:last]
	q.sink(0)
	return best, true
}

func (q queue) sink(at int) {
	for {
		least := at
		for child := 2*at + 1; child <= 2*at+2 && child < len(q); child++ {
			if q[child].before(&q[least]) {
				least = child
			}
		}
		if least == at {
			return
		}
		q[at], q[least] = q[least], q[at]
		at = least
	}
}
