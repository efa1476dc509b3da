package services

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll"
)

const (
	// patience is how long a proxy may take to answer: one that takes longer is not ready.
	patience = 2 * time.Second
	// atOnce is how many proxies of a cluster are asked at a time.
	atOnce = 32
	// calm is how often a proxy that answers is asked for a path of the user's at most, which their code answers, while
	// nothing changes. What Serve answers itself costs next to nothing.
	calm = 10 * time.Second
)

// IdlePath is what Serve's proxies answer themselves: no request to an application, which would wake it.
const IdlePath = "/-/healthz"

// askProxies asks proxies, turn after turn until its context ends. A head that does not answer delays none of it.
func (l *poller) askProxies(ctx context.Context, news <-chan struct{}) {
	next := map[Probe]time.Time{} // when each is asked next
	before := map[Probe]Reply{}
	var free time.Time
	for pause := time.Duration(0); l.wait(ctx, pause, news, free); {
		began := l.watch.clock.Now()
		free = began.Add(shortest)
		want := l.wanted()
		pressing := l.pressing.Load() || want.Every <= shortest
		due := slices.DeleteFunc(slices.Clone(want.Probes), func(probe Probe) bool { return began.Before(next[probe]) && !pressing })
		replies := l.probe(ctx, due, before)
		if ctx.Err() != nil {
			return
		}
		maps.DeleteFunc(next, func(probe Probe, _ time.Time) bool { return !slices.Contains(want.Probes, probe) })
		for _, probe := range want.Probes {
			if reply, asked := replies[probe]; asked {
				next[probe] = restOf(probe, reply, l.watch.clock.Now())
			} else if reply, known := before[probe]; known {
				replies[probe] = reply
			}
		}
		before = replies
		l.publishReplies(replies)
		if pause = max(want.Every, shortest); pressing || l.failing.Load() {
			pause = shortest
		}
		pause = poll.Jitter(pause)
	}
}

// restOf returns until when a proxy is left alone: those that answer for the user's code are asked less often, and one by
// one.
func restOf(probe Probe, reply Reply, now time.Time) time.Time {
	if !reply.OK || reply.Times < counted || probe.Path == IdlePath {
		return now
	}
	return now.Add(calm - rand.N(calm/3))
}

// publishReplies gives each service the replies of the proxies that it asks for. They are told together with what their
// head said.
func (l *poller) publishReplies(replies map[Probe]Reply) {
	l.failing.Store(failing(replies))
	l.Amend(func(_ key, want Want, answer Answer) Answer {
		answer.Probes = make(map[Probe]Reply, len(want.Probes))
		for _, probe := range want.Probes {
			if reply, asked := replies[probe]; asked {
				answer.Probes[probe] = reply
			}
		}
		return answer
	})
}

// probe asks proxies, and gives their replies, counted on from those before.
func (l *poller) probe(ctx context.Context, probes []Probe, before map[Probe]Reply) map[Probe]Reply {
	failures := make([]error, len(probes))
	slots := make(chan struct{}, atOnce)
	var asked sync.WaitGroup
	for i, probe := range probes {
		slots <- struct{}{}
		asked.Go(func() {
			defer func() { <-slots }()
			limited, stop := context.WithTimeout(ctx, patience)
			defer stop()
			failures[i] = l.watch.ask(limited, probe)
		})
	}
	asked.Wait()
	now := l.watch.clock.Now()
	replies := make(map[Probe]Reply, len(probes))
	for i, probe := range probes {
		replies[probe] = count(before[probe], failures[i], now)
	}
	return replies
}

// count is a reply after another one of the same proxy, which is zero for the first.
func count(before Reply, failure error, now time.Time) Reply {
	reply := Reply{OK: failure == nil, Since: now, Times: 1}
	if before.Times > 0 && before.OK == reply.OK {
		reply.Since, reply.Times = before.Since, before.Times+1
	}
	if failure != nil {
		reply.Why = headclient.CauseOf(failure)
	}
	return reply
}

// failing reports whether a proxy does not answer as it should.
func failing(replies map[Probe]Reply) bool {
	for _, reply := range replies {
		if !reply.OK {
			return true
		}
	}
	return false
}
