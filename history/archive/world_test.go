package archive

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/history/pack"
	"github.com/heliostat-dev/heliostat/history/wire"
)

var (
	errCrash   = errors.New("the archiver ended")
	errMissing = errors.New("no such object")
)

// fate decides at which of the calls that follow the archiver ends. Before a call of that number, or within it.
type fate struct {
	random *rand.Rand
	left   int // calls before the end; negative is never
	ended  bool
	failed error // what each call fails with, while the volume or the store is away
}

// call counts a call. It reports whether the call has its effect, and the error that it returns.
func (f *fate) call() (isDone bool, err error) {
	if f.ended {
		return false, errCrash
	}
	if f.failed != nil {
		return false, f.failed
	}
	if f.left != 0 {
		f.left--
		return true, nil
	}
	f.ended = true
	return f.random.IntN(2) == 0, errCrash
}

// disk is a Volume that forgets at a crash what was not synced.
type disk struct {
	fate    *fate
	files   map[string]*diskFile
	removed map[string]*diskFile // until a crash, which may bring them back
}

type diskFile struct {
	disk   *disk
	data   []byte
	synced int
	// isNamed: the name outlives a crash.
	isNamed bool
}

func (d *disk) Create(name string) (File, error) {
	isDone, err := d.fate.call()
	if d.files[name] != nil {
		return nil, fmt.Errorf("file %s is there", name)
	}
	file := &diskFile{disk: d}
	if isDone {
		d.files[name] = file
	}
	return file, err
}

func (f *diskFile) Write(data []byte) (int, error) {
	isDone, err := f.disk.fate.call()
	switch {
	case err == nil:
		f.data = append(f.data, data...)
	case isDone || errors.Is(err, errFull): // a part of it
		f.data = append(f.data, data[:f.disk.fate.random.IntN(len(data)+1)]...)
	}
	return len(data), err
}

func (f *diskFile) Sync() error {
	isDone, err := f.disk.fate.call()
	if isDone {
		f.synced, f.isNamed = len(f.data), true
	}
	return err
}

func (f *diskFile) Close() error { return nil }

func (d *disk) Read(name string) ([]byte, error) {
	if d.files[name] == nil {
		return nil, fmt.Errorf("read %s: %w", name, errMissing)
	}
	return slices.Clone(d.files[name].data), nil
}

func (d *disk) Sync(name string) error {
	isDone, err := d.fate.call()
	if file := d.files[name]; isDone {
		file.synced, file.isNamed = len(file.data), true
	}
	return err
}

func (d *disk) Replace(name string, data []byte) error {
	isDone, err := d.fate.call()
	if isDone {
		d.files[name] = &diskFile{disk: d, data: slices.Clone(data), synced: len(data), isNamed: true}
	}
	return err
}

func (d *disk) Remove(name string) error {
	isDone, err := d.fate.call()
	if isDone && d.files[name] != nil {
		d.removed[name] = d.files[name]
		delete(d.files, name)
	}
	return err
}

func (d *disk) List() (names []string, err error) {
	for name := range d.files {
		names = append(names, name)
	}
	return names, nil
}

// crash leaves what a disk has after one: of bytes that were not synced a part, with zeros behind it at times.
func (d *disk) crash() {
	for name, file := range d.removed {
		if d.files[name] == nil && d.fate.random.IntN(2) == 0 {
			d.files[name] = file
		}
	}
	d.removed = map[string]*diskFile{}
	for name, file := range d.files {
		kept := file.synced + d.fate.random.IntN(len(file.data)-file.synced+1)
		file.data = slices.Clone(file.data[:kept])
		if d.fate.random.IntN(3) == 0 {
			file.data = append(file.data, make([]byte, d.fate.random.IntN(50))...)
		}
		file.synced = len(file.data)
		if !file.isNamed && d.fate.random.IntN(2) == 0 {
			delete(d.files, name)
		}
		file.isNamed = true
	}
}

// bucket is a Store in memory, for both replicas.
type bucket struct {
	objects map[string][]byte
}

// door is the way of one replica to the bucket.
type door struct {
	*bucket
	replica *replica
}

func (b door) Write(_ context.Context, key string, data []byte) error {
	if b.replica.isStoreAway {
		return errAway
	}
	isDone, err := b.replica.fate.call()
	if isDone {
		b.objects[key] = slices.Clone(data)
	}
	return err
}

