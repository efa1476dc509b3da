package index

import (
	"bytes"
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/heliostat-dev/heliostat/history/pack"
)

// histories is how many the world plays.
const histories = 5000

// world is a pod with files, its collector, two replicas of the archiver with a spool each, and a store. It is a model of all
// but the formats and the merge, which are the product's.
type world struct {
	t       *testing.T
	random  *rand.Rand
	encoder *pack.Encoder
	decoder *pack.Decoder

	// truth is every byte that was ever written, by file and generation.
	truth map[pack.FileKey][]byte
	// disk is the files that the collector can see, by name.
	disk map[string]*written
	// inodes counts files that were made, and clock is the time.
	inodes uint64
	clock  int64

	collector map[pack.FileKey]*followed
	replicas  [2]replica
	to        int
	store     map[string][]byte
	// isSpoolLost: bytes that were acknowledged went with a spool.
	isSpoolLost bool
	isListed    bool
}

// written is a file on disk.
type written struct {
	key  pack.FileKey
	path string
}

// followed is what the collector knows of a file. Acked is what replica to has acknowledged.
type followed struct {
	key    pack.FileKey
	path   string
	offset int64
	// isClosed: it is gone from the disk, and all of it was read.
	isClosed bool
}

// replica is a segment on a volume, up to synced of which fsync has returned.
type replica struct {
	segment []byte
	synced  int
	packs   int
}

func (w *world) add(record pack.Record) {
	w.t.Helper()
	record.Cluster = cluster
	to := &w.replicas[w.to]
	segment, err := pack.AppendRecord(to.segment, record)
	if err != nil {
		w.t.Fatal(err)
	}
	to.segment = segment
}

// create makes a file, and rotates those of its name.
func (w *world) create(name string) {
	if w.disk[name+".1"] != nil && w.random.IntN(2) == 0 {
		delete(w.disk, name+".1") // Ray removes the oldest
	}
	if old := w.disk[name]; old != nil {
		w.disk[name+".1"] = old
	}
	w.inodes++
	key := pack.FileKey{Pod: pod, ID: pack.MakeFileID(w.inodes, uint64(w.clock))}
	w.disk[name] = &written{key, name}
	w.truth[key] = nil
}

// some returns a random file of the disk.
func (w *world) some() *written {
	names := slices.Sorted(maps.Keys(w.disk))
	return w.disk[names[w.random.IntN(len(names))]]
}

func (w *world) write() {
	file := w.some()
	data := make([]byte, 1+w.random.IntN(300))
	for i := range data {
		data[i] = byte('a' + w.random.IntN(26))
	}
	w.truth[file.key] = append(w.truth[file.key], data...)
}

// shorten makes a file shorter: what follows is another generation.
func (w *world) shorten() {
	file := w.some()
	w.collectOne(file, 1<<20) // this is about what is read, and not about what is missed
	w.close(w.collector[file.key])
	file.key.Generation++
	w.truth[file.key] = nil
}

// close says how long a file was that the collector will not see again.
func (w *world) close(one *followed) {
	one.isClosed = true
	w.add(pack.Record{Part: &pack.Part{Pod: pod, Files: []pack.Listed{w.listed(one)}}})
	w.sync()
}

// pass lets the collector see the disk, and read up to a limit of each file.
func (w *world) pass(limit int) {
	onDisk := map[pack.FileKey]bool{}
	for _, name := range slices.Sorted(maps.Keys(w.disk)) {
		onDisk[w.disk[name].key] = true
		w.collectOne(w.disk[name], limit)
	}
	for _, key := range slices.SortedFunc(maps.Keys(w.collector), compareKeys) {
		one := w.collector[key]
		if onDisk[key] || one.isClosed {
			continue
		}
		w.read(one, limit) // by its descriptor
		if one.offset == int64(len(w.truth[key])) {
			w.close(one)
		}
	}
	w.sync()
}

func compareKeys(a, b pack.FileKey) int {
	return cmp.Or(slices.Compare(a.ID[:], b.ID[:]), cmp.Compare(a.Generation, b.Generation))
}

func (w *world) collectOne(file *written, limit int) {
	one := w.collector[file.key]
	if one == nil {
		one = &followed{key: file.key}
		w.collector[file.key] = one
	}
	one.path = file.path
	w.read(one, limit)
}

func (w *world) read(one *followed, limit int) {
	data := w.truth[one.key]
	data = data[min(one.offset, int64(len(data))):]
	data = data[:min(len(data), limit)]
	if len(data) > 0 {
		w.add(pack.Record{Chunk: &pack.Chunk{File: pack.File{FileKey: one.key, Path: one.path}, Offset: one.offset, At: w.clock, Data: data}})
		one.offset += int64(len(data))
	}
}

// sync is fsync of the replica that the collector sends to.
func (w *world) sync() { w.replicas[w.to].synced = len(w.replicas[w.to].segment) }

// resume lets a stream begin: the collector goes on where the replica has acknowledged. What it closed was acknowledged. One that
// started again knows of files that went no more than the replica does.
func (w *world) resume(isRestarted bool) {
	known := w.known(w.to)
	acked := known.Acked(pod)
	if !isRestarted {
		for _, one := range w.collector {
			if !one.isClosed {
				one.offset = acked[one.key]
			}
		}
		return
	}
	w.collector = map[pack.FileKey]*followed{}
	for _, file := range w.disk {
		w.collector[file.key] = &followed{key: file.key, path: file.path, offset: acked[file.key]}
	}
	for _, file := range known.Files() {
		if w.collector[file.FileKey] == nil && !known.files[file.FileKey].isListed {
			w.add(pack.Record{Hole: &pack.Hole{File: file, Offset: acked[file.FileKey], At: w.clock, Reason: pack.RotatedAway}})
		}
	}
	w.sync()
}

