// Package collect follows the files that Ray writes below its sessions, and sends what is new in them.
//
// In: a directory with sessions, a redactor, and what an archiver has acknowledged. Out: chunks, gaps, and sizes of files that ended,
// to a sink that says how much it takes.
//
// Each file is hostile: code of a job can replace it by anything at any time. So the package must never follow a link, never judge
// a name and then open it, never read what is no regular file, and never take memory for what a file claims to be. It writes nothing.
package collect

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/heliostat-dev/heliostat/history/pack"
	"github.com/heliostat-dev/heliostat/history/redact"
)

// The bounds that a pass keeps.
const (
	MaxSessions = 4       // sessions that are followed at once
	MaxFiles    = 10000   // files of a session, generations included
	MaxOpen     = 512     // descriptors that are kept between passes
	MaxEntries  = 100000  // entries of directories that a pass looks at
	perPass     = 1 << 20 // bytes of a file in a pass, so that each has its turn
	tailSize    = 64      // bytes before an offset by which a file is known again
	quietPasses = 60      // passes without a change after which a descriptor is closed
	maxLimited  = 64      // sessions of which a gap says that they are not followed as a whole
	lastPasses  = 3       // passes without a change after which a removed file has ended
)

// File is a file as the collector names it.
type File struct {
	ID         pack.FileID
	Generation uint32
	// Path is below the directory of logs.
	Path string
}

// Sized is a file with its size.
type Sized struct {
	File
	Size int64
}

// Sink takes what a collector reads. What it has taken must reach the archiver, or be asked for again by Resume.
type Sink interface {
	// Room returns how many bytes the sink takes now.
	Room() int
	// Chunk takes bytes of a file, which are valid during the call.
	Chunk(file File, offset int64, data []byte) error
	// Gap takes a range that cannot be read. A length of 0 reaches to an unknown end.
	Gap(file File, offset, length int64, reason pack.Reason) error
	// Closed takes a file that ended, with its size.
	Closed(file Sized) error
}

// Position is what an archiver has of a file.
type Position struct {
	File
	Offset   int64
	IsClosed bool
}

// Collector follows files.
type Collector struct {
	root             *directory
	redactor, export *redact.Redactor
	files            map[pack.FileID]*followed
	sessions         map[string]int
	// limited are the sessions whose limit of files a gap has said.
	limited map[string]bool
	// turn is where the next pass begins, so that no file is always last.
	turn int
	// open counts descriptors.
	open     int
	raw, out []byte
}

// followed is a file that the collector knows.
type followed struct {
	File
	session string
	// offset is up to where it was sent, and size how long it was seen last.
	offset, size int64
	tail         []byte
	handle       *handle
	// quiet counts passes without a change.
	quiet int
	// held is the size at which the last line had not ended, so that nothing more could be sent.
	held                       int64
	isSeen, isClosed, isBehind bool
	// isRefused: it is not followed any more, and a gap says so.
	isRefused bool
	// isBack: it had ended and is seen again, or another file has got its ID.
	isBack bool
}

// New returns a collector for the sessions in a directory, such as /tmp/ray. The path itself must be out of reach of other code.
func New(path string, redactor *redact.Redactor) (*Collector, error) {
	root, err := openRoot(path)
	if err != nil {
		return nil, err
	}
	return &Collector{
		root: root, redactor: redactor, export: redactor.ForExport(), files: map[pack.FileID]*followed{}, sessions: map[string]int{}, limited: map[string]bool{},
		raw: make([]byte, redact.Block+redact.Context+pack.MaxRun),
	}, nil
}

// Close closes all descriptors.
func (c *Collector) Close() {
	for _, file := range c.files {
		c.close(file)
	}
	c.root.close()
}

// Resume sets where to go on: an archiver has so much of each file, and nothing of others. A file that the archiver knows and the
// collector does not was followed by an earlier one of this pod.
func (c *Collector) Resume(positions []Position) {
	known := map[pack.FileID]Position{}
	for _, one := range positions {
		if before, is := known[one.ID]; !is || one.Generation > before.Generation {
			known[one.ID] = one
		}
	}
	for id, file := range c.files {
		position, is := known[id]
		switch {
		case file.isClosed && !file.isSeen: // it was acknowledged, and cannot be read again
		case is && position.Generation == file.Generation:
			file.seek(position.Offset)
		case !is || position.Generation < file.Generation:
			file.seek(0)
		}
	}
	for id, position := range known {
		if c.files[id] == nil {
			c.files[id] = &followed{File: position.File, offset: position.Offset, size: position.Offset, isClosed: position.IsClosed}
		}
	}
}

func (f *followed) seek(offset int64) {
	if offset != f.offset {
		f.offset, f.tail, f.held = offset, nil, 0
	}
}

