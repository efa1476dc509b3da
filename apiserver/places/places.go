// Package places bounds what goes on at once, for each user, for each namespace of service accounts, for each target and for all
// of them.
//
// In: whose something is. Out: a place until it is given back, a turn until it is over, or which bound is reached.
//
// It must never count a user by a token, of which anybody has as many as they like, nor let those who have much under way take
// the last places from who has little.
package places

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

// Places counts what goes on at once, by whose it is. It may be used by many goroutines.
type Places struct {
	bounds Bounds

	mutex sync.Mutex
	by    map[share]int
	taken int
}

// share is a part of a holder that has a count of its own.
type share struct{ of, name string }

// NewStreams returns the places of what goes on until it is ended: watches, and output that is followed.
func NewStreams() *Places { return New(Bounds{All: MaxStreams, User: MaxStreamsEach}) }

// NewRequests returns the places of what ends by itself.
func NewRequests() *Places { return New(Bounds{All: maxRequests, User: maxRequestsEach}) }

// New returns places.
func New(bounds Bounds) *Places { return &Places{bounds: bounds, by: map[share]int{}} }

// counted is a share of a holder with its bound.
type counted struct {
	share
	most int
	err  error
	// leaves is that it leaves as many places to others as it has.
	leaves bool
}

func (p *Places) sharesOf(holder Holder) []counted {
	all := []counted{{share{"user", holder.User}, p.bounds.User, ErrCallerFull, true}}
	if holder.Namespace != "" {
		all = append(all, counted{share{"namespace", holder.Namespace}, p.bounds.Namespace, ErrNamespaceFull, true})
	}
	if holder.Target != "" {
		all = append(all, counted{share{"target", holder.Target}, p.bounds.Target, ErrTargetFull, false})
	}
	return all
}

// Take takes a place until it is given back. Nobody takes more than they leave free: who has much under way while others do gets
// no further place long before the last one is taken, so that who has nothing finds one.
func (p *Places) Take(holder Holder) (giveBack func(), err error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	shares, free := p.sharesOf(holder), p.bounds.All-p.taken
	if p.bounds.All > 0 && free <= 0 {
		return nil, ErrServerFull
	}
	for _, one := range shares {
		have := p.by[one.share]
		if one.most > 0 && have >= one.most {
			return nil, one.err
		}
		if one.leaves && p.bounds.All > 0 && have >= free {
			return nil, ErrServerFull
		}
	}
	for _, one := range shares {
		p.by[one.share]++
	}
	p.taken++
	return func() { p.giveBack(shares) }, nil
}

func (p *Places) giveBack(shares []counted) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.taken--
	for _, one := range shares {
		if p.by[one.share]--; p.by[one.share] == 0 {
			delete(p.by, one.share)
		}
	}
}

// Count returns how many are taken.
func (p *Places) Count() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.taken
}
