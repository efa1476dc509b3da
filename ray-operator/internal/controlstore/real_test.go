package controlstore

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/redistest"
)

// at is how a test's server is reached without any credentials.
func at(s *redistest.Server) Server { return Server{Address: s.Address()} }

// fill writes what a head would keep.
func fill(s *redistest.Server, namespace string) {
	for _, table := range tables() {
		s.Do("HSET", "RAY"+namespace+"@"+table, "a", "1")
	}
	s.Do("INCRBY", "RAY"+namespace+"@JobCounter", 1)
}

// mark reads the marker of a namespace.
func mark(s *redistest.Server, namespace string) map[string]string {
	values, _ := s.Do("HGETALL", markerKey(namespace)).([]any)
	fields := map[string]string{}
	for i := 0; i+1 < len(values); i += 2 {
		fields[fmt.Sprint(values[i])] = fmt.Sprint(values[i+1])
	}
	return fields
}

// TestAdmissionTwiceIsOnce: the second changes nothing and says the same.
func TestAdmissionTwiceIsOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do("HSET", dummy, "heliostat", "stays")
	first := answer(at(s), claim())
	expect(t, first, reason.StoreServes, "Redis 7.", s.HostPort())
	want := map[string]string{"owner": "uid-1", "cluster": "team/demo", "session": "1", "epoch": "1", "found": "0"}
	if diff := cmp.Diff(want, mark(s, "ns")); diff != "" {
		t.Errorf("the marker: %s", diff)
	}
	if diff := cmp.Diff([]string{dummy, "RAYns@heliostat"}, s.Keys()); diff != "" {
		t.Errorf("keys: %s", diff)
	}
	writes := calls(s, "hset")
	if second := answer(at(s), claim()); second != first {
		t.Errorf("%+v after %+v", second, first)
	}
	if diff := cmp.Diff(want, mark(s, "ns")); diff != "" || calls(s, "hset") != writes+1 {
		t.Errorf("the marker after the second, with %d HSET where one tries it: %s", calls(s, "hset")-writes, diff)
	}
}

// turn is what is said of a session and an epoch.
func turn(s *redistest.Server, session, epoch int64, begun bool) Verdict {
	c := claim()
	c.Session, c.Epoch, c.Begun = session, epoch, begun
	return answer(at(s), c)
}

// TestEpochs: heads come back to their memory, and none of a former epoch.
func TestEpochs(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	expect(t, turn(s, 1, 1, false), reason.StoreServes)
	fill(s, "ns")
	expect(t, turn(s, 1, 1, true), reason.StoreServes)
	expect(t, turn(s, 1, 2, true), reason.StoreServes)
	if have := mark(s, "ns")["epoch"]; have != "2" {
		t.Errorf("epoch %s is marked", have)
	}
	expect(t, turn(s, 1, 1, true), reason.StoreInUse, "of epoch 2", "redis-cli")
	if have := mark(s, "ns")["epoch"]; have != "2" || len(s.Keys()) != 9 {
		t.Errorf("epoch %s is marked after an earlier one was refused, keys %v", have, s.Keys())
	}
}

// TestLoss: it is told and changes nothing; the session after it begins with nothing.
func TestLoss(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	fill(s, "ns")
	before := s.Keys()
	lost := turn(s, 1, 2, true)
	expect(t, lost, reason.StoreDataLost, "is gone")
	if diff := cmp.Diff(before, s.Keys()); diff != "" || !lost.Lost {
		t.Errorf("a loss (%v) changed the store: %s", lost.Lost, diff)
	}
	s.Do("SET", "RAYother@KV", "1")
	expect(t, turn(s, 3, 3, false), reason.StoreServes)
	if diff := cmp.Diff([]string{"RAYns@heliostat", "RAYother@KV"}, s.Keys()); diff != "" {
		t.Errorf("a new session begins with: %s", diff)
	}
	fill(s, "ns")
	if again := turn(s, 3, 3, false); !again.Admitted || len(s.Keys()) != 10 {
		t.Errorf("the same session again removed keys: %+v, %v", again, s.Keys())
	}
}

