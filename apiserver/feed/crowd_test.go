package feed

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/heliostat-dev/heliostat/apiserver/view"
)

// crowd returns a server with lines, and watchers that have them.
func crowd(t testing.TB, lines, watchers int) (*store, *replica, []*Watch) {
	t.Helper()
	world := newStore()
	for i := range lines {
		world.put(newCluster(fmt.Sprint("team-", i%50), fmt.Sprint("c", i), "Ready"))
	}
	server := newReplica(t, world, clocktesting.NewFakeClock(time.Unix(1e9, 0)))
	watches := make([]*Watch, watchers)
	for i := range watches {
		rights := may{{Kind: view.Clusters, Namespace: fmt.Sprint("team-", i%50)}: true}
		if i%2 == 0 {
			rights = everything()
		}
		one, err := server.feed.Watch(t.Context(), Request{May: rights.ask})
		if err != nil {
			t.Fatal(err)
		}
		watches[i] = one
		drain(one)
	}
	return world, server, watches
}

// drain reads all that there is, and returns how many bytes that were.
func drain(one *Watch) int {
	size := 0
	for event, ok := one.Poll(); ok; event, ok = one.Poll() {
		size += len(event.Encoded()) + len(event.ID)
	}
	return size
}

// TestWatch_IsSmall: 64 KiB for each watcher, whether it reads or not.
func TestWatch_IsSmall(t *testing.T) {
	heap := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	world, server, watches := crowd(t, 1000, 200)
	for range 300 {
		world.put(newCluster("team-1", fmt.Sprint("c", 1+50*rand.IntN(20)), "Starting"))
		server.deliverAll(t)
	}
	for _, one := range watches[:100] {
		drain(one)
	}
	with := heap()
	count := uint64(len(watches))
	for i := range watches {
		watches[i].Close()
		watches[i] = nil
	}
	each := (with - min(with, heap())) / count
	t.Logf("%d bytes for each watcher", each)
	if each > 64<<10 {
		t.Errorf("a watcher takes %d bytes", each)
	}
	runtime.KeepAlive(server)
}

// BenchmarkFeed_Crowd is a window of twenty changes for a thousand watchers: at 100 changes per second, a fifth of a
// second.
func BenchmarkFeed_Crowd(b *testing.B) {
	world, server, watches := crowd(b, 5000, 1000)
	phase := 0
	for b.Loop() {
		phase++
		for range 20 {
			number := rand.IntN(5000)
			world.put(newCluster(fmt.Sprint("team-", number%50), fmt.Sprint("c", number), fmt.Sprint(phase)))
		}
		server.deliverAll(b)
		for _, one := range watches {
			drain(one)
		}
	}
}
