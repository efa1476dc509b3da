package controlstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/redistest"
)

// head is a head's connection.
func head(t *testing.T, s *redistest.Server, name, password string) *redis.Conn {
	t.Helper()
	client := redis.NewClient(&redis.Options{
		Addr: s.HostPort(), Username: name, Password: password, Protocol: 2, DisableIdentity: true, MaxRetries: -1, DialerRetries: 1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	conn := client.Conn()
	t.Cleanup(func() {
		_ = conn.Close()
		_ = client.Close()
	})
	return conn
}

// managed is a claim, and the server of a managed store.
func managed(s *redistest.Server, epoch int64, password string) (Server, Claim) {
	server, c := at(s), claim()
	server.HeadPassword = password
	c.Own, c.Epoch, c.Begun = true, epoch, epoch > 1
	return server, c
}

// TestFormerHeadIsCutOff: when the next epoch is admitted, the head of the former one cannot
// write any more, on the connection that it has or on a new one.
func TestFormerHeadIsCutOff(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.User("head-office", "on", ">pw", "+ping") // none of ours
	server, c := managed(s, 1, "secret-1")
	expect(t, answer(server, c), reason.StoreServes)
	first := head(t, s, "head-1", "secret-1")
	write := func(conn *redis.Conn) error { return conn.HSet(context.Background(), "RAYns@KV", "a", "1").Err() }
	if err := write(first); err != nil {
		t.Fatal(err)
	}
	expect(t, answer(server, c), reason.StoreServes)
	if err := write(first); err != nil {
		t.Errorf("asking again cut the head off: %v", err)
	}

	later, next := managed(s, 2, "secret-1")
	expect(t, answer(later, next), reason.StoreServes)
	if err := write(first); err == nil {
		t.Error("the former head writes on")
	}
	if err := write(head(t, s, "head-1", "secret-1")); err == nil {
		t.Error("the former head writes again")
	}
	if err := write(head(t, s, "head-2", "secret-1")); err != nil {
		t.Errorf("the new head does not write: %v", err)
	}
	if err := head(t, s, "head-office", "pw").Ping(context.Background()).Err(); err != nil {
		t.Errorf("a user who is no head: %v", err)
	}

	expect(t, answer(server, c), reason.StoreInUse)
	if err := write(head(t, s, "head-2", "secret-1")); err != nil {
		t.Errorf("a claim of a former epoch cut the head off: %v", err)
	}
	s.Do("FLUSHALL")
	third, lost := managed(s, 3, "secret-3")
	if have := answer(third, lost); !have.Lost || write(head(t, s, "head-2", "secret-1")) != nil {
		t.Errorf("a loss changed the users: %+v", have)
	}
}

// TestFormer_IsEveryOtherHead: Redis lists its users by name, and names order head-9 after head-10.
func TestFormer_IsEveryOtherHead(t *testing.T) {
	users := redis.NewCmdResult([]any{"default", "head-10", "head-11", "head-9", "head-office"}, nil)
	if diff := cmp.Diff([]any{"head-11", "head-9"}, former(users, "head-10")); diff != "" {
		t.Error(diff)
	}
}

// TestHeadsUserIsMadeAgain: after a restart of Redis, which forgets its users, or for another
// password.
func TestHeadsUserIsMadeAgain(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	ping := func(password string) error {
		return head(t, s, "head-1", password).Ping(context.Background()).Err()
	}
	for _, spoil := range []func(){
		func() {}, func() { s.Do("ACL", "DELUSER", "head-1") }, func() { s.Do("ACL", "SETUSER", "head-1", "off") },
		func() { s.Do("ACL", "SETUSER", "head-1", ">another") },
	} {
		spoil()
		server, c := managed(s, 1, "secret-1")
		expect(t, answer(server, c), reason.StoreServes)
		if err := ping("secret-1"); err != nil || ping("another") == nil {
			t.Errorf("%v", err)
		}
	}
	server, c := managed(s, 1, "secret-2")
	expect(t, answer(server, c), reason.StoreServes)
	if err := ping("secret-2"); err != nil || ping("secret-1") == nil {
		t.Errorf("after another password: %v", err)
	}
}

// TestHeadMayDoWhatRayDoes, and nothing else.
func TestHeadMayDoWhatRayDoes(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	server, c := managed(s, 1, "secret")
	expect(t, answer(server, c), reason.StoreServes)
	s.Do("SET", "others", "1")
	conn := head(t, s, "head-1", "secret")
	for _, words := range [][]any{
		{"PING"}, {"INFO", "SENTINEL"}, {"INFO", "CLUSTER"}, {"DEL", "DUMMY"}, {"HSET", "RAYns@KV", "a", "1"}, {"HSETNX", "RAYns@KV", "b", "1"},
		{"HGET", "RAYns@KV", "a"}, {"HMGET", "RAYns@KV", "a", "b"}, {"HEXISTS", "RAYns@KV", "a"}, {"HSCAN", "RAYns@KV", "0", "MATCH", "a*", "COUNT", "1000"},
		{"HDEL", "RAYns@KV", "a"}, {"INCRBY", "RAYns@JobCounter", "1"},
	} {
		if err := conn.Do(context.Background(), words...).Err(); err != nil {
			t.Errorf("%v: %v", words, err)
		}
	}
	for _, words := range [][]any{
		{"GET", "others"}, {"HGET", "RAYns2@KV", "a"}, {"HSET", "RAYother@KV", "a", "1"}, {"DEL", "others"}, {"FLUSHALL"}, {"CONFIG", "GET", "*"}, {"ACL", "LIST"},
		{"ACL", "SETUSER", "head-1", "+@all"}, {"KEYS", "*"}, {"SCAN", "0"}, {"EVAL", "return 1", "0"}, {"CLIENT", "LIST"}, {"SHUTDOWN"}, {"DEBUG", "SLEEP", "0"},
		{"PUBLISH", "a", "b"}, {"MONITOR"}, {"REPLICAOF", "NO", "ONE"}, {"SAVE"},
	} {
		if err := conn.Do(context.Background(), words...).Err(); !redis.HasErrorPrefix(err, "NOPERM") {
			t.Errorf("%v: %v", words, err)
		}
	}
	users := fmt.Sprint(s.Do("ACL", "USERS"))
	if diff := cmp.Diff("[default head-1 tester]", users); diff != "" {
		t.Error(diff)
	}
}

// TestSlow: an answer that takes longer than a head can bear is not admitted.
func TestSlow(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	ask := func() Verdict {
		s.Pause()
		time.AfterFunc(slow+slow/3, s.Resume)
		return anywhere.Ask(context.Background(), at(s), claim())
	}
	verdict := ask()
	for tries := 5; tries > 0 && verdict.Finding.Code == reason.StoreUnreachable.Code; tries-- {
		verdict = ask() // on a busy machine the answer may come after the limit
	}
	expect(t, verdict, reason.StoreSlow, "more than 1s")
	expect(t, answer(at(s), claim()), reason.StoreServes)
}
