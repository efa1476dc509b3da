package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/heliostat-dev/heliostat/history/pack"
	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

// maxRoom bounds the room that a collector believes to have.
const maxRoom = 1 << 30

// Sender is the collector's end of one stream. One goroutine may send on it.
type Sender struct {
	stream grpc.BidiStreamingClient[pb.AppendRequest, pb.AppendResponse]
	end    context.CancelFunc
	acked  func(Acked)
	resume []Acked

	mutex   sync.Mutex
	room    int
	entries []*entry
	places  map[pack.FileKey]int
	awaited int // parts of lists that were sent and are not durable yet
	err     error
	uses    int
	changed chan struct{}
	done    chan struct{}
}

// entry is a file that has a number.
type entry struct {
	file        pack.File
	sent, acked int64 // the end of what was sent and acknowledged last
	used        int
}

// Open begins a stream of a collector of a version. It calls acked, from another goroutine, with the end of what is durable of each
// file. The stream ends with the context, or by Close.
func Open(ctx context.Context, connection grpc.ClientConnInterface, version uint32, acked func(Acked)) (*Sender, error) {
	ctx, end := context.WithCancel(ctx)
	stream, err := pb.NewCollectClient(connection).Append(ctx)
	if err != nil {
		end()
		return nil, fmt.Errorf("open a stream to the archiver: %w", err)
	}
	s := &Sender{
		stream: stream, end: end, acked: acked, places: map[pack.FileKey]int{},
		changed: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if err := s.begin(version); err != nil {
		end()
		return nil, fmt.Errorf("begin a stream to the archiver: %w", err)
	}
	go s.receive()
	return s, nil
}

// begin sends Hello and takes all parts of Resume.
func (s *Sender) begin(version uint32) error {
	hello := &pb.AppendRequest{Message: &pb.AppendRequest_Hello{Hello: &pb.Hello{Version: version}}}
	if err := s.stream.Send(hello); err != nil && !errors.Is(err, io.EOF) { // after io.EOF Recv has the status
		return err
	}
	for {
		answer, err := s.stream.Recv()
		if err != nil {
			return err
		}
		resume := answer.GetResume()
		if resume.GetVersion() == 0 || resume.GetVersion() > version {
			return fmt.Errorf("version %d in answer to %d: %w", resume.GetVersion(), version, ErrInvalid)
		}
		part, err := decodeResume(resume)
		if err != nil {
			return err
		}
		if s.resume = append(s.resume, part...); len(s.resume) > MaxRows {
			return fmt.Errorf("a resume of %d files, at most %d fit: %w", len(s.resume), MaxRows, ErrInvalid)
		}
		if resume.GetLast() {
			return nil
		}
		if len(part) == 0 {
			return fmt.Errorf("an empty part of a resume: %w", ErrInvalid)
		}
	}
}

// Resume returns up to where the archiver had each file when the stream began.
func (s *Sender) Resume() []Acked { return s.resume }

// Room returns how many bytes of files can be sent now.
func (s *Sender) Room() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return max(s.room-chunkExtra, 0)
}

// Done is closed when the stream has ended, and Err returns why.
func (s *Sender) Done() <-chan struct{} { return s.done }

// Err returns why the stream ended, or nothing while it lasts.
func (s *Sender) Err() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.err
}

// Close ends the stream. What was not acknowledged may be lost.
func (s *Sender) Close() {
	s.end()
	<-s.done
}

// Chunk sends bytes of a file, in pieces where there is not the room for all. It waits until there is room for some.
func (s *Sender) Chunk(ctx context.Context, chunk pack.Chunk) error {
	place, err := s.place(ctx, chunk.File)
	if err != nil {
		return err
	}
	for len(chunk.Data) > 0 {
		room, err := s.wait(ctx, chunkExtra+1)
		if err != nil {
			return err
		}
		data := chunk.Data[:min(len(chunk.Data), room-chunkExtra, pack.MaxRun)]
		m := &pb.Chunk{Number: uint32(place), Offset: uint64(chunk.Offset), Time: uint64(chunk.At), Data: data}
		chunk.Data, chunk.Offset = chunk.Data[len(data):], chunk.Offset+int64(len(data))
		s.note(place, chunk.Offset)
		if err := s.send(&pb.AppendRequest{Message: &pb.AppendRequest_Chunk{Chunk: m}}); err != nil {
			return err
		}
	}
	return nil
}

