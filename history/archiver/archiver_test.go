package archiver

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/heliostat-dev/heliostat/history/archive"
	"github.com/heliostat-dev/heliostat/history/index"
	"github.com/heliostat-dev/heliostat/history/pack"
	"github.com/heliostat-dev/heliostat/history/wire"
	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

func TestArchiver_GivesBackWhatACollectorSent(t *testing.T) {
	b := newBed(t)
	b.config.Grace = 10 * time.Second
	b.start()
	text := bytes.Repeat([]byte("a line of output\n"), 30_000)
	sender := b.send(0, text)
	client := b.server()
	got, err := read(t.Context(), client, 0)
	if b.must(err); !bytes.Equal(got, text) {
		t.Fatalf("%d bytes are read of %d", len(got), len(text))
	}
	files, err := client.ListFiles(t.Context(), &pb.ListFilesRequest{NamespaceUid: source.Namespace.String(), ClusterUid: source.Cluster.String()})
	b.must(err)
	if len(files.GetFiles()) != 1 || files.GetFiles()[0].GetSize() != int64(len(text)) || files.GetArchiveState() != "Collecting" {
		t.Errorf("the list is %v", files)
	}
	states, err := pb.NewReadClient(b.dial(b.authority, wire.NameOfOperator)).WatchStates(t.Context(), &pb.WatchStatesRequest{})
	b.must(err)
	first, err := states.Recv()
	b.must(err)
	if first.GetClusterUid() != source.Cluster.String() || len(first.GetStreams()) != 1 || first.GetStreams()[0] != source.Pod.String() {
		t.Errorf("the first state is %v", first)
	}
	_, text2 := b.get("/metrics")
	for _, want := range []string{
		"heliostat_archiver_streams 1", "heliostat_archiver_received_bytes_total 510000", "heliostat_archiver_spool_limit_bytes 6.7108864e+07",
		`heliostat_archiver_store_errors_total{call="write"} 0`, "heliostat_archiver_writer 1", "heliostat_archiver_pass_errors_total 0",
	} {
		if !strings.Contains(text2, want+"\n") {
			t.Errorf("the metrics have no %s", want)
		}
	}
	// The end: the stream ends so that its collector goes elsewhere, and all is packed.
	b.end()
	<-sender.Done()
	if status.Code(sender.Err()) != codes.Unavailable {
		t.Errorf("the collector's stream ended with %v", sender.Err())
	}
	for {
		if _, err = states.Recv(); err != nil {
			break
		}
	}
	if status.Code(err) != codes.Unavailable {
		t.Errorf("the watch ended with %v", err)
	}
	if names := b.spooled(); len(names) > 0 {
		t.Errorf("the spool has %q after the end", names)
	}
	b.start()
	if got, err = read(t.Context(), b.server(), 0); err != nil || !bytes.Equal(got, text) {
		t.Errorf("the next run reads %d bytes of %d: %v", len(got), len(text), err)
	}
}

// spooled returns the segments on the spool.
func (b *bed) spooled() (names []string) {
	entries, err := os.ReadDir(b.config.Spool)
	b.must(err)
	for _, entry := range entries {
		if strings.Count(entry.Name(), ".") == 2 && !strings.HasSuffix(entry.Name(), ".ends") {
			names = append(names, entry.Name())
		}
	}
	return names
}

func TestArchiver_KeepsWhatItAcknowledgedWhileTheStoreIsAway(t *testing.T) {
	b := newBed(t)
	b.start()
	b.await("readiness", func() bool { code, _ := b.get("/readyz"); return code == http.StatusOK })
	b.store.isAway.Store(true)
	b.send(0, []byte("acknowledged, "))
	b.late.Store(int64(2 * time.Minute)) // its pack is due
	b.await("a failure of the store", func() bool {
		_, text := b.get("/metrics")
		return b.running.bucket.isAway.Load() && strings.Contains(text, `store_errors_total{call="write"} 1`)
	})
	b.end()
	// Without a grace nothing is packed: it is as if the archiver was killed.
	b.isAway = true
	b.start()
	if len(b.spooled()) != 1 {
		t.Fatalf("the spool has %q", b.spooled())
	}
	if code, text := b.get("/readyz"); code != http.StatusOK {
		t.Errorf("an archiver whose store was right once, and is away, is not ready: %s", text)
	}
	b.send(14, []byte("and more"))
	if got, err := read(t.Context(), b.server(), 0); err != nil || string(got) != "acknowledged, and more" {
		t.Errorf("read %q: %v", got, err)
	}
	b.store.isAway.Store(false)
	b.late.Store(int64(4 * time.Minute))
	b.await("the packs", func() bool { return len(b.spooled()) == 0 })
	if got, err := read(t.Context(), b.server(), 0); err != nil || string(got) != "acknowledged, and more" {
		t.Errorf("read %q of packs: %v", got, err)
	}
}

