package archive

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/history/index"
	"github.com/heliostat-dev/heliostat/history/pack"
	"github.com/heliostat-dev/heliostat/history/wire"
)

func TestParseEnd_TakesWhatAnArchiverWrites(t *testing.T) {
	for text, isGood := range map[string]bool{
		`{"state":"Expired","at":5}`:                                             true,
		`{"state":"Deleted","at":5,"by":"jane","why":"of a later version"}`:      true,
		`{"state":"Complete","at":5}`:                                            false,
		`{"state":"Expired"}`:                                                    false,
		`{"state":"Expired","at":-1}`:                                            false,
		`{"state":"Deleted","at":5,"by":"` + strings.Repeat("x", MaxBy+1) + `"}`: false,
		`{"state":"Expired","at":5,"x":"` + strings.Repeat("x", MaxEnd) + `"}`:   false,
		`{`: false,
		``:  false,
	} {
		if _, err := ParseEnd([]byte(text)); (err == nil) != isGood || err != nil && !errors.Is(err, pack.ErrInvalid) {
			t.Errorf("%.60s: %v", text, err)
		}
	}
}

func TestView_SaysHowAnArchiveEnded(t *testing.T) {
	w, r, in := fixture(t)
	file := w.files[0]
	w.must(in.Append([]pack.Record{chunkAt(file, 0, "packed")}))
	w.now += 60_000
	w.must(r.archive.Pack(t.Context()))
	w.must(in.Append([]pack.Record{chunkAt(file, 6, ", spooled")}))
	store := door{w.bucket, r}
	w.must(WriteEnd(t.Context(), store, w.key, End{State: index.Expired, At: 5}))
	w.bucket.objects[w.key.Prefix()+"x/of-a-later-version"] = []byte("x")
	if got := strings.Join(pieces(t, r.archive, w.key, file.FileKey, noEnd), ""); got != "packed, spooled" {
		t.Errorf("what came after it expired is %q", got)
	}
	if err := WriteEnd(t.Context(), store, w.key, End{State: index.Complete, At: 5}); !errors.Is(err, pack.ErrInvalid) {
		t.Errorf("an end that is none: %v", err)
	}
	w.must(WriteEnd(t.Context(), store, w.key, End{State: index.Deleted, At: 7, By: "jane"}))
	v, err := r.archive.View(t.Context(), w.key)
	w.must(err)
	if v.State(nil, 9) != index.Deleted || *v.End != (End{index.Deleted, 7, "jane"}) || len(v.Files()) > 0 {
		t.Errorf("a deleted archive is %s, %+v, with %v", v.State(nil, 9), v.End, v.Files())
	}
	w.bucket.objects[w.key.Prefix()+"end"] = []byte("{")
	v, err = r.archive.View(t.Context(), w.key)
	w.must(err)
	if v.End != nil || !slices.Equal(v.Damaged, []string{"end"}) || len(v.Files()) != 1 {
		t.Errorf("a damaged end: %+v, damaged %v, files %v", v.End, v.Damaged, v.Files())
	}
}

func TestWalk_FindsWhatTheStoreOrTheSpoolHas(t *testing.T) {
	w, r, _ := fixture(t)
	keyOf := func(number byte) Key { return Key{pack.UID{1, number % 2}, pack.UID{number}} }
	for number := range byte(6) {
		key := keyOf(number)
		in, err := r.archive.Open(t.Context(), wire.Source{Namespace: key.Namespace, Cluster: key.Cluster, Pod: pack.UID{1}})
		w.must(err)
		if number < 4 {
			w.must(in.Append([]pack.Record{{Cluster: key.Cluster, Chunk: &pack.Chunk{File: w.files[0], At: w.now, Data: []byte("text")}}}))
		}
		if number == 1 {
			w.now += 60_000
			w.must(r.archive.Pack(t.Context()))
			w.must(WriteEnd(t.Context(), door{w.bucket, r}, key, End{State: index.Expired, At: 5}))
		}
		if number == 3 {
			w.must(in.Append([]pack.Record{{Cluster: key.Cluster, Chunk: &pack.Chunk{File: w.files[0], Offset: 4, At: w.now, Data: []byte("more")}}}))
		}
	}
	w.bucket.objects["v1/data/other/x"], w.bucket.objects["v1/records/x"] = []byte("x"), []byte("x")
	var got []string
	w.must(r.archive.Walk(t.Context(), func(key Key) error { got = append(got, fmt.Sprint(key.Cluster[0])); return nil }))
	if want := []string{"0", "2", "1", "3"}; !slices.Equal(got, want) {
		t.Errorf("archives are %v, want %v", got, want)
	}
	got = nil
	w.must(Walk(t.Context(), door{w.bucket, r}, func(one Listed) error {
		got = append(got, fmt.Sprint(one.Key.Cluster[0], one.Packs, one.Others))
		return nil
	}))
	if want := []string{"0 1 0", "1 1 0"}; !slices.Equal(got, want) {
		t.Errorf("the store has %v, want %v", got, want)
	}
}

func TestTrim_ForgetsPodsThatWereKilled(t *testing.T) {
	w, r, in := fixture(t)
	w.must(in.Append([]pack.Record{chunkAt(w.files[0], 0, "text"), chunkAt(w.files[2], 0, "of another pod")}))
	killed := func(_ Key, pod pack.UID) bool { return pod == pack.UID{1} }
	w.must(r.archive.Trim(killed))
	if len(in.Resume()) != 1 {
		t.Error("what is not packed was forgotten")
	}
	w.now += 60_000
	w.must(r.archive.Pack(t.Context()))
	w.must(r.archive.Trim(killed))
	if rows := in.Resume(); len(rows) > 0 {
		t.Errorf("rows of a pod that ended: %v", rows)
	}
	w.crash(r, false)
	w.start(r)
	other, err := r.archive.Open(t.Context(), wire.Source{Namespace: w.key.Namespace, Cluster: w.key.Cluster, Pod: pack.UID{2}})
	w.must(err)
	if rows := other.Resume(); len(rows) != 1 || rows[0].Offset != 14 {
		t.Errorf("rows of a pod that lives: %v", rows)
	}
	all := func(Key, pack.UID) bool { return true }
	w.must(r.archive.Trim(all))
	if len(r.archive.clusters) != 1 || len(r.disk.files) > 0 {
		t.Errorf("with a stream there are %d clusters and %d files", len(r.archive.clusters), len(r.disk.files))
	}
	w.must(other.Append([]pack.Record{chunkAt(w.files[2], 14, " again")}))
	other.Close()
	w.now += 60_000
	w.must(r.archive.Pack(t.Context()))
	w.must(r.archive.Trim(all))
	if len(r.archive.clusters) > 0 || len(r.disk.files) > 0 {
		t.Errorf("%d clusters and %d files are left", len(r.archive.clusters), len(r.disk.files))
	}
	w.must(r.archive.Trim(all))
}