func (b door) Read(_ context.Context, key string, offset, length int64) ([]byte, error) {
	data, is := b.objects[key]
	if !is {
		return nil, errMissing
	}
	if offset > int64(len(data)) {
		return nil, errors.New("beyond the end")
	}
	return data[offset:min(int64(len(data)), offset+length)], nil
}

func (b door) List(_ context.Context, prefix string, each func(string, int64, int64) error) error {
	var keys []string
	for key := range b.objects {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if err := each(key, int64(len(b.objects[key])), 0); err != nil {
			return err
		}
	}
	return nil
}

func (door) IsNotFound(err error) bool { return errors.Is(err, errMissing) }

var (
	errFull = errors.New("no space left")
	errAway = errors.New("the store is away")
)

// replica is one archiver with its volume.
type replica struct {
	number  int
	fate    *fate
	disk    *disk
	archive *Archive

	isStoreAway bool
}

// world has two replicas, a store, and files of pods that grow.
type world struct {
	t        testing.TB
	random   *rand.Rand
	now      int64
	bucket   *bucket
	replicas []*replica
	key      Key
	files    []pack.File
	sizes    map[pack.FileKey]int64 // how long a file is
	acked    map[pack.FileKey]int64 // up to where a replica acknowledged it
	lists    map[pack.UID]bool      // pods whose list was acknowledged
	starts   uint64
}

