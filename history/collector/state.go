package collector

import (
	"context"
	"sync"
	"time"

	"github.com/heliostat-dev/heliostat/history/collect"
	"github.com/heliostat-dev/heliostat/history/pack"
	"github.com/heliostat-dev/heliostat/history/wire"
)

// maxSamples bounds how many sizes are kept to know how old what is left is.
const maxSamples = 600

// state is what outlives a stream.
type state struct {
	// acks is how often a replica acknowledged something.
	acks  int
	mutex sync.Mutex
	// acked is up to where a replica has each file.
	acked map[pack.FileKey]int64
	// closed are files that ended and that no replica knows of yet, and ended those of which one does.
	closed []pack.Listed
	ended  map[pack.FileKey]bool
	// samples are how many bytes there were, each time that there were more.
	samples []sample
}

type sample struct {
	at   time.Time
	seen int64
}

func newState() *state {
	return &state{acked: map[pack.FileKey]int64{}, ended: map[pack.FileKey]bool{}}
}

func keyOf(id pack.FileID, generation uint32) pack.FileKey {
	return pack.FileKey{ID: id, Generation: generation}
}

// ack takes what a replica has of a file now.
func (s *state) ack(acked wire.Acked) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.acks++
	s.acked[keyOf(acked.ID, acked.Generation)] = acked.Offset
}

// acknowledged returns how often a replica acknowledged something.
func (s *state) acknowledged() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.acks
}

// resume takes what a replica has at the beginning of a stream, and returns where to go on.
func (s *state) resume(all []wire.Acked) []collect.Position {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var positions []collect.Position
	for _, one := range all {
		at := collect.Position{File: collect.File{ID: one.ID, Generation: one.Generation}, Offset: one.Offset, IsClosed: one.IsClosed}
		if !at.IsClosed {
			s.acked[keyOf(one.ID, one.Generation)] = one.Offset
		}
		positions = append(positions, at)
	}
	return positions
}

// close takes a file that has ended.
func (s *state) close(file collect.Sized) { s.closed = append(s.closed, s.listed(file)) }

// listed is a file as a list has it.
func (s *state) listed(file collect.Sized) pack.Listed {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return pack.Listed{ID: file.ID, Generation: file.Generation, Size: file.Size, Acked: s.acked[keyOf(file.ID, file.Generation)]}
}

// pending are the files that ended and that no replica knows of.
func (s *state) pending() []pack.Listed { return s.closed }

// end takes that a replica knows of files that ended.
func (s *state) end(files []pack.Listed) {
	s.closed = nil
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, file := range files {
		key := keyOf(file.ID, file.Generation)
		s.ended[key] = true
		delete(s.acked, key)
	}
}

// list are the files of the last list: those that have not ended before.
func (s *state) list(all []collect.Sized) []pack.Listed {
	var files []pack.Listed
	for _, file := range all {
		if !s.ended[keyOf(file.ID, file.Generation)] {
			files = append(files, s.listed(file))
		}
	}
	return files
}

// progress returns how many bytes are left to send, and how long the oldest of them has been there.
func (s *state) progress(now time.Time, files *collect.Collector) (behind int64, age time.Duration) {
	sent, seen := files.Progress()
	for len(s.samples) > 0 && s.samples[0].seen <= sent {
		s.samples = s.samples[1:]
	}
	if sent >= seen {
		s.samples = nil
		return 0, 0
	}
	if last := len(s.samples) - 1; last < 0 || s.samples[last].seen < seen {
		if len(s.samples) == maxSamples { // older ones are kept, so that no age is too small
			s.samples = s.samples[:last]
		}
		s.samples = append(s.samples, sample{now, seen})
	}
	return seen - sent, now.Sub(s.samples[0].at)
}

// outlet is the sink of a stream.
type outlet struct {
	ctx      context.Context //nolint:containedctx // that of the stream, which the calls of a sink have not
	sender   *wire.Sender
	state    *state
	isBehind bool
	now      func() time.Time
}

// reportRoom is the room in bytes that is kept for reports of how much is left. An archiver that has no room for files needs them.
const reportRoom = 512

// Room implements collect.Sink.
func (o *outlet) Room() int { return max(o.sender.Room()-reportRoom, 0) }

func packed(file collect.File) pack.File {
	return pack.File{FileKey: keyOf(file.ID, file.Generation), Path: file.Path}
}

// Chunk implements collect.Sink.
func (o *outlet) Chunk(file collect.File, offset int64, data []byte) error {
	return o.sender.Chunk(o.ctx, pack.Chunk{File: packed(file), Offset: offset, At: o.now().UnixMilli(), Data: data})
}

// Gap implements collect.Sink.
func (o *outlet) Gap(file collect.File, offset, length int64, reason pack.Reason) error {
	return o.sender.Gap(o.ctx, pack.Hole{File: packed(file), Offset: offset, Length: length, At: o.now().UnixMilli(), Reason: reason})
}

// Closed implements collect.Sink.
func (o *outlet) Closed(file collect.Sized) error {
	o.state.close(file)
	return nil
}
