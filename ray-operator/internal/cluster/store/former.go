package store

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// unreachableGrace is for how long a head whose node does not answer is still waited for
// after it was to end, where nothing but the node could stop it from writing.
const unreachableGrace = 30 * time.Second

// Head is the head of an earlier epoch.
type Head struct {
	*corev1.Pod
	// HasFinished: what ran in it has ended.
	HasFinished bool
	// IsNodeKnown: its node is there. NodeLost is since when that is not ready, zero if it is. IsNodeOff: somebody has
	// declared that nothing runs on it any more.
	IsNodeKnown, IsNodeOff bool
	NodeLost               time.Time
}

// IsFreshSession reports whether a session begins that is not the cluster's first.
func (s *Situation) IsFreshSession() bool {
	return Exists(s.Cluster) && s.Session > 1 && s.Session == s.Epoch && s.Head == nil
}

// Obstacle returns why no head must be made now, nil if one may.
func (s *Situation) Obstacle() *reason.Finding {
	if !Exists(s.Cluster) {
		return nil
	}
	state := s.Assess()
	if former := s.Writer(); former != nil && (!s.isCutOff() || s.IsFreshSession()) {
		held := s.explainFormer(*former)
		return &held
	}
	volume := s.Seen.Volume
	mayBind := !InRedis(s.Cluster) && volume.Presence == reconcile.Ours && volume.Phase != corev1.ClaimLost && volume.HeldBy == ""
	if state.Serves || mayBind { // a claim may wait for its first pod
		return nil
	}
	return &state.Finding
}

// Writer returns a head of an earlier epoch that may still write, nil if there is none.
func (s *Situation) Writer() *Head {
	for i := range s.Former {
		if old := &s.Former[i]; !s.isHarmless(*old) {
			return old
		}
	}
	return nil
}

// isHarmless reports whether a former head writes no more: what ran in it has ended, its node is declared to be off, or
// it has been waited for long enough.
func (s *Situation) isHarmless(old Head) bool {
	if old.HasFinished || old.IsNodeOff {
		return true
	}
	wait, ends := s.Patience(old)
	return ends && wait <= 0
}

// Patience returns for how long a former head is still waited for, false if there is no end to that. There is one
// only for a Redis of the user's, where its node does not answer: somebody has to go on. docs/control-store.md says
// what that does not guarantee.
func (s *Situation) Patience(old Head) (time.Duration, bool) {
	answers := old.IsNodeKnown && old.NodeLost.IsZero() // so it will say when the pod has ended
	if old.DeletionTimestamp == nil || !InRedis(s.Cluster) || IsManaged(s.Cluster) || answers {
		return 0, false
	}
	return old.DeletionTimestamp.Add(unreachableGrace).Sub(s.Now), true
}

// isCutOff reports whether former heads can write no more although they may run: the operator's
// own Redis takes away their users before it admits the next one.
func (s *Situation) isCutOff() bool {
	verdict, known := s.Verdict()
	return IsManaged(s.Cluster) && known && verdict.Admitted
}

// lostNode returns the lost node of a former head that may still write to the volume, empty if there
// is none.
func (s *Situation) lostNode() string {
	if old := s.Writer(); old != nil && !old.NodeLost.IsZero() {
		return old.Spec.NodeName
	}
	return ""
}

// explainFormer returns that a former head is waited for.
func (s *Situation) explainFormer(old Head) reason.Finding {
	switch node := old.Spec.NodeName; {
	case old.NodeLost.IsZero():
		return reason.HeadRecovering.Of(naming.Pod(s.Cluster.Name, s.Cluster.UID, naming.Place{Epoch: s.Epoch}))
	case InRedis(s.Cluster):
		return reason.OldHeadRemains.Of(old.Name, node, node)
	default:
		return reason.VolumeHeldByLostNode.Of(node, node)
	}
}
