package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/heliostat-dev/heliostat/history/pack"
	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

// Source is the pod that a stream comes from.
type Source struct{ Namespace, Cluster, Pod pack.UID }

// Archive keeps what pods send.
type Archive interface {
	// Open begins the stream of a pod, of which there is one at a time.
	Open(ctx context.Context, source Source) (Intake, error)
}

// Intake takes the records of one stream. Its methods are called one after another.
type Intake interface {
	// Resume returns what was acknowledged, at most MaxRows files.
	Resume() []Acked
	// Append returns once all of the records are durable. It keeps no bytes of them.
	Append(records []pack.Record) error
	// Room returns how many of so many bytes the collector may send now. Where these are fewer, it returns after which time the
	// answer may be another.
	Room(want int) (granted int, again time.Duration)
	// Behind takes how many bytes the collector could send, and how long the oldest of them has been there.
	Behind(bytes int64, age time.Duration)
	// Close ends the stream.
	Close()
}

// helloTime is how long a stream may be without its first message.
const helloTime = 10 * time.Second

// Server is the archiver's end.
type Server struct {
	pb.UnimplementedCollectServer
	identify func(context.Context) (Source, error)
	archive  Archive
	pool     *pool
}

// NewServer returns the archiver's end. What identify returns for the context of a call is who calls; its error is a status.
func NewServer(identify func(context.Context) (Source, error), archive Archive, limits Limits) *Server {
	return &Server{identify: identify, archive: archive, pool: newPool(limits)}
}

// Append serves the stream of a collector. A later stream of the same pod ends it.
func (s *Server) Append(stream grpc.BidiStreamingServer[pb.AppendRequest, pb.AppendResponse]) error {
	source, err := s.identify(stream.Context())
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(stream.Context())
	defer end()
	place := &member{source: source, end: end, ended: make(chan struct{})}
	former, isIn := s.pool.enter(place)
	switch {
	case s.pool.isClosed():
		if isIn {
			s.pool.leave(place)
		}
		return errEnds
	case !isIn:
		return status.Error(codes.ResourceExhausted, "too many streams")
	}
	defer s.pool.leave(place)
	if former != nil {
		former.end()
		select {
		case <-former.ended:
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		case <-time.After(formerTime): // its peer does not read what it is sent
			return status.Error(codes.Unavailable, "the former stream of the pod has not ended")
		}
	}
	intake, err := s.archive.Open(ctx, source)
	if err != nil {
		return status.Error(codes.Unavailable, "the archive of the pod cannot be opened")
	}
	defer intake.Close()
	r := &receiver{
		source: source, stream: stream, intake: intake, pool: s.pool, place: place, inbox: newInbox(),
		files: map[int64]pack.File{},
	}
	go r.inbox.fill(stream)
	err = r.run(ctx)
	switch {
	case ctx.Err() == nil || stream.Context().Err() != nil:
		return err
	case s.pool.isClosed():
		return errEnds
	default:
		return status.Error(codes.Aborted, "another stream of the pod began")
	}
}

// formerTime is how long a stream waits for the end of the one that it replaces.
const formerTime = 10 * time.Second

// errEnds sends a collector to another replica.
var errEnds = status.Error(codes.Unavailable, "the archiver ends")

// Close takes no more streams, and ends those that there are: each once what it is keeping is kept and acknowledged. It returns when
// all have ended.
func (s *Server) Close() {
	all := s.pool.close()
	for _, one := range all {
		one.end()
	}
	for _, one := range all {
		<-one.ended
	}
}

// receiver is a stream on the archiver's end.
type receiver struct {
	source Source
	stream grpc.BidiStreamingServer[pb.AppendRequest, pb.AppendResponse]
	intake Intake
	pool   *pool
	place  *member
	inbox  *inbox
	files  map[int64]pack.File
	behind bool
	// Of the list: how many parts there are and have come, and how many files they have.
	parts, part, listed int
}

// run takes messages until the stream ends, or a message is wrong.
func (r *receiver) run(ctx context.Context) error {
	if err := r.begin(ctx); err != nil {
		return err
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		again, err := r.grant()
		if err != nil {
			return err
		}
		timer.Reset(again)
		select {
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		case <-timer.C:
		case <-r.inbox.ready:
		}
		messages, ended := r.inbox.take()
		if err := r.take(messages); err != nil {
			return err
		}
		if ended != nil {
			if errors.Is(ended, io.EOF) {
				return nil
			}
			return ended
		}
	}
}

// begin takes Hello and answers with Resume.
func (r *receiver) begin(ctx context.Context) error {
	var first *pb.AppendRequest
	select {
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	case <-time.After(helloTime):
		return status.Error(codes.DeadlineExceeded, "no message came")
	case first = <-r.inbox.first:
	}
	if first == nil {
		_, ended := r.inbox.take()
		return ended
	}
	hello := first.GetHello()
	if hello.GetVersion() == 0 {
		return status.Error(codes.InvalidArgument, "the first message is no Hello with a version")
	}
	rest, version := r.intake.Resume(), min(hello.GetVersion(), Version)
	for {
		part := rest[:min(len(rest), pack.MaxListed)]
		rest = rest[len(part):]
		resume := encodeResume(version, part, len(rest) == 0)
		if err := r.stream.Send(&pb.AppendResponse{Message: &pb.AppendResponse_Resume{Resume: resume}}); err != nil {
			return err
		}
		if len(rest) == 0 {
			return nil
		}
	}
}

