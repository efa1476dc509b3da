package controlstore

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/redistest"
)

var keys = flag.Int("keys", 20000, "how many keys TestOthersDoNotWait removes")

// TestSweepSparesOthers: whatever two namespaces are called, sweeping one leaves the other
// whole, and of the one nothing.
func TestSweepSparesOthers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	name := rapid.OneOf(rapid.SampledFrom([]string{"a", "a:b", "b", "a*", "*", "?", "[ab]", "[^a]", `\*`, `a\`, "a-b", "RAYa"}), rapid.StringMatching(`[-ab:*?\[\]\\^ /._]{1,4}`))
	rapid.Check(t, func(t *rapid.T) {
		s.Do("FLUSHALL")
		swept := name.Draw(t, "swept")
		others := rapid.SliceOfNDistinct(name.Filter(func(other string) bool { return other != swept }), 1, 4, rapid.ID[string]).Draw(t, "others")
		var want []string
		for _, other := range others {
			fill(s, other)
			s.Do("HSET", markerKey(other), "owner", "other")
		}
		for _, foreign := range []string{"a", "RAY", "RAYa", swept, "ray" + swept + "@KV", "xRAY" + swept + "@KV"} {
			if !strings.HasPrefix(foreign, naming.StorePrefix(swept)) {
				s.Do("SET", foreign, "1")
			}
		}
		want = s.Keys()
		fill(s, swept)
		if rapid.Bool().Draw(t, "marked") {
			s.Do("HSET", markerKey(swept), "owner", "uid-1", "session", "1", "epoch", "1")
		}
		removed, err := anywhere.Sweep(context.Background(), at(s), swept, "uid-1")
		if err != nil || removed != 8 {
			t.Errorf("%d removed: %v", removed, err)
		}
		if diff := cmp.Diff(want, s.Keys()); diff != "" {
			t.Errorf("of %q and %q: %s", swept, others, diff)
		}
	})
}

// TestSweepIsNotForOthers: a namespace that another has by now is not touched.
func TestSweepIsNotForOthers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	other := claim()
	other.Owner = "uid-2"
	expect(t, answer(at(s), other), reason.StoreServes)
	fill(s, "ns")
	before := s.Keys()
	removed, err := anywhere.Sweep(context.Background(), at(s), "ns", "uid-1")
	if finding, found := fault.Finding(err); !found || finding.Code != reason.StoreInUse.Code || removed != 0 {
		t.Errorf("%d removed: %v", removed, err)
	}
	if diff := cmp.Diff(before, s.Keys()); diff != "" {
		t.Error(diff)
	}
	s.Do("HSET", markerKey("ns"), "session", "damaged")
	if removed, err := anywhere.Sweep(context.Background(), at(s), "ns", "uid-1"); err == nil || removed != 0 {
		t.Errorf("with a damaged marker of another: %d removed", removed)
	}
}

// TestSweepOfADamagedMarker: no cluster that lives has one without an owner.
func TestSweepOfADamagedMarker(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	fill(s, "ns")
	s.Do("SET", markerKey("ns"), "damaged")
	for _, want := range []int{8, 0} {
		if removed, err := anywhere.Sweep(context.Background(), at(s), "ns", "uid-1"); err != nil || removed != want || len(s.Keys()) != 0 {
			t.Errorf("%d removed: %v", removed, err)
		}
	}
}

// TestNobodyBeginsWhileSwept: the marker goes last, so that a cluster of the same namespace
// waits until all is gone.
func TestNobodyBeginsWhileSwept(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	many(s, "ns", 30000)
	size := func() int64 { n, _ := s.Do("DBSIZE").(int64); return n }
	server := at(s)
	server.Address = "redis://" + swallowAfter(t, s.HostPort(), 400_000)
	if _, err := anywhere.Sweep(context.Background(), server, "ns", "uid-1"); err == nil {
		t.Fatal("the sweep was through before it was cut off")
	}
	left := size()
	if left < 1000 || left > 25000 {
		t.Fatalf("%d keys are left", left)
	}
	other := claim()
	other.Owner = "uid-2"
	expect(t, answer(at(s), other), reason.StoreInUse)
	removed, err := anywhere.Sweep(context.Background(), at(s), "ns", "uid-1")
	if err != nil || int64(removed) != left-1 || size() != 0 {
		t.Errorf("%d removed of %d: %v", removed, left, err)
	}
	expect(t, answer(at(s), other), reason.StoreServes)
}

// TestSweepErrors: a caller can tell them apart.
func TestSweepErrors(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.User("ray", "on", ">secret", "~RAYns@*", "+@all", "-unlink")
	for name, test := range map[string]struct {
		server Server
		want   reason.Reason
	}{
		"away":           {Server{Address: "redis://127.0.0.1:1"}, reason.StoreUnreachable},
		"wrong password": {Server{Address: s.Address(), Username: "ray", Password: "x"}, reason.StoreWrongPassword},
		"not permitted":  {Server{Address: s.Address(), Username: "ray", Password: "secret"}, reason.StoreNotPermitted},
	} {
		fill(s, "ns")
		_, err := anywhere.Sweep(context.Background(), test.server, "ns", "uid-1")
		if finding, _ := fault.Finding(err); finding.Code != test.want.Code {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCleanUpByHand: the command does what it says, and no more.
func TestCleanUpByHand(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.User("ray", "on", ">secret", "~*", "+@all")
	s.User("default", "on", ">open sesame", "~*", "+@all")
	for user, password := range map[string]string{"ray": "secret", "": "open sesame"} {
		s.Do("FLUSHALL")
		fill(s, "a*")
		s.Do("HSET", markerKey("a*"), "owner", "uid-1")
		s.Do("SET", "RAYa*@with space", "1")
		s.Do("SET", "RAYab@KV", "1")
		shell := exec.Command("bash", "-c", CleanUp(s.Address(), user, "a*"))
		shell.Stdin = strings.NewReader(password + "\n")
		if output, err := shell.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, output)
		}
		if diff := cmp.Diff([]string{"RAYab@KV"}, s.Keys()); diff != "" {
			t.Errorf("as %q: %s", user, diff)
		}
	}
	s.User("default", "on", "nopass", "~*", "+@all")
	shell := exec.Command("bash", "-c", CleanUp(s.Address(), "", "ab"))
	shell.Stdin = strings.NewReader("\n")
	if output, err := shell.CombinedOutput(); err != nil || strings.Contains(string(output), "AUTH") || len(s.Keys()) != 0 {
		t.Errorf("without a password: %v: %s", err, output)
	}
}

// TestCommandsForHands: TLS and odd names are in them, and no secret.
func TestCommandsForHands(t *testing.T) {
	t.Parallel()
	const ask = `read -rsp 'Password, or nothing: ' REDISCLI_AUTH; [ -z "$REDISCLI_AUTH" ] || export REDISCLI_AUTH; `
	for want, have := range map[string]string{
		ask + `redis-cli -h redis.example -p 6379 --scan --pattern 'RAYa:b@*' | xargs -r -d '\n' -n 1 redis-cli -h redis.example -p 6379 UNLINK`:                     CleanUp("redis://redis.example:6379", "", "a:b"),
		ask + `redis-cli -h ::1 -p 1 --tls --user 'it'\''s' --scan --pattern 'RAYa\*@*' | xargs -r -d '\n' -n 1 redis-cli -h ::1 -p 1 --tls --user 'it'\''s' UNLINK`: CleanUp("rediss://[::1]:1", "it's", "a*"),
	} {
		if diff := cmp.Diff(want, have); diff != "" {
			t.Error(diff)
		}
	}
	server := Server{Username: "ray", Password: "secret", CA: []byte("x"), Certificate: []byte("x")}
	want := reason.Command(`redis-cli -h h -p 1 --tls --cacert ca.crt --cert tls.crt --key tls.key ACL SETUSER ray '~RAYns@*' '~DUMMY' ` +
		`+ping +info +del +hset +hsetnx +hget +hmget +hexists +hdel +hscan +incrby +scan +unlink`)
	if diff := cmp.Diff(want, grant(server, place{host: "h", port: "1", tls: true}, "ns")); diff != "" {
		t.Error(diff)
	}
}

// many fills a prefix with small keys.
func many(s *redistest.Server, namespace string, count int) {
	s.Do("EVAL", "for i = 1, ARGV[1] do redis.call('SET', ARGV[2] .. i, i) end", 0, count, naming.StorePrefix(namespace))
}

// swallowAfter returns an address that leads to a server. Of each connection it passes on the first bytes
// and swallows the others, as a network does that breaks.
func swallowAfter(t *testing.T, server string, bytes int64) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = client.Close() }()
				behind, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server)
				if err != nil {
					return
				}
				defer func() { _ = behind.Close() }()
				go func() { _, _ = io.Copy(client, behind) }()
				_, _ = io.CopyN(behind, client, bytes)
				_, _ = io.Copy(io.Discard, client)
			}()
		}
	}()
	return listener.Addr().String()
}

