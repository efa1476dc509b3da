package testkit

import (
	"errors"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/client"
)

// Scaler stands in for the autoscalers beside all heads and, as a client.Source, for the
// streams to them.
type Scaler struct {
	// Says is what an autoscaler makes of its snapshot; nil is none that was ever heard.
	Says func(protocol.Snapshot) protocol.Decision
	// Away: no stream is up.
	Away bool

	world *World
	// wanted and heard are what the operator wants and what it knows; they go with its process.
	wanted map[types.NamespacedName]client.Target
	heard  map[types.NamespacedName]client.Answer
}

func newScaler(w *World) *Scaler {
	s := &Scaler{world: w}
	s.restart()
	return s
}

// restart forgets what the operator's process knew.
func (s *Scaler) restart() {
	s.wanted, s.heard = map[types.NamespacedName]client.Target{}, map[types.NamespacedName]client.Answer{}
}

// Want is client.Source's.
func (s *Scaler) Want(name types.NamespacedName, target client.Target) {
	if s.wanted[name].Head != target.Head {
		delete(s.heard, name)
	}
	s.wanted[name] = target
}

// Forget is client.Source's.
func (s *Scaler) Forget(name types.NamespacedName) {
	delete(s.wanted, name)
	delete(s.heard, name)
}

// Last is client.Source's.
func (s *Scaler) Last(name types.NamespacedName, head types.UID) (client.Answer, bool) {
	answer, ok := s.heard[name]
	return answer, ok && s.wanted[name].Head == head
}

// step lets all autoscalers speak that have something new to say, and wakes the operator.
func (s *Scaler) step() bool {
	changed := false
	for _, name := range slices.SortedFunc(maps.Keys(s.wanted), byName) {
		before, known := s.heard[name]
		after := s.answer(name, before)
		if after == nil || known && alike(before, *after) {
			continue
		}
		s.heard[name] = *after
		s.world.due[request{clusterKind, name}] = s.world.Clock.Now()
		changed = true
	}
	return changed
}

// answer is what is known of an autoscaler now, nil while there is nothing to know.
func (s *Scaler) answer(name types.NamespacedName, before client.Answer) *client.Answer {
	target, now := s.wanted[name], s.world.Clock.Now()
	up := slices.ContainsFunc(s.world.podsOf(name), func(pod *corev1.Pod) bool { return pod.UID == target.Head && isReady(pod) })
	switch {
	case s.Says == nil:
		return nil
	case s.Away || !up:
		before.Connected, before.Failure, before.Err = false, headclient.Unavailable, errors.New("connection refused")
		if before.FailingSince.IsZero() {
			before.FailingSince = now
		}
		return &before
	}
	decision := s.Says(target.Snapshot)
	decision.Head = string(target.Head)
	return &client.Answer{Decision: decision, At: now, Connected: true}
}

// alike reports whether two answers mean the same: when one came does not matter.
func alike(a, b client.Answer) bool {
	return a.Connected == b.Connected && a.Failure == b.Failure && a.FailingSince.Equal(b.FailingSince) && reflect.DeepEqual(a.Decision, b.Decision)
}