// list ends the pod as it should: all is read, then the list.
func (w *world) list() {
	for range 2 {
		w.pass(1 << 20)
	}
	var files []pack.Listed
	for _, one := range w.collector {
		files = append(files, w.listed(one))
	}
	half := len(files) / 2
	w.add(pack.Record{Part: &pack.Part{Pod: pod, Number: 0, Of: 2, Files: files[:half]}})
	w.add(pack.Record{Part: &pack.Part{Pod: pod, Number: 1, Of: 2, Files: files[half:]}})
	w.sync()
	w.isListed = true
}

func (w *world) listed(one *followed) pack.Listed {
	return pack.Listed{ID: one.key.ID, Generation: one.key.Generation, Size: int64(len(w.truth[one.key])), Acked: one.offset}
}

func newWorld(t *testing.T, seed uint64, encoder *pack.Encoder, decoder *pack.Decoder) *world {
	w := &world{
		t: t, random: rand.New(rand.NewPCG(seed, 7)), encoder: encoder, decoder: decoder,
		truth: map[pack.FileKey][]byte{}, disk: map[string]*written{}, collector: map[pack.FileKey]*followed{}, store: map[string][]byte{},
	}
	for i := range w.replicas {
		w.replicas[i].segment = pack.AppendSegment(nil)
		w.replicas[i].synced = len(w.replicas[i].segment)
	}
	w.create("worker.out")
	return w
}

// step does one thing.
func (w *world) step() {
	w.clock++
	other := w.random.IntN(2)
	switch w.random.IntN(24) {
	case 0, 1:
		w.create([]string{"worker.out", "raylet.out", "serve/a.log"}[w.random.IntN(3)])
	case 2:
		w.shorten()
	case 3, 4:
		w.pack(other, false)
	case 5:
		w.pack(other, true)
	case 6:
		w.crash(other)
	case 7:
		w.resume(true)
	case 8, 9:
		w.to = 1 - w.to
		w.resume(false)
	case 10:
		w.rewrite(w.random.IntN(2) == 0)
	case 11:
		if w.random.IntN(8) == 0 {
			w.loseSpool(other)
		}
	case 12, 13, 14, 15:
		w.pass(1 + w.random.IntN(400))
	default:
		w.write()
	}
}

// judge compares what is read with what was written.
func (w *world) judge(seed uint64, ending Ending) (isWhole bool) {
	a := w.archive(w.random)
	again := w.archive(w.random)
	isWhole = true
	for key, truth := range w.truth {
		layout := a.Layout(key, ending)
		if !slices.Equal(layout, again.Layout(key, ending)) {
			w.t.Fatalf("seed %d: the order in which packs are read changes the layout of %v", seed, key)
		}
		place := int64(0)
		for _, part := range layout {
			if part.Offset != place {
				w.t.Fatalf("seed %d: bytes from %d to %d are neither there nor missing", seed, place, part.Offset)
			}
			if part.Reason > 0 {
				isWhole = false
				w.reason(seed, part)
			} else if got := w.bytes(part); !bytes.Equal(got, truth[part.Offset:part.Offset+part.Length]) {
				w.t.Fatalf("seed %d: %d bytes at %d differ from what was written", seed, part.Length, part.Offset)
			}
			place += part.Length
		}
		if a.files[key] == nil {
			continue // it was made and removed between two passes
		}
		if open := len(layout) > 0 && layout[len(layout)-1].Length == 0; place < int64(len(truth)) && !open {
			w.t.Fatalf("seed %d: nothing says that %d of %d bytes of %v are missing", seed, int64(len(truth))-place, len(truth), key)
		}
	}
	return isWhole
}

// reason fails where bytes are missing for a reason that did not happen.
func (w *world) reason(seed uint64, part Range) {
	if part.Reason == pack.ArchiverAway && !w.isSpoolLost {
		w.t.Fatalf("seed %d: acknowledged bytes at %d are missing, and no spool was lost", seed, part.Offset)
	}
	if part.Reason == pack.Killed && w.isListed && !w.isSpoolLost {
		w.t.Fatalf("seed %d: bytes at %d are missing for the pod's end, which had its time", seed, part.Offset)
	}
}

// TestWorld_ReadsWhatWasWritten plays histories of writes, rotations, repeats and crashes, and compares what is read at the end with
// what was written.
func TestWorld_ReadsWhatWasWritten(t *testing.T) {
	encoder, err := pack.NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	decoder, err := pack.NewDecoder()
	if err != nil {
		t.Fatal(err)
	}
	states := map[State]int{}
	for seed := range uint64(histories) {
		w := newWorld(t, seed, encoder, decoder)
		for range 10 + w.random.IntN(40) {
			w.step()
		}
		if w.random.IntN(3) > 0 {
			w.list()
		}
		w.clock++
		w.pack(0, false)
		w.pack(1, false)
		ending := Ending{At: 1, Reason: pack.Killed}
		isWhole := w.judge(seed, ending)
		state := w.archive(w.random).State(map[pack.UID]Ending{pod: ending}, w.clock+ListWait+1)
		states[state]++
		if want := w.isListed && isWhole; (state == Complete) != want {
			t.Fatalf("seed %d: the archive is %s; it has a list: %v, and each byte: %v", seed, state, w.isListed, isWhole)
		}
	}
	for _, state := range []State{Complete, Incomplete} {
		if states[state] < histories/10 {
			t.Errorf("only %d of %d histories end %s", states[state], histories, state)
		}
	}
}
