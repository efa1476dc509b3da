package controlstore

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// How a prefix is gone through. Redis does one thing at a time, so what it does for us in
// one go is what others wait for.
const (
	// scanned is how many keys Redis looks at in one go, matching or not: 0.3 ms.
	scanned = 1000
	// unlinked is how many keys go in one go: 0.2 ms. What is large is freed in a thread of
	// Redis' own.
	unlinked = 200
	// breath is left to others each time.
	breath = time.Millisecond
	// looked is how many times keys are scanned to count those of a prefix: two million
	// keys. The count is for people, and a Redis may have many more keys of others.
	looked = 2000
)

// Sweep removes all keys of a namespace that is the owner's or nobody's, the marker last,
// and tells how many. Where the namespace is another's by now it touches nothing and fails
// with StoreInUse: a sweep whose last answer was lost may come back when somebody else has
// begun there. When it was cut off, the next one goes on with what is left. Its error
// carries a finding (package fault); it takes as long as the server needs, in steps of
// milliseconds.
func (c Client) Sweep(ctx context.Context, server Server, namespace string, owner types.UID) (int, error) {
	if err := usable(namespace); err != nil {
		return 0, err
	}
	l, err := connect(ctx, c.errand(server, namespace))
	if err != nil {
		return 0, err
	}
	defer l.close()
	p := prefix{l}
	if err := p.seize(ctx, owner); err != nil {
		return 0, err
	}
	removed, err := p.sweep(ctx)
	if err != nil {
		return removed, err
	}
	return removed, p.do(ctx, "UNLINK", markerKey(namespace))
}

// prefix is the keys of a namespace in the store that a connection leads to, and the marker of whose they are.
type prefix struct{ *connection }

// seize makes a prefix that is nobody's the owner's, so that nobody begins there while it is
// swept. It fails if the prefix is another's.
func (p prefix) seize(ctx context.Context, owner types.UID) error {
	m, err := p.marker(ctx)
	if err == nil && !m.there {
		var won bool
		won, err = p.first(ctx, Claim{Owner: owner})
		if won || isFull(err) { // where there is no room for our marker, there is none for another's
			return nil
		}
		if err == nil {
			m, err = p.marker(ctx)
		}
	}
	nobodys := !m.there || m.damaged != "" && m.owner == ""
	if err != nil || nobodys || m.owner == owner {
		return err
	}
	return problem(reason.StoreInUse.Of(m.holder(), cleanUp(p.server, p.place, p.namespace)))
}

// sweep removes all keys of the prefix but the marker.
func (p prefix) sweep(ctx context.Context) (int, error) {
	removed := 0
	err := p.each(ctx, func(keys []string) (bool, error) {
		for batch := range slices.Chunk(keys, unlinked) {
			// One by one: in a Redis Cluster, a command's keys must be of one slot.
			commands := make([][]any, len(batch))
			for i, key := range batch {
				commands[i] = []any{"UNLINK", key}
			}
			replies, err := act(ctx, p.connection, commands...)
			if err != nil {
				return false, err
			}
			for _, command := range replies {
				gone, _ := command.Int()
				removed += gone
			}
			if err := p.pause(ctx); err != nil {
				return false, err
			}
		}
		return true, nil
	})
	return removed, err
}

// count counts the keys of the prefix that are not ours.
func (p prefix) count(ctx context.Context) (int, error) {
	found, scans := 0, 0
	err := p.each(ctx, func(keys []string) (bool, error) {
		found += len(keys)
		scans++
		return scans < looked, nil
	})
	return found, err
}

// each gives all keys of the prefix but our own two, some twice, until do has enough.
func (p prefix) each(ctx context.Context, do func(keys []string) (bool, error)) error {
	prefix, marker, scratch := naming.StorePrefix(p.namespace), markerKey(p.namespace), scratchKey(p.namespace)
	for cursor := "0"; ; {
		keys, next, err := p.scan(ctx, cursor)
		if err != nil {
			return err
		}
		// What begins otherwise is another's, whatever the server takes our pattern for.
		keys = slices.DeleteFunc(keys, func(key string) bool {
			return !strings.HasPrefix(key, prefix) || key == marker || key == scratch
		})
		if more, err := do(keys); err != nil || !more || next == "0" {
			return err
		}
		if err := p.pause(ctx); err != nil {
			return err
		}
		cursor = next
	}
}

// scan gives some keys of the prefix, and where to go on; "0" is the end.
func (p prefix) scan(ctx context.Context, cursor string) ([]string, string, error) {
	replies, err := p.ask(ctx, []any{"SCAN", cursor, "MATCH", pattern(p.namespace), "COUNT", scanned})
	if err == nil {
		err = p.check(replies)
	}
	if err != nil {
		return nil, "", err
	}
	strange := problem(reason.StoreUnsupported.Of(p.name(), "SCAN does not answer with a cursor and keys"))
	parts, _ := replies[0].Slice()
	if len(parts) != 2 {
		return nil, "", strange
	}
	next, _ := parts[0].(string)
	texts, isList := parts[1].([]any)
	if _, err := strconv.ParseUint(next, 10, 64); err != nil || !isList {
		return nil, "", strange
	}
	keys := make([]string, 0, len(texts))
	for _, text := range texts {
		key, isText := text.(string)
		if !isText {
			return nil, "", strange
		}
		keys = append(keys, key)
	}
	return keys, next, nil
}

// pause lets others in.
func (p prefix) pause(ctx context.Context) error {
	timer := time.NewTimer(breath)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return p.wrong("SCAN", ctx.Err())
	}
}
