package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/heliostat-dev/heliostat/history/pack"
	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

// unwrapped returns the status in an error.
func unwrapped(err error) error {
	for err != nil {
		if _, is := status.FromError(err); is && status.Code(err) != codes.Unknown {
			return err
		}
		err = errors.Unwrap(err)
	}
	return nil
}

type message = *pb.AppendRequest

func helloOf(version uint32) message {
	return &pb.AppendRequest{Message: &pb.AppendRequest_Hello{Hello: &pb.Hello{Version: version}}}
}

func fileOf(m *pb.File) message { return &pb.AppendRequest{Message: &pb.AppendRequest_File{File: m}} }
func chunkOf(m *pb.Chunk) message {
	return &pb.AppendRequest{Message: &pb.AppendRequest_Chunk{Chunk: m}}
}
func gapOf(m *pb.Gap) message   { return &pb.AppendRequest{Message: &pb.AppendRequest_Gap{Gap: m}} }
func listOf(m *pb.List) message { return &pb.AppendRequest{Message: &pb.AppendRequest_List{List: m}} }

func behindOf(m *pb.Behind) message {
	return &pb.AppendRequest{Message: &pb.AppendRequest_Behind{Behind: m}}
}

var (
	id       = bytes.Repeat([]byte{1}, 16)
	goodFile = &pb.File{Number: 1, Id: id, Path: []byte("a")}
)

// rowsOf is a list of so many files.
func rowsOf(part, parts uint32, count int) message {
	return listOf(&pb.List{
		Part: part, Parts: parts, Ids: bytes.Repeat(id, count), Generations: make([]uint32, count),
		Sizes: make([]uint64, count), Acked: make([]uint64, count),
	})
}

// hostile are messages that a peer sends after a good Hello and a file with the number 1.
func hostile() map[string][]message {
	long := strings.Repeat("a", pack.MaxPath+1)
	return map[string][]message{
		"a second Hello":                 {helloOf(1)},
		"a message without content":      {&pb.AppendRequest{}},
		"a number that no file has":      {chunkOf(&pb.Chunk{Number: 2, Data: []byte("x")})},
		"a gap of a number of no file":   {gapOf(&pb.Gap{Number: 1 << 31, Reason: 4})},
		"a number above the bound":       {fileOf(&pb.File{Number: MaxNumbers, Id: id, Path: []byte("a")})},
		"a short ID":                     {fileOf(&pb.File{Id: id[1:], Path: []byte("a")})},
		"an unknown kind":                {fileOf(&pb.File{Id: id, Kind: 3, Path: []byte("a")})},
		"a kind of 256":                  {fileOf(&pb.File{Id: id, Kind: 256, Path: []byte("a")})},
		"a path that leads out":          {fileOf(&pb.File{Id: id, Path: []byte("../a")})},
		"an absolute path":               {fileOf(&pb.File{Id: id, Path: []byte("/a")})},
		"a long path":                    {fileOf(&pb.File{Id: id, Path: []byte(long)})},
		"a chunk without bytes":          {chunkOf(&pb.Chunk{Number: 1})},
		"a chunk beyond all offsets":     {chunkOf(&pb.Chunk{Number: 1, Offset: pack.MaxOffset, Data: []byte("x")})},
		"a chunk at a negative offset":   {chunkOf(&pb.Chunk{Number: 1, Offset: 1<<64 - 1, Data: []byte("x")})},
		"a chunk of a far time":          {chunkOf(&pb.Chunk{Number: 1, Time: 1 << 63, Data: []byte("x")})},
		"a gap beyond all offsets":       {gapOf(&pb.Gap{Number: 1, Offset: 1 << 61, Length: 1 << 62, Reason: 4})},
		"a gap whose end overflows":      {gapOf(&pb.Gap{Number: 1, Offset: 1, Length: 1<<64 - 1, Reason: 4})},
		"a gap without a reason":         {gapOf(&pb.Gap{Number: 1})},
		"a gap for a limit":              {gapOf(&pb.Gap{Number: 1, Reason: uint32(pack.LimitReached)})},
		"a gap of the reason 260":        {gapOf(&pb.Gap{Number: 1, Reason: 260})},
		"a part behind the last":         {rowsOf(1, 1, 1)},
		"too many parts":                 {rowsOf(0, MaxParts+1, 1)},
		"parts out of order":             {rowsOf(1, 3, 1)},
		"a part twice":                   {rowsOf(0, 3, 1), rowsOf(0, 3, 1)},
		"another number of parts":        {rowsOf(0, 3, 1), rowsOf(1, 4, 1)},
		"a chunk within the list":        {rowsOf(0, 2, 1), chunkOf(&pb.Chunk{Number: 1, Data: []byte("x")})},
		"ended files after the list":     {rowsOf(0, 1, 1), rowsOf(0, 0, 1)},
		"a part of ended files":          {rowsOf(1, 0, 1)},
		"a list without sizes":           {listOf(&pb.List{Parts: 1, Ids: id, Generations: []uint32{1}, Acked: []uint64{1}})},
		"a list with half an ID":         {listOf(&pb.List{Parts: 1, Ids: id[:8], Generations: []uint32{1}, Acked: []uint64{1}, Sizes: []uint64{1}})},
		"a file of a list that is huge":  {listOf(&pb.List{Parts: 1, Ids: id, Generations: []uint32{1}, Acked: []uint64{1}, Sizes: []uint64{1 << 63}})},
		"room that it never had":         {behindOf(&pb.Behind{Returned: NarrowRoom})},
		"room that no peer can ever own": {behindOf(&pb.Behind{Returned: 1<<64 - 1})},
	}
}

