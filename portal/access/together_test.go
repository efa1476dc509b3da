package access

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestTogether_AsksOnceForAll who ask the same, and again for who asks later.
func TestTogether_AsksOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := newTogether[int]()
		var questions atomic.Int32
		answered := make(chan struct{})
		question := func(ctx context.Context) (int, error) {
			questions.Add(1)
			<-answered
			return 7, ctx.Err()
		}
		var all sync.WaitGroup
		gone, leave := context.WithCancel(t.Context())
		all.Go(func() {
			if _, err := asked.ask(gone, "a", question); !errors.Is(err, context.Canceled) {
				t.Errorf("who does not wait gets %v", err)
			}
		})
		synctest.Wait()
		for range 20 {
			all.Go(func() {
				if answer, err := asked.ask(t.Context(), "a", question); answer != 7 || err != nil {
					t.Errorf("the answer is %d, %v", answer, err)
				}
			})
		}
		leave()
		synctest.Wait()
		close(answered)
		all.Wait()
		if questions.Load() != 1 {
			t.Errorf("all together ask %d times", questions.Load())
		}
		if _, err := asked.ask(t.Context(), "a", question); err != nil || questions.Load() != 2 {
			t.Errorf("who asks later asks %d times in all: %v", questions.Load(), err)
		}
	})
}

// TestTogether_KeepsFewOnTheirWay, whatever they are about.
func TestTogether_KeepsFewOnTheirWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := newTogether[int]()
		var now, all atomic.Int32
		answered := make(chan struct{})
		var askers sync.WaitGroup
		for i := range 3 * askedAtOnce {
			askers.Go(func() {
				_, err := asked.ask(t.Context(), strconv.Itoa(i), func(context.Context) (int, error) {
					all.Add(1)
					now.Add(1)
					defer now.Add(-1)
					<-answered
					return 0, nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if now.Load() != askedAtOnce {
			t.Errorf("%d are on their way at once", now.Load())
		}
		close(answered)
		askers.Wait()
		if all.Load() != 3*askedAtOnce {
			t.Errorf("%d are asked in all", all.Load())
		}
	})
}

// TestTogether_SurvivesAPanic: a single question must not end the server.
func TestTogether_SurvivesAPanic(t *testing.T) {
	asked := newTogether[int]()
	if _, err := asked.ask(t.Context(), "a", func(context.Context) (int, error) { panic("x") }); !errors.Is(err, errBroken) {
		t.Errorf("it is %v", err)
	}
}
