package serving

import (
	"context"
	"sync"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

const (
	// patience is how long a proxy may take to answer: one that takes longer is not ready.
	patience = 2 * time.Second
	// atOnce is how many proxies of a cluster are asked at a time.
	atOnce = 32
)

// probe asks proxies, and gives their replies, counted on from those before.
func (l *lookout) probe(ctx context.Context, probes []Probe, before map[Probe]Reply) map[Probe]Reply {
	if len(probes) == 0 {
		return nil
	}
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
