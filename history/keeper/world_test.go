package keeper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/heliostat-dev/heliostat/history/archive"
	"github.com/heliostat-dev/heliostat/history/index"
	"github.com/heliostat-dev/heliostat/history/pack"
	"github.com/heliostat-dev/heliostat/history/retain"
)

var (
	errCrash   = errors.New("the archiver ended")
	errMissing = errors.New("no such object")
)

// bucket is a Store in memory.
type bucket struct {
	mutex   sync.Mutex
	now     int64
	objects map[string]object
	keys    []string // in order
	calls   int
	// before is called before each call, and can end it. after can fail one that had its effect.
	before, after func(call int) error
}

type object struct {
	data []byte
	at   int64
}

func (b *bucket) call(do func() error) error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.calls++
	number := b.calls
	if b.before != nil {
		b.mutex.Unlock()
		err := b.before(number)
		b.mutex.Lock()
		if err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	if b.after != nil {
		return b.after(number)
	}
	return nil
}

func (b *bucket) Write(_ context.Context, key string, data []byte) error {
	return b.call(func() error { b.put(key, object{slices.Clone(data), b.now}); return nil })
}

func (b *bucket) Delete(_ context.Context, key string) error {
	return b.call(func() error { b.drop(key); return nil })
}

func (b *bucket) Read(_ context.Context, key string, offset, length int64) (data []byte, err error) {
	err = b.call(func() error {
		one, is := b.objects[key]
		if !is {
			return errMissing
		}
		data = one.data[min(offset, int64(len(one.data))):min(int64(len(one.data)), offset+length)]
		return nil
	})
	return data, err
}

func (b *bucket) List(_ context.Context, prefix string, each func(string, int64, int64) error) error {
	var keys []string
	all := map[string]object{}
	if err := b.call(func() error {
		first, _ := slices.BinarySearch(b.keys, prefix)
		for _, key := range b.keys[first:] {
			if !strings.HasPrefix(key, prefix) {
				break
			}
			keys, all[key] = append(keys, key), b.objects[key]
		}
		return nil
	}); err != nil {
		return err
	}
	for _, key := range keys {
		if err := each(key, int64(len(all[key].data)), all[key].at); err != nil {
			return err
		}
	}
	return nil
}

func (b *bucket) put(key string, one object) {
	if place, is := slices.BinarySearch(b.keys, key); !is {
		b.keys = slices.Insert(b.keys, place, key)
	}
	b.objects[key] = one
}

func (b *bucket) drop(key string) {
	if place, is := slices.BinarySearch(b.keys, key); is {
		b.keys = slices.Delete(b.keys, place, place+1)
	}
	delete(b.objects, key)
}

func (*bucket) IsNotFound(err error) bool { return errors.Is(err, errMissing) }

// size returns how many bytes the objects of an archive take.
func (b *bucket) size(key archive.Key) (bytes int64) {
	for name, one := range b.objects {
		if strings.HasPrefix(name, key.Prefix()) {
			bytes += int64(len(one.data))
		}
	}
	return bytes
}

// names returns the names of the objects of an archive.
func (b *bucket) names(key archive.Key) (all []string) {
	first, _ := slices.BinarySearch(b.keys, key.Prefix())
	for _, name := range b.keys[first:] {
		rest, is := strings.CutPrefix(name, key.Prefix())
		if !is {
			break
		}
		all = append(all, rest)
	}
	return all
}

// registry is Records in memory.
type registry struct {
	mutex    sync.Mutex
	archives map[archive.Key]Archive
	endings  map[pack.UID]map[pack.UID]index.Ending
	marks    map[pack.UID]string
}

func (r *registry) Archives() []Archive {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Collect(maps.Values(r.archives))
}

func (r *registry) Endings(cluster pack.UID) map[pack.UID]index.Ending {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.endings[cluster]
}

func (r *registry) Mark(cluster pack.UID, state index.State, at int64, by string) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.marks[cluster] = fmt.Sprint(state, " ", at, " ", by)
	return nil
}

// world has a store, records, and clusters whose packs archivers write.
type world struct {
	t       testing.TB
	random  *rand.Rand
	now     int64
	bucket  *bucket
	records *registry
	limits  retain.Limits
	encoder *pack.Encoder
	decoder *pack.Decoder
	starts  uint64
}

const (
	begun   = 20_000 * day
	keepFor = 30 * day
)