// Pass looks once at all files, and sends what is new of them, as far as the sink has room. At the pod's end isEnd sends lines
// without an end, too. It reports whether it sent anything.
func (c *Collector) Pass(sink Sink, isEnd bool) (isBusy bool, err error) {
	for _, file := range c.files {
		file.isSeen = false
	}
	walk := walk{collector: c, sink: sink, left: MaxEntries, seen: map[string]bool{}, whole: map[string]bool{}}
	if err := walk.root(); err != nil {
		return false, err
	}
	order := slices.SortedFunc(c.each(), func(a, b *followed) int { return slices.Compare(a.ID[:], b.ID[:]) })
	if len(order) == 0 {
		return false, nil
	}
	c.turn++
	for i := range order {
		file := order[(i+c.turn)%len(order)]
		sent, err := c.read(sink, file, isEnd)
		if err != nil {
			return isBusy, err
		}
		isBusy = isBusy || sent
	}
	for _, file := range order {
		if !file.isSeen && !file.isClosed && !file.isRefused && walk.isGone(file.session) {
			if err := c.end(sink, file); err != nil {
				return isBusy, err
			}
		}
	}
	c.closeQuiet(order)
	return isBusy, nil
}

// each are the files of the collector.
func (c *Collector) each() func(yield func(*followed) bool) {
	return func(yield func(*followed) bool) {
		for _, file := range c.files {
			if !yield(file) {
				return
			}
		}
	}
}

// end notes that a file is gone: at once where nothing of it can be read any more, and else when it has not changed for a while, as its
// writer may still have it open.
func (c *Collector) end(sink Sink, file *followed) error {
	if file.handle != nil {
		if file.quiet < lastPasses {
			return nil
		}
		if _, err := c.read(sink, file, true); err != nil {
			return err
		}
		if file.offset < file.size {
			return nil // the sink had no room
		}
	}
	if file.session == "" {
		// An earlier collector followed it, and nobody knows how long it was.
		file.isClosed = true
		return sink.Gap(file.File, file.offset, 0, pack.RotatedAway)
	}
	if file.offset < file.size {
		if err := sink.Gap(file.File, file.offset, file.size-file.offset, pack.RotatedAway); err != nil {
			return err
		}
	}
	c.close(file)
	file.isClosed = true
	return sink.Closed(Sized{file.File, file.size})
}

// closeQuiet closes the descriptors that are too many, those of files without unread bytes first, the longest quiet first, and all
// that were quiet for long.
func (c *Collector) closeQuiet(order []*followed) {
	open := slices.DeleteFunc(slices.Clone(order), func(f *followed) bool { return f.handle == nil })
	slices.SortStableFunc(open, func(a, b *followed) int {
		return cmp.Or(compareBools(a.isBehind, b.isBehind), cmp.Compare(b.quiet, a.quiet))
	})
	for i, file := range open {
		if i < len(open)-MaxOpen || file.quiet >= quietPasses && file.isSeen && !file.isBehind {
			c.close(file)
		}
	}
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// List returns all files that were followed, with their sizes: the last word of a pod.
func (c *Collector) List() []Sized {
	var all []Sized
	for file := range c.each() {
		all = append(all, Sized{file.File, file.size})
	}
	slices.SortFunc(all, func(a, b Sized) int { return slices.Compare(a.ID[:], b.ID[:]) })
	return all
}

// Progress returns how many bytes of the files that are followed were sent, and how many there are.
func (c *Collector) Progress() (sent, seen int64) {
	for file := range c.each() {
		if !file.isClosed && !file.isRefused && file.held != file.size {
			sent, seen = sent+file.offset, seen+max(file.size, file.offset)
		}
	}
	return sent, seen
}

func (c *Collector) close(file *followed) {
	if file.handle != nil {
		file.handle.close()
		file.handle = nil
		c.open--
	}
}

// renew makes a file that became shorter another generation. What was not read of the one before is gone, and nobody knows how much.
func (c *Collector) renew(sink Sink, file *followed) error {
	if err := sink.Gap(file.File, file.offset, 0, pack.RotatedAway); err != nil {
		return err
	}
	if err := sink.Closed(Sized{file.File, file.offset}); err != nil {
		return err
	}
	file.Generation++
	file.offset, file.tail, file.held = 0, nil, 0
	c.sessions[file.session]++
	return nil
}

// refuse ends the following of a file, and says so.
func (c *Collector) refuse(sink Sink, file *followed) error {
	c.close(file)
	file.isRefused = true
	return sink.Gap(file.File, file.offset, 0, pack.Unreadable)
}

// unreadable notes once that files of a session are not followed.
func (c *Collector) unreadable(sink Sink, session string) error {
	if c.limited[session] || len(c.limited) == maxLimited {
		return nil
	}
	c.limited[session] = true
	return sink.Gap(File{Path: fmt.Sprintf("%.100q", session)}, 0, 0, pack.Unreadable)
}
