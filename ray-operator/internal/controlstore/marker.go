package controlstore

import (
	"context"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// marker says whose the keys of a prefix are. It is a hash under the prefix itself, so it
// goes with the keys when somebody empties the Redis.
type marker struct {
	// there tells that there is one, damaged why it cannot be read.
	there   bool
	damaged string

	owner   types.UID
	cluster string
	// session is 0 in a marker of someone who has begun to make the prefix his.
	session, epoch int64
	// found is how many keys the session found there and went on with.
	found int
}

// marker returns that of a claim that was admitted.
func (c Claim) marker(found int) marker {
	return marker{there: true, owner: c.Owner, cluster: clean(c.Cluster), session: c.Session, epoch: c.Epoch, found: found}
}

// marker reads the marker.
func (p prefix) marker(ctx context.Context) (marker, error) {
	replies, err := p.ask(ctx, []any{"HMGET", markerKey(p.namespace), "owner", "cluster", "session", "epoch", "found"})
	if err != nil {
		return marker{}, err
	}
	if words, refused := reply(replies[0].Err()); refused && code(words) == "WRONGTYPE" {
		return marker{there: true, damaged: "its marker is not a hash"}, nil
	}
	if err := p.check(replies); err != nil {
		return marker{}, err
	}
	values, _ := replies[0].Slice()
	if len(values) != 5 {
		return marker{}, problem(reason.StoreUnsupported.Of(p.name(), "HMGET does not answer with as many values as were asked for"))
	}
	return parseMarker(values), nil
}

// parseMarker reads a marker's values: texts, or nil where there is none.
func parseMarker(values []any) marker {
	text := func(i int) string {
		value, _ := values[i].(string)
		return value
	}
	m := marker{owner: types.UID(text(0)), cluster: clean(text(1))}
	for i := range values {
		m.there = m.there || values[i] != nil
	}
	number := func(i int) int64 {
		if text(i) == "" {
			return 0
		}
		value, err := strconv.ParseInt(text(i), 10, 64)
		if err != nil || value < 0 {
			m.damaged = "its marker cannot be read"
		}
		return value
	}
	m.session, m.epoch, m.found = number(2), number(3), int(number(4))
	if m.there && m.owner == "" {
		m.damaged = "its marker names no owner"
	}
	return m
}

// decision is what a marker means for a claim.
type decision struct {
	// refused, if not empty, says why the claim is not admitted, and lost that the reason is
	// that the session's memory is gone. Nothing is changed then.
	refused reason.Finding
	lost    bool
	// seize tells to take over what is another's, sweep to remove what is left of an
	// earlier session, and count to go on with it.
	seize, sweep, count bool
}

// judge decides about a claim. cleanUp is the command that would make room for it.
func judge(claim Claim, m marker, cleanUp reason.Command) decision {
	ours := m.owner == claim.Owner && m.damaged == ""
	foreign := m.there && !ours
	switch {
	case foreign && !claim.Own:
		return decision{refused: reason.StoreInUse.Of(m.holder(), cleanUp)}
	case ours && m.epoch > claim.Epoch:
		who := fmt.Sprintf("this one's own, of epoch %d, and %d was to begin: another operator works on it, or an old state of Kubernetes was restored", m.epoch, claim.Epoch)
		return decision{refused: reason.StoreInUse.Of(who, cleanUp)}
	case ours && m.session == claim.Session:
		return decision{}
	case claim.Begun:
		return decision{refused: reason.StoreDataLost.Of(m.loss(claim, ours)), lost: true}
	case ours && m.session > 0: // nobody goes back to an earlier session but who restores a backup
		return decision{count: true}
	default:
		return decision{seize: foreign, sweep: claim.Session > 1, count: claim.Session == 1}
	}
}

// holder is whose a marker is, for people.
func (m marker) holder() string {
	if m.damaged != "" {
		return m.damaged
	}
	return fmt.Sprintf("%s, UID %s", m.cluster, clean(string(m.owner)))
}

// loss says what is there in place of a session's memory.
func (m marker) loss(claim Claim, ours bool) string {
	switch {
	case !m.there:
		return "the marker of its session is gone"
	case ours:
		return fmt.Sprintf("it holds session %d, not %d", m.session, claim.Session)
	default:
		return "it holds the memory of another cluster (" + m.holder() + ")"
	}
}
