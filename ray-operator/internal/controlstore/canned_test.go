package controlstore

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// claim is one of a first head of a first session.
func claim() Claim {
	return Claim{Owner: "uid-1", Cluster: "team/demo", Namespace: "ns", Session: 1, Epoch: 1}
}

// answer asks, and again where the machine that runs the tests was slow.
func answer(server Server, claim Claim) Verdict {
	verdict := anywhere.Ask(context.Background(), server, claim)
	for tries := 5; tries > 0 && verdict.Finding.Code == reason.StoreSlow.Code; tries-- {
		verdict = anywhere.Ask(context.Background(), server, claim)
	}
	return verdict
}

// expect compares a verdict's reason, and looks for words in its text.
func expect(t *testing.T, have Verdict, want reason.Reason, words ...string) {
	t.Helper()
	if have.Finding.Code != want.Code {
		t.Errorf("%s instead of %s: %s", have.Finding.Code, want.Code, have.Finding.Text)
	}
	if have.Admitted != (want.Code == reason.StoreServes.Code) {
		t.Errorf("admitted: %v, with %s", have.Admitted, have.Finding.Code)
	}
	for _, word := range words {
		if !strings.Contains(have.Finding.Text, word) {
			t.Errorf("%q is not in: %s", word, have.Finding.Text)
		}
	}
}

// sentinel is a Sentinel that knows these primaries.
func sentinel(masters string) map[string]string {
	return map[string]string{"INFO SENTINEL": bulk("# Sentinel\r\nsentinel_masters:1\r\n"), "SENTINEL MASTERS": masters}
}

