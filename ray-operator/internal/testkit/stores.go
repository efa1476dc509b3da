package testkit

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/controlstore"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Stores stands in for the Redis of all clusters and, as a controlstore.Source, for who
// asks them.
type Stores struct {
	// Down says why no Redis serves, nil while all do.
	Down *reason.Finding

	world *World
	// marks are what the Redis remember, by the UID of clusters; they outlive the operator.
	marks map[types.UID]mark
	// wanted and heard are what the operator wants and what it knows; they go with its process.
	wanted map[types.NamespacedName]controlstore.Claim
	heard  map[types.NamespacedName]said
}

// mark is a store's marker.
type mark struct{ session, epoch int64 }

// said is a verdict with the claim that it is about.
type said struct {
	claim   controlstore.Claim
	verdict controlstore.Verdict
}

func newStores(w *World) *Stores {
	s := &Stores{world: w, marks: map[types.UID]mark{}}
	s.restart()
	return s
}

// restart forgets what the operator's process knew.
func (s *Stores) restart() {
	s.wanted, s.heard = map[types.NamespacedName]controlstore.Claim{}, map[types.NamespacedName]said{}
}

// Flush makes every Redis forget everything.
func (s *Stores) Flush() { clear(s.marks) }

// Want is controlstore.Source's.
func (s *Stores) Want(name types.NamespacedName, target controlstore.Target) {
	s.wanted[name] = target.Claim
}

// Forget is controlstore.Source's.
func (s *Stores) Forget(name types.NamespacedName) {
	delete(s.wanted, name)
	delete(s.heard, name)
}

// Last is controlstore.Source's.
func (s *Stores) Last(name types.NamespacedName, claim controlstore.Claim) (controlstore.Verdict, bool) {
	last, ok := s.heard[name]
	return last.verdict, ok && last.claim == claim
}

// step lets every Redis answer that has something new to say, and wakes the operator.
func (s *Stores) step() bool {
	changed := false
	for _, name := range slices.SortedFunc(maps.Keys(s.wanted), byName) {
		claim := s.wanted[name]
		now := said{claim, s.verdict(claim)}
		if s.heard[name] == now {
			continue
		}
		s.heard[name] = now
		s.world.due[request{clusterKind, name}] = s.world.Clock.Now()
		changed = true
	}
	return changed
}

// noted checks that it is written down whose keys are in a Redis of a user's before it is
// marked: a cluster may go before its first head comes.
func (s *Stores) noted(claim controlstore.Claim) {
	key := types.NamespacedName{Namespace: "heliostat", Name: naming.StoreNote(claim.Owner)}
	if err := s.world.server.Get(s.world.Ctx, key, &corev1.ConfigMap{}); err != nil && !claim.Own {
		s.world.History.mu.Lock()
		defer s.world.History.mu.Unlock()
		s.world.History.fault("the Redis of %s was asked, and nothing tells that its keys are there: %v", claim.Cluster, err)
	}
}

// verdict is what a Redis says of a claim, by the rules of docs/design/control-store.md.
func (s *Stores) verdict(claim controlstore.Claim) controlstore.Verdict {
	kept, marked := s.marks[claim.Owner]
	switch {
	case s.Down != nil:
		return controlstore.Verdict{Finding: *s.Down}
	case kept.epoch > claim.Epoch:
		return controlstore.Verdict{Finding: reason.StoreInUse.Of("a later epoch of "+claim.Cluster, "wait")}
	case claim.Begun && (!marked || kept.session != claim.Session):
		return controlstore.Verdict{Finding: reason.StoreDataLost.Of("its marker is gone"), Lost: true}
	}
	s.noted(claim)
	s.marks[claim.Owner] = mark{claim.Session, claim.Epoch}
	return controlstore.Verdict{Finding: reason.StoreServes.Of("redis"), Admitted: true}
}
