package reader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/heliostat-dev/heliostat/history/archive"
	"github.com/heliostat-dev/heliostat/history/index"
	"github.com/heliostat-dev/heliostat/history/pack"
	"github.com/heliostat-dev/heliostat/history/wire"
	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

var (
	key = archive.Key{Namespace: pack.UID{1}, Cluster: pack.UID{2}}
	pod = pack.UID{3}
)

// objects is a store in memory, which counts lists.
type objects struct {
	mutex sync.Mutex
	data  map[string][]byte
	lists int
	reads int
}

var errMissing = errors.New("no such object")

func (o *objects) Write(_ context.Context, key string, data []byte) error {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.data[key] = slices.Clone(data)
	return nil
}

func (o *objects) Read(_ context.Context, key string, offset, length int64) ([]byte, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.reads++
	data, is := o.data[key]
	if !is {
		return nil, errMissing
	}
	return data[offset:min(offset+length, int64(len(data)))], nil
}

func (o *objects) Delete(_ context.Context, key string) error {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	delete(o.data, key)
	return nil
}

func (o *objects) List(_ context.Context, prefix string, each func(string, int64, int64) error) error {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.lists++
	for key, data := range o.data {
		if strings.HasPrefix(key, prefix) {
			if err := each(key, int64(len(data)), 0); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *objects) IsNotFound(err error) bool { return errors.Is(err, errMissing) }

// table has the record of one cluster.
type table struct {
	state   string
	endings map[pack.UID]index.Ending
	limit   int32
	err     error
}

func (t *table) List(_ context.Context, request *pb.ListRecordsRequest) (*pb.ListRecordsResponse, error) {
	t.limit = request.GetLimit()
	return &pb.ListRecordsResponse{Next: "next"}, t.err
}

func (t *table) Get(_ context.Context, request *pb.GetRecordRequest) (*pb.GetRecordResponse, error) {
	if request.GetUid() != key.Cluster.String() {
		return nil, status.Error(codes.NotFound, "no such record")
	}
	return &pb.GetRecordResponse{
		Record: &pb.Record{Namespace: "team", Name: "demo", ArchiveState: t.state},
		Pods:   []*pb.Pod{{Name: "demo-head", Uid: pod.String()}},
	}, t.err
}

func (t *table) Endings(pack.UID) map[pack.UID]index.Ending { return t.endings }

// keeper notes what is deleted.
type keeper struct {
	deleted   []string
	displaced map[archive.Key]int64
	err       error
}

func (k *keeper) DeleteHistory(_ context.Context, request *pb.DeleteHistoryRequest) error {
	k.deleted = append(k.deleted, request.GetUid()+" by "+request.GetUser())
	return k.err
}

func (k *keeper) Displaced() map[archive.Key]int64 { return k.displaced }

// bed is a server with one archive.
type bed struct {
	t       *testing.T
	now     int64
	store   *objects
	table   *table
	keeper  *keeper
	archive *archive.Archive
	states  *States
	server  *Server
	client  pb.ReadClient
}

// newBedWithoutServer returns one that no client reaches.
func newBedWithoutServer(t *testing.T) *bed {
	t.Helper()
	b := &bed{t: t, now: 1_700_000_000_000, store: &objects{data: map[string][]byte{}}, table: &table{}, keeper: &keeper{}}
	volume, err := archive.OpenVolume(t.TempDir())
	b.must(err)
	clock := func() int64 { return b.now }
	b.archive, err = archive.Open(archive.Settings{
		SpoolBytes: 64 << 20, PackBytes: 4 << 20, PackAfter: 60_000, IndexBytes: 1 << 20, Packers: 2, Now: clock,
	}, volume, b.store)
	b.must(err)
	b.states = NewStates(b.archive, func() bool { return false }, clock)
	b.server = New(Config{
		Archive: b.archive, Records: b.table, Keeper: b.keeper, States: b.states, Reads: 4, Now: clock,
		Caller: func(context.Context) string { return "server" }, Log: slog.New(slog.DiscardHandler),
	})
	return b
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := newBedWithoutServer(t)
	listener := bufconn.Listen(64 << 10)
	server := grpc.NewServer(grpc.MaxRecvMsgSize(512 << 10))
	pb.RegisterReadServer(server, b.server)
	go func() { _ = server.Serve(listener) }()
	connection, err := grpc.NewClient("passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	b.must(err)
	t.Cleanup(func() { _ = connection.Close(); server.Stop() })
	b.client = pb.NewReadClient(connection)
	return b
}

func (b *bed) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func fileOf(number byte, path string) pack.File {
	return pack.File{FileKey: pack.FileKey{Pod: pod, ID: pack.FileID{15: number}}, Path: path}
}

// append sends records of the pod.
func (b *bed) append(records ...pack.Record) {
	b.t.Helper()
	in, err := b.states.Open(b.t.Context(), wire.Source{Namespace: key.Namespace, Cluster: key.Cluster, Pod: pod})
	b.must(err)
	for i := range records {
		records[i].Cluster = key.Cluster
	}
	b.must(in.Append(records))
	in.Close()
}

func (b *bed) chunk(file pack.File, offset int64, data []byte) pack.Record {
	return pack.Record{Chunk: &pack.Chunk{File: file, Offset: offset, At: b.now, Data: data}}
}

// list returns the paths of all pages, a line for each.
func (b *bed) list(request *pb.ListFilesRequest) (pages [][]string, last *pb.ListFilesResponse) {
	b.t.Helper()
	request.NamespaceUid, request.ClusterUid = key.Namespace.String(), key.Cluster.String()
	for {
		answer, err := b.client.ListFiles(b.t.Context(), request)
		b.must(err)
		var page []string
		for _, file := range answer.GetFiles() {
			page = append(page, string(file.GetPath()))
		}
		pages = append(pages, page)
		if request.After = answer.GetNext(); request.GetAfter() == "" {
			return pages, answer
		}
	}
}

// read returns what is read of a file: its bytes, and missing ranges in brackets.
func (b *bed) read(request *pb.ReadFileRequest) (string, error) {
	b.t.Helper()
	request.NamespaceUid, request.ClusterUid, request.PodUid = key.Namespace.String(), key.Cluster.String(), pod.String()
	stream, err := b.client.ReadFile(b.t.Context(), request)
	b.must(err)
	var all strings.Builder
	for {
		answer, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all.String(), nil
		}
		if err != nil {
			return all.String(), err
		}
		if missing := answer.GetMissing(); missing != nil {
			fmt.Fprintf(&all, "[%d %d %s]", missing.GetOffset(), missing.GetLength(), missing.GetReason())
		}
		all.Write(answer.GetData())
	}
}

func TestListFiles_PagesThroughAllFiles(t *testing.T) {
	b := newBed(t)
	var records []pack.Record
	for i := range byte(5) {
		records = append(records, b.chunk(fileOf(i, fmt.Sprintf("worker-%d.out", i)), 0, []byte("text")))
	}
	records = append(records,
		pack.Record{Hole: &pack.Hole{File: fileOf(1, "worker-1.out"), Offset: 4, Length: 6, At: b.now, Reason: pack.Unreadable}},
		b.chunk(fileOf(1, "worker-1.out"), 10, []byte("more")),
		pack.Record{Part: &pack.Part{Pod: pod, Files: []pack.Listed{{ID: pack.FileID{15: 2}, Size: 4, Acked: 4}}}})
	b.append(records...)
	pages, _ := b.list(&pb.ListFilesRequest{Limit: 2})
	want := [][]string{{"worker-0.out", "worker-1.out"}, {"worker-2.out", "worker-3.out"}, {"worker-4.out"}}
	if diff := cmp.Diff(want, pages); diff != "" {
		t.Error(diff)
	}
	pages, _ = b.list(&pb.ListFilesRequest{Paths: []string{"worker-3*", "worker-1.out", "worker"}})
	if diff := cmp.Diff([][]string{{"worker-1.out", "worker-3.out"}}, pages); diff != "" {
		t.Error(diff)
	}
	_, all := b.list(&pb.ListFilesRequest{})
	one, two := all.GetFiles()[1], all.GetFiles()[2]
	if one.GetSize() != 14 || one.GetLast() != b.now || one.GetPod() != "demo-head" || one.GetEnded() || len(one.GetMissing()) != 1 ||
		one.GetMissing()[0].GetReason() != "Unreadable" {
		t.Errorf("a file with a gap is %v", one)
	}
	if two.GetSize() != 4 || !two.GetEnded() {
		t.Errorf("a file that a list has is %v", two)
	}
	if all.GetArchiveState() != "Collecting" || all.GetArchived() != b.now {
		t.Errorf("the archive is %s up to %d", all.GetArchiveState(), all.GetArchived())
	}
	// The pod ends: a minute later nothing more is expected.
	b.table.endings = map[pack.UID]index.Ending{pod: {At: b.now, Reason: pack.NodeLost}}
	for after, want := range map[int64]string{59_000: "Collecting", 60_000: "Incomplete"} {
		b.now = b.table.endings[pod].At + after
		if _, all = b.list(&pb.ListFilesRequest{}); all.GetArchiveState() != want || all.GetFiles()[0].GetEnded() != (want == "Incomplete") {
			t.Errorf("%d ms after the pod's end the archive is %s, and its first file %v", after, all.GetArchiveState(), all.GetFiles()[0])
		}
	}
	b.now += freshFor
	b.table.state = string(index.Expired)
	if _, all = b.list(&pb.ListFilesRequest{}); all.GetArchiveState() != "Expired" {
		t.Errorf("an expired archive is %s", all.GetArchiveState())
	}
}

func TestReadFile_SendsBytesAndGapsOfSpoolAndStore(t *testing.T) {
	b := newBed(t)
	file := fileOf(1, "worker.out")
	long := bytes.Repeat([]byte("0123456789abcde\n"), 40_000) // more than two pieces
	for offset := 0; offset < len(long); offset += 100_000 {
		b.append(b.chunk(file, int64(offset), long[offset:min(offset+100_000, len(long))]))
	}
	b.now += 60_000
	b.must(b.archive.Pack(t.Context()))
	end := int64(len(long))
	b.append(pack.Record{Hole: &pack.Hole{File: file, Offset: end, Length: 6, At: b.now, Reason: pack.RotatedAway}},
		b.chunk(file, end+6, []byte("behind")))
	id := formatID(file.FileKey)
	want := string(long) + fmt.Sprintf("[%d 6 RotatedAway]behind", end)
	for request, want := range map[*pb.ReadFileRequest]string{
		{Id: id}:                            want,
		{Id: id, Offset: end - 10}:          want[end-10:],
		{Id: id, Offset: end + 2}:           fmt.Sprintf("[%d 4 RotatedAway]behind", end+2),
		{Id: id, Offset: 3, Limit: 5}:       "34567",
		{Id: id, Offset: end - 3, Limit: 5}: fmt.Sprintf("de\n[%d 6 RotatedAway]be", end),
		{Id: id, Limit: 300_000}:            want[:300_000],
		{Id: id, Offset: end + 12}:          "",
		{Id: id, Offset: pack.MaxOffset}:    "",
	} {
		got, err := b.read(request)
		b.must(err)
		if got != want {
			t.Errorf("from %d, at most %d: %d bytes of %d, which end with %q", request.GetOffset(), request.GetLimit(), len(got), len(want), got[max(0, len(got)-40):])
		}
	}
	if _, err := b.read(&pb.ReadFileRequest{Id: formatID(fileOf(9, "").FileKey)}); status.Code(err) != codes.NotFound {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestViews_CostOneListForCallsThatComeTogether(t *testing.T) {
	b := newBed(t)
	file := fileOf(1, "worker.out")
	b.append(b.chunk(file, 0, []byte("text")))
	b.now += 60_000
	b.must(b.archive.Pack(t.Context()))
	b.list(&pb.ListFilesRequest{})
	reads := b.store.reads
	b.list(&pb.ListFilesRequest{})
	if b.store.lists != 1 {
		t.Errorf("two calls within a moment cost %d lists", b.store.lists)
	}
	b.now += freshFor
	if b.list(&pb.ListFilesRequest{}); b.store.lists != 2 || b.store.reads != reads {
		t.Errorf("a second view cost %d lists and %d reads of packs that are known", b.store.lists-1, b.store.reads-reads)
	}
	if len(b.server.views.rows) != 1 {
		t.Errorf("%d views are kept", len(b.server.views.rows))
	}
}

func TestRead_RefusesWhatBreaksABound(t *testing.T) {
	b, ctx := newBed(t), t.Context()
	namespace, cluster, id := key.Namespace.String(), key.Cluster.String(), formatID(fileOf(1, "").FileKey)
	list := func(r *pb.ListRecordsRequest) error { _, err := b.client.ListRecords(ctx, r); return err }
	get := func(r *pb.GetRecordRequest) error { _, err := b.client.GetRecord(ctx, r); return err }
	files := func(r *pb.ListFilesRequest) error {
		r.NamespaceUid, r.ClusterUid = namespace, cluster
		_, err := b.client.ListFiles(ctx, r)
		return err
	}
	remove := func(r *pb.DeleteHistoryRequest) error { _, err := b.client.DeleteHistory(ctx, r); return err }
	read := func(r *pb.ReadFileRequest) error { _, err := b.read(r); return err }
	long := strings.Repeat("x", 3000)
	for name, err := range map[string]error{
		"too many namespaces":      list(&pb.ListRecordsRequest{NamespaceUids: slices.Repeat([]string{namespace}, maxNamespaces+1)}),
		"a namespace that is none": list(&pb.ListRecordsRequest{NamespaceUids: []string{"../" + namespace}}),
		"an unknown kind":          list(&pb.ListRecordsRequest{Kinds: []string{"Secret"}}),
		"many kinds":               list(&pb.ListRecordsRequest{Kinds: slices.Repeat([]string{"ClusterJob"}, 4)}),
		"many phases":              list(&pb.ListRecordsRequest{Phases: slices.Repeat([]string{"Failed"}, 65)}),
		"a long phase":             list(&pb.ListRecordsRequest{Phases: []string{long}}),
		"a long name":              list(&pb.ListRecordsRequest{Name: long}),
		"a long owner":             list(&pb.ListRecordsRequest{Owner: long}),
		"a long token":             list(&pb.ListRecordsRequest{After: long}),
		"a large page":             list(&pb.ListRecordsRequest{Limit: 501}),
		"a negative page":          list(&pb.ListRecordsRequest{Limit: -1}),
		"a negative time":          list(&pb.ListRecordsRequest{Since: -1}),
		"a record of no kind":      get(&pb.GetRecordRequest{NamespaceUid: namespace, Uid: cluster}),
		"a record of no name":      get(&pb.GetRecordRequest{NamespaceUid: namespace, Kind: "ClusterJob"}),
		"a record of no namespace": get(&pb.GetRecordRequest{Kind: "ClusterJob", Uid: cluster}),
		"two namespaces":           get(&pb.GetRecordRequest{Kind: "ClusterJob", Uid: cluster, NamespaceUid: namespace, Namespace: "team"}),
		"a record of a wrong UID":  get(&pb.GetRecordRequest{Kind: "ClusterJob", Uid: "1", NamespaceUid: namespace}),
		"many paths":               files(&pb.ListFilesRequest{Paths: slices.Repeat([]string{"a"}, 101)}),
		"an empty path":            files(&pb.ListFilesRequest{Paths: []string{""}}),
		"a long path":              files(&pb.ListFilesRequest{Paths: []string{long}}),
		"many files":               files(&pb.ListFilesRequest{Limit: 1001}),
		"a forged token":           files(&pb.ListFilesRequest{After: "AAAA"}),
		"a token of junk":          files(&pb.ListFilesRequest{After: "&&"}),
		"a token of a long path":   files(&pb.ListFilesRequest{After: formatToken(fileOf(1, long[:513]))}),
		"a huge token":             files(&pb.ListFilesRequest{After: strings.Repeat("A", 200_000)}),
		"a file with a bad ID":     read(&pb.ReadFileRequest{Id: id[2:]}),
		"a file with a sign":       read(&pb.ReadFileRequest{Id: strings.Replace(id, "-0", "-+0", 1)}),
		"a file with capitals":     read(&pb.ReadFileRequest{Id: strings.Replace(id, "01-", "0A-", 1)}),
		"a negative offset":        read(&pb.ReadFileRequest{Id: id, Offset: -1}),
		"a distant offset":         read(&pb.ReadFileRequest{Id: id, Offset: pack.MaxOffset + 1}),
		"a negative limit":         read(&pb.ReadFileRequest{Id: id, Limit: -1}),
		"a deletion by nobody":     remove(&pb.DeleteHistoryRequest{NamespaceUid: namespace, Uid: cluster, Kind: "ClusterJob"}),
		"a deletion of no kind":    remove(&pb.DeleteHistoryRequest{NamespaceUid: namespace, Uid: cluster, User: "ann"}),
		"a deletion of no object":  remove(&pb.DeleteHistoryRequest{NamespaceUid: namespace, Kind: "ClusterJob", User: "ann"}),
	} {
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	other := pack.UID{7}
	if _, err := b.client.ListFiles(ctx, &pb.ListFilesRequest{NamespaceUid: namespace, ClusterUid: other.String()}); status.Code(err) != codes.NotFound {
		t.Errorf("an archive that is not there: %v", err)
	}
	b.must(list(&pb.ListRecordsRequest{NamespaceUids: slices.Repeat([]string{namespace}, maxNamespaces)}))
	if b.table.limit != defaultRecords {
		t.Errorf("without a limit a page has %d records", b.table.limit)
	}
	b.must(remove(&pb.DeleteHistoryRequest{NamespaceUid: namespace, Uid: cluster, Kind: "ClusterJob", User: "ann"}))
	if len(b.keeper.deleted) != 1 {
		t.Errorf("deleted %q", b.keeper.deleted)
	}
	b.keeper.err = status.Error(codes.FailedPrecondition, "ask the other one")
	if err := remove(&pb.DeleteHistoryRequest{NamespaceUid: namespace, Uid: cluster, Kind: "ClusterJob", User: "ann"}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a deletion by a replica that does not write: %v", err)
	}
	b.table.err = errors.New("the volume has a secret path")
	if err := list(&pb.ListRecordsRequest{}); status.Code(err) != codes.Unavailable || strings.Contains(err.Error(), "secret") {
		t.Errorf("a table that fails: %v", err)
	}
}
