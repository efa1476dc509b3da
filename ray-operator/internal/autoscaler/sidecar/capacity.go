package sidecar

import (
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
)

// longest is for how long a group is passed over at most, unless its own timeout is longer.
const longest = 10 * time.Minute

// capacity is whether machines are found for a group's workers.
type capacity struct {
	// progress is when the last worker joined that was waited for, or when the group was
	// taken up again.
	progress time.Time
	// failures in a row, each passing it over for twice as long as the one before.
	failures int
	// from and until are when it was last passed over.
	from, until time.Time
	// lacking is how many workers waited then.
	lacking int
}

// backlog is how many pods of a group wait for a machine, and since when the first does.
type backlog struct {
	count int
	since time.Time
}

// waiting are the lines of all groups. Pods on their way out are in none.
func (s *sight) waiting() map[string]backlog {
	lines := map[string]backlog{}
	for uid, i := range s.pods {
		pod := &s.Snapshot.Pods[i]
		if _, joined := s.nodes[uid]; joined || pod.Stage != protocol.Waiting {
			continue
		}
		l := lines[pod.Group]
		if l.count++; l.count == 1 || pod.Since.Before(l.since) {
			l.since = pod.Since
		}
		lines[pod.Group] = l
	}
	return lines
}

func (c *capacity) learn(ordered protocol.Group, l backlog, joined bool, now time.Time) {
	switch timeout := ordered.CapacityTimeout; {
	case timeout <= 0 || ordered.Suspended:
		*c = capacity{}
	case joined:
		*c = capacity{progress: now}
	case c.passed(now) || l.count == 0:
	case now.Sub(latest(l.since, c.progress, c.until)) >= timeout:
		pause := min(timeout<<min(c.failures, 20), max(timeout, longest))
		if pause <= 0 { // shifted out of its range
			pause = max(timeout, longest)
		}
		c.failures, c.lacking = c.failures+1, l.count
		c.from, c.until = now, now.Add(pause)
	}
}

// passed reports whether the group is passed over.
func (c *capacity) passed(now time.Time) bool { return now.Before(c.until) }

func latest(times ...time.Time) time.Time {
	var last time.Time
	for _, at := range times {
		if at.After(last) {
			last = at
		}
	}
	return last
}