// TestRestoredBackup: what is of an earlier session is not this one's memory, and the next
// session goes on with it.
func TestRestoredBackup(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	expect(t, turn(s, 3, 3, false), reason.StoreServes)
	s.Do("FLUSHALL")
	if flushed := turn(s, 3, 3, true); !flushed.Lost {
		t.Errorf("after FLUSHALL: %+v", flushed)
	}
	expect(t, turn(s, 4, 4, false), reason.StoreServes)
	fill(s, "ns")
	if restored := turn(s, 5, 5, true); !restored.Lost {
		t.Errorf("a backup of another session: %+v", restored)
	}
	if restored := turn(s, 6, 6, false); !restored.Admitted || restored.Holds != 8 || len(s.Keys()) != 9 {
		t.Errorf("session 6 does not go on with a backup of session 4: %+v, %v", restored, s.Keys())
	}
}

// TestGoesOnWithABackup: keys without a marker are kept, and counted, in a first session.
func TestGoesOnWithABackup(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	fill(s, "ns")
	fill(s, "ns2")
	many(s, "ns3", 5000) // takes several scans
	s.Do("SET", scratchKey("ns"), "left by a probe that was cut off")
	for range 2 {
		have := answer(at(s), claim())
		expect(t, have, reason.StoreServes)
		if have.Holds != 8 {
			t.Errorf("%d keys", have.Holds)
		}
	}
	if n := len(s.Keys()); n != 8+8+1+5000 {
		t.Errorf("%d keys are left", n)
	}
}

// TestOthersMarker: another cluster's memory is refused where it may live, and taken over
// where the server is the cluster's own.
func TestOthersMarker(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	other := claim()
	other.Owner, other.Cluster, other.Epoch = "uid-2", "team/other", 7
	expect(t, answer(at(s), other), reason.StoreServes)
	fill(s, "ns")
	before := s.Keys()
	for _, begun := range []bool{false, true} {
		c := claim()
		c.Begun = begun
		refused := answer(at(s), c)
		expect(t, refused, reason.StoreInUse, "team/other", "uid-2", CleanUp(s.Address(), "", "ns"))
		if refused.Lost {
			t.Error("another's memory is lost memory")
		}
	}
	later := claim()
	later.Session, later.Epoch = 2, 2
	expect(t, answer(at(s), later), reason.StoreInUse)
	if diff := cmp.Diff(before, s.Keys()); diff != "" || mark(s, "ns")["owner"] != "uid-2" {
		t.Errorf("refusing changed the store: %s", diff)
	}

	own := claim()
	own.Own, own.Begun = true, true
	if have := answer(at(s), own); !have.Lost || mark(s, "ns")["owner"] != "uid-2" {
		t.Errorf("another's backup in a store of one's own: %+v", have)
	}
	own.Begun = false
	for range 2 {
		have := answer(at(s), own)
		expect(t, have, reason.StoreServes)
		if have.Holds != 8 || mark(s, "ns")["owner"] != "uid-1" || mark(s, "ns")["epoch"] != "1" {
			t.Errorf("taken over: %+v, %v", have, mark(s, "ns"))
		}
	}
	s.Do("HSET", markerKey("ns"), "owner", "uid-2")
	own.Session, own.Epoch = 2, 2
	expect(t, answer(at(s), own), reason.StoreServes)
	if diff := cmp.Diff([]string{"RAYns@heliostat"}, s.Keys()); diff != "" {
		t.Errorf("a new session in a store of one's own: %s", diff)
	}
}

