package controlstore

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// admitClaim finds out whether the server can serve a claim, and admits it if so. brief ends what takes no long removal.
func admitClaim(ctx, brief context.Context, l *connection, claim Claim) (Verdict, error) {
	p := prefix{l}
	if err := p.probe(brief); err != nil {
		return Verdict{}, err
	}
	m, err := p.marker(brief)
	if err != nil {
		return Verdict{}, err
	}
	next := judge(claim, m, cleanUp(l.server, l.place, claim.Namespace))
	if next.refused.Code != "" {
		return Verdict{Finding: next.refused, Lost: next.lost}, nil
	}
	if l.server.HeadPassword != "" {
		if err := p.fence(brief, claim); err != nil {
			return Verdict{}, err
		}
	}
	l.outlive(ctx)
	return p.admit(ctx, claim, m, next)
}

// outlive ties the connection to another context than the one that it was made with.
func (l *connection) outlive(ctx context.Context) {
	l.release()
	l.release = context.AfterFunc(ctx, func() { _ = l.guard.Conn.Close() })
}

// usable refuses a namespace that would make a prefix of others' keys as well. Ray refuses
// an @ too.
func usable(namespace string) error {
	if namespace == "" || strings.Contains(namespace, "@") {
		return problem(reason.StoreUnsupported.Of("its address", "a namespace must not be empty, nor hold an @"))
	}
	return nil
}

// admit makes the prefix the claim's. The owner is written first and in one step that only
// one can win, so that two clusters never go on with, or remove, the same keys.
func (p prefix) admit(ctx context.Context, claim Claim, m marker, next decision) (Verdict, error) {
	found := m.found
	if next.sweep || next.count || next.seize {
		if err := p.own(ctx, claim, m, next.seize); err != nil {
			return Verdict{}, err
		}
		found = 0
	}
	if next.sweep {
		if err := p.clear(ctx); err != nil {
			return Verdict{}, err
		}
	}
	if next.count {
		var err error
		if found, err = p.count(ctx); err != nil {
			return Verdict{}, err
		}
	}
	if want := claim.marker(found); want != m {
		brief, cancel := context.WithTimeout(ctx, p.total)
		defer cancel()
		if err := p.do(brief, "HSET", markerKey(p.namespace), "owner", string(want.owner), "cluster", want.cluster,
			"session", want.session, "epoch", want.epoch, "found", want.found); err != nil {
			return Verdict{}, err
		}
	}
	return Verdict{Finding: reason.StoreServes.Of("Redis " + p.version + " at " + p.name()), Admitted: true, Holds: found}, nil
}

// do does one command, and fails if it is refused.
func (l *connection) do(ctx context.Context, words ...any) error {
	_, err := act(ctx, l, words)
	return err
}

// own writes the owner into the marker, unless somebody else was first.
func (p prefix) own(ctx context.Context, claim Claim, m marker, seize bool) error {
	brief, cancel := context.WithTimeout(ctx, p.total)
	defer cancel()
	key := markerKey(p.namespace)
	switch {
	case seize: // session 0 lets whatever happens next begin again from here
		return p.together(brief, []any{"DEL", key}, []any{"HSET", key, "owner", string(claim.Owner), "cluster", clean(claim.Cluster)})
	case m.there:
		return nil
	}
	won, err := p.first(brief, claim)
	if err != nil || won {
		return err
	}
	if m, err = p.marker(brief); err != nil {
		return err
	}
	if m.owner == claim.Owner { // another operator of ours
		return nil
	}
	return problem(reason.StoreInUse.Of(m.holder(), cleanUp(p.server, p.place, p.namespace)))
}

// together does commands in one go, and fails if any is refused.
func (l *connection) together(ctx context.Context, commands ...[]any) error {
	_, err := act(ctx, l, commands...)
	return err
}

// first makes a claim's owner that of a prefix that has none, and reports whether it did.
func (p prefix) first(ctx context.Context, claim Claim) (bool, error) {
	replies, err := act(ctx, p.connection, []any{"HSETNX", markerKey(p.namespace), "owner", string(claim.Owner)})
	if err != nil {
		return false, err
	}
	won, _ := replies[0].Int64()
	return won == 1, nil
}

// errLong is why clear ends before all is removed.
var errLong = errors.New("the removal takes long")

// clear removes what an earlier session has left, all but the marker. Its limit ends it between two commands: as a
// deadline of the connection it could be taken for a server that does not answer.
func (p prefix) clear(ctx context.Context) error {
	long, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer time.AfterFunc(p.clearing, func() { cancel(errLong) }).Stop()
	_, err := p.sweep(long)
	if err != nil && errors.Is(context.Cause(long), errLong) {
		return problem(reason.StoreStarting.Of("what an earlier session left is being removed"))
	}
	return err
}
