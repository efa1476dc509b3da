package pack

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Decoder reads packs. One serves for many of them, one after another.
type Decoder struct {
	zstd *zstd.Decoder
}

// NewDecoder returns a decoder.
func NewDecoder() (*Decoder, error) {
	// A frame never gets more memory than the bytes that it must give.
	made, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(MaxIndex))
	if err != nil {
		return nil, fmt.Errorf("make a decoder of zstd: %w", err)
	}
	return &Decoder{made}, nil
}

// tail is how many bytes at the end of an object are read first. Most indexes fit.
const tail = 64 << 10

// trailer is what the end of a pack says of its index.
type trailer struct {
	begin, length, raw int64
	sum                uint32
}

// readTrailer reads the trailer at the end of an object of a size.
func readTrailer(end []byte, size int64) (trailer, error) {
	last := end[len(end)-trailerSize:]
	if string(last[24:]) != trailerMagic || binary.BigEndian.Uint32(last[20:]) != sum(last[:20]) {
		return trailer{}, fmt.Errorf("trailer of a pack: %w", ErrInvalid)
	}
	begin, length := binary.BigEndian.Uint64(last), int64(binary.BigEndian.Uint32(last[8:]))
	if begin < uint64(len(magic)) || begin > uint64(size) || int64(begin)+length != size-trailerSize || length > MaxIndex+MaxIndex/64 {
		return trailer{}, fmt.Errorf("an index of %d bytes at %d of %d: %w", length, begin, size, ErrInvalid)
	}
	return trailer{int64(begin), length, int64(binary.BigEndian.Uint32(last[12:])), binary.BigEndian.Uint32(last[16:])}, nil
}

// Open reads the index of an object of a size, by one read, or two where the index is long.
func (d *Decoder) Open(object io.ReaderAt, size int64) (*Index, error) {
	if size < int64(len(magic))+trailerSize || size > MaxObject {
		return nil, fmt.Errorf("open a pack of %d bytes: %w", size, ErrInvalid)
	}
	end := make([]byte, min(size, tail))
	if err := readAt(object, end, size-int64(len(end))); err != nil {
		return nil, fmt.Errorf("read the end of a pack: %w", err)
	}
	says, err := readTrailer(end, size)
	if err != nil {
		return nil, err
	}
	packed, err := indexBytes(object, end, says.begin, size)
	if err != nil {
		return nil, err
	}
	if sum(packed) != says.sum {
		return nil, fmt.Errorf("sum of an index: %w", ErrInvalid)
	}
	raw, err := d.decode(packed, says.raw, MaxIndex)
	if err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	index, err := decodeIndex(raw)
	if err != nil {
		return nil, err
	}
	for _, run := range index.Runs {
		if run.Object == 0 && (run.Place < int64(len(magic)) || run.Place+int64(run.Size) > says.begin) {
			return nil, fmt.Errorf("a frame of %d bytes at %d, where frames end at %d: %w", run.Size, run.Place, says.begin, ErrInvalid)
		}
	}
	return index, nil
}

// indexBytes returns the index of an object whose last bytes were read.
func indexBytes(object io.ReaderAt, end []byte, begin, size int64) ([]byte, error) {
	if first := size - int64(len(end)); begin >= first {
		return end[begin-first : len(end)-trailerSize], nil
	}
	packed := make([]byte, size-trailerSize-begin)
	if err := readAt(object, packed, begin); err != nil {
		return nil, fmt.Errorf("read an index: %w", err)
	}
	return packed, nil
}

// Read returns the bytes of a run of an index that Open returned, from the object that has it.
func (d *Decoder) Read(object io.ReaderAt, run Run) ([]byte, error) {
	if run.Size <= 0 || run.Size > MaxFrame {
		return nil, fmt.Errorf("a frame of %d bytes: %w", run.Size, ErrInvalid)
	}
	packed := make([]byte, run.Size)
	if err := readAt(object, packed, run.Place); err != nil {
		return nil, fmt.Errorf("read a frame: %w", err)
	}
	raw, err := d.decode(packed, run.Length, MaxRun)
	if err != nil {
		return nil, fmt.Errorf("frame: %w", err)
	}
	if sum(raw) != run.Sum {
		return nil, fmt.Errorf("sum of a run: %w", ErrInvalid)
	}
	return raw, nil
}

// decode returns exactly so many bytes of a frame, which are at most so many.
func (d *Decoder) decode(packed []byte, length, most int64) ([]byte, error) {
	if length <= 0 || length > most {
		return nil, fmt.Errorf("%d bytes, at most %d fit: %w", length, most, ErrInvalid)
	}
	raw, err := d.zstd.DecodeAll(packed, make([]byte, 0, length))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if int64(len(raw)) != length {
		return nil, fmt.Errorf("%d bytes in place of %d: %w", len(raw), length, ErrInvalid)
	}
	return raw, nil
}

// readAt fills a buffer.
func readAt(object io.ReaderAt, buffer []byte, offset int64) error {
	n, err := object.ReadAt(buffer, offset)
	if n == len(buffer) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}