// TestCannedReplies: what a real server says only in rare states, or never.
func TestCannedReplies(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		canned map[string]string
		hello  string
		want   reason.Reason
		words  []string
	}{
		"fine":                      {want: reason.StoreServes, words: []string{"Redis 7.0.0 at 127.0.0.1:"}},
		"old, without ACLs":         {canned: map[string]string{"ACL": "-ERR unknown command\r\n"}, want: reason.StoreServes},
		"loading":                   {canned: map[string]string{"HDEL": "-LOADING Redis is loading the dataset in memory\r\n"}, want: reason.StoreLoading},
		"loading at once":           {canned: map[string]string{"PING": "-LOADING Redis is loading the dataset in memory\r\n"}, want: reason.StoreLoading},
		"needs a password":          {canned: map[string]string{"PING": "-NOAUTH Authentication required.\r\n"}, want: reason.StoreWrongPassword, words: []string{"Authentication required"}},
		"takes us for another":      {canned: map[string]string{"ACL WHOAMI": bulk("somebody")}, want: reason.StoreWrongPassword, words: []string{"somebody", "not default"}},
		"cannot write to its disk":  {canned: map[string]string{"HDEL": "-MISCONF Errors writing to the AOF file: No space left on device\r\n"}, want: reason.StoreReadOnly, words: []string{"No space left"}},
		"too few replicas":          {canned: map[string]string{"HDEL": "-NOREPLICAS Not enough good replicas to write.\r\n"}, want: reason.StoreReadOnly},
		"a replica cut off":         {canned: map[string]string{"HDEL": "-MASTERDOWN Link with MASTER is down\r\n"}, want: reason.StoreReadOnly},
		"full":                      {canned: map[string]string{"HSET": "-OOM command not allowed when used memory > 'maxmemory'.\r\n"}, want: reason.StoreFull},
		"may not be asked for INFO": {canned: map[string]string{"INFO SENTINEL": "-NOPERM this user has no permissions to run the 'info' command\r\n"}, want: reason.StoreNotPermitted, words: []string{"+info", "INFO SENTINEL: NOPERM"}},
		"may not PING":              {canned: map[string]string{"PING": "-NOPERM this user has no permissions to run the 'ping' command\r\n"}, want: reason.StoreNotPermitted, words: []string{"user default"}},
		"protected mode":            {hello: "-DENIED Redis is running in protected mode\r\n", want: reason.StoreUnreachable, words: []string{"protected mode"}},
		"too many clients":          {hello: "-ERR max number of clients reached\r\n", want: reason.StoreUnreachable, words: []string{"max number of clients"}},
		"busy with a script":        {canned: map[string]string{"HDEL": "-BUSY Redis is busy running a script.\r\n"}, want: reason.StoreUnreachable, words: []string{"script"}},
		"a command renamed":         {canned: map[string]string{"HSCAN": "-ERR unknown command 'HSCAN', with args beginning with: 'RAYns'\r\n"}, want: reason.StoreUnsupported, words: []string{"HSCAN"}},
		"a table in another shard":  {canned: map[string]string{"HEXISTS RAYns@ACTOR ": "-MOVED 1 127.0.0.1:7001\r\n"}, want: reason.StoreUnsupported, words: []string{"more than one shard"}},
		"two shards":                {canned: map[string]string{"CLUSTER INFO": bulk("cluster_state:ok\r\ncluster_size:2\r\n")}, want: reason.StoreUnsupported, words: []string{"2 shards"}},
		"one shard":                 {canned: map[string]string{"CLUSTER INFO": bulk("cluster_state:ok\r\ncluster_size:1\r\n")}, want: reason.StoreServes},
		"a strange size":            {canned: map[string]string{"CLUSTER INFO": bulk("cluster_size:many\r\n")}, want: reason.StoreServes},
		"a cluster out of order":    {canned: map[string]string{"HDEL": "-CLUSTERDOWN The cluster is down\r\n"}, want: reason.StoreUnsupported, words: []string{"The cluster is down"}},
		"moved to nowhere":          {canned: map[string]string{"HDEL": "-MOVED 1 nowhere\r\n"}, want: reason.StoreUnsupported},
		"moved to no port":          {canned: map[string]string{"HDEL": "-MOVED 1 127.0.0.1:0\r\n"}, want: reason.StoreUnsupported, words: []string{"without a port"}},
		"moved to a huge name":      {canned: map[string]string{"HDEL": "-MOVED 1 " + strings.Repeat("a", 300) + ":1\r\n"}, want: reason.StoreUnsupported, words: []string{"no host's"}},
		"a primary with escapes":    {canned: sentinel(list(list(bulk("ip"), bulk("\x1b[2J\x1b[31mred"), bulk("port"), bulk("6379")))), want: reason.StoreUnsupported, words: []string{"no host's"}},
		"no primary":                {canned: sentinel(list()), want: reason.StoreUnsupported, words: []string{"0 primaries"}},
		"two primaries":             {canned: sentinel(list(list(), list())), want: reason.StoreUnsupported, words: []string{"2 primaries"}},
		"a primary without port":    {canned: sentinel(list(list(bulk("ip"), bulk("127.0.0.1"), bulk("port")))), want: reason.StoreUnsupported},
		"a primary that is a text":  {canned: sentinel(list(bulk("ip"))), want: reason.StoreUnsupported},
		"Sentinels that may not":    {canned: sentinel("-NOPERM this user has no permissions to run the 'sentinel|masters' command\r\n"), want: reason.StoreNotPermitted},
		"a marker cut short":        {canned: map[string]string{"HMGET RAYns@heliostat owner": list(bulk("uid-1"))}, want: reason.StoreUnsupported},
		"a scan of another kind":    {canned: map[string]string{"SCAN 0 MATCH RAYns@* COUNT 1000": "+OK\r\n"}, want: reason.StoreUnsupported, words: []string{"SCAN"}},
		"a cursor of letters":       {canned: map[string]string{"SCAN 0 MATCH RAYns@* COUNT 1000": list(bulk("x"), list())}, want: reason.StoreUnsupported},
		"keys that are numbers":     {canned: map[string]string{"SCAN 0 MATCH RAYns@* COUNT 1000": list(bulk("0"), list(":1\r\n"))}, want: reason.StoreUnsupported},
		"a web server":              {hello: "HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n", want: reason.StoreUnsupported, words: []string{"does not speak Redis' protocol"}},
		"a TLS server":              {hello: "\x15\x03\x01\x00\x02\x02\x46", want: reason.StoreUnsupported, words: []string{"rediss://"}},
		"a huge list":               {canned: map[string]string{"INFO SERVER": "*2000000000\r\n"}, want: reason.StoreUnsupported, words: []string{"larger"}},
		"a huge text":               {canned: map[string]string{"INFO SERVER": "$2000000000\r\n"}, want: reason.StoreUnsupported, words: []string{"larger"}},
		"a deep list":               {canned: map[string]string{"INFO SERVER": strings.Repeat("*1\r\n", 100000)}, want: reason.StoreUnsupported, words: []string{"larger"}},
		"a type of protocol 3":      {canned: map[string]string{"INFO SERVER": "%1\r\n+a\r\n+b\r\n"}, want: reason.StoreUnsupported, words: []string{"does not speak"}},
		"a number that is none":     {canned: map[string]string{"HEXISTS": ":x\r\n"}, want: reason.StoreUnsupported},
		"hangs up":                  {canned: map[string]string{"HDEL": ""}, want: reason.StoreUnreachable, words: []string{"closed the connection"}},
		"INFO is a list":            {canned: map[string]string{"INFO SERVER": list()}, want: reason.StoreServes},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFake(t, &fake{canned: test.canned, hello: test.hello})
			expect(t, answer(Server{Address: f.address}, claim()), test.want, test.words...)
		})
	}
}

