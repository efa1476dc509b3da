package access

import (
	"context"
	"errors"
	"net/http"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
)

const (
	// knownFor is for how long after an answer IdentifyLately and MayLately go by it where nobody answers.
	knownFor = 25 * time.Second
	// waitKnown is how long they wait for a new answer where they could go by an old one.
	waitKnown = time.Second
)

// IdentifyLately identifies as Identify does. Where nobody answers in time, it goes by an answer of the last 25 s, so that an API
// server that is away for a moment, or slow, stops nothing that goes past it.
func (k *Kubernetes) IdentifyLately(ctx context.Context, r *http.Request) (*Caller, error) {
	if k.proxy != nil {
		caller, err := k.proxy.callerOf(r)
		if err != nil || caller != nil {
			return caller, err
		}
	}
	token, err := ParseToken(r.Header)
	if err != nil {
		return nil, err
	}
	key := token.Key()
	if caller, is := k.callers.find(key); is { // nobody is asked, so that nothing needs a time limit
		return caller, nil
	}
	known, is := k.lately.find(key)
	if !is {
		return k.identifyBy(ctx, token, key)
	}
	ctx, cancel := context.WithTimeout(ctx, waitKnown)
	defer cancel()
	caller, err := k.identifyBy(ctx, token, key)
	if isUnanswered(err) && !known.isOver(k.clock.Now()) {
		return known, nil
	}
	return caller, err
}

// MayLately asks as May does. Where nobody answers in time, it goes by a permission of the last 25 s.
func (k *Kubernetes) MayLately(ctx context.Context, c *Caller, what authorizationv1.ResourceAttributes) error {
	key, err := decisionKey(c, what)
	if err != nil {
		return err
	}
	_, isPermitted := k.permitted.find(key)
	_, isDecided := k.decisions.find(key)
	if !isPermitted || isDecided && c.method != MethodAudience { // the latter asks nobody
		return k.recallOrDecide(ctx, c, what, key)
	}
	ctx, cancel := context.WithTimeout(ctx, waitKnown)
	defer cancel()
	if err = k.recallOrDecide(ctx, c, what, key); isUnanswered(err) && !c.isOver(k.clock.Now()) {
		return nil
	}
	return err
}

// isUnanswered reports whether an error is that nobody could be asked.
func isUnanswered(err error) bool {
	return err != nil && !errors.Is(err, ErrUnauthorized) && !errors.Is(err, ErrForbidden)
}
