package job

import (
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// TestAttend_RenewsNoPermitInVain: a head that does not answer takes no submission, so no read past the cache is made for one.
func TestAttend_RenewsNoPermitInVain(t *testing.T) {
	for name, c := range map[string]struct {
		befalls func(*Seen)
		gist    string
		wake    time.Duration
	}{
		"it answers":             {func(*Seen) {}, "Submitting Submitting ask submit", 4 * time.Second},
		"it is not heard yet":    {func(s *Seen) { s.Heard = false }, "Submitting Submitting ask submit", 4 * time.Second},
		"it failed a moment ago": {silent(4), "Submitting Submitting ask submit", 4 * time.Second},
		"it fails for long":      {silent(5), "Submitting Submitting ask", 25 * time.Second}, // when people are told
		"people were told":       {silent(31), "Submitting HeadUnreachable ask", 0},
		"it has the run":         {says(headclient.JobPending), "Submitting JobPending ask", 0},
	} {
		if plan := decide(train(), seen(bound(), c.befalls)); gist(plan) != c.gist || plan.Wake != c.wake {
			t.Errorf("%s: %s, and again after %s; want %s, and after %s", name, gist(plan), plan.Wake, c.gist, c.wake)
		}
	}
}
