package sidecar

import (
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
)

// patience is for how long workers are waited for that Kubernetes calls ready and a new
// head does not know yet: Ray's own raylets reconnect within it.
const patience = 60 * time.Second

// settling is whether the head that answers knows its workers. Its first answer, one of a
// new session, one whose version has fallen back, and one after a failure may be those of a
// head that has just begun: what it says of idle workers counts when all have come back.
type settling struct {
	heard, doubted, over bool
	since                time.Time
	session              string
	version              int64
}

// doubt has the next answer taken for a new head's.
func (s *settling) doubt() { s.doubted, s.over = true, false }

// renewed reports whether the head that answers is surely not the one that answered last: it
// has to be told again what it was told.
func (s *settling) renewed(now *sight) bool {
	d := &now.Demand
	return !s.heard || d.Session != s.session || d.Version <= s.version
}

func (s *settling) settle(now *sight, leaving map[string]leave) {
	if s.renewed(now) || s.doubted {
		s.since, s.over = now.Now, false
	}
	s.heard, s.doubted = true, false
	s.session, s.version = now.Demand.Session, now.Demand.Version
	s.over = s.over || now.Now.Sub(s.since) >= patience || complete(now, leaving)
}

// complete reports whether each pod that is ready is a node, those apart that were told to go.
func complete(now *sight, leaving map[string]leave) bool {
	for uid, i := range now.pods {
		_, joined := now.nodes[uid]
		_, goes := leaving[uid]
		if now.Snapshot.Pods[i].Stage == protocol.Ready && !joined && !goes {
			return false
		}
	}
	return true
}
