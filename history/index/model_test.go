package index

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/heliostat-dev/heliostat/history/pack"
)

// known is the archive as a replica sees it: the store, and its own spool.
func (w *world) known(i int) *Archive {
	a := w.archive(w.random)
	if object := w.packed(i); object != nil {
		w.open(a, "p/spool", object)
	}
	return a
}

// packed is the pack of what is in a replica's spool.
func (w *world) packed(i int) []byte {
	writer := w.encoder.NewWriter(cluster, w.clock)
	count := 0
	whole, err := pack.ReadSegment(w.replicas[i].segment, func(record pack.Record) error {
		count++
		switch {
		case record.Chunk != nil:
			return writer.Add(record.Chunk.File, record.Chunk.Offset, record.Chunk.At, record.Chunk.Data)
		case record.Hole != nil:
			hole := record.Hole
			return writer.AddGap(hole.File, pack.Gap{Offset: hole.Offset, Length: hole.Length, Reason: hole.Reason, At: hole.At})
		default:
			sizes := map[pack.FileKey]pack.Size{}
			for _, one := range record.Part.Files {
				sizes[pack.FileKey{Pod: pod, ID: one.ID, Generation: one.Generation}] = pack.Size{Size: one.Size, Acked: one.Acked}
			}
			return w.addList(writer, record.Part.Of > 0 && record.Part.Number+1 == record.Part.Of, sizes)
		}
	})
	if err != nil || whole < w.replicas[i].synced {
		w.t.Fatalf("%d bytes of a segment are whole, and %d were synced: %v", whole, w.replicas[i].synced, err)
	}
	if count == 0 {
		return nil
	}
	object, err := writer.Finish()
	if err != nil {
		w.t.Fatal(err)
	}
	return object
}

func (w *world) addList(writer *pack.Writer, isFinal bool, sizes map[pack.FileKey]pack.Size) error {
	var files []pack.File
	var all []pack.Size
	for key, size := range sizes {
		files, all = append(files, pack.File{FileKey: key, Path: "listed"}), append(all, size)
	}
	return writer.AddList(pod, isFinal, files, all)
}

// pack moves a spool to the store. Where it crashes, the object is there and the spool is not cut.
func (w *world) pack(i int, isCrashing bool) {
	object := w.packed(i)
	if object == nil {
		return
	}
	w.replicas[i].packs++
	w.store[fmt.Sprintf("p/%d-%d-%d", w.clock, i, w.replicas[i].packs)] = object
	if !isCrashing {
		w.replicas[i].segment = pack.AppendSegment(nil)
		w.replicas[i].synced = len(w.replicas[i].segment)
	}
}

// crash ends a replica while it writes: behind what was synced anything can be.
func (w *world) crash(i int) {
	one := &w.replicas[i]
	rest := one.segment[one.synced:]
	rest = slices.Clone(rest[:w.random.IntN(len(rest)+1)])
	if len(rest) > 0 && w.random.IntN(2) == 0 {
		rest[w.random.IntN(len(rest))] ^= 1
	}
	one.segment = append(one.segment[:one.synced], rest...)
	whole, err := pack.ReadSegment(one.segment, func(pack.Record) error { return nil })
	if err != nil {
		w.t.Fatal(err)
	}
	one.segment = one.segment[:whole]
	one.synced = whole
	if i == w.to {
		w.resume(false)
	}
}

// loseSpool takes a volume away.
func (w *world) loseSpool(i int) {
	if whole := pack.AppendSegment(nil); len(w.replicas[i].segment) > len(whole) {
		w.isSpoolLost = true
	}
	w.replicas[i].segment = pack.AppendSegment(nil)
	w.replicas[i].synced = len(w.replicas[i].segment)
	if i == w.to {
		w.resume(false)
	}
}

// rewrite makes one pack of all, as for a cluster that has ended. Where it crashes, those before are still there.
func (w *world) rewrite(isCrashing bool) {
	a := w.archive(w.random)
	writer := w.encoder.NewWriter(cluster, w.clock)
	for _, file := range a.Files() {
		for _, part := range a.Layout(file.FileKey, Ending{}) {
			var err error
			if part.Reason > 0 {
				err = writer.AddGap(file, pack.Gap{Offset: part.Offset, Length: part.Length, Reason: part.Reason})
			} else {
				err = writer.Add(file, part.Offset, part.Run.At, w.bytes(part))
			}
			if err != nil {
				w.t.Fatal(err)
			}
		}
	}
	sizes := map[pack.FileKey]pack.Size{}
	for key, one := range a.files {
		if one.isListed {
			sizes[key] = pack.Size{Size: one.size, Acked: one.acked}
		}
	}
	if err := w.addList(writer, a.lists[pod], sizes); err != nil {
		w.t.Fatal(err)
	}
	object, err := writer.Finish()
	if err != nil {
		w.t.Fatal(err)
	}
	before := slices.Collect(maps.Keys(w.store))
	w.store[fmt.Sprintf("f/%d-0", w.clock)] = object
	if !isCrashing {
		for _, name := range before {
			delete(w.store, name)
		}
	}
}

// bytes reads what a range has.
func (w *world) bytes(part Range) []byte {
	w.t.Helper()
	data, err := w.decoder.Read(bytes.NewReader(w.store[part.Object]), part.Run)
	if err != nil {
		w.t.Fatal(err)
	}
	return data[part.Skip : part.Skip+part.Length]
}

func (w *world) open(a *Archive, name string, object []byte) {
	w.t.Helper()
	x, err := w.decoder.Open(bytes.NewReader(object), int64(len(object)))
	if err == nil {
		err = a.Add(name, x)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// archive reads the store in any order.
func (w *world) archive(random *rand.Rand) *Archive {
	a, names := New(cluster), slices.Sorted(maps.Keys(w.store))
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names {
		w.open(a, name, w.store[name])
	}
	return a
}