// TestCommands: nothing is sent but what the remedy grants, and what needs no right or may
// be refused. The client library would like to introduce itself.
func TestCommands(t *testing.T) {
	t.Parallel()
	f := startFake(t, &fake{})
	expect(t, answer(Server{Address: f.address, Password: "secret"}, claim()), reason.StoreServes)
	if _, err := anywhere.Sweep(context.Background(), Server{Address: f.address}, "ns", "uid-1"); err != nil {
		t.Error(err)
	}
	may := append(append([]string{"hello", "auth", "acl", "cluster"}, rayCommands()...), ownCommands()...)
	for _, sent := range f.commands() {
		if word, _, _ := strings.Cut(strings.ToLower(sent), " "); !slices.Contains(may, word) {
			t.Errorf("%q was sent", sent)
		}
	}
}

// TestLeadsInACircle: a server that sends us to itself is not followed for ever.
func TestLeadsInACircle(t *testing.T) {
	t.Parallel()
	f := startFake(t, &fake{canned: map[string]string{}})
	at := strings.TrimPrefix(f.address, "redis://")
	f.canned["HDEL"] = "-MOVED 1 " + at + "\r\n"
	expect(t, answer(Server{Address: f.address}, claim()), reason.StoreUnsupported, "without an end")
	host, port, _ := net.SplitHostPort(at)
	f = startFake(t, &fake{canned: map[string]string{"INFO SENTINEL": bulk("x"), "SENTINEL": list(list(bulk("port"), bulk(port), bulk("ip"), bulk(host)))}})
	g := startFake(t, &fake{canned: map[string]string{"HDEL": "-READONLY You can't write against a read only replica.\r\n"}})
	_, port, _ = net.SplitHostPort(strings.TrimPrefix(g.address, "redis://"))
	f.canned["SENTINEL"] = list(list(bulk("port"), bulk(port), bulk("ip"), bulk("")))
	expect(t, answer(Server{Address: f.address}, claim()), reason.StoreReadOnly, "to which 127.0.0.1:", " leads")
}

// TestNoSecretIsTold: whatever a server repeats, no text holds a credential.
func TestNoSecretIsTold(t *testing.T) {
	t.Parallel()
	for name, canned := range map[string]map[string]string{
		"AUTH is unknown": {"AUTH": "-ERR unknown command 'AUTH', with args beginning with: 'hunter2' \r\n"},
		"AUTH in part":    {"AUTH": "-ERR unknown command 'AUTH', with args beginning with: 'hunter\r\n"},
		"wrong":           {"AUTH": "-WRONGPASS hunter2 is no password\r\n"},
		"the user's name": {"ACL WHOAMI": bulk("hunter2")},
		"a head's":        {"ACL": "-ERR Error in ACL SETUSER modifier '>s3cret': bad\r\n"},
		"a table":         {"HEXISTS RAYns@JOB": "-WRONG s3cret hunter2\x00\n\r\n"},
		"much":            {"HEXISTS RAYns@JOB": "-WRONG " + strings.Repeat("x", 10000) + "\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFake(t, &fake{canned: canned})
			have := answer(Server{Address: f.address, Password: "hunter2", HeadPassword: "s3cret"}, claim())
			if have.Admitted || strings.Contains(have.Finding.Text, "hunter") || strings.Contains(have.Finding.Text, "s3cret") ||
				len(have.Finding.Text) > 600 || strings.ContainsAny(have.Finding.Text, "\x00\r\n") {
				t.Errorf("%+v", have)
			}
		})
	}
}

