package collector_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/heliostat-dev/heliostat/history/collector"
	"github.com/heliostat-dev/heliostat/history/pack"
	"github.com/heliostat-dev/heliostat/history/redact"
	"github.com/heliostat-dev/heliostat/history/wire"
	historyv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

// replica is an archiver that keeps everything in memory.
type replica struct {
	mutex   sync.Mutex
	files   map[pack.FileKey][]byte
	paths   map[pack.FileKey]string
	listed  map[pack.FileKey]int64
	last    bool // the list has come
	streams int
	behind  int64
	holes   []pack.Hole
	room    func(want int) int
	// isFull: it takes streams, and keeps nothing.
	isFull bool
}

func newReplica() *replica {
	return &replica{files: map[pack.FileKey][]byte{}, paths: map[pack.FileKey]string{}, listed: map[pack.FileKey]int64{}}
}

// Open implements wire.Archive.
func (r *replica) Open(context.Context, wire.Source) (wire.Intake, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.streams++
	return r, nil
}

// Resume implements wire.Intake.
func (r *replica) Resume() (all []wire.Acked) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for key, data := range r.files {
		all = append(all, wire.Acked{ID: key.ID, Generation: key.Generation, Offset: int64(len(data))})
	}
	return all
}

// Append implements wire.Intake.
func (r *replica) Append(records []pack.Record) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.isFull {
		return errors.New("the volume is full")
	}
	for _, record := range records {
		switch {
		case record.Chunk != nil:
			key, offset := record.Chunk.FileKey, record.Chunk.Offset
			if offset > int64(len(r.files[key])) {
				return fmt.Errorf("a chunk at %d of %s, which has %d bytes", offset, record.Chunk.Path, len(r.files[key]))
			}
			r.files[key] = append(r.files[key][:offset], record.Chunk.Data...)
			r.paths[key] = record.Chunk.Path
		case record.Hole != nil:
			r.holes = append(r.holes, *record.Hole)
		case record.Part != nil:
			for _, file := range record.Part.Files {
				r.listed[pack.FileKey{Pod: record.Part.Pod, ID: file.ID, Generation: file.Generation}] = file.Size
			}
			r.last = r.last || record.Part.Of > 0 && record.Part.Number == record.Part.Of-1
		}
	}
	return nil
}

// Room implements wire.Intake.
func (r *replica) Room(want int) (int, time.Duration) {
	if r.room != nil {
		return r.room(want), 5 * time.Millisecond
	}
	return want, 0
}

// Behind implements wire.Intake.
func (r *replica) Behind(bytes int64, _ time.Duration) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.behind = max(r.behind, bytes)
}

// Close implements wire.Intake.
func (r *replica) Close() {}

// byPath returns the bytes of all files, by their path.
func (r *replica) byPath() map[string]string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	all := map[string]string{}
	for key, data := range r.files {
		all[r.paths[key]] += string(data)
	}
	return all
}

// bed is a pod with files, and replicas that can be away.
type bed struct {
	t        *testing.T
	root     string
	mutex    sync.Mutex
	servers  map[string]*grpc.Server
	networks map[string]*bufconn.Listener
	dialled  []string
	log      bytes.Buffer
	done     chan error
	stop     context.CancelFunc
	// within is how long the collector may take to end.
	within time.Duration
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{t: t, root: t.TempDir(), servers: map[string]*grpc.Server{}, networks: map[string]*bufconn.Listener{}, done: make(chan error, 1), within: 20 * time.Second}
	if err := os.MkdirAll(b.path(""), 0o700); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bed) path(name string) string {
	return filepath.Join(b.root, "session_2026-12-01_09-00-00_000001_1", "logs", name)
}

