package archive

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/heliostat-dev/heliostat/history/pack"
	"github.com/heliostat-dev/heliostat/history/retain"
	"github.com/heliostat-dev/heliostat/history/wire"
)

// maxRows is how many records and files of lists a segment has, so that a pack has room for its index.
const maxRows = 60_000

// endsName ends the name of the file that has up to where files of a cluster were taken, of which segments are packed. It is a
// segment itself, whose gaps begin there, and have a length where a list had the size of the file.
const endsName = "ends"

// cluster is the spool of one cluster: segments, each of which becomes one pack under the segment's own name.
type cluster struct {
	archive *Archive
	key     Key
	users   int // streams, which the archive's mutex guards
	mutex   sync.Mutex
	open    *segment   // what is appended to
	sealed  []*segment // what waits for its pack, the oldest first
	ends    map[pack.FileKey]pack.Hole
}

// segment is a file of the spool. Only its first size bytes are durable.
type segment struct {
	name  string
	file  File
	size  int64
	rows  int
	began int64
}

// fileName returns the name of a file of a cluster.
func (k Key) fileName(rest string) string {
	return k.Namespace.String() + "." + k.Cluster.String() + "." + rest
}

// parseName undoes fileName.
func parseName(name string) (key Key, rest string, is bool) {
	parts := strings.SplitN(name, ".", 3)
	if len(parts) < 3 {
		return key, "", false
	}
	var errs [2]error
	key.Namespace, errs[0] = pack.ParseUID(parts[0])
	key.Cluster, errs[1] = pack.ParseUID(parts[1])
	_, isTime := made(parts[2])
	return key, parts[2], errors.Join(errs[:]...) == nil && (isTime || parts[2] == endsName)
}

// made returns when a segment was begun, as its name says.
func made(rest string) (int64, bool) {
	text, _, _ := strings.Cut(rest, "-")
	at, err := strconv.ParseInt(text, 10, 64)
	return at, err == nil && at >= 0 && at <= pack.MaxOffset
}

// object returns the name that a segment's pack has below the archive's key.
func (s *segment) object() string {
	_, rest, _ := parseName(s.name)
	return "p/" + rest
}

// load reads up to where files were taken, once.
func (c *cluster) load() error {
	if c.ends != nil {
		return nil
	}
	ends := map[pack.FileKey]pack.Hole{}
	names, err := c.archive.volume.List()
	if err != nil {
		return fmt.Errorf("list the spool: %w", err)
	}
	for _, name := range names {
		if key, rest, is := parseName(name); !is || key != c.key || rest != endsName {
			continue
		}
		data, err := c.archive.volume.Read(name)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if _, err := pack.ReadSegment(data, func(record pack.Record) error {
			if hole := record.Hole; hole != nil {
				ends[hole.FileKey] = *hole
			}
			return nil
		}); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
	}
	for _, one := range c.segments() {
		if err := c.read(one, func(record pack.Record) error { advance(ends, record); return nil }); err != nil {
			return err
		}
	}
	c.ends = ends
	return nil
}

// segments returns all segments, the oldest first.
func (c *cluster) segments() []*segment {
	if c.open == nil {
		return c.sealed
	}
	return append(c.sealed[:len(c.sealed):len(c.sealed)], c.open)
}

// read calls each with the durable records of a segment.
func (c *cluster) read(one *segment, each func(pack.Record) error) error {
	data, err := c.archive.volume.Read(one.name)
	if err != nil {
		return fmt.Errorf("read segment %s: %w", one.name, err)
	}
	if int64(len(data)) < one.size {
		return fmt.Errorf("segment %s has %d bytes of %d", one.name, len(data), one.size)
	}
	if _, err := pack.ReadSegment(data[:one.size], each); err != nil {
		return fmt.Errorf("read segment %s: %w", one.name, err)
	}
	return nil
}

// advance notes up to where a record takes its file.
func advance(ends map[pack.FileKey]pack.Hole, record pack.Record) {
	var file pack.File
	var end int64
	switch {
	case record.Chunk != nil:
		file, end = record.Chunk.File, record.Chunk.Offset+int64(len(record.Chunk.Data))
	case record.Hole != nil && record.Hole.Length == 0:
		file, end = record.Hole.File, pack.MaxOffset
	case record.Hole != nil:
		file, end = record.Hole.File, record.Hole.Offset+record.Hole.Length
	default:
		for _, one := range record.Part.Files {
			key := pack.FileKey{Pod: record.Part.Pod, ID: one.ID, Generation: one.Generation}
			if row, is := ends[key]; is {
				row.Length = 1
				ends[key] = row
			}
		}
		return
	}
	ends[file.FileKey] = pack.Hole{File: file, Offset: max(end, ends[file.FileKey].Offset), Reason: pack.Unreadable}
}