// TestWrongAddresses: what the API's schema does not let through does no harm either.
func TestWrongAddresses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"", "redis://", "redis://host", "redis://host:0", "redis://host:65536", "http://host:1", "host:6379", "redis://user:pw@host:1",
		"redis://:6379", "redis://%zz:1", "redis://[::1:1",
	} {
		have := answer(Server{Address: address}, claim())
		expect(t, have, reason.StoreUnreachable)
		if strings.Contains(have.Finding.Text, "pw") {
			t.Error(have.Finding.Text)
		}
		if _, err := anywhere.Sweep(context.Background(), Server{Address: address}, "ns", "uid-1"); err == nil {
			t.Errorf("%q was swept", address)
		}
		if text := CleanUp(address, "", "ns"); text != "" {
			t.Errorf("%q can be cleaned by %s", address, text)
		}
	}
	expect(t, answer(Server{Address: "redis://no-such-host.invalid:6379"}, claim()), reason.StoreUnreachable)
	for _, namespace := range []string{"", "a@b"} {
		c := claim()
		c.Namespace = namespace
		expect(t, answer(Server{Address: "redis://127.0.0.1:1"}, c), reason.StoreUnsupported, "@")
		if _, err := anywhere.Sweep(context.Background(), Server{Address: "redis://127.0.0.1:1"}, namespace, "uid-1"); err == nil {
			t.Errorf("%q was swept", namespace)
		}
	}
}

// TestCancelled: a cancelled check does not wait for a server that does not answer.
func TestCancelled(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithCancel(context.Background())
	began := time.Now()
	time.AfterFunc(100*time.Millisecond, cancel)
	have := anywhere.Ask(ctx, Server{Address: "redis://" + listener.Addr().String()}, claim())
	if took := time.Since(began); have.Admitted || took > 2*time.Second {
		t.Errorf("%+v after %s", have, took)
	}
}

// TestLongRemoval: what an earlier session left may take longer to remove than a question.
func TestLongRemoval(t *testing.T) {
	t.Parallel()
	scan := "SCAN 0 MATCH RAYns@* COUNT 1000"
	f := startFake(t, &fake{canned: map[string]string{scan: list(bulk("1"), list()), "SCAN 1 ": list(bulk("1"), list())}})
	within := anywhere
	within.limits = limits{total: time.Second, clearing: time.Minute}
	time.AfterFunc(within.limits.total+within.limits.total/20, func() { f.say("SCAN 1 ", list(bulk("0"), list())) })
	c := claim()
	c.Session, c.Epoch = 2, 2
	expect(t, within.Ask(context.Background(), Server{Address: f.address}, c), reason.StoreServes)
	f.say("SCAN 1 ", list(bulk("1"), list()))
	within.limits.clearing = 100 * time.Millisecond
	expect(t, within.Ask(context.Background(), Server{Address: f.address}, c), reason.StoreStarting, "is being removed")
}

// TestWords: what goes wrong below Redis' protocol, in words that stay the same.
func TestWords(t *testing.T) {
	expired := x509.CertificateInvalidError{Reason: x509.Expired, Detail: "current time 2026-01-01T00:00:00Z is after 2020-01-01T00:00:00Z"}
	for want, err := range map[string]error{
		"its certificate has expired, or is not valid yet":       &handshakeError{expired},
		"its certificate is by an authority that is not trusted": &handshakeError{x509.UnknownAuthorityError{}},
		"tls: something": &handshakeError{errors.New("tls: something")},
		"x509: certificate is not authorized to sign other certificates": &handshakeError{x509.CertificateInvalidError{Reason: x509.NotAuthorizedToSign}},
	} {
		if have := distrust(err); have != want {
			t.Errorf("%v: %q", err, have)
		}
	}
	for want, err := range map[string]error{
		"there is no host of this name": &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "x", Server: "10.0.0.10:53", IsNotFound: true}},
		"its name cannot be looked up":  &net.OpError{Op: "dial", Err: &net.DNSError{Err: "server misbehaving", Name: "x"}},
		"no answer in time":             &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded},
		"connection refused":            &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)},
		"it closed the connection":      &handshakeError{io.EOF},
		"the network failed":            &net.OpError{Op: "dial", Err: errors.New("10.0.0.1:51234 has no way")},
		"":                              errors.New("redis: can't parse"),
	} {
		if have := absence(err); have != want || distrust(err) != "" {
			t.Errorf("%v: %q, %q", err, have, distrust(err))
		}
	}
}