// write appends to a file.
func (b *bed) write(name, text string) {
	b.t.Helper()
	file, err := os.OpenFile(b.path(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := io.WriteString(file, text); err != nil {
		b.t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		b.t.Fatal(err)
	}
}

// serve starts a replica at an address.
func (b *bed) serve(address string, r *replica) {
	b.t.Helper()
	identify := func(context.Context) (wire.Source, error) { return wire.Source{Pod: pack.UID{1}}, nil }
	server := grpc.NewServer(wire.ServerOptions()...)
	historyv1.RegisterCollectServer(server, wire.NewServer(identify, r, wire.Limits{Streams: 10, NamespaceStreams: 10, Wide: 8 << 20}))
	network := bufconn.Listen(1 << 20)
	b.mutex.Lock()
	b.servers[address], b.networks[address] = server, network
	b.mutex.Unlock()
	go func() { _ = server.Serve(network) }() // it ends with the test
	b.t.Cleanup(server.Stop)
}

// away ends a replica.
func (b *bed) away(address string) {
	b.mutex.Lock()
	server := b.servers[address]
	delete(b.networks, address)
	b.mutex.Unlock()
	server.Stop()
}

// start runs a collector whose cluster prefers replicas in an order that the test asks for.
func (b *bed) start(expressions ...string) {
	b.t.Helper()
	redactor, err := redact.New(nil, expressions)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.t.Context())
	b.stop = stop
	cfg := collector.Config{
		Directory: b.root, Archivers: []string{"a:1", "b:1"}, Cluster: "demo", Redactor: redactor, Log: slog.New(slog.NewTextHandler(&b.log, nil)),
		Dial: func(address string) (*grpc.ClientConn, error) {
			b.mutex.Lock()
			b.dialled = append(b.dialled, address)
			b.mutex.Unlock()
			return grpc.NewClient("passthrough:///"+address, append(wire.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
					b.mutex.Lock()
					network := b.networks[address]
					b.mutex.Unlock()
					if network == nil {
						return nil, errors.New("it is away")
					}
					return network.DialContext(ctx)
				}))...)
		},
		Times: collector.Times{Pass: 10 * time.Millisecond, Prefer: 100 * time.Millisecond, Retry: 40 * time.Millisecond, Open: time.Second, Quiet: time.Hour, End: b.within},
		Now:   time.Now,
	}
	go func() { b.done <- collector.Run(ctx, cfg) }()
}

// end has the pod end, and waits for the collector.
func (b *bed) end() {
	b.t.Helper()
	b.stop()
	select {
	case err := <-b.done:
		if err != nil {
			b.t.Fatal(err)
		}
	case <-time.After(20 * time.Second):
		b.t.Fatal("the collector has not ended")
	}
}

// until waits until something holds.
func (b *bed) until(what string, holds func() bool) {
	b.t.Helper()
	for begin := time.Now(); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Since(begin) > 20*time.Second {
			b.t.Fatal("it does not come: " + what)
		}
	}
}

// preferred returns the replica that the cluster prefers, and the other one.
func (b *bed) preferred() (first, second string) {
	b.t.Helper()
	b.until("a first try", func() bool { b.mutex.Lock(); defer b.mutex.Unlock(); return len(b.dialled) > 0 })
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.dialled[0], map[string]string{"a:1": "b:1", "b:1": "a:1"}[b.dialled[0]]
}

func TestRun_SendsAllFilesAndTheirListAtTheEnd(t *testing.T) {
	b, r := newBed(t), newReplica()
	b.serve("a:1", r)
	b.serve("b:1", r)
	b.write("raylet.out", "one\n")
	b.start(`secret-\S+`)
	b.until("the first line", func() bool { return r.byPath()["raylet.out"] == "one\n" })
	b.write("raylet.out", "two secret-of-mine\n")
	b.write("worker.out", "without an end")
	if err := os.Rename(b.path("raylet.out"), b.path("raylet.out.1")); err != nil {
		t.Fatal(err)
	}
	b.write("raylet.out", "three\n")
	b.end()
	want := map[string]string{"raylet.out.1": "one\ntwo **************\n", "worker.out": "without an end", "raylet.out": "three\n"}
	if got := r.byPath(); !maps.Equal(got, want) {
		t.Errorf("the archive has %q, want %q", got, want)
	}
	if !r.last || len(r.listed) != 3 {
		t.Errorf("the list has %v, and its last part came: %v", r.listed, r.last)
	}
	for key, size := range r.listed {
		if int64(len(r.files[key])) != size {
			t.Errorf("%s has %d bytes, and %d in the list", r.paths[key], len(r.files[key]), size)
		}
	}
}

func TestRun_GoesOnAtTheSameByteAfterABreak(t *testing.T) {
	b, r := newBed(t), newReplica()
	b.serve("a:1", r)
	b.serve("b:1", r)
	b.start()
	first, _ := b.preferred()
	var want strings.Builder
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	for i := range 20 {
		line := strings.Repeat(fmt.Sprint(i, " "), 1+random.IntN(20_000)) + "\n"
		want.WriteString(line)
		b.write("job.log", line)
		if i%5 == 4 {
			b.until("the first lines", func() bool { return len(r.byPath()["job.log"]) > want.Len()/2 })
			b.away(first)
			b.serve(first, r)
		}
	}
	b.until("all lines", func() bool { return len(r.byPath()["job.log"]) == want.Len() })
	b.end()
	if r.byPath()["job.log"] != want.String() {
		t.Error("the archive has other bytes than the file")
	}
	if r.streams < 2 {
		t.Errorf("there were %d streams", r.streams)
	}
}

