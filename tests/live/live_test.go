package live

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// reply is a GetAllNodeInfoReply with nodes in these states.
func reply(states ...uint64) []byte {
	message := protowire.AppendTag(nil, 1, protowire.BytesType)
	message = protowire.AppendBytes(message, nil) // its status
	for _, state := range states {
		node := protowire.AppendTag(nil, 1, protowire.BytesType)
		node = protowire.AppendBytes(node, []byte("an id"))
		node = protowire.AppendTag(node, 23, protowire.Fixed64Type)
		node = protowire.AppendFixed64(node, 7)
		node = protowire.AppendTag(node, 13, protowire.BytesType)
		node = protowire.AppendBytes(node, []byte("a pod"))
		if state != 0 {
			node = protowire.AppendTag(node, 7, protowire.VarintType)
			node = protowire.AppendVarint(node, state)
		}
		message = protowire.AppendTag(message, 2, protowire.BytesType)
		message = protowire.AppendBytes(message, node)
	}
	return message
}

func TestAliveCountsNodesThatAreNotDead(t *testing.T) {
	for _, c := range []struct {
		states []uint64
		want   int
	}{{nil, 0}, {[]uint64{0}, 1}, {[]uint64{1}, 0}, {[]uint64{0, 1, 0, 0, 1}, 3}} {
		got, err := alive(reply(c.states...))
		if err != nil || len(got) != c.want || slices.ContainsFunc(got, func(pod string) bool { return pod != "a pod" }) {
			t.Errorf("%v: %v, %v, want %d", c.states, got, err, c.want)
		}
	}
	cut := reply(0, 0)
	if got, err := alive(cut[:len(cut)-3]); err == nil {
		t.Errorf("an answer that was cut short lists %v", got)
	}
}

func FuzzAlive(f *testing.F) {
	f.Add(reply(0, 1))
	f.Add([]byte{0x12, 0xff})
	f.Fuzz(func(t *testing.T, answer []byte) {
		if nodes, err := alive(answer); err == nil && len(nodes)*2 > len(answer) {
			t.Errorf("%d bytes list %d nodes", len(answer), len(nodes))
		}
	})
}

func TestDecodeKeepsTheOrder(t *testing.T) {
	objects, err := Decode([]byte("# a comment\n---\nkind: A\n---\n---\nkind: B\nspec: {n: 1}\n"))
	if err != nil || len(objects) != 2 || objects[0].GetKind() != "A" || objects[1].GetKind() != "B" {
		t.Errorf("decoded %v, %v", objects, err)
	}
	if _, err := Decode([]byte("kind: [")); err == nil {
		t.Error("half a document was decoded")
	}
}

func TestUntilSaysWhatWasSeenLast(t *testing.T) {
	looks := 0
	err := Until(t.Context(), time.Minute, "three looks", func(context.Context) error {
		if looks++; looks < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || looks != 3 {
		t.Errorf("%d looks, %v", looks, err)
	}
	err = Until(t.Context(), 100*time.Millisecond, "rain", func(context.Context) error { return errors.New("sunshine") })
	if err == nil || !strings.Contains(err.Error(), "wait for rain") || !strings.Contains(err.Error(), "sunshine") {
		t.Errorf("the error is %v", err)
	}
}
