package records

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/heliostat-dev/heliostat/history/index"
	"github.com/heliostat-dev/heliostat/history/pack"
	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

const begin = int64(1_800_000_000_000)

// bucket is a store in memory. With failAt it fails at that call, before or after its effect.
type bucket struct {
	objects map[string][]byte
	calls   int
	failAt  int
	isLate  bool
}

var errAway = errors.New("the store is away")

func newBucket() *bucket { return &bucket{objects: map[string][]byte{}, failAt: -1} }

// call counts a call, and reports whether it has its effect and how it ends.
func (b *bucket) call() (hasEffect bool, err error) {
	b.calls++
	if b.calls-1 != b.failAt {
		return true, nil
	}
	return b.isLate, errAway
}

func (b *bucket) Write(_ context.Context, key string, data []byte) error {
	is, err := b.call()
	if is {
		b.objects[key] = slices.Clone(data)
	}
	return err
}

func (b *bucket) Read(_ context.Context, key string, _, _ int64) ([]byte, error) {
	is, err := b.call()
	if !is {
		return nil, err
	}
	return b.objects[key], err
}

func (b *bucket) Delete(_ context.Context, key string) error {
	is, err := b.call()
	if is {
		delete(b.objects, key)
	}
	return err
}

func (b *bucket) List(_ context.Context, prefix string, each func(key string, size, at int64) error) error {
	if is, err := b.call(); !is {
		return err
	}
	var keys []string
	for key := range b.objects {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if err := each(key, int64(len(b.objects[key])), begin); err != nil {
			return err
		}
	}
	return nil
}

// replica is a replica of the archiver without Kubernetes.
type replica struct {
	*Records
	at       int64
	isWriter bool
}

