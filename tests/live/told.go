package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ToldEntry is the name under which specs report a Told.
const ToldEntry = "told"

// Told is how a cause was told of.
type Told struct {
	// Cause is what was done, in words; Of the head or workers.
	Cause string `json:"cause"`
	Of    string `json:"of"`
	// Reason and Message are the condition's.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Seconds from when Kubernetes showed the cause.
	Seconds float64 `json:"seconds"`
}

// String is the measure in one line.
func (t Told) String() string {
	return fmt.Sprintf("%.1f s: %s, of the %s: %s: %s", t.Seconds, t.Cause, t.Of, t.Reason, t.Message)
}

// Sighting is the first object seen that was looked for.
type Sighting struct {
	Object client.Object
	At     time.Time
	err    error
}

var errWatchEnded = errors.New("the API server ended the watch")

// Sight watches a kind in a namespace from now on, and gives a function that waits for
// the first object, of those there or to come, that matches. The watch ends with the context.
func (c *Cluster) Sight(ctx context.Context, namespace string, list client.ObjectList, match func(client.Object) bool) (
	func(ctx context.Context, limit time.Duration, what string) (Sighting, error), error,
) {
	watch, err := c.Watch(ctx, list, client.InNamespace(namespace))
	if err != nil {
		return nil, fmt.Errorf("watch %T in %s: %w", list, namespace, err)
	}
	found := make(chan Sighting, 1)
	go func() {
		defer watch.Stop()
		for event := range watch.ResultChan() {
			if object, ok := event.Object.(client.Object); ok && match(object) {
				found <- Sighting{Object: object, At: time.Now()}
				return
			}
		}
		found <- Sighting{err: errWatchEnded}
	}()
	return func(ctx context.Context, limit time.Duration, what string) (Sighting, error) {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		select {
		case sighting := <-found:
			if sighting.err != nil {
				return sighting, fmt.Errorf("wait for %s: %w", what, sighting.err)
			}
			return sighting, nil
		case <-timer.C:
			return Sighting{}, fmt.Errorf("wait for %s: not seen in %s", what, limit)
		case <-ctx.Done():
			return Sighting{}, fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
		}
	}, nil
}