// Gap sends a range of a file that the collector cannot send.
func (s *Sender) Gap(ctx context.Context, hole pack.Hole) error {
	place, err := s.place(ctx, hole.File)
	if err != nil {
		return err
	}
	m := &pb.AppendRequest{Message: &pb.AppendRequest_Gap{Gap: &pb.Gap{
		Number: uint32(place), Offset: uint64(hole.Offset), Length: uint64(hole.Length),
		Reason: uint32(hole.Reason), Time: uint64(hole.At),
	}}}
	if _, err := s.wait(ctx, cost(m)); err != nil {
		return err
	}
	s.note(place, end(pack.Record{Hole: &hole}))
	return s.send(m)
}

// Behind reports how many bytes the collector could send, and how long the oldest of them has been there. With 0 bytes it gives
// back the room that is of no use then.
func (s *Sender) Behind(ctx context.Context, bytes int64, age time.Duration) error {
	behind := &pb.Behind{Bytes: uint64(bytes), Age: uint64(age.Milliseconds())}
	m := &pb.AppendRequest{Message: &pb.AppendRequest_Behind{Behind: behind}}
	room, err := s.wait(ctx, chunkExtra)
	if err != nil {
		return err
	}
	if bytes == 0 && room > NarrowRoom {
		behind.Returned = uint64(room - NarrowRoom)
		s.mutex.Lock()
		s.room -= room - NarrowRoom
		s.mutex.Unlock()
	}
	return s.send(m)
}

// Ended sends files that ended while their pod goes on, so that the last list need not have them, and waits until the archiver has
// them.
func (s *Sender) Ended(ctx context.Context, files []pack.Listed) error {
	var parts []*pb.List
	for some := range slices.Chunk(files, partFiles) {
		parts = append(parts, encodeList(0, 0, some))
	}
	return s.lists(ctx, parts)
}

// List sends all files of the pod that Ended did not have, and waits until the archiver has the list. Nothing can be sent after it.
func (s *Sender) List(ctx context.Context, files []pack.Listed) error {
	if len(files) > MaxRows {
		return fmt.Errorf("send a list of %d files, at most %d fit: %w", len(files), MaxRows, ErrInvalid)
	}
	count := max((len(files)+partFiles-1)/partFiles, 1)
	parts := make([]*pb.List, count)
	for i := range parts {
		parts[i] = encodeList(i, count, files[i*partFiles:min(len(files), (i+1)*partFiles)])
	}
	return s.lists(ctx, parts)
}

// lists sends parts of a list, and waits until the archiver has them.
func (s *Sender) lists(ctx context.Context, parts []*pb.List) error {
	for _, part := range parts {
		m := &pb.AppendRequest{Message: &pb.AppendRequest_List{List: part}}
		if _, err := s.wait(ctx, cost(m)); err != nil {
			return err
		}
		s.mutex.Lock()
		s.awaited++
		s.mutex.Unlock()
		if err := s.send(m); err != nil {
			return err
		}
	}
	return s.until(ctx, func() bool { return s.awaited == 0 })
}

