package access

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"
)

// askWithin is how long one question may take, however many callers wait for the answer.
const askWithin = 5 * time.Second

// askedAtOnce is how many questions of a kind are on their way at once. Each of a burst that found no connection free would open
// one, and a handshake costs more than a review.
const askedAtOnce = 64

// errBroken is that a question panicked.
var errBroken = errors.New("the question could not be asked")

// together asks once for all who ask the same at the same time: after a server has ended, all streams of a caller begin at
// another one at once.
type together[V any] struct {
	group  singleflight.Group
	places chan struct{}
}

func newTogether[V any]() *together[V] { return &together[V]{places: make(chan struct{}, askedAtOnce)} }

// ask returns the answer to a question. The question goes on when its first asker does not wait any more.
func (t *together[V]) ask(ctx context.Context, key string, question func(context.Context) (V, error)) (V, error) {
	answers := t.group.DoChan(key, func() (answer any, err error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askWithin)
		defer cancel()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case t.places <- struct{}{}:
		}
		defer func() { <-t.places }()
		defer func() { // the group would end the process
			if cause := recover(); cause != nil {
				answer, err = nil, fmt.Errorf("%w: %v", errBroken, cause)
			}
		}()
		return question(ctx)
	})
	var none V
	select {
	case <-ctx.Done():
		return none, ctx.Err()
	case one := <-answers:
		answer, _ := one.Val.(V)
		return answer, one.Err
	}
}
