package archive

import (
	"time"

	"github.com/heliostat-dev/heliostat/history/wire"
)

// allowance is how many bytes may come, of so many a second. It saves up what a second brings, and no more.
type allowance struct {
	rate  int64 // 0 is no bound
	saved int64 // in thousandths of a byte
	at    int64
}

// refill brings an allowance to a time in milliseconds.
func (a *allowance) refill(now int64) {
	passed := min(max(now-a.at, 0), 1000)
	a.saved, a.at = min(a.saved+passed*a.rate, 1000*a.rate), now
}

// left returns how many of so many bytes may come.
func (a *allowance) left(want int) int {
	if a.rate == 0 {
		return want
	}
	return min(want, int(a.saved/1000))
}

func (a *allowance) take(bytes int) { a.saved -= 1000 * int64(bytes) }

// rateWait is how long a collector waits that has used up what its pod or namespace may send.
const rateWait = 100 * time.Millisecond

// Room gives what the spool has left for the namespace, at the rate of the pod and of the namespace.
func (i *intake) Room(want int) (int, time.Duration) {
	a, namespace := i.cluster.archive, i.source.Namespace
	left := a.left(namespace)
	again := rateWait
	if left < int64(want) {
		want, again = int(left), fullWait
		if left < wire.NarrowRoom {
			want = 0 // crumbs would break the streams that use them
		}
	}
	now := a.settings.Now()
	a.mutex.Lock()
	defer a.mutex.Unlock()
	all := a.rates[namespace]
	if all == nil {
		all = newAllowance(a.settings.NamespaceRate, now)
		a.rates[namespace] = all
	}
	i.rate.refill(now)
	all.refill(now)
	granted := all.left(i.rate.left(want))
	i.rate.take(granted)
	all.take(granted)
	if granted < want {
		again = rateWait
	}
	return granted, again
}

// newAllowance returns one that has saved up a second.
func newAllowance(rate, now int64) *allowance {
	return &allowance{rate: rate, saved: 1000 * rate, at: now}
}

// dropRates forgets namespaces that sent nothing for a second: their allowances are full.
func (a *Archive) dropRates() {
	now := a.settings.Now()
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for namespace, one := range a.rates {
		if now-one.at >= 1000 {
			delete(a.rates, namespace)
		}
	}
}