// place returns the number of a file, and gives it one that is free or longest unused, and of which all is acknowledged.
func (s *Sender) place(ctx context.Context, file pack.File) (int, error) {
	file.Pod = pack.UID{}
	if err := pack.CheckPath(file.Path); err != nil {
		return 0, err
	}
	s.mutex.Lock()
	place, is := s.places[file.FileKey]
	if is {
		s.uses++
		s.entries[place].used = s.uses
		same := s.entries[place].file == file
		s.mutex.Unlock()
		if same {
			return place, nil
		}
	} else {
		s.mutex.Unlock()
		place = -1
		if err := s.until(ctx, func() bool { place = s.free(); return place >= 0 }); err != nil {
			return 0, err
		}
	}
	m := &pb.AppendRequest{Message: &pb.AppendRequest_File{File: encodeFile(place, file)}}
	if _, err := s.wait(ctx, cost(m)); err != nil {
		return 0, err
	}
	s.mutex.Lock()
	if !is {
		if former := s.entries[place].file.FileKey; s.places[former] == place {
			delete(s.places, former)
		}
		s.entries[place].sent, s.entries[place].acked = 0, 0
	}
	s.uses++
	s.places[file.FileKey] = place
	s.entries[place].file, s.entries[place].used = file, s.uses
	s.mutex.Unlock()
	return place, s.send(m)
}

// free returns a number that can be given to a file, or -1.
func (s *Sender) free() int {
	if len(s.entries) < MaxNumbers {
		s.entries = append(s.entries, &entry{})
		return len(s.entries) - 1
	}
	oldest := -1
	for i, e := range s.entries {
		if e.sent == e.acked && (oldest < 0 || e.used < s.entries[oldest].used) {
			oldest = i
		}
	}
	return oldest
}

// note keeps what was sent of a file.
func (s *Sender) note(place int, end int64) {
	s.mutex.Lock()
	s.entries[place].sent = end
	s.mutex.Unlock()
}

// send sends a message for which there is room.
func (s *Sender) send(m *pb.AppendRequest) error {
	s.mutex.Lock()
	s.room -= cost(m)
	s.mutex.Unlock()
	if err := s.stream.Send(m); err != nil {
		// Why it ended is what receive finds.
		<-s.done
		return s.Err()
	}
	return nil
}

// wait returns how much room there is, once it is so much.
func (s *Sender) wait(ctx context.Context, bytes int) (room int, err error) {
	err = s.until(ctx, func() bool { room = s.room; return room >= bytes })
	return room, err
}

// until waits for a condition, which changes with what is received.
func (s *Sender) until(ctx context.Context, isTrue func() bool) error {
	for {
		s.mutex.Lock()
		holds, err := isTrue(), s.err
		s.mutex.Unlock()
		if holds {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.changed:
		}
	}
}

// receive takes what the archiver sends until the stream ends.
func (s *Sender) receive() {
	defer close(s.done)
	defer s.end()
	for {
		answer, err := s.stream.Recv()
		var ack Acked
		s.mutex.Lock()
		if err == nil {
			ack, err = s.take(answer)
		}
		s.err = err
		s.mutex.Unlock()
		if ack != (Acked{}) {
			s.acked(ack)
		}
		select {
		case s.changed <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// take judges one answer.
func (s *Sender) take(answer *pb.AppendResponse) (Acked, error) {
	switch m := answer.GetMessage().(type) {
	case *pb.AppendResponse_Room:
		s.room = min(s.room+int(m.Room.GetBytes()), maxRoom)
	case *pb.AppendResponse_Ack:
		if uint64(m.Ack.GetNumber()) >= uint64(len(s.entries)) {
			return Acked{}, fmt.Errorf("an acknowledgement of number %d, which no file has: %w", m.Ack.GetNumber(), ErrInvalid)
		}
		e := s.entries[m.Ack.GetNumber()]
		if m.Ack.GetOffset() > uint64(e.sent) {
			return Acked{}, fmt.Errorf("an acknowledgement up to %d, of %d: %w", m.Ack.GetOffset(), e.sent, ErrInvalid)
		}
		e.acked = int64(m.Ack.GetOffset())
		return Acked{ID: e.file.ID, Generation: e.file.Generation, Offset: e.acked}, nil
	case *pb.AppendResponse_End:
		if s.awaited--; s.awaited < 0 {
			return Acked{}, fmt.Errorf("an end without a list: %w", ErrInvalid)
		}
	default:
		return Acked{}, fmt.Errorf("an answer of an unknown type, or a second Resume: %w", ErrInvalid)
	}
	return Acked{}, nil
}
