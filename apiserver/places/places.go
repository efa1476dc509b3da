// Package places bounds what goes on at once, for each caller and for all of them.
//
// In: the keys of callers. Out: a place until it is given back, or which bound is reached.
//
// It must never let a caller's places be taken by another one.
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
	ErrServerFull = errors.New("the server has as much under way as it can")
)

// Places counts what goes on at once, by whose it is. It may be used by many goroutines.
type Places struct {
	each, all int

	mutex sync.Mutex
	by    map[string]int
	taken int
}

// NewStreams returns the places of what goes on until it is ended: watches, and output that is followed.
func NewStreams() *Places { return newPlaces(MaxStreamsEach, MaxStreams) }

// NewRequests returns the places of what ends by itself.
func NewRequests() *Places { return newPlaces(maxRequestsEach, maxRequests) }

func newPlaces(each, all int) *Places { return &Places{each: each, all: all, by: map[string]int{}} }

// Take takes a place until it is given back.
func (p *Places) Take(key string) (giveBack func(), err error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.by[key] >= p.each {
		return nil, ErrCallerFull
	}
	if p.taken >= p.all {
		return nil, ErrServerFull
	}
	p.by[key]++
	p.taken++
	return func() { p.giveBack(key) }, nil
}

func (p *Places) giveBack(key string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.taken--
	if p.by[key]--; p.by[key] == 0 {
		delete(p.by, key)
	}
}

// Count returns how many are taken.
func (p *Places) Count() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.taken
}
