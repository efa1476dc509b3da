package rest

import (
	"slices"
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// For how long what a caller may do in a namespace is told again, and of how many namespaces of all callers together. It
// only says what can be tried: each call asks for its right by itself.
const (
	toldFor = 10 * time.Second
	maxTold = 20_000
)

// permissionsLately remembers what callers may do in namespaces for a short while: a list of namespaces needs a review for
// each. It may be used by many goroutines.
type permissionsLately struct {
	clock clock.PassiveClock
	kept  *lru.Cache
}

func newPermissionsLately(now clock.PassiveClock) *permissionsLately {
	return &permissionsLately{clock: now, kept: lru.New(maxTold)}
}

// set is some of those that a list of namespaces tells of.
type set uint32

func setOf(some []Permission) set {
	var found set
	for i, one := range asked {
		if slices.Contains(some, one) {
			found |= 1 << i
		}
	}
	return found
}

func (s set) permissions() []Permission {
	var found []Permission
	for i, one := range asked {
		if s&(1<<i) != 0 {
			found = append(found, one)
		}
	}
	return found
}

// asking is what was asked: of a caller, a namespace, and beside what the caller has everywhere.
type asking struct {
	caller, namespace string
	everywhere        set
}

type told struct {
	here set
	at   time.Time
}

// find returns what was told lately, or asks.
func (l *permissionsLately) find(of asking, ask func() ([]Permission, error)) ([]Permission, error) {
	if found, is := l.kept.Get(of); is {
		if one, is := found.(told); is && l.clock.Since(one.at) < toldFor {
			return one.here.permissions(), nil
		}
	}
	at := l.clock.Now()
	here, err := ask()
	if err == nil {
		l.kept.Add(of, told{setOf(here), at})
	}
	return here, err
}
