package wire

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/heliostat-dev/heliostat/history/pack"
)

func TestStream_KeepsWhatIsSentAndAcknowledgesIt(t *testing.T) {
	s := newShelf()
	ctx, a, b := within(t), logFile(1, "raylet.out"), logFile(2, "old/worker\n.err")
	b.Generation, b.Kind = 3, pack.Events
	var mutex sync.Mutex
	acks := map[pack.FileID]int64{}
	sender, err := Open(as(ctx, "p", "n"), withShelf(t, s, roomy), Version, func(ack Acked) {
		mutex.Lock()
		acks[ack.ID] = ack.Offset
		mutex.Unlock()
	})
	must(t, err)
	defer sender.Close()
	must(t, sender.Chunk(ctx, pack.Chunk{File: a, Offset: 5, At: 7, Data: []byte("hello")}))
	must(t, sender.Chunk(ctx, pack.Chunk{File: a, Offset: 10, At: 8, Data: []byte(" world")}))
	must(t, sender.Gap(ctx, pack.Hole{File: b, Offset: 0, Length: 4, At: 9, Reason: pack.Unreadable}))
	a.Path = "raylet.out.1"
	must(t, sender.Gap(ctx, pack.Hole{File: a, Offset: 16, At: 9, Reason: pack.RotatedAway}))
	must(t, sender.Ended(ctx, []pack.Listed{{ID: a.ID, Size: 16, Acked: 16}}))
	must(t, sender.List(ctx, []pack.Listed{{ID: b.ID, Generation: 3, Size: 4, Acked: 4}}))

	pod, cluster := of(a, "p").Pod, pack.UID{0xc}
	inPod := func(file pack.File, path string) pack.File {
		file.Pod, file.Path = pod, path
		return file
	}
	want := []pack.Record{
		{Cluster: cluster, Chunk: &pack.Chunk{File: inPod(a, "raylet.out"), Offset: 5, At: 7, Data: []byte("hello")}},
		{Cluster: cluster, Chunk: &pack.Chunk{File: inPod(a, "raylet.out"), Offset: 10, At: 8, Data: []byte(" world")}},
		{Cluster: cluster, Hole: &pack.Hole{File: inPod(b, b.Path), Length: 4, At: 9, Reason: pack.Unreadable}},
		{Cluster: cluster, Hole: &pack.Hole{File: inPod(a, "raylet.out.1"), Offset: 16, At: 9, Reason: pack.RotatedAway}},
		{Cluster: cluster, Part: &pack.Part{Pod: pod, Files: []pack.Listed{{ID: a.ID, Size: 16, Acked: 16}}}},
		{Cluster: cluster, Part: &pack.Part{Pod: pod, Of: 1, Files: []pack.Listed{{ID: b.ID, Generation: 3, Size: 4, Acked: 4}}}},
	}
	if diff := cmp.Diff(want, s.records); diff != "" {
		t.Error(diff)
	}
	mutex.Lock()
	defer mutex.Unlock()
	if diff := cmp.Diff(map[pack.FileID]int64{a.ID: pack.MaxOffset, b.ID: 4}, acks); diff != "" {
		t.Errorf("acknowledged: %s", diff)
	}
}

func TestServer_CloseEndsStreamsOnceWhatTheySentIsKept(t *testing.T) {
	s := newShelf()
	isKeeping, goOn := make(chan struct{}), make(chan struct{})
	s.before = func([]pack.Record) error {
		close(isKeeping)
		<-goOn
		return nil
	}
	server := NewServer(identify, s, roomy)
	connection := serve(t, server)()
	ctx, acks := within(t), make(chan Acked, 1)
	sender, err := Open(as(ctx, "p", "n"), connection, Version, func(ack Acked) { acks <- ack })
	must(t, err)
	must(t, sender.Chunk(ctx, pack.Chunk{File: logFile(1, "a"), At: 7, Data: []byte("hello")}))
	<-isKeeping
	closed := make(chan struct{})
	go func() { server.Close(); close(closed) }()
	eventually(t, "the server is closed", server.pool.isClosed)
	select {
	case <-closed:
		t.Error("the server has ended while a stream keeps records")
	default:
	}
	close(goOn)
	<-closed
	if ack := <-acks; ack.Offset != 5 {
		t.Errorf("acknowledged up to %d", ack.Offset)
	}
	<-sender.Done()
	if status.Code(sender.Err()) != codes.Unavailable {
		t.Errorf("the stream ended with %v", sender.Err())
	}
	if _, err := Open(as(ctx, "q", "n"), connection, Version, func(Acked) {}); status.Code(err) != codes.Unavailable {
		t.Errorf("a later stream: %v", err)
	}
	if s.open != 0 || len(server.pool.streams) != 0 {
		t.Errorf("%d streams are left", len(server.pool.streams))
	}
}

