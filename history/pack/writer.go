package pack

import (
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

const (
	magic        = "HLIOPK01"
	trailerMagic = "HLIOIX01"
	trailerSize  = 32
	window       = 256 << 10
)

// Encoder makes packs. It holds what compression needs, so one serves for many of them, one after another.
type Encoder struct {
	zstd *zstd.Encoder
}

// NewEncoder returns an encoder.
func NewEncoder() (*Encoder, error) {
	made, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("make an encoder of zstd: %w", err)
	}
	return &Encoder{made}, nil
}

// Writer collects the bytes of one pack. Bytes of a file that follow each other go into one run, up to its bound.
type Writer struct {
	encoder *Encoder
	index   Index
	files   map[FileKey]int
	pending []pending
	object  []byte
	waiting int
}

// pending is bytes of a file that wait for their frame.
type pending struct {
	offset, at int64
	data       []byte
}

// NewWriter returns a writer for a pack of a cluster that is made at a time.
func (e *Encoder) NewWriter(cluster UID, at int64) *Writer {
	return &Writer{encoder: e, index: Index{Cluster: cluster, At: at}, files: map[FileKey]int{}, object: []byte(magic)}
}

// Size returns how many bytes the frames take, those that wait for a frame before compression.
func (w *Writer) Size() int { return len(w.object) + w.waiting }

// file returns the place of a file, whose path becomes the one given. Paths that no reader accepts are refused.
func (w *Writer) file(file File) (int, error) {
	if err := CheckPath(file.Path); err != nil {
		return 0, err
	}
	return w.place(file)
}

// place does so for a file whose path may be empty.
func (w *Writer) place(file File) (int, error) {
	place, is := w.files[file.FileKey]
	switch {
	case is && file.Path == "":
	case is:
		w.index.Files[place].Path = file.Path
	case len(w.index.Files) == MaxFiles:
		return 0, fmt.Errorf("a pack holds %d files at most: %w", MaxFiles, ErrInvalid)
	default:
		place = len(w.index.Files)
		w.files[file.FileKey] = place
		w.index.Files, w.pending = append(w.index.Files, file), append(w.pending, pending{})
	}
	return place, nil
}

// Add appends bytes of a file that were read at a time.
func (w *Writer) Add(file File, offset, at int64, data []byte) error {
	if offset < 0 || offset > MaxOffset || at < 0 || at > MaxOffset || len(data) > MaxRun {
		return fmt.Errorf("add %d bytes at %d to a pack: %w", len(data), offset, ErrInvalid)
	}
	if w.Size()+len(data) > MaxObject/2 {
		return fmt.Errorf("a pack holds %d bytes at most: %w", MaxObject/2, ErrInvalid)
	}
	place, err := w.file(file)
	if err != nil {
		return err
	}
	waits := &w.pending[place]
	if len(waits.data) > 0 && (waits.offset+int64(len(waits.data)) != offset || len(waits.data) == MaxRun) {
		w.flush(place)
	}
	for len(data) > 0 {
		if len(waits.data) == 0 {
			waits.offset = offset
		}
		taken := min(len(data), MaxRun-len(waits.data))
		waits.data, waits.at = append(waits.data, data[:taken]...), max(waits.at, at)
		w.waiting += taken
		data, offset = data[taken:], offset+int64(taken)
		if len(waits.data) == MaxRun {
			w.flush(place)
		}
	}
	return nil
}

// flush writes the frame of what waits of a file.
func (w *Writer) flush(place int) {
	waits := &w.pending[place]
	begin := len(w.object)
	w.object = w.encoder.zstd.EncodeAll(waits.data, w.object)
	w.index.Runs = append(w.index.Runs, Run{
		File: place, Offset: waits.offset, Length: int64(len(waits.data)), At: waits.at,
		Place: int64(begin), Size: len(w.object) - begin, Sum: sum(waits.data),
	})
	w.waiting -= len(waits.data)
	waits.data, waits.at = waits.data[:0], 0
}

// AddGap notes a range that nobody has. A length of 0 reaches to the file's end.
func (w *Writer) AddGap(file File, gap Gap) error {
	place, err := w.file(file)
	if err != nil {
		return err
	}
	gap.File = place
	w.index.Gaps = append(w.index.Gaps, gap)
	return nil
}

// AddList notes files of a pod that ended, with a size for each. Where it is final, the pod has no others. A file whose name is not
// known has an empty path, which no reader prefers to another one.
func (w *Writer) AddList(pod UID, isFinal bool, files []File, sizes []Size) error {
	list := List{Pod: pod, IsFinal: isFinal}
	for i, file := range files {
		place, err := w.place(file)
		if err != nil {
			return err
		}
		list.Files = append(list.Files, Size{File: place, Size: sizes[i].Size, Acked: sizes[i].Acked})
	}
	w.index.Lists = append(w.index.Lists, list)
	return nil
}

// AddUse notes a line about a minute.
func (w *Writer) AddUse(use Use) { w.index.Uses = append(w.index.Uses, use) }

// AddRun notes a run of another object, for a manifest.
func (w *Writer) AddRun(file File, object string, run Run) error {
	place, err := w.file(file)
	if err != nil {
		return err
	}
	if last := len(w.index.Objects); last == 0 || w.index.Objects[last-1] != object {
		w.index.Objects = append(w.index.Objects, object)
	}
	run.File, run.Object = place, len(w.index.Objects)
	w.index.Runs = append(w.index.Runs, run)
	return nil
}

// AddObject notes another object, for a manifest that has no run of it.
func (w *Writer) AddObject(name string) { w.index.Objects = append(w.index.Objects, name) }

// Finish returns the pack. The writer must not be used again.
func (w *Writer) Finish() ([]byte, error) {
	for place := range w.pending {
		if len(w.pending[place].data) > 0 {
			w.flush(place)
		}
	}
	raw, err := w.index.encode()
	if err != nil {
		return nil, err
	}
	begin := len(w.object)
	object := w.encoder.zstd.EncodeAll(raw, w.object)
	size := len(object) - begin
	if len(object)+trailerSize > MaxObject {
		return nil, fmt.Errorf("a pack of %d bytes, at most %d fit: %w", len(object)+trailerSize, MaxObject, ErrInvalid)
	}
	trailer := binary.BigEndian.AppendUint64(nil, uint64(begin))
	trailer = binary.BigEndian.AppendUint32(trailer, uint32(size))
	trailer = binary.BigEndian.AppendUint32(trailer, uint32(len(raw)))
	trailer = binary.BigEndian.AppendUint32(trailer, sum(object[begin:]))
	trailer = binary.BigEndian.AppendUint32(trailer, sum(trailer))
	return append(append(object, trailer...), trailerMagic...), nil
}