func TestRun_TakesTheOtherReplicaAfterAWhile(t *testing.T) {
	b := newBed(t)
	b.write("raylet.out", "one\n")
	b.start()
	first, second := b.preferred()
	other := newReplica()
	begin := time.Now()
	b.serve(second, other)
	b.until("the line at the other replica", func() bool { return other.byPath()["raylet.out"] == "one\n" })
	if waited := time.Since(begin); waited < 50*time.Millisecond {
		t.Errorf("it waited %v for the replica that it prefers", waited)
	}
	own := newReplica()
	b.serve(first, own)
	b.away(second)
	b.until("the line at its own replica", func() bool { return own.byPath()["raylet.out"] == "one\n" })
	b.serve(second, other)
	b.end()
	if !own.last {
		t.Error("its own replica has no list")
	}
	if lines := strings.Count(b.log.String(), "Nothing is archived"); lines == 0 || lines > 2 {
		t.Errorf("it logged a failure %d times:\n%s", lines, b.log.String())
	}
}

func TestRun_EndsWithoutAReplica(t *testing.T) {
	b := newBed(t)
	b.within = 200 * time.Millisecond
	b.write("raylet.out", "one\n")
	b.start()
	b.preferred()
	b.end()
	if !strings.Contains(b.log.String(), "Not all was archived") {
		t.Errorf("it logged\n%s", b.log.String())
	}
}

func TestRun_SendsTheListWhileAFileGrows(t *testing.T) {
	b, r := newBed(t), newReplica()
	b.within = time.Second
	b.serve("a:1", r)
	b.serve("b:1", r)
	b.write("raylet.out", "one\n")
	b.start()
	b.until("the line", func() bool { return r.byPath()["raylet.out"] == "one\n" })
	writing, stop := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	writer.Go(func() {
		for writing.Err() == nil {
			b.write("raylet.out", "more\n")
		}
	})
	b.end()
	stop()
	writer.Wait()
	if !r.last {
		t.Error("the replica has no list")
	}
}

func TestRun_TakesTheOtherReplicaWhereOneKeepsNothing(t *testing.T) {
	b, full, good := newBed(t), newReplica(), newReplica()
	full.isFull = true
	b.write("raylet.out", "one\n")
	b.start()
	first, second := b.preferred()
	b.serve(first, full)
	b.serve(second, good)
	b.until("the line at the other replica", func() bool { return good.byPath()["raylet.out"] == "one\n" })
	b.end()
}

func TestRun_ReportsWhatItCannotSend(t *testing.T) {
	b, r := newBed(t), newReplica()
	var mutex sync.Mutex
	left, hasRoom := 64<<10, false
	r.room = func(want int) int {
		mutex.Lock()
		defer mutex.Unlock()
		if hasRoom {
			return want
		}
		granted := min(want, left)
		left -= granted
		return granted
	}
	b.serve("a:1", r)
	b.serve("b:1", r)
	const size = 2 << 20
	b.write("worker.out", strings.Repeat("x", 99)+"\n")
	b.write("worker.out", strings.Repeat(strings.Repeat("y", 99)+"\n", size/100))
	b.start()
	b.until("a report", func() bool { r.mutex.Lock(); defer r.mutex.Unlock(); return r.behind > size/2 })
	mutex.Lock()
	hasRoom = true
	mutex.Unlock()
	b.end()
	if got := len(r.byPath()["worker.out"]); got != 100+size/100*100 {
		t.Errorf("%d bytes have come", got)
	}
}

func TestRun_ListsFilesThatEndedOnce(t *testing.T) {
	b, r := newBed(t), newReplica()
	b.serve("a:1", r)
	b.serve("b:1", r)
	b.start()
	var names []string
	for i := range 5 {
		names = append(names, fmt.Sprintf("worker-%d.out", i))
		b.write(names[i], "line\n")
	}
	b.until("all files", func() bool { return len(r.byPath()) == 5 })
	for _, name := range names[:3] {
		if err := os.Remove(b.path(name)); err != nil {
			t.Fatal(err)
		}
	}
	b.until("the sizes of files that ended", func() bool { r.mutex.Lock(); defer r.mutex.Unlock(); return len(r.listed) == 3 })
	b.end()
	if len(r.listed) != 5 || !r.last {
		t.Errorf("the lists have %d files", len(r.listed))
	}
	if slices.ContainsFunc(r.holes, func(pack.Hole) bool { return true }) {
		t.Errorf("it reported gaps: %v", r.holes)
	}
}