// collector follows files as a collector does: after a break it goes on where the archiver is.
type collector struct {
	files map[string]string
	sent  int
	// isCut reports whether the stream breaks after so many messages.
	isCut func(sent int) bool
}

// play sends all files and the list over as many streams as it takes.
func (c *collector) play(t *testing.T, open func() (*Sender, error)) {
	ctx := within(t)
	for range 1000 {
		sender, err := open()
		if err == nil {
			err = c.send(ctx, sender)
			sender.Close()
		}
		if err == nil {
			return
		}
		must(t, ctx.Err())
	}
	t.Fatal("1,000 streams broke")
}

func (c *collector) send(ctx context.Context, sender *Sender) error {
	acked := map[pack.FileID]int64{}
	for _, file := range sender.Resume() {
		acked[file.ID] = file.Offset
	}
	var list []pack.Listed
	for name, text := range c.files {
		file := logFile(uint64(len(name)), name)
		list = append(list, pack.Listed{ID: file.ID, Size: int64(len(text)), Acked: acked[file.ID]})
		for at := acked[file.ID]; at < int64(len(text)); at += 10 {
			c.sent++
			if c.isCut(c.sent) {
				return errBroken
			}
			if err := sender.Chunk(ctx, pack.Chunk{File: file, Offset: at, Data: []byte(text)[at:min(len(text), int(at)+10)]}); err != nil {
				return err
			}
		}
	}
	return sender.List(ctx, list)
}

func TestStream_LosesNothingWhereverItBreaks(t *testing.T) {
	files := map[string]string{"a": strings.Repeat("0123456789ab", 5), "bb": "short", "ccc": strings.Repeat("xyz", 20)}
	for name, breaks := range map[string]func(s *shelf, c *collector, at int){
		"the collector ends": func(_ *shelf, c *collector, at int) { c.isCut = func(sent int) bool { return sent == at } },
		"the archiver ends before it keeps": func(s *shelf, _ *collector, at int) {
			s.before = failAt(at)
		},
		"the archiver ends before it acknowledges": func(s *shelf, _ *collector, at int) {
			s.after = failAt(at)
		},
	} {
		for at := 1; at <= 16; at++ {
			s, c := newShelf(), &collector{files: files, isCut: func(int) bool { return false }}
			breaks(s, c, at)
			connection := withShelf(t, s, roomy)
			c.play(t, func() (*Sender, error) { return Open(as(within(t), "p", "n"), connection, Version, func(Acked) {}) })
			for path, text := range files {
				if got := s.content(of(logFile(uint64(len(path)), path), "p")); got != text {
					t.Errorf("%s at message %d: %s has %q: want %q", name, at, path, got, text)
				}
			}
			if last := s.records[len(s.records)-1].Part; last == nil || last.Of != 1 || len(last.Files) != len(files) {
				t.Errorf("%s at message %d: the last record is no list of all files", name, at)
			}
		}
	}
}

// failAt returns what fails when the n-th record comes.
func failAt(n int) func([]pack.Record) error {
	return func(records []pack.Record) error {
		if n -= len(records); n <= 0 && n+len(records) > 0 {
			return errBroken
		}
		return nil
	}
}

