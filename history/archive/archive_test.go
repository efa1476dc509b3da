package archive

import (
	"context"
	"errors"
	"flag"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/history/index"
	"github.com/heliostat-dev/heliostat/history/pack"
	"github.com/heliostat-dev/heliostat/history/wire"
)

var histories = flag.Uint64("histories", 150, "how many histories TestWorld plays")

const day = 24 * 60 * 60 * 1000

// noEnd is of a pod that lives.
var noEnd = index.Ending{}

// TestWorld plays histories of chunks, repeats, packs and crashes: an end at any call of the volume or the store loses nothing that
// was acknowledged, and nothing that is read was never written.
func TestWorld_LosesNothingThatWasAcknowledged(t *testing.T) {
	for seed := range *histories {
		w := newWorld(t, seed)
		for range 25 {
			w.step()
		}
		w.check()
		w.now += 120_000
		for _, r := range w.replicas {
			w.must(r.archive.Pack(t.Context()))
			if r.archive.total != 0 || len(r.archive.held) > 0 {
				t.Fatalf("history %d: a spool holds %d bytes after all was packed", seed, r.archive.total)
			}
		}
		w.check()
		// A replica whose spool is lost has all that was packed.
		r := w.replicas[0]
		r.disk.files = map[string]*diskFile{}
		w.start(r)
		w.check()
		if t.Failed() {
			t.Fatalf("history %d", seed)
		}
	}
}

// TestArchive_LosesNothingWhereverItEnds ends one replica at each of its calls in turn.
func TestArchive_LosesNothingWhereverItEnds(t *testing.T) {
	for at := 0; ; at++ {
		w := newWorld(t, uint64(at))
		r := w.replicas[0]
		r.fate.left = at
		for _, file := range w.files {
			w.sizes[file.FileKey] = 900
		}
		isPlayed := false
		for range 20 {
			err := errors.Join(w.send(r, pack.UID{1}), r.archive.Pack(t.Context()), w.send(r, pack.UID{2}))
			if w.now += 61_000; err == nil {
				err = r.archive.Pack(t.Context())
			}
			if err == nil {
				isPlayed = true
				break
			}
			if !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
			w.crash(r, at%3 > 0)
			w.start(r)
			w.check()
		}
		if !isPlayed {
			t.Fatalf("an end at call %d: the archive never packed all", at)
		}
		w.check()
		if r.fate.left > 0 {
			if at < 20 {
				t.Errorf("the story has %d calls", at)
			}
			return // it ended before the call came
		}
	}
}

// fixture is one replica without failures.
func fixture(t *testing.T) (*world, *replica, wire.Intake) {
	w := newWorld(t, 1)
	r := w.replicas[0]
	in, err := r.archive.Open(t.Context(), wire.Source{Namespace: w.key.Namespace, Cluster: w.key.Cluster, Pod: pack.UID{1}})
	w.must(err)
	return w, r, in
}

func chunkAt(file pack.File, offset int64, text string) pack.Record {
	return pack.Record{Cluster: pack.UID{0xc}, Chunk: &pack.Chunk{File: file, Offset: offset, At: 1_700_000_000_000, Data: []byte(text)}}
}