// TestDamagedMarker: what cannot be read is not taken for nothing.
func TestDamagedMarker(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	key := markerKey("ns")
	for _, damage := range [][]any{
		{"SET", key, "text"},
		{"HSET", key, "owner", "uid-1", "session", "one"},
		{"HSET", key, "owner", "uid-1", "epoch", "-1"},
		{"HSET", key, "session", "1"},
	} {
		s.Do("DEL", key)
		s.Do(damage...)
		for _, begun := range []bool{false, true} {
			c := claim()
			c.Begun = begun
			expect(t, answer(at(s), c), reason.StoreInUse, "marker")
		}
		c := claim()
		c.Own = true
		expect(t, answer(at(s), c), reason.StoreServes)
		if have := mark(s, "ns"); have["owner"] != "uid-1" || have["session"] != "1" {
			t.Errorf("in a store of one's own, the marker is now %v", have)
		}
	}
	s.Do("DEL", key)
	s.Do("HSET", key, "owner", "uid-1") // of an operator that ended in between
	expect(t, answer(at(s), claim()), reason.StoreServes)
}

// TestCredentials: the user that was meant, or none.
func TestCredentials(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.User("ray", "on", ">secret", "~RAYns@*", "~DUMMY", "+@all", "-@admin")
	for name, test := range map[string]struct {
		username, password string
		want               reason.Reason
	}{
		"open, none given":              {want: reason.StoreServes},
		"open, a password given":        {password: "secret", want: reason.StoreWrongPassword},
		"right":                         {"ray", "secret", reason.StoreServes},
		"wrong password":                {"ray", "Secret", reason.StoreWrongPassword},
		"wrong user":                    {"sun", "secret", reason.StoreWrongPassword},
		"the open default user by name": {"default", "whatever", reason.StoreServes},
	} {
		server := at(s)
		server.Username, server.Password = test.username, test.password
		if have := answer(server, claim()); have.Finding.Code != test.want.Code {
			t.Errorf("%s: %+v", name, have)
		}
	}
	s.User("default", "on", ">pw", "~*", "+@all")
	expect(t, answer(at(s), claim()), reason.StoreWrongPassword, "Authentication required")
	server := at(s)
	server.Password = "pw"
	expect(t, answer(server, claim()), reason.StoreServes)
	s.User("default", "off")
	expect(t, answer(server, claim()), reason.StoreWrongPassword)
}

// TestPermissions: what the remedy grants is enough, and without any of it the verdict names
// what is missing.
func TestPermissions(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	server := at(s)
	server.Username, server.Password = "ray", "secret"
	base := []string{"on", ">secret"}
	s.User("ray", base...)
	have := answer(server, claim())
	expect(t, have, reason.StoreNotPermitted, "user ray", s.HostPort(), "NOPERM", "redis-cli -h 127.0.0.1")
	_, command, found := strings.Cut(have.Finding.Text, "Grant it: ")
	if !found {
		t.Fatal(have.Finding.Text)
	}
	asAdmin := strings.Replace(command, "redis-cli", "REDISCLI_AUTH=any redis-cli --user tester", 1)
	if output, err := exec.Command("bash", "-c", asAdmin).CombinedOutput(); err != nil || !strings.Contains(string(output), "OK") {
		t.Fatalf("%s: %v: %s", command, err, output)
	}
	expect(t, answer(server, claim()), reason.StoreServes)
	if _, err := anywhere.Sweep(context.Background(), server, "ns", "uid-1"); err != nil {
		t.Error(err)
	}
	// The rules of docs/control-store.md.
	s.User("ray", append(base, "~RAYns@*", "~DUMMY", "resetchannels", "-@all", "+@read", "+@write", "+@connection", "+info", "+scan", "-keys", "-flushall", "-flushdb", "-swapdb")...)
	expect(t, answer(server, claim()), reason.StoreServes)
	for _, name := range append(rayCommands(), ownCommands()...) {
		s.Do("ACL", "SETUSER", "ray", "-"+name)
		expect(t, answer(server, claim()), reason.StoreNotPermitted, "'"+name)
		s.Do("ACL", "SETUSER", "ray", "+"+name)
	}
	for _, keys := range [][]any{{"~RAYns@*"}, {"~DUMMY"}, {"~RAYns@heliostat*", "~DUMMY"}, {"%R~RAYns@*", "~DUMMY"}} {
		s.Do(append([]any{"ACL", "SETUSER", "ray", "resetkeys"}, keys...)...)
		expect(t, answer(server, claim()), reason.StoreNotPermitted, "NOPERM")
	}
}