func newWorld(t testing.TB, seed uint64) *world {
	encoder, err := pack.NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	decoder, err := pack.NewDecoder()
	if err != nil {
		t.Fatal(err)
	}
	return &world{
		t: t, random: rand.New(rand.NewPCG(seed, 5)), now: begun, bucket: &bucket{now: begun, objects: map[string]object{}},
		records: &registry{archives: map[archive.Key]Archive{}, endings: map[pack.UID]map[pack.UID]index.Ending{}, marks: map[pack.UID]string{}},
		encoder: encoder, decoder: decoder,
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// keeper returns a new keeper of a store, as after a start.
func (w *world) keeper(store Store) *Keeper {
	w.starts++
	k, err := New(Settings{Limits: w.limits, MaxKeepFor: 365 * day, First: w.starts << 32}, store, w.records)
	w.must(err)
	k.work.workers = 1
	return k
}

func (w *world) pass(k *Keeper, after int64) {
	w.t.Helper()
	w.now += after
	w.bucket.now = w.now
	w.must(k.Pass(w.t.Context(), w.now))
}

// cluster adds one that lives.
func (w *world) cluster(number int) archive.Key {
	key := archive.Key{Namespace: pack.UID{1, byte(number >> 12)}, Cluster: pack.UID{2, byte(number >> 8), byte(number)}}
	w.records.archives[key] = Archive{Key: key, KeepFor: keepFor}
	return key
}

// end ends a cluster and its pods.
func (w *world) end(key archive.Key, pods ...pack.UID) {
	one := w.records.archives[key]
	one.Ended = w.now
	w.records.archives[key] = one
	w.records.endings[key.Cluster] = map[pack.UID]index.Ending{}
	for _, pod := range pods {
		w.records.endings[key.Cluster][pod] = index.Ending{At: w.now, Reason: pack.Killed}
	}
}

// pack writes a pack as a replica does.
func (w *world) pack(key archive.Key, replica int, at int64, fill func(*pack.Writer)) string {
	w.t.Helper()
	writer := w.encoder.NewWriter(key.Cluster, at)
	fill(writer)
	data, err := writer.Finish()
	w.must(err)
	w.starts++
	name := fmt.Sprintf("p/%013d-%d-%d", at, replica, w.starts)
	w.must(w.bucket.Write(w.t.Context(), key.Prefix()+name, data))
	return name
}

func file(pod byte, number uint64) pack.File {
	return pack.File{FileKey: pack.FileKey{Pod: pack.UID{pod}, ID: pack.MakeFileID(number, 9)}, Path: fmt.Sprintf("worker-%d.out", number)}
}

// bytesAt is what a file has. It does not compress.
func bytesAt(key pack.FileKey, offset, length int64) []byte {
	data := make([]byte, length)
	for i := range data {
		at := uint64(offset+int64(i))*0x9e3779b97f4a7c15 + uint64(key.Pod[0])<<32 + uint64(key.ID[7])<<40
		at ^= at >> 29
		data[i] = byte(at * 0xbf58476d1ce4e5b9 >> 56)
	}
	return data
}

func (w *world) add(writer *pack.Writer, one pack.File, offset, length, at int64) {
	w.t.Helper()
	w.must(writer.Add(one, offset, at, bytesAt(one.FileKey, offset, length)))
}

// empty is a volume without files.
type empty struct{ archive.Volume }

func (empty) List() ([]string, error) { return nil, nil }

// read returns what a reader of a store gets of an archive: of each file the bytes, with a letter of the reason in place of each that is
// missing, and behind them the reason of a gap without an end.
func (w *world) read(store archive.Store, key archive.Key) map[pack.FileKey]string {
	w.t.Helper()
	a, err := archive.Open(archive.Settings{SpoolBytes: 1 << 20}, empty{}, store)
	w.must(err)
	v, err := a.View(context.Background(), key)
	w.must(err)
	all := map[pack.FileKey]string{}
	for _, one := range v.Files() {
		ending := w.records.endings[key.Cluster][one.Pod]
		var text bytes.Buffer
		w.must(v.Read(context.Background(), one.FileKey, ending, 0, func(piece archive.Piece) error {
			if int64(text.Len()) != piece.Offset {
				w.t.Fatalf("a piece at %d of %v, where %d was read", piece.Offset, one, text.Len())
			}
			switch {
			case piece.Reason == 0:
				text.Write(piece.Data)
			case piece.Length == 0:
				text.WriteString("... " + piece.Reason.String())
			default:
				text.Write(bytes.Repeat([]byte{'A' + byte(piece.Reason)}, int(piece.Length)))
			}
			return nil
		}))
		all[one.FileKey] = text.String()
	}
	return all
}

// same judges that two reads have the same.
func (w *world) same(what string, want, got map[pack.FileKey]string) {
	w.t.Helper()
	for key, text := range want {
		if got[key] != text {
			at := 0
			for at < min(len(text), len(got[key])) && text[at] == got[key][at] {
				at++
			}
			w.t.Fatalf("%s: %v has %d bytes in place of %d, and is other from %d on", what, key, len(got[key]), len(text), at)
		}
	}
	for key, text := range got {
		if _, is := want[key]; !is && text != "" {
			w.t.Fatalf("%s: %v with %d bytes was not there", what, key, len(text))
		}
	}
}

// tidy judges that an archive has nothing that its newest manifest does not use, and nothing that is missing.
func (w *world) tidy(key archive.Key) {
	w.t.Helper()
	s, err := archive.OpenStored(context.Background(), w.bucket, w.decoder, key)
	w.must(err)
	live := map[string]bool{s.Manifest: true}
	for _, row := range s.Rows() {
		for _, part := range row.Ranges {
			live[part.Object] = true
		}
	}
	for _, name := range w.bucket.names(key) {
		if !live[name] && name != archive.EndName && !strings.HasPrefix(name, "p/") && !strings.HasPrefix(name, s.Manifest+"-") {
			w.t.Errorf("%s of %s is an orphan", name, key.Cluster)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(live)) {
		if _, is := s.Objects[name]; !is && name != "" {
			w.t.Errorf("%s of %s is missing", name, key.Cluster)
		}
	}
}

// whole judges that a manifest names no run of which something else has a part: a cut would bring that part back.
func (w *world) whole(key archive.Key) {
	w.t.Helper()
	s, err := archive.OpenStored(context.Background(), w.bucket, w.decoder, key)
	w.must(err)
	for _, row := range s.Rows() {
		for _, part := range row.Ranges {
			if s.Named[part.Object] && isPartial(part) {
				w.t.Fatalf("the manifest names %d bytes of a run of %d", part.Length, part.Run.Length)
			}
		}
	}
}
