package wire

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/heliostat-dev/heliostat/history/pack"
	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

var roomy = Limits{Streams: 1000, NamespaceStreams: 1000, Wide: 64 << 20}

// shelf is an archive in memory.
type shelf struct {
	mutex   sync.Mutex
	records []pack.Record
	acked   map[pack.FileKey]int64
	opened  []Source
	open    int
	behind  int64
	// before is called before records are kept, and after thereafter; an error of either is that of Append.
	before, after func(records []pack.Record) error
	room          func(want int) (int, time.Duration)
}

func newShelf() *shelf { return &shelf{acked: map[pack.FileKey]int64{}} }

// intake is one stream to a shelf.
type intake struct {
	*shelf
	source Source
}

func (s *shelf) Open(_ context.Context, source Source) (Intake, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.opened = append(s.opened, source)
	s.open++
	return &intake{s, source}, nil
}

func (i *intake) Resume() (all []Acked) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	for key, offset := range i.acked {
		if key.Pod == i.source.Pod {
			all = append(all, Acked{ID: key.ID, Generation: key.Generation, Offset: offset, IsClosed: offset%2 == 1})
		}
	}
	return all
}

func (i *intake) Append(records []pack.Record) error {
	if i.before != nil {
		if err := i.before(records); err != nil {
			return err
		}
	}
	i.mutex.Lock()
	for _, record := range records {
		i.keep(record)
	}
	i.mutex.Unlock()
	if i.after != nil {
		return i.after(records)
	}
	return nil
}

func (s *shelf) keep(record pack.Record) {
	if chunk := record.Chunk; chunk != nil {
		copied := *chunk
		copied.Data = slices.Clone(chunk.Data)
		record.Chunk = &copied
		s.acked[chunk.FileKey] = end(record)
	} else if record.Hole != nil {
		s.acked[record.Hole.FileKey] = end(record)
	}
	s.records = append(s.records, record)
}

func (i *intake) Room(want int) (int, time.Duration) {
	if i.room != nil {
		return i.room(want)
	}
	return want, 0
}

func (i *intake) Behind(bytes int64, _ time.Duration) {
	i.mutex.Lock()
	i.behind = bytes
	i.mutex.Unlock()
}

func (i *intake) Close() {
	i.mutex.Lock()
	i.open--
	i.mutex.Unlock()
}

// content returns the bytes of a file by offset, as they would be merged: what came first stays.
func (s *shelf) content(key pack.FileKey) string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	bytes, there := []byte(nil), []bool(nil)
	for _, record := range s.records {
		if record.Chunk == nil || record.Chunk.FileKey != key {
			continue
		}
		if more := int(end(record)) - len(bytes); more > 0 {
			bytes, there = append(bytes, make([]byte, more)...), append(there, make([]bool, more)...)
		}
		for i, one := range record.Chunk.Data {
			if at := int(record.Chunk.Offset) + i; !there[at] {
				bytes[at], there[at] = one, true
			}
		}
	}
	if slices.Contains(there, false) {
		return "a hole"
	}
	return string(bytes)
}

// identify takes the pod's number from the metadata, and its namespace's.
func identify(ctx context.Context) (Source, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	pod, namespace := md.Get("pod"), md.Get("namespace")
	if len(pod) == 0 {
		return Source{}, status.Error(codes.Unauthenticated, "no token")
	}
	source := Source{Cluster: pack.UID{0xc}}
	copy(source.Pod[:], pod[0])
	copy(source.Namespace[:], namespace[0])
	return source, nil
}

// as returns a context of a pod.
func as(ctx context.Context, pod, namespace string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "pod", pod, "namespace", namespace)
}

// serve starts a server of a service, and returns what makes a connection to it.
func serve(t testing.TB, service pb.CollectServer) func() *grpc.ClientConn {
	t.Helper()
	listener := bufconn.Listen(4 << 10)
	server := grpc.NewServer(ServerOptions()...)
	pb.RegisterCollectServer(server, service)
	go func() { _ = server.Serve(listener) }() // ends with Stop
	t.Cleanup(server.Stop)
	return func() *grpc.ClientConn {
		connection, err := grpc.NewClient("passthrough:shelf", append(DialOptions(),
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		)...)
		must(t, err)
		t.Cleanup(func() { _ = connection.Close() })
		return connection
	}
}

func withShelf(t testing.TB, s *shelf, limits Limits) *grpc.ClientConn {
	t.Helper()
	return serve(t, NewServer(identify, s, limits))()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// within returns a context that ends long after a test that passes has ended.
func within(t testing.TB) context.Context {
	ctx, end := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(end)
	return ctx
}

// eventually waits until something holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for ctx := within(t); !holds(); {
		select {
		case <-ctx.Done():
			t.Fatalf("not within 30 s: %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// openAs opens a stream of a pod that takes no notice of acknowledgements.
func openAs(t testing.TB, connection *grpc.ClientConn, pod, namespace string) *Sender {
	t.Helper()
	s, err := Open(as(within(t), pod, namespace), connection, Version, func(Acked) {})
	must(t, err)
	t.Cleanup(s.Close)
	return s
}

func logFile(inode uint64, path string) pack.File {
	return pack.File{FileKey: pack.FileKey{ID: pack.MakeFileID(inode, 1)}, Path: path}
}

// of returns the key of a file in a pod.
func of(file pack.File, pod string) pack.FileKey {
	copy(file.Pod[:], pod)
	return file.FileKey
}

var errBroken = errors.New("broken")
