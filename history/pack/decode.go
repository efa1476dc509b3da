package pack

import (
	"encoding/binary"
	"fmt"
)

// cursor reads fields, and keeps the first error. After one, each field is zero.
type cursor struct {
	rest []byte
	err  error
}

func (c *cursor) fail(format string, values ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%s: %w", fmt.Sprintf(format, values...), ErrInvalid)
	}
	c.rest = nil
}

// number reads a varint of at most max.
func (c *cursor) number(what string, most int64) int64 {
	value, n := binary.Uvarint(c.rest)
	if n <= 0 || value > uint64(most) {
		c.fail("%s is no number up to %d", what, most)
		return 0
	}
	c.rest = c.rest[n:]
	return int64(value)
}

// place reads a place in a list of so many entries.
func (c *cursor) place(what string, entries int) int {
	if entries == 0 {
		c.fail("%s names an entry of an empty list", what)
		return 0
	}
	return int(c.number(what, int64(entries)-1))
}

// entries reads the number of entries that follow. Each takes at least so many bytes, so no number leads to more memory than the
// bytes that are there.
func (c *cursor) entries(what string, most, least int) int {
	count := int(c.number("number of "+what, int64(most)))
	if count > len(c.rest)/least {
		c.fail("%d %s do not fit into %d bytes", count, what, len(c.rest))
		return 0
	}
	return count
}

// bytes returns the next bytes, which stay those of the input.
func (c *cursor) bytes(n int) []byte {
	if n > len(c.rest) {
		c.fail("%d bytes are missing", n-len(c.rest))
		return make([]byte, 0, 16)[:min(n, 16)]
	}
	taken := c.rest[:n:n]
	c.rest = c.rest[n:]
	return taken
}

func (c *cursor) uid() (uid [16]byte) {
	copy(uid[:], c.bytes(16))
	return uid
}

func (c *cursor) uint32() uint32 { return binary.BigEndian.Uint32(c.bytes(4)) }

// decoding is an index while it is read: sections name entries of those before them.
type decoding struct {
	Index
	pods []UID
}

// decodeIndex reads an index, and judges each bound and each place that an entry names.
func decodeIndex(raw []byte) (*Index, error) {
	var x decoding
	all, last := &cursor{rest: raw}, int64(0)
	for len(all.rest) > 0 {
		section := all.number("type of a section", MaxEntries)
		if all.err == nil && section <= last {
			all.fail("section %d follows section %d", section, last)
		}
		body := &cursor{rest: all.bytes(int(all.number("length of a section", MaxIndex))), err: all.err}
		if last == 0 && section != sectionHeader {
			body.fail("section %d comes before the header", section)
		}
		last = section
		x.section(section, body)
		if body.err == nil && len(body.rest) > 0 && section <= sectionUse {
			body.fail("%d bytes follow the entries of section %d", len(body.rest), section)
		}
		if body.err != nil {
			return nil, body.err
		}
	}
	if last == 0 {
		return nil, fmt.Errorf("index without a header: %w", ErrInvalid)
	}
	return &x.Index, x.judge()
}

// section reads one section. One that this reader does not know is refused, or skipped where it is optional.
func (x *decoding) section(section int64, c *cursor) {
	switch section {
	case sectionHeader:
		x.Cluster, x.At = c.uid(), c.number("time", MaxOffset)
	case sectionPods:
		for range c.entries("pods", MaxFiles, 16) {
			x.pods = append(x.pods, c.uid())
		}
	case sectionFiles:
		x.files(c)
	case sectionRuns:
		x.runs(c)
	case sectionGaps:
		x.gaps(c)
	case sectionLists:
		x.lists(c)
	case sectionObjects:
		x.objects(c)
	case sectionUse:
		for range c.entries("lines of use", MaxEntries, 2) {
			minute := c.number("minute", MaxOffset)
			x.Uses = append(x.Uses, Use{minute, c.bytes(int(c.number("length of a line", MaxLine)))})
		}
	default:
		if section < optional {
			c.fail("section %d is of a later version", section)
		}
	}
}

