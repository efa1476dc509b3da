// Package limits bounds what goes on at once, for each user, for each namespace of service accounts, for each target and for all
// of them.
//
// In: whose something is. Out: a place until it is given back, a turn until it is over, or which bound is reached.
//
// It must never count a user by a token, of which anybody has as many as they like, nor let those who have much under way take
// the last places from who has little.
package limits

import (
	"errors"
	"sync"
)

// Bounds of what goes on at once. A watch takes about 80 KiB, so all of them fit into what the chart gives a server.
const (
	MaxStreams      = 2000
	MaxStreamsEach  = 100
	maxRequests     = 500
	maxRequestsEach = 100
)

// Errors of Take.
var (
	ErrCallerFull = errors.New("the caller has as much under way as it may")
	// ErrNamespaceFull is of service accounts: who may create one may create many.
	ErrNamespaceFull = errors.New("the service accounts of the caller's namespace have as much under way as they may together")
	ErrTargetFull    = errors.New("as much as may is under way for the same cluster or service")
	ErrServerFull    = errors.New("the server has as much under way as it can")
)

// Holder is whose a place is, and what for.
type Holder struct {
	// User is a user by name and UID. Where it is empty nobody knows who they are: all such callers have the places of one.
	User string
	// Namespace is that of a service account; empty of other users.
	Namespace string
	// Target is what the place is for, such as a cluster; empty is nothing of which there is a bound.
	Target string
}

// For returns the holder with a target.
func (h Holder) For(target string) Holder {
	h.Target = target
	return h
}

// Bounds are how many places there are: in all, for each user, for the service accounts of each namespace, and for each target.
// 0 is that there is no bound but what Take leaves to others: to one namespace at most half of all.
type Bounds struct{ All, User, Namespace, Target int }

// Limiter counts what goes on at once, by whose it is. It may be used by many goroutines.
type Limiter struct {
	bounds Bounds

	mutex sync.Mutex
	by    map[share]int
	taken int
}

// share is a part of a holder that has a count of its own.
type share struct{ of, name string }

// NewStreams returns the limiter of what goes on until it is ended: watches, and output that is followed.
func NewStreams() *Limiter { return New(Bounds{All: MaxStreams, User: MaxStreamsEach}) }

// NewRequests returns the limiter of what ends by itself.
func NewRequests() *Limiter { return New(Bounds{All: maxRequests, User: maxRequestsEach}) }

// New returns a limiter with bounds.
func New(bounds Bounds) *Limiter { return &Limiter{bounds: bounds, by: map[share]int{}} }

// counted is a share of a holder with its bound.
type counted struct {
	share
	most int
	err  error
	// leaves is that it leaves as many places to others as it has.
	leaves bool
}

func (l *Limiter) sharesOf(holder Holder) []counted {
	all := []counted{{share{"user", holder.User}, l.bounds.User, ErrCallerFull, true}}
	if holder.Namespace != "" {
		all = append(all, counted{share{"namespace", holder.Namespace}, l.bounds.Namespace, ErrNamespaceFull, true})
	}
	if holder.Target != "" {
		all = append(all, counted{share{"target", holder.Target}, l.bounds.Target, ErrTargetFull, false})
	}
	return all
}

// Take takes a place until it is given back. Nobody takes more than they leave free: who has much under way while others do gets
// no further place long before the last one is taken, so that who has nothing finds one.
func (l *Limiter) Take(holder Holder) (giveBack func(), err error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	shares, free := l.sharesOf(holder), l.bounds.All-l.taken
	if l.bounds.All > 0 && free <= 0 {
		return nil, ErrServerFull
	}
	for _, one := range shares {
		have := l.by[one.share]
		if one.most > 0 && have >= one.most {
			return nil, one.err
		}
		if one.leaves && l.bounds.All > 0 && have >= free {
			return nil, ErrServerFull
		}
	}
	for _, one := range shares {
		l.by[one.share]++
	}
	l.taken++
	return func() { l.giveBack(shares) }, nil
}

func (l *Limiter) giveBack(shares []counted) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.taken--
	for _, one := range shares {
		if l.by[one.share]--; l.by[one.share] == 0 {
			delete(l.by, one.share)
		}
	}
}

// Count returns how many are taken.
func (l *Limiter) Count() int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.taken
}
