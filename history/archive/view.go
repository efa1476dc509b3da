package archive

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/heliostat-dev/heliostat/history/index"
	"github.com/heliostat-dev/heliostat/history/pack"
)

// View is what one replica has of an archive at a time: the store's packs and its own spool, as one.
type View struct {
	*Stored

	cluster *cluster
	decoder *pack.Decoder
	// chunks are those of the segment that was read last.
	segment string
	chunks  []*pack.Chunk
	spooled map[string]*segment
}

// Piece is bytes of a file, or a range that is missing: then it has a reason, and a length of 0 where its end is not known.
type Piece struct {
	Offset, Length int64
	Reason         pack.Reason
	Data           []byte
}

// View returns what there is of an archive.
func (a *Archive) View(ctx context.Context, key Key) (*View, error) {
	decoder, err := pack.NewDecoder()
	if err != nil {
		return nil, err
	}
	v := &View{cluster: a.known(key), decoder: decoder}
	return v, v.refresh(ctx)
}

// Fork returns the same view for another reader: one view is read by one at a time.
func (v *View) Fork() (*View, error) {
	decoder, err := pack.NewDecoder()
	if err != nil {
		return nil, err
	}
	return &View{Stored: v.Stored, cluster: v.cluster, decoder: decoder, spooled: v.spooled}, nil
}

// refresh reads the archive again. The spool comes first: what leaves it meanwhile is in the store by then.
func (v *View) refresh(ctx context.Context) error {
	var err error
	for range attempts {
		v.Stored = &Stored{
			Archive: index.New(v.cluster.key.Cluster), Key: v.cluster.key, store: v.cluster.archive.store, decoder: v.decoder,
			indexes: v.cluster.archive.indexes,
		}
		if err = v.refreshSpool(); err == nil {
			err = v.Stored.read(ctx)
		}
		if !errors.Is(err, errMoved) {
			break
		}
	}
	if err == nil && v.End != nil && v.End.State == index.Deleted {
		v.Archive, v.spooled = index.New(v.cluster.key.Cluster), map[string]*segment{}
	}
	return err
}

func (v *View) refreshSpool() error {
	v.spooled, v.segment, v.chunks = map[string]*segment{}, "", nil
	v.cluster.mutex.Lock()
	var all []segment
	for _, one := range v.cluster.segments() {
		all = append(all, *one)
	}
	v.cluster.mutex.Unlock()
	for i := range all {
		one := &all[i]
		if one.size == 0 {
			continue
		}
		name := "s" + strings.TrimPrefix(one.object(), "p")
		x, err := v.spoolIndex(one)
		if err != nil {
			return err
		}
		if err := v.Add(name, x); err != nil {
			return err
		}
		v.spooled[name] = one
	}
	return nil
}

// spoolIndex returns the index of a segment. The place of a run is the number of its chunk.
func (v *View) spoolIndex(one *segment) (*pack.Index, error) {
	key := keyOf(one.name, one.size)
	if x := v.cluster.archive.indexes.get(key); x != nil {
		return x, nil
	}
	x, err := v.readSpoolIndex(one)
	if err == nil {
		v.cluster.archive.indexes.put(key, x)
	}
	return x, err
}

func (v *View) readSpoolIndex(one *segment) (*pack.Index, error) {
	_, rest, _ := parseName(one.name)
	at, _ := made(rest)
	x, files, chunks := &pack.Index{Cluster: v.cluster.key.Cluster, At: at}, map[pack.FileKey]int{}, 0
	place := func(file pack.File) int {
		number, is := files[file.FileKey]
		if !is {
			number = len(x.Files)
			files[file.FileKey] = number
			x.Files = append(x.Files, file)
		} else if file.Path != "" {
			x.Files[number] = file
		}
		return number
	}
	err := v.read(one, func(record pack.Record) error {
		switch {
		case record.Chunk != nil:
			chunk := record.Chunk
			x.Runs = append(x.Runs, pack.Run{
				File: place(chunk.File), Offset: chunk.Offset, Length: int64(len(chunk.Data)), At: chunk.At, Place: int64(chunks),
			})
			chunks++
		case record.Hole != nil:
			hole := record.Hole
			x.Gaps = append(x.Gaps, pack.Gap{File: place(hole.File), Offset: hole.Offset, Length: hole.Length, Reason: hole.Reason, At: hole.At})
		default:
			list := pack.List{Pod: record.Part.Pod, IsFinal: record.Part.Number+1 == record.Part.Of}
			named, sizes := v.cluster.listed(record.Part)
			for i, size := range sizes {
				size.File = place(named[i])
				list.Files = append(list.Files, size)
			}
			x.Lists = append(x.Lists, list)
		}
		return nil
	})
	return x, err
}

// read reads a segment, which may have been packed since.
func (v *View) read(one *segment, each func(pack.Record) error) error {
	err := v.cluster.read(one, each)
	if err == nil {
		return nil
	}
	v.cluster.mutex.Lock()
	defer v.cluster.mutex.Unlock()
	for _, other := range v.cluster.segments() {
		if other.name == one.name {
			return err
		}
	}
	return fmt.Errorf("%w: %w", errMoved, err)
}

// Read calls each with the pieces of a file from an offset on, in their order, up to its end or to bytes that are on their way. How
// its pod ended decides what counts as missing. An error of each ends the reading.
func (v *View) Read(ctx context.Context, file pack.FileKey, ending index.Ending, offset int64, each func(Piece) error) error {
	layout := v.Layout(file, ending)
	for moved := 0; ; {
		part, is := index.At(layout, offset)
		if !is {
			return nil
		}
		piece := Piece{Offset: offset, Reason: part.Reason}
		if part.Length > 0 {
			piece.Length = part.Offset + part.Length - offset
		}
		if part.Reason == 0 {
			data, err := v.run(ctx, part)
			if (errors.Is(err, errMoved) || v.store.IsNotFound(err)) && moved < attempts {
				moved++ // to a pack, or to a final object
				if err := v.refresh(ctx); err != nil {
					return err
				}
				layout = v.Layout(file, ending)
				continue
			}
			switch {
			case err == nil:
				begin := part.Skip + offset - part.Offset
				piece.Data = data[begin : begin+piece.Length]
			case v.store.IsNotFound(err) || errors.Is(err, pack.ErrInvalid):
				piece.Reason = pack.ArchiverAway // the store lost what it had
			default:
				return err
			}
		}
		if err := each(piece); err != nil || piece.Length == 0 {
			return err
		}
		offset += piece.Length
	}
}

// run returns the bytes of the run that a range is in.
func (v *View) run(ctx context.Context, part index.Range) ([]byte, error) {
	one, isSpooled := v.spooled[part.Object]
	if !isSpooled {
		return v.decoder.Read(v.object(ctx, part.Object), part.Run)
	}
	if v.segment != part.Object {
		v.segment, v.chunks = "", nil
		if err := v.read(one, func(record pack.Record) error {
			if record.Chunk != nil {
				v.chunks = append(v.chunks, record.Chunk)
			}
			return nil
		}); err != nil {
			return nil, err
		}
		v.segment = part.Object
	}
	return v.chunks[part.Run.Place].Data, nil
}