// grant sends the room that the stream has, and returns when to try again.
func (r *receiver) grant() (time.Duration, error) {
	room := r.inbox.left()
	if r.behind {
		r.pool.widen(r.place)
	} else {
		r.pool.narrow(r.place, room-NarrowRoom)
	}
	most := NarrowRoom + r.place.wide
	want := most - room
	if want < most/4 {
		if r.behind && most < WideRoom {
			return time.Second, nil
		}
		return time.Hour, nil
	}
	granted, again := r.intake.Room(want)
	if granted <= 0 {
		return max(again, time.Millisecond), nil
	}
	granted = min(granted, want)
	r.inbox.add(granted)
	err := r.stream.Send(&pb.AppendResponse{Message: &pb.AppendResponse_Room{Room: &pb.Room{Bytes: uint32(granted)}}})
	if granted == want {
		again = time.Hour
	}
	return max(again, time.Millisecond), err
}

// take keeps the records of messages, and acknowledges them.
func (r *receiver) take(messages []*pb.AppendRequest) error {
	var records []pack.Record
	acks, order, lists := map[uint32]int64{}, []uint32(nil), 0
	for _, message := range messages {
		record, number, err := r.record(message)
		if err != nil {
			return status.Error(codes.InvalidArgument, err.Error())
		}
		if record == (pack.Record{}) {
			continue
		}
		records = append(records, record)
		if record.Part != nil {
			lists++
			continue
		}
		if _, is := acks[number]; !is {
			order = append(order, number)
		}
		acks[number] = end(record)
	}
	if len(records) == 0 {
		return nil
	}
	if err := r.intake.Append(records); err != nil {
		return status.Error(codes.Unavailable, "the records cannot be kept")
	}
	for _, number := range order {
		ack := &pb.Ack{Number: number, Offset: uint64(acks[number])}
		if err := r.stream.Send(&pb.AppendResponse{Message: &pb.AppendResponse_Ack{Ack: ack}}); err != nil {
			return err
		}
	}
	for range lists {
		if err := r.stream.Send(&pb.AppendResponse{Message: &pb.AppendResponse_End{End: &pb.End{}}}); err != nil {
			return err
		}
	}
	return nil
}

// end returns up to where a chunk or gap says what a file has.
func end(record pack.Record) int64 {
	switch {
	case record.Chunk != nil:
		return record.Chunk.Offset + int64(len(record.Chunk.Data))
	case record.Hole.Length == 0:
		return pack.MaxOffset
	default:
		return record.Hole.Offset + record.Hole.Length
	}
}

// record judges a message. It returns the record that it has, if any, and the number of its file.
func (r *receiver) record(message *pb.AppendRequest) (record pack.Record, number uint32, err error) {
	if list := message.GetList(); list != nil && (list.GetParts() > 0 || r.parts == 0) {
		record.Cluster = r.source.Cluster
		record.Part, err = r.list(list)
		return record, 0, err
	}
	if r.parts > 0 {
		return record, 0, fmt.Errorf("a message after the list: %w", ErrInvalid)
	}
	switch m := message.GetMessage().(type) {
	case *pb.AppendRequest_File:
		return record, 0, r.name(m.File)
	case *pb.AppendRequest_Chunk:
		number = m.Chunk.GetNumber()
	case *pb.AppendRequest_Gap:
		number = m.Gap.GetNumber()
	case *pb.AppendRequest_Behind:
		bytes, age := min(m.Behind.GetBytes(), pack.MaxOffset), min(m.Behind.GetAge(), maxAge)
		r.behind = bytes > 0
		r.intake.Behind(int64(bytes), time.Duration(age)*time.Millisecond)
		return record, 0, r.inbox.giveBack(m.Behind.GetReturned())
	default:
		return record, 0, fmt.Errorf("a message of an unknown type, or a second Hello: %w", ErrInvalid)
	}
	file, is := r.files[int64(number)]
	if !is {
		return record, 0, fmt.Errorf("number %d, which no file has: %w", number, ErrInvalid)
	}
	record.Cluster = r.source.Cluster
	if chunk := message.GetChunk(); chunk != nil {
		record.Chunk, err = decodeChunk(chunk, file)
	} else {
		record.Hole, err = decodeGap(message.GetGap(), file)
	}
	return record, number, err
}

// maxAge is the longest age that is told on, in milliseconds.
const maxAge = 365 * 24 * 60 * 60 * 1000

// name gives a file a number.
func (r *receiver) name(m *pb.File) error {
	place, err := number("number of a file", uint64(m.GetNumber()), MaxNumbers-1)
	if err != nil {
		return err
	}
	file, err := decodeFile(m, r.source.Pod)
	if err == nil {
		r.files[place] = file
	}
	return err
}

// list takes a part of the last list, whose parts come in order, each once; or a list of files that ended before.
func (r *receiver) list(m *pb.List) (*pack.Part, error) {
	part, err := decodeList(m, r.source.Pod)
	if err != nil || part.Of == 0 {
		return part, err
	}
	if r.parts == 0 {
		r.parts = part.Of
	}
	if part.Of != r.parts || part.Number != r.part {
		return nil, fmt.Errorf("part %d of %d of a list, after %d of %d: %w", part.Number, part.Of, r.part, r.parts, ErrInvalid)
	}
	r.part++
	if r.listed += len(part.Files); r.listed > MaxRows {
		return nil, fmt.Errorf("a list of %d files, at most %d fit: %w", r.listed, MaxRows, ErrInvalid)
	}
	return part, nil
}

// cost is how much room a message takes: its length, and what an empty one takes in memory.
func cost(message *pb.AppendRequest) int { return proto.Size(message) + messageCost }