// TestReadOnlyAndFull: a replica, and a server without room; both can be swept when they can
// be written.
func TestReadOnlyAndFull(t *testing.T) {
	t.Parallel()
	primary := redistest.Start(t)
	replica := redistest.Start(t)
	replica.Do("REPLICAOF", "127.0.0.1", primary.Port)
	replica.Await("it follows", func() bool { return replica.Field("master_link_status") == "up" })
	expect(t, answer(at(replica), claim()), reason.StoreReadOnly, "READONLY")
	if _, err := anywhere.Sweep(context.Background(), at(replica), "ns", "uid-1"); err == nil || !strings.Contains(err.Error(), reason.StoreReadOnly.Code) {
		t.Errorf("a replica was swept: %v", err)
	}

	full := redistest.Start(t)
	fill(full, "ns")
	full.Do("SET", "big", strings.Repeat("x", 4<<20))
	full.Do("CONFIG", "SET", "maxmemory-policy", "noeviction")
	full.Do("CONFIG", "SET", "maxmemory", "1mb")
	expect(t, answer(at(full), claim()), reason.StoreFull, "maxmemory")
	if removed, err := anywhere.Sweep(context.Background(), at(full), "ns", "uid-1"); err != nil || removed != 8 {
		t.Errorf("%d keys removed from a full server: %v", removed, err)
	}
	if diff := cmp.Diff([]string{"big"}, full.Keys()); diff != "" {
		t.Error(diff)
	}
}

// TestComesAndGoes: stopped, standing still, and back.
func TestComesAndGoes(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	expect(t, answer(at(s), claim()), reason.StoreServes)
	s.Pause()
	first := answer(at(s), claim())
	expect(t, first, reason.StoreUnreachable, "no answer in time")
	s.Resume()
	expect(t, answer(at(s), claim()), reason.StoreServes)
	s.Stop()
	away := answer(at(s), claim())
	expect(t, away, reason.StoreUnreachable, "connection refused")
	if again := answer(at(s), claim()); again != away {
		t.Errorf("%+v after %+v: a status would be written each second", again, away)
	}
	if _, err := anywhere.Sweep(context.Background(), at(s), "ns", "uid-1"); err == nil || !strings.Contains(err.Error(), reason.StoreUnreachable.Code) {
		t.Errorf("a stopped server was swept: %v", err)
	}
	s.Restart()
	begun := claim()
	begun.Begun = true
	expect(t, answer(at(s), begun), reason.StoreServes)
}

// TestSentinel: it leads to its only primary.
func TestSentinel(t *testing.T) {
	t.Parallel()
	primary := redistest.Start(t)
	sentinel := redistest.StartSentinel(t, map[string]*redistest.Server{"main": primary})
	expect(t, answer(at(sentinel), claim()), reason.StoreServes, fmt.Sprint(primary.Port), fmt.Sprint(sentinel.Port))
	if diff := cmp.Diff([]string{"RAYns@heliostat"}, primary.Keys()); diff != "" {
		t.Error(diff)
	}
	if removed, err := anywhere.Sweep(context.Background(), at(sentinel), "ns", "uid-1"); err != nil || removed != 0 || len(primary.Keys()) != 0 {
		t.Errorf("%d, %v, %v", removed, err, primary.Keys())
	}
	server := at(sentinel)
	server.Password = "not wanted there"
	expect(t, answer(server, claim()), reason.StoreWrongPassword)
	two := redistest.StartSentinel(t, map[string]*redistest.Server{"main": primary, "other": redistest.Start(t)})
	expect(t, answer(at(two), claim()), reason.StoreUnsupported, "2 primaries")
}