// calls is how often a server did a command.
func calls(s *redistest.Server, command string) int {
	var count int
	_, _ = fmt.Sscanf(s.Field("cmdstat_"+command), "calls=%d", &count) // it has none of a command that it never did
	return count
}

// TestOthersDoNotWait: while very many keys go, and a large one, another client waits for
// milliseconds. For the figure:
//
//	go test ./ray-operator/internal/controlstore -run TestOthersDoNotWait -v -keys 1000000
func TestOthersDoNotWait(t *testing.T) {
	// Not in parallel: what it measures is this server alone.
	s := redistest.Start(t)
	for rest := *keys; rest > 0; rest -= 20000 {
		s.Do("EVAL", "for i = 1, ARGV[1] do redis.call('SET', ARGV[2] .. i, i) redis.call('HSET', 'RAYns@KV', ARGV[2] .. i, i) end",
			0, min(rest, 20000), fmt.Sprintf("RAYns@%d-", rest))
	}
	done := make(chan error)
	removed, began := 0, time.Now()
	go func() {
		var err error
		removed, err = anywhere.Sweep(context.Background(), at(s), "ns", "uid-1")
		done <- err
	}()
	var waits []time.Duration
	for swept := false; !swept; {
		select {
		case err := <-done:
			if err != nil || removed != *keys+1 {
				t.Fatalf("%d removed: %v", removed, err)
			}
			swept = true
		default:
			asked := time.Now()
			s.Do("SET", "others", "1")
			waits = append(waits, time.Since(asked))
		}
	}
	slices.Sort(waits)
	longest := waits[len(waits)-1]
	t.Logf("%d keys and a hash of %d fields in %s; another client's longest wait of %d: %s, p99 %s",
		*keys, *keys, time.Since(began).Round(time.Millisecond), len(waits), longest, waits[len(waits)*99/100])
	// The promise is 50 ms for a million keys on a machine that does nothing else. Where other
	// tests run, what shows is how it is done.
	if *keys >= 1_000_000 && longest > 50*time.Millisecond {
		t.Errorf("another client waited for %s", longest)
	}
	if scans := calls(s, "scan"); scans < *keys/scanned/2 || calls(s, "unlink") != *keys+2 || calls(s, "keys")+calls(s, "del") != 0 {
		t.Errorf("%d scans, %d UNLINK, and KEYS or DEL %d times", scans, calls(s, "unlink"), calls(s, "keys")+calls(s, "del"))
	}
	if diff := cmp.Diff([]string{"others"}, s.Keys()); diff != "" {
		t.Error(diff)
	}
}
