package services

import (
	"slices"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// TestKeptConnectionsAreClosedOnce: it is asked each second until it is done, whatever is lost on
// the way, and not again.
func TestKeptConnectionsAreClosedOnce(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		head.set(func(s *scripted) { s.Faults[closing] = []fault{{Lost: true}, {Err: failure(headclient.Refused)}} })
		want := wanted(nil)
		want.Close.ID, want.Every = "c1", 10*time.Second
		b.Want(cluster, want)
		b.Pass(20 * time.Second)
		answer, _ := b.Last(cluster, "head")
		if answer.Closed != "c1" || answer.Failure != "" || answer.ClosedAt.IsZero() {
			t.Errorf("closed %q at %s, failure %q", answer.Closed, answer.ClosedAt, answer.Failure)
		}
		b.Pass(time.Minute)
		if later, _ := b.Last(cluster, "head"); later.ClosedAt != answer.ClosedAt {
			t.Errorf("closed at %s, and then at %s", answer.ClosedAt, later.ClosedAt)
		}
		head.set(func(s *scripted) {
			if !slices.Equal(s.closes, []string{"c1", "c1"}) {
				t.Errorf("asked for %q", s.closes)
			}
		})
		want.Close.ID = ""
		b.Want(cluster, want)
		b.Pass(10 * time.Second)
		before := head.counts()[serving]
		b.Pass(time.Minute)
		if n := head.counts()[serving] - before; n > 8 {
			t.Errorf("with nothing left to close it is asked %d times a minute", n)
		}
	})
}