func TestArchiver_IsNotReadyBeforeItsStoreWasRight(t *testing.T) {
	b := newBed(t)
	b.isAway = true
	b.records.isSynced.Store(false)
	b.start()
	if code, text := b.get("/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(text, "Kubernetes") {
		t.Errorf("without objects it answers %d %s", code, text)
	}
	b.records.isSynced.Store(true)
	b.await("the reason", func() bool {
		code, text := b.get("/readyz")
		return code == http.StatusServiceUnavailable && strings.Contains(text, errAway.Error())
	})
	if code, _ := b.get("/healthz"); code != http.StatusOK {
		t.Errorf("it is not alive: %d", code)
	}
	b.send(0, []byte("taken all the same"))
}

// callsOf returns one call of each kind.
func callsOf(t *testing.T) map[string]func(*grpc.ClientConn) error {
	return map[string]func(*grpc.ClientConn) error{
		"Append": func(c *grpc.ClientConn) error {
			sender, err := wire.Open(t.Context(), c, wire.Version, func(wire.Acked) {})
			if err == nil {
				sender.Close()
			}
			return err
		},
		"ListRecords": func(c *grpc.ClientConn) error {
			_, err := pb.NewReadClient(c).ListRecords(t.Context(), &pb.ListRecordsRequest{})
			return err
		},
		"ReadFile": func(c *grpc.ClientConn) error { _, err := read(t.Context(), pb.NewReadClient(c), 0); return err },
		"DeleteHistory": func(c *grpc.ClientConn) error {
			_, err := pb.NewReadClient(c).DeleteHistory(t.Context(), &pb.DeleteHistoryRequest{
				NamespaceUid: source.Namespace.String(), Kind: "ComputeCluster", Uid: source.Cluster.String(), User: "ann",
			})
			return err
		},
		"WatchStates": func(c *grpc.ClientConn) error {
			stream, err := pb.NewReadClient(c).WatchStates(t.Context(), &pb.WatchStatesRequest{})
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		},
	}
}

func TestArchiver_AnswersEachCallerByItsCertificate(t *testing.T) {
	b := newBed(t)
	b.isLeader = false
	b.start()
	b.send(0, []byte("text"))
	other := newAuthority("archivers")
	calls := callsOf(t)
	const (
		ok, denied = codes.OK, codes.PermissionDenied
		unknown    = codes.Unauthenticated
		away       = codes.Unavailable // TLS refuses, before there is a call
	)
	for caller, one := range map[string]struct {
		connection *grpc.ClientConn
		// In the order of Append, ListRecords, ReadFile, DeleteHistory, WatchStates.
		want [5]codes.Code
	}{
		"a collector":                   {b.dial(nil), [5]codes.Code{ok, unknown, unknown, unknown, unknown}},
		"the server":                    {b.dial(b.authority, wire.NameOfServer), [5]codes.Code{denied, ok, ok, codes.FailedPrecondition, denied}},
		"the operator":                  {b.dial(b.authority, wire.NameOfOperator), [5]codes.Code{denied, denied, denied, denied, ok}},
		"another program":               {b.dial(b.authority, "archiver.heliostat.svc"), [5]codes.Code{unknown, denied, denied, denied, denied}},
		"one of another name":           {b.dial(b.authority, "heliostat", wire.NameOfServer), [5]codes.Code{unknown, denied, denied, denied, denied}},
		"a server of another authority": {b.dial(other, wire.NameOfServer), [5]codes.Code{away, away, away, away, away}},
	} {
		for i, call := range []string{"Append", "ListRecords", "ReadFile", "DeleteHistory", "WatchStates"} {
			if err := calls[call](one.connection); status.Code(err) != one.want[i] {
				t.Errorf("%s calls %s: %v, want %s", caller, call, err, one.want[i])
			}
		}
	}
	// A certificate that is over gives nothing more, also where its connection began before.
	connection := b.dial(b.authority, wire.NameOfServer)
	b.must(calls["ListRecords"](connection))
	b.late.Store(int64(40 * time.Minute))
	if err := calls["ListRecords"](connection); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a certificate that is over: %v", err)
	}
}