// append makes records durable.
func (c *cluster) append(records []pack.Record) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err := c.load(); err != nil {
		return err
	}
	now := c.archive.settings.Now()
	var data []byte
	rows := 0
	for _, record := range records {
		var err error
		if data, err = pack.AppendRecord(data, bounded(record, now)); err != nil {
			return err
		}
		rows++
		if record.Part != nil {
			rows += len(record.Part.Files)
		}
	}
	if left := c.archive.left(c.key.Namespace); int64(len(data)) > left && left < wire.WideRoom {
		return fmt.Errorf("append %d bytes of cluster %s: %w", len(data), c.key.Cluster, ErrFull)
	}
	if err := c.admit(records); err != nil {
		return err
	}
	if c.open != nil && (c.open.size+int64(len(data)) > c.archive.settings.PackBytes || c.open.rows+rows > maxRows) {
		c.seal()
	}
	if err := c.write(data, now); err != nil {
		return err
	}
	c.open.rows += rows
	for _, record := range records {
		advance(c.ends, record)
	}
	return nil
}

// ErrCrowded is wrapped by the error about a pod with more files at once than one can have.
var ErrCrowded = errors.New("the pod has too many files")

// admit makes place for the files of records that are new. A pod has at most wire.MaxRows; of those that are too many, files that have
// ended are forgotten, which costs no more than that a collector can send them again.
func (c *cluster) admit(records []pack.Record) error {
	added := map[pack.FileKey]bool{}
	for _, record := range records {
		key, is := fileOf(record)
		if _, isKnown := c.ends[key]; is && !isKnown {
			added[key] = true
		}
	}
	if len(added) == 0 {
		return nil
	}
	pods := map[pack.UID]int{}
	for key := range added {
		pods[key.Pod]++
	}
	for pod, count := range pods {
		var ended []pack.FileKey
		for key, row := range c.ends {
			if key.Pod == pod {
				count++
				if row.Length > 0 {
					ended = append(ended, key)
				}
			}
		}
		if count-len(ended) > wire.MaxRows {
			return fmt.Errorf("append %d files of pod %s: %w", len(added), pod, ErrCrowded)
		}
		for i := 0; count > wire.MaxRows; i, count = i+1, count-1 {
			delete(c.ends, ended[i])
		}
	}
	return nil
}

// fileOf returns the file that a record is about, and reports false for a list.
func fileOf(record pack.Record) (pack.FileKey, bool) {
	switch {
	case record.Chunk != nil:
		return record.Chunk.FileKey, true
	case record.Hole != nil:
		return record.Hole.FileKey, true
	}
	return pack.FileKey{}, false
}

// bounded returns a record with a time that is not far from now.
func bounded(record pack.Record, now int64) pack.Record {
	near := func(at int64) int64 { return max(retain.Bound(at, now), 0) }
	switch {
	case record.Chunk != nil:
		chunk := *record.Chunk
		chunk.At = near(chunk.At)
		record.Chunk = &chunk
	case record.Hole != nil:
		hole := *record.Hole
		hole.At = near(hole.At)
		record.Hole = &hole
	}
	return record
}

// write appends bytes to the open segment. Where that fails, nobody knows what the volume has behind the bytes that were durable
// before, so nothing is appended to that segment again.
func (c *cluster) write(data []byte, now int64) error {
	if c.open == nil {
		name := c.key.fileName(fmt.Sprintf("%013d-%d-%d", now, c.archive.settings.Replica, c.archive.number()))
		file, err := c.archive.volume.Create(name)
		if err != nil {
			return fmt.Errorf("create segment %s: %w", name, err)
		}
		c.open = &segment{name: name, file: file, began: now}
		data = append(pack.AppendSegment(nil), data...)
	}
	_, err := c.open.file.Write(data)
	if err == nil {
		err = c.open.file.Sync()
	}
	if err != nil {
		name := c.open.name
		c.seal()
		return fmt.Errorf("write to segment %s: %w", name, err)
	}
	c.open.size += int64(len(data))
	c.archive.hold(c.key.Namespace, int64(len(data)))
	return nil
}

// seal ends the open segment. One without a durable record is removed.
func (c *cluster) seal() {
	one := c.open
	c.open = nil
	_ = one.file.Close() // what is durable was synced
	if one.size == 0 {
		_ = c.archive.volume.Remove(one.name) // if it stays, the next run removes it
		return
	}
	c.sealed = append(c.sealed, one)
}

// Pack writes the packs that are due, and returns what failed. What fails stays on the spool for the next call. Calls of it come one
// after another.
func (a *Archive) Pack(ctx context.Context) error { return a.packFrom(ctx, a.settings.PackAfter) }