// pieces returns what a view reads, with texts in place of bytes.
func pieces(t *testing.T, a *Archive, key Key, file pack.FileKey, ending index.Ending) (all []string) {
	t.Helper()
	v, err := a.View(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Read(t.Context(), file, ending, 0, func(piece Piece) error {
		if piece.Reason > 0 {
			all = append(all, piece.Reason.String())
		} else {
			all = append(all, string(piece.Data))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestView_ReadsSpoolAndPacksAsOne(t *testing.T) {
	w, r, in := fixture(t)
	file := w.files[0]
	w.must(in.Append([]pack.Record{chunkAt(file, 0, "packed "), chunkAt(file, 7, "first, ")}))
	w.now += 60_000
	w.must(r.archive.Pack(t.Context()))
	if len(w.bucket.objects) != 1 {
		t.Fatalf("%d objects after a minute", len(w.bucket.objects))
	}
	w.must(in.Append([]pack.Record{
		chunkAt(file, 10, "RST, on the spool "),
		{Cluster: w.key.Cluster, Hole: &pack.Hole{File: file, Offset: 28, Length: 4, Reason: pack.Unreadable}},
		chunkAt(file, 32, "behind"),
	}))
	ended := index.Ending{At: 1, Reason: pack.Killed}
	want := []string{"packed first, ", " on the spool ", "Unreadable", "behind"}
	got := pieces(t, r.archive, w.key, file.FileKey, noEnd)
	got[1] = got[1][len(got[1])-len(want[1]):]
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if all := pieces(t, r.archive, w.key, file.FileKey, ended); all[len(all)-1] != "Killed" {
		t.Errorf("a pod that was killed has %q", all)
	}
	// A pack that somebody removed from the store, or changed, is a gap.
	for key := range w.bucket.objects {
		data := w.bucket.objects[key]
		data[20] ^= 1
		if all := pieces(t, r.archive, w.key, file.FileKey, ended); all[0] != "ArchiverAway" {
			t.Errorf("a pack that was changed: %q", all)
		}
		data[len(data)-1] ^= 1
		v, err := r.archive.View(t.Context(), w.key)
		if err != nil || len(v.Damaged) != 1 {
			t.Errorf("a pack whose trailer was changed: %v, damaged %v", err, v.Damaged)
		}
		delete(w.bucket.objects, key)
	}
	if all := pieces(t, r.archive, w.key, file.FileKey, ended); all[0] != "ArchiverAway" || all[1] != "RST, on the spool " {
		t.Errorf("a pack that was removed: %q", all)
	}
}

func TestView_GoesOnWhereASegmentIsPackedMeanwhile(t *testing.T) {
	w, r, in := fixture(t)
	file := w.files[0]
	w.must(in.Append([]pack.Record{chunkAt(file, 0, "one"), chunkAt(file, 3, "two")}))
	v, err := r.archive.View(t.Context(), w.key)
	w.must(err)
	w.now += 60_000
	w.must(r.archive.Pack(t.Context()))
	text := ""
	w.must(v.Read(t.Context(), file.FileKey, noEnd, 0, func(piece Piece) error { text += string(piece.Data); return nil }))
	if text != "onetwo" {
		t.Errorf("%q was read", text)
	}
}

// TestView_ReadsByTheNewestManifest has bytes in final objects, which a manifest names.
func TestView_ReadsByTheNewestManifest(t *testing.T) {
	w, r, in := fixture(t)
	file := w.files[0]
	w.must(in.Append([]pack.Record{chunkAt(file, 0, "packed bytes")}))
	w.now += 60_000
	w.must(r.archive.Pack(t.Context()))
	e, err := pack.NewEncoder()
	w.must(err)
	d, err := pack.NewDecoder()
	w.must(err)
	final := e.NewWriter(w.key.Cluster, w.now)
	w.must(final.Add(file, 0, 1, []byte("packed bytes")))
	data, err := final.Finish()
	w.must(err)
	w.bucket.objects[w.key.Prefix()+"f/1700000000000-1"] = data
	x, err := d.Open(object{func(offset, length int64) ([]byte, error) { return data[offset : offset+length], nil }}, int64(len(data)))
	w.must(err)
	for name, objects := range map[string]string{"m/1700000000001": "f/gone", "m/1700000000002": "f/1700000000000-1"} {
		manifest := e.NewWriter(w.key.Cluster, w.now)
		w.must(manifest.AddRun(file, objects, x.Runs[0]))
		data, err := manifest.Finish()
		w.must(err)
		w.bucket.objects[w.key.Prefix()+name] = data
	}
	for key := range w.bucket.objects { // packs go once a manifest is there
		if strings.Contains(key, "/p/") {
			delete(w.bucket.objects, key)
		}
	}
	if diff := cmp.Diff([]string{"packed bytes"}, pieces(t, r.archive, w.key, file.FileKey, noEnd)); diff != "" {
		t.Error(diff)
	}
	delete(w.bucket.objects, w.key.Prefix()+"m/1700000000002")
	if all := pieces(t, r.archive, w.key, file.FileKey, noEnd); len(all) != 1 || all[0] != "ArchiverAway" {
		t.Errorf("a manifest whose object is gone: %q", all)
	}
}

func TestArchive_ResumesWhatIsPackedAndForgetsPodsThatEnded(t *testing.T) {
	w, r, in := fixture(t)
	file, other := w.files[0], w.files[1]
	w.must(in.Append([]pack.Record{
		chunkAt(file, 5, "bytes"), {Cluster: w.key.Cluster, Hole: &pack.Hole{File: other, Offset: 7, Reason: pack.RotatedAway}},
	}))
	w.now += 60_000
	w.must(r.archive.Pack(t.Context()))
	resume := func() map[pack.FileID]int64 {
		r.disk.removed = map[string]*diskFile{} // a segment that comes back is taken again
		w.crash(r, true)
		w.start(r)
		in, err := r.archive.Open(t.Context(), wire.Source{Namespace: w.key.Namespace, Cluster: w.key.Cluster, Pod: pack.UID{1}})
		w.must(err)
		all := map[pack.FileID]int64{}
		for _, one := range in.Resume() {
			all[one.ID] = one.Offset
		}
		return all
	}
	if diff := cmp.Diff(map[pack.FileID]int64{file.ID: 10, other.ID: pack.MaxOffset}, resume()); diff != "" {
		t.Errorf("after a restart: %s", diff)
	}
	in, err := r.archive.Open(t.Context(), wire.Source{Namespace: w.key.Namespace, Cluster: w.key.Cluster, Pod: pack.UID{1}})
	w.must(err)
	unseen := pack.MakeFileID(99, 1)
	w.must(in.Append([]pack.Record{{Cluster: w.key.Cluster, Part: &pack.Part{
		Pod: pack.UID{1}, Of: 1, Files: []pack.Listed{{ID: file.ID, Size: 10, Acked: 10}, {ID: unseen, Size: 3, Acked: 3}},
	}}}))
	w.now += 60_000
	w.must(r.archive.Pack(t.Context()))
	if all := resume(); len(all) > 0 {
		t.Errorf("after the last list: %v", all)
	}
	v, err := r.archive.View(t.Context(), w.key)
	w.must(err)
	paths := map[pack.FileID]string{}
	for _, one := range v.Files() {
		paths[one.ID] = one.Path
	}
	if diff := cmp.Diff(map[pack.FileID]string{file.ID: file.Path, other.ID: other.Path, unseen: ""}, paths); diff != "" {
		t.Errorf("files: %s", diff)
	}
	ended := index.Ending{At: 1, Reason: pack.Killed}
	if layout := v.Layout(pack.FileKey{Pod: pack.UID{1}, ID: unseen}, ended); len(layout) != 1 || layout[0].Reason != pack.ArchiverAway {
		t.Errorf("a file that another replica had: %v", layout)
	}
}

func TestArchive_GivesANamespaceAQuarterOfTheSpool(t *testing.T) {
	w := newWorld(t, 1)
	r := w.replicas[0]
	r.archive.settings.SpoolBytes = 8 << 20
	other := wire.Source{Namespace: pack.UID{0xb}, Cluster: pack.UID{0xd}, Pod: pack.UID{9}}
	in, err := r.archive.Open(t.Context(), wire.Source{Namespace: w.key.Namespace, Cluster: w.key.Cluster, Pod: pack.UID{1}})
	w.must(err)
	in2, err := r.archive.Open(t.Context(), other)
	w.must(err)
	data, offset := string(make([]byte, 100<<10)), int64(0)
	for {
		room, again := in.Room(100 << 10)
		if room < 100<<10 {
			if again == 0 {
				t.Error("a collector without room is not told when to ask again")
			}
			break
		}
		w.must(in.Append([]pack.Record{chunkAt(w.files[0], offset, data)}))
		offset += int64(len(data))
	}
	if offset < 1<<20 || offset > 2<<20 {
		t.Errorf("a namespace has %d bytes of a spool of 8 MiB", offset)
	}
	for err = error(nil); err == nil; offset += int64(len(data)) { // a peer that takes no notice of room
		err = in.Append([]pack.Record{chunkAt(w.files[0], offset, data)})
	}
	if !errors.Is(err, ErrFull) || offset > 3<<20 {
		t.Errorf("after %d bytes: %v", offset, err)
	}
	if room, _ := in2.Room(wire.WideRoom); room != wire.WideRoom {
		t.Errorf("another namespace has room for %d bytes", room)
	}
	w.now += 60_000
	w.must(r.archive.Pack(t.Context()))
	if room, _ := in.Room(wire.WideRoom); room != wire.WideRoom {
		t.Errorf("room for %d bytes after all was packed", room)
	}
}

func TestArchive_PacksInOrderAndByTimeAndSize(t *testing.T) {
	w, r, in := fixture(t)
	file := w.files[0]
	w.must(in.Append([]pack.Record{chunkAt(file, 0, "a")}))
	w.now += 59_999
	w.must(r.archive.Pack(t.Context()))
	if len(w.bucket.objects) != 0 {
		t.Error("a pack was written before its time")
	}
	w.now++
	w.must(r.archive.Pack(t.Context()))
	if len(w.bucket.objects) != 1 {
		t.Errorf("%d packs after a minute", len(w.bucket.objects))
	}
	for i := range int64(3) {
		w.must(in.Append([]pack.Record{chunkAt(file, 1+i*400, string(make([]byte, 400)))}))
	}
	w.must(r.archive.Pack(t.Context()))
	if len(w.bucket.objects) != 3 {
		t.Errorf("%d packs: two segments were full at once", len(w.bucket.objects))
	}
	r.isStoreAway = true
	if err := r.archive.Pack(t.Context()); err != nil {
		t.Errorf("nothing was due: %v", err)
	}
	w.now += 60_000
	if err := r.archive.Pack(t.Context()); !errors.Is(err, errAway) {
		t.Errorf("the store is away: %v", err)
	}
	r.isStoreAway = false
	w.must(r.archive.Pack(t.Context()))
	if len(w.bucket.objects) != 4 || r.archive.total != 0 {
		t.Errorf("%d packs, %d bytes on the spool", len(w.bucket.objects), r.archive.total)
	}
}

func TestOpen_KeepsSegmentsOfALaterVersion(t *testing.T) {
	w := newWorld(t, 1)
	r := w.replicas[0]
	name := w.key.fileName("1700000000000-0-1")
	r.disk.files[name] = &diskFile{disk: r.disk, data: []byte("HLIOSP02rest"), synced: 12, isNamed: true}
	if _, err := Open(r.archive.settings, r.disk, r.archive.store); err == nil || r.disk.files[name] == nil {
		t.Errorf("a segment of a later version: %v", err)
	}
	r.disk.files = map[string]*diskFile{"lost+found": {disk: r.disk}, name: {disk: r.disk, data: []byte("HLIO\x00\x00\x00\x00\x00")}}
	w.start(r)
	if r.disk.files[name] != nil || r.disk.files["lost+found"] == nil {
		t.Errorf("after a first write that was cut: %v", r.disk.files)
	}
}

func TestAppend_BoundsTimes(t *testing.T) {
	w, r, in := fixture(t)
	far := chunkAt(w.files[0], 0, "x")
	far.Chunk.At = pack.MaxOffset
	old := chunkAt(w.files[1], 0, "x")
	old.Chunk.At = 0
	w.must(in.Append([]pack.Record{far, old}))
	w.now += 60_000
	w.must(r.archive.Pack(t.Context()))
	v, err := r.archive.View(t.Context(), w.key)
	w.must(err)
	if newest := v.Newest(); newest != 1_700_000_000_000+day {
		t.Errorf("the newest byte was read at %d", newest)
	}
}

// TestOpenVolume_DoesWhatAVolumeMust plays a history on real files.
func TestOpenVolume_DoesWhatAVolumeMust(t *testing.T) {
	volume, err := OpenVolume(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, 1)
	settings := w.replicas[0].archive.settings
	open := func() *Archive {
		a, err := Open(settings, volume, w.replicas[0].archive.store)
		w.must(err)
		settings.First += 1 << 32
		return a
	}
	a, file := open(), w.files[0]
	source := wire.Source{Namespace: w.key.Namespace, Cluster: w.key.Cluster, Pod: pack.UID{1}}
	in, err := a.Open(t.Context(), source)
	w.must(err)
	w.must(in.Append([]pack.Record{chunkAt(file, 0, "one ")}))
	w.must(in.Append([]pack.Record{chunkAt(file, 4, "two ")}))
	a = open() // the former one was killed
	in, err = a.Open(context.Background(), source)
	w.must(err)
	w.must(in.Append([]pack.Record{chunkAt(file, 8, "three")}))
	w.now += 60_000
	w.must(a.Pack(t.Context()))
	names, err := volume.List()
	w.must(err)
	if diff := cmp.Diff([]string{w.key.fileName(endsName)}, names); diff != "" {
		t.Errorf("the spool has %s", diff)
	}
	w.must(in.Append([]pack.Record{chunkAt(file, 13, " four")}))
	if diff := cmp.Diff([]string{"one two ", "three", " four"}, pieces(t, open(), w.key, file.FileKey, noEnd)); diff != "" {
		t.Error(diff)
	}
	if err := volume.Remove("missing"); err == nil {
		t.Error("a file that is not there was removed")
	}
}

func TestResume_HasWhichFilesEnded(t *testing.T) {
	w, r, in := fixture(t)
	file, other := w.files[0], w.files[1]
	w.must(in.Append([]pack.Record{chunkAt(file, 0, "x"), chunkAt(other, 0, "x")}))
	w.must(in.Append([]pack.Record{{Cluster: w.key.Cluster, Part: &pack.Part{Pod: pack.UID{1}, Files: []pack.Listed{{ID: other.ID, Size: 1}}}}}))
	check := func(when string) {
		t.Helper()
		in, err := r.archive.Open(t.Context(), wire.Source{Namespace: w.key.Namespace, Cluster: w.key.Cluster, Pod: pack.UID{1}})
		w.must(err)
		for _, one := range in.Resume() {
			if one.IsClosed != (one.ID == other.ID) {
				t.Errorf("%s %v is resumed as closed: %v", when, one.ID, one.IsClosed)
			}
		}
	}
	check("at once")
	w.crash(r, true)
	w.start(r)
	check("from the spool")
	w.now += 60_000
	w.must(r.archive.Pack(t.Context()))
	w.crash(r, true)
	w.start(r)
	check("from packs")
}

// TestOpen_MakesDurableWhatItCountsAsTaken: a program that was killed leaves bytes that the machine has not written yet. A
// collector is told not to send them again, so they must outlive the machine's end from then on.
func TestOpen_MakesDurableWhatItCountsAsTaken(t *testing.T) {
	taken := 0
	for seed := range uint64(30) {
		w := newWorld(t, seed)
		r, file := w.replicas[0], w.files[0]
		source := wire.Source{Namespace: w.key.Namespace, Cluster: w.key.Cluster, Pod: pack.UID{1}}
		in, err := r.archive.Open(t.Context(), source)
		w.must(err)
		r.fate.left = 2 // create, write, and the end within the sync
		if err := in.Append([]pack.Record{chunkAt(file, 0, "killed")}); !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		w.crash(r, false)
		w.start(r)
		in, err = r.archive.Open(t.Context(), source)
		w.must(err)
		if len(in.Resume()) == 0 {
			continue
		}
		taken++
		w.crash(r, true)
		w.start(r)
		if all := pieces(t, r.archive, w.key, file.FileKey, noEnd); len(all) != 1 || all[0] != "killed" {
			t.Errorf("history %d: of what was taken the archive has %q", seed, all)
		}
	}
	if taken == 0 {
		t.Error("nothing was taken in any history")
	}
}