// play sends messages without a look at the room, and returns how the stream ended.
func play(t *testing.T, connection *grpc.ClientConn, pod string, messages ...message) error {
	t.Helper()
	stream, err := pb.NewCollectClient(connection).Append(as(within(t), pod, "n"))
	must(t, err)
	if len(messages) > 1 {
		must(t, stream.Send(messages[0]))
		messages = messages[1:]
		for hasRoom := false; !hasRoom; {
			answer, err := stream.Recv()
			must(t, err)
			hasRoom = answer.GetRoom() != nil
		}
	}
	for _, one := range messages {
		if stream.Send(one) != nil {
			break // Recv has the reason
		}
	}
	for {
		if _, err := stream.Recv(); err != nil {
			return err
		}
	}
}

func TestServer_RefusesWhatBreaksABound(t *testing.T) {
	for name, messages := range hostile() {
		s := newShelf()
		err := play(t, withShelf(t, s, roomy), "p", append([]message{helloOf(1), fileOf(goodFile)}, messages...)...)
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: the stream ended with %v", name, err)
		}
		if s.mutex.Lock(); len(messages) == 1 && len(s.records) > 0 {
			t.Errorf("%s: %v was kept", name, s.records)
		}
		s.mutex.Unlock()
	}
	if err := play(t, withShelf(t, newShelf(), roomy), "p", fileOf(goodFile)); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a stream without Hello ended with %v", err)
	}
}

func TestServer_EndsAFlood(t *testing.T) {
	data := bytes.Repeat([]byte("x"), pack.MaxRun)
	for name, one := range map[string]message{
		"chunks beyond the room":         chunkOf(&pb.Chunk{Number: 1, Data: data}),
		"messages above the bound":       chunkOf(&pb.Chunk{Number: 1, Data: bytes.Repeat(data, 2)}),
		"a huge list":                    rowsOf(0, 1, pack.MaxListed),
		"empty messages beyond the room": {},
	} {
		s := newShelf()
		release := make(chan struct{})
		s.before = func([]pack.Record) error { <-release; return nil }
		messages := []message{helloOf(1), fileOf(goodFile), chunkOf(&pb.Chunk{Number: 1, Data: []byte("x")})}
		for range 4000 {
			messages = append(messages, one)
		}
		ended := make(chan error)
		go func() { ended <- play(t, withShelf(t, s, roomy), "p", messages...) }()
		time.AfterFunc(200*time.Millisecond, func() { close(release) })
		if err := <-ended; status.Code(err) != codes.ResourceExhausted && status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: the stream ended with %v", name, err)
		}
		bytes := 0
		for _, record := range s.records {
			if record.Chunk != nil {
				bytes += len(record.Chunk.Data)
			}
		}
		if bytes > NarrowRoom {
			t.Errorf("%s: %d bytes were kept", name, bytes)
		}
	}
	long := helloOf(1)
	long.ProtoReflect().SetUnknown(bytes.Repeat([]byte{0xf8, 0x01, 0x01}, 1000)) // field 31, a thousand times
	if err := play(t, withShelf(t, newShelf(), roomy), "p", long); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a long Hello ended with %v", err)
	}
}

