package sidecar

import (
	"fmt"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/decision"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
)

// BenchmarkRound is what a round takes without the head and without a decision, with workers
// that are all at work.
func BenchmarkRound(b *testing.B) {
	for _, count := range []int{3, 2_000, 10_000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			var pods []protocol.Pod
			var nodes []headclient.Node
			for i := range count {
				uid := fmt.Sprint("pod-", i)
				one := node(1, uid, headclient.Running, 0)
				one.ID = headclient.NodeID{1, byte(i), byte(i >> 8)}
				pods, nodes = append(pods, ordered(uid, protocol.Ready, time.Hour)), append(nodes, one)
			}
			m, now := NewMemory(), time.Duration(0)
			b.ReportAllocs()
			for b.Loop() {
				now += time.Second
				s := look(seen(now, pods, nodes...))
				m.learn(s)
				in := m.input(s)
				m.decision(s, in, decision.Result{})
				m.report(s, in, decision.Result{})
				m.tally(s, in)
			}
		})
	}
}
