package jobs

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/launcher"
)

// submitted adds a submission of a status that ended some time ago.
func (s *scripted) submitted(id string, status headclient.JobStatus, ago time.Duration) {
	s.set(func(h *scripted) { h.jobs[id] = headclient.Job{ID: id, Status: status, End: time.Now().Add(-ago)} })
}

func (s *scripted) known() string {
	s.Lock()
	defer s.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(s.jobs)), " ")
}

// gone has those submissions forgotten whose ID says so.
func gone(_ context.Context, cluster types.NamespacedName, submission headclient.Job) (bool, error) {
	return cluster == wanted("a", nil).At.Cluster && strings.HasPrefix(submission.ID, "gone"), nil
}

// TestTidy_ForgetsWhatIsAbandoned: once it is over for ten minutes, while a run of any job is wanted.
func TestTidy_ForgetsWhatIsAbandoned(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		b.End()
		b.abandoned = gone
		b.start()
		head := b.head("a:1")
		head.submitted("gone-long", headclient.JobFailed, 11*time.Minute)
		head.submitted("gone-now", headclient.JobSucceeded, 0)
		head.submitted("gone-runs", headclient.JobRunning, time.Hour)
		head.submitted("kept", headclient.JobStopped, time.Hour)
		for _, id := range []string{"gone-long", "gone-runs", "kept"} {
			head.says(id, launcher.Ended, 1)
		}
		b.Pass(time.Hour)
		if have := head.known(); have != "gone-long gone-now gone-runs kept" {
			t.Errorf("a head of which nothing is wanted knows %s", have)
		}
		b.Want(name("a"), wanted("a", nil))
		b.Pass(30 * time.Minute)
		if have := head.known(); have != "gone-runs kept run-of-a" {
			t.Errorf("it knows %s", have)
		}
		if reports := slices.Sorted(maps.Keys(head.reports)); !slices.Equal(reports, []string{"gone-runs", "kept"}) {
			t.Errorf("it has reports of %s", reports)
		}
		b.Forget(name("a"))
	})
}

// TestTidy_IsSeldomAndDelaysNoRun: a head is asked for all that it knows each quarter of an hour, however many jobs come
// and go; and one that hangs then still takes submissions.
func TestTidy_IsSeldomAndDelaysNoRun(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		b.End()
		b.abandoned = gone
		b.start()
		head := b.head("a:1")
		for range 60 {
			b.Want(name("a"), wanted("a", nil))
			b.Pass(time.Minute)
			b.Forget(name("a"))
			b.Pass(time.Second)
		}
		lists := 0
		for _, verb := range head.Verbs() {
			if verb == listAll {
				lists++
			}
		}
		if lists < 3 || lists > 5 {
			t.Errorf("asked for all submissions %d times in an hour", lists)
		}
	})
}