func TestArchiver_ForgetsPodsThatWereKilled(t *testing.T) {
	b := newBed(t)
	now := time.Now()
	b.records.endings = map[pack.UID]index.Ending{source.Pod: {At: now.UnixMilli(), Reason: pack.Killed}}
	b.start()
	for after, want := range map[time.Duration]bool{time.Minute: false, endedFor: true} {
		hasEnded := b.running.hasEnded(now.Add(after))
		if hasEnded(archive.Key{Cluster: source.Cluster}, source.Pod) != want || hasEnded(archive.Key{Cluster: source.Cluster}, pack.UID{9}) {
			t.Errorf("%s after its end a pod has ended: %t", after, !want)
		}
	}
	b.send(0, []byte("text")).Close()
	ends := filepath.Join(b.config.Spool, source.Namespace.String()+"."+source.Cluster.String()+".ends")
	b.late.Store(int64(2 * time.Minute))
	b.await("the pack", func() bool { _, err := os.Stat(ends); return err == nil })
	b.late.Store(int64(endedFor + time.Minute))
	b.await("the end of what is known of the pod", func() bool { _, err := os.Stat(ends); return err != nil })
}

func TestArchiver_DeletesWhereItHasTheLease(t *testing.T) {
	b := newBed(t)
	b.start()
	b.await("the Lease", b.running.isWriter.Load)
	remove := func(kind string) error {
		_, err := b.server().DeleteHistory(t.Context(), &pb.DeleteHistoryRequest{
			NamespaceUid: source.Namespace.String(), Kind: kind, Uid: source.Cluster.String(), User: "ann",
		})
		return err
	}
	if err := remove("ComputeCluster"); status.Code(err) != codes.Aborted {
		t.Errorf("the archive of a cluster that has not ended: %v", err)
	}
	b.must(remove("ClusterJob"))
	if b.records.deleted.Load() != source.Cluster.String() {
		t.Errorf("the record of %v was deleted", b.records.deleted.Load())
	}
}

func TestArchiver_ReadsItsCertificatesAgain(t *testing.T) {
	b := newBed(t)
	b.start()
	ping := func(by *authority) codes.Code {
		_, err := pb.NewReadClient(b.dial(by, wire.NameOfServer)).ListRecords(t.Context(), &pb.ListRecordsRequest{})
		return status.Code(err)
	}
	former, next := b.authority, newAuthority("archivers")
	// Both authorities count, and the archiver shows a certificate of the new one.
	b.write("ca.crt", append(append([]byte(nil), former.pem...), next.pem...))
	b.issue(next)
	if code := ping(next); code != codes.Unavailable {
		t.Fatalf("before the files are read again a new authority gets %s", code)
	}
	b.late.Store(int64(readEach))
	b.authority = next
	if got := [2]codes.Code{ping(next), ping(former)}; got != [2]codes.Code{} {
		t.Errorf("with two authorities callers get %s", got)
	}
	b.write("ca.crt", next.pem)
	b.late.Store(2 * int64(readEach))
	if got := [2]codes.Code{ping(next), ping(former)}; got != [2]codes.Code{codes.OK, codes.Unavailable} {
		t.Errorf("with the new authority alone callers get %s", got)
	}
	// What cannot be read leaves the former ones in use.
	b.write("ca.crt", []byte("junk"))
	b.write("tls.key", []byte("junk"))
	b.late.Store(3 * int64(readEach))
	if code := ping(next); code != codes.OK {
		t.Errorf("with broken files a caller gets %s", code)
	}
}

