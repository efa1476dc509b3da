package pack

import (
	"encoding/binary"
	"fmt"
)

// A segment is a file of an archiver's volume: a magic, and records one after another.
const (
	segmentMagic = "HLIOSP01"
	listedSize   = 36        // bytes of a file in a list
	recordHead   = 8         // length and sum of a record
	maxRecord    = 257 << 10 // bytes of a record's body
)

// MaxListed is how many files one record of a list has. Longer lists take several parts.
const MaxListed = 4096

// Record is what one record of a segment holds: exactly one of the three.
type Record struct {
	Cluster UID
	Chunk   *Chunk
	Hole    *Hole
	Part    *Part
}

// Chunk is bytes of a file at an offset, as a collector sends them.
type Chunk struct {
	File
	Offset, At int64
	Data       []byte
}

// Hole is a gap with its file.
type Hole struct {
	File
	Offset, Length, At int64
	Reason             Reason
}

// Part is a part of a pod's last list: the number of the part, of how many, and files with their sizes. Of is 0 for files that
// ended while the pod goes on.
type Part struct {
	Pod        UID
	Number, Of int
	Files      []Listed
}

// Listed is a file of a list with its size, and up to where it was acknowledged.
type Listed struct {
	ID          FileID
	Generation  uint32
	Size, Acked int64
}

// The types of records.
const (
	recordChunk = iota + 1
	recordHole
	recordPart
)

// AppendSegment begins a segment.
func AppendSegment(b []byte) []byte { return append(b, segmentMagic...) }

// IsSegment reports whether bytes are a segment, of this version or another one. Those whose first write was cut are none.
func IsSegment(b []byte) bool {
	const name = len(segmentMagic) - 2 // without the version
	return len(b) >= len(segmentMagic) && string(b[:name]) == segmentMagic[:name] && b[name] >= '0' && b[name] <= '9' && b[name+1] > 0
}

// AppendRecord appends a record to a segment. One that no reader would accept is refused.
func AppendRecord(b []byte, record Record) ([]byte, error) {
	begin := len(b)
	b = append(b, make([]byte, recordHead)...)
	switch {
	case record.Chunk != nil:
		b = appendHead(append(b, recordChunk), record.Cluster, record.Chunk.File, record.Chunk.At, record.Chunk.Offset)
		b = append(b, record.Chunk.Data...)
	case record.Hole != nil:
		b = appendHead(append(b, recordHole), record.Cluster, record.Hole.File, record.Hole.At, record.Hole.Offset)
		b = append(binary.BigEndian.AppendUint64(b, uint64(record.Hole.Length)), byte(record.Hole.Reason))
	case record.Part != nil:
		b = append(append(append(b, recordPart), record.Cluster[:]...), record.Part.Pod[:]...)
		b = binary.BigEndian.AppendUint16(b, uint16(record.Part.Number))
		b = binary.BigEndian.AppendUint16(b, uint16(record.Part.Of))
		b = binary.BigEndian.AppendUint32(b, uint32(len(record.Part.Files)))
		for _, file := range record.Part.Files {
			b = binary.BigEndian.AppendUint32(append(b, file.ID[:]...), file.Generation)
			b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, uint64(file.Size)), uint64(file.Acked))
		}
	}
	body := b[begin+recordHead:]
	// The reader is the one place that knows the bounds.
	if _, err := decodeRecord(body); err != nil {
		return b[:begin], fmt.Errorf("append a record: %w", err)
	}
	binary.BigEndian.PutUint32(b[begin:], uint32(len(body)))
	binary.BigEndian.PutUint32(b[begin+4:], sum(body))
	return b, nil
}

// appendHead appends what the records of chunks and holes begin with.
func appendHead(b []byte, cluster UID, file File, at, offset int64) []byte {
	b = append(append(append(b, cluster[:]...), file.Pod[:]...), file.ID[:]...)
	b = append(binary.BigEndian.AppendUint32(b, file.Generation), byte(file.Kind))
	b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, uint64(at)), uint64(offset))
	return append(binary.BigEndian.AppendUint16(b, uint16(len(file.Path))), file.Path...)
}