// TestCluster: one shard serves, also when a replica of it is named; fewer slots or more
// shards do not.
func TestCluster(t *testing.T) {
	t.Parallel()
	one := redistest.Start(t, "--cluster-enabled", "yes")
	expect(t, answer(at(one), claim()), reason.StoreUnsupported)
	one.AssignSlots(0, 16383)
	expect(t, answer(at(one), claim()), reason.StoreServes)
	fill(one, "ns")
	replica := redistest.Start(t, "--cluster-enabled", "yes")
	meet(replica, one)
	id := strings.TrimSpace(fmt.Sprint(one.Do("CLUSTER", "MYID")))
	replica.Await("it knows the primary", func() bool {
		_, err := replica.Try("CLUSTER", "REPLICATE", id)
		return err == nil
	})
	replica.Await("it follows", func() bool { return replica.Field("master_link_status") == "up" })
	begun := claim()
	begun.Begun = true
	expect(t, answer(at(replica), begun), reason.StoreServes, fmt.Sprint(one.Port), fmt.Sprint(replica.Port))
	if removed, err := anywhere.Sweep(context.Background(), at(replica), "ns", "uid-1"); err != nil || removed != 8 || len(one.Keys()) != 0 {
		t.Errorf("%d, %v, %v", removed, err, one.Keys())
	}

	part := redistest.Start(t, "--cluster-enabled", "yes")
	part.AssignSlots(0, 8191)
	expect(t, answer(at(part), claim()), reason.StoreUnsupported)
	rest := redistest.Start(t, "--cluster-enabled", "yes")
	rest.AssignSlots(8192, 16383)
	meet(part, rest)
	for _, s := range []*redistest.Server{part, rest} {
		s.Await("two shards work", func() bool {
			about := fmt.Sprint(s.Do("CLUSTER", "INFO"))
			return strings.Contains(about, "cluster_state:ok") && strings.Contains(about, "cluster_size:2")
		})
		expect(t, answer(at(s), claim()), reason.StoreUnsupported, "shard")
	}
}

// meet makes two servers know of each other.
func meet(a, b *redistest.Server) {
	config, _ := b.Do("CONFIG", "GET", "cluster-port").([]any)
	a.Do("CLUSTER", "MEET", "127.0.0.1", b.Port, config[1])
}

// TestLoading: a server that reads its data from disk.
func TestLoading(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do("EVAL", "for i = 1, 3000 do redis.call('SET', i, i) end", 0)
	s.Do("CONFIG", "SET", "key-load-delay", "1000") // 1 ms for each key
	s.Do("CONFIG", "SET", "loading-process-events-interval-bytes", "1024")
	go func() { _, _ = s.Try("DEBUG", "RELOAD") }() // it may take longer than a client waits
	s.Await("it is loading", func() bool { return s.Field("loading") == "1" })
	expect(t, answer(at(s), claim()), reason.StoreLoading)
	s.Do("CONFIG", "SET", "key-load-delay", "0")
	s.Await("it has read its data", func() bool { return s.Field("loading") == "0" })
	expect(t, answer(at(s), claim()), reason.StoreServes)
}

// TestOnlyOneWins: of clusters that begin with the same namespace at the same moment, one is
// admitted, and what is kept there stays.
func TestOnlyOneWins(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for round := range 20 {
		s.Do("FLUSHALL")
		fill(s, "ns")
		verdicts := make(chan Verdict)
		const clusters = 6
		for i := range clusters {
			go func() {
				c := claim()
				c.Owner = types.UID(fmt.Sprintf("uid-%d", i))
				verdicts <- answer(at(s), c)
			}()
		}
		admitted := 0
		for range clusters {
			verdict := <-verdicts
			switch {
			case verdict.Admitted && verdict.Holds == 8:
				admitted++
			case verdict.Finding.Code != reason.StoreInUse.Code:
				t.Errorf("round %d: %+v", round, verdict)
			}
		}
		if admitted != 1 || len(s.Keys()) != 8+1 {
			t.Errorf("round %d: %d are admitted, keys %v", round, admitted, s.Keys())
		}
	}
}