func newWorld(t testing.TB, seed uint64) *world {
	w := &world{
		t: t, random: rand.New(rand.NewPCG(seed, 7)), now: 1_700_000_000_000, bucket: &bucket{objects: map[string][]byte{}},
		key: Key{pack.UID{0xa}, pack.UID{0xc}}, sizes: map[pack.FileKey]int64{}, acked: map[pack.FileKey]int64{}, lists: map[pack.UID]bool{},
	}
	for pod := range byte(2) {
		for inode := range uint64(2) {
			file := pack.File{FileKey: pack.FileKey{Pod: pack.UID{pod + 1}, ID: pack.MakeFileID(inode+1, 3)}, Path: fmt.Sprint("worker-", inode)}
			w.files = append(w.files, file)
		}
	}
	for number := range 2 {
		f := &fate{random: w.random, left: -1}
		r := &replica{number: number, fate: f, disk: &disk{fate: f, files: map[string]*diskFile{}, removed: map[string]*diskFile{}}}
		w.replicas = append(w.replicas, r)
		w.start(r)
	}
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// start opens the archive of a replica. That itself may be where it ends, so it is tried until it lasts.
func (w *world) start(r *replica) {
	for r.archive = nil; r.archive == nil; {
		w.starts++
		archive, err := Open(Settings{
			Replica: r.number, First: w.starts << 32, SpoolBytes: 1 << 30, PackBytes: 600, PackAfter: 60_000,
			Now: func() int64 { return w.now },
		}, r.disk, door{w.bucket, r})
		if err != nil && !errors.Is(err, errCrash) {
			w.t.Fatal(err)
		}
		if err == nil {
			r.archive = archive
		} else {
			w.crash(r, w.random.IntN(2) == 0)
		}
	}
}

// crash ends a replica: its program, or its machine, which loses what was not synced.
func (w *world) crash(r *replica, isMachine bool) {
	if isMachine {
		r.disk.crash()
	}
	*r.fate = fate{random: w.random, left: -1}
	r.archive = nil
}

// byteAt is what a file has at an offset.
func byteAt(key pack.FileKey, offset int64) byte {
	return byte(offset*7) ^ byte(offset>>8) ^ key.Pod[0]<<6 ^ key.ID[7]<<4
}

func bytesAt(key pack.FileKey, offset, length int64) []byte {
	data := make([]byte, length)
	for i := range data {
		data[i] = byteAt(key, offset+int64(i))
	}
	return data
}

// send is a stream of a pod: it asks where it was, and sends what is new of its files, in pieces that are acknowledged.
func (w *world) send(r *replica, pod pack.UID) error {
	in, err := r.archive.Open(context.Background(), wire.Source{Namespace: w.key.Namespace, Cluster: w.key.Cluster, Pod: pod})
	if err != nil {
		return err
	}
	defer in.Close()
	at := map[pack.FileID]int64{}
	for _, one := range in.Resume() {
		at[one.ID] = one.Offset
	}
	var list []pack.Listed
	for _, file := range w.files {
		if file.Pod != pod {
			continue
		}
		begin := at[file.ID]
		if w.random.IntN(4) == 0 { // a collector that was not restarted goes on where the other replica was
			begin = w.acked[file.FileKey]
		}
		var records []pack.Record
		for begin < w.sizes[file.FileKey] {
			length := min(w.sizes[file.FileKey]-begin, 1+w.random.Int64N(100))
			records = append(records, pack.Record{Cluster: w.key.Cluster, Chunk: &pack.Chunk{
				File: file, Offset: begin, At: w.now, Data: bytesAt(file.FileKey, begin, length),
			}})
			begin += length
			if w.random.IntN(2) == 0 {
				if err := in.Append(records); err != nil {
					return err
				}
				records, w.acked[file.FileKey] = nil, max(w.acked[file.FileKey], begin)
			}
		}
		if len(records) > 0 {
			if err := in.Append(records); err != nil {
				return err
			}
			w.acked[file.FileKey] = max(w.acked[file.FileKey], begin)
		}
		list = append(list, pack.Listed{ID: file.ID, Size: begin, Acked: begin})
	}
	if w.random.IntN(5) == 0 {
		if err := in.Append([]pack.Record{{Cluster: w.key.Cluster, Part: &pack.Part{Pod: pod, Of: 1, Files: list}}}); err != nil {
			return err
		}
		w.lists[pod] = true
	}
	return nil
}

// step does one thing that happens to archivers.
func (w *world) step() {
	r := w.replicas[w.random.IntN(2)]
	if w.random.IntN(3) == 0 {
		r.fate.left = w.random.IntN(12)
	}
	w.now += w.random.Int64N(20_000)
	var err error
	switch w.random.IntN(6) {
	case 0, 1:
		file := w.files[w.random.IntN(len(w.files))]
		w.sizes[file.FileKey] += w.random.Int64N(300)
	case 2, 3:
		err = w.send(r, pack.UID{byte(1 + w.random.IntN(2))})
	case 4:
		err = r.archive.Pack(context.Background())
	default: // the store or the volume fails for a while
		if r.isStoreAway = w.random.IntN(2) == 0; !r.isStoreAway {
			r.fate.failed = errFull
		}
		err = errors.Join(w.send(r, pack.UID{1}), r.archive.Pack(context.Background()))
		r.fate.failed, r.isStoreAway = nil, false
		if !errors.Is(err, errCrash) {
			err = nil
		}
	}
	if errors.Is(err, errCrash) || r.fate.ended {
		w.crash(r, w.random.IntN(2) == 0)
		w.start(r)
	} else if err != nil {
		w.t.Fatal(err)
	}
	r.fate.left = -1
}

// check reads all files from both replicas, as a live read does. What was acknowledged is there, and is what was written.
func (w *world) check() {
	w.t.Helper()
	there := map[pack.FileKey][]bool{}
	for _, r := range w.replicas {
		v, err := r.archive.View(context.Background(), w.key)
		w.must(err)
		if len(v.Damaged) > 0 {
			w.t.Fatalf("objects are damaged: %v", v.Damaged)
		}
		for _, file := range v.Files() {
			if file.Path == "" && w.acked[file.FileKey] > 0 && len(v.Layout(file.FileKey, noEnd)) > 0 {
				w.t.Fatalf("%v has bytes and no path", file)
			}
			if there[file.FileKey] == nil {
				there[file.FileKey] = make([]bool, w.sizes[file.FileKey])
			}
			w.readAll(v, file.FileKey, there[file.FileKey])
		}
	}
	for _, file := range w.files {
		for offset := range w.acked[file.FileKey] {
			if there[file.FileKey] == nil || !there[file.FileKey][offset] {
				w.t.Fatalf("byte %d of %v was acknowledged and is nowhere; %d were", offset, file, w.acked[file.FileKey])
			}
		}
	}
}

// readAll notes the bytes that a view has of a file. Bytes are judged, ranges come in order and without overlap.
func (w *world) readAll(v *View, key pack.FileKey, there []bool) {
	w.t.Helper()
	for from := int64(0); from < int64(len(there)); {
		next := from + 1
		w.must(v.Read(context.Background(), key, noEnd, from, func(piece Piece) error {
			if piece.Offset != from || piece.Reason > 0 || int64(len(piece.Data)) != piece.Length {
				w.t.Fatalf("a piece of %d bytes at %d, reason %v, where %d was read", piece.Length, piece.Offset, piece.Reason, from)
			}
			for i, one := range piece.Data {
				if one != byteAt(key, from+int64(i)) {
					w.t.Fatalf("byte %d of %v is %d", from+int64(i), key, one)
				}
				there[from+int64(i)] = true
			}
			from += piece.Length
			next = from
			return nil
		}))
		from = next
	}
}
