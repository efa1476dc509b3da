package rest

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/heliostat-dev/heliostat/apiserver/feed"
	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/problem"
)

// How long a call waits for an object that the API server has and the view does not know yet, and how often it looks.
const (
	knownWithin = 5 * time.Second
	knownEach   = 50 * time.Millisecond
)

// await waits until the view knows an object that the caller may see. A caller that has created one on another replica, or a
// moment ago, finds it here. What is not there at all is a Problem at once.
func (v *reviewer) await(ctx context.Context, key view.Key) error {
	switch {
	case knows(v.View, key):
		return nil
	case !v.View.IsSynced():
		return ofView(feed.ErrUnready)
	}
	caller, err := callerOf(ctx)
	if err != nil {
		return err
	}
	of := access.ObjectName{Resource: view.Resource(key.Kind), Namespace: key.Namespace, Name: key.Name}
	_, err = v.Access.FindObject(ctx, caller, of)
	if err != nil {
		if p := problem.Of(err); p.Code == http.StatusNotFound || p.Code == http.StatusForbidden {
			return missing(key)
		}
		return fmt.Errorf("find what was asked for: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, knownWithin)
	defer cancel()
	ticker := v.Clock.NewTicker(knownEach)
	defer ticker.Stop()
	for !knows(v.View, key) {
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return problem.New(http.StatusServiceUnavailable, "ServiceUnavailable",
				"the server does not know the object yet", "try again").Later(time.Second)
		}
	}
	return nil
}

// missing returns that an object is not there.
func missing(key view.Key) *problem.Problem {
	detail := fmt.Sprintf("%s %s is not there", view.Resource(key.Kind), key.Name)
	return problem.New(http.StatusNotFound, "NotFound", detail, "look at the list of them")
}

func knows(all *view.View, key view.Key) bool {
	_, _, is := all.Find(key)
	return is
}
