package controlstore

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestReplies: which streams come through.
func TestReplies(t *testing.T) {
	many := strings.Repeat(":1\r\n", maxElements)
	for stream, want := range map[string]error{
		"": nil, "+OK\r\n": nil, "-ERR no\r\n": nil, ":1\r\n": nil, "$-1\r\n": nil, "*-1\r\n": nil, "*0\r\n": nil, "$0\r\n\r\n": nil,
		"$3\r\na\r\n\r\n+OK\r\n": nil, "*2\r\n*0\r\n*1\r\n$1\r\na\r\n+OK\r\n": nil, "*65536\r\n" + many + "+OK\r\n": nil,
		strings.Repeat("*1\r\n", maxDepth) + ":1\r\n": nil,
		"*65537\r\n": errHuge, strings.Repeat("*1\r\n", maxDepth+1): errHuge, "$16777217\r\n": errHuge, "+" + strings.Repeat("a", maxLine): errHuge,
		"*2\r\n" + bulk(strings.Repeat("a", maxReply-1)) + bulk("aaaaaaaaaa"): errHuge,
		"HTTP/1.1 400\r\n": errGarbage, "+OK\n": errGarbage, "\r\n": errGarbage, "$a\r\n": errGarbage, "$-2\r\n": errGarbage, "*\r\n": errGarbage,
		"%0\r\n": errGarbage, "_\r\n": errGarbage, ">1\r\n+a\r\n": errGarbage, "*1\r\nx\r\n": errGarbage, "\x15\x03\x01": errTLS,
	} {
		if have := new(replies).feed([]byte(stream)); !errors.Is(have, want) {
			t.Errorf("%.40q: %v instead of %v", stream, have, want)
		}
	}
}

// TestRepliesInPieces: how a stream is cut makes no difference.
func TestRepliesInPieces(t *testing.T) {
	part := rapid.OneOf(rapid.SampledFrom([]string{"+OK\r\n", "$3\r\nabc\r\n", "*2\r\n", "*0\r\n", ":1\r\n", "-ERR\r\n", "$-1\r\n"}), rapid.StringMatching(`[*$+:\r\n0-9a-]{0,6}`))
	rapid.Check(t, func(t *rapid.T) {
		stream := []byte(strings.Join(rapid.SliceOf(part).Draw(t, "parts"), ""))
		whole, pieces := new(replies), new(replies)
		want := whole.feed(stream)
		var have error
		for rest := stream; len(rest) > 0 && have == nil; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			have = pieces.feed(rest[:n])
			rest = rest[n:]
		}
		if !errors.Is(have, want) || want == nil && (pieces.skip != whole.skip || len(pieces.open) != len(whole.open)) {
			t.Errorf("%q: whole %v %+v, in pieces %v %+v", stream, want, whole, have, pieces)
		}
	})
}