// TestNothingIsLeftRunning: whatever came of a question, no goroutine and no connection stays.
func TestNothingIsLeftRunning(t *testing.T) {
	fine := startFake(t, &fake{})
	cut := startFake(t, &fake{canned: map[string]string{"HDEL": ""}})
	loop := startFake(t, &fake{canned: map[string]string{}})
	loop.canned["HDEL"] = "-MOVED 1 " + strings.TrimPrefix(loop.address, "redis://") + "\r\n"
	before := goleak.IgnoreCurrent()
	for _, address := range []string{fine.address, cut.address, loop.address, "redis://127.0.0.1:1", "rediss://127.0.0.1:1"} {
		answer(Server{Address: address}, claim())
		_, _ = anywhere.Sweep(context.Background(), Server{Address: address}, "ns", "uid-1")
	}
	goleak.VerifyNone(t, before)
}

// FuzzReplies: whatever a server answers, there is a verdict, and it admits nobody who was
// not answered well.
func FuzzReplies(f *testing.F) {
	for _, seed := range []string{"", "+OK\r\n", "-NOPERM\r\n", "*-1\r\n", "$-1\r\n", ":\r\n", "*1\r\n*1\r\n*1\r\n", "$5\r\nab\r\n", "-\r\n", "- \r\n", "-MOVED\r\n", "-MOVED a b:\r\n", "*2\r\n$1\r\n0\r\n*1\r\n*0\r\n", "\r\n", "_\r\n", "*2\r\n:1\r\n:2\r\n"} {
		for at := range 8 {
			f.Add(uint8(at), seed)
		}
	}
	words := []string{"HELLO", "PING", "ACL", "INFO", "HDEL", "HMGET", "SCAN", "SENTINEL"}
	f.Fuzz(func(t *testing.T, at uint8, answer string) {
		word := words[int(at)%len(words)]
		canned := map[string]string{word: answer}
		if word == "SENTINEL" {
			canned["INFO SENTINEL"] = bulk("x")
		}
		server := startFake(t, &fake{canned: canned})
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond) // an answer that is not complete
		defer cancel()
		have := anywhere.Ask(ctx, Server{Address: server.address}, claim())
		if _, known := reason.Lookup(have.Finding.Code); !known || have.Finding.Text == "" || have.Lost {
			t.Errorf("%+v", have)
		}
		_, _ = anywhere.Sweep(ctx, Server{Address: server.address}, "ns", "uid-1")
	})
}

// TestSweep_SparesKeysOfOthers: also where a server answers with more than was asked for.
func TestSweep_SparesKeysOfOthers(t *testing.T) {
	t.Parallel()
	keys := list(bulk("RAYns@mine"), bulk("RAYns2@theirs"), bulk("RAY"))
	f := startFake(t, &fake{canned: map[string]string{"SCAN 0 MATCH RAYns@* COUNT 1000": list(bulk("0"), keys)}})
	if _, err := anywhere.Sweep(t.Context(), Server{Address: f.address}, "ns", "uid-1"); err != nil {
		t.Fatal(err)
	}
	var gone []string
	for _, command := range f.commands() {
		if key, is := strings.CutPrefix(command, "UNLINK "); is {
			gone = append(gone, key)
		}
	}
	if want := []string{"RAYns@mine", markerKey("ns")}; !slices.Equal(gone, want) {
		t.Errorf("removed were %v, want %v", gone, want)
	}
}