// TestServer_BoundsTheMemoryOfStreams has peers that take all that they can get: names for all numbers, and messages that wait.
func TestServer_BoundsTheMemoryOfStreams(t *testing.T) {
	const streams, most = 20, 1 << 20
	s, release := newShelf(), make(chan struct{})
	defer close(release)
	s.before = func([]pack.Record) error { <-release; return nil }
	connect := serve(t, NewServer(identify, s, Limits{Streams: streams, NamespaceStreams: streams}))
	before := inUse()
	ctx, end := context.WithCancel(within(t))
	defer end()
	for i := range streams {
		sender, err := Open(as(ctx, fmt.Sprint("pod-", i), "n"), connect(), Version, func(Acked) {})
		must(t, err)
		path := strings.Repeat("p", pack.MaxPath)
		for number := range uint32(MaxNumbers) {
			m := fileOf(&pb.File{Number: number, Id: id, Path: []byte(path)})
			_, err := sender.wait(ctx, cost(m))
			must(t, err)
			must(t, sender.send(m))
		}
		for range 400 {
			m := chunkOf(&pb.Chunk{Data: []byte("x")})
			if _, err := sender.wait(ctx, cost(m)); err == nil && sender.Room() < NarrowRoom/4 {
				break
			}
			must(t, sender.send(m))
		}
	}
	if each := (inUse() - before) / streams; each > most {
		t.Errorf("each stream takes %d KiB", each>>10)
	} else {
		t.Logf("each stream takes %d KiB at both ends", each>>10)
	}
}

// inUse returns the bytes of live objects and of stacks.
func inUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// badArchiver answers Hello and then sends what no archiver may send.
type badArchiver struct {
	pb.UnimplementedCollectServer
	answers []*pb.AppendResponse
}

func (b *badArchiver) Append(stream grpc.BidiStreamingServer[pb.AppendRequest, pb.AppendResponse]) error {
	for _, answer := range b.answers {
		if err := stream.Send(answer); err != nil {
			return err
		}
	}
	<-stream.Context().Done()
	return nil
}