func TestSender_WaitsForASlowArchiver(t *testing.T) {
	s, release := newShelf(), make(chan struct{})
	s.before = func([]pack.Record) error { <-release; return nil }
	ctx, file, text := within(t), logFile(1, "a"), bytes.Repeat([]byte("x"), 200<<10)
	sender := openAs(t, withShelf(t, s, roomy), "p", "n")
	short, end := context.WithTimeout(ctx, 100*time.Millisecond)
	defer end()
	err := sender.Chunk(short, pack.Chunk{File: file, Data: text})
	if sent := sender.entries[0].sent; err == nil || sent == 0 || sent > NarrowRoom {
		t.Fatalf("%d bytes were sent to an archiver that keeps none: %v", sent, err)
	}
	close(release)
	at := sender.entries[0].sent
	must(t, sender.Chunk(ctx, pack.Chunk{File: file, Offset: at, Data: text[at:]}))
	must(t, sender.List(ctx, nil))
	if got := s.content(of(file, "p")); got != string(text) {
		t.Errorf("%d of %d bytes came", len(got), len(text))
	}
}

func TestSender_GetsRoomAsTheArchiverGivesIt(t *testing.T) {
	s := newShelf()
	var mutex sync.Mutex
	given := 0
	s.room = func(want int) (int, time.Duration) { // 1,000 bytes every millisecond, as a rate would be
		mutex.Lock()
		defer mutex.Unlock()
		given += min(want, 1000)
		return min(want, 1000), time.Millisecond
	}
	ctx, file, text := within(t), logFile(1, "a"), bytes.Repeat([]byte("x"), 20<<10)
	sender := openAs(t, withShelf(t, s, roomy), "p", "n")
	must(t, sender.Chunk(ctx, pack.Chunk{File: file, Data: text}))
	must(t, sender.List(ctx, nil))
	mutex.Lock()
	defer mutex.Unlock()
	if got := s.content(of(file, "p")); got != string(text) || given < len(text) {
		t.Errorf("%d of %d bytes came, by %d bytes of room", len(got), len(text), given)
	}
}

func TestSender_HasWideRoomWhileItIsBehind(t *testing.T) {
	s := newShelf()
	connection := withShelf(t, s, Limits{Streams: 10, NamespaceStreams: 10, Wide: 4 * (WideRoom - NarrowRoom)})
	ctx := within(t)
	one, two, other := openAs(t, connection, "p", "n"), openAs(t, connection, "q", "n"), openAs(t, connection, "r", "m")
	isWide := func(sender *Sender) func() bool { return func() bool { return sender.Room() > WideRoom*3/4 } }
	must(t, one.Behind(ctx, 1<<30, time.Minute))
	eventually(t, "a collector that is behind has wide room", isWide(one))
	must(t, two.Behind(ctx, 1<<30, time.Minute))
	must(t, other.Behind(ctx, 1<<30, time.Minute))
	eventually(t, "another namespace has wide room", isWide(other))
	if room := two.Room(); room > NarrowRoom {
		t.Errorf("a second stream of a namespace that has its quarter has room for %d bytes", room)
	}
	must(t, one.Behind(ctx, 0, 0))
	eventually(t, "the namespace's next stream gets what was given back", isWide(two))
	if room := one.Room(); room > NarrowRoom {
		t.Errorf("a collector that is no more behind has room for %d bytes", room)
	}
}

func TestSender_GivesNumbersToMoreFilesThanThereAre(t *testing.T) {
	s, ctx := newShelf(), within(t)
	sender := openAs(t, withShelf(t, s, roomy), "p", "n")
	const files = 2*MaxNumbers + 100
	for round := range 2 {
		for i := range uint64(files) {
			must(t, sender.Chunk(ctx, pack.Chunk{File: logFile(i+1, "a"), Offset: int64(round), Data: []byte{byte(i)}}))
		}
	}
	must(t, sender.List(ctx, nil))
	for i := range uint64(files) {
		if got := s.content(of(logFile(i+1, "a"), "p")); got != string([]byte{byte(i), byte(i)}) {
			t.Fatalf("file %d has %q", i, got)
		}
	}
}

