package turns_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/turns"
)

// queue is a test's view of who has got a place, in order.
type queue struct {
	t     *testing.T
	turns *turns.Turns
	order []string
	backs []func()
}

// ask has namespaces ask for a place, NAMESPACE@SERVER, and waits until it has one or waits for it.
func (q *queue) ask(namespaces ...string) {
	for _, namespace := range namespaces {
		of, at, _ := strings.Cut(namespace, "@")
		go func() {
			back, err := q.turns.Take(q.t.Context(), of, at)
			if err == nil {
				q.order, q.backs = append(q.order, namespace), append(q.backs, back)
			}
		}()
		synctest.Wait()
	}
}

// giveBack gives back the place that was taken as the i-th.
func (q *queue) giveBack(i int) {
	q.backs[i]()
	synctest.Wait()
}

func (q *queue) expect(want ...string) {
	q.t.Helper()
	if !slices.Equal(q.order, want) {
		q.t.Errorf("turns: %v, want %v", q.order, want)
	}
}

func TestTake_WhoHoldsLeastGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{t: t, turns: turns.New(2, 4)}
		q.ask("greedy@a", "greedy@a", "greedy@a", "modest@a")
		q.expect("greedy@a", "greedy@a")
		q.giveBack(0)
		q.expect("greedy@a", "greedy@a", "modest@a")
		q.giveBack(2)
		q.expect("greedy@a", "greedy@a", "modest@a", "greedy@a")
	})
}

func TestTake_NobodyHoldsMoreThanAShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{t: t, turns: turns.New(9, 4)}
		q.ask("greedy@a", "greedy@a", "greedy@a", "greedy@b", "greedy@b", "greedy@c", "modest@a")
		q.expect("greedy@a", "greedy@a", "greedy@b", "greedy@b", "modest@a")
		q.giveBack(2)
		q.expect("greedy@a", "greedy@a", "greedy@b", "greedy@b", "modest@a", "greedy@c")
		q.giveBack(0)
		q.expect("greedy@a", "greedy@a", "greedy@b", "greedy@b", "modest@a", "greedy@c", "greedy@a")
	})
}

// TestTake_LosesNoPlace: all places come back, also from those that give up waiting, and no share is passed.
func TestTake_LosesNoPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		places, share := rapid.IntRange(1, 4).Draw(t, "places"), rapid.IntRange(2, 3).Draw(t, "share")
		all := turns.New(places, share)
		held := map[string][]func(){}
		count, servers := 0, 0
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				namespace := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "namespace")
				servers++ // another each time
				ctx, cancel := context.WithCancel(context.Background())
				if count >= places || len(held[namespace]) >= share {
					cancel()
				}
				back, err := all.Take(ctx, namespace, fmt.Sprint(servers))
				cancel()
				switch {
				case count >= places || len(held[namespace]) >= share:
					if !errors.Is(err, context.Canceled) {
						t.Fatalf("%d of %d places are held, %d of them by %s, and it has another: %v", count, places, len(held[namespace]), namespace, err)
					}
				case err != nil:
					t.Fatal(err)
				default:
					held[namespace] = append(held[namespace], back)
					count++
				}
			},
			"give back": func(t *rapid.T) {
				for namespace, backs := range held {
					if len(backs) > 0 {
						backs[0]()
						held[namespace] = backs[1:]
						count--
						return
					}
				}
			},
		})
	})
}
