package volume

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// boundKept and pendingKept are for how long an answer about a claim is kept: one that is bound stays so, and one that is
	// not, or not there, is what people wait for.
	boundKept, pendingKept = time.Minute, 4 * time.Second
	// dropAfter is when nobody asks for an answer any more.
	dropAfter = 3 * time.Minute
)

// GivenClaims remembers the claims that users name, which no cache holds. The zero value is ready.
type GivenClaims struct {
	mu    sync.Mutex
	known map[types.NamespacedName]knownClaim
	swept time.Time
}

type knownClaim struct {
	at    time.Time
	claim *corev1.PersistentVolumeClaim // nil for none
}

// Of returns a claim as it was at most a minute ago, nil where there was none. It is not to be changed.
func (g *GivenClaims) Of(name types.NamespacedName, now time.Time, read func() (*corev1.PersistentVolumeClaim, error)) (*corev1.PersistentVolumeClaim, error) {
	g.mu.Lock()
	known, isKnown := g.known[name]
	g.mu.Unlock()
	if isKnown && now.Sub(known.at) < keptFor(known.claim) {
		return known.claim, nil
	}
	claim, err := read()
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known == nil {
		g.known = map[types.NamespacedName]knownClaim{}
	}
	g.sweep(now)
	g.known[name] = knownClaim{now, claim}
	return claim, nil
}

func keptFor(claim *corev1.PersistentVolumeClaim) time.Duration {
	if claim != nil && claim.DeletionTimestamp == nil && claim.Status.Phase == corev1.ClaimBound {
		return boundKept
	}
	return pendingKept
}

// sweep drops what nobody asks for any more. The caller holds the lock.
func (g *GivenClaims) sweep(now time.Time) {
	if now.Sub(g.swept) < dropAfter {
		return
	}
	g.swept = now
	for name, known := range g.known {
		if now.Sub(known.at) > dropAfter {
			delete(g.known, name)
		}
	}
}