func TestSender_SendsAListOfAllFilesThatAPodMayHave(t *testing.T) {
	s, ctx := newShelf(), within(t)
	sender := openAs(t, withShelf(t, s, roomy), "p", "n")
	var files []pack.Listed
	for i := range MaxRows {
		files = append(files, pack.Listed{ID: pack.MakeFileID(uint64(i), 1), Size: pack.MaxOffset})
	}
	if err := sender.List(ctx, append(files, pack.Listed{})); err == nil {
		t.Error("a longer list was sent")
	}
	must(t, sender.List(ctx, files))
	var got []pack.Listed
	for i, record := range s.records {
		if record.Part.Number != i || record.Part.Of != len(s.records) {
			t.Errorf("record %d of %d is part %d of %d", i, len(s.records), record.Part.Number, record.Part.Of)
		}
		got = append(got, record.Part.Files...)
	}
	if diff := cmp.Diff(files, got); diff != "" {
		t.Error(diff)
	}
}

func TestOpen_ResumesManyFiles(t *testing.T) {
	s := newShelf()
	for i := range MaxRows {
		s.acked[of(logFile(uint64(i), ""), "p")] = int64(i)
	}
	sender := openAs(t, withShelf(t, s, roomy), "p", "n")
	if got := len(sender.Resume()); got != MaxRows {
		t.Errorf("%d files are resumed: want %d", got, MaxRows)
	}
	for _, file := range sender.Resume() {
		if file.ID != pack.MakeFileID(uint64(file.Offset), 1) || file.IsClosed != (file.Offset%2 == 1) {
			t.Fatalf("%v", file)
		}
	}
}

func TestOpen_TakesTheLowerVersion(t *testing.T) {
	connection := withShelf(t, newShelf(), roomy)
	for name, version := range map[string]uint32{"of today": Version, "of years to come": 1000} {
		sender, err := Open(as(within(t), "p", "n"), connection, version, func(Acked) {})
		if err != nil {
			t.Errorf("a collector %s: %v", name, err)
			continue
		}
		sender.Close()
	}
	if _, err := Open(as(within(t), "p", "n"), connection, 0, func(Acked) {}); status.Code(unwrapped(err)) != codes.InvalidArgument {
		t.Errorf("a collector without a version: %v", err)
	}
}

func TestServer_EndsTheFormerStreamOfAPod(t *testing.T) {
	s := newShelf()
	connection := withShelf(t, s, Limits{Streams: 1, NamespaceStreams: 1})
	former := openAs(t, connection, "p", "n")
	later := openAs(t, connection, "p", "n")
	<-former.Done()
	if status.Code(former.Err()) != codes.Aborted {
		t.Errorf("the former stream ended with %v", former.Err())
	}
	must(t, later.List(within(t), nil))
	if s.open != 1 {
		t.Errorf("%d streams are open at once", s.open)
	}
}

func TestServer_BoundsStreams(t *testing.T) {
	s := newShelf()
	connection := withShelf(t, s, Limits{Streams: 3, NamespaceStreams: 2})
	first := openAs(t, connection, "p", "n")
	openAs(t, connection, "q", "n")
	refused := func(pod, namespace string) {
		t.Helper()
		if _, err := Open(as(within(t), pod, namespace), connection, Version, func(Acked) {}); status.Code(unwrapped(err)) != codes.ResourceExhausted {
			t.Errorf("a stream of %s in %s: %v", pod, namespace, err)
		}
	}
	refused("r", "n")
	openAs(t, connection, "s", "m")
	refused("t", "o")
	first.Close()
	eventually(t, "the place is free", func() bool {
		sender, err := Open(as(within(t), "r", "n"), connection, Version, func(Acked) {})
		if err == nil {
			sender.Close()
		}
		return err == nil
	})
	if _, err := Open(within(t), connection, Version, func(Acked) {}); status.Code(unwrapped(err)) != codes.Unauthenticated {
		t.Errorf("a caller without a token: %v", err)
	}
	for _, source := range s.opened {
		if source.Pod == (pack.UID{}) {
			t.Error(fmt.Sprint("an archive was opened for ", source))
		}
	}
}