func TestDoor_BoundsWhoComesIn(t *testing.T) {
	b := newBed(t)
	b.start()
	b.running.servers.door.mutex.Lock()
	b.running.servers.door.limits.hostConnections = 2
	b.running.servers.door.mutex.Unlock()
	var held []net.Conn
	for range 2 {
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", b.address)
		b.must(err)
		held = append(held, connection)
	}
	b.await("both connections", func() bool {
		b.running.servers.door.mutex.Lock()
		defer b.running.servers.door.mutex.Unlock()
		return b.running.servers.door.open == 2
	})
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", b.address)
	b.must(err)
	if _, err := connection.Read(make([]byte, 1)); err == nil {
		t.Error("a third connection of a host is served")
	}
	// A peer that speaks no gRPC is closed, and both give their places back.
	_, err = held[0].Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	b.must(err)
	talk := tls.Client(held[1], &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13})
	b.must(talk.HandshakeContext(t.Context()))
	b.must(talk.Close())
	b.await("their places", func() bool {
		b.running.servers.door.mutex.Lock()
		defer b.running.servers.door.mutex.Unlock()
		return b.running.servers.door.open == 0 && len(b.running.servers.door.hosts) == 0
	})
}

func TestMark_RefusesAForeignSpool(t *testing.T) {
	b := newBed(t)
	b.start()
	b.end()
	for name, change := range map[string]func(*Config){
		"another replica":      func(c *Config) { c.Pod = "archiver-1" },
		"another installation": func(c *Config) { c.Namespace = "other" },
	} {
		cfg := b.config
		change(&cfg)
		if _, err := assemble(cfg, outside{}); !errors.Is(err, errForeign) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.must(os.WriteFile(filepath.Join(b.config.Spool, markName), []byte("junk"), 0o600))
	if _, err := assemble(b.config, outside{}); err == nil {
		t.Error("a mark that nobody can read is taken")
	}
	b.config.Pod = "archiver"
	if _, err := assemble(b.config, outside{}); err == nil {
		t.Error("a pod without a number is taken")
	}
}

// lease is a Lease in memory, as one replica sees it.
type lease struct {
	name   string
	shared *leaseRecord
}

type leaseRecord struct {
	mutex  sync.Mutex
	record *resourcelock.LeaderElectionRecord
}

func (l lease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.shared.mutex.Lock()
	defer l.shared.mutex.Unlock()
	if l.shared.record == nil {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "archiver")
	}
	copied := *l.shared.record
	return &copied, []byte(copied.HolderIdentity + copied.RenewTime.String()), nil
}

func (l lease) Create(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(context.Background(), record)
}

func (l lease) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.shared.mutex.Lock()
	defer l.shared.mutex.Unlock()
	l.shared.record = &record
	return nil
}

func (l lease) RecordEvent(string) {}
func (l lease) Identity() string   { return l.name }
func (l lease) Describe() string   { return "archiver" }

func TestElection_HandsTheWorkOn(t *testing.T) {
	shared := &leaseRecord{}
	short := times{lease: 2 * time.Second, renew: time.Second, retry: 50 * time.Millisecond}
	type running struct {
		stop           context.CancelFunc
		began, stopped chan struct{}
	}
	start := func(name string) running {
		ctx, cancel := context.WithCancel(t.Context())
		r := running{cancel, make(chan struct{}, 1), make(chan struct{})}
		go func() {
			defer close(r.stopped)
			if err := (election{lease{name, shared}, short, slog.New(slog.DiscardHandler)}).run(ctx, func(term context.Context) {
				r.began <- struct{}{}
				<-term.Done()
			}); err != nil {
				t.Error(err)
			}
		}()
		return r
	}
	one := start("one")
	<-one.began
	two := start("two")
	select {
	case <-two.began:
		t.Fatal("two replicas have the Lease")
	case <-time.After(300 * time.Millisecond):
	}
	one.stop()
	<-one.stopped
	select {
	case <-two.began:
	case <-time.After(time.Second):
		t.Error("a Lease that was given back is not taken")
	}
	two.stop()
	<-two.stopped
}
