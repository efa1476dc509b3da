package jobs

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// How submissions of jobs that are gone are forgotten.
const (
	// tidyEvery is how often a head is asked for all of them, which has Ray read each.
	tidyEvery = 15 * time.Minute
	// tidyAfter is how long one stays after its end, for those who look at it in Ray's dashboard.
	tidyAfter = 10 * time.Minute
)

// Abandoned reports whether a submission is one of a job that is gone for certain.
type Abandoned func(ctx context.Context, cluster types.NamespacedName, submission headclient.Job) (bool, error)

// tidy has a head forget what was submitted for jobs that are gone, now and then while anything is wanted of it.
func (a *asker) tidy(ctx context.Context, _ <-chan struct{}) {
	w := a.watch
	for {
		if _, err := a.Pause(ctx, max(0, w.untidy(a.Key.head).Sub(w.clock.Now())), nil); err != nil {
			return
		}
		if err := w.forgetAbandoned(ctx, a); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Info("Cannot delete submissions of deleted jobs", "cluster", a.Key.cluster, "why", err.Error())
		}
		if ctx.Err() == nil {
			w.tidied(a.Key.head)
		}
	}
}

// untidy returns when a head is asked next. It outlives those who ask: each may end before it is due.
func (w *Watch) untidy(head types.UID) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	for other, due := range w.tidyDue {
		if other != head && now.Sub(due) > tidyEvery {
			delete(w.tidyDue, other)
		}
	}
	if _, known := w.tidyDue[head]; !known {
		w.tidyDue[head] = now.Add(rand.N(time.Minute)) // an operator that starts does not ask all heads at once
	}
	return w.tidyDue[head]
}

func (w *Watch) tidied(head types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tidyDue[head] = w.clock.Now().Add(tidyEvery)
}

func (w *Watch) forgetAbandoned(ctx context.Context, a *asker) (err error) {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case w.tidying <- struct{}{}:
	}
	defer func() { <-w.tidying }()
	head, err := w.dial(a.Key.place(a.Token.Token()))
	if err != nil {
		return err
	}
	defer func() {
		a.Token.Heard(err)
		err = errors.Join(err, head.Close())
	}()
	if _, err := head.Session(ctx); err != nil {
		return err
	}
	all, err := head.List(ctx)
	if err != nil {
		return err
	}
	for _, submission := range all {
		if err := w.forget(ctx, a, head, submission); err != nil {
			return err
		}
	}
	return nil
}

// forget has a head forget a submission, if it is over for long and abandoned. That the head would not is an answer.
func (w *Watch) forget(ctx context.Context, a *asker, head Head, submission headclient.Job) error {
	if !submission.Status.Over() || w.clock.Since(submission.End) < tidyAfter {
		return nil
	}
	if gone, err := w.abandoned(ctx, a.Key.cluster, submission); err != nil || !gone {
		return err
	}
	log.FromContext(ctx).Info("Deleting a submission of a deleted job", "id", submission.ID, "cluster", a.Key.cluster, "head", a.Key.head)
	if err := head.Forget(ctx, submission.ID); !answers(err) {
		return err
	}
	return nil
}
