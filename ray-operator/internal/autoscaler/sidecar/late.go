package sidecar

import (
	"cmp"
	"slices"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
)

const (
	// lateAfter is after how long a pod is late that has a machine, or last was a node.
	lateAfter = 15 * time.Minute
	// longestRenewal is the longest pause between replacements in a group of which nothing starts.
	longestRenewal = 4 * time.Hour
	// alike is how many of a group's newest workers must have failed in the same way for it not to grow.
	alike = 3
)

// late reports whether a pod should have become a node long ago. How long it may wait for a machine is its group's
// matter: it keeps its place in a queue of machines. Workers of a head that has just begun have not forgotten how
// to join.
func (m *Memory) late(s *sight, uid string) bool {
	known := m.pods[uid]
	return m.settling.over && s.pod(uid).Stage != protocol.Waiting && s.Now.Sub(latest(known.met, known.started, known.joined)) >= lateAfter
}

// renewal paces how a group's late pods are replaced. While nothing of the group starts, one at a time is, with
// pauses that double.
type renewal struct {
	// joined is when a worker joined last that was waited for.
	joined time.Time
	// failures is how many were replaced since then, until the time before which no other one is.
	failures int
	until    time.Time
}

func (r *renewal) learn(joined bool, now time.Time) {
	if joined {
		*r = renewal{joined: now}
	}
}

// grant is how many of a group's late pods may be replaced now: all, where others have started meanwhile.
func (r *renewal) grant(now time.Time) int {
	switch {
	case !r.joined.IsZero() && now.Sub(r.joined) < lateAfter:
		return 1<<31 - 1
	case now.Before(r.until):
		return 0
	}
	r.until = now.Add(min(lateAfter<<min(r.failures, 10), longestRenewal))
	r.failures++
	return 1
}

// renew chooses the late pods that are replaced, whole replicas, those first that have been late for longest.
func (m *Memory) renew(s *sight) {
	byGroup, renewing := map[string][]string{}, map[string]bool{}
	for uid := range s.pods {
		pod := s.pod(uid)
		switch {
		case m.groups[pod.Group] == nil || pod.Stage == protocol.Leaving || s.node(uid) != nil:
		case m.pods[uid].replace:
			renewing[pod.Group] = true
		case m.late(s, uid):
			byGroup[pod.Group] = append(byGroup[pod.Group], uid)
		}
	}
	for group, uids := range byGroup {
		if renewing[group] || !s.Listening {
			continue
		}
		slices.SortFunc(uids, func(a, b string) int {
			return cmp.Or(m.pods[a].met.Compare(m.pods[b].met), cmp.Compare(a, b))
		})
		for _, uid := range uids[:min(len(uids), m.groups[group].renewal.grant(s.Now))] {
			m.pods[uid].replace = true
		}
	}
}

// failure is how the newest workers of a group all failed, how many of them, and when the first and the last of them
// were made.
type failure struct {
	how         string
	count       int
	first, last time.Time
}

// failing are the groups whose newest workers all failed in the same way. Those that have neither joined nor failed
// yet say nothing.
func (m *Memory) failing(s *sight) map[string]failure {
	judged := map[string][]*protocol.Pod{}
	for uid, i := range s.pods {
		if pod := &s.Snapshot.Pods[i]; m.worked(uid) || pod.Stage == protocol.Starting && pod.Why != "" {
			judged[pod.Group] = append(judged[pod.Group], pod)
		}
	}
	all := map[string]failure{}
	for group, pods := range judged {
		slices.SortFunc(pods, func(a, b *protocol.Pod) int { return cmp.Or(b.Since.Compare(a.Since), cmp.Compare(a.UID, b.UID)) })
		if f := m.failure(pods); f.count >= alike {
			all[group] = f
		}
	}
	return all
}

// worked reports whether a pod is or was a node of Ray's.
func (m *Memory) worked(uid string) bool { return !m.pods[uid].joined.IsZero() }

// failure is how the first of the pods failed, and how many after it failed likewise.
func (m *Memory) failure(pods []*protocol.Pod) failure {
	var f failure
	for _, pod := range pods {
		if m.worked(pod.UID) || f.count > 0 && pod.Why != f.how {
			break
		}
		if f.count == 0 {
			f.how, f.last = pod.Why, pod.Since
		}
		f.count, f.first = f.count+1, pod.Since
	}
	return f
}

// failed tells Ray of the groups that do not grow because their workers fail.
func (m *Memory) failed(s *sight) []headclient.Failed {
	var all []headclient.Failed
	failing := m.failing(s)
	for _, ordered := range s.Snapshot.Groups {
		if f, found := failing[ordered.Name]; found {
			all = append(all, headclient.Failed{
				Type: ordered.Name, Count: f.count, Since: f.first, Until: f.last, Reason: "the newest workers fail: " + f.how,
			})
		}
	}
	return all
}