func newReplica(t *testing.T, number int, store Store) *replica {
	t.Helper()
	r := &replica{at: begin, isWriter: true}
	opened, err := Open(Settings{
		Directory: t.TempDir(), Store: store, Replica: number, First: uint64(number) * 1000, KeepFor: time.Hour, MaxKeepFor: 2 * time.Hour,
		IsWriter: func() bool { return r.isWriter }, Now: func() time.Time { return time.UnixMilli(r.at) }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Records = opened
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// uid returns a UID that begins with a letter and ends with a number.
func uid(letter byte, number int) string {
	return fmt.Sprintf("%c0000000-0000-4000-8000-%012d", letter, number)
}

func jobRow(number int, change func(*row)) *row {
	one := &row{
		Kind: kindJob, Namespace: "team", NamespaceUID: uid('a', 1), Name: fmt.Sprintf("job-%d", number), UID: uid('b', number),
		Created: begin + int64(number), At: begin, Phase: "Running", Object: json.RawMessage(`{"kind":"ClusterJob"}`),
	}
	if change != nil {
		change(one)
	}
	return one
}

// see hands rows to a replica, as its watch does.
func (r *replica) see(t *testing.T, rows ...*row) {
	t.Helper()
	for _, one := range rows {
		r.pending.addSpace(one.NamespaceUID, space{Name: one.Namespace, At: r.at})
		r.pending.addRow(one)
	}
	if err := r.save(); err != nil {
		t.Fatal(err)
	}
}

// names lists all records, page by page, with so many a page.
func (r *replica) names(t *testing.T, request *pb.ListRecordsRequest, limit int32) []string {
	t.Helper()
	request.Limit, request.After = limit, ""
	var names []string
	for range 1_000 {
		page, err := r.List(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.GetRecords()) > int(limit) {
			t.Fatalf("a page has %d records, of at most %d", len(page.GetRecords()), limit)
		}
		for _, one := range page.GetRecords() {
			names = append(names, one.GetName())
		}
		if page.GetNext() == "" {
			return names
		}
		request.After = page.GetNext()
	}
	t.Fatal("the pages have no end")
	return nil
}

// all has the records of a replica, as those who ask get them.
func (r *replica) all(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	page, err := r.List(t.Context(), &pb.ListRecordsRequest{AllNamespaces: true, Limit: maxPage})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range page.GetRecords() {
		got, err := r.Get(t.Context(), &pb.GetRecordRequest{NamespaceUid: one.GetNamespaceUid(), Kind: one.GetKind(), Uid: one.GetUid()})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "%s %d %d %v %s %s %d events %d pods\n", one.GetName(), one.GetEnded(), one.GetDeleted(), one.GetEndUnknown(),
			one.GetArchiveState(), got.GetObject(), len(got.GetEvents()), len(got.GetPods()))
	}
	return text.String()
}

func TestList_ReturnsWhatANaiveListReturns(t *testing.T) {
	r := newReplica(t, 0, newBucket())
	random := rand.New(rand.NewPCG(1, 2))
	var rows []*row
	for i := range 300 {
		rows = append(rows, jobRow(i, func(one *row) {
			one.NamespaceUID, one.Namespace = uid('a', i%7), fmt.Sprintf("team-%d", i%7)
			one.Owner = []string{"", "ana", "bob"}[random.IntN(3)]
			if random.IntN(2) == 0 {
				one.Ended, one.Phase = begin+int64(random.IntN(1000)), []string{"Failed", "Succeeded"}[random.IntN(2)]
			}
		}))
	}
	r.see(t, rows...)
	slices.SortFunc(rows, func(a, b *row) int {
		return strings.Compare(string(place(a))+a.UID, string(place(b))+b.UID)
	})
	for range 60 {
		request := &pb.ListRecordsRequest{
			AllNamespaces: random.IntN(2) == 0, NamespaceUids: []string{uid('a', random.IntN(8)), uid('a', random.IntN(8))},
			Owner: []string{"", "ana"}[random.IntN(2)], Failed: random.IntN(3) == 0, Ended: random.IntN(3) == 0,
			Since: []int64{0, begin + int64(random.IntN(1000))}[random.IntN(2)], Until: []int64{0, begin + int64(random.IntN(300))}[random.IntN(2)],
		}
		var want []string
		for _, one := range rows {
			isThere := request.GetAllNamespaces() || slices.Contains(request.GetNamespaceUids(), one.NamespaceUID)
			if isThere && (query{request: request}).takes(one) {
				want = append(want, one.Name)
			}
		}
		if got := r.names(t, request, int32(1+random.IntN(40))); !slices.Equal(got, want) {
			t.Fatalf("%v\nreturns %v\nand not %v", request, got, want)
		}
	}
}

func TestList_RefusesWhatBreaksABound(t *testing.T) {
	r := newReplica(t, 0, newBucket())
	for name, request := range map[string]*pb.ListRecordsRequest{
		"a limit above the bound":  {AllNamespaces: true, Limit: maxPage + 1},
		"a limit below zero":       {AllNamespaces: true, Limit: -1},
		"no UID":                   {NamespaceUids: []string{"a"}},
		"more namespaces than fit": {NamespaceUids: make([]string, maxNamespaces+1)},
		"no token":                 {AllNamespaces: true, After: "é"},
		"a short token":            {AllNamespaces: true, After: "AAAA"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := r.List(t.Context(), request); status.Code(err) != codes.InvalidArgument {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestGet_FindsByUIDAndTheNewestOfAName(t *testing.T) {
	r := newReplica(t, 0, newBucket())
	r.see(t, jobRow(1, func(one *row) { one.Name = "train" }), jobRow(2, func(one *row) { one.Name = "train" }))
	for name, c := range map[string]struct {
		request *pb.GetRecordRequest
		want    string
	}{
		"the newest of a name":           {&pb.GetRecordRequest{NamespaceUid: uid('a', 1), Kind: kindJob, Name: "train"}, uid('b', 2)},
		"by its UID":                     {&pb.GetRecordRequest{NamespaceUid: uid('a', 1), Kind: kindJob, Uid: uid('b', 1)}, uid('b', 1)},
		"by the name of the namespace":   {&pb.GetRecordRequest{Namespace: "team", Kind: kindJob, Name: "train"}, uid('b', 2)},
		"not in another namespace":       {&pb.GetRecordRequest{NamespaceUid: uid('a', 2), Kind: kindJob, Uid: uid('b', 1)}, ""},
		"not of another kind":            {&pb.GetRecordRequest{NamespaceUid: uid('a', 1), Kind: kindService, Uid: uid('b', 1)}, ""},
		"not under another name":         {&pb.GetRecordRequest{NamespaceUid: uid('a', 1), Kind: kindJob, Name: "other", Uid: uid('b', 1)}, ""},
		"not by the beginning of a name": {&pb.GetRecordRequest{NamespaceUid: uid('a', 1), Kind: kindJob, Name: "trai"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := r.Get(t.Context(), c.request)
			if c.want == "" && status.Code(err) != codes.NotFound || c.want != "" && (err != nil || got.GetRecord().GetUid() != c.want) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

func TestRecords_ComeBackFromTheStore(t *testing.T) {
	store := newBucket()
	first := newReplica(t, 0, store)
	first.see(t, jobRow(1, nil), jobRow(2, func(one *row) { one.Deleted = begin + 5 }))
	cluster := jobRow(3, func(one *row) { one.Kind, one.Clusters = kindCluster, []string{one.UID} })
	first.pending.addPod(&podRow{Cluster: cluster.UID, UID: uid('c', 1), Name: "head", Ended: begin, At: begin})
	first.pending.addEvent(cluster.UID, event{UID: "e", Reason: "Created", Last: begin})
	first.see(t, cluster)
	if err := first.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := newReplica(t, 1, store)
	if err := second.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := second.all(t), first.all(t); got != want || !strings.Contains(got, "1 pods") {
		t.Errorf("it has\n%sand not\n%s", got, want)
	}
	calls := store.calls
	if err := second.write(t.Context()); err != nil || len(store.objects) != 2 {
		t.Errorf("a new writer without news writes: %d objects after %d calls, %v", len(store.objects), store.calls-calls, err)
	}
}

func TestRecords_SurviveAFailureOfEachCall(t *testing.T) {
	for _, isLate := range []bool{false, true} {
		for failAt := range 40 {
			store := newBucket()
			first := newReplica(t, 0, store)
			store.failAt, store.isLate = failAt, isLate
			for i := range 6 {
				first.see(t, jobRow(i, func(one *row) { one.At = first.at }))
				if i > 2 {
					first.see(t, jobRow(i-3, func(one *row) { one.At, one.Deleted = first.at, first.at }))
				}
				_ = first.write(t.Context())
				_ = first.tend(t.Context())
				first.at += 13 * time.Hour.Milliseconds() / 10
			}
			store.failAt = -1
			first.at += 25 * time.Hour.Milliseconds()
			for range 3 { // a snapshot, its removal of what was, and once more
				if err := errors.Join(first.write(t.Context()), first.tend(t.Context()), first.read(t.Context())); err != nil {
					t.Fatal(err)
				}
				first.at += time.Hour.Milliseconds()
			}
			second := newReplica(t, 1, store)
			if err := second.read(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, want := second.all(t), first.all(t); got != want || strings.Count(got, "\n") != 6 {
				t.Fatalf("call %d, late %v: it has\n%sand not\n%s", failAt, isLate, got, want)
			}
		}
	}
}

func TestCompact_LeavesOneSnapshotOfANamespace(t *testing.T) {
	store := newBucket()
	r := newReplica(t, 0, store)
	for i := range 20 {
		r.see(t, jobRow(i, nil))
		if err := r.write(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.at += time.Minute.Milliseconds()
	}
	r.at += 24 * time.Hour.Milliseconds()
	for range 2 {
		if err := r.journal.compact(t.Context(), r.table, r.at); err != nil {
			t.Fatal(err)
		}
		r.at += time.Hour.Milliseconds()
	}
	if len(store.objects) != 1 {
		t.Errorf("%d objects are left", len(store.objects))
	}
	second := newReplica(t, 1, store)
	if err := second.read(t.Context()); err != nil || second.all(t) != r.all(t) {
		t.Errorf("it does not come back: %v", err)
	}
}

func TestEndAbsent_EndsWhatWentWhileNobodyWatched(t *testing.T) {
	r := newReplica(t, 0, newBucket())
	cluster := jobRow(3, func(one *row) { one.Kind = kindCluster })
	r.see(t, jobRow(1, nil), jobRow(2, nil), cluster)
	r.pending.addPod(&podRow{Cluster: cluster.UID, UID: uid('c', 1), Name: "head", At: begin})
	if err := r.save(); err != nil {
		t.Fatal(err)
	}
	there := living{objects: map[string]bool{uid('b', 1): true}, spaces: map[string]bool{uid('a', 1): true}}
	if err := r.endUnknown(there); err != nil {
		t.Fatal(err)
	}
	for i, isGone := range []bool{false, true, true} {
		kind := []string{kindJob, kindJob, kindCluster}[i]
		got, err := r.Get(t.Context(), &pb.GetRecordRequest{NamespaceUid: uid('a', 1), Kind: kind, Uid: uid('b', i+1)})
		if err != nil || (got.GetRecord().GetDeleted() != 0) != isGone || got.GetRecord().GetEndUnknown() != isGone {
			t.Errorf("%d: %v, %v", i+1, got, err)
		}
	}
	key, err := pack.ParseUID(cluster.UID)
	if err != nil {
		t.Fatal(err)
	}
	if endings := r.Endings(key); len(endings) != 1 {
		t.Errorf("the pod ended as %v", endings)
	}
}

func TestExpire_MarksAndRemovesWhatIsDue(t *testing.T) {
	r := newReplica(t, 0, newBucket())
	r.settings.Objects = 3
	r.see(t,
		jobRow(1, func(one *row) { one.Deleted = begin - 2*time.Hour.Milliseconds() }),
		jobRow(2, func(one *row) {
			one.Deleted, one.KeepFor = begin-time.Hour.Milliseconds()-1, 3*time.Hour.Milliseconds()
		}),
		jobRow(3, func(one *row) { one.Ended = begin - 5*time.Hour.Milliseconds() }),
		jobRow(4, nil), jobRow(5, nil),
	)
	if err := r.tend(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.names(t, &pb.ListRecordsRequest{AllNamespaces: true}, 100); !slices.Equal(got, []string{"job-5", "job-4", "job-3"}) {
		t.Errorf("%v are left, and not those that are there", got)
	}
}

func TestMark_IsInTheRecord(t *testing.T) {
	r := newReplica(t, 0, newBucket())
	cluster := jobRow(1, func(one *row) { one.Kind, one.Deleted = kindCluster, begin })
	r.see(t, cluster)
	key, err := pack.ParseUID(cluster.UID)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Mark(key, index.Deleted, begin+1, "ana"); err != nil {
		t.Fatal(err)
	}
	got, err := r.Get(t.Context(), &pb.GetRecordRequest{NamespaceUid: uid('a', 1), Kind: kindCluster, Uid: cluster.UID})
	if err != nil || got.GetRecord().GetArchiveState() != string(index.Deleted) || got.GetRecord().GetMarkedBy() != "ana" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestDelete_LeavesAMarkOfWhatIsGone(t *testing.T) {
	r := newReplica(t, 0, newBucket())
	r.see(t, jobRow(1, nil), jobRow(2, func(one *row) { one.Deleted = begin }))
	remove := func(number int, namespace string) codes.Code {
		return status.Code(r.Delete(t.Context(), &pb.DeleteHistoryRequest{NamespaceUid: namespace, Kind: kindJob, Uid: uid('b', number), User: "ana"}))
	}
	if code := remove(1, uid('a', 1)); code != codes.Aborted {
		t.Errorf("a job that is there: %v", code)
	}
	if code := remove(2, uid('a', 2)); code != codes.NotFound {
		t.Errorf("a job of another namespace: %v", code)
	}
	if code := remove(2, uid('a', 1)); code != codes.OK {
		t.Errorf("a job that is gone: %v", code)
	}
	got, err := r.Get(t.Context(), &pb.GetRecordRequest{NamespaceUid: uid('a', 1), Kind: kindJob, Uid: uid('b', 2)})
	if err != nil || len(got.GetObject()) > 0 || got.GetRecord().GetArchiveState() != string(index.Deleted) {
		t.Errorf("%v, %v", got, err)
	}
}