func TestSender_EndsAtWhatNoArchiverMaySend(t *testing.T) {
	resume := func(m *pb.Resume) *pb.AppendResponse {
		return &pb.AppendResponse{Message: &pb.AppendResponse_Resume{Resume: m}}
	}
	good := resume(&pb.Resume{Version: 1, Last: true})
	full := encodeResume(1, make([]Acked, pack.MaxListed), false)
	for name, answers := range map[string][]*pb.AppendResponse{
		"no version":              {resume(&pb.Resume{Last: true})},
		"a later version":         {resume(&pb.Resume{Version: Version + 1, Last: true})},
		"no Resume":               {{Message: &pb.AppendResponse_Room{Room: &pb.Room{Bytes: 1}}}},
		"a Resume without end":    {resume(full), resume(full), resume(full), resume(full), resume(full)},
		"empty parts of a Resume": {resume(&pb.Resume{Version: 1})},
		"a Resume of half an ID":  {resume(&pb.Resume{Version: 1, Last: true, Ids: id[1:], Generations: []uint32{1}, Acked: []uint64{1}})},
		"no word of closed files": {resume(&pb.Resume{Version: 1, Last: true, Ids: id, Generations: []uint32{1}, Acked: []uint64{1}})},
		"a far offset":            {resume(&pb.Resume{Version: 1, Last: true, Ids: id, Generations: []uint32{1}, Acked: []uint64{1 << 63}})},
		"an unknown answer":       {good, {}},
		"a second Resume":         {good, good},
		"an end without a list":   {good, {Message: &pb.AppendResponse_End{End: &pb.End{}}}},
		"a number of no file":     {good, {Message: &pb.AppendResponse_Ack{Ack: &pb.Ack{Number: 1 << 31}}}},
	} {
		sender, err := Open(within(t), serve(t, &badArchiver{answers: answers})(), Version, func(Acked) { t.Errorf("%s: acknowledged", name) })
		if err == nil {
			<-sender.Done()
			err = sender.Err()
		}
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var s Sender
	s.entries = []*entry{{sent: 5}}
	if _, err := s.take(&pb.AppendResponse{Message: &pb.AppendResponse_Ack{Ack: &pb.Ack{Offset: 6}}}); !errors.Is(err, ErrInvalid) {
		t.Errorf("an acknowledgement of what was not sent: %v", err)
	}
	for range 10 {
		_, err := s.take(&pb.AppendResponse{Message: &pb.AppendResponse_Room{Room: &pb.Room{Bytes: 1<<32 - 1}}})
		must(t, err)
	}
	if s.room > maxRoom {
		t.Errorf("the room is %d bytes", s.room)
	}
}

// FuzzAppendRequest reads what anybody may send. What is taken can be kept in a segment.
func FuzzAppendRequest(f *testing.F) {
	for _, messages := range hostile() {
		for _, one := range messages {
			data, err := proto.Marshal(one)
			must(f, err)
			f.Add(data)
		}
	}
	for _, one := range []message{
		fileOf(goodFile), chunkOf(&pb.Chunk{Number: 1, Offset: 1 << 40, Data: []byte("x")}), rowsOf(0, 2, 3), rowsOf(0, 0, 2),
		gapOf(&pb.Gap{Number: 1, Length: 3, Reason: 5}),
	} {
		data, err := proto.Marshal(one)
		must(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var m pb.AppendRequest
		if len(data) > MaxMessage || proto.Unmarshal(data, &m) != nil {
			return
		}
		s := newShelf()
		r := &receiver{
			source: Source{Pod: pack.UID{1}, Cluster: pack.UID{2}}, inbox: newInbox(), intake: &intake{shelf: s},
			files: map[int64]pack.File{1: logFile(1, "a")},
		}
		record, _, err := r.record(&m)
		if err != nil || record == (pack.Record{}) {
			return
		}
		if _, err := pack.AppendRecord(nil, record); err != nil {
			t.Errorf("%v was taken and cannot be kept: %v", &m, err)
		}
		if record.Part == nil {
			end(record)
		} else if record.Part.Pod != r.source.Pod || record.Cluster != r.source.Cluster {
			t.Errorf("%v became a list of another pod", &m)
		}
	})
}

// FuzzAppendResponse reads what anybody may answer to a collector.
func FuzzAppendResponse(f *testing.F) {
	for _, one := range []*pb.AppendResponse{
		{Message: &pb.AppendResponse_Resume{Resume: encodeResume(1, []Acked{{ID: pack.MakeFileID(1, 2), Generation: 3, Offset: 4, IsClosed: true}}, true)}},
		{Message: &pb.AppendResponse_Ack{Ack: &pb.Ack{Offset: 5}}},
		{Message: &pb.AppendResponse_Room{Room: &pb.Room{Bytes: 6}}},
		{Message: &pb.AppendResponse_End{End: &pb.End{}}},
	} {
		data, err := proto.Marshal(one)
		must(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var m pb.AppendResponse
		if proto.Unmarshal(data, &m) != nil {
			return
		}
		s := Sender{entries: []*entry{{sent: 5}}, awaited: 1}
		ack, err := s.take(&m)
		if err == nil && (ack.Offset > 5 || s.room < 0 || s.room > maxRoom || s.awaited < 0) {
			t.Errorf("%v was taken: %v, room %d", &m, ack, s.room)
		}
		if files, err := decodeResume(m.GetResume()); err == nil {
			again, err := decodeResume(encodeResume(1, files, true))
			if err != nil || fmt.Sprint(again) != fmt.Sprint(files) {
				t.Errorf("%v became %v: %v", files, again, err)
			}
		}
	})
}
