package sweep

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// garbled is a server that speaks something else.
func garbled(context.Context) error {
	return &fault.Terminal{Finding: reason.StoreUnsupported.Of(redis, "its answers are not those of Redis")}
}

// changing is no Redis once, and twice does not answer, again and again.
func changing() func(context.Context) error {
	times := 0
	return func(ctx context.Context) error {
		if times++; times%3 == 1 {
			return garbled(ctx)
		}
		return away(ctx)
	}
}

func TestSweeper_ForsakesNotesADayAfterTheirNamespace(t *testing.T) {
	note := open(1, redis)
	for what, c := range map[string]struct {
		answer func(context.Context) error
		// returns tells that the namespace is made again within the day.
		returns, goes bool
	}{
		"nobody answers":              {answer: away, goes: true},
		"a server that is no Redis":   {answer: garbled, goes: true},
		"a server that changes often": {answer: changing(), goes: true},
		"the namespace is made again": {answer: garbled, returns: true},
	} {
		t.Run(what, func(t *testing.T) {
			run(t, []client.Object{note.ConfigMap("heliostat")}, func(b *bed) {
				b.serve(redis, c.answer)
				b.begin()
				b.pass(48 * time.Hour)
				if kept := b.only(); kept == nil || kept[keyNamespaceGone] != "" || len(b.events.Events) > 0 {
					t.Fatalf("beside its namespace: %v", kept)
				}
				b.delete(team())
				b.pass(23 * time.Hour)
				if kept := b.only(); kept == nil || kept[keyNamespaceGone] == "" {
					t.Fatalf("after 23 hours: %v", kept)
				}
				if c.returns {
					b.create(team())
				}
				b.pass(2 * time.Hour)
				if gone := b.only() == nil; gone != c.goes {
					t.Fatalf("after 25 hours: %v", b.only())
				}
				if !c.goes {
					if b.only()[keyNamespaceGone] != "" || len(b.events.Events) > 0 {
						t.Errorf("left: %v, %d events", b.only(), len(b.events.Events))
					}
					return
				}
				if event := <-b.events.Events; !strings.Contains(event, "StoreKeysLeft") || !strings.Contains(event, "team/c1") || !strings.Contains(event, "redis-cli") {
					t.Errorf("told: %s", event)
				}
			})
		})
	}
}

// A server that cannot be swept in keeps the operator busy every ten minutes at most.
func TestSweeper_TriesHopelessServersSeldom(t *testing.T) {
	note := open(1, redis)
	run(t, []client.Object{note.ConfigMap("heliostat")}, func(b *bed) {
		b.serve(redis, garbled)
		b.begin()
		b.pass(time.Hour)
		if n := len(b.sweeps()); n < 6 || n > 7 {
			t.Errorf("swept %d times in an hour", n)
		}
		b.counts(0, 0, 1, 1)
		b.serve(redis, nil)
		b.pass(stuckPause + every)
		b.nothingLeft(-1)
	})
}

// What a note led to may have been what took the memory: the operator does something else first.
func TestSweeper_WaitsAfterItRanOutOfMemory(t *testing.T) {
	note := open(1, redis)
	for what, c := range map[string]struct {
		ended *corev1.ContainerStateTerminated
		after time.Duration
	}{
		"it ran out of memory":         {&corev1.ContainerStateTerminated{Reason: "OOMKilled"}, calm},
		"it ended for another reason":  {&corev1.ContainerStateTerminated{Reason: "Error"}, 0},
		"it starts for the first time": {nil, 0},
	} {
		t.Run(what, func(t *testing.T) {
			own := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "heliostat", Name: "operator-x"}}
			own.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "operator", LastTerminationState: corev1.ContainerState{Terminated: c.ended}}}
			run(t, []client.Object{note.ConfigMap("heliostat"), own}, func(b *bed) {
				b.begin(func(s *Sweeper) { s.Pod = own.Name })
				if c.after > 0 {
					b.pass(c.after - time.Second)
					if len(b.sweeps()) > 0 {
						t.Error("swept at once")
					}
				}
				b.pass(5 * time.Second)
				b.nothingLeft(1)
			})
		})
	}
}