func (x *decoding) files(c *cursor) {
	for range c.entries("files", MaxFiles, 20) {
		var file File
		if pod := c.place("pod of a file", len(x.pods)); c.err == nil {
			file.Pod = x.pods[pod]
		}
		file.ID = c.uid()
		file.Generation = uint32(c.number("generation", 1<<32-1))
		file.Kind = Kind(c.number("kind", int64(kinds)-1))
		file.Path = string(c.bytes(int(c.number("length of a path", MaxPath))))
		if c.err != nil {
			return
		}
		if err := CheckPath(file.Path); err != nil && file.Path != "" { // a list may have files without a name
			c.err = err
			return
		}
		x.Files = append(x.Files, file)
	}
}

func (x *decoding) runs(c *cursor) {
	for range c.entries("runs", MaxEntries, 11) {
		run := Run{File: c.place("file of a run", len(x.Files)), Offset: c.number("offset", MaxOffset), Length: c.number("length of a run", MaxRun)}
		run.At = c.number("time", MaxOffset)
		run.Object, run.Place = int(c.number("object", MaxObjects)), c.number("place of a frame", MaxObject)
		run.Size, run.Sum = int(c.number("size of a frame", MaxFrame)), c.uint32()
		if c.err == nil && (run.Length == 0 || run.Size == 0) {
			c.fail("a run at %d is empty", run.Offset)
		}
		if c.err == nil && x.Files[run.File].Path == "" {
			c.fail("a run at %d has a file without a path", run.Offset)
		}
		if c.err != nil {
			return
		}
		x.Runs = append(x.Runs, run)
	}
}

func (x *decoding) gaps(c *cursor) {
	for range c.entries("gaps", MaxEntries, 5) {
		gap := Gap{File: c.place("file of a gap", len(x.Files)), Offset: c.number("offset", MaxOffset), Length: c.number("length of a gap", MaxOffset)}
		gap.Reason = Reason(c.number("reason", int64(reasons)-1))
		gap.At = c.number("time", MaxOffset)
		if c.err == nil && gap.Reason == 0 {
			c.fail("a gap at %d has no reason", gap.Offset)
		}
		if c.err != nil {
			return
		}
		x.Gaps = append(x.Gaps, gap)
	}
}

func (x *decoding) lists(c *cursor) {
	left := MaxEntries
	for range c.entries("lists", MaxFiles, 3) {
		var list List
		if pod := c.place("pod of a list", len(x.pods)); c.err == nil {
			list.Pod = x.pods[pod]
		}
		list.IsFinal = c.number("final", 1) == 1
		count := c.entries("files of a list", left, 3)
		left -= count
		for range count {
			list.Files = append(list.Files, Size{
				File: c.place("file of a list", len(x.Files)), Size: c.number("size of a file", MaxOffset), Acked: c.number("acknowledged offset", MaxOffset),
			})
		}
		if c.err != nil {
			return
		}
		x.Lists = append(x.Lists, list)
	}
}

// objects reads the names of other objects, and judges those of the runs, which stand before them.
func (x *decoding) objects(c *cursor) {
	for range c.entries("objects", MaxObjects, 2) {
		name := string(c.bytes(int(c.number("length of a name", MaxName))))
		if c.err != nil {
			return
		}
		if err := checkName(name); err != nil {
			c.err = err
			return
		}
		x.Objects = append(x.Objects, name)
	}
}

// judge finds runs whose object is not named, once all sections were read.
func (x *Index) judge() error {
	for _, run := range x.Runs {
		if run.Object > len(x.Objects) {
			return fmt.Errorf("a run is in object %d of %d: %w", run.Object, len(x.Objects), ErrInvalid)
		}
	}
	return nil
}