// PackAll writes packs of all that is on the spool, as before an end that is meant to last.
func (a *Archive) PackAll(ctx context.Context) error { return a.packFrom(ctx, 0) }

// packFrom writes packs of segments that are full, or were begun so many milliseconds ago.
func (a *Archive) packFrom(ctx context.Context, after int64) error {
	a.dropRates()
	var mutex sync.Mutex
	var errs []error
	var packers errgroup.Group
	packers.SetLimit(max(a.settings.Packers, 1))
	for _, c := range a.all() {
		c.mutex.Lock()
		if c.open != nil && a.settings.Now()-c.open.began >= after {
			c.seal()
		}
		due := c.sealed
		c.mutex.Unlock()
		if len(due) == 0 {
			continue
		}
		packers.Go(func() error {
			for _, one := range due {
				if err := c.pack(ctx, one); err != nil {
					mutex.Lock()
					errs = append(errs, err)
					mutex.Unlock()
					break // the store keeps the order of a cluster's packs
				}
			}
			return nil
		})
	}
	_ = packers.Wait() // they return no error
	return errors.Join(errs...)
}

// pack writes the pack of a sealed segment, and removes the segment once the store has it. The same segment always becomes the
// same pack, so it may happen twice.
func (c *cluster) pack(ctx context.Context, one *segment) error {
	c.mutex.Lock()
	err := c.load()
	c.mutex.Unlock()
	if err != nil {
		return err
	}
	data, ended, err := c.build(one)
	if err != nil {
		return err
	}
	if err := c.archive.store.Write(ctx, c.key.Prefix()+one.object(), data); err != nil {
		return fmt.Errorf("write pack %s of cluster %s: %w", one.object(), c.key.Cluster, err)
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	// A pod that has sent its last list sends no more.
	for key := range c.ends {
		if ended[key.Pod] {
			delete(c.ends, key)
		}
	}
	if err := c.keepEnds(); err != nil {
		return err
	}
	if err := c.archive.volume.Remove(one.name); err != nil {
		return fmt.Errorf("remove segment %s: %w", one.name, err)
	}
	c.sealed = c.sealed[1:]
	c.archive.hold(c.key.Namespace, -one.size)
	return nil
}

// keepEnds writes up to where files were taken.
func (c *cluster) keepEnds() error {
	data := pack.AppendSegment(nil)
	for _, row := range c.ends {
		var err error
		if data, err = pack.AppendRecord(data, pack.Record{Cluster: c.key.Cluster, Hole: &row}); err != nil {
			return err
		}
	}
	if err := c.archive.volume.Replace(c.key.fileName(endsName), data); err != nil {
		return fmt.Errorf("keep the ends of files of cluster %s: %w", c.key.Cluster, err)
	}
	return nil
}

// build makes the pack of a segment, and returns the pods whose last list it has.
func (c *cluster) build(one *segment) (data []byte, ended map[pack.UID]bool, err error) {
	_, rest, _ := parseName(one.name)
	at, _ := made(rest)
	c.archive.encoding.Lock()
	defer c.archive.encoding.Unlock()
	w := c.archive.encoder.NewWriter(c.key.Cluster, at)
	ended = map[pack.UID]bool{}
	err = c.read(one, func(record pack.Record) error {
		switch {
		case record.Chunk != nil:
			return w.Add(record.Chunk.File, record.Chunk.Offset, record.Chunk.At, record.Chunk.Data)
		case record.Hole != nil:
			hole := record.Hole
			return w.AddGap(hole.File, pack.Gap{Offset: hole.Offset, Length: hole.Length, Reason: hole.Reason, At: hole.At})
		default:
			isFinal := record.Part.Number+1 == record.Part.Of
			ended[record.Part.Pod] = ended[record.Part.Pod] || isFinal
			files, sizes := c.listed(record.Part)
			return w.AddList(record.Part.Pod, isFinal, files, sizes)
		}
	})
	if err == nil {
		data, err = w.Finish()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("pack segment %s: %w", one.name, err)
	}
	return data, ended, nil
}

// listed returns the files of a part of a list. A file that this replica has not seen has no name here.
func (c *cluster) listed(part *pack.Part) (files []pack.File, sizes []pack.Size) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, one := range part.Files {
		key := pack.FileKey{Pod: part.Pod, ID: one.ID, Generation: one.Generation}
		file := pack.File{FileKey: key}
		if row, is := c.ends[key]; is {
			file = row.File
		}
		files, sizes = append(files, file), append(sizes, pack.Size{Size: one.Size, Acked: one.Acked})
	}
	return files, sizes
}
