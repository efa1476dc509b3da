package controlstore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestReplies: which streams come through.
func TestReplies(t *testing.T) {
	many := func(n int) string { return strings.Repeat(":1\r\n", n) }
	for stream, want := range map[string]error{
		"": nil, "+OK\r\n": nil, "-ERR no\r\n": nil, ":1\r\n": nil, "$-1\r\n": nil, "*-1\r\n": nil, "*0\r\n": nil, "$0\r\n\r\n": nil,
		"$3\r\na\r\n\r\n+OK\r\n": nil, "*2\r\n*0\r\n*1\r\n$1\r\na\r\n+OK\r\n": nil, "*4095\r\n" + many(maxParts-1): nil,
		strings.Repeat("*1\r\n", maxDepth) + ":1\r\n": nil,
		"*4097\r\n": errHuge, "*4096\r\n" + many(maxParts): errHuge, many(maxParts + 1): errHuge,
		strings.Repeat("*1\r\n", maxDepth+1): errHuge, "$1048577\r\n": errHuge, "+" + strings.Repeat("a", maxLine): errHuge,
		"*2\r\n" + bulk(strings.Repeat("a", maxAnswers-1)) + bulk("aaaaaaaaaa"): errHuge,
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

// TestAnswers_AreBoundInSum: whatever a server answers, in place of whichever answer, a question costs little memory.
func TestAnswers_AreBoundInSum(t *testing.T) {
	// Not in parallel: it measures what the process allocates.
	const parts = 1 << 20
	most := uint64(0)
	defer func() { t.Logf("%d KiB at most", most>>10) }()
	for name, bomb := range map[string]string{
		"numbers":            list(strings.Repeat(":1\r\n", parts)),
		"words":              fmt.Sprintf("*%d\r\n", parts) + strings.Repeat("+\r\n", parts),
		"empty texts":        fmt.Sprintf("*%d\r\n", parts) + strings.Repeat("$0\r\n\r\n", parts),
		"empty lists":        strings.Repeat("*4000\r\n"+strings.Repeat("*0\r\n", 4000), parts/4000),
		"lists":              fmt.Sprintf("*%d\r\n", parts/64) + strings.Repeat("*64\r\n"+strings.Repeat("+\r\n", 64), parts/64),
		"deep lists":         strings.Repeat("*1\r\n", parts),
		"a text":             bulk(strings.Repeat("x", 16<<20)),
		"a line":             "+" + strings.Repeat("x", 16<<20) + "\r\n",
		"many answers":       strings.Repeat(":1\r\n", parts),
		"as many as may be":  strings.Repeat("*4095\r\n"+strings.Repeat("+\r\n", maxParts-1), 64),
		"as large as may be": strings.Repeat(bulk(strings.Repeat("x", maxAnswers-100)), 64),
	} {
		for _, command := range []string{"PING", "ACL", "INFO", "HDEL", "CLUSTER", "HMGET", "SCAN", "HSCAN", "HSETNX", "UNLINK"} {
			f := startFake(t, &fake{canned: map[string]string{command: bomb}})
			before := allocated()
			anywhere.Ask(context.Background(), Server{Address: f.address}, claim())
			_, _ = anywhere.Sweep(context.Background(), Server{Address: f.address}, "ns", "uid-1")
			most = max(most, allocated()-before)
			if grown := allocated() - before; grown > 8<<20 {
				t.Errorf("%s in answer to %s: %d KiB", name, command, grown>>10)
			}
		}
	}
}

// allocated returns how many bytes this process has allocated so far.
func allocated() uint64 {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return memory.TotalAlloc
}
