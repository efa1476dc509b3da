package controlstore

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/turns"
)

// Visitor asks one server about one claim; a Visit is the one for real stores.
type Visitor interface {
	// Ask finds out whether the server can serve the claim, and admits it if so.
	Ask(ctx context.Context) Verdict
	// Confirm reports, at little cost, whether what admitted the claim still holds.
	Confirm(ctx context.Context) bool
	// Close ends what is kept between two questions.
	Close()
}

// Visiting returns a Visitor of a server.
type Visiting func(server Server, claim Claim) Visitor

// Watch asks stores while it is started.
type Watch struct {
	*poll.Set[types.NamespacedName, key, Target, Verdict]
	visit Visiting
	turns *turns.Turns
	clock clock.Clock
}

// key is one store, asked about one claim.
type key struct {
	cluster types.NamespacedName
	claim   Claim
}

// New makes a Watch, which asks nothing until it is started. Each question takes a turn of its cluster's namespace.
func New(visit Visiting, turns *turns.Turns, clock clock.Clock) *Watch {
	w := &Watch{visit: visit, turns: turns, clock: clock}
	w.Set = poll.New(poll.Rules[types.NamespacedName, key, Target, Verdict]{
		Loops: func(at *endpoint) []poll.Loop { return []poll.Loop{(&asker{endpoint: at, watch: w}).run} },
		Owner: func(cluster types.NamespacedName) types.NamespacedName { return cluster },
		Says: func(before, after Target, _ Verdict) bool { // two functions that read a server cannot be compared
			return before.Every != after.Every || before.Generation != after.Generation
		},
		Outlives: func(before, after Target, known Verdict) bool {
			return known.Admitted && begins(before.Claim, after.Claim)
		},
		HasNews: func(before, after Verdict) bool { return before != after },
	}, clock)
	return w
}

// begins reports whether all that is new in a claim is that its head was made. What admitted the head then still holds
// until the store was asked again.
func begins(before, after Claim) bool {
	before.Begun = true
	return before == after
}

// Want implements Source. The same claim again changes how the store is reached and how often it is asked, and nothing
// of what is known.
func (w *Watch) Want(cluster types.NamespacedName, target Target) {
	w.Set.Want(cluster, key{cluster, target.Claim}, target)
}

// Last implements Source. It holds while the store is asked again.
func (w *Watch) Last(cluster types.NamespacedName, claim Claim) (Verdict, bool) {
	target, verdict, heard := w.Set.Last(cluster)
	if !heard || target.Claim != claim {
		return Verdict{}, false
	}
	return verdict, true
}