// ReadSegment calls each with the records of a segment, and returns how many bytes of it are whole. What follows them was written
// while the archiver ended, and never acknowledged: cut it off before the segment is written again. Data of a chunk stays part of
// the segment. An error of each ends the reading.
func ReadSegment(segment []byte, each func(Record) error) (int, error) {
	if len(segment) < len(segmentMagic) || string(segment[:len(segmentMagic)]) != segmentMagic {
		return 0, fmt.Errorf("begin of a segment: %w", ErrInvalid)
	}
	read := len(segmentMagic)
	for {
		rest := segment[read:]
		if len(rest) < recordHead {
			return read, nil
		}
		length := int(binary.BigEndian.Uint32(rest))
		if length == 0 || length > maxRecord || length > len(rest)-recordHead {
			return read, nil
		}
		body := rest[recordHead : recordHead+length]
		if binary.BigEndian.Uint32(rest[4:]) != sum(body) {
			return read, nil
		}
		record, err := decodeRecord(body)
		if err != nil {
			return read, fmt.Errorf("record at %d: %w", read, err)
		}
		if err := each(record); err != nil {
			return read, err
		}
		read += recordHead + length
	}
}

// decodeRecord reads the body of a record.
func decodeRecord(body []byte) (Record, error) {
	if len(body) == 0 || len(body) > maxRecord {
		return Record{}, fmt.Errorf("a record of %d bytes: %w", len(body), ErrInvalid)
	}
	c := &cursor{rest: body[1:]}
	record := Record{Cluster: c.uid()}
	switch body[0] {
	case recordChunk:
		var chunk Chunk
		chunk.File, chunk.At, chunk.Offset = c.head()
		chunk.Data = c.rest
		if len(chunk.Data) == 0 || len(chunk.Data) > MaxRun {
			c.fail("a chunk of %d bytes", len(chunk.Data))
		}
		record.Chunk, c.rest = &chunk, nil
	case recordHole:
		var hole Hole
		hole.File, hole.At, hole.Offset = c.head()
		hole.Length = c.fixed("length of a gap")
		if hole.Reason = Reason(c.byte()); hole.Reason == 0 || hole.Reason >= reasons {
			c.fail("reason %d", hole.Reason)
		}
		record.Hole = &hole
	case recordPart:
		record.Part = c.part()
	default:
		c.fail("a record of type %d", body[0])
	}
	if c.err == nil && len(c.rest) > 0 {
		c.fail("%d bytes follow a record of type %d", len(c.rest), body[0])
	}
	return record, c.err
}

func (c *cursor) byte() byte {
	taken := c.bytes(1)
	return taken[0]
}

func (c *cursor) uint16() int { return int(binary.BigEndian.Uint16(c.bytes(2))) }

// fixed reads a number of eight bytes of at most MaxOffset.
func (c *cursor) fixed(what string) int64 {
	value := binary.BigEndian.Uint64(c.bytes(8))
	if value > MaxOffset {
		c.fail("%s is no number up to %d", what, int64(MaxOffset))
		return 0
	}
	return int64(value)
}

// head reads what the records of chunks and holes begin with.
func (c *cursor) head() (file File, at, offset int64) {
	file.Pod, file.ID = c.uid(), c.uid()
	file.Generation = c.uint32()
	if file.Kind = Kind(c.byte()); file.Kind >= kinds {
		c.fail("kind %d", file.Kind)
	}
	at, offset = c.fixed("time"), c.fixed("offset")
	file.Path = string(c.bytes(c.uint16()))
	if err := CheckPath(file.Path); c.err == nil && err != nil {
		c.err = err
	}
	return file, at, offset
}

func (c *cursor) part() *Part {
	part := &Part{Pod: c.uid(), Number: c.uint16(), Of: c.uint16()}
	count := int(c.uint32())
	if part.Number >= max(1, part.Of) || count > MaxListed || count > len(c.rest)/listedSize {
		c.fail("part %d of %d of a list, with %d files", part.Number, part.Of, count)
		return part
	}
	for range count {
		part.Files = append(part.Files, Listed{
			ID: c.uid(), Generation: c.uint32(), Size: c.fixed("size of a file"), Acked: c.fixed("acknowledged offset"),
		})
	}
	return part
}
