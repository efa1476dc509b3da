package feed

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/portal/access"
)

// How rights are confirmed. A watch whose rights cannot be is over after three rounds, which take at most 28 s.
const (
	confirmEach   = 8 * time.Second
	confirmWithin = 4 * time.Second
	maxUnanswered = 3
	// unsureAfter is after how long without a confirmation nothing is sent: a caller that does not read makes no rounds.
	// A confirmation may be of what access remembers for 10 s.
	unsureAfter = 18 * time.Second
	// wholeEach is each how many rounds everything is asked again, and not only what the caller may see.
	wholeEach = 8
	// askedAtOnce is how many questions of one watcher are on their way.
	askedAtOnce = 8
)

// errUnanswered is that not all rights could be asked for.
var errUnanswered = errors.New("check the caller's rights: no answer")

// mayFunc is a Request's May.
type mayFunc func(ctx context.Context, kind, namespace string) error

// answer is what a round found out. What nobody answered is in no verdict.
type answer struct {
	verdicts     map[view.Place]bool
	began        time.Time
	isRound      bool
	isUnanswered bool
	isNobody     bool
	// cause is an error of those that were no verdicts.
	cause error
}

// rights asks what one caller may see.
type rights struct {
	filter *view.Filter
	may    mayFunc
	clock  clock.PassiveClock
	ctx    context.Context //nolint:containedctx // questions are asked beside the stream that they are of, and end with it
	stop   context.CancelFunc

	answers    chan answer
	isAsking   bool
	fresh      []view.Place
	rounds     int
	unanswered int
	confirmed  time.Time
}

func newRights(ctx context.Context, filter *view.Filter, may mayFunc, now clock.PassiveClock) *rights {
	r := &rights{filter: filter, may: may, clock: now, answers: make(chan answer, 1)}
	r.ctx, r.stop = context.WithCancel(ctx)
	return r
}

// begin asks for everything and waits for the answers.
func (r *rights) begin(open []view.Place) (*view.Reach, error) {
	found := r.survey(&view.Reach{}, open, true)
	reach := &view.Reach{}
	for place, may := range found.verdicts {
		reach.Set(place, may)
	}
	switch {
	case found.isNobody:
		return nil, access.ErrUnauthorized
	case found.isUnanswered:
		return nil, errors.Join(errUnanswered, found.cause)
	case reach.IsEmpty():
		return nil, access.ErrForbidden
	}
	r.confirmed = found.began
	return reach, nil
}

// confirm begins a round, unless one is under way.
func (r *rights) confirm(reach *view.Reach, open []view.Place) {
	if r.isAsking {
		return
	}
	r.rounds++
	isWhole := r.rounds%wholeEach == 0
	r.isAsking = true
	go func() {
		found := r.survey(reach, open, isWhole)
		found.isRound = true
		r.answers <- found
	}()
}

// askFresh asks for places that have lines since a moment ago.
func (r *rights) askFresh(reach *view.Reach) {
	if r.isAsking || len(r.fresh) == 0 {
		return
	}
	fresh := r.fresh
	r.isAsking, r.fresh = true, nil
	go func() {
		began := r.clock.Now()
		found := r.ask(slices.DeleteFunc(fresh, func(place view.Place) bool { return reach.IsWide(place.Kind) }))
		found.began = began
		r.answers <- found
	}()
}

// survey asks for what the caller may see, and if it is whole for all that the caller might. Namespaces are asked
// about one by one only where the right is not to all of them.
func (r *rights) survey(reach *view.Reach, open []view.Place, isWhole bool) answer {
	began := r.clock.Now()
	had := func(place view.Place) bool {
		if place.Namespace == "" {
			return reach.IsWide(place.Kind)
		}
		return reach.Has(place.Kind, place.Namespace)
	}
	found := r.ask(slices.DeleteFunc(r.filter.Asked(), func(place view.Place) bool { return !isWhole && !had(place) }))
	found.began = began
	// Without an answer to the wide question all single ones would be asked, of an API server that has too much to do.
	if !r.filter.IsOpen() || found.isUnanswered || found.isNobody {
		return found
	}
	single := r.ask(slices.DeleteFunc(slices.Clone(open), func(place view.Place) bool {
		isWide, isAsked := found.verdicts[view.Place{Kind: place.Kind}]
		if !isAsked {
			isWide = reach.IsWide(place.Kind)
		}
		return !r.filter.Covers(place) || isWide || !isWhole && !had(place)
	}))
	for place, may := range single.verdicts {
		found.verdicts[place] = may
	}
	found.isUnanswered = found.isUnanswered || single.isUnanswered
	found.isNobody = found.isNobody || single.isNobody
	found.cause = errors.Join(found.cause, single.cause)
	return found
}

// ask asks for places, some at once.
func (r *rights) ask(places []view.Place) answer {
	found := answer{verdicts: make(map[view.Place]bool, len(places))}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(askedAtOnce)
	for _, place := range places {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(r.ctx, confirmWithin)
			defer cancel()
			err := r.may(ctx, place.Kind, place.Namespace)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				found.verdicts[place] = true
			case errors.Is(err, access.ErrForbidden):
				found.verdicts[place] = false
			case errors.Is(err, access.ErrUnauthorized):
				found.isNobody = true
			default:
				found.isUnanswered, found.cause = true, err
			}
			return nil
		})
	}
	_ = group.Wait() // what they return is always nil
	return found
}

// judge takes an answer in, and returns why the watch ends, or nothing.
func (r *rights) judge(found answer) string {
	r.isAsking = false
	switch {
	case found.isNobody:
		return whyNobody
	case !found.isRound:
		return ""
	case !found.isUnanswered:
		r.unanswered, r.confirmed = 0, found.began
		return ""
	}
	if r.unanswered++; r.unanswered >= maxUnanswered {
		return whyUnconfirmed
	}
	return ""
}

// apply returns a reach after an answer. What was not asked stays.
func apply(reach *view.Reach, found answer) *view.Reach {
	next := reach.Clone()
	for place, may := range found.verdicts {
		next.Set(place, may)
	}
	return next
}

// isUnsure reports whether rights were confirmed too long ago to send anything.
func (r *rights) isUnsure() bool { return r.clock.Since(r.confirmed) > unsureAfter }
