package records

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/history/index"
	"github.com/heliostat-dev/heliostat/history/pack"
	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

// names of the store by what they are.
func (b *bucket) count(isSnapshot bool) int {
	count := 0
	for key := range b.objects {
		if one, is := parseKey(key, 1); is && one.isSnapshot == isSnapshot {
			count++
		}
	}
	return count
}

func TestCompact_KeepsJournalsThatWereNotRead(t *testing.T) {
	store := newBucket()
	first, second := newReplica(t, 0, store), newReplica(t, 1, store)
	first.see(t, jobRow(1, nil))
	if err := first.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	second.see(t, jobRow(2, nil))
	if err := second.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	second.at += 30 * time.Hour.Milliseconds()
	for range 3 { // what the first one wrote was never read
		if err := second.journal.compact(t.Context(), second.table, second.at); err != nil {
			t.Fatal(err)
		}
		second.at += time.Hour.Milliseconds()
	}
	third := newReplica(t, 2, store)
	if err := third.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := third.names(t, &pb.ListRecordsRequest{AllNamespaces: true}, 10); len(got) != 2 {
		t.Errorf("%v are left of two", got)
	}
}

func TestCompact_RemovesJournalsOfWhatIsGone(t *testing.T) {
	store := newBucket()
	r := newReplica(t, 0, store)
	r.settings.AfterNamespace = time.Hour
	r.see(t, jobRow(1, func(one *row) { one.Deleted = begin }))
	r.pending.addSpace(uid('a', 1), space{Name: "team", Gone: begin, At: begin})
	for range 40 {
		if err := errors.Join(r.write(t.Context()), r.read(t.Context()), r.tend(t.Context())); err != nil {
			t.Fatal(err)
		}
		r.at += 24 * time.Hour.Milliseconds()
	}
	if len(store.objects) > 0 {
		t.Errorf("%d objects are left", len(store.objects))
	}
}

func TestCompact_KeepsEachOfManyPods(t *testing.T) {
	const pods = maxLines + 2000
	store := newBucket()
	r := newReplica(t, 0, store)
	cluster := jobRow(1, func(one *row) { one.Kind = kindCluster })
	for i := range pods {
		r.pending.addPod(&podRow{Cluster: cluster.UID, UID: uid('c', i), Name: "w", Ended: begin, At: begin})
	}
	if err := r.save(); err != nil { // the pods come before their cluster
		t.Fatal(err)
	}
	r.see(t, cluster)
	if err := r.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.at += 30 * time.Hour.Milliseconds()
	for range 2 {
		if err := r.journal.compact(t.Context(), r.table, r.at); err != nil {
			t.Fatal(err)
		}
		r.at += time.Hour.Milliseconds()
	}
	if store.count(false) != 0 || store.count(true) == 0 {
		t.Fatalf("%d journals and %d parts of snapshots are left", store.count(false), store.count(true))
	}
	second := newReplica(t, 1, store)
	if err := second.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	key, err := pack.ParseUID(cluster.UID)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(second.Endings(key)); got != pods {
		t.Errorf("%d pods are left of %d", got, pods)
	}
}

func TestRead_PassesByADamagedJournal(t *testing.T) {
	store := newBucket()
	first := newReplica(t, 0, store)
	first.see(t, jobRow(1, nil))
	if err := first.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	damaged := fmt.Sprintf("%s%s/%013d-0-0", prefixStore, uid('a', 1), begin-1)
	store.objects[damaged] = []byte("no frame")
	second := newReplica(t, 1, store)
	if err := second.read(t.Context()); !errors.Is(err, errDamaged) {
		t.Errorf("%v", err)
	}
	if err := second.read(t.Context()); err != nil {
		t.Errorf("it is read again: %v", err)
	}
	if got := second.names(t, &pb.ListRecordsRequest{AllNamespaces: true}, 10); len(got) != 1 {
		t.Errorf("%v are read", got)
	}
}

func TestRow_AfterTakesTheNewerAndKeepsEnds(t *testing.T) {
	object := json.RawMessage(`{}`)
	for name, c := range map[string]struct{ newer, older, want row }{
		"an end that was watched counts more than one that was noticed": {
			row{At: 2, Deleted: 9, EndUnknown: true}, row{At: 1, Deleted: 5}, row{At: 2, Deleted: 5},
		},
		"an object that is seen again had not gone": {row{At: 2}, row{At: 1, Deleted: 5, EndUnknown: true}, row{At: 2}},
		"a deletion stays":                          {row{At: 2}, row{At: 1, Deleted: 5}, row{At: 2, Deleted: 5}},
		"what a user deleted does not come back": {
			row{Kind: kindJob, At: 2, Object: object}, row{Kind: kindJob, At: 1, State: string(index.Deleted), Marked: 1},
			row{Kind: kindJob, At: 2, State: string(index.Deleted), Marked: 1},
		},
		"the namespace stays known": {row{At: 2}, row{At: 1, NamespaceUID: "a"}, row{At: 2, NamespaceUID: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			for order, got := range []*row{c.newer.after(&c.older), c.older.after(&c.newer)} {
				if !isSameRow(got, &c.want) || got.At != c.want.At {
					t.Errorf("order %d: %+v, want %+v", order, *got, c.want)
				}
			}
		})
	}
}
