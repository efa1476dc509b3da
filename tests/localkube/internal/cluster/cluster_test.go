package cluster

import (
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/instance"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/progress"
)

func TestLock_RefusesAnInstanceOfAnotherCheckout(t *testing.T) {
	mine, theirs := t.TempDir(), t.TempDir()
	for name, c := range map[string]struct {
		owner, asks string
		isRefused   bool
	}{
		"its own":              {mine, mine, false},
		"another's":            {theirs, mine, true},
		"one that was removed": {filepath.Join(theirs, "gone"), mine, false},
		"nobody's":             {"", mine, false},
		"outside of any":       {theirs, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			i, err := instance.New(t.TempDir(), "x")
			if err != nil {
				t.Fatal(err)
			}
			if err := i.Store(instance.State{Checkout: c.owner}); err != nil {
				t.Fatal(err)
			}
			cluster := &Cluster{Instance: i, Checkout: c.asks, Log: progress.New(io.Discard, time.Now())}
			for range 2 { // what is refused holds no lock
				lock, err := cluster.lock()
				if lock != nil {
					lock.Release()
				}
				isRefused := err != nil && strings.Contains(err.Error(), theirs) && strings.Contains(err.Error(), "INSTANCE=NAME")
				if isRefused != c.isRefused || (err == nil) != (lock != nil) {
					t.Errorf("the lock is %v: %v", lock, err)
				}
			}
		})
	}
}
